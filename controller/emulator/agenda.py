"""What is due when: the heap of timed changes behind world, void entries skipped.

Kept apart so that world reads as rules and not as bookkeeping.
"""

import heapq
from collections.abc import Callable
from itertools import count

from controller.emulator.contracts import Contract

Action = Callable[[float], None]


class Agenda:
    """Timed actions in order of time, then of booking."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Contract | None, int | None, Action]] = []
        self._booked = count()

    def book(self, at: float, action: Action, *, contract: Contract | None = None, fleeting: bool = False) -> None:
        """Plan an action.

        Args:
            at: unix time.
            action: called with that time.
            contract: skipped once this contract is destroyed, unless None.
            fleeting: skipped as well once the contract has had another order (its epoch moved on).
        """
        epoch = contract.epoch if contract is not None and fleeting else None
        heapq.heappush(self._heap, (at, next(self._booked), contract, epoch, action))

    def next_at(self) -> float:
        """Return the unix time of the next action that still counts, or infinity."""
        while self._heap and self._void():
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else float("inf")

    def pop(self) -> tuple[float, Action]:
        """Take the next action off the heap; call next_at first."""
        at, _, _, _, action = heapq.heappop(self._heap)
        return at, action

    def _void(self) -> bool:
        _, _, contract, epoch, _ = self._heap[0]
        if contract is None:
            return False
        return contract.destroyed_at is not None or (epoch is not None and epoch != contract.epoch)
