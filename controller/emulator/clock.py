"""The emulator's time, which may run faster than the wall or only as fast as a test loop pretends.

Everything here reads time through a Clock, so that a week of billing fits in seconds. `vastfleet emulator` and the demo
pass a ScaledClock; tests in virtual time pass a LoopClock.
"""

import asyncio
import math
import time
from typing import Protocol

MARGIN_S = 0.001  # slept past a foreseen event, so that rounding never wakes a sleeper just before it


class Clock(Protocol):
    """Unix seconds of the emulated world."""

    def now(self) -> float:
        """Return the time in unix seconds."""

    async def sleep(self, seconds: float) -> None:
        """Sleep for a span of emulated time."""


class ScaledClock:
    """The wall clock, sped up.

    Args:
        speed: emulated seconds that pass in one second of wall time.
        origin: unix time at which both clocks show the same; two processes that share origin and speed agree on the
            time. None: the moment of construction.
    """

    def __init__(self, speed: float = 1.0, origin: float | None = None) -> None:
        self.speed = speed
        self.origin = time.time() if origin is None else origin  # noqa: TID251  this is the clock

    def now(self) -> float:
        """Return the time in unix seconds."""
        return self.origin + (time.time() - self.origin) * self.speed  # noqa: TID251  this is the clock

    async def sleep(self, seconds: float) -> None:
        """Sleep for a span of emulated time."""
        await asyncio.sleep(seconds / self.speed)  # noqa: TID251  this is the clock


class LoopClock:
    """The running event loop's own time, for tests whose loop only pretends to wait.

    Args:
        origin: unix time shown when the loop's time is zero.
    """

    def __init__(self, origin: float) -> None:
        self.origin = origin

    def now(self) -> float:
        """Return the time in unix seconds."""
        return self.origin + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Sleep for a span of the loop's time."""
        await asyncio.sleep(seconds)  # noqa: TID251  this is the clock


class Bell:
    """Wakes everyone who waits for something to have changed."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._waiting: set[asyncio.Future[None]] = set()
        self.rings = 0  # so far; tells whether it rang while one was busy

    def ring(self) -> None:
        """Wake all who wait now."""
        self.rings += 1
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Return at the next ring, or after so many emulated seconds (infinity: only at a ring)."""
        ring = asyncio.get_running_loop().create_future()
        self._waiting.add(ring)
        try:
            if math.isinf(seconds):
                await ring
                return
            nap = asyncio.ensure_future(self._clock.sleep(max(0.0, seconds)))
            try:
                await asyncio.wait({ring, nap}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                nap.cancel()
        finally:
            self._waiting.discard(ring)
