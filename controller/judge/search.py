"""What it costs to go on: to keep an instance, to measure it again, or to find another. In hours of rent.

An hour on a machine that is too slow costs its rent; so does every hour spent on finding another. What the next machine
will be worth is not known before it is rented and measured, and what is found so far is not lost by looking further: a
box of Pandora's, after Weitzman (1979), whose worth is the one at which opening it makes no difference.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import mul

from controller.judge.assumptions import Assumptions, Effort, Prior
from controller.judge.belief import Belief, fresh, later, seen, spread
from controller.judge.lattice import Lattice, kernel, lattice

HOUR_S = 3600.0
OUTCOMES = 0.04  # ln: how far apart the outcomes of a run are that are told apart
BISECTIONS = 24
COARSE = 0.02  # ln: between priors whose searches are told apart


@dataclass(frozen=True, slots=True)
class Ahead:
    """What another run may show: for each outcome its probability, and that of it and the machine being too slow."""

    p: tuple[float, ...]
    p_bad: tuple[float, ...]


def keep(p_bad: float, effort: Effort) -> float:
    """The cost of keeping an instance that is too slow with that probability."""
    return effort.planned_hours * p_bad


def measure(p_bad: float, ahead: Ahead, replace: float, *, gap_hours: float, effort: Effort) -> float:
    """The cost of another run after so many hours of work, and of the better of keeping and replacing after it."""
    rest = max(0.0, effort.planned_hours - gap_hours)
    after = sum(map(min, [replace * p for p in ahead.p], [rest * bad for bad in ahead.p_bad]))
    return effort.run_hours + gap_hours * p_bad + after


def search(prior: Prior, effort: Effort, assumptions: Assumptions) -> float:
    """The cost of finding a machine worth keeping, where a fresh one is as likely to be good as `prior` says."""
    return _search(prior.coarse(COARSE), effort, assumptions)


@lru_cache(maxsize=256)
def _search(prior: Prior, effort: Effort, assumptions: Assumptions) -> float:
    grid = lattice((), prior.mean)
    start = fresh(grid, prior, assumptions)
    first = look_ahead(start, assumptions)
    gap = assumptions.cooldown_seconds / HOUR_S
    nexts = []
    for y, p, bad in zip(_outcomes(grid), first.p, first.p_bad, strict=True):
        then = later(seen(start, kernel(grid, y, assumptions.least_error)), gap * HOUR_S, prior, assumptions)
        nexts.append((p, bad / p if p > 0.0 else 1.0, look_ahead(then, assumptions)))
    opening = effort.provision_hours + effort.run_hours
    low, high = 0.0, opening + effort.planned_hours
    for _ in range(BISECTIONS):
        worth = (low + high) / 2
        found = opening + sum(
            p * min(worth, keep(bad, effort), measure(bad, ahead, worth, gap_hours=gap, effort=effort))
            for p, bad, ahead in nexts
        )
        low, high = (worth, high) if found > worth else (low, worth)
    return (low + high) / 2


def look_ahead(belief: Belief, assumptions: Assumptions) -> Ahead:
    """What a run may show if it is made when the belief is this."""
    grid = belief.grid
    sums = len(grid.sums())
    everything = spread(belief.rows, sums)
    half = [p / 2 for p in belief.rows[-grid.low]]  # at x = 0 just as likely too slow as not
    slow = spread([*belief.rows[: -grid.low], half], sums)
    kernels = _kernels(grid, assumptions.least_error)
    return Ahead(tuple(sum(map(mul, everything, k)) for k in kernels), tuple(sum(map(mul, slow, k)) for k in kernels))


@lru_cache(maxsize=64)
def _outcomes(grid: Lattice) -> tuple[float, ...]:
    """What a run may show, as values of x + s."""
    every = max(1, round(OUTCOMES / grid.step))
    return grid.sums()[::every]


@lru_cache(maxsize=64)
def _kernels(grid: Lattice, error: float) -> tuple[Sequence[float], ...]:
    """For each outcome, its probability given each x + s: over all outcomes these are 1."""
    made = [kernel(grid, y, error) for y in _outcomes(grid)]
    totals = [sum(column) for column in zip(*made, strict=True)]
    return tuple(tuple(k / total for k, total in zip(each, totals, strict=True)) for each in made)
