"""What an instance has, as seen from inside its container, and how much work fits in it.

The listing's numbers are of the whole machine or hoped for; the container's limits are what a benchmark meets.
"""

import math
import re
from dataclasses import dataclass

from controller.bench.work import Work
from controller.model.faults import Refused
from controller.model.reasons import Reason

PER_GPU = 5  # pieces of work in flight beyond which a GPU gets no faster
GIB = 1024.0**3
SAME_POWER_W = 1.0  # limits closer than this are the same

RAM_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # cgroup v2, v1
MEMINFO = "/proc/meminfo"
CPU_LIMIT = "/sys/fs/cgroup/cpu.max"
GPUS = "nvidia-smi --query-gpu=name,uuid,memory.total,power.limit,power.default_limit --format=csv,noheader"
NOT_FOUND = 127

_MEM_TOTAL = re.compile(r"MemTotal:\s+(\d+) kB")
_LIMIT = re.compile(r"\d+")
_CPU_MAX = re.compile(r"(\d+) (\d+)")
_GPU = re.compile(
    r"[^,]+, (?P<uuid>GPU-[^,]+), [^,]+, (?P<limit>[\d.]+|\[?N/A\]?)[^,]*, (?P<default>[\d.]+|\[?N/A\]?).*"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a run had. None where the instance did not say."""

    ram_gib: float | None = None  # the least of the container's limits and the machine's memory
    cpu_cores: int | None = None  # likewise
    gpu_uuid: str = ""  # of all its GPUs, sorted, with commas
    note: str = ""  # what a person should know beside the rate


@dataclass(frozen=True, slots=True)
class Sizing:
    """How wide the benchmark runs. `warmup`: pieces of work to make before those that count."""

    concurrency: int
    warmup: int


def ram_gib(answers: list[list[str]]) -> float | None:
    """The least memory that the files in RAM_LIMITS and MEMINFO tell of, in GiB. A file without a limit says "max"."""
    found = [int(line) / GIB for lines in answers for line in lines if _LIMIT.fullmatch(line)]
    found += [int(match[1]) * 1024.0 / GIB for lines in answers for line in lines if (match := _MEM_TOTAL.match(line))]
    return min((gib for gib in found if gib > 0), default=None)


def cpu_cores(nproc: list[str], cpu_max: list[str]) -> int | None:
    """Cores that may be used: those of nproc, or fewer if a quota is below it. At least 1."""
    found = [int(line) for line in nproc[:1] if _LIMIT.fullmatch(line)]
    found += [int(m[1]) // int(m[2]) for line in cpu_max[:1] if (m := _CPU_MAX.fullmatch(line)) and int(m[2])]
    return max(1, min(found)) if found else None


def gpus(status: int, lines: list[str], *, expected: int) -> tuple[str, str]:
    """The UUIDs of the GPUs, and a note if their power is limited. An image without nvidia-smi tells neither.

    Raises:
        Refused: HOST_FAULT, there are not as many GPUs as were rented: work would fall back to the CPU and be slow.
    """
    if status == NOT_FOUND:
        return "", ""
    found = [match for line in lines if (match := _GPU.fullmatch(line.strip()))]
    if len(found) < expected:
        raise Refused(Reason.HOST_FAULT, f"nvidia-smi shows {len(found)} of {expected} GPUs: {' '.join(lines)[:200]}")
    limits = [(_watts(gpu["limit"]), _watts(gpu["default"])) for gpu in found]
    low = [(limit, default) for limit, default in limits if default - limit > SAME_POWER_W]
    note = f"power limit {low[0][0]:.0f} W of {low[0][1]:.0f} W" if low else ""
    return ",".join(sorted(gpu["uuid"] for gpu in found)), note


def size(work: Work, conditions: Conditions, *, limit: int | None) -> Sizing:
    """Fit the work to the memory: as wide as there is room, at most PER_GPU for each GPU, and at most `limit`.

    A warm-up loads what the work shares while it makes its own, so it takes more memory than the work does afterwards:
    where memory limits the width, is unknown, or has run out before (`limit`), it is one piece; elsewhere as wide.

    Raises:
        Refused: OUT_OF_MEMORY, not even one piece fits.
    """
    widest = max(1, PER_GPU * work.gpu_count if limit is None else min(limit, PER_GPU * work.gpu_count))
    if conditions.ram_gib is None:
        return Sizing(1, 1)
    room = conditions.ram_gib - work.reserve_gib
    fits = math.floor(room / work.per_proof_gib) if work.per_proof_gib > 0 else widest
    if fits < 1 or room < 0:
        raise Refused(
            Reason.OUT_OF_MEMORY,
            f"{conditions.ram_gib:.0f} GiB of memory less {work.reserve_gib:g} GiB in reserve "
            f"has no room for one piece of work of {work.per_proof_gib:g} GiB",
        )
    return Sizing(fits, 1) if fits < widest else Sizing(widest, widest if limit is None else 1)


def _watts(text: str) -> float:
    """What nvidia-smi prints; what is not available is no limit, and equal to the default."""
    return float(text) if text[:1].isdigit() else 0.0
