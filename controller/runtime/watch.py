"""What happens to Fleets and Instances in the cluster, as kopf tells it.

kopf runs in a thread of its own: it takes every task of its loop for its own, and ends them with itself. It is used for
what it does best, watching, and asked for nothing else: no handler state, no finalizers, no patches.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import kopf

from controller.model.kinds import GROUP, VERSION

log = logging.getLogger(__name__)

KINDS = {"fleets": "Fleet", "instances": "Instance"}


@dataclass(frozen=True, slots=True)
class Seen:
    """An object as it is now. `gone`: it is no more."""

    kind: str
    body: Mapping[str, Any]
    gone: bool


def login(**_: object) -> kopf.ConnectionInfo:
    """Where the server is and who asks: a service account's, or else KUBECONFIG's. Raises kopf.LoginError."""
    settings = kopf.OperatorSettings()
    found = kopf.login_with_service_account(settings=settings) or kopf.login_with_kubeconfig(settings=settings)
    if found is None:
        raise kopf.LoginError("neither a service account nor a kubeconfig is here; set KUBECONFIG")
    return found


class Watch:
    """A thread that watches.

    Args:
        namespaces: where to watch; none: everywhere.
        seen: told of each object, in the loop that `start` is called in.
        ended: called there when nothing is watched any more.
    """

    def __init__(self, *, namespaces: Sequence[str], seen: Callable[[Seen], None], ended: Callable[[], None]) -> None:
        self._namespaces = tuple(namespaces)
        self._seen = seen
        self._ended = ended
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin. Every object is told once as it is, and whenever it changes."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    async def close(self) -> None:
        """End, and wait for the end."""
        self._stop.set()
        if self._thread.is_alive():
            await asyncio.to_thread(self._thread.join, 10.0)

    def _run(self) -> None:
        try:
            asyncio.run(self._watch())
        except Exception:
            log.exception("watching the cluster ended")
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._ended)

    async def _watch(self) -> None:
        try:
            await kopf.operator(
                registry=self._registry(),
                settings=_settings(),
                standalone=True,
                clusterwide=not self._namespaces,
                namespaces=self._namespaces,
                stop_flag=self._stop,
            )
        finally:
            self._stop.set()  # kopf waits for it in a thread, for whose end the loop waits, and that could be for ever

    def _registry(self) -> kopf.OperatorRegistry:
        registry = kopf.OperatorRegistry()
        kopf.on.login(registry=registry)(login)
        for plural, kind in KINDS.items():

            async def told(event: kopf.RawEvent, kind: str = kind, **_: object) -> None:
                seen = Seen(kind, dict(event["object"]), event["type"] == "DELETED")
                if self._loop is not None:
                    self._loop.call_soon_threadsafe(self._seen, seen)

            kopf.on.event(GROUP, VERSION, plural, registry=registry, id=plural)(told)
        return registry


def _settings() -> kopf.OperatorSettings:
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)  # it warns that signals are left to us
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.server_timeout = 300
    settings.watching.client_timeout = 310
    settings.watching.connect_timeout = 30
    settings.networking.request_timeout = 60
    return settings
