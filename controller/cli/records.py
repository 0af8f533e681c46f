"""How each kind of record is printed: its columns, and what programs get."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from controller.cli.output import Row
from controller.cli.words import NOTHING, hours, iso, money, price, rate, share, since, span
from controller.model.instance import Decision, Event, Instance, Job, Phase
from controller.model.money import usd
from controller.model.status import FleetStatus, InstanceStatus, ShapeStatus

if TYPE_CHECKING:
    from controller.cli.books import Books

NEXT = {
    Phase.INTENDED: "rent",
    Phase.UNCLEAR: "find its label",
    Phase.LAUNCHING: "boot",
    Phase.PREPARING: "prepare",
    Phase.MEASURING: "measure",
    Phase.ADMITTED: "work",
    Phase.RELEASING: "quiesce",
    Phase.DESTROYING: "prove gone",
    Phase.GONE: NOTHING,
}
DOING = {
    "prepare": "preparing",
    "measure": "measuring",
    "read": "reading",
    "start": "starting",
    "quiesce": "quiescing",
}


def fleet(status: FleetStatus, now: float) -> Row:
    """A fleet."""
    ready = status.condition("Ready")
    by_rate = status.target_kind == "rate"
    cells = {
        "NAME": status.fleet,
        "READY": ready.status if ready is not None else "Unknown",
        "TARGET": rate(status.target) if by_rate else f"{status.target:g}",
        "HELD": str(status.held),
        "RATE": rate(status.rate),
        "$/H": price(status.spend_per_hour),
        "BUDGET": money(status.budget_per_hour),
        "$/UNIT": money(status.cost_per_unit, 5),
        "REASON": ready.reason if ready is not None else NOTHING,
        "AGE": since(status.created_at, now),
    }
    runway = status.credit_runway_hours
    more = {
        "UNIT": status.unit,
        "MEASURING": str(status.measuring),
        "PENDING": str(status.pending),
        "LEAVING": str(status.leaving),
        "RESERVED": price(status.reserved_per_hour),
        "CREDIT": NOTHING if runway is None else f"for {span(runway * 3600)}",
        "ONE MORE": ", ".join(one_more(shape) for shape in status.shapes) or NOTHING,
        "PASS": since(status.last_pass, now),
    }
    return Row(cells, fleet_record(status), more)


def one_more(shape: ShapeStatus) -> str:
    """What finding one more instance that is fast enough costs: money where known, else hours of rent."""
    if shape.search_hours is None:
        return NOTHING
    rent = f"{hours(shape.search_hours)} h"
    return rent if shape.search_cost is None else f"${money(shape.search_cost)} ({rent})"


def fleet_record(status: FleetStatus) -> dict[str, object]:
    """A fleet's status for programs, times as ISO 8601."""
    record: dict[str, object] = status.model_dump(mode="json", by_alias=True)
    record = {"name": record.pop("fleet"), **record}
    return dated(record)


def dated(value: Mapping[str, object]) -> dict[str, object]:
    """Times as ISO 8601, at any depth."""
    return {key: _dated_value(key, part) for key, part in value.items()}


def _dated_value(key: str, part: object) -> object:
    if isinstance(part, dict):
        return dated(part)
    if isinstance(part, list | tuple):
        return [dated(item) if isinstance(item, dict) else item for item in part]
    is_time = key in {"at", "lastPass", "nextPass"} or key.endswith(("At", "Time", "Since", "Until"))
    return iso(part) if is_time and isinstance(part, int | float) else part


def name_of(instance: Instance) -> str:
    """What people call it: vast.ai's id, or its nonce before there is one."""
    return str(instance.instance_id) if instance.instance_id is not None else instance.nonce


def instance(record: Instance, thought: InstanceStatus, now: float, *, beside: int = 0) -> Row:
    """An instance, with what is thought of it, beside so many others of ours on its machine."""
    cells = {
        "NAME": name_of(record),
        "PHASE": str(record.phase),
        "GPU": record.shape.removesuffix(" x1"),
        "REGION": record.country or NOTHING,
        "RATE": rate(thought.rate),
        "P(GOOD)": share(thought.p_good),
        "RUNS": str(thought.runs),
        "$/H": price(usd(record.price)),
        "NEXT": coming(record, thought, now),
        "AGE": since(record.created_at, now),
    }
    more = {
        "FLEET": record.fleet,
        "MACHINE": str(record.machine_id),
        "BESIDE": str(beside),
        "SHARE": share(record.gpu_fraction),
        "BETWEEN": f"{rate(thought.low)}-{rate(thought.high)}" if thought.low is not None else NOTHING,
        "DECISION": str(thought.decision) if record.billable else NOTHING,
        "READ": read(record, now),
        "COST": money(cost(record, now)),
        "REASON": str(record.reason),
        "NONCE": record.nonce,
    }
    return Row(cells, instance_record(record, thought, now, beside=beside), more)


def instance_of(known: "Books", record: Instance) -> Row:
    """An instance, with what the ledger knows beside it; of one that is gone, only that it was measured."""
    thought, beside = known.thought(record), known.company.get(record.nonce, 0)
    if not record.billable:
        thought = thought.model_copy(update={"runs": known.rated[record.nonce]})
    return instance(record, thought, known.now, beside=beside)


def read(record: Instance, now: float) -> str:
    """How long ago production's rate was read, and whether that failed."""
    return since(record.read_at, now) + (", no rate" if record.read_fault else "")


def instance_record(record: Instance, thought: InstanceStatus, now: float, *, beside: int = 0) -> dict[str, object]:
    """An instance for programs. Money in USD, rates in the fleet's unit, times as ISO 8601."""
    return dated({
        "name": name_of(record),
        "id": record.instance_id,
        "nonce": record.nonce,
        "fleet": record.fleet,
        "label": record.label,
        "phase": str(record.phase),
        "phaseSince": record.phase_since,
        "reason": str(record.reason),
        "detail": record.detail,
        "shape": record.shape,
        "machineId": record.machine_id,
        "hostId": record.host_id,
        "region": record.country,
        "gpuFraction": record.gpu_fraction,
        "neighbours": beside,
        "pricePerHour": usd(record.price),
        "cost": round(cost(record, now), 6),
        "diskGiB": record.disk_gib,
        **_thought_record(thought, record),
        "nextRunAt": thought.next_run_at,
        "job": thought.job or None,
        "failures": record.failures,
        "notBeforeAt": record.not_before or None,
        "createdAt": record.created_at,
        "launchedAt": record.launched_at,
        "preparedAt": record.prepared_at,
        "admittedAt": record.admitted_at,
        "checkedAt": record.checked_at,
        "readAt": record.read_at,
        "readFault": record.read_fault or None,
        "contractEndsAt": record.ends_at,
        "endedAt": record.ended_at,
    })  # fmt: skip


def _thought_record(thought: InstanceStatus, record: Instance) -> dict[str, object]:
    return {
        "decision": str(thought.decision) if record.billable else None,
        "pGood": thought.p_good,
        "rate": thought.rate,
        "low": thought.low,
        "high": thought.high,
        "runs": thought.runs,
        "independent": thought.independent,
        "disturbed": thought.disturbed,
        "costs": costs_record(thought, record),
        "verdict": thought.line,
    }


def costs_of(thought: InstanceStatus) -> dict[str, float]:
    """By what may be done with an instance: what it is expected to cost, in hours of its rent. Empty: not known."""
    costs = {"keep": thought.keep_hours, "measure": thought.measure_hours, "replace": thought.replace_hours}
    return {way: spent for way, spent in costs.items() if spent is not None}


def costs_record(thought: InstanceStatus, record: Instance) -> dict[str, object] | None:
    """The same for programs, in money too."""
    costs = {way: {"hours": h, "usd": round(h * usd(record.price), 4)} for way, h in costs_of(thought).items()}
    return dict(costs) or None


def cost(record: Instance, now: float) -> float:
    """What an instance has cost until now by our own clock, in USD."""
    until = record.cost_until if record.cost_until is not None else record.created_at
    running = record.billable and record.instance_id is not None
    return usd(record.cost) + (usd(record.price) * max(0.0, now - until) / 3600 if running else 0.0)


def coming(record: Instance, thought: InstanceStatus, now: float) -> str:
    """What happens next to an instance, and in what time; or what is happening to it, and for how long."""
    if record.phase not in {Phase.GONE, Phase.DESTROYING} and record.not_before > now:
        return f"retry {span(record.not_before - now)}"
    if thought.job:
        return f"{DOING.get(thought.job, thought.job)} {since(thought.job_since, now)}"
    if record.phase is Phase.ADMITTED and thought.decision is Decision.REJECTED:
        return "replace"
    if record.phase is Phase.ADMITTED and thought.next_run_at is not None:
        return f"check {span(thought.next_run_at - now)}"
    return NEXT[record.phase]


def with_job(thought: InstanceStatus, job: Job | None) -> InstanceStatus:
    """The same, with the job that is under way at this moment."""
    return thought.model_copy(update={"job": job.kind if job else "", "job_since": job.since if job else None})


def event(said: Event, now: float) -> Row:
    """An event."""
    cells = {
        "AGE": since(said.at, now),
        "FLEET": said.fleet or NOTHING,
        "ABOUT": said.about,
        "REASON": str(said.reason),
        "MESSAGE": said.message,
    }
    return Row(cells, event_record(said), {"TYPE": said.kind, "AT": iso(said.at) or NOTHING})


def event_record(said: Event) -> dict[str, object]:
    """An event for programs."""
    return {
        "at": iso(said.at),
        "fleet": said.fleet,
        "about": said.about,
        "type": said.kind,
        "reason": str(said.reason),
        "message": said.message,
    }


def event_line(said: Event) -> str:
    """An event as it is told while it happens."""
    mark = "! " if said.kind == "Warning" else ""
    about = "" if said.about == said.fleet else f" {said.about}"
    return f"{iso(said.at)} {said.fleet or 'account'}{about} {mark}{said.reason}: {said.message}"
