"""Readers of logs in general forms, and the choice of a reader. Called by `bench`.

The last rate of a log counts, even where it cannot be read: a benchmark that ends in "nan" was not what it said before.
Evidence is cut to what is shown by `bench`, once secrets are out of it: half of one would not be found any more.
"""

import json
import re
from typing import Any

from controller.bench.cuzk import CuzkReader
from controller.bench.rates import MOST_WORK, Reader, Reading, number, reading, seconds
from controller.bench.work import Format

MATCHED = 2000  # characters of a line that a manifest's pattern is tried on: it may take the square of that


def reader_of(form: Format, *, pattern: str, wanted: str) -> Reader:
    """A fresh reader for one run of a command that prints in this form."""
    match form:
        case "cuzk":
            return CuzkReader(wanted=wanted)
        case "json":
            return JsonReader(wanted=wanted)
        case "regex":
            return RegexReader(wanted=wanted, pattern=pattern)


class JsonReader:
    """Takes the last line that is a JSON object with a `rate`; `unit`, `error` (relative) and `count` are optional."""

    def __init__(self, *, wanted: str) -> None:
        self._wanted = wanted
        self._last: tuple[str, dict[str, Any]] | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        if not line.lstrip().startswith("{"):
            return
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            return
        if "rate" in found:
            self._last = (line.strip()[:MATCHED], found)

    def result(self) -> Reading:
        """What the last such line says."""
        if self._last is None:
            return Reading(detail="no line is a JSON object with a rate")
        evidence, found = self._last
        unit, error, count = found.get("unit"), _number_of(found.get("error")), _number_of(found.get("count"))
        made = reading(
            _number_of(found["rate"]),
            unit if isinstance(unit, str) else "",
            wanted=self._wanted,
            evidence=evidence,
            error=error if error is not None and error > 0 else None,
        )
        if made.rate is None or count is None or not 1.0 <= count <= MOST_WORK:
            return made
        return Reading(rate=made.rate, detail=made.detail, error=made.error, count=int(count))


class RegexReader:
    """Takes the last match of a pattern with a group `rate` and perhaps a group `unit`.

    A rate that is a duration, such as 1m40.6s, is the time for each piece of work.
    """

    def __init__(self, *, wanted: str, pattern: str) -> None:
        self._wanted = wanted
        self._pattern = re.compile(pattern)
        self._last: tuple[str, str, str] | None = None

    def feed(self, line: str) -> None:
        """Take the next line."""
        for match in self._pattern.finditer(line[:MATCHED]):
            groups = match.groupdict()
            self._last = (match[0].strip()[:MATCHED], groups["rate"] or "", groups.get("unit") or "")

    def result(self) -> Reading:
        """What the last match says."""
        if self._last is None:
            return Reading(detail="no line matches the pattern")
        evidence, rate, unit = self._last
        if not unit.strip() and (each := seconds(rate)) is not None:
            return reading(each, "s", wanted=self._wanted, evidence=evidence)
        return reading(number(rate), unit, wanted=self._wanted, evidence=evidence)


def _number_of(value: object) -> float | None:
    """A number as JSON has it, or spelled in a string."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    return number(str(value))
