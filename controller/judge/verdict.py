"""From belief to verdict: keep, measure again, or replace, whichever is expected to cost least.

The caller passes runs that may be compared: of one machine and its GPUs, of one workload, all as wide and as long, and
in like company. Times are unix seconds, rates are in one unit.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from controller.judge import search
from controller.judge.assumptions import DEFAULTS, UNMEASURED, USUAL, Assumptions, Effort, Prior
from controller.judge.belief import Belief, Sample, believe, clipped, later, samples
from controller.model.instance import Costs, Decision, Run, Verdict

HOUR_S = 3600.0
TAIL = 0.05  # probability beyond each end of the interval shown
MANY = 4  # runs, of which one may be clipped without the rate being told wrong
SHOWN_DISTURBED = 0.5  # probability from which the last run is said to look disturbed


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What an instance is judged by.

    Args:
        floor: the rate that is wanted, in the runs' unit.
        recheck_seconds: how old an accepted instance's last run may get.
        prior: what machines of its shape are like.
        effort: what judging and finding take, and how long an instance is wanted.
        replace_below: P under which a successor is sought; with `accept_above`, thresholds instead of costs.
        accept_above: P from which it is only re-checked.
        offset: ln of how much more production's rate shows than a benchmark would.

    Raises:
        ValueError: the floor is not a positive, finite number.
    """

    floor: float
    recheck_seconds: float = 24 * HOUR_S
    prior: Prior = UNMEASURED
    effort: Effort = USUAL
    replace_below: float | None = None
    accept_above: float | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        if not 0.0 < self.floor < math.inf:
            raise ValueError(f"a floor is a positive number, not {self.floor}")

    @property
    def by_cost(self) -> bool:
        """Whether costs decide."""
        return self.replace_below is None and self.accept_above is None


def judge(runs: Sequence[Run], terms: Terms, *, now: float, assumptions: Assumptions = DEFAULTS) -> Verdict:
    """Say what the runs, in any order, say about `rate >= floor` at `now`, unix seconds."""
    found = samples(runs, floor=terms.floor, now=now, assumptions=assumptions, offset=terms.offset)
    if not found:
        return Verdict(decision=Decision.UNKNOWN, next_run_at=now, line="no usable run yet; next: measured")
    fair, belief, raw = _beliefs(found, terms, now, assumptions)
    last = believe(fair, now=found[-1].at, prior=terms.prior, assumptions=assumptions)
    gap = max(0.0, found[-1].at + assumptions.cooldown_seconds - now)
    costs = _costs(belief, gap, terms, assumptions) if terms.by_cost else None
    if belief.p_good < assumptions.stop_below and _confirmed(found, assumptions):
        decision = Decision.REJECTED
    else:
        decision = _by_costs(costs) if costs is not None else _by_thresholds(belief.p_good, terms, assumptions)
    wait = _wait(decision, terms, assumptions)
    verdict = Verdict(
        decision=decision,
        p_good=belief.p_good,
        rate=terms.floor * math.exp(raw.quantile(0.5)),
        low=terms.floor * math.exp(raw.quantile(TAIL)),
        high=terms.floor * math.exp(raw.quantile(1.0 - TAIL)),
        runs=len(found),
        independent=math.fsum(sample.weight for sample in found),
        disturbed=last.p_disturbed(assumptions),
        costs=costs,
        next_run_at=None if wait is None else found[-1].at + wait,
    )
    return replace(verdict, line=_line(verdict, terms.floor, wait))


def standing(runs: Sequence[Run], terms: Terms, *, now: float, assumptions: Assumptions = DEFAULTS) -> Verdict:
    """What a machine that is not rented is worth: rejected, challenged if a fresh one is better, else accepted."""
    found = samples(runs, floor=terms.floor, now=now, assumptions=assumptions, offset=terms.offset)
    _, belief, raw = _beliefs(found, terms, now, assumptions)
    decision = Decision.ACCEPTED
    if belief.p_good < assumptions.stop_below and _confirmed(found, assumptions):
        decision = Decision.REJECTED
    elif search.search(terms.prior, terms.effort, assumptions) < search.keep(1.0 - belief.p_good, terms.effort):
        decision = Decision.CHALLENGED
    rate = terms.floor * math.exp(raw.quantile(0.5))
    return Verdict(decision=decision, p_good=belief.p_good, rate=rate, runs=len(found))


def _beliefs(
    found: tuple[Sample, ...], terms: Terms, now: float, assumptions: Assumptions
) -> tuple[tuple[Sample, ...], Belief, Belief]:
    """The samples that P goes by, the belief that they make, and the one that tells the rate."""
    fair = clipped(found, terms.prior, assumptions)
    belief = believe(fair, now=now, prior=terms.prior, assumptions=assumptions)
    told = _told(found, fair)
    return fair, belief, belief if told else believe(found, now=now, prior=terms.prior, assumptions=assumptions)


def _costs(belief: Belief, gap: float, terms: Terms, assumptions: Assumptions) -> Costs:
    prior, effort = terms.prior, terms.effort
    p_bad = 1.0 - belief.p_good
    replace_ = search.search(prior, effort, assumptions)
    ahead = search.look_ahead(later(belief, gap, prior, assumptions), assumptions)
    measure = search.measure(p_bad, ahead, replace_, gap_hours=gap / HOUR_S, effort=effort)
    return Costs(keep=search.keep(p_bad, effort), measure=measure, replace=replace_)


def _told(found: Sequence[Sample], fair: Sequence[Sample]) -> bool:
    """Whether the clipped samples tell the rate too: none is, or few of many, which then are held to be disturbed."""
    clips = sum(a is not b for a, b in zip(found, fair, strict=True))
    return clips <= len(found) // MANY


def _confirmed(found: Sequence[Sample], assumptions: Assumptions) -> bool:
    """Whether there is evidence enough to reject: one slow run alone may be one bad hour."""
    hopeless = sum(sample.y < math.log(assumptions.hopeless) for sample in found)
    return math.fsum(sample.weight for sample in found) >= assumptions.confirm or hopeless >= 2  # noqa: PLR2004 - see there


def _by_costs(costs: Costs) -> Decision:
    if costs.replace < min(costs.keep, costs.measure):
        return Decision.CHALLENGED
    return Decision.ACCEPTED if costs.keep <= costs.measure else Decision.PROBATION


def _by_thresholds(p: float, terms: Terms, assumptions: Assumptions) -> Decision:
    if p < (terms.replace_below or 0.0):
        return Decision.CHALLENGED
    above = assumptions.accept_above if terms.accept_above is None else terms.accept_above
    return Decision.ACCEPTED if p >= above else Decision.PROBATION


def _wait(decision: Decision, terms: Terms, assumptions: Assumptions) -> float | None:
    """Seconds from the last run to the next; None: there is no next."""
    if decision is Decision.REJECTED:
        return None
    accepted = decision is Decision.ACCEPTED
    return terms.recheck_seconds if accepted else min(assumptions.cooldown_seconds, terms.recheck_seconds)


def _line(verdict: Verdict, floor: float, wait: float | None) -> str:
    many = f"{verdict.runs} run{'s' if verdict.runs > 1 else ''} ({verdict.independent:.1f} independent)"
    parts = [f"P(rate >= {floor:g}) = {verdict.p_good:.2f} after {many}"]
    if (costs := verdict.costs) is not None:
        parts.append(
            f"cost in h of rent: keep {costs.keep:.1f}, measure {costs.measure:.1f}, replace {costs.replace:.1f}"
        )
    parts.append(f"next: {_next(verdict.decision, wait)}")
    if (verdict.disturbed or 0.0) >= SHOWN_DISTURBED:
        parts.append(f"last run looks disturbed ({verdict.disturbed:.0%})")
    return "; ".join(parts)


def _next(decision: Decision, wait: float | None) -> str:
    if wait is None:
        return "replaced"
    again = f"measured again after {wait / HOUR_S:g} h of work"
    return f"works until a better one is found, {again}" if decision is Decision.CHALLENGED else again
