"""What the emulator's tests share: a small market, an emulator in virtual time, and a client of its API in process."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from controller.emulator import Emulator, LoopClock, Scenario

NOON = 1_800_014_400.0  # 12:00 UTC of some day
KEY = "emulator-key"


class Api:
    """An account's client: answers as (status, body), no retries, no pacing."""

    def __init__(self, emulator: Emulator, key: str = KEY) -> None:
        self.emulator = emulator
        self.http = httpx.AsyncClient(
            transport=httpx.ASGITransport(emulator.app),
            base_url="http://vast",
            headers={"Authorization": f"Bearer {key}"} if key else {},
        )

    async def __call__(self, method: str, path: str, body: Any = None, **query: Any) -> tuple[int, Any]:
        """Make one call; return its status and its JSON or text."""
        answer = await self.http.request(method, f"/api/{path}", json=body, params=query)
        kind = answer.headers["content-type"]
        return answer.status_code, answer.json() if "json" in kind else answer.text

    async def offers(self, **filters: Any) -> list[dict[str, Any]]:
        """Search, cheapest first."""
        status, body = await self("POST", "v0/bundles/", {"order": [["dph_total", "asc"]], **filters})
        assert status == 200, body
        offers: list[dict[str, Any]] = body["offers"]
        return offers

    async def rent(self, offer: dict[str, Any] | None = None, **order: Any) -> int:
        """Rent an offer, the cheapest if none is named, and return the instance's id."""
        offer = offer or (await self.offers())[0]
        wish = {"client_id": "me", "image": "example/prover:1", "disk": 20, "runtype": "ssh_direc ssh_proxy"} | order
        status, body = await self("PUT", f"v0/asks/{offer['id']}/", wish)
        assert status == 200, body
        number: int = body["new_contract"]
        return number

    async def row(self, number: int) -> Any:
        """Read one instance; None if it is gone."""
        return (await self("GET", f"v0/instances/{number}/"))[1]["instances"]

    async def running(self, number: int) -> dict[str, Any]:
        """Wait until an instance runs and return its row."""
        contract = self.emulator.world.contracts[number]
        await self.emulator.wait_for(lambda: contract.actual == "running")
        row: dict[str, Any] = await self.row(number)
        return row


Make = Callable[..., Awaitable[Api]]


class Box:
    """A running instance's shell: a text's exit code, what it printed, and what it printed on stderr."""

    def __init__(self, api: Api, number: int) -> None:
        self.api, self.number = api, number
        self.contract = api.emulator.world.contracts[number]

    async def __call__(self, text: str) -> tuple[int, str, str]:
        """Run a text to its end."""
        out: list[str] = []
        err: list[str] = []
        code = await self.api.emulator.run(self.number, text, out.append, err.append)
        return code, "".join(out), "".join(err)

    async def out(self, text: str) -> str:
        """Run a text that must end well; return what it printed."""
        code, out, err = await self(text)
        assert code == 0, err
        return out

    async def rate(self) -> float:
        """Measure for a second; the noise of the nth measurement is the same in each emulator of one seed."""
        return float(json.loads(await self.out("json-bench --seconds 1"))["rate"])

    async def pass_time(self, seconds: float) -> None:
        """Let time pass."""
        await self.api.emulator.world.clock.sleep(seconds)

    async def until(self, at: float) -> None:
        """Let time pass until so many seconds after the emulator's start."""
        world = self.api.emulator.world
        await self.pass_time(world.started + at - world.clock.now())


Rent = Callable[..., Awaitable[Box]]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Build an emulator in virtual time from a scenario's fields, without rate limits unless asked for."""
    built: list[Api] = []

    async def build(*, seed: int = 7, key: str = KEY, ssh: bool = False, **fields: Any) -> Api:
        scenario = Scenario.model_validate({"limits": {"enabled": False}, "market": {"offers": 120}, **fields})
        emulator = Emulator(seed=seed, clock=LoopClock(NOON), scenario=scenario, ssh=ssh)
        built.append(Api(emulator, key))
        return built[-1]

    yield build
    for api in built:
        await api.http.aclose()
        await api.emulator.close()


@pytest.fixture
def rent(make: Make) -> Rent:
    """Rent the cheapest offer of a new emulator that has a scenario's fields, and wait until it runs."""

    async def build(*, image: str = "example/prover:1", **fields: Any) -> Box:
        api = await make(**{"prover": {"baseGib": 0, "perProofGib": 0}, **fields})
        number = await api.rent(image=image, disk=60)
        await api.running(number)
        return Box(api, number)

    return build
