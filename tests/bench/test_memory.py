import asyncio

import pytest

from controller.bench.memory import kills, size
from controller.bench.work import Result
from controller.model.faults import Refused
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.bench.conftest import MEMORY_EVENTS, Bed, Process, work

pytestmark = pytest.mark.looptime

RATE = '{"rate": 61.4, "unit": "proofs/h"}\n'
EVENTS = "low 0\nhigh 0\nmax 12\noom {n}\noom_kill {n}\noom_group_kill 0\n"
CONTROL = "/sys/fs/cgroup/memory/memory.oom_control"
LOGGED = "[184467.44] Out of memory: Killed process 4711 (prove) total-vm:1kB, anon-rss:1kB\n"


def run_of(result: Result) -> Run:
    assert result.run is not None
    return result.run


@pytest.mark.parametrize(
    ("path", "text"), [(MEMORY_EVENTS, EVENTS), (CONTROL, "oom_kill_disable 0\nunder_oom 0\noom_kill {n}\n")]
)
async def test_kernel_counts_what_it_killed(bed: Bed, path, text):
    """A killed child makes a run one that ran out of memory, though its parent printed a rate and exited with 0."""

    async def bench(process: Process) -> int:
        bed.host.files[path] = text.format(n=3)
        process.out(RATE)
        return 0

    bed.host.files[path] = text.format(n=2)
    bed.host.programs["bench"] = bench
    done = await bed.bench().measure(bed.target(), work())
    run = run_of(done)
    assert (done.reason, run.rate, run.concurrency, run.ram_gib) == (Reason.OUT_OF_MEMORY, None, 4, 128.0)
    assert done.detail.startswith("the kernel killed 1 process for want of memory")
    assert (await bed.bench().measure(bed.target(), work())).ok  # it was killed before this run


@pytest.mark.parametrize(("output", "reason"), [("cut\n", Reason.OUT_OF_MEMORY), (RATE, Reason.MEASURED)])
async def test_kernel_log_is_the_whole_machines(bed: Bed, output, reason):
    """What the kernel's log tells explains a run without a rate; one with a rate it does not void: there are others."""

    async def bench(process: Process) -> int:
        bed.host.answers["dmesg"] = (0, f"[1.0] Linux version 6.8\n{LOGGED}{LOGGED}")
        process.out(output)
        return 0

    bed.host.answers["dmesg"] = (0, f"[1.0] Linux version 6.8\n{LOGGED}")
    bed.host.programs["bench"] = bench
    assert (await bed.bench().measure(bed.target(), work())).reason is reason


async def test_hang_after_a_kill(bed: Bed):
    """A benchmark that waits for ever for a child that the kernel killed ran out of memory, not of time."""

    async def bench(process: Process) -> int:
        bed.host.files[MEMORY_EVENTS] = EVENTS.format(n=1)
        await asyncio.Event().wait()
        return 0

    bed.host.files[MEMORY_EVENTS] = EVENTS.format(n=0)
    bed.host.programs["bench"] = bench
    done = await bed.bench().measure(bed.target(), work())
    assert (done.reason, "not done in 2700 s" in done.detail) == (Reason.OUT_OF_MEMORY, True)


async def test_one_piece_ran_out_before(bed: Bed):
    """Where a single piece of work ran out of as much memory before, nothing is run, and what to raise is said."""
    done = await bed.bench().measure(bed.target(), work(), ran_out=((128.0, 1), (125.4, 1), (64.0, 1)))
    assert (done.reason, run_of(done).ram_gib) == (Reason.OUT_OF_MEMORY, 128.0)
    assert done.detail == (
        "one piece of work at a time ran out of 128 GiB of memory before, so it needs more: "
        "raise require.ramGiB above 128"
    )
    assert not any("bench" in command for command in bed.host.commands)


def test_memory_nobody_knows():
    """A width that ran out of unknown memory counts for all, and where ours is unknown, all count."""
    with pytest.raises(Refused, match=r"raise require.ramGiB$"):
        size(work(), 500.0, ran_out=((None, 1),), warm=True)
    with pytest.raises(Refused):
        size(work(), None, ran_out=((16.0, 1),), warm=True)
    assert size(work(), 500.0, ran_out=((None, 5),), warm=True).concurrency == 2
    assert size(work(), 500.0, ran_out=((16.0, 1),), warm=True).concurrency == 5


@pytest.mark.parametrize(
    ("lines", "count"), [(["oom_kill 3"], 3), (["oom_kill_disable 0"], None), (["oom_kill x"], None), ([], None)]
)
def test_kernels_count(lines, count):
    """Only the kernel's own count is one."""
    assert kills({MEMORY_EVENTS: lines}) == count
