"""Real processes, really killed: `vastfleet apply` and `destroy` against an emulator served over HTTP and SSH."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controller.emulator import Emulator, ScaledClock, Scenario

ROOT = Path(__file__).parents[2]
SPEED = 200.0
COMMAND = "from controller.cli.main import main; main()"
DIES_BEFORE_THE_LEDGER = """
import os, signal
from controller.ledger.sqlite import Ledger
written = Ledger.put
def put(self, instance):
    if instance.phase == "Launching" and instance.instance_id is not None:
        os.kill(os.getpid(), signal.SIGKILL)
    written(self, instance)
Ledger.put = put
"""
FLEET = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {name: provers}
spec:
  target: {instances: 2}
  budgetPerHour: 0.9
  shapes: [{gpu: RTX 4090, minRate: 30}]
  require: {reliability: 0, verified: false, diskGiB: 50, remainingHours: 0}
  instance: {image: "example/prover:1.4"}
  benchmark: {command: json-bench, format: json}
"""


@dataclass
class World:
    """An emulator, and processes that may be killed."""

    emulator: Emulator
    folder: Path
    env: dict[str, str]

    async def start(self, *args: str, prelude: str = "") -> asyncio.subprocess.Process:
        with (self.folder / "log.txt").open("a") as log:
            return await asyncio.create_subprocess_exec(
                sys.executable, "-c", prelude + COMMAND, *args, cwd=self.folder, env=self.env, stdout=log, stderr=log
            )

    async def run(self, *args: str) -> int:
        return await (await self.start(*args)).wait()

    async def killed_when(self, reached: Any, *args: str) -> None:
        """Start a command, and kill it with no warning once the emulator's world is so."""
        process = await self.start(*args)
        await self.emulator.wait_for(reached)
        process.kill()
        await process.wait()

    @property
    def creates(self) -> int:
        return self.emulator.calls["PUT /api/v0/asks/{id}/"]

    @property
    def destroys(self) -> int:
        return self.emulator.calls["DELETE /api/v0/instances/{id}/"]

    async def holds_two(self) -> None:
        """The fleet is brought to its target by another process: two instances, and no third was ever rented."""
        assert await self.run("apply", "fleet.yaml") == 0, (self.folder / "log.txt").read_text()
        assert len(self.emulator.alive) == 2
        assert len(self.emulator.rentals()) == 2


@pytest.fixture
async def make(tmp_path: Path) -> AsyncIterator[Any]:
    made: list[Emulator] = []

    async def world(*troubles: dict[str, Any]) -> World:
        spec = {"market": {"offers": 200, "models": ["RTX 4090"]}, "bootSeconds": 20, "troubles": troubles}
        clock = ScaledClock(SPEED)
        emulator = Emulator(clock=clock, seed=4, scenario=Scenario.model_validate(spec))
        made.append(emulator)
        url = await emulator.serve()
        (tmp_path / "fleet.yaml").write_text(FLEET)
        env = {name: value for name, value in os.environ.items() if not name.startswith(("VAST", "XDG"))}
        env |= {"PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "VASTFLEET_LEDGER": str(tmp_path / "ledger.db")}
        env |= {"VAST_URL": url, "VAST_API_KEY": emulator.api_key}
        env |= {"VASTFLEET_CLOCK": f"{SPEED}@{clock.origin}"}
        return World(emulator, tmp_path, env)

    yield world
    for emulator in made:
        await emulator.close()


async def test_killed_between_the_create_call_and_its_effect(make):
    """Killed while the create call is on its way, and rented only afterwards: found by its label, not rented twice."""
    world = await make({"kind": "hold", "on": "create", "nth": 1, "when": "before", "seconds": 60})
    await world.killed_when(lambda: world.creates == 1, "apply", "fleet.yaml")
    await world.holds_two()


async def test_killed_between_the_create_and_its_answer(make):
    """Killed when the instance exists and its answer is not there yet: found by its label, not rented twice."""
    world = await make({"kind": "hold", "on": "create", "nth": 1, "when": "after", "seconds": 4000})
    await world.killed_when(lambda: len(world.emulator.alive) == 1, "apply", "fleet.yaml")
    await world.holds_two()


async def test_killed_between_the_answer_and_the_ledger(make):
    """Killed when the answer has come and is not written down yet: found by its label, not rented twice."""
    world = await make()
    process = await world.start("apply", "fleet.yaml", prelude=DIES_BEFORE_THE_LEDGER)
    assert await process.wait() == -9
    assert len(world.emulator.alive) == 1
    await world.holds_two()


async def test_killed_during_a_benchmark(make):
    """Killed while instances are being measured: they are measured again, and none is rented twice."""
    world = await make()
    await world.killed_when(lambda: len(world.emulator.world.contracts) == 2, "apply", "fleet.yaml")
    await world.holds_two()


async def test_killed_during_destroy(make):
    """Killed in the middle of a destroy call: the next destroy ends what is left, and proves it."""
    world = await make({"kind": "hold", "on": "destroy", "nth": 1, "when": "after", "seconds": 4000})
    await world.holds_two()
    await world.killed_when(lambda: world.destroys == 1, "destroy", "provers", "--yes")
    assert await world.run("destroy", "provers", "--yes") == 0
    assert not world.emulator.alive
