"""What a fleet as a whole needs: less when it is over budget or target, replacements, more when something is missing.

Whom it gives up is in `shrink.py`. A pass asks `plan` what is missing, and `rent`, with offers, what to rent for it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial

from controller.model.actions import Action, Note, Release, Rent
from controller.model.fleet import Fleet
from controller.model.instance import Phase
from controller.model.money import MicroUsd, dollars
from controller.model.reasons import Reason
from controller.plan import shrink
from controller.plan.choose import Wanted, choose
from controller.plan.facts import Facts
from controller.plan.life import next_step
from controller.plan.offers import Candidate
from controller.plan.track import name_of

NOTHING = Wanted()
PLAINLY = 0.1  # of P: what is known of two doubtful machines differs by less from one run to the next


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do for one fleet, and what is missing. `blocked`: why nothing is rented although something is missing."""

    actions: tuple[Action, ...] = ()
    wanted: Wanted = NOTHING
    missing: float = 0.0  # instances, or rate in the benchmark's unit
    blocked: Reason | None = None
    blocked_why: str = ""
    doomed: dict[str, str] = field(default_factory=dict)  # by nonce: why a working instance is to be replaced
    to_beat: float | None = None  # P(fast enough) of the worst of the doubtful, when only their successors are missing


def plan(facts: Facts) -> Plan:
    """Everything but renting: the next step of each instance, what must go, and what is missing."""
    steps, facts = _steps(facts)
    going = {step.instance.nonce for step in steps if isinstance(step, Release)}
    if facts.listing is None or facts.fleet is None or facts.deleting:
        return Plan(actions=tuple(steps))
    cut = shrink.over_budget(facts, facts.fleet, going)
    going |= {release.instance.nonce for release in cut}
    doomed = shrink.doomed_of(facts, going)
    voluntary = [] if facts.fleet.spec.suspend else _voluntary(facts, facts.fleet, doomed, going)
    going |= {release.instance.nonce for release in voluntary}
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
        to_beat=_to_beat(facts, facts.fleet, doomed, going),
    )


def rent(facts: Facts, plan: Plan, candidates: Iterable[Candidate]) -> tuple[Rent, ...]:
    """What to rent for what is missing. One instance a machine, unless nothing else is left."""
    in_use = facts.machines_in_use  # by ours, and so preferred no more
    worth = (c for c in candidates if _worth_a_try(facts, plan, c))
    pool = tuple(replace(c, preferred=False) if c.offer.machine_id in in_use else c for c in worth)
    apart = [c for c in pool if c.offer.machine_id not in in_use]
    fresh = [c for c in apart if (c.offer.machine_id, c.shape) not in facts.doubted]
    chosen: tuple[Candidate, ...] = ()
    for tier in (fresh, apart, pool):  # machines in doubt, or in use already, only where there is no other
        chosen = chosen or choose(tier, plan.wanted)
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


def _to_beat(facts: Facts, fleet: Fleet, doomed: dict[str, tuple[Reason, str]], going: set[str]) -> float | None:
    stay = shrink.staying(facts, going)
    held = sum(shrink.value_of(facts, fleet, i) for i in stay) >= shrink.target_of(fleet) - 1e-9
    worst = [i for i in stay if i.nonce in doomed]
    if not held or any(doomed[i.nonce][0] is not Reason.BELOW_MIN_RATE for i in worst):
        return None
    return min((shrink.hope_of(facts, i, doomed[i.nonce][0]) for i in worst), default=None)


def _worth_a_try(facts: Facts, plan: Plan, candidate: Candidate) -> bool:
    """A successor that is in doubt itself must be plainly likelier, or it would go again, and be rented again.

    What must go for another reason has nothing to be beaten.
    """
    p = facts.doubted.get((candidate.offer.machine_id, candidate.shape))
    return p is None or plan.to_beat is None or p > plan.to_beat + PLAINLY


def affordable(facts: Facts) -> MicroUsd:
    """What the budget leaves an hour, after everything that bills or may bill."""
    return facts.fleet.spec.budget - facts.reserved if facts.fleet is not None else 0


def _steps(facts: Facts) -> tuple[list[Action], Facts]:
    """Each instance's next step, and the facts with what their failures are held against: five at once are five."""
    steps: list[Action] = []
    for instance in facts.instances:
        step = next_step(instance, facts)
        if step is not None:
            steps.append(step)
        if isinstance(step, Release) and step.backoffs:
            newer = {(b.scope, b.key) for b in step.backoffs}
            older = (b for b in facts.backoffs if (b.scope, b.key) not in newer)
            facts = replace(facts, backoffs=(*older, *step.backoffs))
    return steps, facts


def _voluntary(facts: Facts, fleet: Fleet, doomed: dict[str, tuple[Reason, str]], going: set[str]) -> list[Release]:
    """What the fleet gives up of its own will: nothing of it happens while it is suspended."""
    releases: list[Release] = []
    gone = set(going)
    for give_up in (shrink.astray, shrink.surplus, partial(shrink.replaced, doomed=doomed)):
        more = give_up(facts, fleet, gone)
        gone |= {release.instance.nonce for release in more}
        releases += more
    return releases


def _moot(step: Action, going: set[str]) -> bool:
    """A step of an instance that is being given up, other than giving it up."""
    return not isinstance(step, (Release, Rent)) and step.instance.nonce in going


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


def _wanted(facts: Facts, fleet: Fleet, doomed: dict[str, tuple[Reason, str]], going: set[str]) -> tuple[float, Wanted]:
    """What is missing: first what the target lacks, then successors for the doomed, within maxSurge."""
    stay = shrink.staying(facts, going)
    value = {i.nonce: shrink.value_of(facts, fleet, i) for i in stay}
    counts = Counter(i.shape for i in stay if i.nonce not in doomed)
    hard = shrink.target_of(fleet) - sum(value.values())
    soft = shrink.target_of(fleet) - sum(v for nonce, v in value.items() if nonce not in doomed)
    lacking = {s.key: s.min_instances - counts[s.key] for s in fleet.spec.shapes if s.min_instances > counts[s.key]}
    rooms = {s.key: max(0, s.max_instances - counts[s.key]) for s in fleet.spec.shapes if s.max_instances is not None}
    for shape in fleet.spec.shapes:
        trouble = facts.shape_trouble(shape.key)
        failing = trouble is not None and trouble.failures >= facts.limits.same_fault
        if shape.key in facts.out_of_reach:
            rooms[shape.key] = 0
        elif failing or facts.suspect is not None:  # one at a time, until one succeeds
            on_trial = sum(i.shape == shape.key for i in facts.pending)
            rooms[shape.key] = min(rooms.get(shape.key, 1), max(0, 1 - on_trial))
    most = 1_000_000
    missing = max(0.0, hard)
    if hard <= 1e-9:  # noqa: PLR2004 - nothing, for a sum of rates
        missing = max(0.0, soft)
        most = max(0, fleet.spec.disruption.max_surge - _above(facts, fleet, value, going)) if missing else most
    by_count = fleet.spec.target.instances is not None
    return missing, Wanted(
        instances=round(missing) if by_count else 0,
        rate=0.0 if by_count else missing,
        most=most,
        budget=max(0, affordable(facts)),
        least_of=lacking,
        most_of=rooms,
    )


def _above(facts: Facts, fleet: Fleet, value: dict[str, float], going: set[str]) -> int:
    """Instances held above the target already; of a rate, those that are on their way."""
    if fleet.spec.target.instances is not None:
        return max(0, round(sum(value.values()) - shrink.target_of(fleet)))
    return sum(i.nonce not in going for i in facts.pending)


def _blocked(facts: Facts, fleet: Fleet, wanted: Wanted, missing: float) -> tuple[Reason | None, str]:
    """Why nothing may be rented although something is missing."""
    if missing <= 0 and not wanted.least_of:
        return None, ""
    if fleet.spec.suspend:
        return Reason.SUSPENDED, "the manifest says suspend: true"
    if facts.held_off is not None:
        return facts.held_off
    if (held := _held_off(facts, fleet)) is not None:
        return held
    if wanted.most <= 0:
        return Reason.REPLACING, "as many successors as maxSurge allows are on their way"
    return _unaffordable(facts, fleet, wanted)


def _held_off(facts: Facts, fleet: Fleet) -> tuple[Reason, str] | None:
    """Why no shape may be tried now: floors that no machine reaches, or failures of late."""
    if len(facts.out_of_reach) == len(fleet.spec.shapes):
        return Reason.FLOOR_OUT_OF_REACH, next(iter(facts.out_of_reach.values()))
    troubles = [facts.shape_trouble(shape.key) for shape in fleet.spec.shapes]
    holding = [trouble for trouble in troubles if trouble is not None and trouble.until > facts.now]
    if len(holding) < len(troubles):
        return None
    first = min(holding, key=lambda trouble: trouble.until)
    why = f"failed {first.failures} times, waits {first.until - facts.now:.0f} s more: {first.detail}"
    return first.reason, why


def _unaffordable(facts: Facts, fleet: Fleet, wanted: Wanted) -> tuple[Reason | None, str]:
    unpriced = [name_of(instance) for instance in facts.instances if instance.price <= 0]
    if unpriced:
        return Reason.BUDGET_EXHAUSTED, f"what {unpriced[0]} costs is not known yet, and may be all of the budget"
    if wanted.budget <= 0:
        return Reason.BUDGET_EXHAUSTED, f"all of {dollars(fleet.spec.budget)}/h is taken by {dollars(facts.reserved)}/h"
    return None, ""
