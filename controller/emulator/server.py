"""The emulator as a whole: a world, its HTTP face, its SSH servers, and what tests and the demo want to know of it.

The command line serves it on a port; tests also use its `app` in process, in virtual time, and `run` in place of SSH.
"""

import asyncio
import contextlib
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import uvicorn
from starlette.applications import Starlette

from controller.emulator.api import Api
from controller.emulator.clock import MARGIN_S, Clock
from controller.emulator.contracts import Contract
from controller.emulator.host import ConnectionLost, Host, Write
from controller.emulator.market import Market
from controller.emulator.scenario import Scenario
from controller.emulator.shell import Shell
from controller.emulator.ssh import SshServers
from controller.emulator.world import World


@dataclass(frozen=True, slots=True)
class Rental:
    """One instance's account: times in unix seconds, money in USD; `destroyed_at` is None while it bills."""

    id: int
    label: str | None
    machine_id: int
    gpu_name: str
    created_at: float
    destroyed_at: float | None
    billed_usd: float


class _Uvicorn(uvicorn.Server):
    """A server that leaves the process's signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Emulator:
    """A vast.ai of one's own.

    Args:
        clock: the emulated time.
        seed: the same seed and the same calls give the same answers; None: what the scenario says.
        market: what is for rent; None: what the scenario says.
        scenario: strictness and troubles.
        credit: USD at the start; None: what the scenario says.
        api_key: the one key that is let in.
        ssh: whether `serve` also serves SSH to the instances.

    Raises:
        ValueError, OSError: the scenario's market cannot be had, see MarketSpec.open.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        seed: int | None = None,
        market: Market | None = None,
        scenario: Scenario | None = None,
        credit: float | None = None,
        api_key: str = "emulator-key",
        ssh: bool = True,
    ) -> None:
        scenario = scenario or Scenario()
        seed = scenario.seed if seed is None else seed
        self.world = World(
            seed=seed,
            clock=clock,
            market=market or scenario.market.open(seed=seed, now=clock.now()),
            scenario=scenario,
            credit=scenario.credit if credit is None else credit,
        )
        self.api_key = api_key
        self._wants_ssh = ssh
        self._ssh: SshServers | None = None
        self._api = Api(self.world, api_key=api_key, listening=self._listening)
        self._hosts: dict[int, Host] = {}
        self._http: tuple[_Uvicorn, asyncio.Task[None]] | None = None
        self.app: Starlette = self._api.app()

    # -- serving

    async def serve(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Serve HTTP, and SSH unless told otherwise; return the URL.

        Raises:
            OSError: the port is taken.
        """
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            listener.close()
            raise
        listener.listen(128)
        if self._wants_ssh:
            self.open_ssh()
        config = uvicorn.Config(
            self.app, log_level="critical", access_log=False, lifespan="off", ws="none", http="h11", loop="none"
        )
        server = _Uvicorn(config)
        self._http = server, asyncio.create_task(server.serve(sockets=[listener]))
        return f"http://{host}:{listener.getsockname()[1]}"

    def open_ssh(self) -> None:
        """Serve SSH to the instances from this event loop; `serve` does so by itself."""
        self._ssh = SshServers(self.world, self.run)
        self._ssh.open()

    async def close(self) -> None:
        """Stop serving and end every command."""
        await self._api.close()
        if self._http is not None:
            server, task = self._http
            server.should_exit = server.force_exit = True
            await task
        if self._ssh is not None:
            await self._ssh.close()
        work = [task for host in self._hosts.values() for task in host.tasks]
        for background in work:
            background.cancel()
        await asyncio.gather(*work, return_exceptions=True)

    async def run(self, instance_id: int, command: str, write_stdout: Write, write_stderr: Write) -> int:
        """Run a command on an instance as SSH would, without SSH; return its exit code.

        Raises:
            ConnectionLost: there is no such running instance, or it stopped or was cut off while the command ran.
        """
        contract = self.world.contracts.get(instance_id)
        if contract is None:
            raise ConnectionLost("no such instance")
        host = self._hosts.get(instance_id)
        if host is None:
            host = self._hosts[instance_id] = Host(self.world, contract)
        return await Shell(host, write_stdout, write_stderr).run(command)

    def _listening(self, contract: Contract) -> bool:
        return self._ssh is None or self._ssh.listening(contract)

    # -- looking in from outside

    @property
    def calls(self) -> Counter[str]:
        """How often each endpoint was called, e.g. "PUT /api/v0/asks/{id}/", refused calls included."""
        return self._api.calls

    @property
    def credit(self) -> float:
        """USD left."""
        self.world.look()
        return self.world.credit

    @property
    def total_billed(self) -> float:
        """USD billed since the start."""
        self.world.look()
        return self.world.total_billed

    @property
    def peak_spend_per_hour(self) -> float:
        """The highest rate at which money ran at any moment, USD an hour."""
        self.world.look()
        return self.world.peak_burn

    @property
    def peak_committed_per_hour(self) -> float:
        """The same, as if every instance not yet destroyed had been running."""
        self.world.look()
        return self.world.peak_committed

    @property
    def alive(self) -> tuple[int, ...]:
        """The ids of instances that are not destroyed, oldest first."""
        self.world.look()
        return tuple(contract.id for contract in self.world.alive())

    def rentals(self) -> tuple[Rental, ...]:
        """Return every instance there ever was, oldest first."""
        self.world.look()
        return tuple(
            Rental(
                id=contract.id,
                label=contract.label,
                machine_id=contract.slot.machine_id,
                gpu_name=contract.slot.row["gpu_name"],
                created_at=contract.created_at,
                destroyed_at=contract.destroyed_at,
                billed_usd=contract.billed_usd,
            )
            for contract in self.world.contracts.values()
        )

    def top_up(self, usd: float) -> None:
        """Pay into the account."""
        self.world.look()
        self.world.top_up(usd)

    async def wait_for(self, predicate: Callable[[], bool]) -> None:
        """Return once the predicate holds; it is asked again at every call and every change of state."""
        self.world.look()
        while not predicate():
            await self.world.activity.wait(self.world.next_event_at() + MARGIN_S - self.world.clock.now())
            self.world.look()
