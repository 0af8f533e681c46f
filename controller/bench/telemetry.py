"""What slowed a run, asked for before, during and after it: short questions that take nothing from the work.

A question that fails is no evidence: it ends neither the run nor the asking for the rest. Called by `measuring`.
"""

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from controller.bench import memory
from controller.bench.conditions import Files
from controller.bench.remote import Clock
from controller.bench.session import Session
from controller.model.faults import Refused

EVERY_S = 30.0
CPU_STATS = ("/sys/fs/cgroup/cpu.stat", "/sys/fs/cgroup/cpu/cpu.stat")  # cgroup v2, v1
COUNTERS = (*CPU_STATS, *memory.KILLS)
SAMPLE = "nvidia-smi --query-gpu=temperature.gpu,{reasons} --format=csv,noheader"
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # the driver's word, and its older one
NAMES = {0x4: "SwPowerCap", 0x8: "HwSlowdown", 0x20: "SwThermal", 0x40: "HwThermal", 0x80: "HwPowerBrake"}
DISTURBING = ("HwPowerBrake", "HwSlowdown", "HwThermal", "SwThermal")  # a power cap is met by all that work hard
HELD_BACK = 0.1  # of its time, from which a run counts as disturbed

_SAMPLE = re.compile(r"(?P<celsius>\d{1,6}(?:\.\d{1,6})?|\[?N/A\]?), (?P<mask>0x[0-9a-fA-F]{1,16}|\[?N/A\]?)")
_PERIODS = re.compile(r"(nr_periods|nr_throttled) (\d{1,20})")


@dataclass(frozen=True, slots=True)
class Counts:
    """What the kernel counts of a container. None: it does not say."""

    killed: int | None = None  # processes, for want of memory
    logged: int | None = None  # the same, of the whole machine, in the kernel's log
    periods: int | None = None  # in which it had a quota of its cores' time
    held_back: int | None = None  # those of them in which it used it up


def sample_of(lines: Sequence[str]) -> tuple[float | None, set[str]]:
    """The hottest GPU's temperature, and what slows any of them."""
    found = [match for line in lines if (match := _SAMPLE.fullmatch(line.strip()))]
    masks = [int(match["mask"], 16) for match in found if match["mask"].startswith("0x")]
    celsius = [float(match["celsius"]) for match in found if match["celsius"][0].isdecimal()]
    return max(celsius, default=None), {name for bit, name in NAMES.items() if any(mask & bit for mask in masks)}


def periods(files: Files) -> tuple[int | None, int | None]:
    """In how many periods the container had a quota, and in how many it was held back. None: it does not say.

    The times that the kernel counts beside these are sums over cores, however many there are.
    """
    lines = (line for path in CPU_STATS for line in files.get(path, ()))
    found = {match[1]: int(match[2]) for line in lines if (match := _PERIODS.fullmatch(line))}
    return found.get("nr_periods"), found.get("nr_throttled")


class Telemetry:
    """Watches one run on an open session."""

    def __init__(self, session: Session, clock: Clock) -> None:
        self._session = session
        self._clock = clock
        self._reasons = list(REASONS)
        self._names: set[str] = set()
        self._before = self._after = Counts()
        self.temperature_c: float | None = None

    @contextlib.asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Count before and after what is done within, however it ends, and take samples meanwhile and at its end."""
        self._before = await self._counts()
        samples = asyncio.ensure_future(self._samples())
        try:
            yield
        except Refused:
            await self._close()
            raise
        else:
            await self._close()
        finally:
            samples.cancel()
            await asyncio.wait({samples})

    async def _close(self) -> None:
        await self._sample()
        self._after = await self._counts()

    @property
    def throttled(self) -> str:
        """What slowed the GPUs, sorted, with commas."""
        return ",".join(sorted(self._names))

    @property
    def killed(self) -> str:
        """That the kernel killed one of the container's processes for want of memory; empty if it did not."""
        return memory.killed(self._before.killed, self._after.killed, where="the container's count")

    @property
    def logged(self) -> str:
        """That it killed some process of the machine, perhaps a neighbour's."""
        return memory.killed(self._before.logged, self._after.logged, where="its log")

    @property
    def held_back(self) -> float | None:
        """The share of its time in which the quota held its cores back; None: not known."""
        before, after = self._before, self._after
        if None in {before.periods, before.held_back, after.periods, after.held_back}:
            return None
        had, held = (after.periods or 0) - (before.periods or 0), (after.held_back or 0) - (before.held_back or 0)
        return min(1.0, max(0.0, held / had)) if had > 0 else 0.0

    @property
    def disturbances(self) -> list[str]:
        """What makes the run worth less as a witness."""
        names = [name for name in DISTURBING if name in self._names]
        share = self.held_back or 0.0
        found = [f"the GPU was slowed by {', '.join(names)}"] if names else []
        return found + ([f"the quota held its cores back for {share:.0%} of the time"] if share > HELD_BACK else [])

    async def _samples(self) -> None:
        while self._reasons:
            await self._clock.sleep(EVERY_S)
            await self._sample()

    async def _sample(self) -> None:
        """Ask in the driver's word, or in its older one; not again in one that it does not know."""
        while self._reasons:
            status, lines = await self._session.attempt(SAMPLE.format(reasons=self._reasons[0]))
            if status is None:
                return
            if status == 0:
                celsius, names = sample_of(lines)
                self._names |= names
                self.temperature_c = max((t for t in (self.temperature_c, celsius) if t is not None), default=None)
                return
            self._reasons.pop(0)

    async def _counts(self) -> Counts:
        files = await self._session.attempt_files(COUNTERS)
        status, lines = await self._session.attempt(memory.KERNEL_LOG, only=memory.KERNEL_KILLED)
        return Counts(memory.kills(files), len(lines) if status == 0 else None, *periods(files))
