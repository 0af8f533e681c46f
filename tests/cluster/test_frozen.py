"""Two replicas, of which the one that leads is frozen past its lease, and thawed."""

import asyncio
import signal
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.cluster.books import Books
from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster
from tests.cluster.proxy import Call, Proxy, Said, nothing, proxy
from tests.cluster.replicas import Replica, Replicas, replicas

SPEED = 60.0
TARGET = 2
BUDGET = 0.8  # USD an hour: two of the market's cheapest, and no third
WATCHED = ("fleets", "instances")
SECONDS = 2  # that the lease lasts


def harm(vast: Proxy) -> list[str]:
    """The calls so far that rent, end or start something."""
    return [f"{call.method} {call.path}" for call in vast.calls if call.method in {"PUT", "DELETE"}]


async def behind_its_own(here: Replicas, stack: AsyncExitStack) -> Replica:
    """A second replica, whose calls are told apart by proxies of its own."""
    api = await stack.enter_async_context(proxy(here.api.server, here.api.context))
    vast = await stack.enter_async_context(proxy(here.vast.server))
    return here.start(api=api, vast=vast)


async def freeze(replica: Replica, at: Proxy, part: str) -> Call:
    """Freeze a replica when a call was carried out, and is not answered yet; that call."""
    frozen: asyncio.Future[Call] = asyncio.get_running_loop().create_future()

    async def after(call: Call) -> Said | None:
        if not frozen.done() and part in f"{call.method} {call.path}":
            replica.signal(signal.SIGSTOP)
            frozen.set_result(call)
        return None

    at.after = after
    async with asyncio.timeout(60):
        call = await frozen
    at.after = nothing
    return call


POINTS = {
    "before a create": ("api", "POST /apis/vastfleet.io/v1alpha1/namespaces/", "Launching"),
    "between two creates": ("vast", "PUT /api/v0/asks/", "Launching"),
    "before a destroy": ("vast", "GET /api/v0/instances/4", "Gone"),
    "after a destroy": ("vast", "DELETE /api/v0/instances/", "Gone"),
    "after a search": ("vast", "POST /api/v0/bundles/", "Launching"),
}


@pytest.mark.parametrize("point", POINTS)
async def test_a_leader_that_was_frozen_does_nothing_more(kinds: Cluster, namespace: str, tmp_path: Path, point: str):
    """One acts while the other stands by. Frozen past its lease and thawed, the first does nothing and ends.

    It rents and ends nothing any more, and its exit code is 1; the other has gone on, and nothing is doubled or left.
    """
    which, part, _ = POINTS[point]
    async with replicas(kinds, namespace, tmp_path, speed=SPEED, seconds=SECONDS) as here, AsyncExitStack() as stack:
        first = here.start()
        await first.api.until(lambda: first.api.watches == len(WATCHED))
        second = await behind_its_own(here, stack)
        books = Books(here.stage, TARGET, BUDGET, [first.api, second.api], [first.vast, second.vast])
        books.watch()
        ending = "destroy" in point
        if not ending:
            await asyncio.gather(freeze(first, getattr(first, which), part), apply(here))
        else:
            await apply(here)
            await here.stage.ready()
            delete = here.stage.kubectl("delete", "fleet", "provers", "--wait=false")
            await asyncio.gather(freeze(first, getattr(first, which), part), delete)
        assert not second.vast.calls, "it acted while it stood by"
        await second.vast.until(lambda: bool(harm(second.vast)) or (ending and not here.stage.alive))
        before = harm(first.vast)
        first.signal(signal.SIGCONT)
        assert await first.ended() == 1
        assert harm(first.vast) == before
        if not ending:
            await here.stage.ready()
            assert len(here.stage.alive) == TARGET
        await here.stage.kubectl("delete", "fleet", "provers", "--ignore-not-found", "--timeout=60s")
        assert not here.stage.alive
        assert not books.wrongs


async def apply(here: Replicas) -> None:
    """Ask for the Fleet."""
    await here.stage.apply(manifest(count=TARGET, budget=BUDGET))
