"""The emulated service's state: contracts, GPUs, credit, and the passing of time over all of them.

Every look first advances the world to the clock: changes that are due happen in order, and money runs between them at
the rate that held. Called by the routes (orders, looks), host (is my instance alive?) and server (inspection).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import partial
from itertools import count

from controller.emulator.agenda import Agenda
from controller.emulator.chance import stream
from controller.emulator.clock import MARGIN_S, Bell, Clock
from controller.emulator.contracts import SCHEDULING, Contract, Increase, Key, Order, boot_script
from controller.emulator.fates import Fates
from controller.emulator.faults import refusal
from controller.emulator.market import Market, Slot
from controller.emulator.scenario import Scenario

FIRST_CONTRACT = 41_000_000  # or more, by the second of the start: what is started again does not repeat its ids
FIRST_PORT = 20_000  # where no SSH is served, ports are mere numbers
STOP_S = 3.0


class World:
    """One account's view of vast.ai.

    Args:
        seed: names every stream of chance.
        clock: the emulated time.
        market: what is for rent.
        scenario: strictness and troubles.
        credit: USD at the start.
    """

    def __init__(self, *, seed: int, clock: Clock, market: Market, scenario: Scenario, credit: float) -> None:
        self.seed = seed
        self.clock = clock
        self.market = market
        self.scenario = scenario
        self.credit = credit
        self.started = self.time = clock.now()
        self.bell = Bell(clock)  # rung by every change
        self.activity = Bell(clock)  # rung by every change and every call
        self.new_port: Callable[[], int] = count(FIRST_PORT).__next__
        self.contracts: dict[int, Contract] = {}
        self.account_keys: dict[int, Key] = {}
        self.increases: dict[int, Increase] = {}
        self.proving: Counter[int] = Counter()  # machine id: provers at work on it
        self.peak_burn = self.peak_committed = 0.0
        self.total_billed = 0.0
        self.agenda = Agenda()
        self._fates = Fates(self)
        self._next_id = FIRST_CONTRACT + int(self.started) * 100 % 10_000_000
        self._broke = credit <= 0
        if scenario.credit_out_after is not None:
            self.agenda.book(self.started + scenario.credit_out_after, self._lose_credit)

    # -- time and money

    def look(self) -> float:
        """Advance to the clock and return the time."""
        self.advance(self.clock.now())
        return self.time

    def advance(self, now: float) -> None:
        """Let everything happen that is due by then."""
        while (at := min(self.agenda.next_at(), self._broke_at())) <= now:
            due = self.agenda.next_at() <= at
            self._bill(at)
            if due:
                self.agenda.pop()[1](at)
            else:
                self._stop_all(at)
            self._changed()
        self._bill(now)

    def next_event_at(self) -> float:
        """Return the unix time at which something changes next by itself, or infinity."""
        return min(self.agenda.next_at(), self._broke_at())

    async def pause(self, until: float) -> None:
        """Sleep until a unix time, a ring of the bell, or the next event, whichever is first."""
        await self.bell.wait(min(until, self.next_event_at() + MARGIN_S) - self.clock.now())

    def burn_per_hour(self) -> float:
        """Return what everything alive costs now, USD an hour."""
        return sum(contract.burn_per_hour for contract in self.alive())

    def alive(self) -> Iterable[Contract]:
        """Return the contracts that bill, in order of creation."""
        return [contract for contract in self.contracts.values() if contract.destroyed_at is None]

    def _bill(self, until: float) -> None:
        hours = max(0.0, until - self.time) / 3600
        if hours:
            for contract in self.alive():
                cost = contract.burn_per_hour * hours
                contract.billed_usd += cost
                self.total_billed += cost
                self.credit -= cost
        self.time = max(self.time, until)

    def _broke_at(self) -> float:
        burn = self.burn_per_hour()
        return self.time + max(0.0, self.credit) / burn * 3600 if burn and not self._broke else float("inf")

    def _changed(self) -> None:
        alive = self.alive()
        self.peak_burn = max(self.peak_burn, sum(c.burn_per_hour for c in alive))
        self.peak_committed = max(self.peak_committed, sum(c.price_per_hour for c in alive))
        self.bell.ring()
        self.activity.ring()

    # -- orders

    def create(self, slot: Slot, order: Order) -> Contract:
        """Rent a slot that was found free; the caller has validated the order."""
        nth = len(self.contracts) + 1
        self._next_id += 1 + stream(self.seed, "id", nth).randrange(90)
        contract = Contract(
            id=self._next_id,
            nth=nth,
            slot=slot,
            order=order,
            label=order.label,
            created_at=self.time,
            dph_base=float(slot.row["dph_base"]) if order.bid is None else order.bid,
            end_date=float(slot.row["end_date"]),
            fates=self._fates.of(slot.machine_id, order, nth=nth),
            opened_at=self.started,
            keys=[Key(key.id, key.text, self.time) for key in self.account_keys.values()],
            direct_port=self.new_port(),
            proxy_port=self.new_port(),
        )
        self.contracts[contract.id] = contract
        self.market.take(slot)
        self._fates.on_created(contract)
        self.agenda.book(contract.end_date, partial(self._expire, contract), contract=contract)
        if order.stopped:
            self.halt(contract, self.time)
            contract.actual = "created"
        else:
            self._boot(contract)
        self._changed()
        return contract

    def start(self, contract: Contract) -> bool:
        """Start a contract; False if its GPUs are taken and the change is queued.

        Raises:
            Refusal: no credit, or the contract has expired.
        """
        if self.credit <= 0:
            raise refusal("insufficient_credit")
        if self.time >= contract.end_date:
            raise refusal("invalid_args", msg="the contract has expired")
        if contract.intended == "running" and contract.cur == "running":
            return True
        if contract.outbid:
            return False
        contract.intended = "running"
        if not self._startable(contract):
            contract.queued = True
            contract.status_msg = SCHEDULING
            self._changed()
            return False
        self.resume(contract)
        return True

    def stop(self, contract: Contract) -> None:
        """Stop a contract; its GPUs go back to the market and its disk goes on billing."""
        self.halt(contract, self.time)
        self._free_gpus(contract)
        self._changed()

    def reboot(self, contract: Contract, *, recycle: bool) -> None:
        """Restart the container in place; a recycle pulls the image anew and loses the container's files."""
        if contract.intended != "running" or not self._startable(contract):
            return
        contract.container += recycle
        contract.epoch += 1
        contract.running_since = None
        contract.actual = "recycling" if recycle else "rebooting"
        self._boot(contract)
        self._changed()

    def destroy(self, contract: Contract) -> None:
        """End a contract: billing stops, GPUs go back; how long the row lingers is the scenario's choice."""
        contract.destroyed_at = self.time
        self._free_gpus(contract)
        contract.epoch += 1
        contract.queued = contract.outbid = False
        contract.running_since = None
        self._fates.on_destroyed(contract)
        self._changed()

    def reprice(self, contract: Contract, dph_base: float) -> None:
        """Give a contract another GPU price or bid, USD an hour; one that was outbid may run again."""
        contract.dph_base = dph_base
        if contract.outbid and self.credit > 0 and dph_base >= self._fates.market_bid(contract, self.time):
            self.resume(contract)
        self._changed()

    def top_up(self, usd: float) -> None:
        """Pay into the account; what was stopped for want of credit stays stopped."""
        self.credit += usd
        self._broke = self._broke and self.credit <= 0

    # -- parts of orders, also used by fates

    def halt(self, contract: Contract, at: float, *, outbid: bool = False) -> None:
        """Take a contract to stopped: at once in the books, seconds later on the host."""
        contract.epoch += 1
        contract.queued, contract.outbid = False, outbid
        contract.intended = contract.cur = "stopped"
        if contract.actual in ("created", "loading", "running", "rebooting", "recycling"):
            self.agenda.book(at + STOP_S, partial(self._exit, contract), contract=contract, fleeting=True)

    def seize(self, contract: Contract) -> None:
        """Take a contract's GPUs if it does not hold them."""
        if not contract.holds_gpus:
            self.market.take(contract.slot)
            contract.holds_gpus = True

    def _free_gpus(self, contract: Contract) -> None:
        if not contract.holds_gpus:
            return
        contract.holds_gpus = False
        taken = contract.fate("gpu-taken")
        if taken is None or contract.destroyed_at is not None:
            self.give_back(contract, self.time)
        else:
            self.agenda.book(self.time + (taken.seconds or 3600.0), partial(self.give_back, contract))

    def give_back(self, contract: Contract, _at: float) -> None:
        """Return a contract's GPUs to the market, and start whoever waits for them."""
        self.market.release(contract.slot)
        self.start_queued()

    def start_queued(self) -> None:
        """Start the instances whose GPUs have become free, oldest first."""
        for contract in self.alive():
            if contract.queued and self._startable(contract):
                self.resume(contract)

    def _startable(self, contract: Contract) -> bool:
        online = contract.slot.machine_id not in self.market.offline
        return online and (contract.holds_gpus or self.market.free(contract.slot))

    def resume(self, contract: Contract) -> None:
        """Boot a stopped contract whose GPUs can be had."""
        contract.queued = contract.outbid = False
        contract.epoch += 1
        contract.cur = contract.intended = "running"
        self.seize(contract)
        self._boot(contract)
        self._changed()

    def _boot(self, contract: Contract) -> None:
        rng = stream(self.seed, "boot", contract.nth, contract.epoch)
        script = boot_script(contract, at=self.time, rng=rng, median_s=self.scenario.boot_seconds)
        for change in script:
            apply = partial(self._apply, contract, dict(change.fields))
            self.agenda.book(change.at, apply, contract=contract, fleeting=True)

    def _apply(self, contract: Contract, fields: dict[str, str | None], at: float) -> None:
        for name, value in fields.items():
            setattr(contract, name, value)
        if fields.get("actual") == "running":
            contract.running_since = at
            contract.boots += 1
            if contract.first_running_at is None:
                contract.first_running_at = at
                self._fates.on_first_running(contract)

    def _exit(self, contract: Contract, _at: float) -> None:
        contract.actual = "exited"
        contract.running_since = None

    def _expire(self, contract: Contract, at: float) -> None:
        self.halt(contract, at)
        self._free_gpus(contract)

    def _lose_credit(self, at: float) -> None:
        self.credit = min(self.credit, 0.0)
        self._stop_all(at)

    def _stop_all(self, at: float) -> None:
        self._broke = True
        for contract in self.alive():
            self.halt(contract, at)
            self._free_gpus(contract)
            end = partial(self._forfeit, contract)
            self.agenda.book(at + self.scenario.grace_hours * 3600, end, contract=contract)

    def _forfeit(self, contract: Contract, _at: float) -> None:
        if self.credit <= 0:
            self.destroy(contract)
