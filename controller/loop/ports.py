"""What the loop needs of the world, in its own words.

`runtime/` wires the real things; a simulated week wires others.
"""

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Protocol

from controller.model.fleet import Fleet
from controller.model.instance import Backoff, Event, Instance, Run
from controller.model.market import (
    Account,
    CreateRequest,
    Endpoint,
    Listing,
    Offer,
    OfferQuery,
    PriceIncrease,
    Sighting,
)
from controller.model.money import MicroUsd
from controller.plan.outcome import JobEnd


class Clock(Protocol):
    """The controller's time: unix seconds, which may run faster than the wall, or not at all until something waits."""

    def now(self) -> float:
        """Unix seconds."""

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""


class Provider(Protocol):
    """vast.ai. Every call raises a `Fault` named by what to do next."""

    async def list(self) -> Listing:
        """All instances of the account, complete, or a fault."""

    async def search(self, query: OfferQuery) -> tuple[Offer, ...]:
        """Offers of one GPU model, not yet held against the manifest."""

    async def get(self, instance_id: int) -> Sighting | None:
        """One instance, None if vast.ai knows of none."""

    async def create(self, request: CreateRequest) -> int:
        """Rent; the new instance's id. `Unclear` if it may have been rented."""

    async def destroy(self, instance_id: int) -> None:
        """Ask for an instance's end; only listings prove it."""

    async def price_increases(self, listing: Listing) -> tuple[PriceIncrease, ...]:
        """What hosts propose to charge for listed instances."""

    async def start(self, instance_id: int) -> None:
        """Start a stopped instance. `Refused` if its GPU is taken."""

    async def account(self) -> Account:
        """Whose key it is, and the credit left."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One job on one instance. `job`: prepare, measure, read, start or quiesce."""

    job: str
    instance: Instance
    endpoints: tuple[Endpoint, ...]
    fleet: Fleet
    neighbours: int = 0  # other instances of ours at work on its machine
    ran_out: tuple[tuple[float | None, int], ...] = ()  # memory in GiB, and the width that ran out of it


class Hosts(Protocol):
    """The rented hosts, over SSH."""

    async def carry_out(self, order: Order, progress: Callable[[str], None]) -> JobEnd:
        """Do the job. What goes wrong on the host is part of the answer; nothing is raised but cancellation."""


class Secrets(Protocol):
    """Where values of envFrom come from."""

    async def __call__(self, fleet: Fleet) -> dict[str, str]:
        """A fleet's whole environment. Raises a fault naming what is missing, never a value."""


class Ledger(Protocol):
    """All that is remembered between passes. What is written is read back at once, and soon durable."""

    def put(self, instance: Instance) -> None:
        """Write an instance, new or changed."""

    async def secure(self, nonce: str) -> None:
        """Return when an instance's record is durable as it is now; raise a fault if it can't be made so."""

    def instance(self, nonce: str) -> Instance | None:
        """One instance by its nonce, gone or not."""

    def holder(self, instance_id: int) -> Instance | None:
        """The record that has vast.ai's id, gone or not."""

    def instances(self, fleet: str | None = None, *, gone: bool = False, since: float = 0.0) -> tuple[Instance, ...]:
        """Instances, oldest first; of those that are gone, only what was rented after `since`, unix seconds."""

    def on_machine(self, machine_id: int) -> tuple[Instance, ...]:
        """The instances on a machine, of all fleets, all that bill or may bill."""

    def machines_in_use(self) -> AbstractSet[int]:
        """The machines of all instances that bill or may bill."""

    def spend(self) -> MicroUsd:
        """What all instances that vast.ai gave an id cost an hour."""

    def add_run(self, run: Run) -> None:
        """Keep a run."""

    def runs(self, machine_id: int | None = None) -> tuple[Run, ...]:
        """Runs, oldest first."""

    def put_backoff(self, backoff: Backoff) -> None:
        """Write a back-off."""

    def drop_backoff(self, scope: str, key: str) -> None:
        """Forget a back-off."""

    def backoffs(self) -> Iterable[Backoff]:
        """All back-offs, ended ones too."""

    def add_event(self, event: Event) -> None:
        """Append an event."""

    def put_status(self, fleet: str, status: str) -> None:
        """Keep a fleet's status, as JSON text."""

    def status(self, fleet: str) -> str | None:
        """A fleet's status, as JSON text, None before the first."""

    def statuses(self) -> dict[str, str]:
        """Each fleet's status, as JSON text."""

    def set_deleting(self, fleet: str, *, deleting: bool) -> None:
        """Note that a fleet is to be torn down, or no longer."""

    def discarded(self) -> AbstractSet[str]:
        """The nonces of instances whose records somebody asked to be taken away: they are to go."""

    def deleting(self) -> frozenset[str]:
        """The fleets to be torn down."""

    def fact(self, name: str) -> str | None:
        """A single remembered value."""

    def put_fact(self, name: str, value: str) -> None:
        """Remember a single value."""
