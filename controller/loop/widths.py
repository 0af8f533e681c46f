"""Which widths of the work ran out of memory: on a machine, and what that says of others with as little. Pure.

One machine may have less than it tells, or lose some to its neighbours. So a width counts elsewhere only while no other
machine does it with no more memory; and that not even one piece fits, which would turn away all machines with as
little, only once two have shown it. After two months all of it is tried again.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from controller.model.instance import Run, RunKind
from controller.model.reasons import Reason

FORGOTTEN = 60 * 86400.0  # seconds
ALIKE = 1.03  # memory that differs by less is as much
WITNESSES = 2  # machines, before one piece of work is held to need more than that memory

RanOut = tuple[tuple[float | None, int], ...]
"""Memory in GiB, None: not known, and a width that ran out of it. Width 0: there was no room to try even one piece."""


def ran_out_anywhere(runs: Sequence[Run], *, now: float) -> RanOut:
    """What counts on every machine. `runs`: of one shape and workload."""
    failed = [run for run in _failed(runs, now) if run.concurrency]
    well = [run for run in runs if run.rate is not None and run.kind is RunKind.BENCHMARK and run.concurrency]
    found = sorted({(run.ram_gib or 0.0, run.concurrency or 0) for run in failed})
    return tuple((gib, width) for gib, width in found if _holds(gib, width, failed, well))


def ran_out_here(runs: Iterable[Run], *, now: float) -> dict[int, RanOut]:
    """By machine: what counts on it alone, whatever others do."""
    found: defaultdict[int, set[tuple[float | None, int]]] = defaultdict(set)
    for run in _failed(runs, now):
        found[run.machine_id].add((run.ram_gib, run.concurrency or 0))
    return {machine: tuple(sorted(said, key=lambda each: (each[0] or 0.0, each[1]))) for machine, said in found.items()}


def _failed(runs: Iterable[Run], now: float) -> list[Run]:
    return [run for run in runs if run.reason is Reason.OUT_OF_MEMORY and now - run.ended_at < FORGOTTEN]


def _holds(gib: float, width: int, failed: Iterable[Run], well: Iterable[Run]) -> bool:
    """Whether a width needs more memory than that, and not only the machine that ran out of it."""
    shown = {
        run.machine_id for run in failed if (run.ram_gib or 0.0) * ALIKE >= gib and (run.concurrency or 0) <= width
    }
    done = any(
        run.machine_id not in shown and (run.ram_gib or 0.0) <= gib * ALIKE and (run.concurrency or 0) >= width
        for run in well
        if run.ram_gib is not None
    )
    return not done and (width > 1 or len(shown) >= WITNESSES)
