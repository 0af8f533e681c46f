"""What it costs to do nothing: memory and calls of an idle `vastfleet run`, by instances and fleets.

    python bench/steady.py

Each row is a `vastfleet run` of its own against an emulated vast.ai whose clock runs fast: it fills its fleets, and is
then watched for so many passes. `lists` are list calls a pass, and the ratio is theirs to one for every 25 instances.
Reads /proc, so it needs Linux. Exit code 1 if a row is above 100 MiB or a ratio above 1.
"""

import asyncio
import json
import math
import os
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from starlette.types import Receive, Scope, Send

from controller.emulator import Emulator, ScaledClock, Scenario
from controller.ledger.sqlite import Ledger

ROWS = ((4, 1), (25, 1), (50, 1), (100, 1), (100, 5))  # instances, fleets
SPEED = 120.0  # a second between calls is 8 ms of the wall: limits would measure the machine, and are off
PASSES = 20
A_PAGE = 25
MOST_MIB = 100
PATH = "/api/v1/instances/"
LIST = f"GET {PATH}"
FILL_WITHIN_S = 120.0
SCENARIO = {
    "seed": 7,
    "credit": 100_000,
    "market": {"offers": 1400, "models": ["RTX 4090"]},
    "limits": {"enabled": False},
    "bootSeconds": 20,
    "prover": {"rateFactor": 2},
}
MANIFEST = """---
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: fleet-{number}}}
spec:
  target: {{instances: {instances}}}
  budgetPerHour: 1000
  shapes: [{{gpu: RTX 4090, minRate: 40}}]
  require: {{reliability: 0, verified: false, remainingHours: 0}}
  instance: {{image: example/prover}}
  benchmark: {{command: json-bench --seconds 60, format: json, recheckHours: 720}}
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """An idle run: its memory, and its calls while so many passes went by."""

    mib: float
    passes: int
    calls: Counter[str]


class Passes:
    """Notes the calls so far whenever a listing's first page is asked for, which begins a pass."""

    def __init__(self, emulator: Emulator) -> None:
        self._app, self._emulator = emulator.app, emulator
        self.calls: list[Counter[str]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Note, and pass on."""
        if scope["type"] == "http" and scope["path"] == PATH and b"after_token" not in scope["query_string"]:
            self.calls.append(Counter(self._emulator.calls))
        await self._app(scope, receive, send)


async def watch(instances: int, fleets: int) -> Seen:
    """Fill the fleets, and look on."""
    clock = ScaledClock(SPEED)
    emulator = Emulator(clock=clock, scenario=Scenario.model_validate(SCENARIO))
    emulator.app = passes = Passes(emulator)  # type: ignore[assignment]
    url = await emulator.serve()
    with tempfile.TemporaryDirectory(prefix="vastfleet-bench-") as directory:
        manifest, ledger = Path(directory, "fleets.yaml"), Path(directory, "ledger.db")
        shares = [instances // fleets] * fleets
        documents = [MANIFEST.format(number=number, instances=share) for number, share in enumerate(shares)]
        manifest.write_text("".join(documents))  # noqa: ASYNC240 - a short file, and nothing else to do
        env = {**os.environ, "VAST_URL": url, "VAST_API_KEY": emulator.api_key, "VASTFLEET_LEDGER": str(ledger)}
        env |= {"VASTFLEET_CLOCK": f"{SPEED}@{clock.origin!r}", "VASTFLEET_OWNER": "bench"}
        command = [sys.executable, "-m", "controller.cli.main", "run", str(manifest)]
        quiet = asyncio.subprocess.DEVNULL
        run = await asyncio.create_subprocess_exec(*command, env=env, stdout=quiet, stderr=quiet)
        try:
            async with asyncio.timeout(FILL_WITHIN_S):
                await emulator.wait_for(lambda: len(emulator.alive) >= instances and ready(ledger, fleets))
            first = len(passes.calls)
            await emulator.wait_for(lambda: len(passes.calls) > first + PASSES)
            return Seen(resident_mib(run.pid), PASSES, passes.calls[first + PASSES] - passes.calls[first])
        finally:
            run.send_signal(signal.SIGTERM)
            await run.wait()
            await emulator.close()


def ready(path: Path, fleets: int) -> bool:
    """Whether the ledger's last word on each fleet is that it is ready."""
    ledger = Ledger.read(path)
    try:
        said = [json.loads(text) for text in ledger.statuses().values()]
    finally:
        ledger.close()
    conditions = [c for status in said for c in status["conditions"] if c["type"] == "Ready"]
    return len([c for c in conditions if c["status"] == "True"]) == fleets


def resident_mib(pid: int) -> float:
    """Memory of a process that is not swapped out."""
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


async def main() -> int:
    """Print a row for each; the exit code."""
    print("instances fleets  RSS MiB  passes  lists a pass  ratio  other calls a pass")
    good = True
    for instances, fleets in ROWS:
        seen = await watch(instances, fleets)
        lists = seen.calls.pop(LIST) / seen.passes
        ratio = lists / math.ceil(instances / A_PAGE)
        others = ", ".join(f"{name} {n / seen.passes:.2f}" for name, n in sorted(seen.calls.items())) or "none"
        print(
            f"{instances:9} {fleets:6} {seen.mib:8.1f} {seen.passes:7} {lists:13.2f} {ratio:6.2f}  {others}", flush=True
        )
        good &= seen.mib <= MOST_MIB and ratio <= 1
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
