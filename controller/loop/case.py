"""One shape's case before the judge: what is thought of a fleet's instances, and what a search takes. Pure.

What its machines are like is in `learned.py`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from statistics import fmean

from controller.judge.assumptions import DEFAULTS, Assumptions, Effort, Prior
from controller.judge.search import search
from controller.judge.verdict import Terms, judge, standing
from controller.loop.effort import effort_of
from controller.loop.learned import Learned, alike, learned
from controller.model.fleet import Fleet, Shape
from controller.model.instance import Decision, Instance, Run, Search, Verdict

HOUR_S = 3600.0
FRESH = 4 * HOUR_S  # seconds after a run in which each hour matters
FADED = 24 * HOUR_S  # likewise, for a machine that is not rented
FADING = 6 * HOUR_S  # after that, verdicts within such a span are one and the same
LEAST_MACHINES = 5  # measured ones, before a floor is called out of reach
OUT_OF_REACH = 0.02  # share of machines that reach the floor


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

    @cached_property
    def learned(self) -> Learned:
        """What the runs say of the machines."""
        return learned(self.runs, self.shape.min_rate, self.now, self.assumptions)

    def verdict(self, instance: Instance, *, neighbours: int) -> Verdict:
        """What is thought of an instance that works beside so many others of ours on its machine.

        Runs of an earlier rental of the same GPUs count too, once it has a run of its own.
        """
        runs = self.evidence(instance, neighbours=neighbours)
        if not runs:
            return self.judged((), self.learned.unmeasured)
        said = self.judged(runs, self.learned.prior_of(runs))
        return said if runs[-1].neighbours == neighbours else _elsewhere(said, runs[-1], neighbours)

    def evidence(self, instance: Instance, *, neighbours: int) -> tuple[Run, ...]:
        """The runs that an instance is judged by, oldest first: all in one company, in its own if there are any."""
        own = self.learned.of.get(instance.nonce, [])
        cards = sorted({run.gpu_uuid for run in own if run.gpu_uuid})
        mine = [*own, *(run for card in cards for run in self.learned.of[card] if run.nonce != instance.nonce)]
        here = [run for run in mine if run.neighbours == neighbours]
        return alike(here or mine) if own else ()

    @cached_property
    def machines(self) -> dict[int, Verdict]:
        """What is thought of each machine that was measured, rented or not: by its fastest card, had it to itself."""
        found: dict[int, Verdict] = {}
        moment = math.ceil(self.now / FADED) * FADED
        for (machine, card), runs in self.learned.comparable.items():
            prior = self.learned.prior_of(self.learned.histories[machine, card])
            said = _standing(runs, self._terms(prior), moment, self.assumptions)
            best = found.get(machine)
            if best is None or (said.p_good or 0.0) > (best.p_good or 0.0):
                found[machine] = said
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
            offset=self.learned.offset,
        )

    def _moment(self, runs: Sequence[Run]) -> float:
        """When they are judged: belief ages over days, once the session that they were made in is over."""
        if not runs or self.now - runs[-1].ended_at < FRESH:
            return self.now
        return math.ceil(self.now / FADING) * FADING

    @property
    def typical(self) -> float:
        """The rate of a machine never measured, in the benchmark's unit."""
        return self.rate_of(self.learned.prior)

    def rate_of(self, prior: Prior) -> float:
        """The rate of a typical machine, in the benchmark's unit."""
        return self.shape.min_rate * math.exp(prior.mean)

    @cached_property
    def search(self) -> Search:
        """What finding one more takes."""
        hours = search(self.learned.prior, self.effort, self.assumptions)
        prices = [i.price for i in self.rentals if i.billable and i.price > 0]
        cost = round(fmean(prices) * hours) if prices else None
        prior = self.learned.prior
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
        prior = self.learned.prior
        share = 0.5 * math.erfc(-prior.mean / prior.sd / math.sqrt(2.0))
        if prior.machines < LEAST_MACHINES or share >= OUT_OF_REACH:
            return ""
        unit = self.fleet.spec.benchmark.unit
        return (
            f"of {prior.machines} machines measured, a typical one makes {self.typical:.3g} {unit}, within "
            f"{prior.sd:.0%}: next to none reaches a minRate of {self.shape.min_rate:g}"
        )

    @cached_property
    def effort(self) -> Effort:
        """What finding an instance and measuring it take: the defaults, and what the ledger says."""
        return effort_of(self.rentals, self.learned.rated, planned_hours=self.fleet.spec.judgement.planned_hours)


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
