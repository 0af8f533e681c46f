"""What all that was measured comes to for one fleet. Pure; the case of each shape is in `case.py`."""

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from controller.judge.suspect import Suspect, suspect
from controller.loop.case import Case
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance, Run, Search, Verdict
from controller.plan.facts import LEAVING

SOON = 3600.0  # seconds; belief ages over days, so that verdicts within such a span are one and the same


@dataclass(frozen=True)
class Weighed:
    """What a fleet's evidence comes to. Each part is worked out when it is asked for.

    Args:
        fleet: whose floors count.
        mine: its instances that bill.
        cases: by shape.
        runs: all in the ledger, oldest first.
        company: by nonce, how many other instances of ours are at work on its machine.
        now: unix seconds.
    """

    fleet: Fleet
    mine: tuple[Instance, ...]
    cases: Mapping[str, Case]
    runs: Sequence[Run]
    company: Mapping[str, int]
    now: float

    @cached_property
    def verdicts(self) -> dict[str, Verdict]:
        """By nonce. What a removed shape still does counts by the first shape's floor until it is replaced."""
        return {i.nonce: self._case(i).verdict(i, neighbours=self.company.get(i.nonce, 0)) for i in self.mine}

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
        return {key: case.typical for key, case in self.cases.items()}

    @property
    def slow(self) -> frozenset[tuple[int, str]]:
        """Machine and shape: more likely than not too slow, and not on one run's word."""
        return frozenset(place for place, said in self._machines.items() if said.decision is Decision.REJECTED)

    @property
    def doubted(self) -> frozenset[tuple[int, str]]:
        """Machine and shape: measured, and neither accepted nor too slow."""
        doubts = {Decision.PROBATION, Decision.CHALLENGED}
        return frozenset(place for place, said in self._machines.items() if said.decision in doubts)

    @property
    def search(self) -> dict[str, Search]:
        """By shape: what finding one more takes."""
        return {key: case.search for key, case in self.cases.items()}

    @property
    def out_of_reach(self) -> dict[str, str]:
        """By shape: why next to no machine reaches its floor."""
        return {key: why for key, case in self.cases.items() if (why := case.out_of_reach)}

    @property
    def ran_out(self) -> dict[str, tuple[tuple[float | None, int], ...]]:
        """By shape: memory in GiB, and the width that ran out of it."""
        return {key: case.ran_out() for key, case in self.cases.items()}

    @cached_property
    def suspect(self) -> Suspect | None:
        """What many machines at once may be slow or fail for, other than themselves."""
        floors = {shape.key: shape.min_rate for shape in self.fleet.spec.shapes}
        return suspect(self.runs, workload=self.fleet.spec.workload(), floors=floors, now=self.now)

    @cached_property
    def _machines(self) -> dict[tuple[int, str], Verdict]:
        return {(machine, key): said for key, case in self.cases.items() for machine, said in case.machines.items()}

    def _case(self, instance: Instance) -> Case:
        return self.cases.get(instance.shape) or next(iter(self.cases.values()))


def weigh(fleet: Fleet, instances: Sequence[Instance], runs: Sequence[Run], *, now: float) -> Weighed:
    """Lay all that was measured before the judge.

    Args:
        fleet: whose floors count.
        instances: of every fleet, all that bill, and those that are gone as far back as efforts are learned from.
        runs: all in the ledger, oldest first.
        now: unix seconds.
    """
    workload = fleet.spec.workload()
    of_shape: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if run.workload == workload:
            of_shape[run.shape].append(run)
    rented: defaultdict[str, list[Instance]] = defaultdict(list)
    for instance in instances:
        if instance.fleet == fleet.name and instance.workload == workload:
            rented[instance.shape].append(instance)
    cases = {
        shape.key: Case(fleet, shape, tuple(rented[shape.key]), tuple(of_shape[shape.key]), soon(now))
        for shape in fleet.spec.shapes
    }
    mine = tuple(i for i in instances if i.fleet == fleet.name and i.billable)
    return Weighed(fleet, mine, cases, runs, company_of(instances), soon(now))


def soon(now: float) -> float:
    """The end of the span whose verdicts are one and the same."""
    return math.ceil(now / SOON) * SOON


def company_of(instances: Sequence[Instance]) -> dict[str, int]:
    """By nonce: how many other instances of ours are at work on the same machine."""
    working = [i for i in instances if i.billable and i.admitted_at is not None and i.phase not in LEAVING]
    on_machine = Counter(i.machine_id for i in working)
    at_work = {i.nonce for i in working}
    return {i.nonce: on_machine[i.machine_id] - (i.nonce in at_work) for i in instances if i.billable}
