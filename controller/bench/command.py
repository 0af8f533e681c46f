"""One command on an instance: watched for silence and for time, and ended with all it started if it is given up.

A command's first line tells its process id. Giving it up kills that process group and nothing else: never by name, for
a name also fits the shell that looks for it. Called by `session`.
"""

import asyncio
import math
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TypeVar

from controller.bench.lines import Lines
from controller.bench.remote import Clock, Remote
from controller.model.faults import Fault, Refused
from controller.model.reasons import Reason

GRACE_S = 10.0  # for a command to end: after it said that it is done, and after a SIGTERM
KILL_S = 20.0  # of the wall, for the instance to take a signal

T = TypeVar("T")

_PID = re.compile(r"vastfleet-pid ([1-9]\d*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a command may take, and how long it may be silent, in seconds of the clock; and what to call it then."""

    timeout_s: float
    timeout: Reason
    stall_s: float = math.inf
    stall: Reason = Reason.PREPARE_STALLED


class Command:
    """One command, run once.

    `hear` gets each line, and whether it came on stderr; it returns whether there is nothing more to wait for.
    """

    def __init__(self, remote: Remote, *, clock: Clock, hear: Callable[[str, bool], bool]) -> None:
        self._remote = remote
        self._clock = clock
        self._hear = hear
        self._heard_at = clock.now()
        self._enough = asyncio.Event()
        self._pid: int | None = None
        self._status: int | None = None
        self._running: asyncio.Future[None] = asyncio.Future()

    async def run(self, script: str, limits: Limits) -> int | None:
        """Run a script to its end and return its exit status; None if it went on after `hear` had heard enough.

        If anything but its own end ends this, cancellation too, what runs remotely is ended first.

        Raises:
            Refused: it was over its limits, by the names these have.
            Retry: CONNECTION_LOST; it may still run, until `end` is called with another Remote.
        """
        self._running = asyncio.ensure_future(self._execute(script))
        try:
            await until(self._running, self._enough.wait(), self._over(limits))
            if self._enough.is_set():
                await until(self._running, self._clock.sleep(GRACE_S))
            if self._running.done():
                self._running.result()
            return self._status
        finally:
            if not self._running.done() or self._running.cancelled():
                await self.end(self._remote)
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def end(self, remote: Remote) -> None:
        """End the command's process group, over any Remote to its instance. Never raises a Fault: it may be gone."""
        for signal in ("TERM", "KILL"):
            if self._pid is None or self._status is not None or not await self._signal(remote, signal):
                return
            await until(self._running, self._clock.sleep(GRACE_S))

    async def _signal(self, remote: Remote, signal: str) -> bool:
        """Whether there was something to send the signal to. Without `--`, which dash's kill takes for a number."""
        try:
            async with asyncio.timeout(KILL_S):
                return await remote.run(f"kill -{signal} -{self._pid}", out=_unheard, err=_unheard) == 0
        except (Fault, TimeoutError):
            return False

    async def _execute(self, script: str) -> None:
        out, err = (
            Lines(lambda line: self._take(line, is_error=False)),
            Lines(lambda line: self._take(line, is_error=True)),
        )
        status = await self._remote.run(f"echo vastfleet-pid $$\n{script}", out=out.feed, err=err.feed)
        out.close()
        err.close()
        self._status = status

    def _take(self, line: str, *, is_error: bool) -> None:
        self._heard_at = self._clock.now()
        if self._pid is None and not is_error and (match := _PID.fullmatch(line)):
            self._pid = int(match[1])
        elif self._hear(line, is_error):
            self._enough.set()

    async def _over(self, limits: Limits) -> None:
        """Return never; raise when a limit is passed."""
        deadline = self._clock.now() + limits.timeout_s
        while True:
            now = self._clock.now()
            silent_until = self._heard_at + limits.stall_s
            if now >= deadline:
                raise Refused(limits.timeout, f"not done in {limits.timeout_s:.0f} s")
            if now >= silent_until:
                raise Refused(limits.stall, f"printed nothing for {limits.stall_s:.0f} s")
            await self._clock.sleep(min(deadline, silent_until) - now)


def _unheard(_text: str) -> None:
    """What kill prints, of a process that is gone, is known already."""


async def until(running: asyncio.Future[T], *others: Coroutine[object, object, object]) -> None:
    """Wait for the first of these. The others are cancelled, `running` is not. Raises what an other raised."""
    tasks = [asyncio.ensure_future(other) for other in others]
    try:
        waiting: set[asyncio.Future[T] | asyncio.Future[object]] = {running, *tasks}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            if task.done() and not running.done():
                task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
