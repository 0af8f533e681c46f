"""Everything at once, drawn from a seed: fleets that change, hosts and calls that fail, restarts, other people's hands.

The promises are held against the emulator's own books, at every create and destroy and after every pass.
VASTFLEET_TEST_SEEDS asks for more seeds.
"""

import asyncio
import contextlib
import os
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from controller.emulator.contracts import Contract, Order
from controller.emulator.faults import CATALOGUE
from controller.emulator.market import Slot
from controller.emulator.world import World
from controller.ledger.sqlite import Ledger
from controller.loop.pace import Pace
from controller.model import labels
from controller.model.fleet import Fleet
from controller.model.manifest import load_text
from controller.model.money import usd
from controller.model.reasons import Reason
from controller.model.status import FleetStatus
from controller.runtime.embedded import Running
from tests.journeys.stage import ORIGIN, Stage, stage

HOUR = 3600.0
CALM, TROUBLED, QUIET, WATCHED = 200.0, 16 * HOUR, 12 * HOUR, 4 * HOUR
PATIENCE = 1.5 * HOUR  # longer than any spell of failing calls: until then a leak may not have been seen
CREATES = 150  # more would be churn
MODELS = ("RTX 4090", "RTX 3090", "RTX 5090")
LOOK_ALIKES = (None, "", "vf/tests", "vf/tests/blue/abc", "vf/tests2/blue/x", "VF/tests/blue/x", "vf/tests/blue/😀")
TRUTHFUL = {Reason.BUDGET_EXHAUSTED, Reason.FLOOR_OUT_OF_REACH, Reason.NO_MATCHING_OFFER, Reason.SUSPENDED}
LIST = "GET /api/v1/instances/"
HOURLY = {"GET /api/v0/users/current/", "GET /api/v0/instances/pending-price-increases/"}

FLEET = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: {name}}}
spec:
  target: {{{target}}}
  budgetPerHour: {budget}
  shapes: [{shapes}]
  require: {{reliability: 0, verified: false, ramGiB: 0, diskGiB: 50, remainingHours: 0}}
  instance: {{image: "example/prover:{image}", {production}}}
  benchmark: {{command: json-bench, format: json}}
  disruption: {{maxSurge: {surge}, maxUnavailable: {unavailable}, minLifetimeMinutes: 0}}
  suspend: {suspend}
"""
PRODUCTION = 'start: "nohup cuzk-daemon > /root/daemon.log 2>&1 &", stop: "pkill cuzk-daemon || true", drainSeconds: 30'


def manifest(rng: random.Random, name: str) -> Fleet:
    """A fleet drawn from chance."""
    shapes, floor = [], 1
    for gpu in rng.sample(MODELS, rng.randint(1, 3)):
        least = rng.choice((0, 0, 1))
        floor += least
        most = f", maxInstances: {rng.randint(1, 6)}" if rng.random() < 0.3 else ""
        price = f", maxPricePerHour: {rng.choice((0.4, 0.6, 0.9))}" if rng.random() < 0.4 else ""
        shapes.append(f"{{gpu: {gpu}, minRate: {rng.choice((5, 20, 40))}, minInstances: {least}{most}{price}}}")
    values: dict[str, object] = {
        "target": rng.choice((f"instances: {rng.randint(floor, 6)}", f"rate: {rng.randint(40, 250)}")),
        "budget": rng.choice((0.6, 1.2, 2.4, 4.0)),
        "shapes": ", ".join(shapes),
        "image": rng.choice(("1.4", "1.4", "1.5")),
        "production": rng.choice(("", PRODUCTION)),
        "surge": rng.randint(0, 2),
        "unavailable": rng.randint(1, 2),
        "suspend": str(rng.random() < 0.1).lower(),
    }
    return load_text(FLEET.format(name=name, **values), name="chaos.yaml")[0].fleet


def troubles(rng: random.Random) -> Iterator[dict[str, object]]:
    """Host troubles of every kind, and spells of every answer that vast.ai is known to give."""
    chance, later = partial(rng.uniform, 0.0, 0.12), partial(rng.uniform, 0, 4 * HOUR)
    for kind in (
        "slow-host",
        "stuck-loading",
        "bad-image",
        "gpu-fault",
        "oci-fault",
        "linger",
        "resurrect",
        "gpu-taken",
    ):
        yield {"kind": kind, "probability": chance(), "seconds": rng.uniform(20, 600)}
    for kind in ("host-lost", "price-rise", "ssh-drop", "host-key-changed", "slow-machine", "direct-refused"):
        yield {"kind": kind, "probability": chance(), "after": later()}
        yield {"kind": kind, "probability": chance(), "after": later(), "seconds": rng.uniform(60, 3000)}
    yield {"kind": "price-rise", "probability": chance(), "after": later(), "pending": False}
    yield {"kind": "unreadable", "probability": chance(), "seconds": rng.uniform(10, 150)}
    yield {"kind": "credit-out", "after": rng.uniform(2, 14) * HOUR}
    yield {"kind": "error", "on": "list", "between": (CALM, TROUBLED), "probability": 0.01, "like": "empty_list"}
    for on in ("create", "create", "destroy", "start", "get"):
        begin = rng.uniform(CALM, TROUBLED)
        lost = {"like": rng.choice(("bad_gateway", "html_200", "empty_200"))} if rng.random() < 0.5 else {}
        yield {"kind": "lost-answer", "on": on, "between": (begin, begin + 2 * HOUR), "probability": 0.3, **lost}
    for _ in range(14):
        begin = rng.uniform(CALM, TROUBLED)
        yield {
            "kind": "error",
            "on": rng.choice(("any", "search", "create", "create", "list", "get", "destroy", "start", "user")),
            "between": (begin, min(TROUBLED, begin + rng.uniform(60, 1800))),
            "probability": rng.choice((0.1, 0.5, 1.0)),
            "like": rng.choice(sorted(CATALOGUE.keys() - {"empty_list"})),  # told at length, it is the truth
        }


@dataclass
class Chaos:
    """Some fleets in trouble, and the books that they are held against."""

    here: Stage
    rng: random.Random
    fleets: dict[str, Fleet] = field(default_factory=dict)
    foreign: dict[int, str | None] = field(default_factory=dict)  # by id: its label
    relabelled: set[int] = field(default_factory=set)
    unknown_since: dict[int, float] = field(default_factory=dict)  # by id: what bills and the ledger does not know
    wrongs: list[str] = field(default_factory=list)
    made: Running | None = None

    @property
    def world(self) -> World:
        return self.here.emulator.world

    def wrong(self, text: str) -> None:
        self.wrongs.append(f"{(self.world.clock.now() - ORIGIN) / HOUR:.3f} h: {text}")

    def watch(self) -> None:
        """Look at every create and destroy as it is carried out."""
        create, destroy = self.world.create, self.world.destroy

        def created(slot: Slot, order: Order) -> Contract:
            contract = create(slot, order)
            self.within_budget(order.label, contract)
            return contract

        def destroyed(contract: Contract) -> None:
            if contract.id in self.foreign or labels.read(contract.label, owner="tests") is None:
                self.wrong(f"destroyed {contract.id}, labelled {contract.label!r}: not ours")
            destroy(contract)

        self.world.create, self.world.destroy = created, destroyed  # type: ignore[method-assign]

    def within_budget(self, label: str | None, newest: Contract) -> None:
        """What bills, at the prices agreed on: what hosts raised since, and what came up elsewhere, is their doing."""
        mark = labels.read(label, owner="tests")
        if mark is None or mark.fleet not in self.fleets or self.made is None:
            self.wrong(f"{newest.id} was rented under {label!r}, which nobody asks for")
            return
        budget, total = self.fleets[mark.fleet].spec.budget, 0.0
        for contract in self.world.alive():
            known = labels.read(contract.label, owner="tests")
            record = self.made.ledger.instance(known.nonce) if known is not None else None
            if known is None or known.fleet != mark.fleet or (record is not None and not record.billable):
                continue
            elsewhere = record is not None and record.machine_id != contract.slot.machine_id  # two offers had one id
            agreed = float(contract.slot.row["dph_base"]) + contract.storage_per_hour
            total += usd(record.price) if record is not None and elsewhere else agreed
        if total > usd(budget) + 1e-6:
            self.wrong(f"{mark.fleet}: ${total:.3f}/h are committed, ${usd(budget):.3f}/h are the budget")

    def hold(self, made: Running, _: tuple[FleetStatus, ...]) -> bool:
        """Lay the ledger and the emulator's books against each other after a pass; never satisfied."""
        records, now = made.ledger.instances(), self.world.clock.now()
        known = {i.instance_id for i in records} | self.relabelled
        unclear = {i.nonce for i in records if i.instance_id is None}
        asked = {*self.fleets, *made.ledger.deleting()}
        marks = {c.id: labels.read(c.label, owner="tests") for c in self.world.alive() if c.id not in known}
        leaks = {id_ for id_, mark in marks.items() if mark and mark.fleet in asked and mark.nonce not in unclear}
        self.unknown_since = {id_: self.unknown_since.get(id_, now) for id_ in leaks}
        for id_, since in self.unknown_since.items():
            if now - since > PATIENCE:
                self.wrong(f"{id_} bills, and the ledger does not know")
        for id_, label in self.foreign.items():
            if self.world.contracts[id_].destroyed_at is not None or self.world.contracts[id_].label != label:
                self.wrong(f"somebody else's {id_} was touched")
        return bool(self.wrongs)

    async def live(self, seconds: float) -> None:
        """Let the controller run for a while, then end it wherever it is."""
        async with self.here.controller() as self.made:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self.made.loop.keep(self.wanted, until=partial(self.hold, self.made))

    def wanted(self) -> tuple[Fleet, ...]:
        return tuple(self.fleets.values())

    def meddle(self) -> None:
        """Somebody else does something to one of our instances."""
        ours = [c for c in self.world.alive() if labels.read(c.label, owner="tests") is not None]
        if not ours:
            return
        contract = self.rng.choice(ours)
        match self.rng.choice(("stop", "stop", "destroy", "reboot", "label")):
            case "stop":
                self.world.stop(contract)
            case "destroy":
                self.world.destroy(contract)
            case "reboot":
                self.world.reboot(contract, recycle=self.rng.random() < 0.5)
            case "label":
                self.relabelled.add(contract.id)
                contract.label = self.rng.choice(("mine now", None, f"{contract.label}x", self.rng.choice(ours).label))

    def change(self) -> None:
        """A manifest changes, is taken away, comes back, or its fleet is to be destroyed."""
        name, roll = self.rng.choice(("blue", "green", "red")), self.rng.random()
        if roll < 0.7:
            self.fleets[name] = manifest(self.rng, name)
            return
        self.fleets.pop(name, None)
        if roll < 0.85:
            with contextlib.closing(Ledger.open(self.here.ledger_path)) as ledger:
                ledger.set_deleting(name, deleting=True)

    async def trouble(self) -> None:
        """Live through the troubles."""
        end = ORIGIN + TROUBLED
        while self.world.clock.now() < end and not self.wrongs:
            await self.live(min(self.rng.choice((60, 600, 2400, 7200)), end - self.world.clock.now()))
            roll = self.rng.random()
            if roll < 0.3:
                self.meddle()
            elif roll < 0.6:
                self.change()
            elif roll < 0.66:
                for file in self.here.ledger_path.parent.glob("ledger.db*"):
                    file.unlink()
            if self.here.emulator.credit <= 0 and roll < 0.5:
                self.here.emulator.top_up(300)

    async def settle(self) -> None:
        """The troubles end. In the last hours every fleet is ready, or says truthfully why not, and all is silent."""
        self.here.emulator.top_up(1000)
        self.world.scenario = self.world.scenario.model_copy(update={"troubles": ()})
        for contract in self.world.alive():
            contract.fates = ()
        await self.live(QUIET)
        passes: list[tuple[FleetStatus, ...]] = []
        async with self.here.controller() as self.made:
            made = self.made
            number, calls = made.ledger.newest_event(), Counter(self.here.emulator.calls)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(WATCHED):
                    await made.loop.keep(self.wanted, until=lambda said: bool(passes.append(said)))  # type: ignore[func-returns-value]
            news = [event for _, event in made.ledger.news(after=number)]
            self.books_agree(made.ledger)
            tried = {i.fleet for i in made.ledger.instances() if self.world.time - i.created_at < HOUR}
        for (about, reason), times in Counter((event.about, event.reason) for event in news).items():
            if times > WATCHED / HOUR:
                self.wrong(f"{about} told of {reason} {times} times")
        for said in (held := [said for said in passes[-1] if said.fleet in self.fleets]):
            ready = said.condition("Ready")
            new = ready is not None and self.world.time - ready.last_transition_time < HOUR  # a re-check may fall due
            trying = said.fleet in tried  # a floor that few machines reach is filled by trying many
            if ready is None or (ready.status != "True" and ready.reason not in TRUTHFUL and not new and not trying):
                self.wrong(f"{said.fleet} is not ready: {ready}")
        if all(said.ready for said in held) and not news:
            most = Counter({LIST: len(passes)} | dict.fromkeys(HOURLY, 1 + int(WATCHED / HOUR)))
            if many := self.here.emulator.calls - calls - most:
                self.wrong(f"{len(passes)} passes over settled fleets made {dict(many)} too many")

    def books_agree(self, ledger: Ledger) -> None:
        """In the end the ledger counts what bills, and nothing else."""
        alive = {contract.id for contract in self.world.alive()}
        for record in ledger.instances(gone=True):
            old = self.world.time - record.phase_since > HOUR
            if record.billable and record.instance_id not in alive and old:
                self.wrong(f"{record.instance_id} is {record.phase} in the ledger, and does not exist")
            if not record.billable and record.instance_id in alive - self.relabelled:
                self.wrong(f"{record.instance_id} is {record.reason} in the ledger, and bills")


@pytest.mark.looptime
@pytest.mark.parametrize("seed", range(int(os.environ.get("VASTFLEET_TEST_SEEDS", "1"))))
async def test_whatever_happens_at_once_no_promise_is_broken(tmp_path, caplog, seed):
    """Whatever happens at once, nothing leaks, no budget is passed, nobody else's is touched, and it settles."""
    rng = random.Random(f"chaos/{seed}")
    market = {"offers": 220, "models": list(MODELS), "nasty": 0.15}
    pace = Pace(active=60, steady=600, retry=600)
    here = stage(tmp_path, seed=seed, pace=pace, market=market, troubles=list(troubles(rng)), credit=300)
    chaos = Chaos(here, rng, fleets={name: manifest(rng, name) for name in ("blue", "green", "red")})
    chaos.foreign = dict(zip(await here.rent_foreign(*LOOK_ALIKES), LOOK_ALIKES, strict=True))
    chaos.watch()
    await chaos.trouble()
    await chaos.settle()
    assert chaos.wrongs == []
    assert here.creates <= CREATES
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
    await here.emulator.close()
