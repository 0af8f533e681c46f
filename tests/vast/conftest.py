"""A client in virtual time whose network is a list of answers, and rows of vast.ai's shape to put in them."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from controller.vast.client import VastClient

KEY = "key-that-must-not-leak-71c0ffee"
EPOCH = 1_796_000_000.0


class LoopClock:
    """The event loop's own time, which looptime lets fly."""

    def now(self) -> float:
        """Unix seconds."""
        return EPOCH + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Sleep in the loop's time."""
        await asyncio.sleep(seconds)  # noqa: TID251 - this is the clock


@dataclass
class Played:
    """A client, and what it sent and when."""

    client: VastClient
    requests: list[httpx.Request] = field(default_factory=list)
    times: list[float] = field(default_factory=list)

    def bodies(self) -> list[Any]:
        """What each request said."""
        return [json.loads(request.content) for request in self.requests]

    def waits(self) -> list[float]:
        """When each request came, in seconds since the first."""
        return [round(at - self.times[0], 1) for at in self.times]


Answers = Callable[..., Played]


@pytest.fixture
def clock() -> LoopClock:
    return LoopClock()


@pytest.fixture
async def play(clock: LoopClock) -> AsyncIterator[Answers]:
    """Make a client that is given answers in turn, the last for ever: (status, body[, headers]) or an exception."""
    clients: list[VastClient] = []

    def start(*answers: Any) -> Played:
        left = list(answers)

        def answer(request: httpx.Request) -> httpx.Response:
            played.requests.append(request)
            played.times.append(clock.now())
            now = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(now, Exception):
                raise now
            status, body, *headers = now
            content = body if isinstance(body, str | bytes) else json.dumps(body)
            return httpx.Response(status, content=content, headers=headers[0] if headers else None)

        played = Played(VastClient(api_key=KEY, clock=clock, transport=httpx.MockTransport(answer)))
        clients.append(played.client)
        return played

    yield start
    for client in clients:
        await client.close()


@pytest.fixture
def offer_row() -> dict[str, Any]:
    """An offer of half a machine of two GPUs."""
    return {
        "id": 7100001,
        "ask_contract_id": 7100001,
        "machine_id": 4201,
        "host_id": 881,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "gpu_frac": 0.5,
        "gpu_ram": 24564,
        "cpu_cores": 64,
        "cpu_cores_effective": 32.0,
        "cpu_ram": 262144,
        "disk_space": 900.5,
        "inet_down": 812.4,
        "inet_up": 640.0,
        "inet_down_cost": 0.004,
        "reliability": 0.98,
        "reliability2": 0.991,
        "verification": "verified",
        "geolocation": "Oslo, NO",
        "cuda_max_good": 12.8,
        "direct_port_count": 120,
        "duration": 864000.5,
        "dph_base": 0.36,
        "dph_total": 0.40,
        "storage_cost": 0.1152,
        "rentable": True,
        "rented": False,
    }


@pytest.fixture
def instance_row() -> dict[str, Any]:
    """A running instance, reachable both ways."""
    return {
        "id": 9000017,
        "label": "vf/acme/provers/01\n",
        "machine_id": 4201,
        "host_id": 881,
        "gpu_name": "RTX 4090",
        "num_gpus": 1,
        "dph_total": 0.41,
        "actual_status": "running",
        "intended_status": "running",
        "cur_state": "running",
        "status_msg": "success, running example/prover_1.4/ssh\n",
        "is_bid": False,
        "country_code": None,
        "geolocation": "California, United States",
        "start_date": 1795990000.25,
        "end_date": 1800000000,
        "cpu_cores": 64,
        "cpu_cores_effective": 32.0,
        "cpu_ram": 262144,
        "mem_limit": 137.438953472,
        "disk_space": 250,
        "image_uuid": "example/prover:1.4",
        "image_runtype": "ssh ssh_direc ssh_proxy",
        "public_ipaddr": "198.51.100.7 \n",
        "ports": {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": "30022"}], "8000/tcp": []},
        "ssh_host": "ssh4.vast.ai",
        "ssh_port": 10017,
    }
