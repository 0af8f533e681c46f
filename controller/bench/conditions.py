"""What an instance has, as seen from inside its container.

The listing's numbers are of the whole machine or hoped for; the container's limits are what a benchmark meets.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.model.faults import Refused
from controller.model.reasons import Reason

GIB = 1024.0**3
SAME_POWER_W = 1.0  # limits closer than this are the same

RAM_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")  # cgroup v2, v1
MEMINFO = "/proc/meminfo"
CPU_LIMIT = "/sys/fs/cgroup/cpu.max"
BOOT_ID = "/proc/sys/kernel/random/boot_id"
INIT = "/proc/1/stat"
WARM = "$HOME/.vastfleet-warm"  # holds the boot in which a warm-up or a benchmark ended well
FILES = (*RAM_LIMITS, MEMINFO, CPU_LIMIT, BOOT_ID, INIT, WARM)

CORES = "nproc"
GPUS = "nvidia-smi --query-gpu=name,uuid,memory.total,power.limit,power.default_limit --format=csv,noheader"
DRIVER = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
NOT_FOUND = 127
STARTED = 22 - 3  # place of a process's start time in its stat, after its name

_MEM_TOTAL = re.compile(r"MemTotal:\s+(\d{1,18}) kB")  # figures longer than any are no figures
_LIMIT = re.compile(r"\d{1,20}")
_CORES = re.compile(r"\d{1,6}")
_CPU_MAX = re.compile(r"(\d{1,15}) (\d{1,15})")
_BOOT_ID = re.compile(r"[0-9a-f-]{8,64}")
_VERSION = re.compile(r"\d[\d.]{0,20}")
_GPU = re.compile(
    r"[^,]+, (?P<uuid>GPU-[^,]+), [^,]+, (?P<limit>\d{1,6}(?:\.\d{1,6})?(?![\d.])|\[?N/A\]?)[^,]*, "
    r"(?P<default>\d{1,6}(?:\.\d{1,6})?(?![\d.])|\[?N/A\]?).*"
)

Files = Mapping[str, Sequence[str]]
"""The lines of each file, by its path; of one that cannot be read, none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpus:
    """The GPUs of an instance. Watts are of the one whose limit is lowest against its default."""

    uuids: str = ""  # sorted, with commas
    power_limit_w: float | None = None
    power_default_w: float | None = None

    @property
    def note(self) -> str:
        """What a person should know beside the rate."""
        limit, default = self.power_limit_w, self.power_default_w
        if limit is None or default is None or default - limit <= SAME_POWER_W:
            return ""
        return f"power limit {limit:.0f} W of {default:.0f} W"


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """What a run had. None, or empty, where the instance did not say."""

    ram_gib: float | None = None  # the least of the container's limits and the machine's memory
    cpu_cores: int | None = None  # likewise
    gpus: Gpus = Gpus()
    driver: str = ""
    boot: str = ""  # identifies this start of the container
    warm: bool = False  # a warm-up or a benchmark has ended well since


def ram_gib(files: Files) -> float | None:
    """The least memory that the files in RAM_LIMITS and MEMINFO tell of, in GiB. A file without a limit says "max"."""
    lines = [line for path in (*RAM_LIMITS, MEMINFO) for line in files.get(path, ())]
    found = [int(line) / GIB for line in lines if _LIMIT.fullmatch(line)]
    found += [int(match[1]) * 1024.0 / GIB for line in lines if (match := _MEM_TOTAL.match(line))]
    return min((gib for gib in found if gib > 0), default=None)


def cpu_cores(nproc: Sequence[str], files: Files) -> int | None:
    """Cores that may be used: those of nproc, or fewer if a quota is below it. At least 1."""
    found = [int(line) for line in nproc[:1] if _CORES.fullmatch(line)]
    quota = files.get(CPU_LIMIT, ())[:1]
    found += [int(m[1]) // int(m[2]) for line in quota if (m := _CPU_MAX.fullmatch(line)) and int(m[2])]
    return max(1, min(found)) if found else None


def boot(files: Files) -> str:
    """What differs whenever the container is started anew: the machine's boot, and when the first process began."""
    machine = next((line for line in files.get(BOOT_ID, ()) if _BOOT_ID.fullmatch(line)), "")
    fields = next(iter(files.get(INIT, ())), "").rpartition(")")[2].split()
    started = fields[STARTED] if len(fields) > STARTED and fields[STARTED].isdecimal() else ""
    return f"{machine}/{started}" if machine and started else ""


def driver(status: int, lines: Sequence[str]) -> str:
    """The GPUs' driver."""
    return next((line.strip() for line in lines if _VERSION.fullmatch(line.strip())), "") if status == 0 else ""


def gpus(status: int, lines: Sequence[str], *, expected: int) -> Gpus:
    """The GPUs. An image without nvidia-smi tells of none.

    Raises:
        Refused: HOST_FAULT, there are not as many GPUs as were rented: work would fall back to the CPU and be slow.
    """
    if status == NOT_FOUND:
        return Gpus()
    found = [match for line in lines if (match := _GPU.fullmatch(line.strip()))]
    if len(found) < expected:
        raise Refused(Reason.HOST_FAULT, f"nvidia-smi shows {len(found)} of {expected} GPUs: {' '.join(lines)[:200]}")
    powers = [(_watts(gpu["limit"]), _watts(gpu["default"])) for gpu in found]
    limit, default = min(
        ((limit, default) for limit, default in powers if limit and default),
        key=lambda power: power[0] / power[1],
        default=(None, None),
    )
    uuids = ",".join(sorted(gpu["uuid"] for gpu in found))
    return Gpus(uuids=uuids, power_limit_w=limit, power_default_w=default)


def _watts(text: str) -> float:
    """What nvidia-smi prints; 0 is not available."""
    return float(text) if text[:1].isdigit() else 0.0
