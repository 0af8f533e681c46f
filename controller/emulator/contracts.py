"""One rented instance: what was asked for, what state it is in, and the script of how it boots.

A contract's life is a list of timed changes decided when something is asked of it (create, stop, start, destroy); world
applies those that are due whenever somebody looks. Nothing runs in the background.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple

from controller.emulator.chance import jitter, lognormal
from controller.emulator.market import Slot
from controller.emulator.offers import HOURS_A_MONTH, ram_share_mb
from controller.emulator.trouble import HostTrouble

SELF_STOP_S = 420.0  # the service gives up on an image it cannot find
FAULT_FLAP_S = 60.0
GIB = 1024**3

MANIFEST = "Error response from daemon: manifest for {image} not found: manifest unknown"
GPU_FAULT = "Error: GPU error, unable to start instance."
OCI_FAULT = ": OCI runtime create failed: failed to inject CDI devices: unresolvable CDI devices nvidia.com/gpu=0"
SCHEDULING = "Attempting to schedule your instance. Your GPU is currently in use."


@dataclass(frozen=True, slots=True)
class Order:
    """What a create call asked for, after validation; `bid` in USD an hour, None for on-demand."""

    image: str
    disk_gb: float
    label: str | None = None
    bid: float | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    onstart: str | None = None
    runtype: str = "ssh ssh_direc ssh_proxy"
    args: tuple[str, ...] = ()
    stopped: bool = False
    cancel_unavail: bool = False


@dataclass(frozen=True, slots=True)
class Key:
    """A public key and the unix time from which the instance lets its owner in."""

    id: int
    text: str
    since: float


class Change(NamedTuple):
    """Fields that take new values at a unix time."""

    at: float
    fields: Mapping[str, Any]


@dataclass(slots=True, eq=False)
class Contract:
    """An instance as vast.ai keeps it. Times are unix seconds, money is USD."""

    id: int
    nth: int  # in order of creation, from 1
    slot: Slot
    order: Order
    label: str | None
    created_at: float
    dph_base: float
    end_date: float
    fates: tuple[HostTrouble, ...] = ()
    opened_at: float = 0.0  # when the emulator started
    keys: list[Key] = field(default_factory=list)
    intended: str = "running"
    cur: str = "running"
    actual: str | None = None
    status_msg: str | None = None
    holds_gpus: bool = True
    queued: bool = False
    outbid: bool = False
    running_since: float | None = None
    first_running_at: float | None = None
    boots: int = 0
    drops: int = 0  # how often its connections were cut
    host_key: int = 0  # generation of the host key
    container: int = 0  # generation of the container; a recycle makes a new one
    epoch: int = 0  # changes planned before the last order are void
    destroyed_at: float | None = None
    listed_until: float | None = None
    billed_usd: float = 0.0
    direct_port: int = 0
    proxy_port: int = 0

    @property
    def is_bid(self) -> bool:
        """Whether it is interruptible."""
        return self.order.bid is not None

    @property
    def storage_per_hour(self) -> float:
        """USD an hour for the disk."""
        return float(self.slot.row["storage_cost"]) * self.order.disk_gb / HOURS_A_MONTH

    @property
    def price_per_hour(self) -> float:
        """USD an hour while it runs, with the disk."""
        return self.dph_base + self.storage_per_hour

    @property
    def burn_per_hour(self) -> float:
        """USD an hour that it costs in its present state."""
        if self.destroyed_at is not None:
            return 0.0
        return self.storage_per_hour + (self.dph_base if self.actual == "running" else 0.0)

    @property
    def ram_bytes(self) -> int:
        """The memory its container may use."""
        return int(ram_share_mb(self.slot.row) * 1024 * 1024)

    def span(self, fate: HostTrouble) -> tuple[float, float]:
        """Return the unix times between which a trouble is in force; before it first ran, none is."""
        start = self.opened_at if fate.since == "start" else self.first_running_at
        if self.first_running_at is None or start is None:
            return math.inf, math.inf
        begin = start + fate.after
        return begin, math.inf if fate.seconds is None else begin + fate.seconds

    def trouble(self, kind: str, now: float) -> HostTrouble | None:
        """Return a trouble of this kind that is in force."""
        for fate in self.fates:
            if fate.kind == kind:
                begin, end = self.span(fate)
                if begin <= now < end:
                    return fate
        return None

    def overlap(self, kind: str, since: float, until: float) -> float:
        """Return for how many seconds between two unix times troubles of this kind are in force."""
        spans = [self.span(fate) for fate in self.fates if fate.kind == kind]
        return sum(max(0.0, min(until, end) - max(since, begin)) for begin, end in spans)

    def fate(self, kind: str) -> HostTrouble | None:
        """Return the first trouble of this kind that it is to meet at any time."""
        return next((fate for fate in self.fates if fate.kind == kind), None)


@dataclass(frozen=True, slots=True)
class Increase:
    """A host's proposal, made at a unix time, to raise a contract's GPU price to so many USD an hour."""

    contract: Contract
    dph_base: float
    proposed_at: float


def boot_script(contract: Contract, *, at: float, rng: Random, median_s: float) -> Iterator[Change]:
    """Yield the changes from a start order to running, or to whatever goes wrong.

    Args:
        contract: what boots; its fates decide how.
        at: unix time of the order.
        rng: this boot's stream.
        median_s: median seconds from order to running; a container that exists already needs a fifth.
    """
    image = contract.order.image
    yield Change(at + rng.uniform(1, 4), {"actual": "created", "status_msg": None})
    loading = at + rng.uniform(4, 8)
    fault = next((f.kind for f in contract.fates if f.kind in _BROKEN_BOOTS), None)
    if fault is not None:
        yield from _BROKEN_BOOTS[fault](loading, image)
        return
    slow = contract.fate("slow-host")
    whole = lognormal(rng, mean=median_s, cv=0.35) * (slow.scale if slow else 1) * (0.2 if contract.boots else 1)
    layer = f"{rng.getrandbits(48):012x}"
    yield Change(loading, {"actual": "loading", "status_msg": f"{image}: Pulling from {image.split(':')[0]}\n"})
    for share, text in ((0.3, "Downloading"), (0.6, "Download complete"), (0.85, "Extracting")):
        yield Change(loading + whole * share, {"status_msg": f"{layer}: {text}"})
    done = f"success, running {image.replace(':', '_')}/ssh"
    yield Change(loading + whole * jitter(rng, 0.05), {"actual": "running", "status_msg": done})


def _stuck(at: float, image: str) -> Iterator[Change]:
    yield Change(at, {"actual": "loading", "status_msg": f"{image}: Pulling fs layer"})


def _bad_image(at: float, image: str) -> Iterator[Change]:
    yield Change(at, {"actual": "loading", "status_msg": MANIFEST.format(image=image)})
    yield Change(at + SELF_STOP_S, {"intended": "stopped", "cur": "stopped"})


def _gpu_fault(at: float, _image: str) -> Iterator[Change]:
    yield Change(at, {"actual": "created", "status_msg": GPU_FAULT})
    for flap in range(6):
        yield Change(at + flap * FAULT_FLAP_S, {"cur": "stopped" if flap % 2 else "running"})


def _oci_fault(at: float, _image: str) -> Iterator[Change]:
    yield Change(at, {"actual": "created", "status_msg": OCI_FAULT})


_BROKEN_BOOTS = {
    "stuck-loading": _stuck,
    "bad-image": _bad_image,
    "gpu-fault": _gpu_fault,
    "oci-fault": _oci_fault,
}
