"""What bench's tests share: a host on a real SSH server in the test's own loop, whose programs the test writes."""

import asyncio
import re
import shlex
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import asyncssh
import pytest

from controller.bench.bench import Bench
from controller.bench.reach import Reattach
from controller.bench.ssh import ssh_connector
from controller.bench.work import Target, Work
from controller.model.market import Endpoint

ORIGIN = 1_800_000_000.0
SECRET = "MARKER-hunter2-MARKER"
BANNER = "Welcome to vast.ai. If authentication fails, try again after a few seconds, and double check your ssh key.\n"
GPU = "NVIDIA GeForce RTX 4090, GPU-5d1f-{n}, 24564 MiB, {limit} W, 450.00 W\n"
EXPORTS = re.compile(r"""export(?: \w+=(?:'[^']*'|"'"|[^\s'"])*)+\n""")
FILE = re.compile(r"echo\necho (vastfleet-file \d+)\ncat \"([^\"]+)\"\n?")
MARK = re.compile(r"echo (\S+) > \"([^\"]+)\"")
WARM = "$HOME/.vastfleet-warm"
MEMORY_MAX = "/sys/fs/cgroup/memory.max"
MEMORY_EVENTS = "/sys/fs/cgroup/memory.events"
CPU_STAT = "/sys/fs/cgroup/cpu.stat"
BOOT = {
    "/proc/sys/kernel/random/boot_id": "2f1b7c1e-6a0d-4c3e-9d1b-0f7a5b8c9d0e\n",
    "/proc/1/stat": "1 (a (b) c) S 0 1 1 0 -1 4194560 1 1 0 0 1 1 0 0 20 0 1 0 4711 4500000 850 0\n",
}
BOOTED = "2f1b7c1e-6a0d-4c3e-9d1b-0f7a5b8c9d0e/4711"
MEMINFO = "/proc/meminfo"


class LoopClock:
    """The loop's own time, which looptime lets fly."""

    def now(self) -> float:
        """Unix seconds."""
        return ORIGIN + asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        """Wait."""
        await asyncio.sleep(seconds)  # noqa: TID251 - this is the clock


@dataclass(eq=False)
class Process:
    """One exec: what was asked, and where its output goes."""

    ssh: asyncssh.SSHServerProcess[str]
    pid: int
    env: dict[str, str] = field(default_factory=dict)

    def out(self, text: str) -> None:
        """Print."""
        self.ssh.stdout.write(text)

    def err(self, text: str) -> None:
        """Print on stderr."""
        self.ssh.stderr.write(text)


Program = Callable[[Process], Awaitable[int]]


class Host:
    """An instance: programs by the text of their command, files, and a record of what was done to it."""

    def __init__(self, client_key: asyncssh.SSHKey) -> None:
        self.key = asyncssh.generate_private_key("ssh-ed25519")
        self.authorized = {client_key.export_public_key()}
        self.programs: dict[str, Program] = {}
        self.files = {
            MEMORY_MAX: f"{128 * 1024**3}\n",
            MEMINFO: "MemTotal:       528280984 kB\nMemFree: 1 kB\n",
            "/sys/fs/cgroup/cpu.max": "max 100000\n",
        }
        self.answers: dict[str, tuple[int, str]] = {
            "dmesg": (1, ""),
            "nvidia-smi --query-gpu=driver_version": (0, "580.65.06\n"),
            "nvidia-smi --query-gpu=temperature.gpu": (0, "71, 0x0000000000000004\n"),
        }  # by how the question begins
        self.nproc = "32\n"
        self.gpus: tuple[int, str] = (0, GPU.format(n=0, limit="450.00"))
        self.commands: list[str] = []
        self.signals: list[tuple[str, int]] = []
        self.deaf = False  # processes take no SIGTERM
        self.running: dict[int, asyncio.Task[int]] = {}
        self.done: dict[int, int] = {}
        self.connections: list[asyncssh.SSHServerConnection] = []
        self._next_pid = 100

    async def listen(self, stack: AsyncExitStack, port: int = 0) -> int:
        """Serve on a port, its own by default."""
        server = await asyncssh.create_server(
            lambda: _Login(self), "127.0.0.1", port,
            server_host_keys=[self.key], process_factory=self._exec, login_timeout=10**9,
        )  # fmt: skip
        stack.push_async_callback(self._close, server)
        return int(server.get_port())

    async def _close(self, server: asyncssh.SSHAcceptor) -> None:
        for task in self.running.values():
            task.cancel()
        server.close()
        self.drop()
        await server.wait_closed()

    def drop(self) -> None:
        """Cut all connections; what runs goes on."""
        for connection in self.connections:
            connection.abort()
        self.connections.clear()

    async def _exec(self, ssh: asyncssh.SSHServerProcess[str]) -> None:
        assert ssh.command is not None
        self.commands.append(ssh.command)
        self._next_pid += 1
        process = Process(ssh, self._next_pid)
        ssh.stderr.write("Have fun!\n")
        task = asyncio.ensure_future(self._shell(process, ssh.command))
        self.running[process.pid] = task
        try:
            status = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled():
                raise
            status = 128 + {"TERM": 15, "KILL": 9}[self.signals[-1][0]]
        finally:
            if task.done():
                self.running.pop(process.pid, None)
        self.done[process.pid] = status
        ssh.exit(status)

    async def _shell(self, process: Process, text: str) -> int:
        if text.startswith("echo vastfleet-pid $$\n"):
            process.out(f"vastfleet-pid {process.pid}\n")
            text = text.partition("\n")[2]
        while exports := EXPORTS.match(text):
            process.env |= dict(word.partition("=")[::2] for word in shlex.split(exports[0])[1:])
            text = text[exports.end() :]
        answer = self._answer(text)
        if answer is not None:
            process.out(answer[1])
            return answer[0]
        match text.split():
            case ["nproc"]:
                process.out(self.nproc)
                return 0
            case ["kill", signal, group]:
                return self._kill(signal.removeprefix("-"), int(group.removeprefix("-")))
        return await self.programs[text](process)

    def _answer(self, text: str) -> tuple[int, str] | None:
        """The answer to a short question, or None if it is none."""
        if FILE.match(text):
            return 1, "".join(f"\n{mark}\n{self.files.get(path, '')}" for mark, path in FILE.findall(text))
        if mark := MARK.fullmatch(text):
            self.files[mark[2]] = f"{mark[1]}\n"
            return 0, ""
        known = next((answer for question, answer in self.answers.items() if text.startswith(question)), None)
        return self.gpus if known is None and text.startswith("nvidia-smi") else known

    def _kill(self, signal: str, pid: int) -> int:
        if pid not in self.running:
            return 1
        self.signals.append((signal, pid))
        if signal == "KILL" or not self.deaf:
            self.running[pid].cancel()
        return 0


class _Login(asyncssh.SSHServer):
    def __init__(self, host: Host) -> None:
        self._host = host

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._host.connections.append(conn)
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        if self._connection in self._host.connections:
            self._host.connections.remove(self._connection)

    def begin_auth(self, username: str) -> bool:
        self._connection.send_auth_banner(BANNER)
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        return username == "root" and key.export_public_key() in self._host.authorized


@dataclass
class Bed:
    """A host, the bench that works on it, and the port where nobody listens."""

    host: Host
    key: asyncssh.SSHKey
    port: int
    dead_port: int
    progress: list[str] = field(default_factory=list)

    def target(self, *ports: int, host_key: str | None = None, **more: Any) -> Target:
        """Direct, then proxy, on these ports; the host's own by default."""
        endpoints = zip(("direct", "proxy"), ports or (self.port,), strict=False)
        return Target(
            nonce="n0nce",
            instance_id=36717044,
            machine_id=7,
            host_key=host_key,
            **more,
            endpoints=tuple(Endpoint(route=route, host="127.0.0.1", port=port) for route, port in endpoints),  # type: ignore[arg-type]
        )

    def bench(self, reattach: Reattach | None = None) -> Bench:
        """A bench over SSH, in virtual time."""
        return Bench(
            connect=ssh_connector(private_key=self.key),
            clock=LoopClock(),
            new_id=lambda: "run-1",
            reattach=reattach,
        )


@pytest.fixture
async def bed() -> AsyncIterator[Bed]:
    key = asyncssh.generate_private_key("ssh-ed25519")
    host = Host(key)
    async with AsyncExitStack() as stack:
        port = await host.listen(stack)
        closed = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        dead_port = closed.sockets[0].getsockname()[1]
        closed.close()
        await closed.wait_closed()
        yield Bed(host, key, port, dead_port)


def work(**changes: Any) -> Work:
    """A fleet's work: the benchmark `bench`, whose log is JSON."""
    base: dict[str, Any] = {
        "fleet": "provers",
        "shape": "RTX 4090 x1",
        "workload": "w0rkload",
        "gpu_count": 1,
        "unit": "proofs/h",
        "command": "bench",
        "format": "json",
        "reserve_gib": 100,
        "per_proof_gib": 6,
        "env": {"TOKEN": SECRET, "LEVEL": "3"},
    }
    return Work(**base | changes)


def prints(*pieces: str, every_s: float = 0.0, status: int = 0) -> Program:
    """A program that prints pieces, waiting before each, and exits."""

    async def program(process: Process) -> int:
        for piece in pieces:
            await LoopClock().sleep(every_s)
            process.out(piece)
        return status

    return program


async def hangs(process: Process) -> int:
    """A program that says one thing and never ends."""
    process.out("started\n")
    await asyncio.Event().wait()
    return 0
