"""An operator between which and the API server something is wrong: nothing is doubled, and all is told in the end."""

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.cluster.books import Books
from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster
from tests.cluster.proxy import Call, Said
from tests.cluster.replicas import Replicas, replicas

SPEED = 300.0
BUDGET = 1.05  # USD an hour: three of the market's cheapest, and no fourth
CODES = (409, 422, 500, 429)
MINUTES = 60.0  # emulated seconds in one


def refused(code: int, message: str) -> Said:
    """An answer as the API server gives it."""
    said = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": code}
    return Said(code, json.dumps(said).encode(), (("Content-Type", "application/json"), ("Retry-After", "1")))


def watched(here: Replicas, most: int) -> Books:
    """Books that are looked at from now on."""
    books = Books(here.stage, most, BUDGET, [here.api], [here.vast])
    books.watch()
    return books


async def pass_time(here: Replicas, minutes: float) -> None:
    """Let so many emulated minutes pass, as vast.ai and the operator count them."""
    await here.stage.emulator.world.clock.sleep(minutes * MINUTES)


async def ends(here: Replicas, books: Books, count: int) -> None:
    """It is Ready with so many, all of whose Instances say so; nothing is left when it is deleted."""
    await here.stage.ready()
    assert len(here.stage.alive) == count
    said = set[int]()
    for each in await here.stage.instances():
        body = await here.stage.until(
            "instance", each["metadata"]["name"], lambda body: "phase" in body.get("status", {})
        )
        said |= {body["status"].get("instanceId", 0)} if body["status"]["phase"] != "Gone" else set()
    assert said == set(here.stage.alive)
    await here.stage.kubectl("delete", "fleet", "provers", "--timeout=60s")
    assert not here.stage.alive
    assert not books.wrongs


@pytest.mark.parametrize("how", ["mute", "cut"])
async def test_a_dropped_watch_is_taken_up_again(kinds: Cluster, namespace: str, tmp_path: Path, how: str):
    """Watches that break off, or that tell nothing of two edits, are taken up; the last edit holds in the end."""
    async with replicas(kinds, namespace, tmp_path, speed=SPEED, seconds=5) as here:
        books = watched(here, 3)
        here.start()
        await here.stage.apply(manifest(count=1, budget=BUDGET))
        await here.stage.ready()
        here.api.mute = True
        await here.stage.apply(manifest(count=3, budget=BUDGET))
        await here.stage.apply(manifest(count=2, budget=BUDGET))
        await pass_time(here, 10)
        assert len(here.stage.alive) == 1
        here.api.mute = False
        if how == "cut":
            here.api.cut()
        await ends(here, books, 2)


async def test_a_status_that_is_turned_away_is_written_in_the_end(kinds: Cluster, namespace: str, tmp_path: Path):
    """Each status is turned away, in a way at a time, after its instance was rented: all is written once."""
    turned: Counter[str] = Counter()

    async def turn_away(call: Call) -> Said | None:
        if call.method != "PATCH" or "/instances/" not in call.path or not call.path.endswith("/status"):
            return None
        turned[call.path] += 1
        return refused(CODES[turned[call.path] - 1], "not now") if turned[call.path] <= len(CODES) else None

    async with replicas(kinds, namespace, tmp_path, speed=SPEED, seconds=5) as here:
        books = watched(here, 2)
        here.api.before = turn_away
        here.start()
        await here.stage.apply(manifest(count=2, budget=BUDGET))
        await ends(here, books, 2)
        assert len(here.stage.rentals) == 2
        assert len(turned) == 2
        assert min(turned.values()) > len(CODES)


async def test_nothing_is_rented_that_cannot_be_written_down(kinds: Cluster, namespace: str, tmp_path: Path):
    """While no Instance can be written nothing is rented, whatever else works; afterwards it is."""
    down = True

    async def turn_away(call: Call) -> Said | None:
        making = call.method == "POST" and call.path.endswith("/instances")
        return refused(503, "no storage") if down and making else None

    async with replicas(kinds, namespace, tmp_path, speed=SPEED, seconds=5) as here:
        books = watched(here, 2)
        here.api.before = turn_away
        here.start()
        await here.stage.apply(manifest(count=2, budget=BUDGET))
        await here.api.until(lambda: len(here.api.sent("POST", "/instances")) > 2)
        assert not here.stage.rentals
        down = False
        await ends(here, books, 2)


async def test_an_api_server_that_is_away_for_a_while(kinds: Cluster, namespace: str, tmp_path: Path):
    """Nothing is rented while the API server is away, what works goes on, and all is written when it is back.

    The operator cannot know whether it leads, so that it ends and begins anew, until it can.
    """
    async with replicas(kinds, namespace, tmp_path, speed=SPEED, seconds=2) as here:
        books = watched(here, 3)
        first = here.start()
        await here.stage.apply(manifest(count=2, budget=BUDGET))
        await here.stage.ready()
        before = here.stage.alive
        here.api.down = True
        await here.stage.apply(manifest(count=3, budget=BUDGET))
        assert await first.ended() == 1
        here.start()
        await pass_time(here, 10)
        assert here.stage.alive == before
        here.api.down = False
        await ends(here, books, 3)
