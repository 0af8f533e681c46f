"""From belief to verdict: keep, measure again, or replace. Called by the loop for each admitted or measured instance.

The caller passes the runs of one instance, or of earlier rentals of the same machine and GPUs, all made with one
workload and concurrency; runs with another are not comparable. Times are unix seconds, rates are in one unit.
"""

import math
from collections.abc import Sequence

from controller.judge.belief import DEFAULTS, Assumptions, Sample, believe, samples
from controller.model.instance import Decision, Run, Verdict

HOUR_S = 3600.0


def judge(
    runs: Sequence[Run],
    *,
    floor: float,
    now: float,
    recheck_seconds: float,
    assumptions: Assumptions = DEFAULTS,
    replace_below: float | None = None,
    accept_above: float | None = None,
) -> Verdict:
    """Say what the runs say about `rate >= floor`.

    `replace_below`: P under which a successor is sought while the instance works on; None: never.
    `accept_above`: P from which it is only re-checked, every `recheck_seconds`; None: the assumptions' own.

    Raises:
        ValueError: the floor is not a positive, finite number.
    """
    found = _samples(runs, floor=floor, now=now, assumptions=assumptions)
    if not found:
        return Verdict(decision=Decision.UNKNOWN, next_run_at=now, line="no usable run yet; next: measured")
    p_good = believe(found, now=now, assumptions=assumptions, clipped=True).p_good
    independent = math.fsum(sample.weight for sample in found)
    decision = _decide(
        p_good,
        accept_above=assumptions.accept_above if accept_above is None else accept_above,
        replace_below=replace_below or 0.0,
        reject_below=assumptions.reject_below if _confirmed(found, independent, assumptions) else 0.0,
    )
    wait = _wait(decision, recheck_seconds=recheck_seconds, cooldown_seconds=assumptions.cooldown_seconds)
    return Verdict(
        decision=decision,
        p_good=p_good,
        rate=_rate(found, floor=floor, now=now, assumptions=assumptions),
        runs=len(found),
        independent=independent,
        next_run_at=None if wait is None else found[-1].at + wait,
        line=f"P(rate >= {floor:g}) = {p_good:.2f} after {len(found)} run{'s' if len(found) > 1 else ''} "
        f"({independent:.1f} independent); next: {_next(decision, wait)}",
    )


def _samples(runs: Sequence[Run], *, floor: float, now: float, assumptions: Assumptions) -> list[Sample]:
    if not 0.0 < floor < math.inf:
        raise ValueError(f"a floor is a positive number, not {floor}")
    return samples(runs, floor=floor, now=now, assumptions=assumptions)


def _rate(found: Sequence[Sample], *, floor: float, now: float, assumptions: Assumptions) -> float:
    return floor * math.exp(believe(found, now=now, assumptions=assumptions, clipped=False).median)


def _confirmed(found: Sequence[Sample], independent: float, assumptions: Assumptions) -> bool:
    """Whether there is evidence enough to reject: one slow run alone may be one bad hour."""
    hopeless = sum(sample.y < math.log(assumptions.hopeless) for sample in found)
    return independent >= assumptions.confirm or hopeless >= 2  # noqa: PLR2004 - see Assumptions.hopeless


def _decide(p_good: float, *, accept_above: float, replace_below: float, reject_below: float) -> Decision:
    if p_good < reject_below:
        return Decision.REJECTED
    if p_good < replace_below:
        return Decision.CHALLENGED
    return Decision.ACCEPTED if p_good >= accept_above else Decision.PROBATION


def _wait(decision: Decision, *, recheck_seconds: float, cooldown_seconds: float) -> float | None:
    if decision is Decision.REJECTED:
        return None
    return recheck_seconds if decision is Decision.ACCEPTED else min(cooldown_seconds, recheck_seconds)


def _next(decision: Decision, wait: float | None) -> str:
    if wait is None:
        return "replaced"
    again = f"measured again after {wait / HOUR_S:g} h of work"
    return f"works until a better one is found, {again}" if decision is Decision.CHALLENGED else again
