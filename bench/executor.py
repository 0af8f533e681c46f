"""A fleet in a simulated market, held by the planner that holds real ones, and by whatever judge it is given.

A pass is made when a job has ended, when a run or a reading is due, and when something destroyed may be proven gone. Of
the loop, only the order of its steps is repeated here: plan, rent, verdicts and what a job's end means are its own.
"""

import heapq
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

from bench.score import Record
from bench.world import PRICE, READ, Machine
from controller.judge.suspect import Suspect
from controller.loop.evidence import soon
from controller.model.actions import Action, Begin, Destroy, Note, Release, Rent
from controller.model.fleet import Fleet
from controller.model.instance import Instance, Job, Phase, Run, RunKind, Verdict
from controller.model.market import Listing, Offer, Sighting
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.facts import Facts
from controller.plan.fleet import plan, rent
from controller.plan.limits import Limits
from controller.plan.offers import Candidate
from controller.plan.outcome import JobEnd, after_job
from controller.plan.track import in_phase, update

ORIGIN = 1_800_000_000.0  # unix seconds at hour 0
HOUR_S = 3600.0
LIMITS = Limits()
GPU = "RTX 4090"
SHAPE = f"{GPU} x1"
PASSES = 50  # at one moment; more, and the planner goes round in circles
Place = tuple[int, str]  # machine and shape


class Findings(Protocol):
    """What a judge finds, as `controller.loop.evidence.Weighed` has it."""

    @property
    def verdicts(self) -> Mapping[str, Verdict]: ...  # noqa: D102
    @property
    def expected(self) -> Mapping[Place, float]: ...  # noqa: D102
    @property
    def typical(self) -> Mapping[str, float]: ...  # noqa: D102
    @property
    def slow(self) -> frozenset[Place]: ...  # noqa: D102
    @property
    def doubted(self) -> Mapping[Place, float]: ...  # noqa: D102
    @property
    def out_of_reach(self) -> Mapping[str, str]: ...  # noqa: D102
    @property
    def suspect(self) -> Suspect | None: ...  # noqa: D102


class Judge(Protocol):
    """What gives the verdicts: `controller.loop.evidence.weigh`, or what is compared with it."""

    def __call__(self, fleet: Fleet, instances: Sequence[Instance], runs: Sequence[Run], *, now: float) -> Findings:
        """What the evidence comes to."""
        ...


class Executor:
    """One fleet on one market.

    Args:
        fleet: what is wanted, of the one shape there is. Where it has production read, that is done on the full hour.
        machines: for rent, each at the same price.
        judge: what gives the verdicts.
    """

    def __init__(self, fleet: Fleet, machines: Iterable[Machine], judge: Judge) -> None:
        self._fleet = fleet
        self._workload = fleet.spec.workload()
        self._machines = {machine.id: machine for machine in machines}
        self._offers = {m: Offer(id=m, machine_id=m, gpu=GPU, gpu_count=1, price=micro(PRICE)) for m in self._machines}
        self._judge = judge
        self.record = Record()
        self._now = ORIGIN
        self._ledger: dict[str, Instance] = {}
        self._rows: dict[str, Sighting] = {}  # by nonce: what exists
        self._jobs: dict[str, Job] = {}
        self._runs: list[Run] = []
        self._known: tuple[object, Findings] | None = None
        self._measured: set[str] = set()  # whose verdict after its run is not written down yet
        self._events: list[tuple[float, int, str, str]] = []
        self._order = count()
        self._at(ORIGIN, "hour" if fleet.spec.benchmark.production.command else "look")

    def play(self, hours: float) -> Record:
        """Hold the fleet for so long; see `advance`."""
        self.advance(hours)
        for nonce in self._rows:
            self.record.end(nonce, hours)
        return self.record

    def advance(self, hours: float) -> None:
        """Hold the fleet until so long after the beginning; to be called again with more.

        Raises:
            RuntimeError: the planner never comes to rest.
        """
        end = ORIGIN + hours * HOUR_S
        while self._events and self._events[0][0] < end:
            self._now = self._events[0][0]
            while self._events and self._events[0][0] <= self._now:
                _, _, kind, nonce = heapq.heappop(self._events)
                if kind == "hour":
                    self._at(self._now + HOUR_S, "hour")
                elif kind != "look":
                    self._job_ended(kind, nonce)
            self._settle()

    def holds(self, machine: int) -> bool:
        """Whether an instance is admitted on it."""
        return any(i.machine_id == machine and i.phase is Phase.ADMITTED for i in self._ledger.values())

    @property
    def _hour(self) -> float:
        return (self._now - ORIGIN) / HOUR_S

    def _machine(self, nonce: str) -> Machine:
        return self._machines[self._ledger[nonce].machine_id]

    def _at(self, when: float, kind: str, nonce: str = "") -> None:
        heapq.heappush(self._events, (when, next(self._order), kind, nonce))

    def _job_ended(self, kind: str, nonce: str) -> None:
        job = self._jobs.pop(nonce, None)
        if job is None:  # it was given up meanwhile
            return
        run = None
        if kind == "measure":
            rate = self._machine(nonce).run_shows((job.since - ORIGIN) / HOUR_S, self._hour)
            run = self._run(nonce, RunKind.BENCHMARK, rate, job.since)
        elif kind == "read":
            rate = self._machine(nonce).reading(self._hour)
            run = self._run(nonce, RunKind.PRODUCTION, rate, self._now - READ * HOUR_S)
        end = JobEnd(job=kind, ok=True, reason=Reason.PREPARED if run is None else Reason.MEASURED, run=run)
        self._ledger[nonce] = after_job(self._ledger[nonce], end, now=self._now, limits=LIMITS).instance

    def _run(self, nonce: str, kind: RunKind, rate: float, begun: float) -> Run:
        made = Run(
            id=str(len(self._runs)),
            nonce=nonce,
            fleet=self._fleet.name,
            machine_id=self._ledger[nonce].machine_id,
            shape=SHAPE,
            workload=self._workload,
            started_at=begun,
            ended_at=self._now,
            reason=Reason.MEASURED,
            kind=kind,
            rate=rate,
            unit=self._fleet.spec.benchmark.unit,
            gpu_uuid=f"GPU-{self._ledger[nonce].machine_id}",
        )
        self._runs.append(made)
        self._measured.add(nonce)
        return made

    def _settle(self) -> None:
        """Pass until there is nothing more to do at this moment, and see to it that what falls due later is seen."""
        for _ in range(PASSES):
            facts = self._look()
            made = plan(facts)
            actions: list[Action] = [*made.actions]
            if made.wanted.count > 0 and (made.missing > 0 or made.wanted.least_of):
                facts = self._experienced(facts)
                actions += rent(facts, made, self._candidates(facts))
            if not actions:
                self._wake(facts)
                return
            for action in actions:
                self._perform(action)
        raise RuntimeError(f"{PASSES} passes at one moment, and still something to do")

    def _wake(self, facts: Facts) -> None:
        due = [facts.verdicts[i.nonce].next_run_at for i in facts.working if i.phase is Phase.ADMITTED]
        later = min((at for at in due if at is not None and at > self._now), default=math.inf)
        if later < (self._events[0][0] if self._events else math.inf):
            self._at(later, "look")

    def _look(self) -> Facts:
        listing = Listing(at=self._now, sightings=tuple(self._rows.values()))
        for nonce, instance in self._ledger.items():
            row = self._rows.get(nonce)
            if instance.billable and (row is None or instance.launched_at is None):
                self._ledger[nonce], _ = update(instance, row, listing, now=self._now)
        alive = tuple(i for i in self._ledger.values() if i.billable)
        found = self._weighed()
        facts = Facts(
            now=self._now,
            name=self._fleet.name,
            fleet=self._fleet,
            instances=alive,
            listing=listing,
            limits=LIMITS,
            seen=self._rows,
            jobs=self._jobs,
            verdicts=found.verdicts,
            typical=found.typical,
            out_of_reach=found.out_of_reach,
            suspect=None if found.suspect is None else (found.suspect.reason, found.suspect.text),
            machines_in_use=frozenset(i.machine_id for i in alive),
        )
        return self._experienced(facts) if any(i.admitted_at is None for i in alive) else facts

    def _experienced(self, facts: Facts) -> Facts:
        found = self._weighed()
        return replace(facts, expected=found.expected, doubted=found.doubted, slow=found.slow)

    def _weighed(self) -> Findings:
        """What the judge says, asked again when there is more evidence, or it is older."""
        key = soon(self._now), len(self._runs), len(self._ledger)
        if self._known is None or self._known[0] != key:
            found = self._judge(self._fleet, tuple(self._ledger.values()), self._runs, now=self._now)
            self._known = key, found
            for nonce in self._measured:
                said = found.verdicts.get(nonce)
                if said is not None and said.p_good is not None:
                    self.record.stated.append((said.p_good, self._machine(nonce).good))
            self._measured.clear()
        return self._known[1]

    def _candidates(self, facts: Facts) -> list[Candidate]:
        return [
            Candidate(offer=offer, shape=SHAPE, rate=facts.expected.get((machine, SHAPE), facts.typical[SHAPE]))
            for machine, offer in self._offers.items()
            if machine not in facts.machines_in_use and (machine, SHAPE) not in facts.slow
        ]

    def _perform(self, action: Action) -> None:
        match action:
            case Note():
                self._note(action.instance)
            case Begin():
                self._begin(action)
            case Release() | Destroy():
                self._destroy(action)
            case Rent():
                self._rent(action)
            case _:
                raise RuntimeError(f"nothing here calls for {action}")

    def _note(self, after: Instance) -> None:
        working = self._ledger[after.nonce].phase is Phase.ADMITTED
        self._ledger[after.nonce] = after
        if after.phase is Phase.ADMITTED:
            for what in ("admitted", "at work"):
                self.record.begin(what, after.nonce, self._machine(after.nonce), self._hour)
        elif working:
            self.record.end(after.nonce, self._hour, "at work")

    def _begin(self, begin: Begin) -> None:
        nonce = begin.instance.nonce
        self._jobs[nonce] = Job(kind=begin.job, nonce=nonce, since=self._now)
        if begin.job == "read":
            self._job_ended("read", nonce)
            return
        machine = self._machine(nonce)
        end = machine.run_ends(self._hour) if begin.job == "measure" else self._hour + machine.provision()
        self._at(ORIGIN + end * HOUR_S, begin.job, nonce)

    def _destroy(self, action: Release | Destroy) -> None:
        nonce = action.instance.nonce
        self._jobs.pop(nonce, None)
        self._rows.pop(nonce, None)
        self.record.end(nonce, self._hour)
        leaving = in_phase(action.instance, Phase.DESTROYING, action.reason, now=self._now)
        self._ledger[nonce] = replace(leaving, destroy_calls=1, not_before=self._now + LIMITS.destroy_again)
        self._at(self._now + LIMITS.apart, "look")

    def _rent(self, action: Rent) -> None:
        nonce = f"{(number := len(self._ledger) + 1):06d}"
        self._ledger[nonce] = Instance(
            nonce=nonce,
            fleet=self._fleet.name,
            label=nonce,
            shape=action.shape,
            gpu=GPU,
            gpu_count=1,
            machine_id=action.offer.machine_id,
            price=action.price,
            disk_gib=self._fleet.spec.require.disk_gib,
            workload=self._workload,
            phase=Phase.LAUNCHING,
            phase_since=self._now,
            reason=Reason.RENTED,
            created_at=self._now,
            cost_until=self._now,
            instance_id=number,
        )
        self._rows[nonce] = Sighting(id=number, label=nonce, price=action.price, actual="running")
        self.record.begin("rented", nonce, self._machine(nonce), self._hour)
