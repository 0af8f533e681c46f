"""A market and its rentals as bare values, driven by the planner alone: what the loop does, without a loop."""

import random
from dataclasses import dataclass, field, replace

from controller.model import labels
from controller.model.actions import Action, Begin, Confirm, Destroy, Note, Release, Rent
from controller.model.fleet import Fleet
from controller.model.instance import Backoff, Decision, Instance, Phase, Verdict
from controller.model.market import Listing
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.facts import Facts
from controller.plan.fleet import Plan, plan, rent
from controller.plan.limits import Limits
from controller.plan.offers import Candidate, sift
from controller.plan.outcome import JobEnd, after_job
from controller.plan.track import in_phase, update
from tests.plan.conftest import NOW, OWNER, offer, row

STEP = 60.0  # seconds between passes
GPUS = ("RTX 4090", "RTX 5090")


@dataclass
class World:
    """Machines for rent, some slow; what became of what was rented; and chance."""

    fleet: Fleet
    chance: random.Random
    now: float = NOW
    records: dict[str, Instance] = field(default_factory=dict)
    existing: set[str] = field(default_factory=set)  # by nonce: what vast.ai bills
    hidden: dict[str, float] = field(default_factory=dict)  # by nonce: when it begins to be listed
    offline: set[str] = field(default_factory=set)
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    backoffs: dict[tuple[str, str], Backoff] = field(default_factory=dict)
    made: int = 0
    calm: bool = False  # whether nothing goes wrong any more

    def __post_init__(self) -> None:
        self.market = [
            offer(n, self.chance.choice((0.2, 0.25, 0.3, 0.3, 0.45)), gpu=self.chance.choice(GPUS), disk_gib=500)
            for n in range(1, 31)
        ]
        self.true_rate = {o.machine_id: self.chance.choice((30.0, 45.0, 60.0, 62.0, 95.0)) for o in self.market}

    def luck(self, probability: float) -> bool:
        return not self.calm and self.chance.random() < probability

    @property
    def billing(self) -> int:
        """What vast.ai bills an hour, micro-dollars."""
        return sum(self.records[nonce].price for nonce in self.existing)

    def look(self) -> Facts:
        """One listing, or none, and what it says."""
        alive = [i for i in self.records.values() if i.billable]
        shown = {i.nonce for i in alive if i.nonce in self.existing and self.hidden[i.nonce] <= self.now}
        rows = {
            i.nonce: row(i, actual="offline" if i.nonce in self.offline else "running")
            for i in alive
            if i.nonce in shown
        }
        known = not self.luck(0.1)
        if known:
            listing = Listing(at=self.now, sightings=tuple(rows.values()))
            for i in alive:
                self.records[i.nonce], _ = update(i, rows.get(i.nonce), listing, now=self.now)
        return Facts(
            now=self.now,
            name=self.fleet.name,
            fleet=self.fleet,
            instances=tuple(i for i in self.records.values() if i.billable),
            listing=listing if known else None,
            limits=Limits(),
            seen=rows if known else {},
            verdicts=self.verdicts,
            typical={shape.key: shape.min_rate for shape in self.fleet.spec.shapes},
            machines_in_use=frozenset(i.machine_id for i in alive),
            expected={self._place(n): v.rate for n, v in self.verdicts.items() if v.rate is not None},
            slow=frozenset(self._place(n) for n, v in self.verdicts.items() if v.decision is Decision.REJECTED),
            doubted={
                self._place(n): v.p_good or 0.0 for n, v in self.verdicts.items() if v.decision is Decision.CHALLENGED
            },
            backoffs=tuple(self.backoffs.values()),
            credit=micro(1000),
        )

    def _place(self, nonce: str) -> tuple[int, str]:
        return self.records[nonce].machine_id, self.records[nonce].shape

    def candidates(self, facts: Facts) -> list[Candidate]:
        """The market, sifted as the loop does it."""

        def blocked(o):
            slow = any((o.machine_id, shape.key) in facts.slow for shape in self.fleet.spec.shapes)
            return Reason.KNOWN_SLOW if slow or facts.blocked("machine", str(o.machine_id)) else None

        taken = {self.records[nonce].machine_id for nonce in self.existing}
        free = [o for o in self.market if o.machine_id not in taken]
        return [
            Candidate(offer=o, shape=shape.key, rate=facts.expected.get((o.machine_id, shape.key), shape.min_rate))
            for shape in self.fleet.spec.shapes
            for o in sift(free, spec=self.fleet.spec, shape=shape, now=facts.now, blocked=blocked).offers
        ]

    def decide(self) -> tuple[Facts, Plan, tuple[Rent, ...]]:
        """What one pass would do."""
        facts = self.look()
        made = plan(facts)
        return facts, made, rent(facts, made, self.candidates(facts)) if made.wanted.count else ()

    def act(self, made: Plan, rents: tuple[Rent, ...]) -> None:
        """Do it, as far as luck allows."""
        for action in (*made.actions, *rents):
            self._perform(action)
        self.now += STEP

    def _perform(self, action: Action) -> None:
        match action:
            case Note():
                self.records[action.instance.nonce] = action.instance
                for key in action.cleared:
                    self.backoffs.pop(key, None)
            case Release() | Destroy():
                self._destroy(action)
            case Confirm() if action.instance.nonce in self.existing:
                pass
            case Confirm():
                gone = in_phase(action.instance, Phase.GONE, Reason.VANISHED, now=self.now)
                self.records[gone.nonce] = gone
            case Begin():
                self._job(action)
            case Rent():
                self._rent(action)
            case _:
                raise AssertionError(action)

    def _destroy(self, action: Release | Destroy) -> None:
        leaving = action.instance
        if leaving.phase is not Phase.DESTROYING:
            leaving = in_phase(leaving, Phase.DESTROYING, action.reason, now=self.now)
        if not self.luck(0.3):
            self.existing.discard(leaving.nonce)
        self.records[leaving.nonce] = replace(
            leaving, destroy_calls=leaving.destroy_calls + 1, not_before=self.now + 90
        )
        if isinstance(action, Release):
            self.backoffs |= {(b.scope, b.key): b for b in action.backoffs}

    def _job(self, begin: Begin) -> None:
        of, ok = begin.instance, not self.luck(0.2)
        reason = Reason.MEASURED if ok else Reason.BENCHMARK_FAILED
        self.records[of.nonce] = after_job(
            of, JobEnd(job=begin.job, ok=ok, reason=reason), now=self.now, limits=Limits()
        ).instance
        if begin.job == "measure" and ok:
            self.records[of.nonce] = replace(self.records[of.nonce], checked_at=self.now)
            self._judge(of)

    def _judge(self, of: Instance) -> None:
        rate = self.true_rate[of.machine_id] * self.chance.uniform(0.98, 1.02)
        floor = next((s.min_rate for s in self.fleet.spec.shapes if s.key == of.shape), 0.0)
        slow = Decision.REJECTED if of.machine_id % 2 else Decision.CHALLENGED
        decision = Decision.ACCEPTED if rate >= floor else slow
        again = None if decision is Decision.REJECTED else self.now + 20 * STEP
        said = Verdict(decision=decision, p_good=min(1.0, 0.5 * rate / max(floor, 1.0)), rate=rate, next_run_at=again)
        self.verdicts = {**self.verdicts, of.nonce: said}

    def _rent(self, action: Rent) -> None:
        self.made += 1
        nonce, label = labels.make(owner=OWNER, fleet=self.fleet.name, new_id=f"{self.made:08x}")
        created = Instance(
            nonce=nonce,
            fleet=self.fleet.name,
            label=label,
            shape=action.shape,
            gpu=action.offer.gpu,
            gpu_count=1,
            machine_id=action.offer.machine_id,
            price=action.price,
            disk_gib=50,
            workload=self.fleet.spec.workload(),
            phase=Phase.INTENDED,
            phase_since=self.now,
            reason=action.reason,
            created_at=self.now,
        )
        unclear, rented = self.luck(0.2), not self.luck(0.2)
        if unclear:
            created = in_phase(created, Phase.UNCLEAR, Reason.CREATE_UNCLEAR, now=self.now)
        elif rented:
            created = in_phase(
                replace(created, instance_id=5000 + self.made), Phase.LAUNCHING, Reason.RENTED, now=self.now
            )
        else:
            created = in_phase(created, Phase.GONE, Reason.OFFER_GONE, now=self.now)
        self.records[nonce] = created
        if rented:
            self.existing.add(nonce)
            self.hidden[nonce] = self.now + (STEP * self.chance.randint(0, 2) if not self.calm else 0)
