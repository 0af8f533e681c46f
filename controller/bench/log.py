"""What is kept of a command's output: its last lines for a person, and signs of trouble that exit codes hide.

Programs report dead GPUs and exit 0, and a process killed for want of memory may be a child that its parent survives.
"""

import re
from collections import deque
from collections.abc import Callable

TAIL = 3  # lines
SHOWN = 400  # characters of them
KILLED = 137  # exit status of a shell whose command got SIGKILL, which is how the kernel frees memory

_NO_MEMORY = re.compile(
    r"\bKilled\b|\bout of memory\b|\boom[-_ ]?kill|\bOutOfMemory|\bbad_alloc\b|cannot allocate memory|"
    r"\bCUDA_ERROR_OUT_OF_MEMORY",
    re.IGNORECASE,
)
_BROKEN_GPU = re.compile(
    r"\bFAULTY\b|\(DIED!\)|No clients are alive!|No working GPUs found|Failed to initialize NVML|No devices were found"
)


class Log:
    """Follows one command. `progress` gets each line, and all texts are without the secrets."""

    def __init__(self, *, progress: Callable[[str], None], redact: Callable[[str], str]) -> None:
        self._progress = progress
        self._redact = redact
        self._tail: deque[str] = deque(maxlen=TAIL)
        self._no_memory = self._broken_gpu = ""

    def hear(self, line: str) -> None:
        """Take the next line of either stream."""
        shown = self._redact(line)[:SHOWN]
        self._tail.append(shown)
        if _NO_MEMORY.search(line):
            self._no_memory = shown
        if _BROKEN_GPU.search(line):
            self._broken_gpu = shown
        self._progress(shown)

    @property
    def tail(self) -> str:
        """The last lines, as one."""
        return " | ".join(line.strip() for line in self._tail)[-SHOWN:] or "it printed nothing"

    def no_memory(self, status: int | None) -> str:
        """The sign that memory ran out, empty if there is none."""
        return self._no_memory or (f"killed: {self.tail}" if status == KILLED else "")

    @property
    def broken_gpu(self) -> str:
        """The line that says that a GPU does not work, empty if there is none."""
        return self._broken_gpu
