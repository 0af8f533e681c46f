"""What a pass found and did, said as a fleet's status: counts, money, and conditions whose every reason is in the one table.

Ready is computed from the rest, never set on its own. Called at the end of each pass, with the status of the pass before.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.model.actions import Action, Begin, Confirm, Destroy, Note, Release, Rent, Resume
from controller.model.faults import Fault, Misconfigured
from controller.model.instance import Event, Instance, Phase
from controller.model.money import dollars, usd
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus, Market, Planned, ShapeStatus
from controller.plan.facts import Facts
from controller.plan.fleet import Plan

FAILING = frozenset(
    {
        Reason.PREPARE_FAILED,
        Reason.PREPARE_STALLED,
        Reason.PREPARE_TIMEOUT,
        Reason.BENCHMARK_FAILED,
        Reason.BENCHMARK_TIMEOUT,
        Reason.NO_RATE,
        Reason.OUT_OF_MEMORY,
        Reason.START_FAILED,
        Reason.SSH_REFUSED,
        Reason.SSH_UNREACHABLE,
        Reason.HOST_KEY_CHANGED,
        Reason.CONNECTION_LOST,
    }
)
LINES_OF_PLAN = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that a status is made from."""

    facts: Facts
    plan: Plan
    actions: Sequence[Action] = ()  # the plan's, and what was rented
    faults: Sequence[Fault] = ()  # of the listing and of the actions
    market: Market | None = None  # None: not searched in this pass
    before: FleetStatus | None = None


def status(found: Found) -> FleetStatus:
    """A fleet's status after a pass."""
    facts, before = found.facts, found.before
    fleet = facts.fleet
    target = fleet.spec.target if fleet is not None else None
    working = [i for i in facts.working if i.absent_since is None]
    rate = sum(facts.rate_of(i) for i in working)
    spend = sum(i.price for i in facts.instances if i.instance_id is not None)
    made_at = before.created_at if before is not None and before.created_at is not None else facts.now
    said = FleetStatus(
        fleet=facts.name,
        unit=fleet.spec.benchmark.unit if fleet is not None else before.unit if before is not None else "",
        target=(target.instances if target.instances is not None else target.rate or 0.0) if target is not None else 0,
        target_kind="rate" if target is not None and target.instances is None else "instances",
        held=len(working),
        measuring=sum(i.phase in {Phase.PREPARING, Phase.MEASURING} for i in facts.pending),
        pending=len(facts.pending),
        leaving=len(facts.leaving),
        rate=rate,
        spend_per_hour=usd(spend),
        reserved_per_hour=usd(facts.reserved),
        budget_per_hour=usd(fleet.spec.budget) if fleet is not None else 0.0,
        cost_per_unit=usd(spend) / rate if rate > 0 else None,
        credit_runway_hours=facts.credit / facts.spend if facts.credit is not None and facts.spend else None,
        market=found.market or (before.market if before is not None else Market()),
        plan=tuple(_planned(a) for a in found.actions if not isinstance(a, Note))[:LINES_OF_PLAN],
        workload=fleet.spec.workload() if fleet is not None else before.workload if before is not None else "",
        recheck_hours=fleet.spec.benchmark.recheck_hours if fleet is not None else 24.0,
        shapes=_shapes(found),
        instances=tuple(_instance(found, instance) for instance in facts.instances),
        created_at=made_at,
        last_pass=facts.now,
    )
    return said.model_copy(update={"conditions": _conditions(found, said)})


def events(before: FleetStatus | None, after: FleetStatus, *, now: float) -> tuple[Event, ...]:
    """What is worth saying of the difference: Ready, when it or its reason changed."""
    old = before.condition("Ready") if before is not None else None
    new = after.condition("Ready")
    if new is None or (old is not None and (old.status, old.reason) == (new.status, new.reason)):
        return ()
    kind = "Warning" if after.condition("Stalled") is not None else "Normal"
    text = f"ready: {new.message}" if new.status == "True" else new.message
    return (Event(at=now, fleet=after.fleet, about=after.fleet, kind=kind, reason=new.reason, message=text),)


def _shapes(found: Found) -> tuple[ShapeStatus, ...]:
    fleet = found.facts.fleet
    if fleet is None:
        return found.before.shapes if found.before is not None else ()
    return tuple(ShapeStatus(key=shape.key, min_rate=shape.min_rate) for shape in fleet.spec.shapes)


def _instance(found: Found, instance: Instance) -> InstanceStatus:
    facts = found.facts
    verdict, job = facts.verdicts.get(instance.nonce), facts.jobs.get(instance.nonce)
    thought = found.before.instances if facts.fleet is None and found.before is not None else ()
    said = next((before for before in thought if before.nonce == instance.nonce), InstanceStatus(nonce=instance.nonce))
    if verdict is not None:
        names = ("decision", "p_good", "rate", "runs", "next_run_at", "line")
        said = said.model_copy(update={name: getattr(verdict, name) for name in names})
    return said if job is None else said.model_copy(update={"job": job.kind, "job_since": job.since})


def _planned(action: Action) -> Planned:
    match action:
        case Rent():
            return Planned(action="Rent", about=f"offer {action.offer.id}", reason=action.reason, why=action.why)
        case Begin():
            word, instance = action.job.capitalize(), action.instance
        case Release() | Destroy():
            word, instance = "Destroy", action.instance
        case Confirm() | Resume():
            word, instance = type(action).__name__, action.instance
        case Note():
            word, instance = "Note", action.instance
    about = str(instance.instance_id) if instance.instance_id is not None else instance.nonce
    return Planned(action=word, about=about, reason=action.reason, why=action.why)


Triple = tuple[str, Reason, str]  # status, reason, message


def _conditions(found: Found, said: FleetStatus) -> tuple[Condition, ...]:
    ready, stalled = _ready(found, said)
    triples: dict[str, Triple | None] = {
        "Ready": ready,
        "Reconciling": None if ready[0] == "True" or stalled else ("True", _reconciling(found, ready), ready[2]),
        "Stalled": ("True", ready[1], ready[2]) if stalled else None,
        "TargetMet": _target_met(found, said),
        "BudgetAvailable": _budget(found),
        "MarketAvailable": _market(found),
        "CreditSufficient": _credit(found),
        "BenchmarksHealthy": _benchmarks(found),
        "RemediationAllowed": _remediation(found),
        "Suspended": ("True", Reason.SUSPENDED, "nothing is rented, measured or replaced")
        if _suspended(found)
        else None,
    }
    return tuple(_condition(found, kind, triple) for kind, triple in triples.items() if triple is not None)


def _condition(found: Found, kind: str, triple: Triple) -> Condition:
    state, reason, message = triple
    old = found.before.condition(kind) if found.before is not None else None
    since = old.last_transition_time if old is not None and old.status == state else found.facts.now
    values = {"type": kind, "status": state, "reason": reason, "message": message, "last_transition_time": since}
    return Condition.model_validate(values)


def _ready(found: Found, said: FleetStatus) -> tuple[Triple, bool]:
    """Ready, and whether only a person can help."""
    facts = found.facts
    hopeless = next((fault for fault in found.faults if isinstance(fault, Misconfigured)), None)
    if hopeless is not None:
        return ("False", hopeless.reason, str(hopeless)), True
    if facts.listing is None:
        fault = found.faults[0] if found.faults else None
        reason = fault.reason if fault is not None else Reason.LISTING_FAILED
        return ("Unknown", reason, f"what exists is not known, so nothing is done: {fault or 'not listed yet'}"), False
    if facts.deleting:
        return ("False", Reason.TEARING_DOWN, f"{said.leaving} of its instances left to be proven gone"), False
    missing = [i for i in facts.instances if i.absent_since is not None and i.phase is not Phase.DESTROYING]
    if missing:
        return (
            "Unknown",
            Reason.MISSING,
            f"{_names(missing)} missing from the listing; counted as held until proven gone",
        ), False
    short = _short(found, said)
    return (short, False) if short is not None else (("True", Reason.TARGET_REACHED, _held(said)), False)


def _short(found: Found, said: FleetStatus) -> Triple | None:
    """What is still between the fleet and its target."""
    plan, facts = found.plan, found.facts
    renting = any(isinstance(action, Rent) for action in found.actions)
    if plan.blocked is not None and (plan.missing > 0 or plan.wanted.least_of):
        return "False", plan.blocked, f"{_held(said)}; {plan.blocked_why}"
    if facts.pending:
        return "False", Reason.FILLING, f"{_held(said)}; {len(facts.pending)} on their way"
    if plan.missing > 0 or plan.wanted.least_of:
        if renting:
            return "False", Reason.FILLING, f"{_held(said)}; renting"
        fault = found.faults[0] if found.faults else None
        reason = fault.reason if fault is not None else _market(found)[1]
        return "False", reason, f"{_held(said)}; {fault or _market(found)[2]}"
    if plan.doomed:
        return (
            "False",
            Reason.REPLACING,
            f"{_held(said)}; {len(plan.doomed)} to be replaced: {next(iter(plan.doomed.values()))}",
        )
    if facts.leaving:
        return "False", Reason.TEARING_DOWN, f"{_held(said)}; {len(facts.leaving)} being destroyed"
    return None


def _reconciling(found: Found, ready: Triple) -> Reason:
    return Reason.PROGRESSING_WITH_RETRY if found.faults or found.plan.blocked is not None else ready[1]


def _held(said: FleetStatus) -> str:
    if said.target_kind == "rate":
        return f"{said.rate:.4g} of {said.target:.4g} {said.unit} held by {said.held}"
    return f"{said.held} of {said.target:g} held"


def _names(instances: Sequence[Instance]) -> str:
    return ", ".join(str(i.instance_id if i.instance_id is not None else i.nonce) for i in instances[:3]) + (
        f" and {len(instances) - 3} more" if len(instances) > 3 else ""  # noqa: PLR2004 - as many as are named
    )


def _target_met(found: Found, said: FleetStatus) -> Triple:
    if found.facts.listing is None:
        return "Unknown", Reason.LISTING_FAILED, "what exists is not known"
    reached = said.rate if said.target_kind == "rate" else said.held
    met = reached >= said.target - 1e-9
    return ("True" if met else "False"), (Reason.TARGET_REACHED if met else Reason.FILLING), _held(said)


def _budget(found: Found) -> Triple:
    facts = found.facts
    budget = facts.fleet.spec.budget if facts.fleet is not None else 0
    text = f"{dollars(facts.reserved)}/h of {dollars(budget)}/h taken"
    if found.plan.blocked is Reason.BUDGET_EXHAUSTED:
        return "False", Reason.BUDGET_EXHAUSTED, found.plan.blocked_why
    if found.market is not None and not found.market.matching and found.market.rejected.get(Reason.BUDGET_EXHAUSTED):
        return "False", Reason.BUDGET_EXHAUSTED, f"{text}; no offer costs as little as is left"
    return "True", Reason.WITHIN_BUDGET, text


def _market(found: Found) -> Triple:
    market = found.market
    if market is None:
        old = found.before.condition("MarketAvailable") if found.before is not None else None
        return (
            (old.status, old.reason, old.message)
            if old is not None
            else ("Unknown", Reason.OFFERS_FOUND, "not searched yet")
        )
    fell = ", ".join(
        f"{reason} {count}" for reason, count in sorted(market.rejected.items(), key=lambda item: -item[1])
    )
    text = f"{market.matching} offers match" + (f"; rejected: {fell}" if fell else "")
    return ("True", Reason.OFFERS_FOUND, text) if market.matching else ("False", Reason.NO_MATCHING_OFFER, text)


def _credit(found: Found) -> Triple:
    credit = found.facts.credit
    if credit is None:
        return "Unknown", Reason.CREDIT_OK, "credit not known"
    low = found.plan.blocked is Reason.CREDIT_EXHAUSTED or credit <= 0
    text = f"{dollars(max(0, credit))} left"
    return ("False", Reason.CREDIT_EXHAUSTED, text) if low else ("True", Reason.CREDIT_OK, text)


def _benchmarks(found: Found) -> Triple:
    failing = [i for i in found.facts.instances if i.failures and i.reason in FAILING]
    if failing:
        worst = max(failing, key=lambda i: i.failures)
        return "False", worst.reason, f"{_names(failing)} failing; {worst.detail}"
    return "True", Reason.MEASURED, "no instance fails its preparation or benchmark"


def _remediation(found: Found) -> Triple:
    if _suspended(found):
        return "False", Reason.SUSPENDED, "suspended"
    if found.plan.blocked is not None and found.plan.doomed:
        return "False", found.plan.blocked, found.plan.blocked_why
    return (
        "True",
        Reason.REPLACING if found.plan.doomed else Reason.TARGET_REACHED,
        f"{len(found.plan.doomed)} to be replaced",
    )


def _suspended(found: Found) -> bool:
    return found.facts.fleet is not None and found.facts.fleet.spec.suspend
