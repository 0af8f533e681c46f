"""Writing behind: what is to be written is noted at once, and written when there is time, the same thing once."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping

from controller.model.faults import Fault

AT_ONCE = 8  # writes under way

Write = Callable[[str], Awaitable[None]]


class Behind:
    """What is still to be written.

    Args:
        writers: by kind, in the order in which they go, what writes the thing of a name as it is then. It raises a
            fault if that can't be done now.
    """

    def __init__(self, writers: Mapping[str, Write]) -> None:
        self._writers = writers
        self._owed: dict[str, dict[str, None]] = {kind: {} for kind in writers}
        self._busy = asyncio.Lock()
        self.waiting = asyncio.Event()  # something is owed

    def mark(self, kind: str, name: str) -> None:
        """Note that something is to be written."""
        self._owed[kind][name] = None
        self.waiting.set()

    def drop(self, kind: str, name: str) -> None:
        """It is not to be written any more."""
        self._owed[kind].pop(name, None)

    def owes(self, kind: str, name: str) -> bool:
        """Whether it is still to be written."""
        return name in self._owed[kind]

    async def flush(self) -> list[Fault]:
        """Write all that is owed, each once; what could not be written is owed still, and its fault returned."""
        faults: list[Fault] = []
        async with self._busy:
            for kind in self._writers:
                faults += await self.now(kind, tuple(self._owed[kind]))
            if not any(self._owed.values()):
                self.waiting.clear()
        return faults

    async def now(self, kind: str, names: Iterable[str]) -> list[Fault]:
        """Write those of these that are owed; for a writer whose thing speaks of them. Else `flush` does it."""
        room, faults = asyncio.Semaphore(AT_ONCE), []

        async def one(name: str) -> None:
            async with room:
                self._owed[kind].pop(name, None)
                try:
                    await self._writers[kind](name)
                except Fault as fault:
                    faults.append(fault)
                    self.mark(kind, name)
                except BaseException:
                    self.mark(kind, name)
                    raise

        await asyncio.gather(*(one(name) for name in names if self.owes(kind, name)))
        return faults
