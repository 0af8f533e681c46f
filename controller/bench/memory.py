"""How much work fits into an instance's memory, and whether memory ran out. Pure; called by `measuring`.

The kernel counts the processes that it kills for want of memory. A program may survive such a child, and exit with 0.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from controller.bench.work import RanOut, Work
from controller.model.faults import Refused
from controller.model.reasons import Reason

PER_GPU = 5  # pieces of work in flight beyond which a GPU gets no faster
ALIKE = 0.97  # of our memory: what ran out of so much would run out of ours
KILLS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")  # cgroup v2, v1

KERNEL_LOG = "dmesg"
KERNEL_KILLED = re.compile(r"out of memory.*\bkilled process\b|\boom-kill\b|\boom_reaper\b", re.IGNORECASE)

_OOM_KILL = re.compile(r"oom_kill (\d{1,20})")


@dataclass(frozen=True, slots=True)
class Sizing:
    """How wide the benchmark runs. `warmup`: pieces of work to make before those that count."""

    concurrency: int
    warmup: int


def size(work: Work, ram_gib: float | None, *, ran_out: RanOut, warm: bool) -> Sizing:
    """Fit the work to the memory: as wide as there is room, at most PER_GPU for each GPU.

    What ran out of as much memory before limits it to half of that width. A warm-up that the benchmark makes itself
    loads what the work shares while it makes its own, so it takes more memory than the work does afterwards: where
    memory limits the width, is unknown, or has run out before, it is one piece; elsewhere as wide.

    Raises:
        Refused: OUT_OF_MEMORY, not even one piece fits.
    """
    widest = max(1, PER_GPU * work.gpu_count)
    before = [width for gib, width in ran_out if gib is None or ram_gib is None or gib >= ALIKE * ram_gib]
    limit = min(before, default=None)
    if limit is not None and limit <= 1:
        most = max((gib for gib, width in ran_out if gib is not None and width <= 1), default=None)
        raise Refused(Reason.OUT_OF_MEMORY, _too_little(most))
    if ram_gib is None:
        return Sizing(1, 0 if warm else 1)
    room = ram_gib - work.reserve_gib
    fits = math.floor(room / work.per_proof_gib) if work.per_proof_gib > 0 else widest
    if fits < 1 or room < 0:
        raise Refused(
            Reason.OUT_OF_MEMORY,
            f"{ram_gib:.0f} GiB of memory less {work.reserve_gib:g} GiB in reserve "
            f"has no room for one piece of work of {work.per_proof_gib:g} GiB",
        )
    width = min(widest, fits, widest if limit is None else limit // 2)
    if warm:
        return Sizing(width, 0)
    return Sizing(width, width if width == widest else 1)


def _too_little(gib: float | None) -> str:
    if gib is None:
        return "one piece of work at a time ran out of memory before: raise require.ramGiB"
    return (
        f"one piece of work at a time ran out of {gib:.0f} GiB of memory before, so it needs more: "
        f"raise require.ramGiB above {math.ceil(gib)}"
    )


def kills(files: Mapping[str, Sequence[str]]) -> int | None:
    """How many processes the kernel has killed in the container for want of memory; None: it does not say."""
    found = [int(match[1]) for path in KILLS for line in files.get(path, ()) if (match := _OOM_KILL.fullmatch(line))]
    return max(found, default=None)


def killed(before: int | None, after: int | None, *, where: str) -> str:
    """That the kernel killed meanwhile; empty if it did not, or does not say."""
    more = (after or 0) - (before or 0)
    if before is None or after is None or more <= 0:
        return ""
    return f"the kernel killed {more} process{'es' if more > 1 else ''} for want of memory, by {where}"
