"""Which runs speak for an instance and for a machine, and what they say: the ledger's runs, put before the judge.

Pure.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from functools import lru_cache
from statistics import fmean

from controller.judge.verdict import judge
from controller.model.fleet import Fleet, Shape
from controller.model.instance import Decision, Instance, Run, Verdict

SOON = 3600.0  # seconds; belief ages over days, so that verdicts within such a span are one and the same
PRIOR_MACHINES = 3  # the floor counts as much as so many measured machines, for a machine never measured


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
