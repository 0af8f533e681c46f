"""Where beliefs are kept: points of x = ln(rate / floor) and of s, what the session adds to it.

A run sees x + s. The points of s are two steps apart, so that x + s falls on points one step apart, and what a run says
about all of them is one list, read at an offset.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from controller.judge.assumptions import Assumptions, Prior

STEP = 0.03  # of x, in ln(rate): as fine as a run is exact
POINTS = 90  # about how many x may have; beyond, the step grows
SPAN = 0.5  # of x, to each side of the typical machine; farther where the runs are
BESIDE = 0.3  # of x, beyond the farthest run
SLOWEST, FASTEST = -0.96, 0.36  # of s
EDGE = 0.12  # the lattice grows by so much at a time, so that few different ones are in use


@dataclass(frozen=True, slots=True)
class Lattice:
    """Indices count steps from x = 0 or s = 0; those of s are even."""

    step: float
    low: int  # lowest index of x
    count: int  # points of x
    s_low: int  # lowest index of s
    s_count: int  # points of s, two indices apart

    def xs(self) -> tuple[float, ...]:
        """The points of x, ascending; 0 is one of them."""
        return tuple((self.low + i) * self.step for i in range(self.count))

    def sums(self) -> tuple[float, ...]:
        """The points of x + s, ascending, one step apart."""
        first = self.low + self.s_low
        return tuple((first + i) * self.step for i in range(self.count + 2 * (self.s_count - 1)))


def lattice(ys: Sequence[float], mean: float, *, fineness: int = 1) -> Lattice:
    """The lattice for runs that show `ys`, of machines that typically make `mean`, so many times as fine."""
    low = min(0.0, mean - SPAN, *(y - BESIDE for y in ys))
    high = max(0.0, mean + SPAN, *(y + BESIDE for y in ys))
    low, high = math.floor(low / EDGE) * EDGE, math.ceil(high / EDGE) * EDGE
    step = max(STEP, (high - low) / POINTS) / fineness
    first, last = math.floor(low / step), math.ceil(high / step)
    s_low, s_high = math.floor(SLOWEST / step / 2) * 2, math.ceil(FASTEST / step / 2) * 2
    return Lattice(step, first, last - first + 1, s_low, (s_high - s_low) // 2 + 1)


@lru_cache(maxsize=256)
def prior_of_x(grid: Lattice, prior: Prior | None, a: Assumptions) -> tuple[float, ...]:
    """The probability of each x before any run; None: all alike."""
    if prior is None:
        return (1.0 / grid.count,) * grid.count
    return normalised(
        [(1.0 - a.odd) * normal(x - prior.mean, prior.sd) + a.odd * normal(x - prior.mean, a.odd_sd) for x in grid.xs()]
    )


@lru_cache(maxsize=256)
def prior_of_s(grid: Lattice, a: Assumptions) -> tuple[float, ...]:
    """The probability of each s in a session of which nothing is known."""
    return normalised([undisturbed(s, a) + disturbed(s, a) for s in _ss(grid)])


@lru_cache(maxsize=256)
def disturbance(grid: Lattice, a: Assumptions) -> tuple[float, ...]:
    """For each s, the probability that such a session is a disturbed one."""
    return tuple(disturbed(s, a) / (undisturbed(s, a) + disturbed(s, a)) for s in _ss(grid))


def _ss(grid: Lattice) -> list[float]:
    return [(grid.s_low + 2 * i) * grid.step for i in range(grid.s_count)]


def undisturbed(s: float, a: Assumptions) -> float:
    """The density of a session's s, as far as it is undisturbed."""
    return (1.0 - a.disturbed - a.crippled) * normal(s, a.session_sd)


def disturbed(s: float, a: Assumptions) -> float:
    """The density of a session's s, as far as it is disturbed."""
    usual = a.disturbed * normal(s - math.log(a.drop), math.hypot(a.session_sd, a.drop_sd))
    return usual + a.crippled * normal(s - math.log(a.crippled_drop), a.crippled_sd)


def kernel(grid: Lattice, y: float, error: float) -> list[float]:
    """What a run that shows `y` says of each x + s: its likelihood, up to a factor. Never all zeros."""
    sd = max(error, 0.75 * grid.step)  # narrower than the lattice, it would fall between its points
    zs = [(y - point) / sd for point in grid.sums()]
    least = min(z * z for z in zs)
    return [math.exp(-0.5 * (z * z - least)) for z in zs]


def normal(z: float, sd: float) -> float:
    """The normal density, up to a factor that is the same for all."""
    return math.exp(-0.5 * (z / sd) ** 2) / sd


def normalised(weights: Sequence[float]) -> tuple[float, ...]:
    """The weights over their sum."""
    total = math.fsum(weights)
    return tuple(weight / total for weight in weights)
