"""What a benchmark's log says: numbers, units, and the Reading that readers make of them.

A reading without a rate says why. 0, NaN, infinity and numbers in unknown units are no rates: they would be compared.
"""

import math
import re
from dataclasses import dataclass
from typing import Protocol

_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"(?P<work>[^/\s]*)\s*(?:/|\bper\b)\s*(?P<time>\w+)")
_PER_HOUR = {
    **dict.fromkeys(("s", "sec", "second"), 3600.0),
    **dict.fromkeys(("min", "m", "minute"), 60.0),
    **dict.fromkeys(("h", "hr", "hour"), 1.0),
}
_SCALE = {"k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """A log's rate in the unit asked for, or None and why."""

    rate: float | None = None
    detail: str = ""  # one line: the evidence, or why there is no rate
    error: float | None = None  # relative standard error of the rate
    count: int | None = None  # pieces of work in it
    disturbed: bool = False  # the log itself shows that something changed during the run


class Reader(Protocol):
    """Follows one log, line by line, in bounded memory."""

    def feed(self, line: str) -> None:
        """Take the next line."""
        ...

    def result(self) -> Reading:
        """What the lines so far say."""
        ...


def number(text: str) -> float | None:
    """The number that `text` is, thousands separated by commas or not; None if it is none, or not finite."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text.replace(",", ""))
    return value if math.isfinite(value) else None


def reading(value: float | None, unit: str, *, wanted: str, evidence: str, error: float | None = None) -> Reading:
    """`value` in `unit` as a Reading in the unit `wanted`. No unit: it is in the wanted one."""
    factor = 1.0 if not unit.strip() else conversion(unit, wanted)
    if factor is None:
        return Reading(detail=f"cannot read {unit.strip()!r} as {wanted}: {evidence}")
    if value is None or not 0.0 < value * factor < math.inf:
        return Reading(detail=f"not a rate: {evidence}")
    return Reading(rate=value * factor, detail=evidence, error=error)


def conversion(unit: str, wanted: str) -> float | None:
    """What a rate in `unit` is multiplied by to be in `wanted`; None if they do not measure the same work."""
    given, asked = _parts(unit), _parts(wanted)
    if given is None or asked is None:
        return 1.0 if unit.strip() == wanted.strip() else None
    scale = _work_scale(given[0], asked[0])
    return None if scale is None else scale * given[1] / asked[1]


def _parts(unit: str) -> tuple[str, float] | None:
    """The work of a unit, and how many of it make one an hour."""
    match = _UNIT.fullmatch(unit.strip())
    if match is None:
        return None
    time = match["time"].lower()
    per_hour = _PER_HOUR.get(time) or _PER_HOUR.get(time.removesuffix("s"))
    return None if per_hour is None else (match["work"].strip(), per_hour)


def _work_scale(given: str, asked: str) -> float | None:
    """A proof is proofs, GH is 1000 MH, and work that is not named is the work asked for."""
    if not given or _singular(given) == _singular(asked):
        return 1.0
    (from_scale, from_work), (to_scale, to_work) = _scaled(given, asked), _scaled(asked, given)
    return from_scale / to_scale if from_work == to_work else None


def _scaled(work: str, other: str) -> tuple[float, str]:
    """Split off a prefix such as M, but only where it prefixes the other's work."""
    scale = _SCALE.get(work[:1])
    if scale is None or work[1:] not in (other, other[1:]) or len(work) == 1:
        return 1.0, work
    return scale, work[1:]


def _singular(work: str) -> str:
    return work.lower().removesuffix("s")
