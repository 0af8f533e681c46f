import asyncio

import pytest

from controller.runtime.clock import Clock


def test_a_clock_runs_as_fast_as_it_says_from_its_origin():
    """At its origin a clock shows the wall's time; a minute later at speed 60 it shows an hour later."""
    wall = [1000.0]
    clock = Clock(speed=60, origin=1000.0, wall=lambda: wall[0])
    assert clock.now() == 1000
    wall[0] += 60
    assert clock.now() == 1000 + 3600


def test_two_processes_agree_on_the_time():
    """Clocks with the same speed and origin show the same, whenever they were made."""
    assert Clock.parse("30@500").__dict__ | {"_wall": None} == Clock(speed=30, origin=500).__dict__ | {"_wall": None}
    assert Clock.parse("2").now() == pytest.approx(Clock(speed=2).now(), abs=60)


@pytest.mark.looptime
async def test_waits_are_in_its_own_seconds():
    """An hour's wait at speed 60 takes a minute of the wall."""
    clock = Clock(speed=60)
    loop = asyncio.get_running_loop()
    start = loop.time()
    await clock.sleep(3600)
    assert loop.time() - start == pytest.approx(60)
