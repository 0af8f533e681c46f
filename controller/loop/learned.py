"""What all runs of one shape and workload say of its machines, worked out once for all fleets that ask. Pure.

Runs may be compared if they are of one workload and shape, as wide and as long, on a whole machine or a part of one,
and in like company: an instance that had its machine to itself says little of two that share it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import fmean, median, stdev

from controller.judge.assumptions import Assumptions, Prior
from controller.judge.belief import Sample, samples
from controller.judge.prior import learn
from controller.model.instance import Run, RunKind

LEARNED_FROM = 60 * 86400.0  # seconds: machines measured before that say nothing of the next one
OFFSET_MACHINES = 3  # that have both a benchmark and production's rate, before the two are told apart
LEAST_OFFSET = 0.15  # ln: chance and selection make less
SURE = 2.0  # standard errors
OFFSET_STEP = 0.04  # ln
TOGETHER = 86400.0  # seconds between a benchmark and production's rate that are still compared

Class = tuple[int | None, int | None, bool]  # runs' count and width, and whether on a part of a machine
Card = tuple[int, str]  # machine, and GPUs by their ids, or a rental


@lru_cache(maxsize=8)
def learned(runs: tuple[Run, ...], floor: float, now: float, assumptions: Assumptions) -> "Learned":
    """What these runs say; the same object for the same runs, for as long as few others ask."""
    return Learned(runs, floor, now, assumptions)


@dataclass(frozen=True)
class Learned:
    """What runs of one shape and workload, with a rate or without, oldest first, say of machines held to one floor."""

    runs: tuple[Run, ...]
    floor: float
    now: float
    assumptions: Assumptions

    @cached_property
    def prior(self) -> Prior:
        """What to expect of a machine never measured: as most of those that were."""
        classes = Counter(class_of(newest(runs)) for runs in self.histories.values())
        return self._priors[max(classes, key=lambda c: classes[c])] if classes else self.unmeasured

    def prior_of(self, runs: Sequence[Run]) -> Prior:
        """What to expect of a machine measured like these."""
        return self._priors.get(class_of(newest(runs)), self.unmeasured) if runs else self.prior

    @property
    def unmeasured(self) -> Prior:
        """What to expect while nothing is known."""
        return Prior(self.assumptions.mean, self.assumptions.sd)

    @cached_property
    def rated(self) -> tuple[Run, ...]:
        """The usable runs."""
        return tuple(run for run in self.runs if run.rate is not None)

    @cached_property
    def of(self) -> dict[str, list[Run]]:
        """The usable runs by rental, and by card."""
        found: defaultdict[str, list[Run]] = defaultdict(list)
        for run in self.rated:
            for name in (run.nonce, run.gpu_uuid):
                found[name].append(run)
        return dict(found)

    @cached_property
    def histories(self) -> dict[Card, Sequence[Run]]:
        """The usable runs of each card, had it to itself if it ever was: of GPUs by their ids, else of a rental."""
        found: defaultdict[Card, list[Run]] = defaultdict(list)
        for run in self.rated:
            if self.now - run.ended_at < LEARNED_FROM:
                found[run.machine_id, run.gpu_uuid or run.nonce].append(run)
        return {card: alone(runs) for card, runs in found.items()}

    @cached_property
    def comparable(self) -> dict[Card, tuple[Run, ...]]:
        """Of each card's usable runs those that may be compared with the newest, oldest first."""
        return {card: alike(runs) for card, runs in self.histories.items()}

    @property
    def learned_from(self) -> tuple[tuple[tuple[Sample, ...], Prior], ...]:
        """Of each card that was measured: what its runs show, and what is expected of its like."""
        return tuple((found, self._priors[key]) for key, histories in self._shown.items() for found in histories)

    @cached_property
    def _priors(self) -> dict[Class, Prior]:
        return {key: learn(histories, self.assumptions) for key, histories in self._shown.items()}

    @cached_property
    def _shown(self) -> dict[Class, list[tuple[Sample, ...]]]:
        """By class: what each card's runs show."""
        grouped: defaultdict[Class, list[tuple[Sample, ...]]] = defaultdict(list)
        for card, runs in self.histories.items():
            found = _samples(self.comparable[card], self.floor, self.offset, self.assumptions)
            grouped[class_of(newest(runs))].append(found)
        return dict(grouped)

    @cached_property
    def offset(self) -> float:
        """Ln of how much more production shows than the benchmark; 0 while that may be chance.

        Machines that were kept for a lucky benchmark show a little less later, so that a little says nothing.
        """
        apart = []
        for runs in self.comparable.values():
            bench = [r for r in runs if r.kind is RunKind.BENCHMARK]
            read = [r for r in runs if r.kind is RunKind.PRODUCTION]
            near = [r for r in read if any(abs(r.ended_at - b.ended_at) < TOGETHER for b in bench)]
            if near:
                apart.append(_middle(near) - _middle(bench))
        if len(apart) < OFFSET_MACHINES:
            return 0.0
        mean, error = fmean(apart), stdev(apart) / math.sqrt(len(apart))
        return round(mean / OFFSET_STEP) * OFFSET_STEP if abs(mean) > max(LEAST_OFFSET, SURE * error) else 0.0


def alike(runs: Iterable[Run]) -> tuple[Run, ...]:
    """Runs that may be compared with the newest, oldest first. Production's rate stands beside a benchmark as wide."""
    ordered = sorted(runs, key=lambda run: run.ended_at)
    if not ordered:
        return ()
    last = newest(ordered)
    return tuple(run for run in ordered if _like(run, last))


def alone(runs: Sequence[Run]) -> Sequence[Run]:
    """The runs made with no other instance of ours on the machine, if there are any: such as a fresh rental's."""
    return [run for run in runs if not run.neighbours] or runs


def newest(ordered: Sequence[Run]) -> Run:
    """What stands for a history, oldest first: its newest benchmark, or its newest run if it has none."""
    return next((run for run in reversed(ordered) if run.kind is RunKind.BENCHMARK), ordered[-1])


def _like(run: Run, last: Run) -> bool:
    if run.kind is RunKind.PRODUCTION:
        return run.concurrency in {None, last.concurrency} and run.neighbours == last.neighbours
    return class_of(run) == class_of(last) and run.neighbours == last.neighbours


def class_of(run: Run) -> Class:
    """Runs of one class may be compared between machines."""
    return run.count, run.concurrency, run.gpu_fraction is not None and run.gpu_fraction < 1.0


@lru_cache(maxsize=4096)
def _samples(runs: tuple[Run, ...], floor: float, offset: float, assumptions: Assumptions) -> tuple[Sample, ...]:
    return samples(runs, floor=floor, now=runs[-1].ended_at, assumptions=assumptions, offset=offset)


def _middle(runs: Sequence[Run]) -> float:
    return median(math.log(run.rate) for run in runs if run.rate)
