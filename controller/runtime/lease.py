"""Which replica of the operator acts: a Lease, held by one, with a fence that a stale leader cannot spend through.

A leader is one only until so long after it *asked* for the last renewal that was granted, by a clock that runs on while
the process or the machine stands still. The others take over later than that, by their own clocks, so that no two
clocks need agree. What spends money asks `check` right before it is sent.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from controller.ledger.api import Api, Conflict
from controller.ledger.values import rfc3339
from controller.model.faults import Fault, Gone, Refused
from controller.model.reasons import Reason

log = logging.getLogger(__name__)

CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)  # goes on while a machine sleeps


def _elapsed() -> float:
    return time.clock_gettime(CLOCK)


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """For how long a Lease is held, in seconds of the wall's clock."""

    duration: float = 30.0  # others take over when it was not renewed for so long
    renew: float = 5.0  # how often the leader renews it, and the others look
    margin: float = 5.0  # so much earlier than others may act, the leader acts no more

    @classmethod
    def lasting(cls, seconds: int) -> "Term":
        """One of so many seconds, the rest in proportion."""
        return cls(duration=float(seconds), renew=seconds / 6, margin=seconds / 6)


@dataclass(slots=True)
class _Seen:
    """What a Lease looked like, and since when."""

    version: str = ""
    since: float = field(default=0.0)


class Lease:
    """One Lease object.

    Args:
        api: the server.
        namespace: where it is.
        name: what it is called.
        identity: who this is; no two replicas have the same.
        now: unix seconds, for what is written for people to read.
    """

    def __init__(
        self, api: Api, *, namespace: str, name: str, identity: str, now: Callable[[], float], term: Term | None = None
    ) -> None:
        self._api = api
        self._base = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.path = f"{self._base}/{name}"
        self._name = name
        self._identity = identity
        self._now = now
        self._term = term or Term()
        self._until = float("-inf")
        self._seen = _Seen()
        self._holder = ""

    @property
    def held(self) -> bool:
        """Whether this replica may act now."""
        return _elapsed() < self._until

    def check(self) -> None:
        """Raises Refused if this replica may not act now."""
        if not self.held:
            raise Refused(Reason.NOT_LEADING, f"{self._identity} does not hold the lease {self._name}: nothing is done")

    async def acquire(self) -> None:
        """Return when it is held."""
        while not await self._try():  # noqa: ASYNC110 - what is waited for happens elsewhere
            await asyncio.sleep(self._term.renew)  # noqa: TID251 - the lease is held by the wall's clock

    async def keep(self) -> None:
        """Renew it until it is lost, and return then."""
        while True:
            await asyncio.sleep(self._term.renew)  # noqa: TID251 - the lease is held by the wall's clock
            if not self.held or (not await self._try() and not self.held):
                log.error("the lease %s is lost: %s holds it", self._name, self._holder or "nobody")
                return

    async def release(self) -> None:
        """Let another take it at once."""
        if not self.held:
            return
        self._until = float("-inf")
        try:
            body = await self._api.get(self.path)
            if body is not None and body["spec"].get("holderIdentity") == self._identity:
                body["spec"]["holderIdentity"] = ""
                await self._api.replace(self.path, body)
        except Fault as fault:
            log.warning("the lease %s could not be given back: %s", self._name, fault)

    async def _try(self) -> bool:
        """Renew it, or take it if it is free; whether it is held now."""
        asked = _elapsed()
        try:
            body = await self._api.get(self.path)
            if body is None:
                await self._api.create(self._base, self._claim({"metadata": {"name": self._name}}, new=True))
            elif self._ours(body):
                await self._api.replace(self.path, self._claim(body, new=False))
            elif self._free(body):
                await self._api.replace(self.path, self._claim(body, new=True))
            else:
                return False
        except (Conflict, Gone):
            return False
        except Fault as fault:
            log.warning("the lease %s could not be renewed: %s", self._name, fault)
            return False
        self._until, self._holder = asked + self._term.duration - self._term.margin, self._identity
        return True

    def _ours(self, body: dict[str, Any]) -> bool:
        return self.held and body["spec"].get("holderIdentity") == self._identity

    def _free(self, body: dict[str, Any]) -> bool:
        """Whether nobody holds it, or its holder has not renewed it for as long as was watched from here."""
        self._holder = body["spec"].get("holderIdentity") or ""
        version = body["metadata"]["resourceVersion"]
        if version != self._seen.version:
            self._seen = _Seen(version, _elapsed())
        lasts = float(body["spec"].get("leaseDurationSeconds") or self._term.duration)
        return not self._holder or _elapsed() - self._seen.since >= lasts

    def _claim(self, body: dict[str, Any], *, new: bool) -> dict[str, Any]:
        at = rfc3339(self._now())
        spec = dict(body.get("spec") or {})
        spec |= {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, round(self._term.duration)),
            "renewTime": at if "." in at else at.replace("Z", ".000000Z"),
        }
        if new:
            spec |= {"acquireTime": spec["renewTime"], "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **body, "spec": spec}
