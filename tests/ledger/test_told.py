"""Events are told once, though the telling may be cut short."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from controller.ledger.api import Api
from controller.ledger.told import Events
from controller.model.instance import Event
from controller.model.reasons import Reason

SAID = Event(at=1e9, fleet="a.provers", about="a.provers", kind="Normal", reason=Reason.TARGET_REACHED, message="ready")


class Server:
    """An API server that answers when it is let. `made`: what it was asked to make."""

    def __init__(self) -> None:
        self.made: list[Mapping[str, Any]] = []
        self.asked = asyncio.Event()
        self.answers = asyncio.Event()

    async def create(self, _path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.made.append(body)
        self.asked.set()
        await self.answers.wait()
        return body


async def test_an_event_whose_telling_is_cut_short_is_told_again():
    """An operator that ends while it tells of something tells it to the end, under the same name, and then no more."""
    server = Server()
    events = Events(cast("Api", server), owner="tests")
    name = events.add(SAID, uid="1")
    assert name is not None
    cut = asyncio.create_task(events.tell(name))
    await server.asked.wait()
    cut.cancel()
    await asyncio.wait({cut})
    server.answers.set()
    await events.tell(name)
    await events.tell(name)
    assert [body["metadata"]["name"] for body in server.made] == [name, name]
