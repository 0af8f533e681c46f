"""What evidence does not do to a fleet: whole stories of suspecting something else than its machines."""

from typing import Any

import pytest

from controller.model.reasons import Reason
from tests.journeys.evidence import DAY, HOUR, JSON, floor, ids, machines, set_up, told
from tests.journeys.stage import ORIGIN
from tests.plan.conftest import fleet

pytestmark = pytest.mark.looptime


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
