"""What the ledger's runs come to, judged as the controller judges them.

No manifest is asked for: what the judge goes by of it, floors and the like, is in the status that each pass writes.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from controller.cli.books import Books
from controller.judge.assumptions import Prior
from controller.judge.calibration import Calibration, calibrate
from controller.loop.case import Case
from controller.loop.evidence import soon
from controller.loop.learned import LEARNED_FROM
from controller.loop.outlook import Band, outlook
from controller.model.fleet import API_VERSION, GIVEN_UP_BELOW, Fleet
from controller.model.instance import Backoff, Decision, Instance, Run, Verdict
from controller.model.reasons import Reason
from controller.model.status import FleetStatus, ShapeStatus

UNKNOWN = Verdict(decision=Decision.UNKNOWN)

_Kind = tuple[str, str, str]  # a fleet, a shape and a workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What was measured on one physical host with one shape, and what is thought of it."""

    id: int
    shape: str
    verdict: Verdict
    runs: tuple[Run, ...]
    held_until: float | None = None  # unix seconds: not rented again before
    held_for: Reason | None = None

    @property
    def last(self) -> float:
        """When it was last measured, unix seconds."""
        return self.runs[-1].ended_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """One rental, and all that bears on the verdict of it. `case`: None where the ledger has no floor to judge by."""

    instance: Instance
    runs: tuple[Run, ...]  # of its GPUs, of earlier rentals too, oldest first
    neighbours: int
    case: Case | None

    @property
    def verdict(self) -> Verdict:
        """What is thought of it."""
        return UNKNOWN if self.case is None else self.case.verdict(self.instance, neighbours=self.neighbours)

    @property
    def weighed(self) -> tuple[Run, ...]:
        """The runs behind the verdict, oldest first."""
        return () if self.case is None else self.case.evidence(self.instance, neighbours=self.neighbours)

    @property
    def elsewhere(self) -> bool:
        """Whether it was measured only in other company than it works in."""
        return self.instance.billable and any(run.neighbours != self.neighbours for run in self.weighed[-1:])

    @property
    def prior(self) -> Prior | None:
        """What is expected of its like."""
        return None if self.case is None else self.case.learned.prior_of(self.weighed)

    def outlook(self, now: float) -> tuple[Band, ...]:
        """What the next run would decide, by what it shows; nothing of what is gone, which has no next."""
        if self.case is None or not self.instance.billable:
            return ()
        at = max(now, self.verdict.next_run_at or now)
        return outlook(self.case, self.instance, neighbours=self.neighbours, at=at)


@dataclass(frozen=True)
class Cases:
    """The cases that the ledger's runs make."""

    known: Books

    def case(self, status: FleetStatus, shape: str, workload: str) -> Case | None:
        """A fleet's case of one shape and workload; None where the ledger says nothing of its floors."""
        fleet = _fleet_of(status)
        if fleet is None:
            return None
        floors = {floor.key: floor for floor in fleet.spec.shapes}
        mine = tuple(
            i for i in self._lately if (i.fleet, i.shape, i.workload) == (status.fleet, shape, workload)
        )  # fmt: skip
        runs = tuple(run for run in self.runs if (run.shape, run.workload) == (shape, workload))
        return Case(fleet, floors.get(shape, fleet.spec.shapes[0]), mine, runs, soon(self.known.now))

    def story(self, instance: Instance) -> Story:
        """One rental's story."""
        own = [run for run in self.runs if run.nonce == instance.nonce]
        cards = {run.gpu_uuid for run in own if run.gpu_uuid}
        runs = tuple(run for run in self.runs if run.nonce == instance.nonce or run.gpu_uuid in cards)
        status = self.known.fleets.get(instance.fleet)
        return Story(
            instance=instance,
            runs=runs,
            neighbours=self.known.company.get(instance.nonce, own[-1].neighbours if own else 0),
            case=None if status is None else self.case(status, instance.shape, instance.workload),
        )

    def stories(self, machine: int) -> list[Story]:
        """The story of the last rental of each card of a machine, oldest first."""
        rented = {i.nonce: i for i in self.rented if i.machine_id == machine}
        last: dict[tuple[str, str], Instance] = {}
        for instance in rented.values():
            cards = [r.gpu_uuid for r in self.runs if r.nonce == instance.nonce and r.gpu_uuid]
            last[instance.shape, cards[-1] if cards else instance.nonce] = instance
        told = [self.story(instance) for instance in last.values()]
        return [story for story in told if story.runs or story.instance.billable]

    def machines(self) -> list[Machine]:
        """What was measured, by machine and shape, and thought of it by the terms of the fleet that measured last."""
        grouped: defaultdict[tuple[int, str], list[Run]] = defaultdict(list)
        for run in self.runs:
            grouped[run.machine_id, run.shape].append(run)
        known = self.known
        held = {int(b.key): b for b in known.ledger.backoffs() if b.scope == "machine" and b.until > known.now}
        cases: dict[_Kind, Case | None] = {}
        return [
            _machine(machine, shape, runs, self._verdict(machine, runs, cases), held.get(machine))
            for (machine, shape), runs in sorted(grouped.items())
        ]

    def _verdict(self, machine: int, runs: Sequence[Run], cases: dict[_Kind, Case | None]) -> Verdict:
        last = next((run for run in reversed(runs) if run.rate is not None), runs[-1])
        key = last.fleet, last.shape, last.workload
        if key not in cases:
            status = self.known.fleets.get(last.fleet)
            cases[key] = None if status is None else self.case(status, last.shape, last.workload)
        case = cases[key]
        return UNKNOWN if case is None else case.machines.get(machine, UNKNOWN)

    def calibration(self, fleet: str | None) -> Calibration:
        """What became of the machines by the P they were given, for one fleet or for all."""
        chosen = [s for s in self.known.fleets.values() if fleet in {None, s.fleet}]
        found = {(key, case.shape.min_rate): case for status in chosen for key, case in self._all(status)}
        return calibrate([each for case in found.values() for each in case.learned.learned_from])

    def _all(self, status: FleetStatus) -> Iterator[tuple[tuple[str, str], Case]]:
        """A fleet's cases of every workload that was measured, of its shapes and in its unit."""
        shapes = {shape.key for shape in status.shapes}
        for shape, workload in sorted({(r.shape, r.workload) for r in self.runs if r.unit == status.unit}):
            case = self.case(status, shape, workload) if shape in shapes else None
            if case is not None:
                yield (shape, workload), case

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """All runs, oldest first."""
        return self.known.ledger.runs()

    @cached_property
    def rented(self) -> tuple[Instance, ...]:
        """All instances, gone or not, oldest first."""
        return self.known.ledger.instances(gone=True)

    @property
    def _lately(self) -> tuple[Instance, ...]:
        since = self.known.now - LEARNED_FROM
        return tuple(i for i in self.rented if i.billable or i.created_at > since)


def _machine(machine: int, shape: str, runs: Sequence[Run], verdict: Verdict, backoff: Backoff | None) -> Machine:
    slow = Reason.KNOWN_SLOW if verdict.decision is Decision.REJECTED else None
    return Machine(
        id=machine,
        shape=shape,
        verdict=verdict,
        runs=tuple(runs),
        held_until=backoff.until if backoff is not None else None,
        held_for=backoff.reason if backoff is not None else slow,
    )


def _fleet_of(status: FleetStatus) -> Fleet | None:
    """As much of a fleet as the judge goes by. The rest is not in the ledger, and stands for nothing.

    None: no pass has written down its floors.
    """
    if not status.shapes or not status.unit:
        return None
    floors = status.shapes[0]
    accept = floors.accept_above
    judgement = {
        "plannedHours": floors.planned_hours,
        "replaceBelow": floors.replace_below,
        "acceptAbove": None if accept is None else max(accept, GIVEN_UP_BELOW),  # an old pass may have taken less
    }
    spec = {
        "target": {"instances": 0},
        "budgetPerHour": 1.0,
        "shapes": tuple(map(_shape_of, status.shapes)),
        "instance": {"image": "unknown"},
        "benchmark": {"command": "unknown", "unit": status.unit, "recheckHours": status.recheck_hours},
        "judgement": judgement,
    }
    made = {"apiVersion": API_VERSION, "kind": "Fleet", "metadata": {"name": status.fleet}, "spec": spec}
    return Fleet.model_validate(made)


def _shape_of(floor: ShapeStatus) -> dict[str, object]:
    gpu, _, count = floor.key.rpartition(" x")
    return {"gpu": gpu, "gpuCount": int(count), "minRate": floor.min_rate}
