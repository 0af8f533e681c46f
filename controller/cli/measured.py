"""How machines and runs are printed: their columns, and what programs get."""

from controller.cli.cases import Machine
from controller.cli.output import Row
from controller.cli.records import dated
from controller.cli.words import NOTHING, number, percent, rate, share, since, span
from controller.model.instance import Run


def machine(found: Machine, now: float) -> Row:
    """A machine: what it is worth to rent anew, by its best GPUs, with nothing of ours beside them."""
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
    more = {"RENTED ANEW": str(verdict.decision), "VERDICT": verdict.line or NOTHING}
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
    return Row(cells, dated(record), more)


def run(made: Run, now: float) -> Row:
    """A run: of a benchmark, or a reading of production's rate."""
    cells = {
        "NAME": made.id,
        "MACHINE": str(made.machine_id),
        "GPU": made.shape.removesuffix(" x1"),
        "KIND": str(made.kind),
        "RATE": rate(made.rate),
        "UNIT": made.unit,
        "REASON": str(made.reason),
        "TOOK": span(made.ended_at - made.started_at),
        "AGE": since(made.ended_at, now),
    }
    more = {
        "FLEET": made.fleet,
        "ERROR": percent(made.error),
        "CONCURRENCY": number(made.concurrency),
        "COUNT": number(made.count),
        "BESIDE": str(made.neighbours),
        "SHARE": share(made.gpu_fraction),
        "RAM": number(made.ram_gib, "Gi"),
        "POWER": power(made),
        "THROTTLED": made.throttled or NOTHING,
        "TEMP": number(made.temperature_c, "C"),
        "CPU HELD": percent(made.cpu_throttled),
        "DRIVER": made.driver or NOTHING,
        "DETAIL": made.detail,
    }
    return Row(cells, run_record(made), more)


def run_record(made: Run) -> dict[str, object]:
    """A run for programs. Shares and errors are 0 to 1, times ISO 8601."""
    return dated({
        "name": made.id,
        "nonce": made.nonce,
        "fleet": made.fleet,
        "machineId": made.machine_id,
        "shape": made.shape,
        "workload": made.workload,
        "kind": str(made.kind),
        "startedAt": made.started_at,
        "endedAt": made.ended_at,
        "reason": str(made.reason),
        "detail": made.detail,
        "rate": made.rate,
        "unit": made.unit,
        "relativeError": made.error,
        "concurrency": made.concurrency,
        "count": made.count,
        "neighbours": made.neighbours,
        "gpuFraction": made.gpu_fraction,
        "ramGiB": made.ram_gib,
        "cpuCores": made.cpu_cores,
        "gpuUuid": made.gpu_uuid,
        "powerLimitW": made.power_limit_w,
        "powerDefaultW": made.power_default_w,
        "throttled": made.throttled,
        "temperatureC": made.temperature_c,
        "cpuThrottled": made.cpu_throttled,
        "driver": made.driver,
        "image": made.image,
        "disturbed": made.disturbed,
    })  # fmt: skip


def power(made: Run) -> str:
    """The power limit, and the default where that is another."""
    if made.power_limit_w is None:
        return NOTHING
    return f"{made.power_limit_w:.0f}" + (f"/{made.power_default_w:.0f}W" if power_lowered(made) else "W")


def power_lowered(made: Run) -> bool:
    """Whether the power limit is below the default."""
    limit, default = made.power_limit_w, made.power_default_w
    return limit is not None and default is not None and limit < default
