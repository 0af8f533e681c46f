"""The controller's time: the wall's, or the emulator's, which runs faster.

Made here once and passed to everything that waits. Its speed is 1, except against an emulator that says otherwise.
"""

import asyncio
import math
import time
from collections.abc import Callable


class Clock:
    """Unix seconds that pass `speed` times as fast as the wall's; both show the same at `origin`.

    Args:
        speed: seconds of this clock in one second of the wall.
        origin: unix seconds; two processes with the same speed and origin agree on the time.
        wall: where the wall's time is read, in unix seconds.
    """

    def __init__(self, *, speed: float = 1.0, origin: float = 0.0, wall: Callable[[], float] = time.time) -> None:  # noqa: TID251 - the clock
        if not (0 < speed < math.inf and math.isfinite(origin)):
            raise ValueError(f"a clock's speed is a number above 0, and its origin a number, not {speed} and {origin}")
        self.speed = speed
        self.origin = origin
        self._wall = wall

    @classmethod
    def parse(cls, text: str) -> "Clock":
        """From `SPEED@ORIGIN`, as `vastfleet emulator` prints it. Raises ValueError naming what would be right."""
        speed, _, origin = text.partition("@")
        try:
            return cls(speed=float(speed), origin=float(origin or 0.0))
        except ValueError:
            raise ValueError(f"{text!r} is no clock; write SPEED@ORIGIN, such as 60@1700000000") from None

    def now(self) -> float:
        """Unix seconds."""
        return self.origin + (self._wall() - self.origin) * self.speed

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds of this clock."""
        await asyncio.sleep(seconds / self.speed)  # noqa: TID251 - the clock
