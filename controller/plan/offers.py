"""Which offers fit a shape, and why the others don't: every condition of the manifest, checked again on this side.

A condition that the offer does not answer is not met. Each offer is charged to the first step it fails, so the counts
read as a funnel.
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from controller.model.fleet import FleetSpec, Shape
from controller.model.market import Offer
from controller.model.money import MicroUsd
from controller.model.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """An offer that fits, with what it is expected to do in the benchmark's unit."""

    offer: Offer
    shape: str
    rate: float
    preferred: bool = False  # by the manifest: taken before others

    @property
    def price(self) -> MicroUsd:
        """All-in, an hour."""
        return self.offer.price


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """What is left of a market, and how many fell at which step."""

    offers: tuple[Offer, ...]
    rejected: dict[Reason, int]


Step = tuple[Reason, Callable[[Offer], bool]]


def sift(
    offers: Iterable[Offer], *, spec: FleetSpec, shape: Shape, now: float, blocked: Callable[[Offer], Reason | None]
) -> Sifted:
    """Keep the offers that meet every condition; `blocked` names what our own experience holds against one.

    `now`, in Unix seconds, tells which machines are still to be avoided.
    """
    steps = _steps(spec, shape, now)
    kept: list[Offer] = []
    rejected: Counter[Reason] = Counter()
    for offer in offers:
        reason = next((reason for reason, meets in steps if not meets(offer)), None) or blocked(offer)
        if reason is None:
            kept.append(offer)
        else:
            rejected[reason] += 1
    return Sifted(offers=tuple(kept), rejected=dict(rejected))


def _steps(spec: FleetSpec, shape: Shape, now: float) -> tuple[Step, ...]:
    require = spec.require
    countries = spec.countries()
    cap = shape.max_price
    avoided = spec.machines.avoided(now)
    return (
        (Reason.WRONG_GPU, lambda o: o.gpu == shape.gpu and o.gpu_count == shape.gpu_count),
        (Reason.NOT_RENTABLE, lambda o: o.rentable),
        (Reason.REGION, lambda o: countries is None or o.country in countries),
        (Reason.UNVERIFIED, lambda o: not require.verified or o.verified is True),
        (Reason.RELIABILITY, lambda o: _at_least(o.reliability, require.reliability)),
        (Reason.MEMORY, lambda o: _at_least(o.ram_gib, require.ram_gib)),
        (Reason.DISK, lambda o: _at_least(o.disk_gib, require.disk_gib)),
        (Reason.CUDA, lambda o: _at_least(o.cuda, require.cuda_version)),
        (Reason.NETWORK, lambda o: _at_least(o.down_mbps, require.down_mbps)),
        (Reason.PARTIAL_MACHINE, lambda o: not require.whole_machine or o.gpu_fraction == 1.0),
        (Reason.REMAINING_TIME, lambda o: _at_least(o.remaining_seconds, _seconds(require.remaining_hours))),
        (Reason.PRICE, lambda o: o.price > 0 and (cap is None or o.price <= cap)),
        (Reason.BUDGET_EXHAUSTED, lambda o: o.price <= spec.budget),
        (Reason.AVOIDED, lambda o: o.machine_id not in avoided),
    )


def _at_least(value: float | None, floor: float | None) -> bool:
    return not floor or (value is not None and value >= floor)


def _seconds(hours: float | None) -> float | None:
    return None if hours is None else hours * 3600
