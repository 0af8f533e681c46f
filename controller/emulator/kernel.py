"""What an instance's kernel counts and tells: memory that ran out, CPU time, how long the container has been up.

The counts are of one boot of the container, as a cgroup's are. Called by host (files), prover (what it uses and what is
killed) and commands (dmesg).
"""

from uuid import UUID

from controller.emulator.chance import stream
from controller.emulator.contracts import GIB, Contract
from controller.emulator.world import World

DAY_S = 86400.0
TICKS_A_S = 100
PERIOD_S = 0.1  # of the CPU's quota
THROTTLED = 0.35  # share of the time in which a throttled container may not run
BUSY_SHARE, IDLE_SHARE = 0.6, 0.01  # of its cores, that a prover and an idle container use
INIT = "1 (bash) S 0 1 1 0 -1 4194560 1200 48000 0 12 2 4 90 110 20 0 1 0 {start} 4500000 850 18446744073709551615 "
INIT_REST = "1 1 0 0 0 0 65536 3670020 1266777851 1 0 0 17 5 0 0 0 0 0 0 0 0 0 0 0 0 0"


class Kernel:
    """One instance's view of its machine's kernel."""

    def __init__(self, world: World, contract: Contract) -> None:
        self._world, self._contract = world, contract
        self._machine = stream(world.market.seed, "kernel", contract.slot.machine_id)
        self._booted = world.started - self._machine.uniform(2, 90) * DAY_S
        self._boot_id = UUID(int=self._machine.getrandbits(128), version=4)
        self.boot = 0  # of the container, to which the counts belong
        self.log: list[str] = []  # what dmesg prints
        self._oom_kills = 0
        self._busy_s = self._throttled_s = 0.0

    def begin(self, boot: int) -> None:
        """Count from zero if the container has been started anew."""
        if boot != self.boot:
            self.boot = boot
            self._oom_kills, self._busy_s, self._throttled_s = 0, 0.0, 0.0

    def kill_for_memory(self, pid: int, program: str, gib: float) -> None:
        """Count and log a process that the kernel has killed at so many GiB."""
        self._oom_kills += 1
        up_s, kib = self._world.time - self._booted, int(gib * GIB / 1024)
        self.log.append(
            f"[{up_s:.6f}] Out of memory: Killed process {pid} ({program}) total-vm:{kib + 9_000_000}kB, "
            f"anon-rss:{kib}kB, file-rss:4096kB, shmem-rss:0kB, UID:0 pgtables:{kib // 500}kB oom_score_adj:0\n"
        )

    def proved(self, boot: int, since: float, until: float) -> None:
        """Count a time in which a prover ran, in unix seconds; one of an earlier boot counts no more."""
        if boot == self.boot:
            busy_s, throttled_s = self._spent(since, until)
            self._busy_s += busy_s
            self._throttled_s += throttled_s

    def read(self, path: str, running: list[float]) -> str | None:
        """Return the text of a file, or None if it is none of the kernel's.

        Args:
            path: the file.
            running: since when, in unix seconds, each prover that runs now has.
        """
        match path:
            case "/sys/fs/cgroup/memory.events":
                return f"low 0\nhigh 0\nmax 0\noom {self._oom_kills}\noom_kill {self._oom_kills}\noom_group_kill 0\n"
            case "/sys/fs/cgroup/cpu.stat":
                return self._cpu_stat(running)
            case "/sys/fs/cgroup/cpu.pressure":
                return self._cpu_pressure(running)
            case "/proc/sys/kernel/random/boot_id":
                return f"{self._boot_id}\n"
            case "/proc/1/stat":
                started = self._contract.running_since or self._world.time
                return INIT.format(start=int((started - self._booted) * TICKS_A_S)) + INIT_REST + "\n"
            case _:
                return None

    def _spent(self, since: float, until: float) -> tuple[float, float]:
        """Return how many seconds a prover ran, and for how many of them it was throttled."""
        return until - since, THROTTLED * self._contract.overlap("cpu-throttled", since, until)

    def _totals(self, running: list[float]) -> tuple[float, float]:
        now = [self._spent(since, self._world.time) for since in running]
        return self._busy_s + sum(busy for busy, _ in now), self._throttled_s + sum(held for _, held in now)

    def _cpu_stat(self, running: list[float]) -> str:
        busy_s, throttled_s = self._totals(running)
        up_s = self._world.time - (self._contract.running_since or self._world.time)
        cores = float(self._contract.slot.row["cpu_cores_effective"])
        usage = int(cores * (busy_s * BUSY_SHARE + up_s * IDLE_SHARE) * 1e6)
        return (
            f"usage_usec {usage}\nuser_usec {usage * 9 // 10}\nsystem_usec {usage - usage * 9 // 10}\n"
            f"nr_periods {int(up_s / PERIOD_S)}\nnr_throttled {int(throttled_s / PERIOD_S)}\n"
            f"throttled_usec {int(throttled_s * 1e6)}\n"
        )

    def _cpu_pressure(self, running: list[float]) -> str:
        held = bool(running) and self._contract.trouble("cpu-throttled", self._world.time) is not None
        share = 100 * THROTTLED if held else 0.4 if running else 0.0
        total = int(self._totals(running)[1] * 1e6)
        averages = f"avg10={share:.2f} avg60={share:.2f} avg300={share:.2f} total={total}"
        return f"some {averages}\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"
