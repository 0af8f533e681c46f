"""SSH to the instances: a server each, on loopback ports of its own, that runs the emulated shell.

One task keeps the listeners as the world has them: up while an instance runs, down when it stops, a new host key when a
scenario says so. Started by Emulator.open_ssh; without it ports are numbers and Emulator.run is the way in.
"""

import asyncio
import math
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial

import asyncssh

from controller.emulator.contracts import Contract
from controller.emulator.host import ConnectionLost, Write
from controller.emulator.world import World

BANNER = (
    "Welcome to vast.ai. If authentication fails, try again after a few seconds, and double check your ssh key.\n"
    "Have fun!\n"
)
LOOPBACK = "127.0.0.1"

Run = Callable[[int, str, Write, Write], Awaitable[int]]


@dataclass(slots=True, eq=False)
class _Served:
    """What is up for one instance: its generations when it came up, and its listeners by port."""

    boots: int
    drops: int
    host_key: int
    key: asyncssh.SSHKey
    listeners: dict[int, asyncssh.SSHAcceptor] = field(default_factory=dict)
    connections: set[asyncssh.SSHServerConnection] = field(default_factory=set)


class _Guard(asyncssh.SSHServer):
    """Lets root in with a key the instance knows by now."""

    def __init__(self, world: World, contract: Contract, served: _Served) -> None:
        self._world, self._contract, self._served = world, contract, served
        self._connection: asyncssh.SSHServerConnection | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn
        self._served.connections.add(conn)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        if self._connection is not None:
            self._served.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:  # noqa: ARG002
        if self._connection is not None:
            self._connection.send_auth_banner(BANNER)
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        now = self._world.look()
        if username != "root" or self._contract.trouble("key-refused", now):
            return False
        offered = key.export_public_key().split()[1].decode()
        return any(known.since <= now and known.text.split()[1:2] == [offered] for known in self._contract.keys)


class SshServers:
    """The listeners of all running instances.

    Args:
        world: whose instances.
        run: runs a command on one, see Emulator.run.
    """

    def __init__(self, world: World, run: Run) -> None:
        self._world, self._run = world, run
        self._reserved: dict[int, socket.socket] = {}
        self._served: dict[int, _Served] = {}
        self._keys: dict[tuple[int, int], asyncssh.SSHKey] = {}
        self._task: asyncio.Task[None] | None = None
        self._commands: set[asyncio.Task[object]] = set()
        self._closing = False

    def open(self) -> None:
        """Start keeping listeners; instances created from now on get ports of this host."""
        self._world.new_port = self._reserve
        self._task = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Close every listener and connection."""
        if self._task is not None:
            self._closing = True  # not cancelled: a listener half made would be lost
            self._world.bell.ring()
            await self._task
        for number in list(self._served):
            await self._take_down(number)
        for command in list(self._commands):
            command.cancel()
        await asyncio.gather(*self._commands, return_exceptions=True)
        for reserved in self._reserved.values():
            reserved.close()
        self._reserved.clear()

    def listening(self, contract: Contract) -> bool:
        """Tell whether an instance's server is up."""
        return contract.id in self._served

    def _reserve(self, port: int = 0) -> int:
        """Bind a port without listening, so that connections are refused and nobody else gets it."""
        reserved = socket.socket()
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.bind((LOOPBACK, port))
        port = reserved.getsockname()[1]
        self._reserved[port] = reserved
        return port

    async def _keep(self) -> None:
        while not self._closing:
            self._world.look()
            rings = self._world.bell.rings
            for contract in list(self._world.contracts.values()):
                await self._settle(contract)
            if rings == self._world.bell.rings:
                await self._world.pause(math.inf)

    async def _settle(self, contract: Contract) -> None:
        served = self._served.get(contract.id)
        up = contract.actual == "running" and contract.destroyed_at is None
        generation = (contract.boots, contract.drops, contract.host_key)
        if served and (not up or generation != (served.boots, served.drops, served.host_key)):
            await self._take_down(contract.id)
            served = None
        if not up:
            return
        if served is None:
            served = _Served(*generation, key=self._host_key(contract))
        for port, refused in ((contract.direct_port, "direct-refused"), (contract.proxy_port, "proxy-refused")):
            wanted = contract.trouble(refused, self._world.time) is None
            if wanted and port not in served.listeners:
                served.listeners[port] = await self._listen(contract, served, port)
            elif not wanted and port in served.listeners:
                await self._unlisten(served, port)
        if self._served.get(contract.id) is not served:
            self._served[contract.id] = served
            self._world.activity.ring()  # the row shows its ports from now on

    def _host_key(self, contract: Contract) -> asyncssh.SSHKey:
        key = self._keys.get((contract.id, contract.host_key))
        if key is None:
            key = self._keys[contract.id, contract.host_key] = asyncssh.generate_private_key("ssh-ed25519")
        return key

    async def _listen(self, contract: Contract, served: _Served, port: int) -> asyncssh.SSHAcceptor:
        return await asyncssh.listen(
            sock=self._reserved.pop(port),
            server_factory=partial(_Guard, self._world, contract, served),
            process_factory=partial(self._process, contract),
            server_host_keys=[served.key],
            encoding="utf-8",
        )

    async def _unlisten(self, served: _Served, port: int) -> None:
        listener = served.listeners.pop(port)
        listener.close()
        await listener.wait_closed()
        self._reserve(port)

    async def _take_down(self, number: int) -> None:
        served = self._served.pop(number)
        for connection in list(served.connections):
            connection.abort()
        for port in list(served.listeners):
            await self._unlisten(served, port)

    async def _process(self, contract: Contract, process: "asyncssh.SSHServerProcess[str]") -> None:
        task = asyncio.current_task()
        if task is not None:
            self._commands.add(task)
            task.add_done_callback(self._commands.discard)
        command = process.command
        if command is None:
            command = await process.stdin.read()
        try:
            code = await self._run(contract.id, command, process.stdout.write, process.stderr.write)
        except ConnectionLost:
            process.channel.get_connection().abort()
        except OSError:  # the client has gone; what it left behind dies at its next word, as with a real shell
            return
        else:
            process.exit(code)
