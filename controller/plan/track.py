"""What a complete listing says about the instances in the ledger: which row is whose, what changed, what is missing.

Called once a pass, before anything is decided. An instance is matched by its label, to the letter; the id must agree
where it is known.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from controller.model import labels
from controller.model.instance import Event, Instance, Phase
from controller.model.labels import Mark
from controller.model.market import Listing, Sighting
from controller.model.money import dollars
from controller.model.reasons import Reason

COST_WRITTEN_EVERY = 600.0  # seconds; a cost alone is not worth a write each pass


@dataclass(frozen=True, slots=True, kw_only=True)
class Matches:
    """A listing, laid against the ledger."""

    seen: dict[str, Sighting]  # by nonce
    strays: tuple[tuple[Mark, Sighting], ...]  # our label, but no record of it
    doubles: tuple[tuple[Instance, Sighting], ...]  # a second instance under one label
    back: tuple[tuple[Instance, Sighting], ...]  # recorded as gone, yet listed


def match(
    listing: Listing, *, owner: str, find: Callable[[str], Instance | None], holder: Callable[[int], Instance | None]
) -> Matches:
    """Lay a listing against the ledger; `find` gives the record of a nonce, `holder` that of an id, gone ones too."""
    seen: dict[str, Sighting] = {}
    strays: list[tuple[Mark, Sighting]] = []
    doubles: list[tuple[Instance, Sighting]] = []
    back: list[tuple[Instance, Sighting]] = []
    for row in sorted(listing.sightings, key=lambda row: row.id):
        mark = labels.read(row.label, owner=owner)
        if mark is None:
            continue
        known = holder(row.id)
        if known is not None and known.label != row.label:
            continue  # another label of ours was put on it: not ours to touch any more
        record = find(mark.nonce)
        if record is None:
            strays.append((mark, row))
            continue
        if record.instance_id not in {None, row.id} or mark.nonce in seen:
            twin = find(twin_nonce(record, row))
            if twin is None:
                doubles.append((record, row))
                continue
            record = twin
        if record.phase is Phase.GONE:
            back.append((record, row))
        else:
            seen[record.nonce] = row
    return Matches(seen=seen, strays=tuple(strays), doubles=tuple(doubles), back=tuple(back))


def update(
    instance: Instance, row: Sighting | None, listing: Listing, *, now: float
) -> tuple[Instance, tuple[Event, ...]]:
    """An instance's record after a complete listing, and what is worth saying about the difference."""
    charged = _charged(instance, now)
    if row is None:
        since = instance.absent_since if instance.absent_since is not None else listing.at
        return replace(charged, absent_since=since), ()
    updated, events = _identified(charged, row, now=now)
    updated, priced = _priced(updated, row, now=now)
    updated = replace(
        updated,
        absent_since=None,
        ends_at=row.ends_at or updated.ends_at,
        country=updated.country or row.country,
        host_id=updated.host_id or row.host_id,
        launched_at=updated.launched_at or (now if row.actual == "running" else None),
        trouble_since=_trouble_since(updated, row, now),
    )
    return updated, (*events, *priced)


def differs(before: Instance, after: Instance) -> bool:
    """Whether an updated record is worth a write."""
    if after.cost_until is not None and after.cost_until - (before.cost_until or 0.0) >= COST_WRITTEN_EVERY:
        return True
    return replace(after, cost=before.cost, cost_until=before.cost_until) != before


def event(instance: Instance, reason: Reason, message: str, *, now: float, kind: str = "Normal") -> Event:
    """An event about an instance."""
    return Event(at=now, fleet=instance.fleet, about=name_of(instance), kind=kind, reason=reason, message=message)


def name_of(instance: Instance) -> str:
    """What people call an instance: vast.ai's id, or its nonce before there is one."""
    return str(instance.instance_id) if instance.instance_id is not None else instance.nonce


def in_phase(instance: Instance, phase: Phase, reason: Reason, *, now: float, detail: str = "") -> Instance:
    """An instance that enters a phase: its tries start afresh."""
    return replace(
        instance,
        phase=phase,
        phase_since=now,
        reason=reason,
        detail=detail,
        failures=0,
        not_before=0.0,
        trouble_since=None,
    )


def adopted(mark: Mark, row: Sighting, *, shape: str, workload: str, now: float) -> Instance:
    """The record of an instance that carries our mark though the ledger has never heard of it."""
    running = row.actual == "running"
    return Instance(
        nonce=mark.nonce,
        fleet=mark.fleet,
        label=row.label or "",
        shape=shape,
        gpu=row.gpu or "unknown",
        gpu_count=row.gpu_count or 0,
        machine_id=row.machine_id or 0,
        host_id=row.host_id,
        country=row.country,
        price=row.price or 0,
        disk_gib=row.disk_gib or 0.0,
        workload=workload,
        phase=Phase.PREPARING if running else Phase.LAUNCHING,
        phase_since=now,
        reason=Reason.ADOPTED,
        created_at=row.started_at or now,
        instance_id=row.id,
        launched_at=now if running else None,
        ends_at=row.ends_at,
        cost_until=now,
    )


def twin_nonce(record: Instance, row: Sighting) -> str:
    """What the record of a second instance under one label is kept under."""
    return f"{record.nonce}+{row.id}"


def twin_of(record: Instance, row: Sighting, *, why: str, now: float) -> Instance:
    """The record of a second instance under one label: on its way out, with a bill of its own."""
    twin = replace(
        record,
        nonce=twin_nonce(record, row),
        instance_id=row.id,
        machine_id=row.machine_id or record.machine_id,
        price=max(row.price or 0, record.price),
        created_at=row.started_at or now,
        launched_at=None,
        prepared_at=None,
        admitted_at=None,
        checked_at=None,
        absent_since=None,
        ended_at=None,
        destroy_calls=0,
        cost=0,
        cost_until=now,
    )
    return in_phase(twin, Phase.DESTROYING, Reason.STRAY, now=now, detail=why)


def _charged(instance: Instance, now: float) -> Instance:
    """By our own clock and the dearest price: an invoice may come late, or say less than was run."""
    if instance.instance_id is None:
        return instance
    hours = max(0.0, now - (instance.cost_until if instance.cost_until is not None else instance.created_at)) / 3600
    return replace(instance, cost=instance.cost + round(instance.price * hours), cost_until=now)


def _identified(instance: Instance, row: Sighting, *, now: float) -> tuple[Instance, tuple[Event, ...]]:
    if instance.instance_id is not None:
        return instance, ()
    found = in_phase(replace(instance, instance_id=row.id), Phase.LAUNCHING, Reason.RENTED, now=now)
    return found, (
        event(found, Reason.RENTED, "the create call's answer was lost; its label shows that it was rented", now=now),
    )


def _priced(instance: Instance, row: Sighting, *, now: float) -> tuple[Instance, tuple[Event, ...]]:
    """The dearest price seen counts: a stopped instance shows its storage alone, and the full price once it starts."""
    if row.price is None or row.price <= instance.price:
        return instance, ()
    text = f"costs {dollars(row.price)}/h, {dollars(instance.price)}/h before"
    dearer = replace(instance, price=row.price)
    return dearer, (event(dearer, Reason.PRICE_INCREASED, text, now=now, kind="Warning"),)


def _trouble_since(instance: Instance, row: Sighting, now: float) -> float | None:
    troubled = (
        row.actual != "running"
        if instance.launched_at is not None
        else fault_in(row) is not None or row.intended == "stopped"
    )
    return (instance.trouble_since or now) if troubled else None


IMAGE_FAULTS = (
    "manifest",
    "pull access denied",
    "repository does not exist",
    "unauthorized",
    "invalid reference format",
)
HOST_FAULTS = (
    "error response from daemon",
    "oci runtime",
    "cdi device",
    "nvidia-container-cli",
    "gpu error",
    "no space left on device",
    "driver failed programming external connectivity",
    "docker_build() error",
    "error pulling",
    "failed to pull",
    "toomanyrequests",
    "pull rate limit",
    "unexpected eof",
    "tls handshake",
)


def fault_in(row: Sighting) -> Reason | None:
    """What a status message says is broken, while the instance is not running. Progress and retries are no faults."""
    text = row.message.lower()
    if row.actual == "running" or not text or "retrying in" in text:
        return None
    if any(word in text for word in IMAGE_FAULTS):
        return Reason.IMAGE_FAULT
    return Reason.HOST_FAULT if any(word in text for word in HOST_FAULTS) else None
