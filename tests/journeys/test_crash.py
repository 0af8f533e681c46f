import asyncio
import contextlib
from pathlib import Path

import httpx
import pytest

from controller.ledger.sqlite import Ledger
from controller.model.instance import Instance
from tests.journeys.stage import converge, fleet, stage

pytestmark = pytest.mark.looptime


class Dead(BaseException):
    """The process has been killed: whatever it does from now on happens no more."""


class Fuse:
    """Kills at the nth moment, and everything after it."""

    def __init__(self, nth: int) -> None:
        self.left = nth

    def burn(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise Dead

    @property
    def burnt(self) -> bool:
        return self.left <= 0


def mortal_ledger(fuse: Fuse) -> type[Ledger]:
    """A ledger that dies before and after each write of an instance."""

    class Mortal(Ledger):
        def put(self, instance: Instance) -> None:
            fuse.burn()
            super().put(instance)
            fuse.burn()

    return Mortal


class MortalWire(httpx.ASGITransport):
    """A wire that dies before a changing call leaves, and after its answer has come."""

    fuse: Fuse

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "GET" or "bundles" in request.url.path:
            return await super().handle_async_request(request)
        self.fuse.burn()
        answer = await super().handle_async_request(request)
        self.fuse.burn()
        return answer


async def die_at(folder: Path, moment: int, *, tear_down: bool) -> bool:
    """Kill a controller at its nth moment and start another on its ledger; whether there was such a moment."""
    here = stage(folder, seed=5)
    wanted = fleet(target="instances: 2", budget=0.9)
    if tear_down:
        async with here.controller() as made:
            await converge(made.loop, wanted)
    fuse = Fuse(moment)
    wire = MortalWire(app=here.emulator.app)
    wire.fuse = fuse
    with contextlib.suppress(Dead):
        async with here.controller(open_ledger=mortal_ledger(fuse).open, transport=wire) as made:
            if tear_down:
                made.ledger.set_deleting("provers", deleting=True)
                await made.loop.keep(lambda: (), until=lambda _: not made.ledger.deleting())
            else:
                async with asyncio.timeout(20_000):
                    await made.loop.keep(lambda: (wanted,), until=lambda said: fuse.burnt or said[0].ready)
    async with here.controller() as made:
        if tear_down:
            async with asyncio.timeout(20_000):
                await made.loop.keep(
                    lambda: (), until=lambda _: not made.ledger.instances() and not made.ledger.deleting()
                )
        else:
            await converge(made.loop, wanted)
            assert {i.instance_id for i in made.ledger.instances()} == set(here.emulator.alive)
    assert len(here.emulator.alive) == (0 if tear_down else 2)
    assert len(here.emulator.rentals()) == 2, "a second instance was rented for one that was not lost"
    assert here.emulator.peak_committed_per_hour <= 0.9
    await here.emulator.close()
    return fuse.burnt


@pytest.mark.parametrize("tear_down", [False, True], ids=["apply", "destroy"])
async def test_killed_at_any_moment_it_goes_on_where_it_was(tmp_path, tear_down):
    """Killed before or after any write or changing call, the next has the same fleet: none twice, none lost."""
    moment = 1
    (tmp_path / "1").mkdir()
    while await die_at(tmp_path / str(moment), moment, tear_down=tear_down):
        moment += 1
        (tmp_path / str(moment)).mkdir()
    assert moment > (20 if not tear_down else 6)
