from statistics import fmean

import pytest

from bench import tally
from bench.contenders import HIGHEST, ORACLE, OURS, Contender
from bench.score import Score, score
from bench.world import Nature, market

WORLDS = range(1, 11)
SLOTS = 4
HOURS = 72.0


def played(contender: Contender) -> list[Score]:
    """Three days of a small fleet in each of some worlds: a small part of what bench/policies plays."""
    return [score(contender.executor(market(Nature(), seed), SLOTS).play(HOURS), slots=SLOTS) for seed in WORLDS]


@pytest.fixture(scope="module")
def ours() -> list[Score]:
    return played(OURS)


def test_good_proofs_come_cheaper_than_by_the_highest_run(ours: list[Score]):
    """Where a minimum rate is asked for, the judge's machines cost clearly less than those kept for their best run."""
    assert fmean(s.week.per_good for s in ours) < 0.9 * fmean(s.week.per_good for s in played(HIGHEST))


def test_good_proofs_come_almost_as_cheap_as_by_the_truth(ours: list[Score]):
    """An oracle that knows each machine's rate after one run is not far off."""
    assert tally.against(ours, played(ORACLE)).value < 18


def test_few_hours_go_to_bad_machines(ours: list[Score]):
    """Most of a market's slow third is turned down in the first day: little of three days' hours goes to it."""
    assert tally.bad(ours).value < 10


def test_p_does_not_promise_too_much(ours: list[Score]):
    """In no tenth of P do fewer machines turn out good than was stated, but by chance."""
    for tenth in tally.calibration(ours):
        assert tenth.over <= 3 + 100 * tenth.good.give, tenth
