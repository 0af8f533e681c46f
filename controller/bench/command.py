"""One command on an instance: watched for how it gets on, and ended with all it started if it is given up.

A command's first line tells its process id. Giving it up kills that process group and nothing else: never by name, for
a name also fits the shell that looks for it. Called by `session`.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from typing import TypeVar

from controller.bench.lines import Lines
from controller.bench.progress import LOOK_S, Pace
from controller.bench.remote import Clock, Remote
from controller.model.faults import Fault, Refused

GRACE_S = 10.0  # for a command to end: after it said that it is done, and after a SIGTERM
KILL_S = 20.0  # of the wall, for the instance to take a signal

T = TypeVar("T")

_PID = re.compile(r"vastfleet-pid ([1-9]\d*)")


class Command:
    """One command, run once.

    Args:
        remote: where it runs.
        clock: the controller's time.
        pace: follows how it gets on, and says when to give it up.
        hear: gets each line, and whether it came on stderr; returns whether there is nothing more to wait for.
        tell: is told, now and then, of a command that stands still.
    """

    def __init__(
        self,
        remote: Remote,
        *,
        clock: Clock,
        pace: Pace,
        hear: Callable[[str, bool], bool],
        tell: Callable[[str], None],
    ) -> None:
        self._remote = remote
        self._clock = clock
        self._pace = pace
        self._hear = hear
        self._tell = tell
        self._enough = asyncio.Event()
        self._pid: int | None = None
        self._status: int | None = None
        self._running: asyncio.Future[None] = asyncio.Future()

    async def run(self, script: str) -> int | None:
        """Run a script to its end and return its exit status; None if it went on after `hear` had heard enough.

        If anything but its own end ends this, cancellation too, what runs remotely is ended first.

        Raises:
            Refused: it was over its pace's limits, by the names these have.
            Retry: CONNECTION_LOST; it may still run, until `end` is called with another Remote.
        """
        self._running = asyncio.ensure_future(self._execute(script))
        try:
            await until(self._running, self._enough.wait(), self._over())
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
        status = await self._remote.run(f"echo vastfleet-pid $$\n{script}", out=self._into(out), err=self._into(err))
        out.close()
        err.close()
        self._status = status

    def _into(self, lines: Lines) -> Callable[[str], None]:
        """Takes output as it comes: what is no line yet shows already that the command is alive."""

        def take(text: str) -> None:
            lines.feed(text)
            self._pace.touch(self._clock.now(), lines.begun)

        return take

    def _take(self, line: str, *, is_error: bool) -> None:
        if self._pid is None and not is_error and (match := _PID.fullmatch(line)):
            self._pid = int(match[1])
            return
        self._pace.hear(line, self._clock.now())
        if self._hear(line, is_error):
            self._enough.set()

    async def _over(self) -> None:
        """Return never; raise when it is to be given up."""
        while True:
            now = self._clock.now()
            if (late := self._pace.overdue(now)) is not None:
                raise Refused(*late)
            if stands := self._pace.standing(now):
                self._tell(stands)
            await self._clock.sleep(min(self._pace.look_at(now), now + LOOK_S) - now)


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
