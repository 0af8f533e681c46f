"""When each fleet is passed over next: at once when something of it changed, else as fast as it moves.

Passes are due on the grid of their pace, so that many fleets share one listing.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from controller.model.status import FleetStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Seconds between passes."""

    active: float = 15.0  # while something is on its way
    steady: float = 60.0  # while all is well
    retry: float = 300.0  # the longest wait while vast.ai fails or the market has nothing; it doubles from `active`


class Schedule:
    """The passes that are due."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._due: dict[str, float] = {}
        self._idle: dict[str, int] = {}

    def wake(self, fleets: Iterable[str]) -> None:
        """Pass over these as soon as may be."""
        for fleet in fleets:
            self._due[fleet] = -math.inf

    def later(self, fleet: str, now: float) -> None:
        """Pass over it at the active pace from now."""
        self._due[fleet] = now + self._pace.active

    def forget(self, fleet: str) -> None:
        """Pass over it no more."""
        self._due.pop(fleet, None)
        self._idle.pop(fleet, None)

    def begun(self, fleets: Iterable[str]) -> None:
        """A pass over these begins: what wakes one from now on is due after it."""
        for fleet in fleets:
            self._due.pop(fleet, None)

    def passed(self, said: FleetStatus, *, now: float, listed: bool) -> None:
        """A pass was made, on a listing or without one. What was woken since it was begun is due at once still."""
        moving = said.pending or said.leaving or said.measuring
        waiting = not listed or not (moving or said.ready)
        idle = self._idle[said.fleet] = self._idle.get(said.fleet, 0) + 1 if waiting else 0
        wait = self._pace.steady if said.ready else self._pace.active
        if idle:
            wait = min(self._pace.retry, self._pace.active * 2.0 ** min(idle - 1, 16))
        grid = self._pace.steady if said.ready and not idle else self._pace.active
        self._due.setdefault(said.fleet, math.floor((now + wait) / grid) * grid)

    def due(self, now: float) -> set[str]:
        """The fleets to be passed over now."""
        return {fleet for fleet, at in self._due.items() if at <= now}

    def wait(self, now: float) -> float:
        """Seconds until the next pass is due; inf: none ever is."""
        return max(0.0, min(self._due.values(), default=math.inf) - now)
