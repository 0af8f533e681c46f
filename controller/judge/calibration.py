"""How far P may be trusted: whether machines that were given a P turned out to be good as often as it says.

What a machine is, is told by all its runs; what was thought of it earlier, by the runs up to then. Both go by the judge
of today, so that this tells of the assumptions and not of how they changed.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from controller.judge.assumptions import DEFAULTS, Assumptions, Prior
from controller.judge.belief import Sample, believe, clipped

TENTHS = (5, 6, 7, 8, 9)  # of P, from which bands begin
SETTLED_RUNS = 3.0  # independent ones after a verdict, from which the rest of a history says what the machine is
SETTLED_P = 0.9  # and so does this probability at its end, or one as far from 0.5 below
EVEN = 0.5  # and from this one on, a machine turned out good
PLAINLY = 2.0  # standard errors


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The machines that were given a P between `low` and `high`, each counted once."""

    low: float
    high: float
    machines: int = 0
    good: int = 0
    expected: float = 0.0  # the sum of their Ps
    variance: float = 0.0  # of the number of good ones, if the Ps are right


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """What became of the machines by the P they were given. `left_out`: those of which that is not known yet."""

    bands: tuple[Band, ...]
    machines: int
    left_out: int

    @property
    def verdict(self) -> str:
        """Whether P is too sure, in one line."""
        count = sum(band.machines for band in self.bands)
        if not count:
            return "no machine's long run tells yet whether P is right"
        good, expected = sum(b.good for b in self.bands), math.fsum(b.expected for b in self.bands)
        error = math.sqrt(math.fsum(b.variance for b in self.bands))
        told = f"{good} of {count} turned out good, {expected:.1f} were expected"
        if abs(good - expected) <= PLAINLY * error:
            return f"P is about right, as far as so few tell: {told}, give or take {PLAINLY * error:.1f}"
        return f"P is too {'sure' if good < expected else 'cautious'}: {told}, give or take {PLAINLY * error:.1f}"


def calibrate(
    histories: Iterable[tuple[Sequence[Sample], Prior]], *, assumptions: Assumptions = DEFAULTS
) -> Calibration:
    """Replay the histories, and count what became of the machines that were given each P for the first time.

    Args:
        histories: of each machine what its runs show, oldest first, and what is expected of its like.
        assumptions: what the judge takes for granted.
    """
    bands = {tenth: Band(low=tenth / 10, high=(tenth + 1) / 10) for tenth in TENTHS}
    machines = left_out = 0
    for shown, prior in histories:
        given = _replayed(tuple(shown), prior, assumptions)
        final = given[-1].p if given else 0.0
        settled = final >= SETTLED_P or final <= 1.0 - SETTLED_P
        firsts = {_tenth(each.p): each for each in reversed(given) if _tenth(each.p) in bands}
        told = {tenth: each for tenth, each in firsts.items() if settled or each.after >= SETTLED_RUNS}
        for tenth, each in told.items():
            bands[tenth] = _counted(bands[tenth], each.p, good=final >= EVEN)
        machines += bool(firsts)
        left_out += bool(firsts) and not told
    return Calibration(bands=tuple(bands.values()), machines=machines, left_out=left_out)


@dataclass(frozen=True, slots=True)
class _Given:
    """What was thought after a run. `after`: independent runs made since."""

    p: float
    after: float


def _replayed(shown: tuple[Sample, ...], prior: Prior, assumptions: Assumptions) -> list[_Given]:
    fair = clipped(shown, prior, assumptions)
    after = math.fsum(sample.weight for sample in shown)
    given: list[_Given] = []
    for count, sample in enumerate(fair, start=1):
        after -= sample.weight
        belief = believe(fair[:count], now=sample.at, prior=prior, assumptions=assumptions)
        given.append(_Given(belief.p_good, after))
    return given


def _tenth(p: float) -> int:
    """The band that a P falls into; 1 belongs to the last."""
    return min(TENTHS[-1], int(p * 10))


def _counted(band: Band, p: float, *, good: bool) -> Band:
    return replace(
        band,
        machines=band.machines + 1,
        good=band.good + good,
        expected=band.expected + p,
        variance=band.variance + p * (1.0 - p),
    )
