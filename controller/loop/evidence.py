"""Which runs speak for an instance and for a machine, and what they say: the ledger's runs, put before the judge.

Pure.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from statistics import fmean

from controller.judge.verdict import judge
from controller.model.fleet import Fleet, Shape
from controller.model.instance import Decision, Instance, Run, Search, Verdict

SOON = 3600.0  # seconds; belief ages over days, so that verdicts within such a span are one and the same
PRIOR_MACHINES = 3  # the floor counts as much as so many measured machines, for a machine never measured


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """What a fleet's evidence comes to. Keys: an instance's nonce; a machine's id and a shape; a shape."""

    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    failed_runs: Mapping[str, Run] = field(default_factory=dict)
    expected: Mapping[tuple[int, str], float] = field(default_factory=dict)
    typical: Mapping[str, float] = field(default_factory=dict)
    slow: frozenset[tuple[int, str]] = frozenset()
    doubted: frozenset[tuple[int, str]] = frozenset()
    search: Mapping[str, Search] = field(default_factory=dict)


def weigh(
    fleet: Fleet, instances: Sequence[Instance], runs: Sequence[Run], *, now: float, known_slow: float
) -> Weighed:
    """Lay all that was measured before the judge.

    Args:
        fleet: whose floors count.
        instances: all in the ledger, of every fleet, gone or not.
        runs: all in the ledger, oldest first.
        now: unix seconds.
        known_slow: seconds after its last run that a machine found too slow is remembered for.
    """
    mine = [i for i in instances if i.fleet == fleet.name and i.billable]
    shapes = {shape.key: shape for shape in fleet.spec.shapes}
    other = fleet.spec.shapes[0]  # what a removed shape still does counts until it is replaced
    of_machine: defaultdict[int, list[Run]] = defaultdict(list)
    for run in runs:
        of_machine[run.machine_id].append(run)
    known = machines(runs, fleet, now=now)
    recent = {(run.machine_id, run.shape) for run in runs if now - run.ended_at < known_slow}
    return Weighed(
        verdicts={
            i.nonce: verdict(i, of_machine[i.machine_id], fleet, shapes.get(i.shape, other), now=now) for i in mine
        },
        failed_runs={i.nonce: last for i in mine if (last := failed(i, of_machine[i.machine_id])) is not None},
        expected={key: rate for key, (rate, _) in known.items()},
        typical=typical(fleet, known),
        doubted=frozenset(key for key, (_, said) in known.items() if said is Decision.PROBATION),
        slow=frozenset(k for k, (_, said) in known.items() if said is Decision.REJECTED and k in recent),
    )


def verdict(instance: Instance, runs: Iterable[Run], fleet: Fleet, shape: Shape, *, now: float) -> Verdict:
    """What the runs of an instance, and of its GPUs in earlier rentals, say of it."""
    judgement = fleet.spec.judgement
    recheck = fleet.spec.benchmark.recheck_hours * 3600
    evidence = tuple(_of_instance(instance, runs))
    return _judged(evidence, shape.min_rate, recheck, _soon(now), (judgement.replace_below, judgement.accept_above))


def failed(instance: Instance, runs: Iterable[Run]) -> Run | None:
    """The instance's last run, if it gave no rate."""
    last = max((run for run in runs if run.nonce == instance.nonce), key=lambda run: run.ended_at, default=None)
    return last if last is not None and last.rate is None else None


def machines(runs: Iterable[Run], fleet: Fleet, *, now: float) -> dict[tuple[int, str], tuple[float, Decision]]:
    """By machine and shape: the rate to expect of it, and what its runs say."""
    workload = fleet.spec.workload()
    grouped: defaultdict[tuple[int, str], list[Run]] = defaultdict(list)
    for run in runs:
        if run.workload == workload and run.rate is not None:
            grouped[run.machine_id, run.shape].append(run)
    shapes = {shape.key: shape for shape in fleet.spec.shapes}
    found = {}
    for (machine, key), group in sorted(grouped.items()):
        if key in shapes:
            floor = shapes[key].min_rate
            alike = tuple(_alike(group))
            said = _judged(alike, floor, fleet.spec.benchmark.recheck_hours * 3600, _soon(now), (None, None))
            found[machine, key] = (said.rate if said.rate is not None else floor, said.decision)
    return found


def typical(fleet: Fleet, known: dict[tuple[int, str], tuple[float, Decision]]) -> dict[str, float]:
    """By shape: what to expect of a machine never measured.

    Slow ones count too, or the rest would look better than they are.
    """
    return {
        shape.key: fmean(
            [shape.min_rate] * PRIOR_MACHINES + [rate for (_, key), (rate, _) in known.items() if key == shape.key]
        )
        for shape in fleet.spec.shapes
    }


def _soon(now: float) -> float:
    return math.ceil(now / SOON) * SOON


@lru_cache(maxsize=2048)
def _judged(
    runs: tuple[Run, ...], floor: float, recheck: float, now: float, thresholds: tuple[float | None, float | None]
) -> Verdict:
    """A verdict is a pure function of its evidence, and asked for at each pass."""
    replace_below, accept_above = thresholds
    return judge(
        runs, floor=floor, now=now, recheck_seconds=recheck, replace_below=replace_below, accept_above=accept_above
    )


def _of_instance(instance: Instance, runs: Iterable[Run]) -> list[Run]:
    usable = [
        run
        for run in runs
        if run.workload == instance.workload and run.shape == instance.shape and run.rate is not None
    ]
    own = [run for run in usable if run.nonce == instance.nonce]
    if not own:
        return []
    cards = {run.gpu_uuid for run in own if run.gpu_uuid}
    same_cards = [run for run in usable if run.gpu_uuid in cards and run.nonce != instance.nonce]
    return _alike([*same_cards, *own])


def _alike(runs: list[Run]) -> list[Run]:
    """Runs that may be compared with the newest: as many pieces of work, as many at once."""
    newest = max(runs, key=lambda run: run.ended_at)
    alike = [run for run in runs if (run.count, run.concurrency) == (newest.count, newest.concurrency)]
    return sorted(alike, key=lambda run: run.ended_at)
