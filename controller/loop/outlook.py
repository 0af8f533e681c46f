"""What the next run would change: rates it may show are put before the judge, as if they had been measured."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

from controller.loop.case import HOUR_S, Case
from controller.loop.evidence import soon
from controller.loop.learned import newest
from controller.model.instance import Decision, Instance, Run
from controller.model.reasons import Reason

SLOWEST, FASTEST = 0.4, 1.6  # of the floor: rates beyond are decided like these
TRIED = 40  # rates between them; what holds for less than a step of theirs may be missed
EXACT = 0.0005  # relative: how near to its place a border is found


@dataclass(frozen=True, slots=True)
class Band:
    """Rates that lead to one decision: from `low`, None for any below, to under `high`, None for any above."""

    low: float | None
    high: float | None
    decision: Decision


def outlook(case: Case, instance: Instance, *, neighbours: int, at: float) -> tuple[Band, ...]:
    """What is decided after a benchmark that ends at `at`, unix seconds, by what it shows; slowest first.

    By what is known of its like now: what the run itself adds to that is left out.
    """
    floor = case.shape.min_rate
    then = replace(case, now=soon(at))
    prior = case.learned.prior_of(case.evidence(instance, neighbours=neighbours))

    def decided(rate: float) -> Decision:
        runs = (*case.runs, _supposed(case, instance, neighbours, at, rate))
        evidence = replace(then, runs=runs).evidence(instance, neighbours=neighbours)
        return then.judged(evidence, prior).decision

    return bands(decided, low=SLOWEST * floor, high=FASTEST * floor)


def bands(decided: Callable[[float], Decision], *, low: float, high: float) -> tuple[Band, ...]:
    """The bands of rates by their decision; they need not be in the order of the decisions."""
    step = (high / low) ** (1.0 / (TRIED - 1))
    tried = [(rate, decided(rate)) for rate in (low * step**nth for nth in range(TRIED))]
    found = [Band(None, None, tried[0][1])]
    for (slower, before), (faster, after) in pairwise(tried):
        if before is not after:
            border = _border(decided, slower, faster, before)
            found[-1] = replace(found[-1], high=border)
            found.append(Band(border, None, after))
    return tuple(found)


def _border(decided: Callable[[float], Decision], slower: float, faster: float, before: Decision) -> float:
    while faster / slower > 1.0 + EXACT:
        middle = math.sqrt(slower * faster)
        slower, faster = (middle, faster) if decided(middle) is before else (slower, middle)
    return faster


def _supposed(case: Case, instance: Instance, neighbours: int, at: float, rate: float) -> Run:
    """A benchmark that shows a rate, else alike those before it."""
    own = case.evidence(instance, neighbours=neighbours)
    rated = own or tuple(run for run in case.runs if run.rate is not None)
    like = newest(rated) if rated else None
    return Run(
        id="supposed",
        nonce=instance.nonce,
        fleet=instance.fleet,
        machine_id=instance.machine_id,
        shape=instance.shape,
        workload=instance.workload,
        started_at=at - case.effort.run_hours * HOUR_S,
        ended_at=at,
        reason=Reason.MEASURED,
        rate=rate,
        error=like.error if like is not None else None,
        count=like.count if like is not None else None,
        concurrency=like.concurrency if like is not None else None,
        gpu_uuid=own[-1].gpu_uuid if own else "",
        gpu_fraction=instance.gpu_fraction if not own else own[-1].gpu_fraction,
        neighbours=neighbours,
    )
