"""Calls are spaced as vast.ai wants them, and the urgent ones go first."""

import asyncio

import pytest

from controller.vast import calls
from controller.vast.calls import Call
from controller.vast.pace import SLACK_S, Pace

pytestmark = pytest.mark.looptime


async def times(pace: Pace, *wanted: Call) -> list[tuple[str, float]]:
    """Ask for all turns at once; when each came, in the order they came."""
    loop = asyncio.get_running_loop()
    start, came = loop.time(), []

    async def one(call: Call) -> None:
        await pace.turn(call)
        came.append((call.name, round(loop.time() - start, 3)))

    async with asyncio.TaskGroup() as group:
        for call in wanted:
            group.create_task(one(call))
    return came


@pytest.mark.parametrize("call", [calls.CREATE, calls.LIST, calls.GET, calls.DESTROY, calls.LABEL])
async def test_spaces_one_endpoint(call, clock):
    """Two calls of one endpoint are its interval apart, and a little more; the first waits for nothing."""
    gap = call.interval + SLACK_S
    came = await times(Pace(clock), call, call, call)
    assert [at for _, at in came] == pytest.approx([0, gap, 2 * gap], abs=0.01)


async def test_a_burst_is_paid_back(clock):
    """Searches may follow each other at once up to the burst; no span of a burst's intervals ever holds more."""
    span = calls.SEARCH.burst * calls.SEARCH.interval
    came = [at for _, at in await times(Pace(clock), *[calls.SEARCH] * (3 * calls.SEARCH.burst))]
    assert came[calls.SEARCH.burst - 1] < 1.0
    for first, after in zip(came, came[calls.SEARCH.burst :], strict=False):
        assert after - first >= span


async def test_urgent_first(clock):
    """When all wait at once, a destroy goes first, then the listing, then the rest, and a create last."""
    pace = Pace(clock, shared=0.5)
    await pace.turn(calls.GET)
    came = await times(pace, calls.CREATE, calls.LABEL, calls.LIST, calls.DESTROY)
    assert [name for name, _ in came] == ["destroy", "list", "label", "create"]
    assert [at for _, at in came] == pytest.approx([0.5, 1.0, 1.5, 2.0], abs=0.01)


async def test_urgent_overtakes_a_waiting_one(clock):
    """A destroy that arrives while a create waits for the shared turn is served before it."""
    pace, loop = Pace(clock, shared=1.0), asyncio.get_running_loop()
    await pace.turn(calls.GET)
    came: list[str] = []

    async def turn(call: Call) -> None:
        await pace.turn(call)
        came.append(call.name)

    async with asyncio.TaskGroup() as group:
        group.create_task(turn(calls.CREATE))
        await clock.sleep(0.5)
        group.create_task(turn(calls.DESTROY))
    assert came == ["destroy", "create"]
    assert loop.time() == pytest.approx(2.0, abs=0.01)


async def test_a_slow_endpoint_holds_up_no_other(clock):
    """Fifty destroys in a row leave listings their own pace."""
    came = await times(Pace(clock), *[calls.DESTROY] * 50, *[calls.LIST] * 10)
    last = dict(came)
    assert last["list"] < 15
    assert last["destroy"] == pytest.approx(49 * 3.1, abs=1)


async def test_a_waiter_that_gives_up_is_not_missed(clock):
    """A call cancelled while it waits, at the head of the queue or behind, holds up nobody."""
    pace = Pace(clock, shared=1.0)
    await pace.turn(calls.GET)
    head, behind = (asyncio.ensure_future(pace.turn(call)) for call in (calls.DESTROY, calls.LIST))
    last = asyncio.ensure_future(pace.turn(calls.LABEL))
    await clock.sleep(0.5)
    head.cancel()
    behind.cancel()
    await last
    assert asyncio.get_running_loop().time() == pytest.approx(1.0, abs=0.01)


async def test_defer_holds_an_endpoint_back(clock):
    """After a 429 the whole endpoint waits, not only the call that was turned away."""
    pace = Pace(clock)
    pace.defer(calls.LIST, 30)
    came = dict(await times(pace, calls.LIST, calls.GET))
    assert came == pytest.approx({"get": 0, "list": 30}, abs=0.01)
