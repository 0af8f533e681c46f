import pytest

from tests.journeys.stage import CUZK, converge, fleet, stage

pytestmark = pytest.mark.looptime


async def test_a_manifest_becomes_a_fleet(tmp_path):
    """A manifest of four becomes four measured instances within its budget, and no more."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet(benchmark=CUZK))
        assert len(here.emulator.alive) == here.creates == 4
        assert here.emulator.peak_committed_per_hour <= 4.0
        assert {run.reason for run in made.ledger.runs()} == {"Measured"}
    await here.emulator.close()


async def test_a_rate_is_reached_by_the_cheapest_set(tmp_path):
    """A target of rate rents as many as it takes, and stops there."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet(target="rate: 200"))
        said = made.ledger.statuses()["provers"]
        rate = sum(run.rate or 0 for run in made.ledger.runs())
        assert '"ready"' not in said
        assert rate >= 190
        assert len(here.emulator.alive) <= 6
    await here.emulator.close()


async def test_two_fleets_share_one_listing(tmp_path):
    """Two fleets are held by one loop, on one listing a pass, and neither takes the other's machines."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet(name="one"), fleet(name="two", target="instances: 2"))
        listings = here.emulator.calls["GET /api/v1/instances/"]
        await made.loop.once((fleet(name="one"), fleet(name="two", target="instances: 2")))
        assert here.emulator.calls["GET /api/v1/instances/"] == listings + 1
        machines = [i.machine_id for i in made.ledger.instances()]
        assert len(machines) == len(set(machines)) == 6
    await here.emulator.close()
