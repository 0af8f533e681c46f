"""The HTTP face: one path that every request takes, from the key to the answer.

Order: count, authenticate, rate limit, troubles before, the effect, troubles after. The effect is a plain function and
runs in a task of its own, so that a client that goes away neither prevents nor undoes it. Built by server.
"""

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from controller.emulator import account_routes, instance_routes, market_routes
from controller.emulator.contracts import Contract
from controller.emulator.faults import Answer, Refusal, refusal
from controller.emulator.limits import Gate
from controller.emulator.routes import Endpoint, Incoming
from controller.emulator.trouble import CallTrouble, CallTroubles
from controller.emulator.world import World

ENDPOINTS = (*market_routes.ENDPOINTS, *account_routes.ENDPOINTS, *instance_routes.ENDPOINTS)


class Api:
    """Serves a world.

    Args:
        world: what is served.
        api_key: the one key that is let in.
        listening: tells whether an instance's SSH server accepts connections.
    """

    def __init__(self, world: World, *, api_key: str, listening: Callable[[Contract], bool]) -> None:
        self._world = world
        self._api_key = api_key
        self._listening = listening
        self._gate = Gate(world.scenario.limits)
        self._troubles = CallTroubles(world.scenario.calls, seed=world.seed, started=world.started)
        self._tasks: set[asyncio.Task[Answer]] = set()
        self._hanging: set[asyncio.Task[object]] = set()
        self.calls: Counter[str] = Counter()

    def app(self) -> Starlette:
        """Build the ASGI application."""
        routes = [
            Route(path, self._handler(endpoint), methods=[endpoint.method])
            for endpoint in sorted(ENDPOINTS, key=lambda e: "{" in e.path)
            for path in sorted({endpoint.path, endpoint.path.rstrip("/")})
        ]
        return Starlette(routes=routes)

    async def close(self) -> None:
        """End what still waits for its turn, and the answers that never come."""
        waiting = [*self._tasks, *self._hanging]
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    def _handler(self, endpoint: Endpoint) -> Callable[[Request], Any]:
        async def handle(request: Request) -> Response:
            body = await _body(request)
            self.calls[endpoint.name] += 1
            try:
                self._admit(endpoint, request)
            except Refusal as refused:
                return _response(refused.answer)
            met = self._troubles.meet(endpoint.operation_of(body), self._world.look())
            task = asyncio.create_task(self._serve(endpoint, request, body, met))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            answer = await asyncio.shield(task)
            lost = next((t for t in met if t.kind == "lost-answer"), None)
            return _response(answer) if lost is None else await self._lose(lost, answer, request)

        return handle

    def _admit(self, endpoint: Endpoint, request: Request) -> None:
        now = self._world.look()
        key = request.headers.get("authorization", "").removeprefix("Bearer ") or request.query_params.get(
            "api_key", ""
        )
        if key != self._api_key and (key or not endpoint.public):
            raise refusal(self._world.scenario.bad_key if key else "login_required")
        self._gate.admit(endpoint.name, key, endpoint.limit, now)
        if endpoint.search:
            self._gate.count_search(now)

    async def _serve(
        self, endpoint: Endpoint, request: Request, body: Mapping[str, Any], met: list[CallTrouble]
    ) -> Answer:
        await self._hold(met, "before")
        error = next((t.substitute for t in met if t.kind == "error"), None)
        answer = error if error is not None else self._effect(endpoint, request, body)
        self._world.activity.ring()
        await self._hold(met, "after")
        return answer

    def _effect(self, endpoint: Endpoint, request: Request, body: Mapping[str, Any]) -> Answer:
        self._world.look()
        call = Incoming(
            world=self._world,
            path=request.path_params,
            query=request.query_params,
            body=body,
            base_url=str(request.base_url).rstrip("/"),
            listening=self._listening,
        )
        try:
            return endpoint.handler(call)
        except Refusal as refused:
            return refused.answer

    async def _lose(self, trouble: CallTrouble, answer: Answer, request: Request) -> Response:
        if trouble.substitute is not None:
            return _response(trouble.substitute)
        if trouble.answer == "drop":
            return _Torn(status_code=answer.status)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._hanging.add(task)
        try:  # in process the task is the caller's own, which lives on when its patience ends
            while (await request.receive())["type"] != "http.disconnect":
                pass
        finally:
            self._hanging.discard(task)
        return Response(status_code=204)

    async def _hold(self, met: list[CallTrouble], when: str) -> None:
        for trouble in met:
            if trouble.kind == "hold" and trouble.when == when:
                await self._world.clock.sleep(trouble.seconds)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body() or b"{}")
    except ValueError:
        return {}
    return body if isinstance(body, dict) else {}


class _Torn(Response):
    """Sends a head that promises a body, and breaks off."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002  ASGI's signature
        await send(
            {"type": "http.response.start", "status": self.status_code, "headers": [(b"content-length", b"512")]}
        )
        raise ConnectionResetError("the scenario drops this answer")


def _response(answer: Answer) -> Response:
    plain = isinstance(answer.body, str) and answer.content_type != "application/json"
    text = answer.body if plain else json.dumps(answer.body)
    return Response(text, answer.status, dict(answer.headers), answer.content_type)
