"""An operator as a process: what it prints, waited for line by line."""

import asyncio
import signal
from contextlib import suppress
from dataclasses import dataclass, field


@dataclass
class Operator:
    """A process of `vastfleet operator`. `lines`: what it has printed, the log too."""

    process: asyncio.subprocess.Process
    lines: list[str] = field(default_factory=list)
    _said: asyncio.Condition = field(default_factory=asyncio.Condition)
    reading: asyncio.Task[None] | None = None

    async def read(self) -> None:
        """Take in what it prints, until it ends."""
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._said:
                self.lines.append(line.decode(errors="replace").rstrip())
                self._said.notify_all()
        async with self._said:
            self.lines.append("")
            self._said.notify_all()

    async def says(self, text: str) -> str:
        """The first line that it has printed, or prints, with such a text in it. Fails if it ends before."""
        async with self._said:
            await self._said.wait_for(lambda: any(text in line for line in self.lines) or "" in self.lines[-1:])
            found = next((line for line in self.lines if text in line), None)
        assert found is not None, "\n".join(self.lines[-40:])
        return found

    async def stop(self, number: int = signal.SIGTERM) -> int:
        """Send it a signal, unless it has ended; its exit code."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.process.send_signal(number)
        return await self.process.wait()
