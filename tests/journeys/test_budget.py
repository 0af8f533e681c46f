import asyncio
import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from controller.model.money import micro
from controller.model.reasons import Reason
from controller.model.status import FleetStatus
from tests.journeys.stage import converge, fleet, stage

pytestmark = pytest.mark.looptime


def market(folder: Path, *prices: float, storage: float = 0.0) -> dict[str, Any]:
    """A market of one RTX 4090 a machine at these prices, with storage at so many dollars a GB and month."""
    common = {"gpu_name": "RTX 4090", "num_gpus": 1, "storage_cost": storage, "cpu_ram": 257000, "disk_space": 2000}
    common |= {"cpu_cores": 32, "cpu_cores_effective": 32, "gpu_frac": 1.0, "inet_down": 900}
    common |= {"verification": "verified", "reliability": 0.99}
    offers = [
        {"id": 900 + n, "machine_id": 100 + n, "dph_base": price, "dph_total": price, "rentable": True, **common}
        for n, price in enumerate(prices)
    ]
    file = folder / "listing.json"
    file.write_text(json.dumps({"offers": offers}))
    return {"listing": str(file)}


async def test_three_at_thirty_cents_fit_ninety(tmp_path):
    """A budget of 0.90 and offers at exactly 0.30 make three instances: money is not a float."""
    here = stage(tmp_path, market=market(tmp_path, 0.3, 0.3, 0.3, 0.3))
    async with here.controller() as made:
        await made.loop.once((fleet(target="instances: 4", budget=0.9),))
        assert sum(i.price for i in made.ledger.instances()) == micro(0.9)
    assert len(here.emulator.alive) == 3
    await here.emulator.close()


async def test_the_disk_counts(tmp_path):
    """An offer whose GPU fits the budget and whose disk does not is not rented, and the funnel says why."""
    here = stage(tmp_path, market=market(tmp_path, 0.39, storage=0.67))
    async with here.controller() as made:
        (said,) = await made.loop.once((fleet(target="instances: 1", budget=0.45, disk=250),))
        assert said.market.rejected == {"BudgetExhausted": 1}
    assert here.creates == 0
    await here.emulator.close()


async def test_a_price_rise_over_the_budget_is_told_and_answered(tmp_path):
    """When a running instance gets dearer than the budget bears, an event says so and one instance goes, not more."""
    rise = {"kind": "price-rise", "instance": 2, "after": 3000, "factor": 1.5, "pending": False}
    here = stage(tmp_path, market=market(tmp_path, 0.3, 0.3, 0.3), troubles=[rise])
    wanted = fleet(target="instances: 3", budget=1.0)
    async with here.controller() as made:
        await converge(made.loop, wanted)
        await made.loop.keep(
            lambda: (wanted,), until=lambda said: any("OverBudget" in str(e) for e in made.ledger.events())
        )
        await made.loop.keep(lambda: (wanted,), until=lambda said: not said[0].leaving)
        reasons = [event.reason for event in made.ledger.events()]
        assert reasons.count(Reason.PRICE_INCREASED) == 1
        assert reasons.count(Reason.OVER_BUDGET) == 1
        assert sum(i.price for i in made.ledger.instances()) <= micro(1.0)
        assert len(here.emulator.alive) == 2
    await here.emulator.close()


async def test_a_cut_budget_is_kept_at_once_and_does_not_flap(tmp_path):
    """A smaller budget gives instances up until it is kept, and rents none of them again."""
    here = stage(tmp_path, market=market(tmp_path, 0.3, 0.3, 0.3, 0.3))
    async with here.controller() as made:
        await converge(made.loop, fleet(target="instances: 4", budget=1.2))
        rented = here.creates
        smaller = fleet(target="instances: 4", budget=0.7)
        await made.loop.keep(lambda: (smaller,), until=lambda said: not said[0].leaving and said[0].held == 2)
        for _ in range(10):
            await made.loop.once((smaller,))
        assert len(here.emulator.alive) == 2
        assert here.creates == rented
    await here.emulator.close()


async def test_a_lost_create_keeps_its_share_of_the_budget(tmp_path):
    """While nobody knows whether an offer was rented, its price stays reserved: nothing else is rented with it."""
    lost = {"kind": "error", "on": "create", "nth": 1, "status": 502, "body": {}}  # no answer, and not rented either
    here = stage(tmp_path, market=market(tmp_path, 0.3, 0.3), troubles=[lost])
    wanted = fleet(target="instances: 1", budget=0.5)
    async with here.controller() as made:
        await made.loop.once((wanted,))
        assert here.creates == 1
        await here.emulator.world.clock.sleep(60)
        await made.loop.once((wanted,))
        assert here.creates == 1
        await converge(made.loop, wanted)
        assert any(event.reason == "CreateUnconfirmed" for event in made.ledger.events())
    assert (here.creates, len(here.emulator.alive)) == (2, 1)
    await here.emulator.close()


async def test_without_credit_nothing_is_destroyed(tmp_path):
    """When the credit runs out everything stops by itself: it is kept, and started again once there is money."""
    here = stage(tmp_path, market=market(tmp_path, 0.3, 0.3), troubles=[{"kind": "credit-out", "after": 8000}])
    wanted = fleet(target="instances: 2", budget=1.0)
    async with here.controller() as made:
        await converge(made.loop, wanted)
        kept = here.emulator.alive
        await made.loop.keep(lambda: (wanted,), until=lambda said: not said[0].ready)
        await here.emulator.world.clock.sleep(3600)
        for _ in range(5):
            await made.loop.once((wanted,))
            await here.emulator.world.clock.sleep(120)
        assert here.emulator.alive == kept
        here.emulator.top_up(50)
        await here.emulator.world.clock.sleep(3700)
        await made.loop.keep(lambda: (wanted,), until=lambda said: said[0].ready)
        assert here.emulator.alive == kept
    await here.emulator.close()


async def test_a_host_that_never_stops_failing_does_not_drain_the_purse(tmp_path):
    """When every image fails the same way, buying stops after a few machines and waits longer each time."""
    here = stage(tmp_path, troubles=[{"kind": "bad-image"}])
    wanted = fleet(target="instances: 4", image="example/no-such:1")
    async with here.controller() as made:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(24 * 3600):
                await made.loop.keep(lambda: (wanted,), until=lambda said: said[0].ready)
        said = FleetStatus.model_validate_json(made.ledger.statuses()["provers"])
        ready = said.condition("Ready")
        assert ready is not None
        assert ready.reason == "ImageFault"
    assert here.creates <= 12
    await here.emulator.close()
