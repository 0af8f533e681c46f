"""The seam between the jobs and the network: an open way to run commands on an instance.

SSH in production (`ssh`); a simulated week passes its own Connect, with no socket at all. Jobs read time from a Clock.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from controller.bench.work import Target


class Clock(Protocol):
    """The controller's time, which may run faster than the wall or be virtual."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Wait for so many seconds of this clock."""
        ...


class Remote(Protocol):
    """An instance that answers. `host_key` is in OpenSSH format, None where there is none; `route`: direct or proxy."""

    @property
    def host_key(self) -> str | None:
        """The key it showed."""
        ...

    @property
    def route(self) -> str:
        """The way that worked."""
        ...

    async def run(self, command: str, *, out: Callable[[str], None], err: Callable[[str], None]) -> int:
        r"""Run a shell command to its end and return its exit status, 128 + n if signal n ended it.

        `out` and `err` get its output as it comes, in pieces as they come: `Lines` makes lines of them.
        If cancelled, what runs remotely goes on: the caller ends it. Several commands may run at once.

        Raises:
            Retry: CONNECTION_LOST, the transport died; what became of the command is unknown.
        """
        ...

    async def close(self) -> None:
        """Hang up. Never raises."""
        ...


Connect = Callable[[Target], Awaitable[Remote]]
"""Opens a Remote by the first of the target's endpoints that works.

Raises Retry(SSH_UNREACHABLE) if none answers, Refused(SSH_REFUSED) if one denies our key, and Refused(HOST_KEY_CHANGED)
if one shows another host key than the target's; the text tells what each endpoint said.
"""
