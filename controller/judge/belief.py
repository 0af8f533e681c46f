"""What the runs of one instance say about its true rate: a belief over x = ln(rate / floor), on a grid.

One run is a poor witness. It sees the machine's true rate through the session it ran in, which neighbours and heat
move by a tenth and now and then slow by a quarter, and a second run a few minutes later sees the same session again.
So a run close behind another counts for little, a slow run may say "disturbed" as well as "slow machine", and old
knowledge fades. Called by `verdict`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from controller.model.instance import Run

STEP = 0.02  # of the grid, in ln(rate)
POINTS = 160  # about how many the grid may have; beyond, its step grows
SPAN = 0.8  # of the grid, to each side of the typical machine; farther where the runs are
BESIDE = 0.3  # of the grid, beyond the farthest run
FARTHEST = 7.0  # runs this far from the floor in ln(rate), a factor of 1100, are taken to be just so far
REMEMBERED = 200  # runs; what older ones said has faded


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What is taken for granted about machines and runs. Logarithms are of rate / floor; 0.10 is about ten per cent."""

    mean: float = 0.0  # ln: a typical machine of the shape, before any run
    sd: float = 0.10  # ln: between machines of one shape
    odd: float = 0.10  # share of machines unlike the others: a floor far off the mark, a host that throttles
    odd_sd: float = 0.50  # ln: between those
    session_sd: float = 0.09  # ln: what the session adds, the same for all runs within it
    session_seconds: float = 3600.0  # how fast a session is forgotten
    disturbed: float = 0.15  # share of sessions that are disturbed, and so slow
    drop: float = 0.75  # factor on the rate of a disturbed session
    drop_sd: float = 0.03  # ln: between disturbed sessions
    slowest: float = -0.16  # ln, from the mean; slower than that, a run says no more than just that
    least_error: float = 0.03  # relative: no run is more exact than this, whatever it claims
    drift_seconds: float = 400 * 3600.0  # mean time until a machine's rate changes for another
    reject_below: float = 0.40  # P under which an instance does not go on working
    accept_above: float = 0.90
    confirm: float = 1.5  # independent runs that a rejection takes
    hopeless: float = 0.5  # of the floor: two runs below it are a rejection, however close together
    cooldown_seconds: float = 2 * 3600.0  # of work between runs, so that they see different sessions


DEFAULTS = Assumptions()


@dataclass(frozen=True, slots=True)
class Sample:
    """A usable run. `weight`: what it is worth, 1 unless it came close behind another."""

    at: float  # unix seconds
    y: float  # ln(rate / floor)
    error: float  # relative
    weight: float


@dataclass(frozen=True, slots=True)
class Belief:
    """A probability for each x of an even grid through 0."""

    xs: tuple[float, ...]
    weights: tuple[float, ...]  # sum to 1

    @property
    def p_good(self) -> float:
        """P(x >= 0); the mass right at 0 is shared."""
        above = sum(w for x, w in zip(self.xs, self.weights, strict=True) if x > 0.0)
        return min(1.0, above + self.weights[self.xs.index(0.0)] / 2)

    @property
    def median(self) -> float:
        """The x that is as likely to be exceeded as not, between grid points."""
        below = 0.0
        half_step = (self.xs[1] - self.xs[0]) / 2
        for x, weight, total in zip(self.xs, self.weights, accumulate(self.weights), strict=True):
            if total >= 0.5:  # noqa: PLR2004 - a median
                return x - half_step + 2 * half_step * (0.5 - below) / weight
            below = total
        return self.xs[-1]


def samples(runs: Sequence[Run], *, floor: float, now: float, assumptions: Assumptions) -> list[Sample]:
    """The usable runs, oldest first: those with a positive, finite rate. A run from the future counts as made now."""
    usable = sorted(
        (min(run.ended_at, now), run.rate, run.error)
        for run in runs
        if run.rate is not None and 0.0 < run.rate < math.inf and math.isfinite(run.ended_at)
    )
    found: list[Sample] = []
    for at, rate, error in usable[-REMEMBERED:]:
        since = at - found[-1].at if found else math.inf
        y = max(-FARTHEST, min(FARTHEST, math.log(rate) - math.log(floor)))
        exact = error if error is not None and assumptions.least_error < error < math.inf else assumptions.least_error
        found.append(Sample(at, y, exact, 1.0 - math.exp(-since / assumptions.session_seconds)))
    return found


def believe(found: Sequence[Sample], *, now: float, assumptions: Assumptions, clipped: bool) -> Belief:
    """The belief at `now`.

    `clipped`: let no run speak for more than `slowest`. Unclipped, a very slow run fits the story "good machine,
    disturbed" better than a slow one does, and P would rise as a rate falls; the best guess of the rate needs the rate.
    """
    lowest = assumptions.mean + assumptions.slowest if clipped else -math.inf
    xs = _grid([max(sample.y, lowest) for sample in found], assumptions.mean)
    prior = _normalised([_prior(x, assumptions) for x in xs])
    weights = prior
    for index, sample in enumerate(found):
        logs = [sample.weight * _log_likelihood(max(sample.y, lowest) - x, sample.error, assumptions) for x in xs]
        best = max(logs)
        weights = _normalised([w * math.exp(log - best) for w, log in zip(weights, logs, strict=True)])
        until = found[index + 1].at if index + 1 < len(found) else now
        kept = math.exp(-max(0.0, until - sample.at) / assumptions.drift_seconds)
        weights = [kept * w + (1.0 - kept) * p for w, p in zip(weights, prior, strict=True)]
    return Belief(xs, tuple(weights))


def _grid(ys: Sequence[float], mean: float) -> tuple[float, ...]:
    low, high = min(0.0, mean - SPAN, *(y - BESIDE for y in ys)), max(0.0, mean + SPAN, *(y + BESIDE for y in ys))
    step = max(STEP, (high - low) / POINTS)
    return tuple(index * step for index in range(math.floor(low / step), math.ceil(high / step) + 1))


def _prior(x: float, assumptions: Assumptions) -> float:
    z = x - assumptions.mean
    return (1.0 - assumptions.odd) * _normal(z, assumptions.sd) + assumptions.odd * _normal(z, assumptions.odd_sd)


def _log_likelihood(z: float, error: float, assumptions: Assumptions) -> float:
    """The log density of a run that shows z more than the machine's true ln(rate)."""
    sd = math.hypot(assumptions.session_sd, error)
    slow_sd = math.hypot(sd, assumptions.drop_sd)
    slow_z = z - math.log(assumptions.drop)
    return _log_sum(
        math.log(1.0 - assumptions.disturbed) - math.log(sd) - 0.5 * (z / sd) ** 2,
        math.log(assumptions.disturbed) - math.log(slow_sd) - 0.5 * (slow_z / slow_sd) ** 2,
    )


def _log_sum(a: float, b: float) -> float:
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


def _normal(z: float, sd: float) -> float:
    return math.exp(-0.5 * (z / sd) ** 2) / sd


def _normalised(weights: Sequence[float]) -> list[float]:
    total = math.fsum(weights)
    return [weight / total for weight in weights]
