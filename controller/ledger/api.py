"""The Kubernetes API server, as far as the ledger and the operator need it. The one boundary for aiohttp's errors.

Paths are the server's own, such as `/apis/vastfleet.io/v1alpha1/fleets`. A conflict or a missing object is an answer
here, not a fault: what to do about it depends on what was asked.
"""

import asyncio
import json
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Protocol

import aiohttp

from controller.model.faults import Fault, Gone, Misconfigured, Refused, Retry
from controller.model.reasons import Reason

CONNECTIONS = 16
TIMEOUT = aiohttp.ClientTimeout(total=30, connect=10)
WARNINGS = 100  # that are passed on
PAGE = 500  # objects of a list that are fetched at once
FRESH = 60.0  # seconds after which credentials are read again: a service account's token is renewed in its file
MERGE = "application/merge-patch+json"

Body = dict[str, Any]

log = logging.getLogger(__name__)


class Connection(Protocol):
    """Where the server is, and who asks: `kopf.ConnectionInfo`."""

    @property
    def server(self) -> str:
        """Its address."""
        ...

    def as_ssl_context(self) -> ssl.SSLContext:
        """What to trust, and the client's certificate."""
        ...

    def as_http_headers(self) -> dict[str, str]:
        """The header that says who asks."""
        ...


class Conflict(Fault):
    """There is such an object already, or it is not any more what it was when it was read."""


class Api:
    """One server, over at most 16 connections.

    Args:
        login: where the server is and who asks, as of now.
        fence: asked right before anything is written; raises while nothing may be.
    """

    def __init__(self, login: Callable[[], Connection], *, fence: Callable[[], None] = lambda: None) -> None:
        self._login = login
        self._fence = fence
        self._connection = login()
        self._warnings: set[str] = set()
        self._read_at = asyncio.get_running_loop().time()
        ssl_ = self._connection.as_ssl_context() if self._connection.server.startswith("https") else True
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=CONNECTIONS, ssl=ssl_), timeout=TIMEOUT
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()

    async def get(self, path: str) -> Body | None:
        """An object, None if there is none."""
        try:
            return await self._ask("GET", path)
        except Gone:
            return None

    async def items(self, path: str, *, labels: str = "") -> AsyncIterator[Body]:
        """All objects of a list."""
        query = {"limit": str(PAGE)} | ({"labelSelector": labels} if labels else {})
        while True:
            page = await self._ask("GET", path, query=query)
            for item in page["items"]:
                yield item
            token = page["metadata"].get("continue")
            if not token:
                return
            query["continue"] = token

    async def create(self, path: str, body: Mapping[str, Any]) -> Body:
        """Make an object. Raises Conflict if there is one of that name."""
        return await self._ask("POST", path, body=body)

    async def replace(self, path: str, body: Mapping[str, Any]) -> Body:
        """Put an object in the place of the one that was read. Raises Conflict if it changed since."""
        return await self._ask("PUT", path, body=body)

    async def patch(self, path: str, body: Mapping[str, Any]) -> Body:
        """Merge a patch into an object: None takes a field out. Raises Gone if there is none."""
        return await self._ask("PATCH", path, body=body, kind=MERGE)

    async def delete(self, path: str) -> None:
        """Ask for an object's end; nothing happens if there is none."""
        try:
            await self._ask("DELETE", path)
        except Gone:
            return

    async def _ask(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        kind: str = "application/json",
    ) -> Body:
        headers = {"Accept": "application/json", "Content-Type": kind} | self._who().as_http_headers()
        data = None if body is None else json.dumps(body)
        url = self._connection.server.rstrip("/") + path
        if method != "GET":
            self._fence()
        try:
            async with self._session.request(method, url, params=query, data=data, headers=headers) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            what = f"{method} {path}: {error or type(error).__name__}"
            raise Retry(Reason.CLUSTER_UNAVAILABLE, f"the Kubernetes API server did not answer: {what}") from error
        for warning in answer.headers.getall("Warning", ()):
            self._warned(warning)
        if answer.status < 300:  # noqa: PLR2004 - HTTP's own border
            found: Body = json.loads(text)
            return found
        raise _fault(method, path, answer.status, text, answer.headers.get("Retry-After"))

    def _warned(self, text: str) -> None:
        """Pass on what the server warns of, such as of a field that it does not know and drops, once."""
        if text not in self._warnings and len(self._warnings) < WARNINGS:
            self._warnings.add(text)
            log.warning("the API server warns: %s", text)

    def _who(self) -> Connection:
        now = asyncio.get_running_loop().time()
        if now - self._read_at > FRESH:
            self._connection, self._read_at = self._login(), now
        return self._connection


def _fault(method: str, path: str, status: int, text: str, after: str | None) -> Fault:
    try:
        message = str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        message = text[:200]
    told = f"{method} {path}: {status}: {message}"
    match status:
        case 404:
            return Gone(Reason.MISSING, told)
        case 409:
            return Conflict(Reason.CLUSTER_REFUSED, told)
        case 401 | 403:
            return Misconfigured(Reason.CLUSTER_REFUSED, told)
        case 429 | 500 | 502 | 503 | 504:
            wait = float(after) if after is not None and after.isdigit() else None
            return Retry(Reason.CLUSTER_UNAVAILABLE, told, after=wait)
    return Refused(Reason.CLUSTER_REFUSED, told)
