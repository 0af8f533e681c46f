"""What a fleet as a whole needs: less when it is over budget or target, replacements, more when something is missing.

Order in which instances are given up, for whatever reason the fleet has: those not admitted yet, then by rate per
dollar, worst first, then the youngest. `plan` is asked twice in a pass: without offers it says what is missing, with
them it says what to rent.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from controller.model.actions import Action, Note, Release, Rent
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance, Phase
from controller.model.money import MicroUsd, dollars
from controller.model.reasons import Reason
from controller.plan.choose import Wanted, choose
from controller.plan.facts import Facts
from controller.plan.life import next_step
from controller.plan.offers import Candidate

NOTHING = Wanted()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do for one fleet, and what is missing. `blocked`: why nothing is rented although something is missing."""

    actions: tuple[Action, ...] = ()
    wanted: Wanted = NOTHING
    missing: float = 0.0  # instances, or rate in the benchmark's unit
    blocked: Reason | None = None
    blocked_why: str = ""
    doomed: dict[str, str] = field(default_factory=dict)  # by nonce: why a working instance is to be replaced


def plan(facts: Facts) -> Plan:
    """Everything but renting: the next step of each instance, what must go, and what is missing."""
    steps = [step for step in (next_step(instance, facts) for instance in facts.instances) if step is not None]
    going = {step.instance.nonce for step in steps if isinstance(step, Release)}
    if facts.listing is None or facts.fleet is None or facts.deleting:
        return Plan(actions=tuple(steps))
    cut = _over_budget(facts, going)
    going |= {release.instance.nonce for release in cut}
    cut += _shapeless(facts, facts.fleet, going)
    going |= {release.instance.nonce for release in cut}
    doomed = _doomed(facts, going)
    voluntary: list[Release] = []
    if not facts.fleet.spec.suspend:
        voluntary = _surplus(facts, facts.fleet, going)
        going |= {release.instance.nonce for release in voluntary}
        replaced = _replaced(facts, facts.fleet, {n: r for n, r in doomed.items() if n not in going}, going)
        going |= {release.instance.nonce for release in replaced}
        voluntary += replaced
    steps = _rechecks_bounded([step for step in steps if not _moot(step, going)], facts, facts.fleet)
    missing, wanted = _wanted(facts, facts.fleet, doomed, going)
    blocked, why = _blocked(facts, facts.fleet, wanted, missing)
    return Plan(
        actions=(*steps, *cut, *voluntary),
        wanted=NOTHING if blocked is not None else wanted,
        missing=missing,
        blocked=blocked,
        blocked_why=why,
        doomed={nonce: why for nonce, (_, why) in doomed.items()},
    )


def rent(facts: Facts, plan: Plan, candidates: Iterable[Candidate]) -> tuple[Rent, ...]:
    """What to rent for what is missing. One instance a machine, unless nothing else is left."""
    pool = tuple(candidates)
    fresh = [c for c in pool if c.offer.machine_id not in facts.machines_in_use]
    chosen = choose(fresh, plan.wanted)
    if not chosen and len(fresh) < len(pool):
        chosen = choose(pool, plan.wanted)
    reason = Reason.REPLACING if plan.doomed else Reason.FILLING
    unit = facts.fleet.spec.benchmark.unit if facts.fleet is not None else ""
    return tuple(
        Rent(
            fleet=facts.name,
            shape=c.shape,
            offer=c.offer,
            rate=c.rate,
            reason=reason,
            why=f"{c.rate:.4g} {unit} expected for {dollars(c.price)}/h",
        )
        for c in chosen
    )


def affordable(facts: Facts) -> MicroUsd:
    """What the budget leaves an hour, after everything that bills or may bill."""
    return facts.fleet.spec.budget - facts.reserved if facts.fleet is not None else 0


def _moot(step: Action, going: set[str]) -> bool:
    """A step of an instance that is being given up, other than giving it up."""
    return not isinstance(step, (Release, Rent)) and step.instance.nonce in going


def _value(facts: Facts, fleet: Fleet, instance: Instance) -> float:
    """What an instance adds towards the target: itself, or its rate."""
    return 1.0 if fleet.spec.target.instances is not None else facts.rate_of(instance)


def _target(fleet: Fleet) -> float:
    target = fleet.spec.target
    return float(target.instances if target.instances is not None else target.rate or 0.0)


def _least_valuable_first(facts: Facts, instances: Iterable[Instance]) -> list[Instance]:
    def key(instance: Instance) -> tuple[bool, float, float, str]:
        per_dollar = facts.rate_of(instance) / max(instance.price, 1)
        return instance.admitted_at is not None, per_dollar, -instance.created_at, instance.nonce

    return sorted(instances, key=key)


def _staying(facts: Facts, going: set[str]) -> list[Instance]:
    return [i for i in (*facts.working, *facts.pending) if i.nonce not in going]


def _over_budget(facts: Facts, going: set[str]) -> list[Release]:
    """Give up until what stays is within the budget: what leaves already frees its share when it is gone."""
    assert facts.fleet is not None  # noqa: S101 - the caller has looked
    staying = _staying(facts, going)
    excess = sum(i.price for i in staying) - facts.fleet.spec.budget
    releases = []
    for instance in _least_valuable_first(facts, (i for i in staying if i.instance_id is not None)):
        if excess <= 0:
            break
        why = f"{dollars(excess)}/h over the budget of {dollars(facts.fleet.spec.budget)}/h"
        releases.append(Release(instance=instance, reason=Reason.OVER_BUDGET, why=why))
        excess -= instance.price
    return releases


def _shapeless(facts: Facts, fleet: Fleet, going: set[str]) -> list[Release]:
    """Instances on their way up for which the manifest has no place any more."""
    shapes = {shape.key for shape in fleet.spec.shapes}
    astray = (i for i in facts.pending if i.nonce not in going and i.instance_id is not None and i.shape not in shapes)
    return [Release(instance=i, reason=Reason.OUTDATED, why=f"{i.shape} is not a shape of the fleet") for i in astray]


def _rechecks_bounded(steps: list[Action], facts: Facts, fleet: Fleet) -> list[Action]:
    """Keep as many re-checks as maxUnavailable allows, at least one: an instance being measured produces nothing."""
    room = max(1, fleet.spec.disruption.max_unavailable) - sum(i.phase is Phase.MEASURING for i in facts.working)
    kept: list[Action] = []
    for step in steps:
        if isinstance(step, Note) and step.reason is Reason.RECHECK_DUE:
            if room <= 0:
                continue
            room -= 1
        kept.append(step)
    return kept


def _doomed(facts: Facts, going: set[str]) -> dict[str, tuple[Reason, str]]:
    """Working instances that are to be replaced, and why."""
    verdicts = {i.nonce: _sentence(facts, i) for i in facts.working if i.nonce not in going}
    return {nonce: verdict for nonce, verdict in verdicts.items() if verdict is not None}


def _sentence(facts: Facts, instance: Instance) -> tuple[Reason, str] | None:
    assert facts.fleet is not None  # noqa: S101 - the caller has looked
    spec = facts.fleet.spec
    if instance.shape not in {shape.key for shape in spec.shapes}:
        return Reason.OUTDATED, f"{instance.shape} is not a shape of the fleet any more"
    if instance.workload != spec.workload():
        return Reason.OUTDATED, "what it runs is not what the manifest says now"
    if instance.ends_at is not None and instance.ends_at - facts.now < facts.limits.contract_end:
        return Reason.CONTRACT_ENDING, f"its contract ends in {max(0.0, instance.ends_at - facts.now) / 60:.0f} min"
    verdict = facts.verdicts.get(instance.nonce)
    if verdict is not None and verdict.decision in {Decision.REJECTED, Decision.CHALLENGED}:
        return Reason.BELOW_MIN_RATE, verdict.line
    return None


def _replaced(facts: Facts, fleet: Fleet, doomed: dict[str, tuple[Reason, str]], going: set[str]) -> list[Release]:
    """Give up doomed instances while the target, less maxUnavailable, is still met without them."""
    disruption = fleet.spec.disruption
    working = [i for i in facts.working if i.nonce not in going]
    held = sum(_value(facts, fleet, i) for i in working)
    releases: list[Release] = []
    for instance in _least_valuable_first(facts, (i for i in working if i.nonce in doomed)):
        reason, why = doomed[instance.nonce]
        value = _value(facts, fleet, instance)
        slack = 0.0 if facts.decision(instance) is Decision.CHALLENGED else disruption.max_unavailable * value
        young = facts.now - instance.created_at < disruption.min_lifetime_minutes * 60 and reason is Reason.OUTDATED
        if young or held - value < _target(fleet) - slack - 1e-9:
            continue
        held -= value
        releases.append(Release(instance=instance, reason=reason, why=why))
    return releases


def _surplus(facts: Facts, fleet: Fleet, going: set[str]) -> list[Release]:
    """Give up what the target and the shapes' bounds do not need. Doomed instances go first: they are worth least."""
    staying = _staying(facts, going)
    doomed = _doomed(facts, going)
    bounds = {shape.key: shape for shape in fleet.spec.shapes}
    counts = Counter(i.shape for i in staying if i.nonce not in doomed)  # a successor may be held beside the doomed
    excess = sum(_value(facts, fleet, i) for i in staying if i.nonce not in doomed) - _target(fleet)
    releases: list[Release] = []
    for instance in _least_valuable_first(
        facts, (i for i in staying if i.instance_id is not None and i.nonce not in doomed)
    ):
        shape = bounds.get(instance.shape)
        if shape is None:
            continue
        value = _value(facts, fleet, instance)
        above = shape.max_instances is not None and counts[instance.shape] > shape.max_instances
        unneeded = value <= excess + 1e-9 and counts[instance.shape] > shape.min_instances
        if above or unneeded:
            counts[instance.shape] -= 1
            excess -= value
            why = "above its shape's maxInstances" if above else "the target is met without it"
            releases.append(Release(instance=instance, reason=Reason.SURPLUS, why=why))
    return releases


def _wanted(facts: Facts, fleet: Fleet, doomed: dict[str, tuple[Reason, str]], going: set[str]) -> tuple[float, Wanted]:
    """What is missing: first what the target lacks, then successors for the doomed, within maxSurge."""
    staying = _staying(facts, going)
    value = {i.nonce: _value(facts, fleet, i) for i in staying}
    counts = Counter(i.shape for i in staying if i.nonce not in doomed)
    hard = _target(fleet) - sum(value.values())
    soft = _target(fleet) - sum(v for nonce, v in value.items() if nonce not in doomed)
    lacking = {s.key: s.min_instances - counts[s.key] for s in fleet.spec.shapes if s.min_instances > counts[s.key]}
    rooms = {s.key: max(0, s.max_instances - counts[s.key]) for s in fleet.spec.shapes if s.max_instances is not None}
    for shape in fleet.spec.shapes:
        trouble = facts.shape_trouble(shape.key)
        if trouble is not None and trouble.failures >= facts.limits.same_fault:  # one at a time, until one succeeds
            on_trial = sum(i.shape == shape.key for i in facts.pending)
            rooms[shape.key] = min(rooms.get(shape.key, 1), max(0, 1 - on_trial))
    most = 1_000_000
    missing = max(0.0, hard)
    if hard <= 1e-9:  # noqa: PLR2004 - nothing, for a sum of rates
        missing = max(0.0, soft)
        most = max(0, fleet.spec.disruption.max_surge - _challengers(facts, fleet, value, going)) if missing else most
    by_count = fleet.spec.target.instances is not None
    return missing, Wanted(
        instances=round(missing) if by_count else 0,
        rate=0.0 if by_count else missing,
        most=most,
        budget=max(0, affordable(facts)),
        least_of=lacking,
        most_of=rooms,
    )


def _challengers(facts: Facts, fleet: Fleet, value: dict[str, float], going: set[str]) -> int:
    """Instances held above the target already."""
    pending = [i for i in facts.pending if i.nonce not in going]
    above = sum(value.values()) - _target(fleet)
    return min(len(pending), round(above)) if fleet.spec.target.instances is not None else len(pending)


def _blocked(facts: Facts, fleet: Fleet, wanted: Wanted, missing: float) -> tuple[Reason | None, str]:
    """Why nothing may be rented although something is missing."""
    if missing <= 0 and not wanted.least_of:
        return None, ""
    if fleet.spec.suspend:
        return Reason.SUSPENDED, "the manifest says suspend: true"
    held_off = facts.blocked("account", "account") or facts.blocked("fleet", f"{fleet.name}/{fleet.spec.workload()}")
    if held_off is not None:
        return held_off.reason, f"waits {held_off.until - facts.now:.0f} s more: {held_off.detail}"
    troubles = [facts.shape_trouble(shape.key) for shape in fleet.spec.shapes]
    holding = [trouble for trouble in troubles if trouble is not None and trouble.until > facts.now]
    if len(holding) == len(troubles):
        first = min(holding, key=lambda trouble: trouble.until)
        why = f"failed {first.failures} times, waits {first.until - facts.now:.0f} s more: {first.detail}"
        return first.reason, why
    if wanted.most <= 0:
        return Reason.REPLACING, "as many successors as maxSurge allows are on their way"
    return _moneyless(facts, fleet, wanted)


def _moneyless(facts: Facts, fleet: Fleet, wanted: Wanted) -> tuple[Reason | None, str]:
    least = max(facts.limits.min_credit, round(facts.limits.credit_hours * facts.spend))
    if facts.credit is not None and facts.credit < least:
        return Reason.CREDIT_EXHAUSTED, f"{dollars(max(0, facts.credit))} of credit left"
    if wanted.budget <= 0:
        return Reason.BUDGET_EXHAUSTED, f"all of {dollars(fleet.spec.budget)}/h is taken by {dollars(facts.reserved)}/h"
    return None, ""
