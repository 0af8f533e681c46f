import pytest

from controller.bench.work import Result
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.bench.conftest import (
    GPU,
    MEMORY_MAX,
    ORIGIN,
    SECRET,
    Bed,
    Process,
    prints,
    work,
)

pytestmark = pytest.mark.looptime

RATE = '{"rate": 61.4, "unit": "proofs/h"}\n'


def run_of(result: Result) -> Run:
    assert result.run is not None
    return result.run


async def test_measure_makes_a_run_with_its_conditions(bed: Bed):
    """A run's record holds the rate, its unit, and what it was made with and on."""
    bed.host.programs["bench"] = prints("warm\n", RATE, every_s=600)
    done = await bed.bench().measure(bed.target(), work(), progress=bed.progress.append)
    run = run_of(done)
    assert (done.ok, done.reason, done.detail) == (True, Reason.MEASURED, RATE.strip())
    assert (run.rate, run.unit, run.concurrency, run.ram_gib, run.cpu_cores) == (61.4, "proofs/h", 4, 128.0, 32)
    assert (run.id, run.nonce, run.fleet, run.machine_id) == ("run-1", "n0nce", "provers", 7)
    assert (run.shape, run.workload, run.gpu_uuid) == ("RTX 4090 x1", "w0rkload", "GPU-5d1f-0")
    assert run.started_at - ORIGIN == pytest.approx(0, abs=5)
    assert run.ended_at - run.started_at == pytest.approx(1200, abs=5)
    assert "warm" in bed.progress


@pytest.mark.parametrize(
    ("memory", "gpus", "ran_out", "expected"),
    [
        (128 * 1024**3, 1, (), (4, 1)),
        (130 * 1024**3, 1, (), (5, 5)),
        (500 * 1024**3, 1, (), (5, 5)),
        (500 * 1024**3, 2, (), (10, 10)),
        (106 * 1024**3, 1, (), (1, 1)),
        (500 * 1024**3, 1, ((500, 5),), (2, 1)),
        (500 * 1024**3, 1, ((490, 5), (None, 4), (128, 1)), (2, 1)),
        (500 * 1024**3, 1, ((480, 2),), (5, 5)),
        ("max", 2, (), (10, 10)),
    ],
)
async def test_concurrency_fits_the_memory(bed: Bed, memory, gpus, ran_out, expected):
    """A benchmark is as wide as memory holds, five a GPU at most, half of what ran out before; so is its warm-up."""
    seen: dict[str, str] = {}

    async def bench(process: Process) -> int:
        seen.update(process.env)
        process.out(RATE)
        return 0

    bed.host.programs["bench"] = bench
    bed.host.files[MEMORY_MAX] = f"{memory}\n"
    bed.host.gpus = (0, "".join(GPU.format(n=n, limit="450.00") for n in range(gpus)))
    done = await bed.bench().measure(bed.target(), work(gpu_count=gpus), ran_out=ran_out)
    assert (run_of(done).concurrency, seen["GPU_COUNT"]) == (expected[0], str(gpus))
    assert (int(seen["CONCURRENCY"]), int(seen["WARMUP"])) == expected
    assert (seen["CPU_CORES"], seen["TOKEN"], seen["LEVEL"]) == ("32", SECRET, "3")
    assert seen["RAM_GIB"] == ("503" if memory == "max" else str(memory // 1024**3))


async def test_work_that_does_not_fit_is_not_tried(bed: Bed):
    """Where not one piece of work fits in memory, the run says so in numbers, and nothing is started."""
    bed.host.files[MEMORY_MAX] = f"{64 * 1024**3}\n"
    done = await bed.bench().measure(bed.target(), work())
    assert (done.reason, run_of(done).reason, run_of(done).rate) == (Reason.OUT_OF_MEMORY, Reason.OUT_OF_MEMORY, None)
    assert done.detail == ("64 GiB of memory less 100 GiB in reserve has no room for one piece of work of 6 GiB")
    assert not any("bench" in command for command in bed.host.commands)


async def test_unknown_memory_runs_one_at_a_time(bed: Bed):
    """A host that does not tell its memory is not overrun."""
    bed.host.files = {
        "/sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        "/sys/fs/cgroup/cpu.max": "350000 100000\n",
    }
    bed.host.programs["bench"] = prints(RATE)
    assert run_of(await bed.bench().measure(bed.target(), work())).ram_gib == pytest.approx(2**33, rel=0.01)
    bed.host.files = {}
    run = run_of(await bed.bench().measure(bed.target(), work()))
    assert (run.ram_gib, run.concurrency) == (None, 1)


async def test_quota_below_the_cores(bed: Bed):
    """Cores that a quota takes away are not counted."""
    bed.host.files["/sys/fs/cgroup/cpu.max"] = "350000 100000\n"
    bed.host.programs["bench"] = prints(RATE)
    assert run_of(await bed.bench().measure(bed.target(), work())).cpu_cores == 3


async def test_lowered_power_limit_is_told(bed: Bed):
    """A host that sells its GPU at less than full power is named beside the rate."""
    bed.host.gpus = (0, GPU.format(n=0, limit="300.00"))
    bed.host.programs["bench"] = prints(RATE)
    done = await bed.bench().measure(bed.target(), work())
    assert run_of(done).detail == f"{RATE.strip()}; power limit 300 W of 450 W"


@pytest.mark.parametrize(
    ("gpus", "reason"),
    [
        ((9, "No devices were found\n"), Reason.HOST_FAULT),
        ((255, "Failed to initialize NVML: Unknown Error\n"), Reason.HOST_FAULT),
        ((0, ""), Reason.HOST_FAULT),
        ((127, ""), Reason.MEASURED),
        ((0, "GPU 0, GPU-77, [N/A], [N/A], [N/A]\n"), Reason.MEASURED),
    ],
)
async def test_missing_gpu_is_the_hosts_fault(bed: Bed, gpus, reason):
    """A host without its GPU is not measured on its CPU; an image without nvidia-smi still is."""
    bed.host.gpus = gpus
    bed.host.programs["bench"] = prints(RATE)
    assert (await bed.bench().measure(bed.target(), work())).reason is reason


@pytest.mark.parametrize(
    ("output", "status", "reason"),
    [
        ("", 137, Reason.OUT_OF_MEMORY),
        ("sh: line 1: 4711 Killed   prove\n", 1, Reason.OUT_OF_MEMORY),
        ("| 15 | nan | CUDA out of memory |\n", 0, Reason.OUT_OF_MEMORY),
        ("terminate called after throwing an instance of 'std::bad_alloc'\n", 134, Reason.OUT_OF_MEMORY),
        ("Killing processes.. done\n" + RATE, 0, Reason.MEASURED),
        (RATE + "Killing processes.. done\nGPU 0: FAULTY\n", 0, Reason.HOST_FAULT),
        ("WARN Cannot instantiate kernel! Error: GPUError: No working GPUs found!\n" + RATE, 0, Reason.HOST_FAULT),
        ("Tested 1 GPUs:\n\tGPU 0: OK\n", 0, Reason.NO_RATE),
        ('{"rate": NaN}\n', 0, Reason.NO_RATE),
        ('{"rate": 61.4, "unit": "tokens/s"}\n', 0, Reason.NO_RATE),
        (RATE, 3, Reason.BENCHMARK_FAILED),
        ("sh: 1: bench: not found\n", 127, Reason.BENCHMARK_FAILED),
    ],
)
async def test_what_a_bad_run_is_called(bed: Bed, output, status, reason):
    """Text outranks the exit code, a failed run has no rate whatever it printed, and each failure has its name."""
    bed.host.programs["bench"] = prints(output, status=status)
    done = await bed.bench().measure(bed.target(), work())
    assert (done.reason, run_of(done).reason) == (reason, reason)
    assert (run_of(done).rate is not None) is (reason is Reason.MEASURED) is done.ok
    assert done.detail


async def test_stderr_is_never_a_result(bed: Bed):
    """A rate that stands on stderr, where banners come, is not read."""

    async def bench(process: Process) -> int:
        process.err(RATE)
        return 0

    bed.host.programs["bench"] = bench
    assert (await bed.bench().measure(bed.target(), work())).reason is Reason.NO_RATE
