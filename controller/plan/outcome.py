"""What the end of a job means for its instance. Called when a background job ends, with the record as it is then."""

from dataclasses import dataclass, replace

from controller.model.actions import Note
from controller.model.instance import Instance, Phase, Run
from controller.model.reasons import Reason
from controller.plan.backoffs import forgiven
from controller.plan.facts import LEAVING
from controller.plan.limits import Limits
from controller.plan.track import event, in_phase


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How a job ended. `job`: prepare, measure, read, start or quiesce."""

    job: str
    ok: bool
    reason: Reason
    detail: str = ""
    host_key: str | None = None
    run: Run | None = None


def after_job(instance: Instance, end: JobEnd, *, now: float, limits: Limits) -> Note:
    """The instance's record after the job."""
    pinned = replace(instance, host_key=instance.host_key or end.host_key)
    if end.job == "measure" and end.run is not None:
        pinned = replace(pinned, checked_at=now)
    if instance.phase in LEAVING:  # for the reason that it was given up for, whatever came of the job
        return _note(pinned, end, now=now, kind="Normal" if end.ok else "Warning")
    if end.job == "read":
        return _read(pinned, end, now=now)
    if not end.ok:
        return _failed(pinned, end, now=now, limits=limits)
    if end.job == "prepare":
        prepared = replace(
            in_phase(pinned, Phase.MEASURING, Reason.PREPARED, now=now, detail=end.detail), prepared_at=now
        )
        return _note(prepared, end, now=now)
    if end.job == "start":
        admitted = in_phase(pinned, Phase.ADMITTED, Reason.MEASURED, now=now, detail=end.detail)
        admitted = replace(admitted, admitted_at=instance.admitted_at if instance.admitted_at is not None else now)
        return replace(_note(admitted, end, now=now), cleared=forgiven(instance))
    return _note(replace(pinned, reason=end.reason, detail=end.detail, failures=0, not_before=0.0), end, now=now)


def _read(instance: Instance, end: JobEnd, *, now: float) -> Note:
    """Production's rate was read, or could not be: told when that changes, and no failure of the instance."""
    fault = "" if end.ok else end.detail or str(end.reason)
    after = replace(instance, read_at=now, read_fault=fault)
    if bool(fault) == bool(instance.read_fault):
        return Note(instance=after, reason=end.reason, why=end.detail)
    return _note(after, end, now=now, kind="Warning" if fault else "Normal")


def _failed(instance: Instance, end: JobEnd, *, now: float, limits: Limits) -> Note:
    failures = instance.failures + 1
    wait = limits.retry * 2 ** min(failures - 1, 10)
    failed = replace(instance, reason=end.reason, detail=end.detail, failures=failures, not_before=now + wait)
    return _note(failed, end, now=now, kind="Warning")


def _note(instance: Instance, end: JobEnd, *, now: float, kind: str = "Normal") -> Note:
    measured = f"{end.run.rate:.4g} {end.run.unit}; " if end.run is not None and end.run.rate is not None else ""
    said = event(instance, end.reason, f"{end.job}: {measured}{end.detail or 'done'}", now=now, kind=kind)
    return Note(instance=instance, reason=end.reason, why=end.detail, events=(said,))
