"""A proxy between the operator and a server: it tells of every call, and does harm where it is told to.

It speaks plain HTTP on loopback to the operator, whatever the server speaks.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
from aiohttp import web
from yarl import URL

HEADERS = ("Authorization", "Accept", "Content-Type", "User-Agent")
GREATEST = 64 * 2**20  # bytes of a body


@dataclass(slots=True)
class Call:
    """One call: what was asked, and how it was answered. `status`: None before that."""

    method: str
    path: str
    body: bytes
    status: int | None = None
    answer: bytes = b""


@dataclass(frozen=True, slots=True)
class Said:
    """An answer in place of the server's."""

    status: int
    body: bytes = b"{}"
    headers: tuple[tuple[str, str], ...] = ()


Hook = Callable[[Call], Awaitable[Said | None]]


async def nothing(_call: Call) -> Said | None:
    """Do no harm."""
    return None


@dataclass
class Proxy:
    """One server, seen through a proxy.

    `before` and `after` are asked at each call, before it is passed on and before its answer is; what they return is
    answered instead. `down`: every connection is cut. `mute`: what watches would tell is swallowed.
    """

    server: str
    context: ssl.SSLContext | None = None
    before: Hook = nothing
    after: Hook = nothing
    calls: list[Call] = field(default_factory=list)
    url: str = ""
    watches: int = 0  # that go on
    mute: bool = False
    _down: bool = False
    _cut: asyncio.Event = field(default_factory=asyncio.Event)
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _session: aiohttp.ClientSession | None = None

    @property
    def down(self) -> bool:
        """Whether the server can't be reached."""
        return self._down

    @down.setter
    def down(self, down: bool) -> None:
        self._down = down
        if down:
            self.cut()

    def cut(self) -> None:
        """Break off all that is under way, watches too."""
        self._cut.set()
        self._cut = asyncio.Event()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Return when something holds; it is asked again at every call and every answer."""
        async with asyncio.timeout(60), self._changed:
            await self._changed.wait_for(holds)

    def sent(self, method: str, part: str = "") -> list[Call]:
        """The calls so far of a method, with such a part in their path."""
        return [call for call in self.calls if call.method == method and part in call.path]

    async def _tell(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        call = Call(request.method, request.path_qs, await request.read())
        self.calls.append(call)
        await self._tell()
        passing = asyncio.ensure_future(self._pass_on(call, request))
        cut = asyncio.ensure_future(self._cut.wait())
        if not self._down:
            await asyncio.wait({passing, cut}, return_when=asyncio.FIRST_COMPLETED)
        cut.cancel()
        if self._down or not passing.done():
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)
            if request.transport is not None:
                request.transport.abort()
            return web.Response(status=502)
        return await passing

    async def _pass_on(self, call: Call, request: web.Request) -> web.StreamResponse:
        said = await self.before(call)
        if said is not None:
            return self._answer(call, said)
        headers = {name: request.headers[name] for name in HEADERS if name in request.headers}
        url = URL(self.server + request.raw_path, encoded=True)
        assert self._session is not None
        async with self._session.request(call.method, url, data=call.body or None, headers=headers) as answer:
            if "watch=" in call.path:
                return await self._stream(request, answer)
            kept = tuple((n, answer.headers[n]) for n in ("Content-Type", "Retry-After") if n in answer.headers)
            said = Said(answer.status, await answer.read(), kept)
        call.status, call.answer = said.status, said.body
        await self._tell()
        return self._answer(call, await self.after(call) or said)

    def _answer(self, call: Call, said: Said) -> web.Response:
        call.status = said.status
        return web.Response(status=said.status, body=said.body, headers=dict(said.headers))

    async def _stream(self, request: web.Request, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        told = web.StreamResponse(status=answer.status, headers={"Content-Type": answer.content_type})
        await told.prepare(request)
        self.watches += 1
        await self._tell()
        try:
            with suppress(aiohttp.ClientConnectionResetError):  # who watched is no more
                async for part in answer.content.iter_any():
                    if not self.mute:
                        await told.write(part)
        finally:
            self.watches -= 1
        return told


@asynccontextmanager
async def proxy(server: str, context: ssl.SSLContext | None = None) -> AsyncIterator[Proxy]:
    """Serve a proxy of a server until the block ends."""
    made = Proxy(server, context)
    app = web.Application(client_max_size=GREATEST)
    app.router.add_route("*", "/{path:.*}", made._handle)
    runner = web.AppRunner(app, access_log=None, handler_cancellation=False, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    connector = aiohttp.TCPConnector(limit=0, ssl=True if context is None else context)
    timeout = aiohttp.ClientTimeout(total=None)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        made._session = session
        try:
            yield made
        finally:
            made.down = True
            await runner.cleanup()
