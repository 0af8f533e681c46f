"""Keeping the loop going for a person: news as it happens, a clean end on a signal, and what bills afterwards.

Used by apply, run, destroy and the demo.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from controller.cli.records import cost, event_line, name_of
from controller.cli.words import count, money, price
from controller.model.fleet import Fleet
from controller.model.instance import Event
from controller.model.money import usd
from controller.model.status import FleetStatus

if TYPE_CHECKING:
    from controller.ledger.sqlite import Ledger
    from controller.runtime.clock import Clock
    from controller.runtime.embedded import Running

STALLED, TIMED_OUT, INTERRUPTED, TERMINATED = 1, 3, 130, 143

SHOW_CURSOR = "\x1b[?25h"  # which a live view has hidden

Statuses = tuple[FleetStatus, ...]


class Stopped(Exception):  # noqa: N818 - what happened, not an error
    """The loop was asked to stop between two passes."""


class Stop:
    """Whether to stop, and with which exit code: a pass, which may be renting, is never cut short."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self.code: int | None = None

    def ask(self, code: int) -> None:
        """Stop after this pass, or at once if none is under way. Asked a second time by a signal, end the process."""
        if self.code in {INTERRUPTED, TERMINATED}:
            print(SHOW_CURSOR if sys.stdout.isatty() else "", end="", flush=True)
            os._exit(code)
        self.code = code
        self._wake()


@contextmanager
def stopping(made: "Running") -> Iterator[Stop]:
    """A Stop that Ctrl-C and SIGTERM ask."""
    loop = asyncio.get_running_loop()
    stop = Stop(made.loop.jobs.wake.set)

    def asked(code: int) -> None:
        if stop.code is None:
            print("\nstopping when this pass is over; again to stop at once", file=sys.stderr, flush=True)
        stop.ask(code)

    loop.add_signal_handler(signal.SIGINT, asked, INTERRUPTED)
    loop.add_signal_handler(signal.SIGTERM, asked, TERMINATED)
    try:
        yield stop
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


@contextmanager
def deadline(stop: Stop, clock: "Clock", minutes: float | None) -> Iterator[None]:
    """Ask the Stop after so many minutes of the clock, None for never."""

    async def wait() -> None:
        await clock.sleep((minutes or 0.0) * 60)
        stop.ask(TIMED_OUT)

    task = asyncio.create_task(wait()) if minutes is not None else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()


async def keep(
    made: "Running",
    source: Callable[[], Sequence[Fleet]],
    *,
    until: Callable[[Statuses], bool],
    stop: Stop,
    passed: Callable[[Statuses], None],
) -> None:
    """Pass until the statuses satisfy `until` or the Stop is asked. `passed` is told of each pass."""

    def fleets() -> Sequence[Fleet]:
        if stop.code is not None:
            raise Stopped
        return source()

    def enough(statuses: Statuses) -> bool:
        passed(statuses)
        return stop.code is not None or until(statuses)

    try:
        await made.loop.keep(fleets, until=enough)
    except Stopped:
        return


class News:
    """Prints the events of some fleets, each once. `fleets`: None for all; `say`: what prints; `line`: how."""

    def __init__(
        self,
        ledger: "Ledger",
        fleets: Sequence[str] | None = None,
        *,
        say: Callable[[str], None],
        line: Callable[[Event], str] = event_line,
    ) -> None:
        self._ledger = ledger
        self._fleets = None if fleets is None else {*fleets, ""}
        self._say = say
        self._line = line
        self._after = ledger.newest_event()

    def tell(self) -> list[Event]:
        """Print what is new, and return it."""
        told: list[Event] = []
        for number, said in self._ledger.news(after=self._after):
            self._after = number
            if self._fleets is None or said.fleet in self._fleets:
                self._say(self._line(said))
                told.append(said)
        return told


def bills(ledger: "Ledger", now: float) -> list[str]:
    """What still bills or may bill, as lines to print; empty if nothing does."""
    alive = ledger.instances()
    if not alive:
        return []
    total = price(usd(sum(i.price for i in alive)))
    lines = [f"still billing: {count(len(alive), 'instance')}, ${total}/h"]
    for i in alive:
        spent = money(cost(i, now))
        lines.append(f"  {name_of(i)}  {i.phase}  ${price(usd(i.price))}/h  ${spent} so far  {i.fleet}")
    names = " ".join(sorted({i.fleet for i in alive}))
    return [*lines, *(f"to end them: vastfleet destroy {name}" for name in names.split())]
