"""Many worlds' scores in a few numbers, with how far chance may have moved them."""

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bench.score import DAY, SLOTS, Score, Until

LEAST_P = 0.5  # stated probabilities below are not held to account
Z = 1.96  # standard errors to each side that hold 95 % of a normal distribution


@dataclass(frozen=True, slots=True)
class Mean:
    """A mean over worlds, and the half-width of its 95 % interval."""

    value: float
    give: float

    def shown(self, form: str = ".1f") -> str:
        """Both, as text."""
        return f"{self.value:{form}}±{self.give:{form.removeprefix('+')}}"


def mean(values: Iterable[float]) -> Mean:
    """The mean over worlds; with one world, nothing is known of chance."""
    found = list(values)
    spread = statistics.stdev(found) if len(found) > 1 else math.inf
    return Mean(statistics.fmean(found), Z * spread / math.sqrt(len(found)))


def against(scores: Sequence[Score], others: Sequence[Score], *, day: bool = False) -> Mean:
    """How much more dearly good proofs came than to another, in per cent, world by world."""

    def until(score: Score) -> Until:
        return score.day if day else score.week

    pairs = zip(scores, others, strict=True)
    return mean(100 * (until(s).per_good / until(o).per_good - 1) for s, o in pairs)


def bad(scores: Sequence[Score]) -> Mean:
    """The share of rented hours that were of bad machines, in per cent."""
    return mean(100 * score.bad for score in scores)


def filled(scores: Sequence[Score]) -> float:
    """The median of the hours until all slots had good machines; inf: most worlds never got there."""
    return statistics.median(score.filled for score in scores)


def filled_in_a_day(scores: Sequence[Score]) -> float:
    """The share of worlds that got there in a day."""
    return statistics.fmean(score.filled <= DAY for score in scores)


def rentals(scores: Sequence[Score]) -> float:
    """How many rentals it took for each slot."""
    return statistics.fmean(score.rentals for score in scores) / SLOTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenth:
    """The verdicts whose P was in one tenth: what was stated, and what came true."""

    low: float
    verdicts: int
    stated: float
    good: Mean

    @property
    def over(self) -> float:
        """By how many points more was stated than came true."""
        return 100 * (self.stated - self.good.value)


def calibration(scores: Sequence[Score]) -> tuple[Tenth, ...]:
    """By tenths of P, what was stated and what came true. A world is one witness, however many verdicts it saw."""
    found = []
    for tenth in range(round(10 * LEAST_P), 10):
        worlds = [[(p, good) for p, good in score.stated if min(9, int(10 * p)) == tenth] for score in scores]
        count = sum(map(len, worlds))
        if count == 0:
            continue
        stated = math.fsum(p for world in worlds for p, _ in world) / count
        share = sum(good for world in worlds for _, good in world) / count
        off = [sum(good for _, good in world) - share * len(world) for world in worlds]
        give = Z * math.sqrt(math.fsum(x * x for x in off)) / count
        found.append(Tenth(low=tenth / 10, verdicts=count, stated=stated, good=Mean(share, give)))
    return tuple(found)


def worst(tenths: Sequence[Tenth]) -> float:
    """The most that was overstated, in points."""
    return max((tenth.over for tenth in tenths), default=0.0)
