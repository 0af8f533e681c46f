import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controller.judge import belief as beliefs
from controller.judge.assumptions import DEFAULTS, UNMEASURED, Effort, Prior
from controller.judge.belief import Belief, believe, clipped, fresh, samples
from controller.judge.lattice import lattice
from controller.judge.search import keep, look_ahead, measure, search
from controller.judge.verdict import Terms, judge
from controller.model.instance import Run
from tests.judge.conftest import FLOOR, run

PRIORS = st.builds(Prior, st.floats(-1.0, 1.0), st.floats(0.02, 0.4))
USUAL_HISTORIES = st.lists(st.tuples(st.floats(0.85, 1.2), st.floats(0.05, 60.0)), min_size=1, max_size=6)
ODD_PRIORS = st.builds(Prior, st.floats(-3.0, 3.0), st.floats(0.02, 1.0))
RATIOS = st.floats(0.3, 2.0)
HISTORIES = st.lists(st.tuples(RATIOS, st.floats(0.05, 60.0)), min_size=1, max_size=8)  # rate / floor, hours since
EFFORTS = st.builds(
    Effort,
    planned_hours=st.floats(0.01, 8760.0),
    run_hours=st.floats(0.05, 5.0),
    provision_hours=st.floats(0.05, 20.0),
)

some = settings(max_examples=20)  # each is a judge's day of work


def runs_of(history) -> list[Run]:
    hour, made = 0.0, []
    for ratio, gap in history:
        hour += gap
        made.append(run(FLOOR * ratio, hour))
    return made


def p_good(runs: list[Run], prior: Prior = UNMEASURED, assumptions=DEFAULTS) -> float:
    now = max(one.ended_at for one in runs)
    said = judge(runs, Terms(floor=FLOOR, prior=prior), now=now, assumptions=assumptions).p_good
    assert said is not None
    return said


def belief_of(history, prior: Prior, *, fineness: int = 1) -> Belief:
    runs = runs_of(history)
    now = runs[-1].ended_at
    found = samples(runs, floor=FLOOR, now=now, assumptions=DEFAULTS)
    fair = clipped(found, prior, DEFAULTS)
    return believe(fair, now=now, prior=prior, assumptions=DEFAULTS, fineness=fineness)


@some
@given(PRIORS, st.floats(0.05, 20.0), st.floats(1.0, 5.0))
def test_a_faster_single_run_never_lowers_p(prior, ratio, factor):
    """Whatever its like make, of two machines with one run each the faster is at least as likely fast enough."""
    assert p_good([run(FLOOR * ratio * factor)], prior) >= p_good([run(FLOOR * ratio)], prior) - 1e-9


@some
@given(HISTORIES, st.randoms(use_true_random=False), PRIORS)
def test_runs_may_be_given_in_any_order(history, random, prior):
    """A verdict goes by the runs' times, and by nothing else of their order."""
    runs = runs_of(history)
    shuffled = random.sample(runs, len(runs))
    terms = Terms(floor=FLOOR, prior=prior)
    now = runs[-1].ended_at
    assert judge(shuffled, terms, now=now) == judge(runs, terms, now=now)


@some
@given(st.lists(RATIOS, min_size=2, max_size=6), st.randoms(use_true_random=False))
def test_without_drift_the_order_of_distant_runs_says_nothing(ratios, random):
    """Where machines do not change, it does not matter which of several runs, days apart, came first."""
    steady = replace(DEFAULTS, drift_seconds=math.inf)
    one = runs_of([(ratio, 48.0) for ratio in ratios])
    other = runs_of([(ratio, 48.0) for ratio in random.sample(ratios, len(ratios))])
    assert p_good(other, assumptions=steady) == pytest.approx(p_good(one, assumptions=steady), abs=1e-6)


@some
@given(HISTORIES, PRIORS)
def test_a_replay_comes_to_what_was_believed_all_along(history, prior):
    """Belief is a function of the runs: judged one by one as they came or all at once, it is the same."""
    runs = runs_of(history)
    along = [p_good(runs[: count + 1], prior) for count in range(len(runs))]
    beliefs._known.clear()
    assert p_good(runs, prior) == along[-1]


@some
@given(USUAL_HISTORIES, st.builds(Prior, st.floats(-0.2, 0.2), st.floats(0.03, 0.2)))
def test_a_finer_lattice_changes_little(history, prior):
    """With half the step between its points, belief comes to the same within one and a half hundredths."""
    coarse, fine = belief_of(history, prior), belief_of(history, prior, fineness=2)
    assert fine.grid.step == pytest.approx(coarse.grid.step / 2)
    assert coarse.p_good == pytest.approx(fine.p_good, abs=0.015)


@some
@given(HISTORIES, PRIORS)
def test_a_finer_lattice_changes_little_of_odd_histories_too(history, prior):
    """Where runs contradict each other, as no story of sessions explains, it comes to the same within 0.03."""
    assert belief_of(history, prior).p_good == pytest.approx(belief_of(history, prior, fineness=2).p_good, abs=0.03)


@some
@given(HISTORIES, ODD_PRIORS)
def test_quantiles_rise(history, prior):
    """The larger the share, the higher the quantile; the interval shown has the rate in it."""
    belief = belief_of(history, prior)
    found = [belief.quantile(share / 20) for share in range(1, 20)]
    assert all(low <= high for low, high in pairwise(found))
    runs = runs_of(history)
    said = judge(runs, Terms(floor=FLOOR, prior=prior), now=runs[-1].ended_at)
    assert said.low is not None
    assert said.rate is not None
    assert said.high is not None
    assert 0.0 < said.low <= said.rate <= said.high < math.inf


@some
@given(HISTORIES, ODD_PRIORS)
def test_what_another_run_may_show_is_everything_it_may_show(history, prior):
    """The probabilities of a run's outcomes sum to 1, and those of being too slow to the chance of being so."""
    belief = belief_of(history, prior)
    ahead = look_ahead(belief, DEFAULTS)
    assert math.fsum(ahead.p) == pytest.approx(1.0, abs=1e-9)
    assert math.fsum(ahead.p_bad) == pytest.approx(1.0 - belief.p_good, abs=1e-9)
    assert all(0.0 <= bad <= p + 1e-12 for p, bad in zip(ahead.p, ahead.p_bad, strict=True))


@some
@given(HISTORIES, ODD_PRIORS, EFFORTS)
def test_costs_are_finite_whatever_is_asked(history, prior, effort):
    """For an hour or a year, with machines twenty times too slow or too fast, no cost is negative or without end."""
    runs = runs_of(history)
    costs = judge(runs, Terms(floor=FLOOR, prior=prior, effort=effort), now=runs[-1].ended_at).costs
    assert costs is not None
    assert all(0.0 <= cost < math.inf for cost in (costs.keep, costs.measure, costs.replace))


@some
@given(HISTORIES, PRIORS, EFFORTS, st.floats(0.0, 2.0))
def test_measuring_is_never_dearer_than_replacing_and_the_run(history, prior, effort, gap):
    """No margin may be asked of replacing: measuring is bounded by it, and the two would be weighed for ever."""
    belief = belief_of(history, prior)
    p_bad, worth = 1.0 - belief.p_good, search(prior, effort, DEFAULTS)
    cost = measure(p_bad, look_ahead(belief, DEFAULTS), worth, gap_hours=gap, effort=effort)
    assert cost <= worth + effort.run_hours + gap * p_bad + 1e-9
    assert cost <= keep(p_bad, effort) + effort.run_hours + max(0.0, gap - effort.planned_hours) + 1e-9


@pytest.mark.parametrize(("planned", "sd"), [(0.01, 0.1), (48.0, 0.02), (48.0, 0.1), (720.0, 0.3)])
def test_finding_one_takes_less_where_machines_are_faster(planned, sd):
    """The faster the typical machine, the fewer have to be tried."""
    effort = Effort(planned_hours=planned)
    found = [search(Prior(mean / 10, sd), effort, DEFAULTS) for mean in range(-10, 11)]
    assert all(slower >= faster - 1e-6 for slower, faster in pairwise(found))


@some
@given(PRIORS, st.floats(0.05, 5.0), st.floats(1.05, 4.0))
def test_finding_one_takes_more_where_renting_takes_longer(prior, hours, factor):
    """What must be waited for with each rental is paid for with each rental."""
    quick, slow = Effort(provision_hours=hours), Effort(provision_hours=hours * factor)
    assert search(prior, slow, DEFAULTS) > search(prior, quick, DEFAULTS)


@some
@given(PRIORS, st.floats(0.01, 2000.0), st.floats(1.05, 4.0))
def test_more_is_spent_on_what_is_wanted_for_longer(prior, hours, factor):
    """The longer an instance is to work, the more it is worth to look for a good one."""
    short, long = Effort(planned_hours=hours), Effort(planned_hours=hours * factor)
    assert search(prior, long, DEFAULTS) >= search(prior, short, DEFAULTS) - 1e-6


def test_the_belief_of_nothing_is_the_prior():
    """A machine never measured is as likely fast enough as its like are."""
    for mean in (-0.2, 0.0, 0.2):
        prior = Prior(mean, 0.1)
        start = fresh(lattice((), mean), prior, DEFAULTS)
        share = 0.98 * 0.5 * math.erfc(-mean / 0.1 / math.sqrt(2)) + 0.02 * 0.5 * math.erfc(-mean / 0.6 / math.sqrt(2))
        assert start.p_good == pytest.approx(share, abs=0.015)
