"""The control plane is built when it must be, and only then. A script stands for Go, which would take minutes."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from subprocess import DEVNULL, PIPE

import pytest

from tests.controlplane import build as building
from tests.controlplane.build import BuildError, Go, build, digest, in_use, newest_go

GO = """#!/bin/sh
[ "$1" = version ] && echo "go version go{version} linux/amd64" && exit
echo built >> {place}/log
{build}
while [ "$1" != -o ]; do shift; done
mkdir -p "$(dirname "$2")"
echo "#!/bin/sh" > "$2"
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with a Go and an empty cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    install_go(tmp_path)
    return tmp_path


def install_go(place: Path, *, version: str = "1.26.9", build: str = "") -> None:
    program = place / "go"
    program.write_text(GO.format(version=version, place=place, build=build))
    program.chmod(0o755)


def entries(machine: Path) -> list[str]:
    return sorted(path.name for path in (machine / "cache/vastfleet").iterdir() if path.is_dir())


def test_it_is_built_once(machine: Path):
    """What was built is found again, with a kubectl beside it, and nothing else is left of the build."""
    place = build()
    assert build() == place
    assert (machine / "log").read_text() == "built\n"
    assert (place / "kubectl").resolve() == place / "controlplane"
    assert entries(machine) == [place.name]


def test_an_older_one_goes_unless_in_use(machine: Path):
    """A new version takes the place of the old one, but not under the hands of tests that run it."""
    old = build()
    install_go(machine, version="1.27.0")
    with in_use(old):
        newer = build()
        assert entries(machine) == sorted((old.name, newer.name))
    install_go(machine, version="1.27.1")
    newest = build()
    assert entries(machine) == [newest.name]


def test_two_at_once_build_once(machine: Path):
    """Of two who want it at once, one builds, and the other says that it waits."""
    os.mkfifo(machine / "gate")
    install_go(machine, build=f"cat {machine}/gate")
    command = [sys.executable, building.__file__]
    with (
        subprocess.Popen(command, stdout=PIPE, stderr=DEVNULL, text=True) as first,
        (machine / "gate").open("w") as gate,  # opens once the first is building, and holds it up until it is closed
        subprocess.Popen(command, stdout=PIPE, stderr=PIPE, text=True) as second,
    ):
        assert second.stderr is not None
        assert second.stderr.readline() == "waiting for another build of the control plane\n"
        gate.close()
        said = {process.communicate()[0].strip() for process in (first, second)}
    assert said == {str(machine / "cache/vastfleet" / name) for name in entries(machine)}
    assert (machine / "log").read_text() == "built\n"


def test_a_failed_build_says_what_to_do(machine: Path):
    """Where Go fails, what it said is told, and what would help; nothing stays that could be taken for a result."""
    install_go(machine, build="echo dial tcp: no route to host >&2; exit 1")
    with pytest.raises(BuildError, match=r"no route to host\n.*It needs.*the network.*KUBEBUILDER_ASSETS"):
        build()
    assert entries(machine) == []


@pytest.mark.parametrize("version", ["1.26.0", "1.27rc1", "2.0"])
def test_a_new_go_is_taken(machine: Path, version: str):
    """The machine's Go builds where go.mod is content with it."""
    install_go(machine, version=version)
    assert newest_go().program == str(machine / "go")


@pytest.mark.parametrize("version", ["1.25.11", "1.5", "unknown"])
def test_an_old_go_is_not_taken(machine: Path, version: str):
    """Where the machine's Go is too old, or cannot tell, it is the one of the locked wheel."""
    install_go(machine, version=version)
    assert newest_go().program is None
    assert newest_go().version.startswith("go version go1.26.")


def test_a_change_of_sources_is_another_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Each file that goes into the build, and the version of Go, tells one build from another."""
    go = Go("go version go1.26.9 linux/amd64", None)
    seen = {digest(go), digest(Go("go version go1.26.8 linux/amd64", None))}
    shutil.copytree(building.HERE, tmp_path / "controlplane")
    monkeypatch.setattr(building, "HERE", tmp_path / "controlplane")
    assert digest(go) in seen
    for name in ("go.mod", "go.sum", "serve.go"):
        with (building.HERE / name).open("a") as file:
            file.write("\n")
        assert digest(go) not in seen
        seen.add(digest(go))
