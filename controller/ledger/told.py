"""What happened, as Kubernetes events."""

import hashlib
import logging
from typing import Any

from controller.ledger.api import Api
from controller.ledger.objects import place_of
from controller.ledger.values import rfc3339
from controller.model.faults import Fault, Retry
from controller.model.fleet import API_VERSION
from controller.model.instance import Event

log = logging.getLogger(__name__)

WAITING = 1000  # events not told yet; more are not told at all
MESSAGE = 1024  # characters that the API server takes


class Events:
    """Events that are told once; one that cannot be told is not tried again.

    Args:
        api: the server.
        owner: who tells.
    """

    def __init__(self, api: Api, *, owner: str) -> None:
        self._api = api
        self._owner = owner
        self._waiting: dict[str, dict[str, Any]] = {}

    def add(self, event: Event, *, uid: str | None) -> str | None:
        """Note an event about a Fleet of that uid; the name to tell it by, None if it is not to be told."""
        body = event_object(event, uid=uid, owner=self._owner)
        if body is None or len(self._waiting) >= WAITING:
            return None
        name = str(body["metadata"]["name"])
        self._waiting[name] = body
        return name

    async def tell(self, name: str) -> None:
        """Tell it. If that is cut short it waits on: what is told already is told once all the same."""
        body = self._waiting.get(name)
        if body is None:
            return
        try:
            await self._api.create(f"/api/v1/namespaces/{body['metadata']['namespace']}/events", body)
        except Retry as fault:
            log.warning("an event could not be told: %s", fault)
        except Fault as fault:  # its namespace is being taken down, or it is told already
            log.debug("an event was not told: %s", fault)
        self._waiting.pop(name, None)


def event_object(event: Event, *, uid: str | None, owner: str) -> dict[str, Any] | None:
    """An event about a Fleet; None if it is about none in the cluster. What it says of an instance names that."""
    namespace, name = place_of(event.fleet)
    if not name:
        return None
    about = "" if event.about == event.fleet else f"{event.about}: "
    digest = hashlib.sha256(f"{event.at}{event.fleet}{event.about}{event.reason}{event.message}".encode()).hexdigest()
    at = rfc3339(int(event.at))
    fleet = {"apiVersion": API_VERSION, "kind": "Fleet", "namespace": namespace, "name": name}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{digest[:16]}", "namespace": namespace},
        "involvedObject": fleet | ({"uid": uid} if uid is not None else {}),
        "type": event.kind,
        "reason": str(event.reason),
        "message": f"{about}{event.message}"[:MESSAGE],
        "firstTimestamp": at,
        "lastTimestamp": at,
        "count": 1,
        "source": {"component": f"vastfleet/{owner}"},
        "reportingComponent": "vastfleet.io/operator",
        "reportingInstance": owner,
    }
