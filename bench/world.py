"""A market whose truth is known: machines of one model, and the sessions that disturb what they do.

Made from a seed, so that the same machines have the same sessions whoever rents them. Times are hours since the
beginning, rates proofs an hour.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

FLOOR = 59.0  # what a machine must do to be good
PRICE = 0.40  # USD an hour of each
PROOFS = 13  # of a run, its warm-up included
IDLE = 2 / 60  # hours of a run in which no proof is made
READ = 0.25  # hours of work that a reading of production covers


@dataclass(frozen=True, slots=True, kw_only=True)
class Nature:
    """How machines and their sessions are, in truth. A CV is a standard deviation over its mean."""

    machines: int = 100
    mean: float = 61.0  # of the machines' rates
    machine_cv: float = 0.08  # between machines
    session_cv: float = 0.08  # between sessions
    session_hours: float = 1.5  # how long one lasts, on the mean
    disturbed: float = 0.15  # share of sessions in which something slows a machine
    drop: float = 0.75  # factor on its rate then
    noise: float = 0.03  # of a run's rate, relative
    provision: tuple[float, float] = (10 / 60, 40 / 60)  # hours from the rental to the first run: the least, the most


Session = tuple[float, float]  # its end, and its factor on the rate


def lognormal(rng: Random, cv: float) -> float:
    """A positive number of mean 1."""
    sigma = math.sqrt(math.log1p(cv * cv))
    return math.exp(rng.gauss(-sigma * sigma / 2, sigma))


def sessions(nature: Nature, rng: Random) -> Iterator[Session]:
    """Sessions without end, each as long as chance will have it."""
    end = 0.0
    while True:
        end += rng.expovariate(1 / nature.session_hours)
        factor = lognormal(rng, nature.session_cv)
        yield end, factor * (nature.drop if rng.random() < nature.disturbed else 1.0)


class Machine:
    """One machine for rent.

    Args:
        number: its id.
        rate: what it does undisturbed.
        course: its sessions, in order and without end.
        luck: what else befalls it.
        nature: how exact a run is.
    """

    def __init__(self, number: int, rate: float, course: Iterator[Session], luck: Random, nature: Nature) -> None:
        self.id = number
        self.rate = rate
        self.nature = nature
        self._course = course
        self._luck = luck
        self._ends = [0.0]  # of the sessions so far, after the beginning
        self._factors = [1.0]
        self._worked = [0.0]  # undisturbed hours that equal what was done until each end

    @property
    def good(self) -> bool:
        """Whether its undisturbed rate makes the floor."""
        return self.rate >= FLOOR

    def made(self, begin: float, end: float) -> float:
        """Proofs made between two moments."""
        return self.rate * (self._work(end) - self._work(begin))

    def provision(self) -> float:
        """Hours until it can be measured."""
        return self._luck.uniform(*self.nature.provision)

    def run_ends(self, begin: float) -> float:
        """When a benchmark ends that begins then."""
        return self._until(self._work(begin + IDLE) + PROOFS / self.rate)

    def run_shows(self, begin: float, end: float) -> float:
        """The rate that it shows."""
        return PROOFS / (end - begin - IDLE) * lognormal(self._luck, self.nature.noise)

    def reading(self, end: float) -> float:
        """The rate that production shows of its last minutes."""
        begin = max(0.0, end - READ)
        return self.made(begin, end) / (end - begin) * lognormal(self._luck, self.nature.noise)

    def _work(self, until: float) -> float:
        while self._ends[-1] < until:
            self._extend()
        index = bisect_left(self._ends, until)
        return self._worked[index] - (self._ends[index] - until) * self._factors[index]

    def _until(self, work: float) -> float:
        while self._worked[-1] < work:
            self._extend()
        index = bisect_right(self._worked, work) if work < self._worked[-1] else len(self._worked) - 1
        return self._ends[index] - (self._worked[index] - work) / self._factors[index]

    def _extend(self) -> None:
        end, factor = next(self._course)
        self._worked.append(self._worked[-1] + (end - self._ends[-1]) * factor)
        self._ends.append(end)
        self._factors.append(factor)


def market(nature: Nature, seed: int) -> list[Machine]:
    """Machines for rent, by id."""
    rates = Random(f"{seed}/rates")
    return [
        Machine(
            number,
            nature.mean * lognormal(rates, nature.machine_cv),
            sessions(nature, Random(f"{seed}/{number}/sessions")),
            Random(f"{seed}/{number}/luck"),
            nature,
        )
        for number in range(1, nature.machines + 1)
    ]
