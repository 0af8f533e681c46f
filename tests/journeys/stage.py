"""A stage for whole stories: the real loop, client, ledger, judge and bench against the emulator.

All in one process and in virtual time: HTTP goes through ASGI and commands through the emulator's own shell, so that
nothing depends on sockets or on the machine's speed.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from controller.bench.work import Target
from controller.emulator.clock import LoopClock
from controller.emulator.host import ConnectionLost
from controller.emulator.scenario import Scenario
from controller.emulator.server import Emulator
from controller.ledger.sqlite import Ledger
from controller.loop.pace import Pace
from controller.loop.passes import Loop
from controller.model.faults import Retry
from controller.model.fleet import Fleet
from controller.model.manifest import load_text
from controller.model.reasons import Reason
from controller.runtime.clock import Clock
from controller.runtime.embedded import Running, running
from controller.runtime.settings import Settings

ORIGIN = 1_800_000_000.0
KEY = "SECRET-api-key-marker"

FLEET = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: {name}}}
spec:
  target: {{{target}}}
  budgetPerHour: {budget}
  shapes:
  - {{gpu: RTX 4090, minRate: {min_rate}}}
  require: {{reliability: 0, verified: false, ramGiB: {ram}, diskGiB: {disk}, remainingHours: 0}}
  instance:
    image: {image}
    env: {{TOKEN: SECRET-env-marker}}
  benchmark: {benchmark}
"""
CUZK = """
    prepare: {command: fetch-params, doneWhen: parameters ready}
    command: cuzk-bench batch --count 12 -c $CONCURRENCY --warmup $WARMUP
    memory: {reserveGiB: 100, perProofGiB: 6}
"""
QUICK = "{command: json-bench, format: json}"


def fleet(
    *,
    name: str = "provers",
    target: str = "instances: 4",
    budget: float = 4.0,
    min_rate: float = 40,
    ram: int = 128,
    disk: int = 50,
    image: str = "example/prover:1.4",
    benchmark: str = QUICK,
) -> Fleet:
    values = {"name": name, "target": target, "budget": budget, "min_rate": min_rate, "ram": ram, "disk": disk}
    text = FLEET.format(**values, image=image, benchmark=benchmark)
    return load_text(text, name="test.yaml")[0].fleet


class VirtualClock(Clock):
    """The controller's clock, on the event loop's pretended time."""

    def __init__(self) -> None:
        super().__init__(wall=lambda: ORIGIN + asyncio.get_running_loop().time())


@dataclass
class InProcess:
    """A way to run commands on the emulator's instances without SSH."""

    emulator: Emulator
    instance_id: int
    host_key: str | None = None
    route: str = "direct"

    async def run(self, command: str, *, out: Callable[[str], None], err: Callable[[str], None]) -> int:
        try:
            return await self.emulator.run(self.instance_id, command, out, err)
        except ConnectionLost as lost:
            raise Retry(Reason.CONNECTION_LOST, str(lost)) from lost

    async def close(self) -> None:
        return None


@dataclass
class Stage:
    """An emulated vast.ai and a controller that may be stopped and started again on the same ledger."""

    emulator: Emulator
    ledger_path: Path
    seed: int = 0
    pace: Pace = field(default_factory=Pace)
    owner: str = "tests"

    async def call(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """A call that somebody else makes with the same key, such as through the web console."""
        transport = httpx.ASGITransport(app=self.emulator.app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            answer = await client.request(method, path, json=body, headers={"Authorization": f"Bearer {KEY}"})
        answer.raise_for_status()
        said: dict[str, Any] = answer.json()
        return said

    async def rent_foreign(self, *labels: str | None) -> list[int]:
        """Rent the dearest offers as somebody else would; the new instances' ids."""
        body = {"order": [["dph_total", "desc"]], "num_gpus": {"eq": 1}, "rentable": {"eq": True}}
        rented = []
        for label in labels:
            offers = (await self.call("POST", "/api/v0/bundles/", body))["offers"]
            wanted = {"client_id": "me", "image": "other/image", "disk": 10, "label": label, "runtype": "ssh"}
            made = await self.call("PUT", f"/api/v0/asks/{offers[0]['id']}/", wanted)
            rented.append(int(made["new_contract"]))
            await self.emulator.world.clock.sleep(10)
        return rented

    @property
    def creates(self) -> int:
        """How often something was asked to be rented."""
        return self.emulator.calls["PUT /api/v0/asks/{id}/"]

    @asynccontextmanager
    async def controller(
        self,
        *,
        open_ledger: Callable[[Path], Ledger] = Ledger.open,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> AsyncIterator[Running]:
        clock = VirtualClock()
        rng = random.Random(f"{self.seed}/{clock.now()}")
        settings = Settings(
            api_key=KEY,
            url="http://127.0.0.1",
            owner=self.owner,
            ledger=self.ledger_path,
            ssh_key=self.ledger_path.with_name("key"),
            clock=clock,
            pace=self.pace,
        )

        async def connect(target: Target) -> InProcess:
            if target.instance_id not in self.emulator.alive:
                raise Retry(Reason.SSH_UNREACHABLE, "no such instance")
            return InProcess(self.emulator, target.instance_id)

        async with running(
            settings,
            environ={},
            transport=transport or httpx.ASGITransport(app=self.emulator.app),
            connect=connect,
            open_ledger=open_ledger,
            new_id=lambda: f"{rng.getrandbits(64):016x}",
        ) as made:
            yield made


def stage(tmp_path: Path, *, seed: int = 1, pace: Pace | None = None, **scenario: object) -> Stage:
    """A stage with a market of RTX 4090s, unless the scenario says otherwise."""
    spec = Scenario.model_validate({"seed": seed, "market": {"offers": 200, "models": ["RTX 4090"]}, **scenario})
    emulator = Emulator(seed=seed, clock=LoopClock(ORIGIN), scenario=spec, api_key=KEY, ssh=False)
    return Stage(emulator=emulator, ledger_path=tmp_path / "ledger.db", seed=seed, pace=pace or Pace())


async def converge(loop: Loop, *fleets: Fleet, hours: float = 6) -> None:
    """Pass until every fleet is ready; TimeoutError after so many hours of virtual time."""
    async with asyncio.timeout(hours * 3600):
        await loop.keep(lambda: fleets, until=lambda statuses: all(said.ready for said in statuses))
