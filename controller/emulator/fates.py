"""How host troubles play out: which are booked when an instance is created, first runs, or is destroyed.

Called by world alone.
"""

from functools import partial
from itertools import count
from typing import TYPE_CHECKING

from controller.emulator.agenda import Action
from controller.emulator.chance import stream
from controller.emulator.contracts import Contract, Increase, Order
from controller.emulator.trouble import Birth, HostTrouble, fates_of

if TYPE_CHECKING:
    from controller.emulator.world import World

OFFLINE_S = 60.0  # from no heartbeat to disconnected
FIRST_INCREASE = 9_001
MARKET_BID_S = 3600.0  # how often the price of interruptibles moves

REFUSED = ("direct-refused", "proxy-refused")


def _nothing(_at: float) -> None:
    """Happen."""


class Fates:
    """Books a contract's troubles on the world's agenda."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._increase_ids = count(FIRST_INCREASE)

    def of(self, machine_id: int, order: Order, *, nth: int) -> tuple[HostTrouble, ...]:
        """Return the troubles that the nth instance, created now on a machine, is to meet."""
        world = self._world
        birth = Birth(nth, machine_id, order.image, world.time - world.started)
        return fates_of(world.scenario.hosts, birth, seed=world.seed)

    def on_created(self, contract: Contract) -> None:
        """Start what counts from creation: the market's bids against an interruptible."""
        if contract.is_bid:
            self._book(contract, contract.created_at + MARKET_BID_S, partial(self._compare_bids, contract))

    def on_first_running(self, contract: Contract) -> None:
        """Book what counts from the first time it runs."""
        acts = {
            "host-lost": self._lose_host,
            "price-rise": self._raise_price,
            "outbid": self._outbid,
            "ssh-drop": self._drop,
            "host-key-changed": self._change_key,
        }
        for fate in contract.fates:
            begin, end = contract.span(fate)
            if fate.kind in acts:
                self._book(contract, begin, partial(acts[fate.kind], contract, fate))
            elif fate.kind in REFUSED:  # nothing changes in the books, but the SSH listeners have to look again
                self._book(contract, begin, _nothing)
                self._book(contract, begin if fate.seconds is None else end, _nothing)

    def on_destroyed(self, contract: Contract) -> None:
        """Let the row linger, or the instance come back."""
        now = self._world.time
        linger = contract.fate("linger")
        contract.listed_until = now + ((linger.seconds or 30.0) if linger else 0.0)
        again = contract.fate("resurrect")
        if again is not None:
            contract.fates = tuple(fate for fate in contract.fates if fate is not again)
            self._world.agenda.book(now + (again.seconds or 5.0), partial(self._resurrect, contract))

    def _book(self, contract: Contract, at: float, act: Action) -> None:
        self._world.agenda.book(at, act, contract=contract)

    def _lose_host(self, contract: Contract, fate: HostTrouble, at: float) -> None:
        machine = contract.slot.machine_id
        self._world.market.offline.add(machine)
        for guest in self._guests(machine):
            if guest.actual == "running":
                guest.actual, guest.running_since = "unknown", None
                self._book(guest, at + OFFLINE_S, partial(self._go_offline, guest))
        if fate.seconds is not None:
            self._world.agenda.book(at + fate.seconds, partial(self._return_host, machine))

    def _go_offline(self, contract: Contract, _at: float) -> None:
        if contract.actual == "unknown":
            contract.actual = "offline"

    def _return_host(self, machine: int, at: float) -> None:
        self._world.market.offline.discard(machine)
        for guest in self._guests(machine):
            if guest.actual in ("unknown", "offline"):
                guest.actual = "running" if guest.intended == "running" else "exited"
                guest.running_since = at if guest.actual == "running" else None
                guest.boots += 1
        self._world.start_queued()

    def _guests(self, machine: int) -> list[Contract]:
        return [contract for contract in self._world.alive() if contract.slot.machine_id == machine]

    def _raise_price(self, contract: Contract, fate: HostTrouble, at: float) -> None:
        if fate.pending:
            self._world.increases[next(self._increase_ids)] = Increase(contract, contract.dph_base * fate.scale, at)
        else:
            contract.dph_base *= fate.scale

    def _outbid(self, contract: Contract, fate: HostTrouble, at: float) -> None:
        self._world.halt(contract, at, outbid=True)
        if fate.seconds is not None:
            self._book(contract, at + fate.seconds, partial(self._priority_back, contract))

    def _priority_back(self, contract: Contract, _at: float) -> None:
        if contract.outbid and self._world.credit > 0:
            self._world.resume(contract)

    def market_bid(self, contract: Contract, at: float) -> float:
        """Return what others bid for the contract's GPUs, USD an hour; it moves every hour."""
        hour = int((at - contract.created_at) // MARKET_BID_S)
        rng = stream(self._world.seed, "bid", contract.slot.machine_id, hour)
        return float(contract.slot.row["min_bid"]) * rng.uniform(0.8, 1.5)

    def _compare_bids(self, contract: Contract, at: float) -> None:
        market = self.market_bid(contract, at)
        if contract.cur == "running" and market > contract.dph_base:
            self._world.halt(contract, at, outbid=True)
        elif market <= contract.dph_base:
            self._priority_back(contract, at)
        self._book(contract, at + MARKET_BID_S, partial(self._compare_bids, contract))

    def _drop(self, contract: Contract, _fate: HostTrouble, _at: float) -> None:
        contract.drops += 1

    def _change_key(self, contract: Contract, _fate: HostTrouble, _at: float) -> None:
        contract.host_key += 1
        contract.drops += 1

    def _resurrect(self, contract: Contract, at: float) -> None:
        contract.destroyed_at = contract.listed_until = None
        contract.actual, contract.running_since = "running", at
        contract.intended = contract.cur = "running"
        contract.boots += 1
        contract.epoch += 1
        self._world.seize(contract)
