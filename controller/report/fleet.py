"""What a pass found and did, said as a fleet's status: counts, money, conditions, and the plan.

Called at the end of each pass, with the status of the pass before.
"""

from pydantic import ValidationError

from controller.model.actions import Action, Begin, Confirm, Destroy, Note, Release, Rent, Resume
from controller.model.fleet import Fleet, Shape
from controller.model.instance import Event, Instance, Phase
from controller.model.money import usd
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus, Planned, ShapeStatus, an_hour
from controller.plan.facts import Facts
from controller.report.conditions import Found, conditions

LINES_OF_PLAN = 50
PATIENCE = 120.0  # seconds that Ready may be Unknown before it is worth an event: one failed listing is not


def status(found: Found) -> FleetStatus:
    """A fleet's status after a pass."""
    facts = found.facts
    before = found.before or FleetStatus(fleet=facts.name)
    working = [i for i in facts.working if i.absent_since is None and i.trouble_since is None]
    rate = sum(facts.rate_of(i) for i in working)
    credit = max(0, facts.credit) if facts.credit is not None else None
    spend = sum(i.price for i in facts.instances if i.instance_id is not None)
    wanted = before.model_copy(update=_wanted(facts.fleet)) if facts.fleet is not None else before
    hourly = an_hour(rate, wanted.unit)
    said = wanted.model_copy(
        update={
            "held": len(working),
            "measuring": sum(i.phase in {Phase.PREPARING, Phase.MEASURING} for i in facts.pending),
            "pending": len(facts.pending),
            "leaving": len(facts.leaving),
            "rate": rate,
            "spend_per_hour": usd(spend),
            "reserved_per_hour": usd(facts.reserved),
            "cost_per_unit": usd(spend) / hourly if hourly > 0 else None,
            "credit_runway_hours": credit / facts.spend if credit is not None and facts.spend else None,
            "market": found.market or before.market,
            "shapes": tuple(_learned(facts, floor) for floor in wanted.shapes),
            "plan": tuple(_planned(a) for a in found.actions if not isinstance(a, Note))[:LINES_OF_PLAN],
            "instances": tuple(_instance(found, instance) for instance in facts.instances),
            "created_at": before.created_at if before.created_at is not None else facts.now,
            "last_pass": facts.now,
        }
    )
    return said.model_copy(update={"conditions": conditions(found, said)})


def first(fleet: Fleet, *, now: float) -> FleetStatus:
    """The status of a fleet before its first pass is over, which may take minutes: not ready, and on the way."""
    said = FleetStatus(fleet=fleet.name, created_at=now).model_copy(update=_wanted(fleet))
    ready = Condition(
        type="Ready",
        status="Unknown",
        reason=Reason.FILLING,
        message="the first pass is under way",
        last_transition_time=now,
    )
    trying = ready.model_copy(update={"type": "Reconciling", "status": "True"})
    return said.model_copy(update={"conditions": (ready, trying)})


def invalid(before: FleetStatus | None, name: str, why: ValidationError, *, now: float) -> FleetStatus:
    """The status of a fleet whose spec is wrong: stalled, until somebody mends it."""
    said = before or FleetStatus(fleet=name, created_at=now)
    wrong = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in why.errors(include_input=False))
    since = said.condition("Stalled")
    at = since.last_transition_time if since is not None else now
    stalled = Condition(
        type="Stalled", status="True", reason=Reason.INVALID_SPEC, message=wrong, last_transition_time=at
    )
    ready = stalled.model_copy(update={"type": "Ready", "status": "False"})
    rest = tuple(c for c in said.conditions if c.type not in {"Ready", "Reconciling", "Stalled"})
    return said.model_copy(update={"conditions": (ready, stalled, *rest)})


def failed(before: FleetStatus | None, name: str, *, now: float) -> FleetStatus:
    """The status of a fleet whose pass ended in an error of the controller's own."""
    said = before or FleetStatus(fleet=name, created_at=now)
    message = "the last pass ended in an error of the controller's own; its log says more, and it is tried again"
    ready = Condition(
        type="Ready", status="Unknown", reason=Reason.INTERNAL_ERROR, message=message, last_transition_time=now
    )
    rest = tuple(c for c in said.conditions if c.type not in {"Ready", "Reconciling", "Stalled"})
    trying = ready.model_copy(update={"type": "Reconciling", "status": "True"})
    return said.model_copy(update={"conditions": (ready, trying, *rest), "last_pass": now})


def news(before: FleetStatus | None, after: FleetStatus) -> tuple[FleetStatus, tuple[Event, ...]]:
    """What is worth saying of the difference: Ready, when it or its reason changed. The status remembers it."""
    ready = after.condition("Ready")
    now = after.last_pass or 0.0
    told = before.told if before is not None else ""
    if ready is None or told == _telling(ready):
        return after.model_copy(update={"told": told}), ()
    if ready.status == "Unknown" and now - ready.last_transition_time < PATIENCE:
        return after.model_copy(update={"told": told}), ()
    kind = "Warning" if after.condition("Stalled") is not None or ready.status == "Unknown" else "Normal"
    text = f"ready: {ready.message}" if ready.status == "True" else ready.message
    said = Event(at=now, fleet=after.fleet, about=after.fleet, kind=kind, reason=ready.reason, message=text)
    return after.model_copy(update={"told": _telling(ready)}), (said,)


def _telling(ready: Condition) -> str:
    return f"{ready.status}/{ready.reason}"


def _wanted(fleet: Fleet) -> dict[str, object]:
    """What the manifest says, for those who read the status without it."""
    spec = fleet.spec
    by_count = spec.target.instances is not None
    return {
        "unit": spec.benchmark.unit,
        "target": float(spec.target.instances or 0) if by_count else spec.target.rate or 0.0,
        "target_kind": "instances" if by_count else "rate",
        "budget_per_hour": usd(spec.budget),
        "workload": spec.workload(),
        "recheck_hours": spec.benchmark.recheck_hours,
        "shapes": tuple(_floor(fleet, shape) for shape in spec.shapes),
    }


def _floor(fleet: Fleet, shape: Shape) -> ShapeStatus:
    judgement = fleet.spec.judgement
    return ShapeStatus(
        key=shape.key,
        min_rate=shape.min_rate,
        planned_hours=judgement.planned_hours,
        replace_below=judgement.replace_below,
        accept_above=judgement.accept_above,
    )


def _learned(facts: Facts, floor: ShapeStatus) -> ShapeStatus:
    """What is known of a shape's machines, beside the floor they are held to."""
    known = facts.search.get(floor.key)
    if known is None:
        return floor
    return floor.model_copy(
        update={
            "typical_rate": known.mean,
            "spread": known.sd,
            "machines": known.machines,
            "search_hours": known.hours,
            "search_cost": usd(known.cost) if known.cost is not None else None,
            "run_hours": known.run_hours,
            "provision_hours": known.provision_hours,
            "out_of_reach": facts.out_of_reach.get(floor.key, ""),
        }
    )


def _instance(found: Found, instance: Instance) -> InstanceStatus:
    facts = found.facts
    verdict, job = facts.verdicts.get(instance.nonce), facts.jobs.get(instance.nonce)
    thought = found.before.instances if facts.fleet is None and found.before is not None else ()
    said = next((before for before in thought if before.nonce == instance.nonce), InstanceStatus(nonce=instance.nonce))
    if verdict is not None:
        names = "decision p_good rate low high runs independent disturbed next_run_at line"
        costs = verdict.costs
        said = said.model_copy(
            update={
                **{name: getattr(verdict, name) for name in names.split()},
                "keep_hours": costs.keep if costs is not None else None,
                "measure_hours": costs.measure if costs is not None else None,
                "replace_hours": costs.replace if costs is not None else None,
            }
        )
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
