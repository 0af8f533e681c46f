"""What a benchmark's log says: numbers, units, and the Reading that readers make of them.

A reading without a rate says why. 0, NaN, infinity and numbers in unknown units are no rates: they would be compared.
"""

import math
import re
from dataclasses import dataclass
from typing import Protocol

MOST_WORK = 1e9  # pieces in a run; a count above it is none

_NUMBER = re.compile(r"[+-]?(?:\d+|\d{1,3}(?:,\d{3})+)(?:\.\d*)?(?:[eE][+-]?\d+)?|[+-]?\.\d+(?:[eE][+-]?\d+)?")
_UNIT = re.compile(r"(?P<work>[^/\s]*)\s*(?:/|\bper\b)\s*(?P<time>\w+)")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s|us|µs|μs|ns))+")
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(h|ms|m|s|us|µs|μs|ns)")
_SECONDS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "mins", "m", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3600.0),
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    "ms": 1e-3,
    "ns": 1e-9,
}
_PREFIX = re.compile(r"([KMGT]i(?=[Bb])|[kKMGT])(.+)")
_SCALE = {
    **dict.fromkeys(("k", "K"), 1e3),
    "M": 1e6,
    "G": 1e9,
    "T": 1e12,
    **{f"{prefix}i": 1024.0**power for power, prefix in enumerate("KMGT", start=1)},
}


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


def seconds(text: str) -> float | None:
    """The seconds of a duration such as 44.2s, 1m40.6s or 242µs, as Go and Rust print it; None if it is none."""
    text = text.strip()
    if not _DURATION.fullmatch(text):
        return None
    return sum(float(amount) * _SECONDS[unit] for amount, unit in _PIECE.findall(text))


def reading(value: float | None, unit: str, *, wanted: str, evidence: str, error: float | None = None) -> Reading:
    """`value` in `unit` as a Reading in the unit `wanted`. No unit: it is in the wanted one."""
    conversion = Conversion(1.0) if not unit.strip() else conversion_of(unit, wanted)
    if conversion is None:
        return Reading(detail=f"cannot read {unit.strip()!r} as {wanted}: {evidence}")
    rate = None if value is None else conversion.of(value)
    if rate is None or not 0.0 < rate < math.inf:
        return Reading(detail=f"not a rate: {evidence}")
    return Reading(rate=rate, detail=evidence, error=error)


@dataclass(frozen=True, slots=True)
class Conversion:
    """From one unit to another. `each`: the first is time for each piece of work, so that less of it is more."""

    factor: float
    each: bool = False

    def of(self, value: float) -> float | None:
        """The value in the other unit; None if it is no rate."""
        if self.each:
            return self.factor / value if value > 0.0 else None
        return value * self.factor


def conversion_of(unit: str, wanted: str) -> Conversion | None:
    """How a rate in `unit`, or a time for each in s/proof or s, becomes one in `wanted`; None: it is of other work."""
    asked = _parts(wanted)
    if asked is None:
        return Conversion(1.0) if unit.strip() == wanted.strip() else None
    given = _parts(unit)
    each = given is None
    if given is None and (given := _each(unit)) is None:
        return None
    scale = _work_scale(given[0], asked[0])
    if scale is None:
        return None
    return Conversion(scale * asked[1] / given[1], each)


def _parts(unit: str) -> tuple[str, float] | None:
    """The work of a unit, and in how many seconds that much of it is done."""
    match = _UNIT.fullmatch(unit.strip())
    if match is None:
        return None
    time = _time(match["time"])
    return None if time is None else (match["work"].strip(), time)


def _each(unit: str) -> tuple[str, float] | None:
    """The same, of a time for each piece of work: s/proof, or only s."""
    match = _UNIT.fullmatch(unit.strip())
    time = _time(match["work"] if match else unit.strip())
    return None if time is None else (match["time"] if match else "", time)


def _time(word: str) -> float | None:
    return _SECONDS.get(word) or _SECONDS.get(word.lower())


def _work_scale(given: str, asked: str) -> float | None:
    """A proof is proofs, GH is 1000 MH, GiB is 1024 MiB, and work that is not named is the work asked for."""
    if not given or _singular(given) == _singular(asked):
        return 1.0
    pairs = ((one, other) for one in _splits(given) for other in _splits(asked))
    return next((one[0] / other[0] for one, other in pairs if one[1] == other[1]), None)


def _splits(work: str) -> list[tuple[float, str]]:
    """A unit of work as it stands, and without a prefix such as M or Mi: its scale, and what is scaled."""
    match = _PREFIX.fullmatch(work)
    return [(1.0, work), *([(_SCALE[match[1]], match[2])] if match else [])]


def _singular(work: str) -> str:
    return work.lower().removesuffix("s")
