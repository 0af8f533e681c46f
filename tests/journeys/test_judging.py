"""What evidence does to a fleet: whole stories of falling, doubting, replacing, and of waiting with it."""

from typing import Any

import pytest

from controller.model.instance import Decision
from controller.model.reasons import Reason
from controller.plan.windows import open_now
from tests.journeys.evidence import DAY, HOUR, JSON, floor, ids, machines, set_up, told
from tests.plan.conftest import fleet

pytestmark = pytest.mark.looptime

WINDOW = {"cron": "0 3 * * *", "durationMinutes": 180}


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
