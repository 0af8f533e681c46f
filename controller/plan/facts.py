"""What the planner goes by for one fleet: the manifest, what was seen, and what we think of it.

Frozen, so a plan can be repeated.
"""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from controller.model.fleet import Fleet
from controller.model.instance import Backoff, Decision, Instance, Job, Phase, Run, Search, Verdict
from controller.model.market import Listing, Sighting
from controller.model.money import MicroUsd, dollars
from controller.model.reasons import Reason
from controller.plan.backoffs import fleet_key, key_of
from controller.plan.limits import Limits

PENDING = frozenset({Phase.INTENDED, Phase.UNCLEAR, Phase.LAUNCHING, Phase.PREPARING, Phase.MEASURING})
LEAVING = frozenset({Phase.RELEASING, Phase.DESTROYING})


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One fleet at one moment. `fleet` is None when its manifest is not loaded: then nothing voluntary is done."""

    now: float  # unix seconds
    name: str
    fleet: Fleet | None
    instances: tuple[Instance, ...]  # this fleet's, all that may bill
    listing: Listing | None  # None: nothing is known of what exists
    limits: Limits
    seen: Mapping[str, Sighting] = field(default_factory=dict)  # by nonce
    jobs: Mapping[str, Job] = field(default_factory=dict)  # by nonce
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)  # by nonce
    failed_runs: Mapping[str, Run] = field(default_factory=dict)  # by nonce: the last run, if it gave no rate
    expected: Mapping[tuple[int, str], float] = field(default_factory=dict)  # by machine and shape, where measured
    typical: Mapping[str, float] = field(default_factory=dict)  # by shape, for a machine never measured
    slow: frozenset[tuple[int, str]] = frozenset()  # machine and shape found too slow
    doubted: Mapping[tuple[int, str], float] = field(default_factory=dict)  # P by machine and shape, where in doubt
    search: Mapping[str, Search] = field(default_factory=dict)  # by shape: what finding one more takes
    out_of_reach: Mapping[str, str] = field(default_factory=dict)  # by shape: why next to no machine reaches its floor
    ran_out: Mapping[str, tuple[tuple[float | None, int], ...]] = field(default_factory=dict)  # by shape: GiB and width
    ran_out_here: Mapping[tuple[int, str], tuple[tuple[float | None, int], ...]] = field(default_factory=dict)
    suspect: tuple[Reason, str] | None = None  # what is held to slow or fail many machines at once, other than they
    company: Mapping[str, int] = field(default_factory=dict)  # by nonce: others of ours at work on its machine
    machines_in_use: AbstractSet[int] = frozenset()  # by any fleet of ours
    backoffs: tuple[Backoff, ...] = ()
    credit: MicroUsd | None = None
    spend: MicroUsd = 0  # an hour, of all our fleets together
    deleting: bool = False
    discarded: AbstractSet[str] = frozenset()  # nonces of those whose records somebody asked to be taken away
    workload: str = field(init=False)  # fingerprint of what the manifest asks for now

    def __post_init__(self) -> None:
        object.__setattr__(self, "workload", self.fleet.spec.workload() if self.fleet is not None else "")

    @property
    def working(self) -> tuple[Instance, ...]:
        """Instances that count towards the target."""
        return tuple(i for i in self.instances if i.admitted_at is not None and i.phase not in LEAVING)

    @property
    def pending(self) -> tuple[Instance, ...]:
        """Instances that may come to count."""
        return tuple(i for i in self.instances if i.admitted_at is None and i.phase in PENDING)

    @property
    def leaving(self) -> tuple[Instance, ...]:
        """Instances that are being given up and still bill."""
        return tuple(i for i in self.instances if i.phase in LEAVING)

    @property
    def reserved(self) -> MicroUsd:
        """What all that bills or may bill costs an hour at the most."""
        return sum(i.price for i in self.instances)

    @property
    def out_of_credit(self) -> bool:
        """Whether vast.ai may have stopped everything for want of money."""
        return self.credit is not None and self.credit < self.limits.min_credit

    def rate_of(self, instance: Instance) -> float:
        """What an instance does or is expected to do, in the benchmark's unit."""
        verdict = self.verdicts.get(instance.nonce)
        if verdict is not None and verdict.rate is not None:
            return verdict.rate
        key = (instance.machine_id, instance.shape)
        return self.expected.get(key, self.typical.get(instance.shape, 0.0))

    def widths_out_of(self, instance: Instance) -> tuple[tuple[float | None, int], ...]:
        """Memory, GiB, and widths that ran out of it, on any machine and on its own; no room at all has its limit."""
        here = self.ran_out_here.get((instance.machine_id, instance.shape), ())
        return (*self.ran_out.get(instance.shape, ()), *(each for each in here if each[1] > 0))

    def most_for(self, instance: Instance) -> MicroUsd | None:
        """What an instance may cost an hour at the most by its shape, None if only the budget limits it."""
        shapes = self.fleet.spec.shapes if self.fleet is not None else ()
        return next((shape.max_price for shape in shapes if shape.key == instance.shape), None)

    def decision(self, instance: Instance) -> Decision:
        """What its runs say of an instance."""
        verdict = self.verdicts.get(instance.nonce)
        return Decision.UNKNOWN if verdict is None else verdict.decision

    @property
    def held_off(self) -> tuple[Reason, str] | None:
        """Why nothing at all can be rented now: what the account or the fleet waits for, or too little credit."""
        wait = self.blocked("account", "account") or self.blocked("fleet", fleet_key(self.name, self.workload))
        if wait is not None:
            return wait.reason, f"waits {wait.until - self.now:.0f} s more: {wait.detail}"
        least = max(self.limits.min_credit, round(self.limits.credit_hours * self.spend))
        if self.credit is not None and self.credit < least:
            return Reason.CREDIT_EXHAUSTED, f"{dollars(max(0, self.credit))} of credit left"
        return None

    def outdated(self, instance: Instance) -> bool:
        """Whether the manifest asks for other shapes now, or another workload, than when the instance was rented."""
        if self.fleet is None:
            return False
        return instance.workload != self.workload or instance.shape not in {s.key for s in self.fleet.spec.shapes}

    def avoided(self, machine_id: int) -> str | None:
        """Why the manifest says to avoid a machine, None if it does not."""
        pins = self.fleet.spec.machines.avoid if self.fleet is not None else ()
        return next((pin.reason for pin in pins if pin.id == machine_id and self.now < pin.expires_at), None)

    def shape_trouble(self, shape: str) -> Backoff | None:
        """What is held against a whole shape, in force or not: its failures since the last success."""
        if self.fleet is None:
            return None
        key = key_of(self.name, shape, self.workload)
        return next((b for b in self.backoffs if b.scope == "shape" and b.key == key), None)

    def blocked(self, scope: str, key: str) -> Backoff | None:
        """The back-off that holds now for this scope and key."""
        return next((b for b in self.backoffs if b.scope == scope and b.key == key and b.until > self.now), None)
