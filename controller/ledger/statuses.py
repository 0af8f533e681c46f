"""The statuses of objects, written where they differ from what was written last, and the finalizers that hold them."""

from collections.abc import Mapping
from typing import Any

from controller.ledger.api import Api
from controller.ledger.objects import FINALIZER
from controller.ledger.values import unix

COST_EVERY = 3600.0  # seconds: a new cost alone is not written sooner


class Statuses:
    """Objects by their paths.

    Args:
        api: the server.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._written: dict[str, Mapping[str, Any]] = {}

    async def write(self, path: str, status: Mapping[str, Any]) -> None:
        """Merge a status into an object's, None taking a field out. Raises Gone if there is no such object."""
        before = self._written.get(path)
        if before is not None and not _differs(before, status):
            return
        await self._api.patch(f"{path}/status", {"status": status})
        self._written[path] = status

    def know(self, path: str, status: Mapping[str, Any]) -> None:
        """Take it that this was written there, by whoever came before."""
        self._written[path] = status

    def forget(self, path: str) -> bool:
        """Take it that nothing was ever written there; whether something was."""
        return self._written.pop(path, None) is not None

    async def bind(self, path: str) -> None:
        """Put our finalizer on an object, unless it is going or gone. Raises Conflict if it was changed meanwhile."""
        body = await self._api.get(path)
        if body is None or body["metadata"].get("deletionTimestamp"):
            return
        meta = body["metadata"]
        rest = meta.get("finalizers") or []
        if FINALIZER not in rest:
            after = {"resourceVersion": meta["resourceVersion"], "finalizers": [*rest, FINALIZER]}
            await self._api.patch(path, {"metadata": after})

    async def free(self, path: str) -> None:
        """Take our finalizer off an object, and no other; nothing happens if there is none."""
        body = await self._api.get(path)
        if body is None or FINALIZER not in body["metadata"].get("finalizers", ()):
            return
        meta = body["metadata"]
        rest = [each for each in meta["finalizers"] if each != FINALIZER]
        await self._api.patch(path, {"metadata": {"resourceVersion": meta["resourceVersion"], "finalizers": rest}})


def _differs(before: Mapping[str, Any], after: Mapping[str, Any]) -> bool:
    """Whether a status is worth a write: what an instance has cost alone is, once an hour."""
    before, after = ({name: value for name, value in each.items() if value is not None} for each in (before, after))
    first, last = before.get("costUntil"), after.get("costUntil")
    if first is not None and last is not None and unix(last) - unix(first) < COST_EVERY:
        return {**before, "cost": 0, "costUntil": 0} != {**after, "cost": 0, "costUntil": 0}
    return before != after
