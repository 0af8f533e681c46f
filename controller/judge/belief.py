"""What the runs of one machine say about its true rate, through the sessions they were made in.

One run is a poor witness. It sees the machine's rate through the session it ran in, which neighbours and heat move by
a tenth and now and then slow by a quarter, and a second run a few minutes later sees the same session again. So the
belief is a table over both: x = ln(rate / floor), and s, what the present session adds. Sessions are forgotten within
hours, the machine's rate over weeks. A pure function of the runs: what is cached could be counted again.
"""

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, repeat
from operator import add, mul

from controller.judge.assumptions import Assumptions, Prior
from controller.judge.lattice import Lattice, disturbance, kernel, lattice, prior_of_s, prior_of_x
from controller.model.instance import Run, RunKind

FARTHEST = 7.0  # runs this far from the floor in ln(rate), a factor of 1100, are taken to be just so far
COARSE = 0.04  # ln: between priors from which beliefs are followed; they are corrected for what the prior is
REMEMBERED = 64  # runs; what older ones said has faded
FORGOTTEN = 16  # are left out at a time, so that what is cached holds for a while
KNOWN = 1024  # beliefs that are kept, to go on from: about three an instance

Rows = tuple["array[float]", ...]  # for each x, the probability of each s


@dataclass(frozen=True, slots=True)
class Sample:
    """A usable run. `weight`: what it is worth, 1 unless it came close behind another."""

    at: float  # unix seconds
    y: float  # ln(rate / floor)
    error: float  # relative
    weight: float


@dataclass(frozen=True, slots=True)
class Belief:
    """The probability of each x and s of a lattice, at one moment; right after a run only up to a factor."""

    grid: Lattice
    rows: Rows

    def weights(self) -> tuple[float, ...]:
        """The probability of each x."""
        return tuple(map(sum, self.rows))

    def sessions(self) -> list[float]:
        """The probability of each s."""
        return _columns(self.rows)

    @property
    def p_good(self) -> float:
        """P(x >= 0); the mass right at 0 is shared."""
        weights = self.weights()
        return min(1.0, weights[-self.grid.low] / 2 + sum(weights[1 - self.grid.low :]))

    def quantile(self, share: float) -> float:
        """The x below which it is with the probability `share`, between points."""
        weights, step = self.weights(), self.grid.step
        below = 0.0
        for x, weight, total in zip(self.grid.xs(), weights, accumulate(weights), strict=True):
            if total >= share:
                return x - step / 2 + step * (share - below) / weight
            below = total
        return self.grid.xs()[-1]

    def p_disturbed(self, assumptions: Assumptions) -> float:
        """The probability that the present session is a disturbed one."""
        return float(sum(map(mul, self.sessions(), disturbance(self.grid, assumptions))))


def samples(
    runs: Iterable[Run], *, floor: float, now: float, assumptions: Assumptions, offset: float = 0.0
) -> tuple[Sample, ...]:
    """The usable runs, oldest first: those with a positive, finite rate. A run from the future counts as made now.

    `offset`: ln of how much more production's rate shows than a benchmark would.
    """
    usable = sorted(
        (min(run.ended_at, now), run.rate, run.error, offset if run.kind is RunKind.PRODUCTION else 0.0)
        for run in runs
        if run.rate is not None and 0.0 < run.rate < math.inf and math.isfinite(run.ended_at)
    )
    dropped = max(0, math.ceil((len(usable) - REMEMBERED) / FORGOTTEN)) * FORGOTTEN
    found: list[Sample] = []
    for at, rate, error, more in usable[dropped:]:
        since = at - found[-1].at if found else math.inf
        y = max(-FARTHEST, min(FARTHEST, math.log(rate) - math.log(floor) - more))
        exact = error if error is not None and assumptions.least_error < error < math.inf else assumptions.least_error
        found.append(Sample(at, y, exact, 1.0 - math.exp(-since / assumptions.session_seconds)))
    return tuple(found)


def clipped(found: Sequence[Sample], prior: Prior, a: Assumptions) -> tuple[Sample, ...]:
    """The samples, none of which says more for "disturbed" than one `clip` below the typical machine does.

    Otherwise a very slow run would fit the story "good machine, disturbed" better than a slow one, and P would rise as
    a rate falls. Slower still, no such story fits, and the run speaks for itself.
    """
    edge = prior.coarse(COARSE).mean - a.clip
    fair = []
    for sample in found:
        too_loud = edge - a.clip_span < sample.y < edge
        fair.append(Sample(sample.at, edge, sample.error, sample.weight) if too_loud else sample)
    return tuple(fair)


def believe(
    found: tuple[Sample, ...], *, now: float, prior: Prior | None, assumptions: Assumptions, fineness: int = 1
) -> Belief:
    """The belief at `now`, from what such machines are like (None: nothing is known of them) and from the samples."""
    near = prior.coarse(COARSE) if prior is not None else None
    grid = lattice([sample.y for sample in found], near.mean if near is not None else 0.0, fineness=fineness)
    if not found:
        return fresh(grid, prior, assumptions)
    belief = later(_after(grid, found, near, assumptions), max(0.0, now - found[-1].at), near, assumptions)
    return belief if prior == near else _corrected(belief, near, prior, assumptions)


def _corrected(belief: Belief, near: Prior | None, prior: Prior | None, a: Assumptions) -> Belief:
    """The belief from another prior: what runs say does not depend on it, but for the little that has drifted."""
    grid = belief.grid
    ratios = [p / n for p, n in zip(prior_of_x(grid, prior, a), prior_of_x(grid, near, a), strict=True)]
    total = sum(map(mul, ratios, belief.weights()))
    return Belief(
        grid,
        tuple(array("d", map(mul, row, repeat(r / total))) for row, r in zip(belief.rows, ratios, strict=True)),
    )


def fresh(grid: Lattice, prior: Prior | None, assumptions: Assumptions) -> Belief:
    """What is believed of a machine never measured."""
    sessions = prior_of_s(grid, assumptions)
    return Belief(grid, tuple(array("d", [x * s for s in sessions]) for x in prior_of_x(grid, prior, assumptions)))


def _after(grid: Lattice, found: tuple[Sample, ...], prior: Prior | None, assumptions: Assumptions) -> Belief:
    """The belief right after the last sample: from that after the last but one, if that is known, or from the first."""
    for start in (len(found), len(found) - 1, 0):
        known = _known.get((grid, found[:start], prior, assumptions))
        if known is not None:
            break
    belief = known or fresh(grid, prior, assumptions)
    for index in range(start, len(found)):
        sample = found[index]
        if index:
            belief = later(belief, sample.at - found[index - 1].at, prior, assumptions)
        belief = seen(belief, kernel(grid, sample.y, sample.error))
    _known.pop((grid, found, prior, assumptions), None)
    _known[grid, found, prior, assumptions] = belief
    while len(_known) > KNOWN:
        del _known[next(iter(_known))]
    return belief


_known: dict[tuple[Lattice, tuple[Sample, ...], Prior | None, Assumptions], Belief] = {}  # the latest used last


def later(belief: Belief, seconds: float, prior: Prior | None, a: Assumptions) -> Belief:
    """The belief so much later: the session may have ended, and now and then a machine's rate changes for another."""
    grid, mine = belief.grid, belief.weights()
    total = sum(mine)
    kept = math.exp(-seconds / a.session_seconds) / total
    same = 1.0 if prior is None else math.exp(-seconds / a.drift_seconds)
    stayed, sessions, rows = kept * same, prior_of_s(grid, a), []
    for row, weight, typical in zip(belief.rows, mine, prior_of_x(grid, prior, a), strict=True):
        new = (1.0 - same) * typical + (same / total - stayed) * weight  # of which the session is not known
        rows.append(array("d", [stayed * p + new * s for p, s in zip(row, sessions, strict=True)]))
    return Belief(grid, tuple(rows))


def seen(belief: Belief, likelihood: Sequence[float]) -> Belief:
    """The belief after a run that says so of each x + s, up to a factor."""
    width = 2 * belief.grid.s_count
    return Belief(
        belief.grid,
        tuple(array("d", map(mul, row, likelihood[i : i + width : 2])) for i, row in enumerate(belief.rows)),
    )


def spread(rows: Sequence[Sequence[float]], length: int) -> list[float]:
    """The probability of each x + s, as far as these rows go."""
    sums = [0.0] * length
    for i, row in enumerate(rows):
        end = i + 2 * len(row) - 1
        sums[i:end:2] = map(add, sums[i:end:2], row)
    return sums


def _columns(rows: Rows) -> list[float]:
    totals = [0.0] * len(rows[0])
    for row in rows:
        totals = list(map(add, totals, row))
    return totals
