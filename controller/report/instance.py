"""What is said of one instance: its conditions, read off its record."""

from controller.model.instance import Instance, Phase
from controller.model.reasons import Reason
from controller.model.status import Condition

PENDING = frozenset({Phase.INTENDED, Phase.UNCLEAR, Phase.LAUNCHING, Phase.PREPARING, Phase.MEASURING})


def conditions_of(instance: Instance) -> tuple[Condition, ...]:
    """An instance's conditions: how far it came, what it does now, and whether its end is proven."""
    i = instance
    working = i.admitted_at is not None and i.phase in {Phase.ADMITTED, Phase.MEASURING}
    steps = (
        ("Launched", i.launched_at, Reason.RENTED),
        ("Prepared", i.prepared_at, Reason.PREPARED),
        ("Benchmarked", i.checked_at, Reason.MEASURED),
    )
    said = [
        _said("Ready", holds=working, since=i.phase_since, instance=i),
        *(_step(kind, at, reason, i) for kind, at, reason in steps),
        _said("Admitted", holds=working, since=i.phase_since, instance=i),
        _said("TeardownVerified", holds=not i.billable, since=i.ended_at or i.created_at, instance=i),
    ]
    if i.host_key is not None:
        said.insert(2, _step("Reachable", i.launched_at, Reason.CONNECTING, i))
    if i.phase in PENDING and not working:
        said.append(_said("Reconciling", holds=True, since=i.phase_since, instance=i))
    if i.trouble_since is not None:
        said.append(_said("Degraded", holds=True, since=i.trouble_since, instance=i))
    return tuple(said)


def _said(kind: str, *, holds: bool, since: float, instance: Instance) -> Condition:
    return Condition(
        type=kind,
        status="True" if holds else "False",
        reason=instance.reason,
        message=instance.detail,
        last_transition_time=since,
    )


def _step(kind: str, at: float | None, reason: Reason, instance: Instance) -> Condition:
    if at is None:
        return _said(kind, holds=False, since=instance.created_at, instance=instance)
    return Condition(type=kind, status="True", reason=reason, last_transition_time=at)
