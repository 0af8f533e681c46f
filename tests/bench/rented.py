"""A running instance of an emulator, for the tests that work on one."""

import asyncssh
import httpx

from controller.bench.bench import Bench
from controller.bench.ssh import ssh_connector
from controller.bench.work import Target
from controller.emulator import Emulator
from controller.emulator.contracts import Contract
from controller.model.market import Endpoint

KEY = asyncssh.generate_private_key("ssh-ed25519")
ATTACH_S = 45.0


class Rented:
    """A running instance of an emulator, and a bench to work on it."""

    def __init__(self, emulator: Emulator, http: httpx.AsyncClient, contract: Contract) -> None:
        self.emulator = emulator
        self.http = http
        self.contract = contract
        self.progress: list[str] = []

    async def attach(self, _target: Target) -> None:
        """Hand the key to the instance."""
        await self.http.post(f"/api/v0/instances/{self.contract.id}/ssh/", json={"ssh_key": public()})

    @property
    def bench(self) -> Bench:
        """In the emulator's time."""
        return Bench(
            connect=ssh_connector(private_key=KEY),
            clock=self.emulator.world.clock,
            new_id=lambda: "run-1",
            reattach=self.attach,
        )

    def target(self, host_key: str | None = None) -> Target:
        """Direct, then proxy, as a listing shows them."""
        return Target(
            nonce="n0nce",
            instance_id=self.contract.id,
            machine_id=self.contract.slot.machine_id,
            host_key=host_key,
            endpoints=(
                Endpoint(route="direct", host="127.0.0.1", port=self.contract.direct_port),
                Endpoint(route="proxy", host="127.0.0.1", port=self.contract.proxy_port),
            ),
        )

    async def heard(self, text: str) -> None:
        """Wait until the host said something."""
        while not any(text in line for line in self.progress):
            await self.emulator.world.clock.sleep(5)


def public() -> str:
    return KEY.export_public_key().decode().strip()
