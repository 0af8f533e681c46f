"""The pace at which vast.ai is called, so that its rate limits are met by waiting here and not by refusals there.

Two buckets: the endpoint's own, with as many tokens as its burst, and one that all calls share, the most urgent first.
`http` takes a turn before each call it sends, and defers an endpoint that answered 429.
"""

import asyncio
import heapq
import itertools
from collections import defaultdict, deque
from typing import Protocol

from controller.vast.calls import Call, Rank

BETWEEN_CALLS_S = 0.05  # of whatever kind
SLACK_S = 0.1  # the server measures arrivals, and the network brings some calls closer together
SHORTEST_SLEEP_S = 0.001  # a clock of unix seconds in a float cannot be slept up to exactly


class Clock(Protocol):
    """The controller's time, which may run faster than the wall."""

    def now(self) -> float:
        """Unix seconds."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of controller time."""


class Pace:
    """Spaces calls. One for each API key and address, since vast.ai counts by these.

    `shared` is the least number of seconds between any two calls.
    """

    def __init__(self, clock: Clock, *, shared: float = BETWEEN_CALLS_S) -> None:
        self._clock = clock
        self._shared = shared
        self._own_turn: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._own_free_at: dict[str, float] = {}
        self._own_sent: defaultdict[str, deque[float]] = defaultdict(deque)
        self._free_at = 0.0
        self._waiting: list[tuple[Rank, int]] = []
        self._serial = itertools.count()
        self._moved = asyncio.Event()

    async def turn(self, call: Call) -> None:
        """Wait until `call` may be sent: first come, first served within one endpoint, most urgent first among them."""
        async with self._own_turn[call.name]:
            while (wait := self._own_free_at.get(call.name, 0.0) - self._clock.now()) > 0:
                await self._clock.sleep(max(wait, SHORTEST_SLEEP_S))
            await self._shared_turn(call.rank)
            self._spend(call)

    def defer(self, call: Call, seconds: float) -> None:
        """Let no further `call` through for so many seconds."""
        until = self._clock.now() + seconds
        self._own_free_at[call.name] = max(until, self._own_free_at.get(call.name, 0.0))

    def _spend(self, call: Call) -> None:
        """Take a token of the endpoint's: the next but `burst` may come when as many intervals have passed."""
        sent = self._own_sent[call.name]
        sent.append(self._clock.now())
        if len(sent) >= call.burst:
            first = sent.popleft()
            self.defer(call, first + call.burst * call.interval + SLACK_S - self._clock.now())

    async def _shared_turn(self, rank: Rank) -> None:
        """Wait at the head of the queue for the shared token; whoever is behind waits for the queue to move."""
        ticket = (rank, next(self._serial))
        heapq.heappush(self._waiting, ticket)
        try:
            while (ahead := self._waiting[0] != ticket) or self._clock.now() < self._free_at:
                if ahead:
                    await self._moved.wait()
                else:
                    await self._clock.sleep(max(self._free_at - self._clock.now(), SHORTEST_SLEEP_S))
            self._free_at = self._clock.now() + self._shared
        finally:
            self._waiting.remove(ticket)
            heapq.heapify(self._waiting)
            self._moved.set()
            self._moved = asyncio.Event()
