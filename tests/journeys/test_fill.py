import asyncio

import pytest

from tests.journeys.stage import converge, fleet, stage

pytestmark = pytest.mark.looptime


async def test_a_manifest_becomes_a_fleet(tmp_path):
    """A manifest of four becomes four measured instances within its budget, and no more."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet())
        assert len(here.emulator.alive) == 4
        assert here.emulator.peak_committed_per_hour <= 4.0
        for event in made.ledger.events():
            print(event)
    await here.emulator.close()
