"""How evidence is come by: whole stories of measuring side by side, narrower, and without disturbing."""

import itertools
from typing import Any

import pytest

from controller.model.instance import RunKind
from controller.model.reasons import Reason
from tests.journeys.evidence import DAEMON, HOUR, JSON, floor, ids, machines, set_up, told
from tests.journeys.stage import ORIGIN
from tests.plan.conftest import fleet

pytestmark = pytest.mark.looptime


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
