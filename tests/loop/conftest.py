"""The loop's ports as recording parts: what was called, in which order, and what the ledger said at that moment."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from controller.ledger.sqlite import Ledger
from controller.loop.act import Acts, Done
from controller.loop.jobs import Jobs
from controller.loop.ports import Order
from controller.model.actions import Action, Rent
from controller.model.faults import Fault
from controller.model.fleet import Fleet
from controller.model.instance import Instance
from controller.model.market import Account, CreateRequest, Listing, Offer, OfferQuery, PriceIncrease, Sighting
from controller.model.reasons import Reason
from controller.plan.limits import Limits
from controller.plan.outcome import JobEnd
from controller.runtime.clock import Clock
from tests.plan.conftest import NOW, OWNER, SHAPE, facts, fleet, offer


@dataclass
class Recorder:
    """A vast.ai that notes each call with the ledger's instances at that moment, and answers as it is told."""

    ledger: Ledger
    calls: list[tuple[str, tuple[Instance, ...]]] = field(default_factory=list)
    rows: dict[int, Sighting] = field(default_factory=dict)
    faults: dict[str, BaseException] = field(default_factory=dict)  # by call
    requests: list[CreateRequest] = field(default_factory=list)
    listing: tuple[Sighting, ...] = ()

    def _call(self, name: str) -> None:
        self.calls.append((name, self.ledger.instances(gone=True)))
        if name in self.faults:
            raise self.faults[name]

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.calls]

    async def list(self) -> Listing:
        self._call("list")
        return Listing(at=NOW, sightings=self.listing)

    async def search(self, query: OfferQuery) -> tuple[Offer, ...]:
        self._call("search")
        return ()

    async def get(self, instance_id: int) -> Sighting | None:
        self._call("get")
        return self.rows.get(instance_id)

    async def create(self, request: CreateRequest) -> int:
        self.requests.append(request)
        self._call("create")
        return 4242

    async def destroy(self, instance_id: int) -> None:
        self._call("destroy")

    async def start(self, instance_id: int) -> None:
        self._call("start")

    async def price_increases(self, listing: Listing) -> tuple[PriceIncrease, ...]:
        self._call("price_increases")
        return ()

    async def account(self) -> Account:
        self._call("account")
        return Account(id=1, credit=100_000_000)


@dataclass
class Hosts:
    """Hosts whose jobs end when the test says so."""

    orders: list[Order] = field(default_factory=list)
    ends: dict[str, "asyncio.Future[JobEnd]"] = field(default_factory=dict)  # by nonce
    stubborn: bool = False  # whether a cancelled job takes a while to end

    async def carry_out(self, order: Order, progress: Callable[[str], None]) -> JobEnd:
        self.orders.append(order)
        progress("begun")
        end: asyncio.Future[JobEnd] = asyncio.get_running_loop().create_future()
        self.ends[order.instance.nonce] = end
        try:
            return await end
        except asyncio.CancelledError:
            if self.stubborn:
                for _ in range(5):
                    await asyncio.sleep(0)  # noqa: TID251 - lets others run, no time passes
            raise


@dataclass
class Room:
    """`Acts` with everything that they need, on a ledger in a file."""

    ledger: Ledger
    provider: Recorder
    hosts: Hosts
    ended: list[tuple[str, JobEnd]] = field(default_factory=list)
    secrets: dict[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    ids: int = 0

    def __post_init__(self) -> None:
        clock = Clock(wall=lambda: NOW)
        self.jobs = Jobs(hosts=self.hosts, clock=clock, ended=lambda nonce, end: self.ended.append((nonce, end)))
        self.acts = Acts(
            provider=self.provider,
            ledger=self.ledger,
            jobs=self.jobs,
            clock=clock,
            secrets=self._secrets,
            new_id=self._new_id,
            owner=OWNER,
            limits=self.limits,
        )

    async def _secrets(self, fleet: Fleet) -> dict[str, str]:
        return self.secrets

    def _new_id(self) -> str:
        self.ids += 1
        return f"{self.ids:08x}"

    async def perform(
        self, action: Action, *, of: Fleet | None = None, seen: dict[str, Sighting] | None = None
    ) -> Done:
        return await self.acts.perform(action, facts(fleet=of or fleet(), seen=seen or {}))

    async def rent(self, fault: BaseException | None = None, *, price: float = 0.3, of: Fleet | None = None) -> Done:
        """Rent one offer; the create call answers with the fault, if there is one."""
        if fault is not None:
            self.provider.faults["create"] = fault
        action = Rent(
            fleet="provers", shape=SHAPE, offer=offer(1, price), rate=60.0, reason=Reason.FILLING, why="missing"
        )
        return await self.perform(action, of=of)

    def only(self) -> Instance:
        """The one record there is."""
        (record,) = self.ledger.instances(gone=True)
        return record


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    ledger = Ledger.open(tmp_path / "ledger.db")
    yield Room(ledger=ledger, provider=Recorder(ledger), hosts=Hosts())
    ledger.close()


def of_kind(fault: type[Fault], reason: Reason, **values: object) -> Fault:
    """A fault as the client would raise it."""
    return fault(reason, f"vast.ai said {reason}", **values)
