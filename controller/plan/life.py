"""What happens next to one instance: each phase has a limit, and each end a reason.

    Intended ─► Unclear ─► Launching ─► Preparing ─► Measuring ─► Admitted ⇄ Measuring (re-check)
                   └► Gone      any of them ─► Releasing ─► Destroying ─► Gone

`next_step` is asked once a pass for each instance; what concerns the fleet as a whole is in `fleet.py`.
"""

from collections.abc import Callable
from dataclasses import replace

from controller.model.actions import Action, Begin, Confirm, Destroy, Note, Release, Resume
from controller.model.instance import Decision, Instance, Phase, Verdict
from controller.model.market import Sighting
from controller.model.money import dollars
from controller.model.reasons import Reason
from controller.plan import backoffs
from controller.plan.facts import Facts
from controller.plan.track import event, fault_in, in_phase

RUNNING = "running"
DOWN = frozenset({"exited", "stopped"})
UNJUDGED = Verdict(decision=Decision.UNKNOWN, line="not judged by this manifest")


def next_step(instance: Instance, facts: Facts) -> Action | None:
    """The next action for one instance, or None while there is nothing to do but wait."""
    if instance.phase is Phase.DESTROYING:
        return _destroying(instance, facts)
    if facts.listing is None:
        return None
    row = facts.seen.get(instance.nonce)
    if row is None:
        return _absent(instance, facts)
    if instance.phase is not Phase.RELEASING:
        if facts.deleting or instance.nonce in facts.discarded:
            return _unwanted(instance, facts)
        if facts.fleet is None:
            return None  # nobody asked for this fleet: what runs is left to run
    return STEPS[instance.phase](instance, row, facts)


def _unwanted(instance: Instance, facts: Facts) -> Release:
    """Somebody deleted its fleet, or its record alone."""
    if facts.deleting:
        return Release(instance=instance, reason=Reason.DELETED, why="its fleet is being deleted")
    return Release(instance=instance, reason=Reason.OBJECT_DELETED, why="its Instance object was deleted")


def _absent(instance: Instance, facts: Facts) -> Action | None:
    """Not in a complete listing: gone only after a second one, apart in time, and a look by its id."""
    assert facts.listing is not None  # noqa: S101 - the caller has looked
    missing_for = facts.listing.at - (instance.absent_since if instance.absent_since is not None else facts.listing.at)
    if instance.instance_id is None:
        waited = facts.now - instance.phase_since
        if waited < facts.limits.unclear or missing_for < facts.limits.apart:
            return None
        return _gone(instance, facts, Reason.CREATE_UNCONFIRMED, "never listed under its label: it was not rented")
    new = instance.launched_at is None and facts.now - instance.phase_since < facts.limits.invisible
    if missing_for < facts.limits.apart or new:
        return None
    return Confirm(
        instance=instance, reason=Reason.MISSING, why=f"missing from complete listings for {missing_for:.0f} s"
    )


def _gone(instance: Instance, facts: Facts, reason: Reason, why: str) -> Note:
    ended = replace(in_phase(instance, Phase.GONE, reason, now=facts.now, detail=why), ended_at=facts.now)
    return Note(instance=ended, reason=reason, why=why, events=(event(ended, reason, why, now=facts.now),))


def _unidentified(_instance: Instance, _row: Sighting, _facts: Facts) -> Action | None:
    return None  # seen rows have an id, and with it the next phase, from `track`


def _launching(instance: Instance, row: Sighting, facts: Facts) -> Action | None:
    age = facts.now - instance.phase_since
    if (mismatch := _not_as_agreed(instance, row, facts)) is not None:
        return mismatch
    if row.actual == RUNNING:
        ready = in_phase(instance, Phase.PREPARING, Reason.CONNECTING, now=facts.now)
        return Note(instance=ready, reason=Reason.CONNECTING, why=f"running {age:.0f} s after it was rented")
    fault = fault_in(row)
    stood = facts.now - instance.trouble_since if instance.trouble_since is not None else 0.0
    if stood >= facts.limits.fault_persists and fault is not None:
        return _given_up(instance, facts, fault, row.message, actual=row.actual)
    if stood >= facts.limits.stopped and row.intended == "stopped" and not facts.out_of_credit:
        why = f"stopped before it ever ran: {row.message or 'no message'}"
        return _given_up(instance, facts, Reason.STOPPED_OUTSIDE, why, actual=row.actual)
    if age >= facts.limits.launch:
        why = f"not running after {age / 60:.0f} min; last said: {row.message or 'nothing'}"
        return _given_up(instance, facts, Reason.LAUNCH_TIMEOUT, why, actual=row.actual)
    return None


def _not_as_agreed(instance: Instance, row: Sighting, facts: Facts) -> Release | None:
    """The create call's answer names neither machine nor price: they are read here."""
    if row.machine_id not in {None, instance.machine_id}:
        why = f"rented on machine {instance.machine_id}, came up on {row.machine_id}"
        return _given_up(instance, facts, Reason.MACHINE_MISMATCH, why)
    most = facts.most_for(instance)
    if row.price is not None and most is not None and row.price > most:
        why = f"costs {dollars(row.price)}/h with its disk, {dollars(most)}/h at most were wanted"
        return _given_up(instance, facts, Reason.PRICE_MISMATCH, why)
    return None


def _preparing(instance: Instance, row: Sighting, facts: Facts) -> Action | None:
    if row.actual != RUNNING:
        return _troubled(instance, row, facts)
    return _tried(
        instance, facts, job="prepare", reason=Reason.PREPARING, why="to be reached, and its parameters and caches made"
    )


def _measuring(instance: Instance, row: Sighting, facts: Facts) -> Action | None:
    if row.actual != RUNNING:
        return _troubled(instance, row, facts)
    if instance.nonce in facts.jobs:
        return None
    verdict = facts.verdicts.get(instance.nonce, UNJUDGED)
    measured = (
        instance.checked_at is not None and instance.checked_at >= instance.phase_since and instance.failures == 0
    )
    overtaken = instance.admitted_at is not None and facts.outdated(instance)  # no run of it could count any more
    if not overtaken and (not measured or verdict.decision is Decision.UNKNOWN):
        return _tried(instance, facts, job="measure", reason=Reason.BENCHMARKING, why="no usable run in this phase yet")
    if verdict.decision is Decision.REJECTED and instance.admitted_at is None and facts.suspect is None:
        return Release(instance=instance, reason=Reason.BELOW_MIN_RATE, why=verdict.line)
    if facts.fleet is not None and facts.fleet.spec.instance.start:
        return _tried(instance, facts, job="start", reason=Reason.MEASURED, why="measured; production is started")
    return admit(instance, facts, verdict)


def admit(instance: Instance, facts: Facts, verdict: Verdict) -> Note:
    """Count an instance towards the target."""
    reason = Reason.MEETS_MIN_RATE if verdict.decision is Decision.ACCEPTED else Reason.INCONCLUSIVE
    if verdict.decision is Decision.REJECTED:
        reason = Reason.BELOW_MIN_RATE
    admitted = in_phase(instance, Phase.ADMITTED, reason, now=facts.now, detail=verdict.line)
    admitted = replace(admitted, admitted_at=instance.admitted_at if instance.admitted_at is not None else facts.now)
    first = instance.admitted_at is None
    return Note(
        instance=admitted,
        reason=reason,
        why=verdict.line,
        events=(event(admitted, reason, f"{'admitted' if first else 'checked again'}: {verdict.line}", now=facts.now),),
        cleared=backoffs.forgiven(instance),
    )


def _admitted(instance: Instance, row: Sighting, facts: Facts) -> Action | None:
    if row.actual != RUNNING:
        return _troubled(instance, row, facts)
    if instance.nonce in facts.jobs or facts.now < instance.not_before or facts.fleet is None:
        return None
    verdict = facts.verdicts.get(instance.nonce)
    if instance.reason is Reason.RESUMED:  # what ran on it does not run any more
        return _checked_again(instance, facts, "it was stopped and started again")
    if instance.reason is Reason.MEASURED and verdict is not None and verdict.decision is not Decision.UNKNOWN:
        return admit(instance, facts, verdict)  # its production was started: what admitted it is told now
    suspended = facts.fleet.spec.suspend
    if suspended or facts.outdated(instance) or not _due(instance, facts, verdict):
        return None if suspended else _production_read(instance, facts)
    why = verdict.line if verdict is not None and verdict.line else "no usable run"
    return _checked_again(instance, facts, why)


def _due(instance: Instance, facts: Facts, verdict: Verdict | None) -> bool:
    """Whether an instance is to be measured again.

    One that is too slow is not: it works until it is replaced. Unless it is spared because of a suspicion, whose end
    only runs can show.
    """
    if verdict is None or verdict.decision is Decision.UNKNOWN:
        return True
    if facts.suspect is not None and verdict.decision in {Decision.CHALLENGED, Decision.REJECTED}:
        return facts.now - (instance.checked_at or 0.0) >= facts.limits.suspected
    if verdict.decision is Decision.REJECTED:
        return False
    return verdict.next_run_at is None or verdict.next_run_at <= facts.now


def _production_read(instance: Instance, facts: Facts) -> Begin | None:
    """Read off the rate of ordinary work, now and then: it costs nothing, and says as much as a benchmark."""
    if facts.fleet is None or not facts.fleet.spec.benchmark.production.command or facts.outdated(instance):
        return None
    every = facts.fleet.spec.benchmark.production.every_minutes * 60
    since = max(instance.read_at or 0.0, instance.phase_since)
    if facts.now - since < every:
        return None
    return Begin(job="read", instance=instance, reason=Reason.MEASURED, why="production's rate is due")


def _checked_again(instance: Instance, facts: Facts, why: str) -> Note:
    checking = in_phase(instance, Phase.MEASURING, Reason.RECHECK_DUE, now=facts.now, detail=why)
    return Note(instance=checking, reason=Reason.RECHECK_DUE, why=why)


def _troubled(instance: Instance, row: Sighting, facts: Facts) -> Action | None:
    """An instance that ran and is not running: borne with for a while, since hosts flicker."""
    if instance.trouble_since is None:
        return None
    stood = facts.now - instance.trouble_since
    if row.actual in DOWN or row.intended == "stopped":
        return _stopped(instance, row, facts, stood)
    if stood < facts.limits.lost:
        return None
    why = f"host out of contact ({row.actual or 'no status'}) for {stood / 60:.0f} min"
    return _given_up(instance, facts, Reason.HOST_LOST, why, actual=row.actual)


def _stopped(instance: Instance, row: Sighting, facts: Facts, stood: float) -> Action | None:
    """Start it once; if its GPU is taken, or it stops again, it goes: a stopped instance bills for its disk."""
    if facts.out_of_credit or stood < facts.limits.stopped or facts.now < instance.not_before:
        return None
    who = "outbid" if row.is_bid else "stopped by somebody else"
    if instance.reason is not Reason.RESUMED and not row.is_bid:
        return Resume(instance=instance, reason=Reason.RESUMED, why=f"{who} {stood:.0f} s ago")
    reason = Reason.OUTBID if row.is_bid else Reason.STOPPED_OUTSIDE
    why = f"{who} {stood:.0f} s ago, and not running since; a stopped instance goes on billing"
    return Release(instance=instance, reason=reason, why=why, actual=row.actual)


def _releasing(instance: Instance, _row: Sighting, facts: Facts) -> Action | None:
    drain = facts.fleet.spec.instance.drain_seconds if facts.fleet is not None else 0
    over = facts.now - instance.phase_since >= drain + facts.limits.quiesce
    if instance.nonce in facts.jobs and not over:
        return None
    return Destroy(instance=instance, reason=instance.reason, why=instance.detail)


def _destroying(instance: Instance, facts: Facts) -> Action | None:
    """Until absent from two complete listings, whatever the destroy call said."""
    unseen = facts.listing is not None and instance.nonce not in facts.seen
    if unseen and facts.listing is not None and instance.absent_since is not None:
        if instance.destroy_calls and facts.listing.at - instance.absent_since >= facts.limits.apart:
            why = f"{instance.detail}; absent from two complete listings"
            note = _gone(instance, facts, Reason.TEARDOWN_VERIFIED, why)
            return replace(note, instance=replace(note.instance, reason=instance.reason))  # why it was given up
        if instance.destroy_calls:
            return None
    if facts.now < instance.not_before:
        return None
    again = f"still listed {facts.now - instance.phase_since:.0f} s after; " if instance.destroy_calls else ""
    return Destroy(instance=instance, reason=instance.reason, why=again + instance.detail)


def _tried(instance: Instance, facts: Facts, *, job: str, reason: Reason, why: str) -> Action | None:
    """Start a job unless it runs, waits, or has failed too often."""
    if instance.nonce in facts.jobs or facts.now < instance.not_before:
        return None
    if facts.fleet is None or facts.fleet.spec.suspend:
        return None
    tries = facts.limits.tries if instance.admitted_at is None else facts.limits.working_tries
    spared = facts.suspect is not None and instance.admitted_at is not None
    if (instance.failures >= tries and not spared) or instance.reason is Reason.HOST_KEY_CHANGED:
        return _given_up(instance, facts, instance.reason, f"after {instance.failures} tries: {instance.detail}")
    return Begin(job=job, instance=instance, reason=reason, why=why)


def _given_up(instance: Instance, facts: Facts, reason: Reason, why: str, *, actual: str | None = None) -> Release:
    against = backoffs.after_failure(instance, reason, why, known=facts.backoffs, now=facts.now)
    return Release(instance=instance, reason=reason, why=why, actual=actual, backoffs=against)


STEPS: dict[Phase, Callable[[Instance, Sighting, Facts], Action | None]] = {
    Phase.INTENDED: _unidentified,
    Phase.UNCLEAR: _unidentified,
    Phase.LAUNCHING: _launching,
    Phase.PREPARING: _preparing,
    Phase.MEASURING: _measuring,
    Phase.ADMITTED: _admitted,
    Phase.RELEASING: _releasing,
}
