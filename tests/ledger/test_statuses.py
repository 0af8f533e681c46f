"""What is written to objects, and what is not because it is there already."""

from collections.abc import Mapping
from typing import Any, cast

from controller.ledger.api import Api
from controller.ledger.statuses import Statuses


class Server:
    """An API server that takes every patch. `patches`: those that it took."""

    def __init__(self) -> None:
        self.patches: list[Mapping[str, Any]] = []

    async def patch(self, _path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.patches.append(body)
        return body


async def test_what_was_there_at_the_start_is_not_written_again():
    """A status that the process before wrote is known; what is not there needs no taking out, and 2.0 is 2."""
    server = Server()
    statuses = Statuses(cast("Api", server))
    statuses.know("a", {"held": 2, "conditions": []})
    await statuses.write("a", {"held": 2.0, "conditions": [], "told": None})
    assert not server.patches
    await statuses.write("a", {"held": 3, "conditions": [], "told": None})
    assert server.patches == [{"status": {"held": 3, "conditions": [], "told": None}}]


async def test_what_was_wiped_is_written_again():
    """A status that is not there any more is written though it is the same as before."""
    server = Server()
    statuses = Statuses(cast("Api", server))
    statuses.know("a", {"held": 2})
    assert statuses.forget("a")
    await statuses.write("a", {"held": 2})
    assert len(server.patches) == 1
