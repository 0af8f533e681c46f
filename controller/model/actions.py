"""What the planner decides: frozen values, each with its reason, performed only by `loop/act.py`.

A dry run prints them.
"""

from dataclasses import dataclass

from controller.model.instance import Backoff, Event, Instance
from controller.model.market import Offer
from controller.model.money import MicroUsd
from controller.model.reasons import Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rent:
    """Rent an offer. `rate`: what it is expected to do, in the benchmark's unit."""

    fleet: str
    shape: str
    offer: Offer
    rate: float
    reason: Reason
    why: str

    @property
    def price(self) -> MicroUsd:
        """What it will cost an hour, all in."""
        return self.offer.price


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Give an instance up: quiesce what it does, then destroy it.

    `actual` is the state that was relied on, None if none was.

    Before the destroy call the instance is read again: if it no longer carries our label, or its state is not
    `actual` any more, it is dropped.
    """

    instance: Instance
    reason: Reason
    why: str
    actual: str | None = None
    backoffs: tuple[Backoff, ...] = ()  # what this failure keeps us from trying again


@dataclass(frozen=True, slots=True, kw_only=True)
class Destroy:
    """Send the destroy call for an instance that is being given up."""

    instance: Instance
    reason: Reason
    why: str
    actual: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Start work on an instance, in the background. `job`: prepare, measure, start or quiesce."""

    job: str
    instance: Instance
    reason: Reason
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Start an instance that somebody, or an empty account, stopped: it bills for its disk all the while."""

    instance: Instance
    reason: Reason
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """Write down what was seen or concluded about an instance; nothing outside changes."""

    instance: Instance  # as it is to be written
    reason: Reason
    why: str
    events: tuple[Event, ...] = ()
    backoffs: tuple[Backoff, ...] = ()
    cleared: tuple[tuple[str, str], ...] = ()  # back-offs that no longer hold, by scope and key


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirm:
    """Ask for one instance by its id before believing that it vanished."""

    instance: Instance
    reason: Reason
    why: str


Action = Rent | Release | Destroy | Begin | Resume | Note | Confirm
