"""A stage for stories of evidence: machines whose true rates are known, and what is seen of a fleet, pass by pass."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from controller.emulator.chance import lognormal, stream
from controller.emulator.trouble import HostTrouble
from controller.ledger.sqlite import Ledger
from controller.loop.pace import Pace
from controller.model.fleet import Fleet
from controller.model.instance import Instance, Phase, Run, RunKind
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus
from controller.runtime.embedded import Running
from tests.journeys.stage import ORIGIN, Stage, stage

HOUR = 3600.0
DAY = 24 * HOUR
SEED = 1
AT_WORK = {Phase.ADMITTED, Phase.MEASURING}
PACE = Pace(active=60, steady=1800, retry=1800)
JSON = {"command": "json-bench", "format": "json"}
DAEMON = {
    "image": "example/prover:1.4",
    "start": "nohup cuzk-daemon > /root/daemon.log 2>&1 &",
    "stop": "pkill cuzk-daemon || true",
    "drainSeconds": 30,
}


def ids(low: float, high: float, count: int, *, seed: int = SEED) -> list[int]:
    """Machines whose undisturbed rate, in proofs/h of one RTX 4090, lies between two figures."""

    def rate(machine: int) -> float:
        return lognormal(stream(seed, "true-rate", machine), mean=61.0, cv=0.08)

    return list(itertools.islice((n for n in itertools.count(501) if low <= rate(n) <= high), count))


def machines(numbers: list[int], price: float = 0.3, **values: Any) -> list[dict[str, Any]]:
    return [{"model": "RTX 4090", "id": number, "perHour": price, "ramGib": 192, **values} for number in numbers]


def set_up(folder: Path, rented: list[dict[str, Any]], *troubles: dict[str, Any], **scenario: Any) -> Stage:
    market = {"offers": 0, "machines": rented}
    return stage(folder, seed=SEED, pace=PACE, market=market, troubles=list(troubles), credit=1000, **scenario)


def floor(rate: float, **more: Any) -> tuple[dict[str, Any], ...]:
    return ({"gpu": "RTX 4090", "minRate": rate, **more},)


def unhurried(path: Path) -> Ledger:
    """A ledger that does not wait for the disk: no power fails here."""
    ledger = Ledger.open(path)
    ledger._execute("PRAGMA synchronous = OFF")
    return ledger


class Story:
    """What was seen of a fleet, pass by pass."""

    def __init__(self, here: Stage, made: Running) -> None:
        self.here, self.made = here, made
        self.passes: list[FleetStatus] = []

    @property
    def ready(self) -> FleetStatus:
        return self.passes[-1]

    def condition(self, kind: str) -> Condition:
        found = self.passes[-1].condition(kind)
        assert found is not None
        return found

    async def until(self, wanted: Fleet, holds: Callable[[FleetStatus], bool], *, hours: float = 48) -> None:
        """Pass until something holds; TimeoutError after so many hours."""

        def seen(statuses: tuple[FleetStatus, ...]) -> bool:
            self.passes.append(statuses[0])
            return holds(statuses[0])

        async with asyncio.timeout(hours * HOUR):
            await self.made.loop.keep(lambda: (wanted,), until=seen)

    async def live(self, wanted: Fleet, hours: float) -> list[FleetStatus]:
        """Pass for so many hours; what was seen meanwhile."""
        begin = len(self.passes)
        with contextlib.suppress(TimeoutError):
            await self.until(wanted, lambda _: False, hours=hours)
        return self.passes[begin:]

    def slow_down(self, instance: Instance, factor: float, *, hours: float | None = None, wait: float = 0.0) -> None:
        """From now on, or after so many hours, an instance's rate is multiplied: for so many hours, or for good."""
        contract = self.here.emulator.world.contracts[instance.instance_id or 0]
        after = self.here.emulator.world.time - ORIGIN + wait * HOUR
        seconds = None if hours is None else hours * HOUR
        trouble = HostTrouble(kind="disturbed", since="start", after=after, seconds=seconds, factor=factor)
        contract.fates = (*contract.fates, trouble)

    @property
    def working(self) -> list[Instance]:
        return [i for i in self.made.ledger.instances() if i.admitted_at is not None and i.phase in AT_WORK]

    def on(self, machine: int) -> Instance:
        """What is rented on a machine."""
        return next(i for i in self.made.ledger.instances() if i.machine_id == machine)

    def went(self, machine: int) -> list[Instance]:
        """What was rented on a machine and given up."""
        return [
            i
            for i in self.made.ledger.instances(gone=True)
            if i.machine_id == machine and i.phase in {Phase.GONE, Phase.DESTROYING, Phase.RELEASING}
        ]

    def runs(self, machine: int | None = None, kind: RunKind = RunKind.BENCHMARK) -> list[Run]:
        return [r for r in self.made.ledger.runs() if machine in {None, r.machine_id} and r.kind is kind]

    def events(self, reason: Reason) -> list[str]:
        return [event.message for event in self.made.ledger.events() if event.reason is reason]

    @property
    def quiesced(self) -> int:
        """How often production was stopped, for a benchmark or a release."""
        return sum(event.message.startswith(("quiesce:", "measure:")) for event in self.made.ledger.events())

    @property
    def hours(self) -> float:
        return (self.here.emulator.world.time - ORIGIN) / HOUR


@contextlib.asynccontextmanager
async def told(here: Stage):
    async with here.controller(open_ledger=unhurried) as made:
        yield Story(here, made)
    await here.emulator.close()
