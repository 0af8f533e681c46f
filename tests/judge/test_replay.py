from random import Random

import pytest

from controller.judge.assumptions import DEFAULTS, UNMEASURED, Prior
from controller.judge.belief import Sample, samples
from controller.judge.calibration import Calibration, calibrate
from controller.judge.verdict import Terms, judge
from tests.judge.conftest import FLOOR, HOUR_S, run
from tests.judge.test_calibration import lognormal

GAP = 12.0  # hours: sessions apart


def shown(*rates: float) -> tuple[Sample, ...]:
    """A machine's runs, far apart."""
    runs = [run(rate, nth * GAP) for nth, rate in enumerate(rates)]
    return samples(runs, floor=FLOOR, now=runs[-1].ended_at, assumptions=DEFAULTS)


def counted(*histories: tuple[Sample, ...], prior: Prior = UNMEASURED) -> Calibration:
    return calibrate([(history, prior) for history in histories])


def test_what_was_thought_is_what_the_judge_said():
    """A P that is counted is the one that the judge gave after that run."""
    rates = (61.0, 64.0, 66.0, 65.0, 66.0)
    found = counted(shown(*rates))
    given = [judge([run(r, n * GAP) for n, r in enumerate(rates[: k + 1])], Terms(floor=FLOOR), now=k * GAP * HOUR_S)
             for k in range(len(rates))]  # fmt: skip
    first = given[0].p_good
    assert first is not None
    (band,) = (band for band in found.bands if band.low <= first < band.high)
    assert band.expected == pytest.approx(first)
    assert (band.machines, band.good) == (1, 1)


def test_a_machine_counts_once_in_a_band():
    """Ten verdicts of 0.9 and more on one machine are one machine that was given so much."""
    found = counted(shown(*[72.0] * 10))
    assert [band.machines for band in found.bands] == [0, 0, 0, 0, 1]


def test_what_is_not_known_yet_is_left_out():
    """A machine with one run, and no plain end, is not held against the judge."""
    found = counted(shown(61.4), shown(61.4, 64, 66, 65, 66))
    assert (found.machines, found.left_out) == (2, 1)
    assert sum(band.machines for band in found.bands if band.low == 0.6) == 1
    assert "no machine's long run" in counted(shown(61.4)).verdict
    assert counted().machines == 0


def test_too_sure_is_said():
    """Where machines that looked good turn out slow, P is called too sure; where they turn out good, it is not."""
    fell = counted(*[shown(62.5, 50, 51, 52, 50)] * 12)
    assert "too sure: 0 of" in fell.verdict
    assert "about right" in counted(*[shown(68.0, 66, 67, 68, 66)] * 12).verdict


def test_the_judge_stands_its_own_test():
    """Over a plausible market's machines, measured six times each, P is not called too sure."""
    rng = Random(43)
    histories = []
    for _ in range(150):
        true = 61 * lognormal(rng, 0.08)
        histories.append(shown(*(true * lognormal(rng, 0.085) for _ in range(6))))
    found = counted(*histories)
    assert "too sure" not in found.verdict
    assert sum(band.machines for band in found.bands) > 100
