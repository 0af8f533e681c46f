import pytest

from controller.model.reasons import Reason
from tests.journeys.stage import Stage, converge, fleet, stage

pytestmark = pytest.mark.looptime


async def tear_down(here: Stage, name: str) -> int:
    """Destroy a fleet by its name alone; how many of its instances were proven gone."""
    async with here.controller() as made:
        made.ledger.set_deleting(name, deleting=True)
        await made.loop.keep(lambda: (), until=lambda _: not made.ledger.deleting())
        return sum(event.reason is Reason.TEARDOWN_VERIFIED for event in made.ledger.events())


async def test_fifty_are_torn_down_at_the_pace_that_vast_allows(tmp_path):
    """Fifty instances go, one destroy call each three seconds, and each is proven absent from two complete listings."""
    troubles = [
        {"kind": "linger", "probability": 0.5, "seconds": 40},
        {"kind": "resurrect", "probability": 0.1, "seconds": 20},
    ]
    here = stage(tmp_path, market={"offers": 900, "models": ["RTX 4090"]}, troubles=troubles)
    wanted = fleet(target="instances: 50", budget=60, ram=0, min_rate=20)
    foreign = await here.rent_foreign("alice")
    async with here.controller() as made:
        await made.loop.once((wanted,))
        assert len(made.ledger.instances()) == 50
    assert await tear_down(here, "provers") == 50
    assert list(here.emulator.alive) == foreign
    await here.emulator.close()


async def test_a_lost_ledger_does_not_save_a_fleet_from_its_end(tmp_path):
    """A fleet is destroyed by its name alone, even with an empty ledger: its labels tell what is its own."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet(target="instances: 3"), fleet(name="other", target="instances: 1"))
    lost = Stage(emulator=here.emulator, ledger_path=tmp_path / "new" / "ledger.db")
    assert await tear_down(lost, "provers") == 3
    assert len(here.emulator.alive) == 1
    await here.emulator.close()
