"""What a kubelet asks: does it live, is it ready. Answered by how long ago the loop last did something."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

Check = Callable[[], str]
"""What is wrong, in one line; empty when nothing is."""


def application(*, live: Check, ready: Check) -> Starlette:
    """`/healthz` and `/readyz`: 200 and `ok`, or 503 and what is wrong."""

    def answering(path: str, check: Check) -> Route:
        async def answer(_request: Request) -> PlainTextResponse:
            wrong = check()
            return PlainTextResponse(f"{wrong or 'ok'}\n", status_code=503 if wrong else 200)

        return Route(path, answer)

    return Starlette(routes=[answering("/healthz", live), answering("/readyz", ready)])


class _Server(uvicorn.Server):
    """A server that leaves the process's signals to the process."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@asynccontextmanager
async def serving(app: Starlette, *, host: str, port: int) -> AsyncIterator[int]:
    """Serve an application until the block ends; the port that it is served at. Raises OSError if that is taken."""
    listener = socket.create_server((host, port))
    config = uvicorn.Config(app, log_level="critical", access_log=False, lifespan="off", ws="none", http="h11")
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[listener]), name="health")
    try:
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await asyncio.gather(task, return_exceptions=True)
