"""What evidence does to a fleet: whole stories of measuring, doubting, replacing, and of suspecting something else."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from controller.emulator.chance import lognormal, stream
from controller.emulator.trouble import HostTrouble
from controller.ledger.sqlite import Ledger
from controller.loop.pace import Pace
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance, Phase, Run, RunKind
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus
from controller.plan.windows import open_now
from controller.runtime.embedded import Running
from tests.journeys.stage import ORIGIN, Stage, stage
from tests.plan.conftest import fleet

pytestmark = pytest.mark.looptime

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


async def test_a_machine_that_has_become_slow_is_replaced(tmp_path):
    """A machine that loses 15 % for good is replaced, and not before its successor works; one bad run costs nothing."""
    here = set_up(tmp_path, machines(ids(64, 70, 12)))
    wanted = fleet(target={"instances": 3}, budget=2, shapes=floor(58), benchmark=JSON)
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        await story.live(wanted, 48)
        fallen, disturbed, _ = story.working
        due = max(run.ended_at for run in story.runs(disturbed.machine_id)) + DAY
        story.slow_down(fallen, 0.85)
        story.slow_down(disturbed, 0.72, hours=(due - here.emulator.world.time) / HOUR - 3.0)  # for one run
        begin = len(story.passes)
        await story.until(wanted, lambda _: bool(story.went(fallen.machine_id)), hours=24 * 8)
        assert story.went(fallen.machine_id)[0].reason is Reason.BELOW_MIN_RATE
        assert min(said.held for said in story.passes[begin:]) == 3
        await story.live(wanted, 24)
        assert any((run.rate or 0.0) < 54 for run in story.runs(disturbed.machine_id) if run.ended_at > due - DAY)
        assert disturbed.nonce in {i.nonce for i in story.working}


async def test_two_on_one_machine_are_measured_as_they_work(tmp_path):
    """Where one machine is left, its second instance has the first measured again, and never both at once."""
    here = set_up(tmp_path, machines([501], gpus=2, parts=2, ramGib=400))
    wanted = fleet(target={"instances": 2}, shapes=floor(30), instance=DAEMON, benchmark=JSON)
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        await story.live(wanted, 3)
        runs = sorted(story.runs(), key=lambda run: run.started_at)
        assert all(before.ended_at <= after.started_at for before, after in itertools.pairwise(runs))
        newest = {run.nonce: run.neighbours for run in runs}
        assert newest == {i.nonce: 1 for i in story.working}
        assert len(newest) == 2
        alone = [run.rate or 0.0 for run in runs if run.neighbours == 0]
        beside = [run.rate or 0.0 for run in runs if run.neighbours == 1]
        assert min(alone) > 1.15 * max(beside)


async def test_what_ran_out_of_memory_is_retried_narrower(tmp_path):
    """A cold cache is warmed up narrow; a width that runs out of memory is halved, for the next machine too."""
    here = set_up(
        tmp_path,
        machines([501, 502], 0.7, gpus=2, ramGib=75),
        prover={"baseGib": 40, "perProofGib": 5, "coldPerWorkerGib": 6},
    )
    benchmark: dict[str, Any] = {
        "command": "cuzk-bench batch --count 12 -c $CONCURRENCY --warmup $WARMUP",
        "warmUp": {"command": "cuzk-bench warm-up --partition-workers $PARTITION_WORKERS"},
        "memory": {"reserveGiB": 40, "perProofGiB": 3},
    }
    shapes = floor(80, gpuCount=2)
    one = fleet(target={"instances": 1}, shapes=shapes, benchmark=benchmark)
    async with told(here) as story:
        await story.until(one, lambda said: said.ready)
        tried = [(run.reason, run.concurrency) for run in story.runs()]
        assert tried == [(Reason.OUT_OF_MEMORY, 10), (Reason.MEASURED, 5)]
        assert [b for b in story.made.ledger.backoffs() if b.scope == "machine"] == []
        await story.until(
            fleet(target={"instances": 2}, shapes=shapes, benchmark=benchmark),
            lambda said: said.ready and said.held == 2,
        )
        (second,) = [i for i in story.made.ledger.instances() if i.nonce != story.runs()[0].nonce]
        assert next((r.reason, r.concurrency) for r in story.runs() if r.nonce == second.nonce) == (Reason.MEASURED, 5)
        assert len(story.made.ledger.instances(gone=True)) == 2


async def test_production_is_watched_without_disturbing_it(tmp_path):
    """Where production tells its rate no benchmark interrupts it for days, and what becomes slow is replaced."""
    here = set_up(tmp_path, machines(ids(65, 72, 12)))
    benchmark = JSON | {"recheckHours": 12, "production": {"command": "cuzk-daemon status", "everyMinutes": 60}}
    wanted = fleet(target={"instances": 3}, shapes=floor(57), instance=DAEMON, benchmark=benchmark)
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        await story.live(wanted, 24)
        benchmarks, readings = len(story.runs()), len(story.runs(kind=RunKind.PRODUCTION))
        held = {i.nonce for i in story.working}
        quiesced = story.quiesced
        await story.live(wanted, 24 * 2.5)
        assert len(story.runs()) == benchmarks
        assert len(story.runs(kind=RunKind.PRODUCTION)) >= readings + 3 * 24 * 2
        assert {i.nonce for i in story.working} == held
        assert story.quiesced == quiesced
        fallen = story.working[0]
        story.slow_down(fallen, 0.85)
        begin = len(story.passes)
        await story.until(wanted, lambda _: bool(story.went(fallen.machine_id)), hours=24 * 4)
        assert story.went(fallen.machine_id)[0].reason is Reason.BELOW_MIN_RATE
        assert min(said.held for said in story.passes[begin:]) == 3


async def test_a_reading_that_fails_is_told_once(tmp_path):
    """Production that no longer tells its rate is told of once, costs no instance, and is measured by benchmarks."""
    here = set_up(tmp_path, machines(ids(64, 70, 2)))
    benchmark = JSON | {"recheckHours": 24, "production": {"command": "cuzk-daemon status"}}
    wanted = fleet(target={"instances": 2}, shapes=floor(50), instance=DAEMON, benchmark=benchmark)
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        mute = story.made.ledger.instances()[0]
        await story.live(wanted, 3)
        await here.emulator.run(mute.instance_id or 0, "pkill cuzk-daemon", lambda _: None, lambda _: None)
        number = story.made.ledger.newest_event()
        await story.live(wanted, 5)
        news = [said for _, said in story.made.ledger.news(after=number) if said.about == str(mute.instance_id)]
        assert [(said.kind, said.message.startswith("read: ")) for said in news] == [("Warning", True)]
        healthy = story.condition("BenchmarksHealthy")
        assert (healthy.status, healthy.reason) == ("False", Reason.NO_RATE)
        await story.live(wanted, 30)
        assert {i.nonce for i in story.made.ledger.instances()} >= {mute.nonce}
        assert any(r.started_at - ORIGIN > 9 * HOUR for r in story.runs() if r.nonce == mute.nonce)
        assert story.condition("BenchmarksHealthy").status == "True"


async def test_a_broken_image_is_suspected_and_not_the_machines(tmp_path):
    """An image that fails everywhere is tried on one machine at a time; what works is kept, and a mended one rolls."""
    here = set_up(tmp_path, machines(ids(60, 70, 12)), {"kind": "broken-image", "image": ":1.5"})
    made_with: dict[str, Any] = {"target": {"instances": 3}, "budget": 3, "shapes": floor(45), "benchmark": JSON}
    gentle: dict[str, Any] = {"maxSurge": 1, "maxUnavailable": 0, "minLifetimeMinutes": 0}
    old, broken, mended = (
        fleet(**made_with, disruption=gentle, instance={"image": f"example/prover:1.{minor}"}) for minor in (4, 5, 6)
    )
    async with told(here) as story:
        await story.until(old, lambda said: said.ready)
        working = {i.nonce for i in story.made.ledger.instances()}
        before = here.creates
        seen = await story.live(broken, 36)
        assert here.creates - before <= 16
        suspected = [said for said in seen if any(c.reason is Reason.WORKLOAD_SUSPECT for c in said.conditions)]
        assert suspected
        assert all(said.pending <= 1 for said in suspected)
        assert all(said.held == 3 for said in seen)
        assert working <= {i.nonce for i in story.made.ledger.instances()}
        healthy = next(c for c in suspected[-1].conditions if c.type == "BenchmarksHealthy")
        assert "CUDA error 209" in healthy.message
        assert "the image or a command is the suspect" in healthy.message
        machines_blamed = [b for b in story.made.ledger.backoffs() if b.scope == "machine"]
        assert len(machines_blamed) <= 3
        await story.until(mended, lambda said: said.ready, hours=24)
        now_working = story.made.ledger.instances()
        assert {i.workload for i in now_working} == {mended.spec.workload()}
        assert story.condition("BenchmarksHealthy").status == "True"


async def test_a_broken_image_costs_little_from_the_start(tmp_path):
    """A fleet whose image never worked rents a bounded number of instances a day, and says what it suspects."""
    here = set_up(tmp_path, machines(ids(55, 70, 40)), {"kind": "broken-image"})
    wanted = fleet(target={"instances": 4}, budget=3, shapes=floor(45), benchmark=JSON)
    async with told(here) as story:
        seen = await story.live(wanted, 24)
        assert here.creates <= 20
        late = [said for said in seen if (said.last_pass or 0.0) - ORIGIN > 2 * HOUR]
        assert all(said.pending <= 1 for said in late)
        assert {Reason.WORKLOAD_SUSPECT} == {story.condition(kind).reason for kind in ("BenchmarksHealthy",)}


async def test_what_slows_all_machines_at_once_replaces_none(tmp_path):
    """When all machines lose 25 % at one time nothing is replaced for days, it is said, and a lower floor ends it."""
    here = set_up(
        tmp_path,
        machines(ids(58, 70, 16)),
        {"kind": "slow-image", "since": "start", "after": 3 * DAY, "factor": 0.75},
    )
    made_with: dict[str, Any] = {"target": {"instances": 6}, "budget": 4, "benchmark": JSON | {"recheckHours": 12}}
    wanted, lower = fleet(**made_with, shapes=floor(52)), fleet(**made_with, shapes=floor(36))
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        await story.live(wanted, 72 - story.hours)
        before = {i.nonce for i in story.working}
        await story.until(wanted, lambda said: said.condition("RemediationAllowed").reason is Reason.FLEET_SHIFT)
        assert story.hours < 72 + 16
        holding = {i.nonce for i in story.working}
        assert before <= holding
        seen = await story.live(wanted, 24 * 2.5)
        assert holding <= {i.nonce for i in story.working}
        for kind in ("BenchmarksHealthy", "RemediationAllowed"):
            found = story.condition(kind)
            assert (found.status, found.reason) == ("False", Reason.FLEET_SHIFT)
            assert "slower than they were, all since one time" in found.message
        assert all(said.held >= 6 for said in seen)
        await story.until(lower, lambda said: said.ready, hours=4)
        assert story.condition("RemediationAllowed").status == "True"
        assert story.condition("BenchmarksHealthy").status == "True"


async def test_a_slowness_that_ends_is_seen_to_have_ended(tmp_path):
    """When what slowed all machines is over, runs show it, the suspicion ends, and what was held is held on."""
    here = set_up(
        tmp_path,
        machines(ids(62, 70, 10)),
        {"kind": "slow-image", "since": "start", "after": 3 * DAY, "seconds": 1.5 * DAY, "factor": 0.7},
    )
    wanted = fleet(target={"instances": 6}, budget=4, benchmark=JSON | {"recheckHours": 12}, shapes=floor(50))
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        await story.live(wanted, 72 - story.hours)
        await story.until(wanted, lambda said: said.condition("RemediationAllowed").reason is Reason.FLEET_SHIFT)
        holding = {i.nonce for i in story.working}
        await story.until(
            wanted, lambda said: said.ready and said.condition("RemediationAllowed").status == "True", hours=96
        )
        assert len(holding & {i.nonce for i in story.working}) >= 5


WINDOW = {"cron": "0 3 * * *", "durationMinutes": 180}


async def test_doubt_waits_for_the_window(tmp_path):
    """What may be too slow works on until the maintenance window opens, and its successor is rented within it."""
    so_so, good = ids(60.5, 62, 1), ids(67, 75, 3)
    here = set_up(tmp_path, machines(so_so, 0.3) + machines(good, 0.301))
    wanted = fleet(
        target={"instances": 1},
        budget=2,
        shapes=floor(59),
        benchmark=JSON | {"recheckHours": 6},
        disruption={"windows": [WINDOW], "minLifetimeMinutes": 0, "maxUnavailable": 0},
        judgement={"replaceBelow": 0.95, "acceptAbove": 0.99},
    )
    async with told(here) as story:
        await story.until(wanted, lambda _: bool(story.went(so_so[0])), hours=72)
        doubted = [said for said in story.passes if said.instances[0].decision is Decision.CHALLENGED]
        assert len(doubted) > 5
        windows = wanted.spec.disruption.windows
        assert not all(open_now(windows, said.last_pass or 0.0) for said in doubted)
        challenger = story.working[0]
        assert open_now(windows, challenger.created_at)
        assert open_now(windows, story.went(so_so[0])[0].phase_since)


async def test_what_is_too_slow_is_replaced_at_any_time(tmp_path):
    """A machine that plainly falls is replaced although no window will open for weeks."""
    here = set_up(tmp_path, machines(ids(64, 72, 6)))
    rare = {"windows": [{"cron": "0 3 1 12 *", "durationMinutes": 60}]}
    wanted = fleet(target={"instances": 2}, shapes=floor(45), benchmark=JSON | {"recheckHours": 6}, disruption=rare)
    async with told(here) as story:
        await story.until(wanted, lambda said: said.ready)
        await story.live(wanted, 24)
        fallen = story.working[0]
        story.slow_down(fallen, 0.4)
        await story.until(wanted, lambda said: said.ready and bool(story.went(fallen.machine_id)), hours=48)
        assert story.went(fallen.machine_id)[0].reason is Reason.BELOW_MIN_RATE
        assert len(story.working) == 2


async def test_a_machine_to_be_avoided_is_left(tmp_path):
    """An instance on a machine that the manifest avoids is replaced, and a pin that has expired does nothing."""
    here = set_up(tmp_path, machines(ids(64, 72, 8)))
    made_with: dict[str, Any] = {"target": {"instances": 2}, "shapes": floor(42), "benchmark": JSON}
    gentle: dict[str, Any] = {"minLifetimeMinutes": 0, "maxUnavailable": 0}
    async with told(here) as story:
        await story.until(fleet(**made_with), lambda said: said.ready)
        noisy = story.working[0]
        pin: dict[str, Any] = {"id": noisy.machine_id, "reason": "noisy"}
        expired = fleet(**made_with, disruption=gentle, machines={"avoid": [pin | {"until": "2027-01-01"}]})
        avoided = fleet(**made_with, disruption=gentle, machines={"avoid": [pin]})
        await story.live(expired, 6)
        assert noisy.nonce in {i.nonce for i in story.working}
        begin = len(story.passes)
        await story.until(avoided, lambda said: said.ready and bool(story.went(noisy.machine_id)), hours=4)
        assert min(said.held for said in story.passes[begin:]) == 2
        assert story.went(noisy.machine_id)[0].reason is Reason.AVOIDED
        assert "avoid machine" in story.went(noisy.machine_id)[0].detail
        assert noisy.machine_id not in {i.machine_id for i in story.working}


async def test_a_floor_that_nothing_reaches_is_given_up(tmp_path):
    """After some machines far below the floor no more are rented, it is said why, and a lower floor resumes."""
    here = set_up(tmp_path, machines(ids(50, 75, 60)))
    made_with: dict[str, Any] = {"target": {"instances": 3}, "budget": 3, "benchmark": JSON}
    wanted, lower = fleet(**made_with, shapes=floor(110)), fleet(**made_with, shapes=floor(50))
    async with told(here) as story:
        await story.until(
            wanted, lambda said: any(c.reason is Reason.FLOOR_OUT_OF_REACH for c in said.conditions), hours=24
        )
        await story.live(wanted, 24)
        ended = here.creates
        await story.live(wanted, 48)
        assert here.creates == ended <= 12
        ready = story.condition("Ready")
        assert ready.reason is Reason.FLOOR_OUT_OF_REACH
        assert "minRate of 110" in ready.message
        await story.until(lower, lambda said: said.ready and said.held == 3, hours=24)


async def test_a_challenger_waits_for_room_in_the_budget(tmp_path):
    """Where the budget has no room for a successor none is rented, and what is doubted works on until there is."""
    so_so, good = ids(60, 61.5, 2), ids(68, 75, 4)
    here = set_up(tmp_path, machines(so_so, 0.3) + machines(good, 0.4))
    made_with: dict[str, Any] = {
        "target": {"instances": 2},
        "shapes": floor(58),
        "benchmark": JSON,
        "disruption": {"minLifetimeMinutes": 0, "maxUnavailable": 0},
        "judgement": {"replaceBelow": 0.97, "acceptAbove": 0.99},
    }
    tight, ample = fleet(**made_with, budget=0.9), fleet(**made_with, budget=1.3)
    async with told(here) as story:
        await story.until(tight, lambda said: said.held == 2)
        await story.live(tight, 24)
        assert here.creates == 2
        assert here.emulator.peak_committed_per_hour <= 0.9
        assert any(i.decision is Decision.CHALLENGED for i in story.ready.instances)
        assert story.condition("BudgetAvailable").status == "False"
        await story.until(ample, lambda _: here.creates > 2, hours=24)
        await story.live(ample, 48)
        assert here.emulator.peak_committed_per_hour <= 1.3
        assert any(gone.reason is Reason.BELOW_MIN_RATE for number in so_so for gone in story.went(number))
