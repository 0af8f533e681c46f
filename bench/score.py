"""What became of a fleet's weeks in a simulated market, in money, hours and proofs."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from bench.world import PRICE, Machine

DAY = 24.0  # hours
WEEK = 7 * DAY
SLOTS = 10  # of every fleet that is compared


@dataclass(frozen=True, slots=True)
class Stretch:
    """From when until when a machine was something, in hours."""

    machine: Machine
    begin: float
    end: float


class Record:
    """All that happened to a fleet. Its rentals go by their nonces, and are "rented", "admitted" and "at work"."""

    def __init__(self) -> None:
        self.rented: list[Stretch] = []
        self.admitted: list[Stretch] = []
        self.at_work: list[Stretch] = []  # admitted, and not being measured
        self.stated: list[tuple[float, bool]] = []  # P after each run, and whether the machine is good
        self._open: dict[tuple[str, str], tuple[Machine, float]] = {}

    def begin(self, what: str, nonce: str, machine: Machine, hour: float) -> None:
        """From now on a rental is that, if it was not already."""
        self._open.setdefault((what, nonce), (machine, hour))

    def since(self, what: str, nonce: str) -> float:
        """From when on it has been that; inf: it is not."""
        return self._open.get((what, nonce), (None, math.inf))[1]

    def end(self, nonce: str, hour: float, *whats: str) -> None:
        """A rental is that no more, as far as it was."""
        kept = {"rented": self.rented, "admitted": self.admitted, "at work": self.at_work}
        for what in whats or kept:
            if (opened := self._open.pop((what, nonce), None)) is not None:
                kept[what].append(Stretch(*opened, hour))


@dataclass(frozen=True, slots=True, kw_only=True)
class Until:
    """A record up to some hour."""

    cost: float  # USD
    proofs: float
    good_proofs: float  # by good machines
    good_at_work: int  # good machines admitted then

    @property
    def per_good(self) -> float:
        """USD for a thousand proofs by good machines."""
        return 1000 * self.cost / self.good_proofs if self.good_proofs else math.inf

    @property
    def per_proof(self) -> float:
        """USD for a thousand proofs by whatever machines."""
        return 1000 * self.cost / self.proofs if self.proofs else math.inf


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One fleet's week."""

    day: Until
    week: Until
    bad: float  # share of the rented hours that were of bad machines
    filled: float  # hours until all slots had good machines at once; inf: never
    rentals: int
    stated: tuple[tuple[float, bool], ...]


def score(record: Record, slots: int = SLOTS) -> Score:
    """What a record of a week of so many slots comes to."""
    hours = math.fsum(s.end - s.begin for s in record.rented)
    bad = math.fsum(s.end - s.begin for s in record.rented if not s.machine.good)
    return Score(
        day=_until(record, DAY),
        week=_until(record, WEEK),
        bad=bad / hours,
        filled=_filled((s for s in record.admitted if s.machine.good), slots),
        rentals=len(record.rented),
        stated=tuple(record.stated),
    )


def _until(record: Record, hour: float) -> Until:
    made = [(s.machine.good, s.machine.made(s.begin, min(s.end, hour))) for s in record.at_work if s.begin < hour]
    return Until(
        cost=PRICE * math.fsum(min(s.end, hour) - s.begin for s in record.rented if s.begin < hour),
        proofs=math.fsum(proofs for _, proofs in made),
        good_proofs=math.fsum(proofs for good, proofs in made if good),
        good_at_work=sum(s.machine.good and s.begin <= hour <= s.end for s in record.admitted),
    )


def _filled(good: Iterable[Stretch], slots: int) -> float:
    held = 0
    stretches = tuple(good)
    changes = sorted([(s.end, -1) for s in stretches] + [(s.begin, 1) for s in stretches])
    for hour, change in changes:
        held += change
        if held == slots:
            return hour
    return math.inf
