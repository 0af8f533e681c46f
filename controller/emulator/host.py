"""The inside of a rented instance: its files, its processes, and time spent on it.

Every command of the emulated shell waits through Host.sleep, which ends it when the instance stops, the connection is
cut, or the process is killed. Called by shell, commands and prover; one Host per instance, made by server.
"""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from controller.emulator.contracts import GIB, Contract
from controller.emulator.kernel import Kernel
from controller.emulator.rates import Sessions, rate_now
from controller.emulator.world import World

MARGIN_S = 1e-6
FIRST_PID = 200


class ConnectionLost(Exception):  # noqa: N818  what the client sees, not a fault of ours
    """The instance was stopped, destroyed or lost, or the connection was cut, while a command ran."""


class Killed(Exception):  # noqa: N818  as above
    """The process got a signal; `code` is what the shell reports, 128 + the signal's number."""

    def __init__(self, code: int) -> None:
        super().__init__(f"exit code {code}")
        self.code = code


class Write(Protocol):
    """Takes text as it is printed."""

    def __call__(self, text: str, /) -> None:
        """Print."""


@dataclass(slots=True, eq=False)
class Process:
    """A running shell with all it runs in the foreground, or one program in the background."""

    pid: int
    group: int
    boot: int
    drops: int
    attached: bool = True  # ends when the connection does
    program: str = ""  # what it runs now, for pkill
    killed: int | None = None  # the exit code of the signal it got
    proving: int = 0  # proofs it has in flight
    proving_since: float = 0.0  # unix seconds


@dataclass(slots=True)
class Host:
    """One instance's machine as seen from inside its container."""

    world: World
    contract: Contract
    files: dict[str, str] = field(default_factory=dict)
    processes: dict[int, Process] = field(default_factory=dict)
    tasks: set[asyncio.Future[None]] = field(default_factory=set)
    downloaded_gib: float = 0.0
    cached: bool = False  # the container's cache of circuits is written
    warm: int = -1  # the boot in which the first proof was made
    runs: int = 0
    _next_pid: int = FIRST_PID
    _container: int = 0
    _sessions: Sessions | None = None
    kernel: Kernel = field(init=False)

    def __post_init__(self) -> None:
        self.kernel = Kernel(self.world, self.contract)

    def spawn(self, parent: Process | None = None) -> Process:
        """Begin a process: a connection's shell with a group of its own, or a parent's child in the background.

        Raises:
            ConnectionLost: the instance does not run.
        """
        self.world.look()
        contract = self.contract
        if contract.actual != "running" or contract.destroyed_at is not None:
            raise ConnectionLost("the instance does not run")
        if self._container != contract.container:
            self._container, self.downloaded_gib, self.cached = contract.container, 0.0, False
            self.files.clear()
        self.kernel.begin(contract.boots)
        self._next_pid += 3
        group = parent.group if parent else self._next_pid
        process = Process(self._next_pid, group, contract.boots, contract.drops, attached=parent is None)
        self.processes[process.pid] = process
        return process

    def end(self, process: Process) -> None:
        """Forget a process that is done."""
        self.processes.pop(process.pid, None)

    def check(self, process: Process) -> None:
        """Return if the process may go on.

        Raises:
            ConnectionLost: see there.
            Killed: it got a signal.
        """
        self.world.look()
        contract = self.contract
        if process.killed is not None:
            raise Killed(process.killed)
        if contract.actual != "running" or contract.destroyed_at is not None or contract.boots != process.boot:
            raise ConnectionLost("the instance stopped")
        if process.attached and contract.drops != process.drops:
            raise ConnectionLost("connection reset by peer")

    async def sleep(self, process: Process, seconds: float) -> None:
        """Let a process wait for emulated seconds.

        Raises:
            ConnectionLost: see there.
            Killed: it got a signal.
        """
        deadline = self.world.clock.now() + seconds
        self.check(process)
        while deadline - self.world.clock.now() > MARGIN_S:
            await self.world.pause(deadline)
            self.check(process)

    def kill(self, pid: int, signal: int) -> bool:
        """Send a signal to a process, or with a negative pid to its group; 0 only asks. False if there is none."""
        found = [p for p in self.processes.values() if (p.group == -pid if pid < 0 else p.pid == pid)]
        for process in found if signal else ():
            process.killed = 128 + signal
        self.world.bell.ring()
        return bool(found)

    def rate(self) -> float:
        """Return what it would make now, proofs an hour, beside whoever else proves on the machine."""
        if self._sessions is None:
            self._sessions = Sessions(self.world, self.contract.slot.machine_id)
        provers = self.world.proving[self.contract.slot.machine_id]
        return rate_now(self.world, self.contract, self._sessions, provers=provers)

    def read(self, path: str) -> str | None:
        """Return a file's text, or None if there is no such file."""
        row = self.contract.slot.row
        match path:
            case "/proc/meminfo":
                whole_kib = int(row["cpu_ram"]) * 1024
                return f"MemTotal:       {whole_kib} kB\nMemFree:        {whole_kib // 2} kB\n"
            case "/sys/fs/cgroup/memory.max":
                return f"{self.contract.ram_bytes}\n"
            case "/sys/fs/cgroup/cpu.max":
                return f"{int(float(row['cpu_cores_effective']) * 100_000)} 100000\n"
            case _:
                running = [process.proving_since for process in self.processes.values() if process.proving]
                return self.files.get(path, self.kernel.read(path, running))

    def writer(self, path: str, *, append: bool) -> Write:
        """Return what writes text to a file, emptied first unless appended to."""
        if path == "/dev/null":
            return lambda _text: None
        if not append or path not in self.files:
            self.files[path] = ""

        def write(text: str) -> None:
            self.files[path] = self.files.get(path, "") + text

        return write

    def background(self, work: Coroutine[None, None, None]) -> None:
        """Let something run on when the shell that began it has ended."""
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def ram_gib(self) -> float:
        """The container's share of the machine's memory."""
        return self.contract.ram_bytes / GIB
