"""When many machines fail or slow down at once, it is not the machines: what else it may be, and since when.

Machines are independent; what they share is the image, the command and the moment. Three signs are looked for: the same
failure on several machines, a fall of the rate on most machines since one time, and machines of a new workload that are
slower than those of the one before it.
"""

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from statistics import fmean, median

from controller.judge.assumptions import DEFAULTS
from controller.model.instance import Run
from controller.model.reasons import Reason

ALIKE = 3  # machines with one and the same failure
RECENT = 86400.0  # seconds: failures before that are over
COMPARED = 14 * 86400.0  # seconds: rates before that say nothing of a change
RUN_SD = 0.14  # ln: of one run about its machine's rate, sessions and disturbances included; where little is known
RUN_SD_WEIGHT = 10.0  # pairs of runs that it counts for beside those there are
MACHINES = 3  # with runs before and after, before a fall may be everybody's
LEAST_FALL = 0.05  # ln
MOST = 0.8  # share of the machines that must have become slower
CERTAIN = 4.0  # standard errors: times are tried until one fits, so that three would come by chance
CHANGED = 3.0  # standard errors, where there is but one time: that of the manifest's change
SHOWN = 120  # characters of a failure
APART = 4 * 3600.0  # seconds between runs of a card that are compared: closer ones saw the same session
STEP = 2 * 3600.0  # seconds between the times that are tried
ABSURD = 1.0  # ln from the middle of a machine's runs: as far as one of them counts
LATEST = 3  # runs that say how fast a machine is now

Point = tuple[float, float]  # unix seconds, ln(rate / floor)

SHARED = frozenset({Reason.BENCHMARK_FAILED, Reason.BENCHMARK_TIMEOUT, Reason.NO_RATE})


@dataclass(frozen=True, slots=True)
class Suspect:
    """What is held to be the cause instead of the machines. `since`: unix seconds."""

    reason: Reason
    since: float
    text: str  # one line that names it


def suspect(runs: Sequence[Run], *, workload: str, floors: Mapping[str, float], now: float) -> Suspect | None:
    """What the runs of a workload cast suspicion on, None if on nothing but the machines.

    Slowness matters only while it makes machines too slow: `floors` says for each shape what is fast enough.
    """
    mine = [run for run in runs if run.workload == workload]
    return (
        _failing_alike(mine, now)
        or _slower_since(mine, floors, now)
        or _slower_than_before(runs, workload, floors, now)
    )


def _failing_alike(runs: Iterable[Run], now: float) -> Suspect | None:
    last = {run.machine_id: run for run in runs if now - run.ended_at < RECENT}
    by_reason: defaultdict[Reason, list[Run]] = defaultdict(list)
    for run in last.values():
        if run.rate is None and run.reason in SHARED:
            by_reason[run.reason].append(run)
    for reason, failed in by_reason.items():
        since = min(run.started_at for run in failed)
        well = any(run.rate is not None and run.ended_at >= since for run in last.values())
        if len(failed) >= ALIKE and not well:
            text = f"{len(failed)} machines fail alike: {reason}: {failed[-1].detail[:SHOWN]}"
            return Suspect(Reason.WORKLOAD_SUSPECT, since, f"{text}; the image or a command is the suspect")
    return None


def _slower_since(runs: Sequence[Run], floors: Mapping[str, float], now: float) -> Suspect | None:
    """The time since when machines are slower than the same machines before, if there is one."""
    found: defaultdict[tuple[object, ...], list[Point]] = defaultdict(list)
    for run in _rated(runs, now):
        if run.shape in floors:
            key = run.machine_id, run.gpu_uuid, run.shape, run.kind, run.concurrency, run.count, run.neighbours
            points = found[key]
            if not points or run.started_at - points[-1][0] >= APART:
                points.append((run.started_at, math.log((run.rate or 1.0) / floors[run.shape])))
    histories: defaultdict[object, list[_History]] = defaultdict(list)
    for place, points in found.items():
        histories[place[0]].append(_History.of(points))
    slowest = sorted(h.level for several in histories.values() for h in several if len(h.ys) > 1)[:MACHINES]
    if math.fsum(slowest) >= 0.0:  # whichever machines it were, they would be fast enough now
        return None
    noise = _noise(history for several in histories.values() for history in several)
    times = sorted({math.floor(at / STEP) * STEP for points in found.values() for at, _ in points})
    falls = [(fall, time) for time in times if (fall := _fall(histories.values(), time, noise)) is not None]
    worst, time = min(falls, key=lambda each: each[0].errors, default=(NO_FALL, now))
    if worst.errors > -CERTAIN:
        return None
    text = (
        f"{worst.machines} machines are {1 - math.exp(worst.size):.0%} slower than they were, all since one time; "
        "what they share is the suspect: what the image fetches, a driver, the work itself"
    )
    return Suspect(Reason.FLEET_SHIFT, time, text)


@dataclass(frozen=True, slots=True)
class _History:
    """Comparable runs of one card, oldest first. `sums`: of the ys so far, from 0 on; `level`: where they are now."""

    times: Sequence[float]
    ys: Sequence[float]
    sums: Sequence[float]
    level: float

    @classmethod
    def of(cls, points: Sequence[Point]) -> "_History":
        ys = [y for _, y in points]
        middle = median(ys)
        fair = [max(middle - ABSURD, min(middle + ABSURD, y)) for y in ys]
        return cls([at for at, _ in points], fair, [0.0, *accumulate(fair)], median(fair[-LATEST:]))

    def change(self, time: float) -> tuple[float, float] | None:
        """How much the mean changed at a time, and what that is worth in runs; None without a run on either side."""
        before = bisect_left(self.times, time)
        after = len(self.times) - before
        if not before or not after:
            return None
        change = (self.sums[-1] - self.sums[before]) / after - self.sums[before] / before
        return change, 1.0 / (1.0 / before + 1.0 / after)


@dataclass(frozen=True, slots=True)
class _Fall:
    """How rates changed. `errors`: the change in its standard errors; `size`: ln."""

    errors: float
    size: float
    machines: int


NO_FALL = _Fall(0.0, 0.0, 0)


def _noise(histories: Iterable[_History]) -> float:
    """The standard deviation of a run, from how much each differs from the next: a fall is in few of these."""
    apart = [later - y for history in histories for y, later in pairwise(history.ys)]
    squares = math.fsum(each * each for each in apart) / 2.0
    return math.sqrt((RUN_SD_WEIGHT * RUN_SD**2 + squares) / (RUN_SD_WEIGHT + len(apart)))


def _fall(machines: Iterable[Sequence[_History]], time: float, noise: float) -> _Fall | None:
    """The change at a time; None if it is not almost everybody's, or they are fast enough now.

    A machine is one witness, however many of its cards and kinds of runs tell of it.
    """
    changes: list[tuple[float, float]] = []
    levels: list[float] = []
    for histories in machines:
        seen = [(found, history.level) for history in histories if (found := history.change(time)) is not None]
        if seen:
            changes.append((fmean(change for (change, _), _ in seen), max(weight for (_, weight), _ in seen)))
            levels.append(fmean(level for _, level in seen))
    if len(changes) < MACHINES or sum(change < 0.0 for change, _ in changes) < MOST * len(changes):
        return None
    weight = math.fsum(w for _, w in changes)
    size = math.fsum(change * w for change, w in changes) / weight
    if size > -LEAST_FALL or fmean(levels) >= 0.0:
        return None
    return _Fall(size * math.sqrt(weight) / noise, size, len(changes))


def _slower_than_before(runs: Sequence[Run], workload: str, floors: Mapping[str, float], now: float) -> Suspect | None:
    """Whether the machines of this workload are slower than those of the one before it."""
    rated = _rated(runs, now)
    for shape, floor in floors.items():
        mine = [run for run in rated if run.shape == shape and run.workload == workload]
        unit = mine[-1].unit if mine else ""
        since = min((run.started_at for run in mine), default=now)
        fleets = {run.fleet for run in mine}  # another fleet's work may be another kind of work
        others = [
            r
            for r in rated
            if (r.shape, r.unit) == (shape, unit)
            and r.workload != workload
            and r.fleet in fleets
            and r.ended_at < since
        ]
        if not mine or not others:
            continue
        before = [r for r in others if r.workload == others[-1].workload]
        new, old = _per_machine(mine, floor), _per_machine(before, floor)
        if len(new) < MACHINES or len(old) < MACHINES or fmean(new) >= 0.0:
            continue
        error = math.hypot(DEFAULTS.sd, RUN_SD) * math.sqrt(1.0 / len(new) + 1.0 / len(old))
        fall = fmean(new) - fmean(old)
        if fall < -LEAST_FALL and fall / error < -CHANGED:
            text = (
                f"{len(new)} machines with workload {workload} make {1 - math.exp(fall):.0%} less than {len(old)} "
                f"with {before[-1].workload}, the one before; the change of the manifest is the suspect"
            )
            return Suspect(Reason.FLEET_SHIFT, since, text)
    return None


def _rated(runs: Iterable[Run], now: float) -> list[Run]:
    return [run for run in runs if run.rate is not None and run.rate > 0.0 and now - run.ended_at < COMPARED]


def _per_machine(runs: Iterable[Run], floor: float) -> list[float]:
    """Each machine's ln(rate / floor), by the median of its runs."""
    rates: defaultdict[int, list[float]] = defaultdict(list)
    for run in runs:
        rates[run.machine_id].append(math.log((run.rate or floor) / floor))
    return [median(each) for each in rates.values()]
