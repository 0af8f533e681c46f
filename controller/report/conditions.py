"""A fleet's conditions after a pass.

Ready is computed from the rest, never set on its own; every reason is in the one table.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controller.model.actions import Action
from controller.model.faults import Fault, Misconfigured, Retry
from controller.model.instance import Instance, Phase
from controller.model.money import dollars
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, Market
from controller.plan.facts import Facts
from controller.plan.fleet import Plan

FAILING = frozenset(
    {
        Reason.PREPARE_FAILED,
        Reason.PREPARE_STALLED,
        Reason.PREPARE_TIMEOUT,
        Reason.BENCHMARK_FAILED,
        Reason.BENCHMARK_STALLED,
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """All that a status is made from."""

    facts: Facts
    plan: Plan
    actions: Sequence[Action] = ()  # the plan's, and what was rented
    faults: Sequence[Fault] = ()  # of the listing and of the actions
    market: Market | None = None  # None: not searched in this pass
    before: FleetStatus | None = None


Triple = tuple[str, Reason, str]  # status, reason, message


def conditions(found: Found, said: FleetStatus) -> tuple[Condition, ...]:
    """All conditions that hold or fail; Reconciling and Stalled only while true, and never both."""
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
    hopeless = next((fault for fault in found.faults if isinstance(fault, Misconfigured)), None)
    if hopeless is not None:
        return ("False", hopeless.reason, str(hopeless)), True
    unready = _beyond_us(found, said) or _down(found, said) or _short(found, said)
    return unready or ("True", Reason.TARGET_REACHED, _held(said)), False


def _beyond_us(found: Found, said: FleetStatus) -> Triple | None:
    """What keeps the fleet from being held at all."""
    facts = found.facts
    missing = [i for i in facts.instances if i.absent_since is not None and i.phase is not Phase.DESTROYING]
    answer: Triple | None = None
    if facts.listing is None:
        fault = found.faults[0] if found.faults else None
        reason = fault.reason if fault is not None else Reason.LISTING_FAILED
        answer = "Unknown", reason, f"what exists is not known, so nothing is done: {fault or 'not listed yet'}"
    elif facts.deleting:
        answer = "False", Reason.TEARING_DOWN, f"{said.leaving} of its instances left to be proven gone"
    elif facts.fleet is None:
        text = f"its manifest is not loaded here: {len(facts.instances)} of its instances bill, and are left alone"
        answer = "Unknown", Reason.UNMANAGED, text
    elif missing:
        text = f"{_names(missing)} missing from the listing; counted as held until proven gone"
        answer = "Unknown", Reason.MISSING, text
    return answer


def _down(found: Found, said: FleetStatus) -> Triple | None:
    """What worked and is not running."""
    down = [i for i in found.facts.working if i.trouble_since is not None]
    if not down:
        return None
    if found.facts.out_of_credit:
        return "False", Reason.CREDIT_EXHAUSTED, f"{_held(said)}; {_names(down)} stopped; kept until there is credit"
    return "Unknown", Reason.DEGRADED, f"{_held(said)}; {_names(down)} not running, borne with for a while"


def _short(found: Found, said: FleetStatus) -> Triple | None:
    """What is still between the fleet and its target."""
    plan, facts = found.plan, found.facts
    lacking = plan.missing > 0 or bool(plan.wanted.least_of)
    said_short: Triple | None = None
    if plan.blocked is not None and lacking:
        said_short = "False", plan.blocked, f"{_held(said)}; {plan.blocked_why}"
    elif facts.pending:
        said_short = "False", Reason.FILLING, f"{_held(said)}; {len(facts.pending)} on their way"
    elif lacking:
        said_short = _not_renting(found, said)
    elif plan.doomed:
        why = f"{len(plan.doomed)} to be replaced: {next(iter(plan.doomed.values()))}"
        said_short = "False", Reason.REPLACING, f"{_held(said)}; {why}"
    elif _target_met(found, said)[0] != "True":
        said_short = "False", Reason.FILLING, _held(said)
    elif facts.leaving:
        said_short = "False", Reason.TEARING_DOWN, f"{_held(said)}; {len(facts.leaving)} being destroyed"
    return said_short


def _not_renting(found: Found, said: FleetStatus) -> Triple:
    """Something is missing and nothing is rented: the market's doing, the budget's, or vast.ai's.

    A passing fault is told, but is not the reason.
    """
    fault = found.faults[0] if found.faults else None
    state, reason, message = _market(found)
    if _budget(found)[0] == "False":
        _, reason, message = _budget(found)
    if fault is not None and (state == "Unknown" or not isinstance(fault, Retry)):
        reason = fault.reason
    short = "".join(f"; {key} is {lacks} short of minInstances" for key, lacks in found.plan.wanted.least_of.items())
    return "False", reason, f"{_held(said)}{short}; {fault or message}"


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
            else ("Unknown", Reason.NOT_SEARCHED, "not searched yet")
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
    if found.facts.suspect is not None:
        return "False", *found.facts.suspect
    failing = [i for i in found.facts.instances if i.failures and i.reason in FAILING]
    if failing:
        worst = max(failing, key=lambda i: i.failures)
        return "False", worst.reason, f"{_names(failing)} failing; {worst.detail}"
    unread = [i for i in found.facts.working if i.read_fault]
    if unread:
        return "False", Reason.NO_RATE, f"{_names(unread)} tell no rate of production; {unread[0].read_fault}"
    return "True", Reason.MEASURED, "no instance fails its preparation or benchmark"


def _remediation(found: Found) -> Triple:
    if _suspended(found):
        return "False", Reason.SUSPENDED, "suspended"
    if found.facts.suspect is not None:
        reason, text = found.facts.suspect
        return "False", reason, f"nothing is replaced: {text}"
    if found.plan.blocked is not None and found.plan.doomed:
        return "False", found.plan.blocked, found.plan.blocked_why
    return (
        "True",
        Reason.REPLACING if found.plan.doomed else Reason.TARGET_REACHED,
        f"{len(found.plan.doomed)} to be replaced",
    )


def _suspended(found: Found) -> bool:
    return found.facts.fleet is not None and found.facts.fleet.spec.suspend
