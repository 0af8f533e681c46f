"""One exchange with vast.ai: its turn, its deadline, the bound on its size, and the tries that are safe.

Used by `client` alone.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import httpx

from controller.model.faults import Misconfigured, Retry
from controller.model.reasons import Reason
from controller.vast import faults
from controller.vast.calls import Call
from controller.vast.faults import Answer
from controller.vast.pace import Clock, Pace

TRIES = 3
LONGEST_WAIT_S = 60.0  # a longer one is the caller's to plan with
BACK_OFF_S = 1.0  # after the first try that said nothing of when to come back, then four times as long
MOST_BYTES = 80 * 2**20  # the whole market, as one answer, is some 70 MB
CONNECT_SHARE = 0.25  # of the deadline: a host that takes no connection is told from one that does not answer
SHORTEST_SECRET = 4  # shorter values cannot be told from ordinary words
WORTH_ANOTHER_TRY = (Reason.RATE_LIMITED, Reason.SERVER_ERROR, Reason.UNREACHABLE)


class Http:
    """Sends calls to one address with one key.

    `deadline` is in seconds of the event loop and holds for each try, from the first byte sent to the last one read,
    its turn excluded. `fence` is asked of what changes something, when its turn has come, and again when it has a
    connection and is about to be sent. Raises Misconfigured for a key or an address that no call could be made with.
    """

    def __init__(
        self,
        *,
        api_key: str,
        url: str,
        clock: Clock,
        transport: httpx.AsyncBaseTransport | None,
        deadline: float,
        pace: Pace,
        fence: Callable[[], None],
    ) -> None:
        if not api_key or not api_key.isascii() or not api_key.isprintable() or " " in api_key:
            raise Misconfigured(Reason.AUTH_FAILED, "the API key is empty or holds characters that no key has")
        self._api_key = api_key
        self._deadline = deadline
        self._clock = clock
        self._pace = pace
        self._fence = fence
        self.calls: Counter[str] = Counter()
        self._client = httpx.AsyncClient(
            base_url=_address(url, of="vast.ai"),
            transport=transport,
            timeout=httpx.Timeout(deadline, connect=deadline * CONNECT_SHARE, pool=deadline * CONNECT_SHARE),
            headers={"User-Agent": "vastfleet"},
        )

    async def ask(
        self,
        call: Call,
        *,
        target: int | None = None,
        params: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        secrets: tuple[str, ...] = (),
    ) -> Any:
        """The JSON object or array of a success, after at most three tries.

        `target` is the id in the path. Raises a Fault, whose text holds neither the key nor any of `secrets`.
        """
        request = self._client.build_request(
            call.method,
            call.path.format(id=target),
            params=params,
            content=None if body is None else json.dumps(body, allow_nan=False).encode(),
            headers={"Authorization": f"Bearer {self._api_key}"}
            | ({} if body is None else {"Content-Type": "application/json"}),
        )
        hidden = tuple(secret for secret in (self._api_key, *secrets) if len(secret) >= SHORTEST_SECRET)
        attempt = 1
        while True:
            try:
                answer = await self._exchange(call, request)
                return faults.data(replace(answer, secrets=hidden), call, now=self._clock.now())
            except Retry as fault:
                wait = BACK_OFF_S * 4 ** (attempt - 1) if fault.after is None else fault.after
                if attempt == TRIES or fault.reason not in WORTH_ANOTHER_TRY or wait > LONGEST_WAIT_S:
                    raise
            self._pace.defer(call, wait)
            attempt += 1

    async def fetch(self, call: Call, url: str) -> Answer:
        """Whatever a GET of a foreign address answers, asked without our key. Raises a Fault when nothing answers."""
        return await self._exchange(call, self._client.build_request("GET", _address(url, of="what vast.ai points to")))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _exchange(self, call: Call, request: httpx.Request) -> Answer:
        await self._pace.turn(call)
        if call.changes:
            self._fence()
            request.extensions["trace"] = self._about_to
        self.calls[call.name] += 1
        try:
            async with asyncio.timeout(self._deadline):
                return await self._receive(call, request)
        except (httpx.HTTPError, httpx.StreamError, TimeoutError) as error:
            raise faults.unanswered(error, call) from error

    async def _about_to(self, step: str, _: Mapping[str, Any]) -> None:
        if step == "http11.send_request_headers.started":
            self._fence()

    async def _receive(self, call: Call, request: httpx.Request) -> Answer:
        response = await self._client.send(request, stream=True, follow_redirects=False)
        try:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise faults.lost(call, Reason.BAD_ANSWER, f"{call.name}: an answer beyond {MOST_BYTES} bytes")
            return Answer(status=response.status_code, headers=response.headers, body=bytes(body))
        finally:
            await response.aclose()


def _address(url: str, *, of: str) -> httpx.URL:
    """A web address. A user name in it would take the place of the key, so none is allowed."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise Misconfigured(Reason.BAD_REQUEST, f"the address of {of} cannot be read as a URL") from error
    if address.scheme not in ("http", "https") or not address.host or address.userinfo:
        raise Misconfigured(Reason.BAD_REQUEST, f"the address of {of} must be http(s)://HOST[:PORT], without a user")
    return address
