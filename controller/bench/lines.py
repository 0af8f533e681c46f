r"""Raw output to lines: pieces as they come off the wire, split at \n and at the \r of progress bars, without colours.

One for each stream of each command. What is kept is bounded, whatever a host prints.
"""

import re
from collections.abc import Callable

LONGEST = 65_536  # characters of one line; the rest of it is dropped

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_END = re.compile(r"[\r\n]")


class Lines:
    """Calls `on_line` with each line that is not blank, without its end."""

    def __init__(self, on_line: Callable[[str], None]) -> None:
        self._on_line = on_line
        self._begun = ""

    @property
    def begun(self) -> str:
        """The line that has not ended yet, as it came."""
        return self._begun

    def feed(self, text: str) -> None:
        """Take the next piece of output."""
        *whole, begun = _END.split(text)
        for end in whole:
            self._emit(self._begun + end)
            self._begun = ""
        self._begun = (self._begun + begun)[:LONGEST]

    def close(self) -> None:
        """The output is over: a last line without an end counts too."""
        self._emit(self._begun)
        self._begun = ""

    def _emit(self, line: str) -> None:
        line = _CONTROL.sub("", _ANSI.sub("", line[:LONGEST])).rstrip()
        if line.strip():
            self._on_line(line)


def redact(text: str, secrets: frozenset[str]) -> str:
    """`text` without any of the secrets; the longest first, in case one holds another."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
