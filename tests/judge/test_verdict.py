import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.judge.verdict import Terms, judge
from controller.model.instance import Decision, Run, Verdict
from tests.judge.conftest import DAY_S, FLOOR, HOUR_S, run

WEEK = [run(66, day * 24) for day in range(8)]


def verdict(*runs: Run, now: float | None = None, replace_below: float | None = None) -> Verdict:
    at = max((one.ended_at for one in runs), default=0.0) if now is None else now
    return judge(runs, Terms(floor=FLOOR, replace_below=replace_below), now=at)


@pytest.mark.parametrize(
    ("runs", "decision"),
    [
        ([], Decision.UNKNOWN),
        ([run(None)], Decision.UNKNOWN),
        ([run(61.4)], Decision.CHALLENGED),
        ([run(46.2)], Decision.CHALLENGED),
        ([run(61.4), run(46.2, 1 / 12)], Decision.CHALLENGED),
        ([run(46.2), run(61.4, 1 / 12)], Decision.CHALLENGED),
        ([run(61.4), run(46.2, 3)], Decision.CHALLENGED),
        ([run(66)], Decision.PROBATION),
        ([run(66), run(66, 3)], Decision.PROBATION),
        ([run(66), run(66, 3), run(66, 6)], Decision.ACCEPTED),
        ([run(80)], Decision.ACCEPTED),
        ([run(46), run(46, 3), run(46, 6)], Decision.REJECTED),
        ([run(46), run(46, 1 / 12), run(46, 2 / 12)], Decision.CHALLENGED),
        ([run(28)], Decision.CHALLENGED),
        ([run(28), run(28, 1 / 12)], Decision.REJECTED),
        ([run(46), run(66, 3), run(66, 6)], Decision.PROBATION),
        ([run(46), run(70, 3), run(70, 6), run(70, 9)], Decision.ACCEPTED),
        (WEEK, Decision.ACCEPTED),
        ([*WEEK, run(46, 192)], Decision.PROBATION),
        ([*WEEK, *(run(46, 192 + 2.5 * nth) for nth in range(4))], Decision.CHALLENGED),
        ([*WEEK, *(run(46, 192 + 2.5 * nth) for nth in range(6))], Decision.REJECTED),
    ],
)
def test_decision(runs, decision):
    """One run seldom decides, close runs count as one, spaced ones decide, and a good name outlasts one bad hour."""
    assert verdict(*runs).decision is decision


def test_thresholds_decide_where_they_are_asked_for():
    """With replaceBelow or acceptAbove in the manifest, P alone decides, and no costs are shown."""
    runs = run(63.5), run(63.5, 3)
    assert verdict(*runs).decision is Decision.PROBATION
    challenged = verdict(*runs, replace_below=0.95)
    assert challenged.decision is Decision.CHALLENGED
    assert challenged.line.endswith(
        "independent); next: works until a better one is found, measured again after 2 h of work"
    )
    assert judge(runs, Terms(floor=FLOOR, accept_above=0.6), now=3 * HOUR_S).decision is Decision.ACCEPTED


def test_below_rejects_whatever_replace_below_says():
    """A confirmed slow instance is rejected, not challenged, under a high replaceBelow too."""
    assert verdict(run(46), run(46, 3), run(46, 6), replace_below=0.65).decision is Decision.REJECTED


def test_line_shows_the_numbers():
    """The line names the floor, P, the runs and what they are worth, and what is next."""
    assert verdict(run(61.4)).line == (
        "P(rate >= 59) = 0.62 after 1 run (1.0 independent); cost in h of rent: keep 18.1, measure 7.9, replace 7.3; "
        "next: works until a better one is found, measured again after 2 h of work"
    )
    assert verdict(run(61.4), run(61.4, 1 / 12)).line.startswith("P(rate >= 59) = 0.63 after 2 runs (1.1 independent);")
    assert "last run looks disturbed (" in verdict(run(70), run(70, 3), run(52, 6)).line
    assert verdict(run(46), run(46, 3)).line.endswith("next: replaced")
    assert verdict().line == "no usable run yet; next: measured"


def test_next_run():
    """Probation is measured again after the cooldown, an accepted instance at its recheck, a rejected one never."""
    assert verdict(run(66, 10)).next_run_at == 12 * HOUR_S
    assert verdict(run(61.4, 10)).next_run_at == 12 * HOUR_S
    assert verdict(run(80, 10)).next_run_at == 34 * HOUR_S
    assert verdict(run(46, 7), run(46, 10)).next_run_at is None
    assert verdict(now=5.0).next_run_at == 5.0


@pytest.mark.parametrize("rate", [math.nan, math.inf, -math.inf, 0.0, -61.4])
def test_what_is_no_rate_is_no_run(rate):
    """NaN, infinite, zero and negative rates are as if they had not been measured."""
    assert verdict(run(rate)).decision is Decision.UNKNOWN
    assert verdict(run(61.4), run(rate, 3)).p_good == verdict(run(61.4), now=3 * HOUR_S).p_good


@pytest.mark.parametrize("rate", [5e-324, 1e-300, 1e-6, 1e6, 1e308])
def test_absurd_rates_are_survived(rate):
    """A rate off by any factor gives a finite verdict on the right side."""
    said = verdict(run(rate))
    assert said.p_good is not None
    assert (said.p_good > 0.9) is (rate > FLOOR)
    assert said.rate is not None
    assert 0.0 < said.rate < math.inf


@pytest.mark.parametrize("error", [math.nan, math.inf, -1.0, 0.0, 0.001])
def test_absurd_errors_are_the_least(error):
    """A run that claims to be exact, or claims nonsense, is as exact as the best of runs and no more."""
    assert verdict(run(66, error=error)) == verdict(run(66))


def test_larger_error_says_less():
    """A run that knows itself to be unsteady moves belief less."""
    vague, exact = verdict(run(70, error=0.5)).p_good, verdict(run(70)).p_good
    assert vague is not None
    assert exact is not None
    assert 0.5 < vague < exact


def test_run_from_the_future():
    """A clock that was set back makes no run wait for its time."""
    assert verdict(run(66, 100), now=0.0) == verdict(run(66))
    assert verdict(run(66, math.nan)).decision is Decision.UNKNOWN


def test_runs_at_one_moment_count_once():
    """The same session seen twice at once is worth hardly more than one run: it shows the same session."""
    twice, once = verdict(run(66), run(66)), verdict(run(66))
    assert (twice.independent, twice.runs) == (1.0, 2)
    assert twice.p_good == pytest.approx(once.p_good, abs=0.02)


def test_ten_thousand_runs():
    """Years of runs neither overflow nor make anything certain that may change."""
    many = verdict(*(run(66, hour) for hour in range(10_000)))
    assert many.p_good is not None
    assert 0.99 < many.p_good < 1.0


@pytest.mark.parametrize("floor", [0.0, -1.0, math.nan, math.inf])
def test_absurd_floor_is_refused(floor):
    """A floor that nothing can be compared with is an error, not a verdict."""
    with pytest.raises(ValueError, match="a floor is a positive number"):
        Terms(floor=floor)


def test_old_knowledge_fades():
    """What was known months ago is worth little: P drifts back to where it began."""
    now, later, much_later = (verdict(run(80), now=days * DAY_S).p_good for days in (0, 30, 3000))
    assert now is not None
    assert later is not None
    assert now > later > 0.5
    assert much_later == pytest.approx(0.5, abs=0.001)


def test_order_of_the_list_does_not_matter():
    """Runs are taken by their times."""
    runs = [run(61, 0), run(46, 3), run(66, 6)]
    assert verdict(*runs) == verdict(*reversed(runs))


@given(st.floats(0.58, 100.0), st.floats(1.0, 10.0), st.one_of(st.none(), st.floats(0.0, 1.0)))
def test_faster_never_looks_worse(ratio, factor, error):
    """Of two single runs the faster never gives the lower P.

    Below 58 % of the floor something else may be at work than a disturbance, and P rises by some hundredths again.
    """
    slow, fast = (
        verdict(run(FLOOR * ratio, error=error)).p_good,
        verdict(run(FLOOR * ratio * factor, error=error)).p_good,
    )
    assert slow is not None
    assert fast is not None
    assert fast >= slow - 1e-9


@given(
    st.lists(st.tuples(st.floats(0.4, 2.0), st.floats(0.1, 48.0)), max_size=6),
    st.floats(1.1, 5.0),
)
def test_good_run_never_lowers_p(history, ratio):
    """Whatever was measured before, another run at least as good as all of it, and well above the floor, helps."""
    hour, runs = 0.0, []
    for one, gap in history:
        hour += gap
        runs.append(run(FLOOR * one, hour))
    good = run(FLOOR * max([ratio, *(one for one, _ in history)]), hour + 3)
    before, after = verdict(*runs, now=good.ended_at).p_good, verdict(*runs, good).p_good
    assert after is not None
    assert after >= (0.5 if before is None else before) - 1e-9


def rate_of(runs, *, floor, now) -> float:
    """The rate that a verdict shows."""
    rate = judge(runs, Terms(floor=floor), now=now).rate
    assert rate is not None
    return rate


def test_rate_is_drawn_towards_what_its_like_make():
    """A machine is believed to make what its runs showed, drawn towards what its like make; more runs, less drawn."""
    assert FLOOR < rate_of([run(66)], floor=FLOOR, now=0.0) < 66
    assert 64 < rate_of([run(66, hour) for hour in range(0, 30, 3)], floor=FLOOR, now=30 * HOUR_S) < 66


def test_floor_far_from_the_truth():
    """Where the floor is far below or above what the machine makes, the rate shown is still the machine's."""
    runs = [run(61, 0), run(61, 3)]
    for floor in (5.0, 20.0, 300.0):
        assert rate_of(runs, floor=floor, now=3 * HOUR_S) == pytest.approx(61, rel=0.08)
