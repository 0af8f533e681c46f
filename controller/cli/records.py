"""How each kind of record is printed: its columns, and what programs get."""

from collections.abc import Mapping

from controller.cli.books import Machine
from controller.cli.output import Row
from controller.cli.words import NOTHING, iso, money, price, rate, share, since, span
from controller.model.instance import Decision, Event, Instance, Job, Phase, Run
from controller.model.money import usd
from controller.model.status import FleetStatus, InstanceStatus

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
DOING = {"prepare": "preparing", "measure": "measuring", "start": "starting", "quiesce": "quiescing"}


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
        "PASS": since(status.last_pass, now),
    }
    return Row(cells, fleet_record(status), more)


def fleet_record(status: FleetStatus) -> dict[str, object]:
    """A fleet's status for programs, times as ISO 8601."""
    record: dict[str, object] = status.model_dump(mode="json", by_alias=True)
    record = {"name": record.pop("fleet"), **record}
    return _dated(record)


def _dated(value: Mapping[str, object]) -> dict[str, object]:
    """Times as ISO 8601, at any depth."""
    return {key: _dated_value(key, part) for key, part in value.items()}


def _dated_value(key: str, part: object) -> object:
    if isinstance(part, dict):
        return _dated(part)
    if isinstance(part, list | tuple):
        return [_dated(item) if isinstance(item, dict) else item for item in part]
    is_time = key in {"at", "lastPass", "nextPass"} or key.endswith(("At", "Time", "Since", "Until"))
    return iso(part) if is_time and isinstance(part, int | float) else part


def name_of(instance: Instance) -> str:
    """What people call it: vast.ai's id, or its nonce before there is one."""
    return str(instance.instance_id) if instance.instance_id is not None else instance.nonce


def instance(record: Instance, thought: InstanceStatus, now: float) -> Row:
    """An instance, with what is thought of it."""
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
        "COST": money(cost(record, now)),
        "REASON": str(record.reason),
        "NONCE": record.nonce,
    }
    return Row(cells, instance_record(record, thought, now), more)


def instance_record(record: Instance, thought: InstanceStatus, now: float) -> dict[str, object]:
    """An instance for programs. Money in USD, rates in the fleet's unit, times as ISO 8601."""
    return _dated({
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
        "pricePerHour": usd(record.price),
        "cost": round(cost(record, now), 6),
        "diskGiB": record.disk_gib,
        "decision": str(thought.decision),
        "pGood": thought.p_good,
        "rate": thought.rate,
        "runs": thought.runs,
        "verdict": thought.line,
        "nextRunAt": thought.next_run_at,
        "job": thought.job or None,
        "failures": record.failures,
        "notBeforeAt": record.not_before or None,
        "createdAt": record.created_at,
        "launchedAt": record.launched_at,
        "preparedAt": record.prepared_at,
        "admittedAt": record.admitted_at,
        "contractEndsAt": record.ends_at,
        "endedAt": record.ended_at,
    })  # fmt: skip


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


def machine(found: Machine, now: float) -> Row:
    """A machine."""
    verdict = found.verdict
    held = NOTHING
    if found.held_for is not None:
        held = str(found.held_for) + (f" {span(found.held_until - now)}" if found.held_until is not None else "")
    cells = {
        "NAME": str(found.id),
        "GPU": found.shape.removesuffix(" x1"),
        "RATE": rate(verdict.rate),
        "P(GOOD)": share(verdict.p_good),
        "RUNS": str(len(found.runs)),
        "LAST": since(found.last, now),
        "QUARANTINED": held,
    }
    more = {"DECISION": str(verdict.decision), "VERDICT": verdict.line or NOTHING}
    record = {
        "name": str(found.id),
        "machineId": found.id,
        "shape": found.shape,
        "rate": verdict.rate,
        "pGood": verdict.p_good,
        "decision": str(verdict.decision),
        "verdict": verdict.line,
        "runs": len(found.runs),
        "lastRunAt": found.last,
        "quarantinedUntil": found.held_until,
        "quarantineReason": None if found.held_for is None else str(found.held_for),
    }
    return Row(cells, _dated(record), more)


def run(made: Run, now: float) -> Row:
    """A benchmark run."""
    cells = {
        "NAME": made.id,
        "MACHINE": str(made.machine_id),
        "GPU": made.shape.removesuffix(" x1"),
        "RATE": rate(made.rate),
        "UNIT": made.unit,
        "REASON": str(made.reason),
        "TOOK": span(made.ended_at - made.started_at),
        "AGE": since(made.ended_at, now),
    }
    more = {
        "FLEET": made.fleet,
        "CONCURRENCY": NOTHING if made.concurrency is None else str(made.concurrency),
        "COUNT": NOTHING if made.count is None else str(made.count),
        "RAM": NOTHING if made.ram_gib is None else f"{made.ram_gib:.0f}Gi",
        "DETAIL": made.detail,
    }
    record = {
        "name": made.id,
        "nonce": made.nonce,
        "fleet": made.fleet,
        "machineId": made.machine_id,
        "shape": made.shape,
        "startedAt": made.started_at,
        "endedAt": made.ended_at,
        "reason": str(made.reason),
        "detail": made.detail,
        "rate": made.rate,
        "unit": made.unit,
        "relativeError": made.error,
        "concurrency": made.concurrency,
        "count": made.count,
        "ramGiB": made.ram_gib,
        "cpuCores": made.cpu_cores,
        "gpuUuid": made.gpu_uuid,
        "disturbed": made.disturbed,
    }
    return Row(cells, _dated(record), more)


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
