"""What finding an instance and measuring it take: the defaults, and what the ledger says. Pure."""

import math
from collections.abc import Iterable, Sequence
from functools import lru_cache

from controller.judge.assumptions import DEFAULTS, Effort
from controller.model.instance import Instance, Run, RunKind
from controller.model.reasons import Reason

HOUR_S = 3600.0
LONGEST = 24.0  # hours: what took longer, or less than none, was timed by a clock that was set meanwhile
KNOWN = 3.0  # rentals or runs that a default counts for beside those in the ledger
ROUNDED = 10  # parts of an hour: finer, an effort would change with every rental
DECIDED = frozenset({Reason.SURPLUS, Reason.DELETED, Reason.OUTDATED, Reason.OVER_BUDGET})  # given up for no fault


def effort_of(rentals: Iterable[Instance], runs: tuple[Run, ...], *, planned_hours: float) -> Effort:
    """The effort of one shape and workload, from its rentals and its runs with a rate."""
    tried = [i for i in rentals if i.instance_id is not None and not (i.ended_at and i.reason in DECIDED)]
    hours = [(((i.prepared_at or i.ended_at or i.created_at) - i.created_at) / HOUR_S, i.prepared_at) for i in tried]
    fair = [(each, ready) for each, ready in hours if 0.0 <= each <= LONGEST]
    took = _took(runs)
    prepared = sum(ready is not None for _, ready in fair)
    return Effort(
        planned_hours=planned_hours,
        run_hours=_drawn(took, len(took), DEFAULTS.run_hours),
        provision_hours=_drawn([each for each, _ in fair], prepared, DEFAULTS.provision_hours),
    )


@lru_cache(maxsize=8)
def _took(runs: tuple[Run, ...]) -> tuple[float, ...]:
    """Hours that each benchmark took; asked for by many fleets whose runs are the same."""
    hours = ((run.ended_at - run.started_at) / HOUR_S for run in runs if run.kind is RunKind.BENCHMARK)
    return tuple(each for each in hours if 0.0 <= each <= LONGEST)


def _drawn(hours: Sequence[float], count: int, default: float) -> float:
    """Hours each of `count` things took, drawn towards the default."""
    mean = (KNOWN * default + math.fsum(hours)) / (KNOWN + count)
    return max(1, round(mean * ROUNDED)) / ROUNDED
