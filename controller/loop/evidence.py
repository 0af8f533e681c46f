"""What all that was measured comes to for one fleet. Pure; the case of each shape is in `case.py`."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from controller.judge.assumptions import DEFAULTS, Assumptions
from controller.judge.suspect import Suspect, suspect
from controller.loop.case import Case
from controller.loop.widths import RanOut, ran_out_anywhere, ran_out_here
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance, Run, Search, Verdict
from controller.plan.facts import LEAVING

SOON = 3600.0  # seconds; belief ages over days, so that verdicts within such a span are one and the same


Kind = tuple[str, str]  # a shape's key and a workload


@dataclass(frozen=True)
class Weighed:
    """What a fleet's evidence comes to. Each part is worked out when it is asked for.

    Args:
        fleet: whose floors count.
        mine: its instances that bill.
        cases: by shape and workload: those of the manifest, and those of instances that are older than it.
        runs: all in the ledger, oldest first.
        company: by nonce, how many other instances of ours are at work on its machine.
        now: unix seconds.
    """

    fleet: Fleet
    mine: tuple[Instance, ...]
    cases: Mapping[Kind, Case]
    runs: tuple[Run, ...]
    company: Mapping[str, int]
    now: float

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """By nonce. What a removed shape still does counts by the first shape's floor until it is replaced."""
        return {
            i.nonce: self.cases[i.shape, i.workload].verdict(i, neighbours=self.company.get(i.nonce, 0))
            for i in self.mine
        }

    @cached_property
    def failed_runs(self) -> dict[str, Run]:
        """By nonce: the last run, if it gave no rate."""
        last = {run.nonce: run for run in self.runs}
        return {i.nonce: last[i.nonce] for i in self.mine if i.nonce in last and last[i.nonce].rate is None}

    @property
    def expected(self) -> dict[tuple[int, str], float]:
        """By machine and shape, where it was measured: the rate to expect."""
        return {place: said.rate for place, said in self._machines.items() if said.rate is not None}

    @property
    def typical(self) -> dict[str, float]:
        """By shape: what to expect of a machine never measured."""
        return {case.shape.key: case.typical for case in self._wanted}

    @property
    def slow(self) -> frozenset[tuple[int, str]]:
        """Machine and shape: more likely than not too slow, and not on one run's word."""
        return frozenset(place for place, said in self._machines.items() if said.decision is Decision.REJECTED)

    @property
    def doubted(self) -> dict[tuple[int, str], float]:
        """By machine and shape, where measured, and neither accepted nor too slow: P(fast enough)."""
        doubts = {Decision.PROBATION, Decision.CHALLENGED}
        return {place: said.p_good or 0.0 for place, said in self._machines.items() if said.decision in doubts}

    @property
    def search(self) -> dict[str, Search]:
        """By shape: what finding one more takes."""
        return {case.shape.key: case.search for case in self._wanted}

    @property
    def out_of_reach(self) -> dict[str, str]:
        """By shape: why next to no machine reaches its floor."""
        return {case.shape.key: why for case in self._wanted if (why := case.out_of_reach)}

    @property
    def ran_out(self) -> dict[str, RanOut]:
        """By shape: what ran out of memory, and counts on every machine."""
        return {case.shape.key: ran_out_anywhere(case.runs, now=self.now) for case in self._wanted}

    @property
    def ran_out_here(self) -> dict[tuple[int, str], RanOut]:
        """By machine and shape: what ran out of memory, and counts on that machine alone."""
        each = ((case.shape.key, ran_out_here(case.runs, now=self.now)) for case in self._wanted)
        return {(machine, shape): said for shape, found in each for machine, said in found.items()}

    @cached_property
    def suspect(self) -> Suspect | None:
        """What many machines at once may be slow or fail for, other than themselves."""
        floors = {shape.key: shape.min_rate for shape in self.fleet.spec.shapes}
        return _suspect(self.runs, self.fleet.spec.workload(), tuple(floors.items()), self.now)

    @cached_property
    def _wanted(self) -> tuple[Case, ...]:
        """The cases of what the manifest asks for now."""
        workload = self.fleet.spec.workload()
        return tuple(self.cases[shape.key, workload] for shape in self.fleet.spec.shapes)

    @cached_property
    def _machines(self) -> dict[tuple[int, str], Verdict]:
        return {(machine, case.shape.key): said for case in self._wanted for machine, said in case.machines.items()}


@lru_cache(maxsize=8)
def _suspect(runs: tuple[Run, ...], workload: str, floors: tuple[tuple[str, float], ...], now: float) -> Suspect | None:
    """The same for all fleets that ask the same."""
    return suspect(runs, workload=workload, floors=dict(floors), now=now)


def by_kind(runs: Iterable[Run]) -> dict[Kind, tuple[Run, ...]]:
    """The runs of each shape and workload, in their order."""
    measured: defaultdict[Kind, list[Run]] = defaultdict(list)
    for run in runs:
        measured[run.shape, run.workload].append(run)
    return {kind: tuple(found) for kind, found in measured.items()}


def weigh(
    fleet: Fleet,
    instances: Sequence[Instance],
    runs: Sequence[Run],
    *,
    now: float,
    company: Mapping[str, int] | None = None,
    grouped: Mapping[Kind, tuple[Run, ...]] | None = None,
    assumptions: Assumptions = DEFAULTS,
) -> Weighed:
    """Lay all that was measured before the judge.

    Args:
        fleet: whose floors count.
        instances: the fleet's, all that bill, and those that are gone as far back as efforts are learned from.
        runs: all in the ledger, oldest first.
        now: unix seconds.
        company: as `company_of` has it of all that is on their machines; left out: of `instances`.
        grouped: what `by_kind` makes of the runs, where that is known.
        assumptions: what is taken for granted about machines and runs.
    """
    runs = tuple(runs)
    measured = by_kind(runs) if grouped is None else grouped
    rented: defaultdict[Kind, list[Instance]] = defaultdict(list)
    for instance in instances:
        if instance.fleet == fleet.name:
            rented[instance.shape, instance.workload].append(instance)
    shapes = {shape.key: shape for shape in fleet.spec.shapes}
    mine = tuple(i for i in instances if i.fleet == fleet.name and i.billable)
    workload = fleet.spec.workload()
    kinds = {(key, workload) for key in shapes} | {(i.shape, i.workload) for i in mine}
    cases = {
        kind: Case(
            fleet=fleet,
            shape=shapes.get(kind[0], fleet.spec.shapes[0]),
            rentals=tuple(rented[kind]),
            runs=measured.get(kind, ()),
            now=soon(now),
            assumptions=assumptions,
        )
        for kind in sorted(kinds)
    }
    return Weighed(fleet, mine, cases, runs, company_of(instances) if company is None else company, soon(now))


def soon(now: float) -> float:
    """The end of the span whose verdicts are one and the same."""
    return math.ceil(now / SOON) * SOON


def company_of(instances: Iterable[Instance]) -> dict[str, int]:
    """By nonce: how many other instances of ours are at work on the same machine."""
    billable = [i for i in instances if i.billable]
    working = [i for i in billable if i.admitted_at is not None and i.phase not in LEAVING]
    on_machine = Counter(i.machine_id for i in working)
    at_work = {i.nonce for i in working}
    return {i.nonce: on_machine[i.machine_id] - (i.nonce in at_work) for i in billable}
