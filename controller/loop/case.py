"""One shape's case before the judge: which runs may be compared, what its machines are like, what a search takes.

Pure. Runs may be compared if they are of one workload and shape, as wide and as long, on a whole machine or a part of
one, and in like company: an instance that had its machine to itself says little of two that share it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import fmean, median, stdev

from controller.judge.assumptions import DEFAULTS, Assumptions, Effort, Prior
from controller.judge.belief import Sample, samples
from controller.judge.prior import learn
from controller.judge.search import search
from controller.judge.verdict import Terms, judge, standing
from controller.loop.effort import effort_of
from controller.model.fleet import Fleet, Shape
from controller.model.instance import Decision, Instance, Run, RunKind, Search, Verdict

HOUR_S = 3600.0
LEARNED_FROM = 60 * 86400.0  # seconds: machines measured before that say nothing of the next one
FRESH = 4 * HOUR_S  # seconds after a run in which each hour matters
FADED = 24 * HOUR_S  # likewise, for a machine that is not rented
FADING = 6 * HOUR_S  # after that, verdicts within such a span are one and the same
OFFSET_MACHINES = 3  # that have both a benchmark and production's rate, before the two are told apart
LEAST_OFFSET = 0.15  # ln: chance and selection make less
SURE = 2.0  # standard errors
OFFSET_STEP = 0.04  # ln
TOGETHER = 86400.0  # seconds between a benchmark and production's rate that are still compared
LEAST_MACHINES = 5  # measured ones, before a floor is called out of reach
OUT_OF_REACH = 0.02  # share of machines that reach the floor

Class = tuple[int | None, int | None, bool]  # runs' count and width, and whether on a part of a machine


@dataclass(frozen=True)
class Case:
    """All that bears on the instances of one shape and workload.

    Args:
        fleet: whose floor counts.
        shape: by whose floor they are judged.
        rentals: of this fleet, that shape and workload, gone or not.
        runs: of one shape and workload, with a rate or without, oldest first.
        now: unix seconds.
        assumptions: what is taken for granted about machines and runs.
    """

    fleet: Fleet
    shape: Shape
    rentals: tuple[Instance, ...]
    runs: tuple[Run, ...]
    now: float
    assumptions: Assumptions = DEFAULTS

    def verdict(self, instance: Instance, *, neighbours: int) -> Verdict:
        """What is thought of an instance that works beside so many others of ours on its machine.

        Runs of an earlier rental of the same GPUs count too, once it has a run of its own.
        """
        runs = self.evidence(instance, neighbours=neighbours)
        if not runs:
            return self.judged((), self._unmeasured)
        said = self.judged(runs, self.prior_of(runs))
        return said if runs[-1].neighbours == neighbours else _elsewhere(said, runs[-1], neighbours)

    def evidence(self, instance: Instance, *, neighbours: int) -> tuple[Run, ...]:
        """The runs that an instance is judged by, oldest first: all in one company, in its own if there are any."""
        own = self._of.get(instance.nonce, [])
        cards = sorted({run.gpu_uuid for run in own if run.gpu_uuid})
        mine = [*own, *(run for card in cards for run in self._of[card] if run.nonce != instance.nonce)]
        here = [run for run in mine if run.neighbours == neighbours]
        return alike(here or mine) if own else ()

    @cached_property
    def machines(self) -> dict[int, Verdict]:
        """What is thought of each machine that was measured, rented or not: by its fastest card, had it to itself."""
        found: dict[int, Verdict] = {}
        for runs in self._histories.values():
            moment = math.ceil(self.now / FADED) * FADED
            said = _standing(alike(runs), self._terms(self.prior_of(runs)), moment, self.assumptions)
            best = found.get(runs[-1].machine_id)
            if best is None or (said.p_good or 0.0) > (best.p_good or 0.0):
                found[runs[-1].machine_id] = said
        return found

    def judged(self, runs: Sequence[Run], prior: Prior) -> Verdict:
        """The judge's verdict on comparable runs."""
        return _judged(tuple(runs), self._terms(prior), self._moment(runs), self.assumptions)

    def _terms(self, prior: Prior) -> Terms:
        judgement = self.fleet.spec.judgement
        return Terms(
            floor=self.shape.min_rate,
            recheck_seconds=self.fleet.spec.benchmark.recheck_hours * HOUR_S,
            prior=prior,
            effort=self.effort,
            replace_below=judgement.replace_below,
            accept_above=judgement.accept_above,
            offset=self._offset,
        )

    def _moment(self, runs: Sequence[Run]) -> float:
        """When they are judged: belief ages over days, once the session that they were made in is over."""
        if not runs or self.now - runs[-1].ended_at < FRESH:
            return self.now
        return math.ceil(self.now / FADING) * FADING

    @property
    def typical(self) -> float:
        """The rate of a machine never measured, in the benchmark's unit."""
        return self.rate_of(self.prior)

    def rate_of(self, prior: Prior) -> float:
        """The rate of a typical machine, in the benchmark's unit."""
        return self.shape.min_rate * math.exp(prior.mean)

    @cached_property
    def search(self) -> Search:
        """What finding one more takes."""
        hours = search(self.prior, self.effort, self.assumptions)
        prices = [i.price for i in self.rentals if i.billable and i.price > 0]
        cost = round(fmean(prices) * hours) if prices else None
        prior = self.prior
        return Search(
            shape=self.shape.key,
            hours=hours,
            cost=cost,
            mean=self.typical,
            sd=prior.sd,
            machines=prior.machines,
            run_hours=self.effort.run_hours,
            provision_hours=self.effort.provision_hours,
        )

    @property
    def out_of_reach(self) -> str:
        """Why it is no use to try more machines; empty while it is."""
        prior = self.prior
        share = 0.5 * math.erfc(-prior.mean / prior.sd / math.sqrt(2.0))
        if prior.machines < LEAST_MACHINES or share >= OUT_OF_REACH:
            return ""
        unit = self.fleet.spec.benchmark.unit
        return (
            f"of {prior.machines} machines measured, a typical one makes {self.typical:.3g} {unit}, within "
            f"{prior.sd:.0%}: next to none reaches a minRate of {self.shape.min_rate:g}"
        )

    @cached_property
    def prior(self) -> Prior:
        """What to expect of a machine never measured: as most of those that were."""
        classes = Counter(class_of(newest(runs)) for runs in self._histories.values())
        return self._priors[max(classes, key=lambda c: classes[c])] if classes else self._unmeasured

    def prior_of(self, runs: Sequence[Run]) -> Prior:
        """What to expect of a machine measured like these."""
        return self._priors.get(class_of(newest(runs)), self._unmeasured) if runs else self.prior

    @property
    def _unmeasured(self) -> Prior:
        return Prior(self.assumptions.mean, self.assumptions.sd)

    @cached_property
    def effort(self) -> Effort:
        """What finding an instance and measuring it take: the defaults, and what the ledger says."""
        return effort_of(self.rentals, self._rated, planned_hours=self.fleet.spec.judgement.planned_hours)

    @cached_property
    def _rated(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.rate is not None)

    @cached_property
    def _of(self) -> dict[str, list[Run]]:
        """The usable runs by rental, and by card."""
        found: defaultdict[str, list[Run]] = defaultdict(list)
        for run in self._rated:
            for name in (run.nonce, run.gpu_uuid):
                found[name].append(run)
        return dict(found)

    @cached_property
    def _histories(self) -> dict[tuple[int, str], Sequence[Run]]:
        """The usable runs of each card, had it to itself if it ever was: of GPUs by their ids, else of a rental."""
        found: defaultdict[tuple[int, str], list[Run]] = defaultdict(list)
        for run in self._rated:
            if self.now - run.ended_at < LEARNED_FROM:
                found[run.machine_id, run.gpu_uuid or run.nonce].append(run)
        return {card: alone(runs) for card, runs in found.items()}

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
        for runs in self._histories.values():
            found = _samples(alike(runs), self.shape.min_rate, self._offset)
            grouped[class_of(newest(runs))].append(found)
        return dict(grouped)

    @cached_property
    def _offset(self) -> float:
        """Ln of how much more production shows than the benchmark; 0 while that may be chance.

        Machines that were kept for a lucky benchmark show a little less later, so that a little says nothing.
        """
        apart = []
        for history in self._histories.values():
            runs = alike(history)
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


def _elsewhere(said: Verdict, last: Run, neighbours: int) -> Verdict:
    """A verdict on runs made in other company, until there is one made in this: due since the last of them.

    It is as good as it gets if more are at work beside it now, and as bad if fewer are.
    """
    beside = f"beside {neighbours} other{'s' if neighbours > 1 else ''} of ours" if neighbours else "alone"
    holds = neighbours > last.neighbours and said.decision is not Decision.ACCEPTED
    decision = said.decision if holds else Decision.PROBATION
    line = f"{said.line}; not measured yet as it works now, {beside} on its machine, and so measured again"
    return replace(said, decision=decision, next_run_at=last.ended_at, line=line)


@lru_cache(maxsize=4096)
def _judged(runs: tuple[Run, ...], terms: Terms, now: float, assumptions: Assumptions) -> Verdict:
    """A verdict is a pure function of its evidence, and asked for at each pass."""
    return judge(runs, terms, now=now, assumptions=assumptions)


@lru_cache(maxsize=4096)
def _standing(runs: tuple[Run, ...], terms: Terms, now: float, assumptions: Assumptions) -> Verdict:
    return standing(runs, terms, now=now, assumptions=assumptions)


@lru_cache(maxsize=4096)
def _samples(runs: tuple[Run, ...], floor: float, offset: float) -> tuple[Sample, ...]:
    return samples(runs, floor=floor, now=runs[-1].ended_at, assumptions=DEFAULTS, offset=offset)


def _middle(runs: Sequence[Run]) -> float:
    return median(math.log(run.rate) for run in runs if run.rate)
