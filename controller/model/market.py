"""What vast.ai shows us: offers for rent and instances that exist.

Values as read, None where vast.ai said nothing usable.

Made by `vast/`, read by `plan/` and `loop/`.
"""

from dataclasses import dataclass
from typing import Literal

from controller.model.money import MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One ask on the market. `price` is all-in an hour with the disk that was searched for."""

    id: int
    machine_id: int
    gpu: str
    gpu_count: int
    price: MicroUsd
    rentable: bool = True
    host_id: int | None = None
    gpu_fraction: float | None = None  # of the machine's GPUs, 0 to 1
    gpu_ram_mib: int | None = None  # of one GPU
    ram_gib: float | None = None  # this offer's share of the machine's memory
    cpu_cores: float | None = None  # this offer's share
    disk_gib: float | None = None  # the most that can be allocated
    down_mbps: float | None = None
    up_mbps: float | None = None
    down_usd_per_gb: float | None = None  # traffic is billed beside the price
    reliability: float | None = None  # 0 to 1
    verified: bool | None = None
    country: str | None = None  # ISO 3166-1 alpha-2
    cuda: float | None = None  # the newest CUDA its driver runs
    direct_ports: int | None = None
    remaining_seconds: float | None = None  # until the listing, and so the contract, ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One way to an instance's SSH server."""

    route: Literal["direct", "proxy"]
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting:
    """One instance as a listing showed it. `price` is its all-in dph_total, None when unreadable."""

    id: int
    label: str | None = None
    machine_id: int | None = None
    host_id: int | None = None
    gpu: str | None = None
    gpu_count: int | None = None
    price: MicroUsd | None = None
    actual: str | None = None  # actual_status: None, created, loading, running, exited, unknown, offline, ...
    intended: str | None = None  # intended_status: running, stopped
    current: str | None = None  # cur_state
    message: str = ""  # status_msg, one line, at most 200 characters
    is_bid: bool = False
    country: str | None = None
    started_at: float | None = None  # unix seconds
    ends_at: float | None = None  # unix seconds: the contract's end
    ram_gib: float | None = None
    cpu_cores: float | None = None
    disk_gib: float | None = None
    image: str | None = None
    endpoints: tuple[Endpoint, ...] = ()  # direct first, then proxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """All instances of the account, complete: only such a listing may say that something is absent."""

    at: float  # unix seconds, when its first page was asked for
    sightings: tuple[Sighting, ...]

    def by_id(self) -> dict[int, Sighting]:
        """Sightings by instance id."""
        return {seen.id: seen for seen in self.sightings}


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferQuery:
    """What to ask the market for: one shape's GPU with the disk that will be rented."""

    gpu: str
    gpu_count: int
    disk_gib: float
    verified: bool | None = True
    countries: tuple[str, ...] = ()  # empty: anywhere
    min_reliability: float | None = None
    max_price: MicroUsd | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateRequest:
    """What to rent. `env` values are secrets: they go over the wire and nowhere else."""

    offer_id: int
    image: str
    disk_gib: float
    label: str
    env: dict[str, str]
    on_start: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PriceIncrease:
    """A host's proposal to raise a running contract's price; ignored, the old price holds until the contract ends."""

    id: int
    instance_id: int
    old_price: MicroUsd  # per hour
    new_price: MicroUsd  # per hour


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Whose key this is, and what money is left."""

    id: int
    credit: MicroUsd | None
