"""The command line, run as people run it: as a process of its own, against an emulator that is one too."""

import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
COMMAND = (sys.executable, "-m", "controller.cli.main")
SECRET = "SECRET-env-marker"
SPEED = "240"

FLEET = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: {name}}}
spec:
  target: {{instances: {instances}}}
  budgetPerHour: {budget}
  shapes: [{{gpu: RTX 4090, minRate: 40}}]
  require: {{reliability: 0, verified: false, ramGiB: 128, diskGiB: 50, remainingHours: 0}}
  instance: {{image: "example/prover:1.4", env: {{TOKEN: {secret}}}}}
  benchmark:
    command: cuzk-bench batch --count 4 -c $CONCURRENCY --warmup $WARMUP
    memory: {{reserveGiB: 100, perProofGiB: 6}}
  deletionPolicy: {policy}
"""


def manifest(name: str = "provers", *, instances: int = 2, budget: float = 2.0, policy: str = "Destroy") -> str:
    return FLEET.format(name=name, instances=instances, budget=budget, policy=policy, secret=SECRET)


class Background:
    """A command that runs beside the test; what it prints is waited for, never slept for."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []

    def until(self, text: str) -> str:
        """Read its stdout up to a line that holds the text."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"it ended before it said {text!r}: {''.join(self.lines)}")

    def stop(self, signal: int) -> tuple[int, str]:
        """Send a signal and wait for the end: its exit code, and all it printed."""
        self.process.send_signal(signal)
        rest, _ = self.process.communicate(timeout=60)
        return self.process.returncode, "".join(self.lines) + rest


@dataclass
class Shell:
    """A directory with a ledger and an environment, in which commands are run."""

    directory: Path
    env: dict[str, str]
    started: list[Background]

    def run(self, *args: str, stdin: str | None = None, **env: str) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return subprocess.run(
            [*COMMAND, *args], cwd=self.directory, env=self.env | env, input=stdin or "",
            text=True, capture_output=True, timeout=120, check=False,
        )  # fmt: skip

    def start(self, *args: str) -> Background:
        """Run a command beside the test, stderr and stdout together."""
        process = subprocess.Popen(
            [*COMMAND, *args], cwd=self.directory, env=self.env, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.started.append(Background(process))
        return self.started[-1]

    def write(self, name: str, text: str) -> str:
        """A file in the directory; its name."""
        (self.directory / name).write_text(text)
        return name

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.directory / "ledger.db"


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("VAST", "XDG", "NO_COLOR"))}
    env |= {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "VASTFLEET_LEDGER": str(tmp_path / "ledger.db")}
    made = Shell(tmp_path, env, [])
    yield made
    for background in made.started:
        if background.process.poll() is None:
            background.process.kill()
        background.process.communicate()


@pytest.fixture
def emulated(shell: Shell) -> Shell:
    """The same, with an emulator served."""
    scenario = "market: {offers: 300, models: [RTX 4090]}\nbootSeconds: 20\nprover: {rateFactor: 1.3}\n"
    served = shell.start("emulator", "--speed", SPEED, "--scenario", shell.write("scenario.yaml", scenario))
    served.until("VASTFLEET_CLOCK")
    lines = [line.removeprefix("export ").strip().split("=", 1) for line in served.lines if line.startswith("export ")]
    shell.env |= {name: value for name, value in lines if name != "VASTFLEET_LEDGER"}
    return shell
