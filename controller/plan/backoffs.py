"""What is not tried again, and for how long, after which failure.

A success forgets; the waits double up to a ceiling.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from controller.model.faults import Fault, Misconfigured, Retry
from controller.model.instance import Backoff, Instance
from controller.model.reasons import Reason

MINUTE = 60.0
HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True, slots=True)
class Wait:
    """First wait, its ceiling, and how many failures are let pass before the first wait."""

    first: float
    most: float
    free: int = 0


OFFER = Wait(10 * MINUTE, 8 * HOUR)
MACHINE = Wait(1 * HOUR, 48 * HOUR)
SHAPE = Wait(5 * MINUTE, 2 * HOUR, free=2)
ACCOUNT = Wait(1 * MINUTE, 30 * MINUTE)
SPENDING = Wait(1 * HOUR, 6 * HOUR)
IMAGE = Wait(15 * MINUTE, 4 * HOUR, free=2)
REQUEST = Wait(15 * MINUTE, 4 * HOUR)

OURS = frozenset({Reason.IMAGE_FAULT, Reason.OUT_OF_MEMORY})  # faults of what we run
ALIKE = 2  # failures of one kind, before one more is not its machine's fault


def after_failure(
    instance: Instance, reason: Reason, detail: str, *, known: Iterable[Backoff], now: float
) -> tuple[Backoff, ...]:
    """What an instance's failure keeps us from: its machine for a while, and its shape if it keeps happening."""
    backoffs = tuple(known)
    key = shape_key(instance)
    same = next((b for b in backoffs if b.scope == "shape" and b.key == key and b.reason is reason), None)
    if reason in OURS or (same is not None and same.failures >= ALIKE):  # the machine is not to blame
        return (extended(backoffs, "shape", key, IMAGE, reason=reason, detail=detail, now=now),)
    return (
        extended(backoffs, "machine", str(instance.machine_id), MACHINE, reason=reason, detail=detail, now=now),
        extended(backoffs, "shape", shape_key(instance), SHAPE, reason=reason, detail=detail, now=now),
    )


def after_refusal(intent: Instance, fault: Fault, *, known: Iterable[Backoff], now: float) -> Backoff:
    """What a refused create call keeps us from trying again, and for how long."""
    scope, key, wait, after = "offer", str(intent.offer_id), OFFER, None
    if isinstance(fault, Misconfigured):
        scope, key, wait = "fleet", fleet_key(intent.fleet, intent.workload), REQUEST
    elif isinstance(fault, Retry):
        scope, key, wait, after = "account", "account", ACCOUNT, fault.after
    elif fault.reason in {Reason.SPEND_LIMITED, Reason.CREDIT_EXHAUSTED}:
        scope, key, wait = "account", "account", SPENDING if fault.reason is Reason.SPEND_LIMITED else ACCOUNT
    return extended(known, scope, key, wait, reason=fault.reason, detail=str(fault), now=now, after=after)


def ended_by_rental(intent: Instance) -> tuple[tuple[str, str], ...]:
    """What a create call that was carried out ends, by scope and key."""
    return ("account", "account"), ("fleet", fleet_key(intent.fleet, intent.workload))


def forgiven(instance: Instance) -> tuple[tuple[str, str], ...]:
    """What an admission ends, by scope and key: what was held against its machine and its shape."""
    return ("machine", str(instance.machine_id)), ("shape", shape_key(instance))


def shape_key(instance: Instance) -> str:
    """A shape of a fleet, with what runs on it: a mended manifest starts afresh."""
    return key_of(instance.fleet, instance.shape, instance.workload)


def fleet_key(fleet: str, workload: str) -> str:
    """A fleet with what runs on it: a mended manifest starts afresh."""
    return f"{fleet}/{workload}"


def key_of(fleet: str, shape: str, workload: str) -> str:
    """The same, where there is no instance yet."""
    return f"{fleet}/{shape}/{workload}"


def extended(
    known: Iterable[Backoff],
    scope: str,
    key: str,
    wait: Wait,
    *,
    reason: Reason,
    detail: str,
    now: float,
    after: float | None = None,
) -> Backoff:
    """One more failure of that scope and key.

    `after`: seconds to wait that somebody named, instead of ours; a day at most, none if it is no number.
    """
    failures = next((b.failures for b in known if b.scope == scope and b.key == key), 0) + 1
    doublings = failures - 1 - wait.free
    if after is not None:
        seconds = max(0.0, min(after, DAY))
    else:
        seconds = 0.0 if doublings < 0 else min(wait.most, wait.first * 2 ** min(doublings, 32))
    return Backoff(scope=scope, key=key, until=now + seconds, failures=failures, reason=reason, detail=detail[:200])
