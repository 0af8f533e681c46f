import asyncio
import logging
import re

import pytest
from asyncssh.packet import UInt32

from controller.bench.work import Result
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.bench.conftest import (
    GPU,
    MEMORY_MAX,
    ORIGIN,
    SECRET,
    Bed,
    LoopClock,
    Process,
    hangs,
    prints,
    work,
)

pytestmark = pytest.mark.looptime

RATE = '{"rate": 61.4, "unit": "proofs/h"}\n'


def elapsed() -> float:
    return asyncio.get_running_loop().time()


def run_of(result: Result) -> Run:
    assert result.run is not None
    return result.run


async def heard(bed: Bed, line: str) -> None:
    """Wait until the job told of a line."""
    while line not in bed.progress:
        await LoopClock().sleep(1)


# prepare


async def test_prepare_ends_with_its_command(bed: Bed):
    """Without doneWhen the preparation is done when its command exits well, and its lines are progress."""
    bed.host.programs["fetch"] = prints("10%\r", "50%\r", "100%\n", every_s=500)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch"), progress=bed.progress.append)
    assert (done.ok, done.reason, done.run) == (True, Reason.PREPARED, None)
    assert [line for line in bed.progress if "%" in line] == ["10%", "50%", "100%"]


async def test_prepare_is_done_when_a_line_matches(bed: Bed):
    """With doneWhen a command that would go on for ever is ended once the line is seen, by its own pid."""
    bed.host.programs["tail -F log"] = prints(
        "loading\n", "params: all parameters ready!\n", *["more\n"] * 9, every_s=60
    )
    ready = work(prepare_command="tail -F log", done_when="parameters? ready")
    done = await bed.bench().prepare(bed.target(), ready)
    assert (done.ok, done.reason) == (True, Reason.PREPARED)
    assert bed.host.signals == [("TERM", 101)]
    assert elapsed() < 150


async def test_prepare_that_ends_by_itself_after_its_line_is_not_killed(bed: Bed):
    """A command gets a moment to finish what it does after the line it is known by."""
    bed.host.programs["fetch"] = prints("ready\n", "cleaned up\n", every_s=5)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch", done_when="^ready$"))
    assert (done.ok, done.detail, bed.host.signals) == (True, "Have fun! | ready | cleaned up", [])


async def test_prepare_without_its_line_has_failed(bed: Bed):
    """A command that exits with 0 but never printed what doneWhen asks for has not prepared anything."""
    bed.host.programs["fetch"] = prints("mirror unreachable, skipped\n")
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch", done_when="ready"))
    assert (done.ok, done.reason) == (False, Reason.PREPARE_FAILED)
    assert "mirror unreachable, skipped" in done.detail


async def test_prepare_that_fails_shows_its_last_lines(bed: Bed):
    """A failed preparation tells its exit status and the last lines, and no more than those."""
    bed.host.programs["fetch"] = prints(*(f"line {n}\n" for n in range(1000)), "No space left on device\n", status=1)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch"))
    assert (done.reason, done.detail) == (
        Reason.PREPARE_FAILED,
        "exit status 1: line 998 | line 999 | No space left on device",
    )


async def test_prepare_that_falls_silent_has_stalled(bed: Bed):
    """Ten minutes without a line end a preparation, and its process; one line each nine minutes does not."""
    bed.host.programs["fetch"] = prints("10%\r", "20%\r", "30%\r", every_s=540)
    assert (await bed.bench().prepare(bed.target(), work(prepare_command="fetch"))).ok
    bed.host.programs["fetch"] = hangs
    began = elapsed()
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch"))
    assert (done.reason, bed.host.signals) == (Reason.PREPARE_STALLED, [("TERM", 102)])
    assert "printed nothing for 600 s; last: Have fun! | started" in done.detail
    assert 599 < elapsed() - began < 620


async def test_prepare_is_over_in_its_time(bed: Bed):
    """A preparation that goes on talking is ended at its timeout."""
    bed.host.programs["fetch"] = prints(*["still at it\n"] * 1000, every_s=60)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch", prepare_timeout_s=1800))
    assert (done.reason, bed.host.signals) == (Reason.PREPARE_TIMEOUT, [("TERM", 101)])
    assert 1799 < elapsed() < 1820


async def test_job_hangs_up(bed: Bed):
    """When a job is over its connection is, at once."""
    assert (await bed.bench().prepare(bed.target(), work())).ok
    assert elapsed() < 1
    while bed.host.connections:
        await LoopClock().sleep(1)


# measure


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
    ("memory", "gpus", "limit", "expected"),
    [
        (128 * 1024**3, 1, None, (4, 1)),
        (130 * 1024**3, 1, None, (5, 5)),
        (500 * 1024**3, 1, None, (5, 5)),
        (500 * 1024**3, 2, None, (10, 10)),
        (106 * 1024**3, 1, None, (1, 1)),
        (500 * 1024**3, 1, 2, (2, 1)),
        (500 * 1024**3, 1, 99, (5, 1)),
        ("max", 2, None, (10, 10)),
    ],
)
async def test_concurrency_fits_the_memory(bed: Bed, memory, gpus, limit, expected):
    """The benchmark runs as wide as the container's memory holds, five a GPU at most, and warms up in keeping."""
    seen: dict[str, str] = {}

    async def bench(process: Process) -> int:
        seen.update(process.env)
        process.out(RATE)
        return 0

    bed.host.programs["bench"] = bench
    bed.host.files[MEMORY_MAX] = f"{memory}\n"
    bed.host.gpus = (0, "".join(GPU.format(n=n, limit="450.00") for n in range(gpus)))
    done = await bed.bench().measure(bed.target(), work(gpu_count=gpus), concurrency_limit=limit)
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


async def test_timeout_ends_our_process_alone(bed: Bed):
    """A benchmark over its time is ended by its own pid; what else runs on the host goes on."""
    bed.host.programs |= {"serve": hangs, "bench": hangs}
    other = asyncio.ensure_future(
        bed.bench().prepare(bed.target(), work(prepare_command="serve", prepare_timeout_s=1e6))
    )
    await LoopClock().sleep(5)
    done = await bed.bench().measure(bed.target(), work(timeout_s=300))
    assert (done.reason, run_of(done).reason) == (Reason.BENCHMARK_TIMEOUT, Reason.BENCHMARK_TIMEOUT)
    assert [command for command in bed.host.commands if "kill" in command] == ["kill -TERM -108"]
    assert list(bed.host.running) == [101]
    other.cancel()


async def test_process_deaf_to_term_is_killed(bed: Bed):
    """What ignores SIGTERM gets SIGKILL ten seconds later."""
    bed.host.deaf = True
    bed.host.programs["bench"] = hangs
    await bed.bench().measure(bed.target(), work(timeout_s=300))
    assert [signal for signal, _ in bed.host.signals] == ["TERM", "KILL"]
    assert bed.host.running == {}


async def test_cancelled_job_ends_its_process(bed: Bed):
    """Cancelling a job ends what it runs before the job is gone."""
    bed.host.programs["bench"] = hangs
    job = asyncio.ensure_future(bed.bench().measure(bed.target(), work(), progress=bed.progress.append))
    await heard(bed, "started")
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert [signal for signal, _ in bed.host.signals] == ["TERM"]
    assert bed.host.running == {}


async def test_lost_connection_is_no_verdict(bed: Bed):
    """A connection cut mid-run is CONNECTION_LOST, without a rate, and the run left behind is ended over a new one."""
    bed.host.programs["bench"] = hangs
    job = asyncio.ensure_future(bed.bench().measure(bed.target(), work(), progress=bed.progress.append))
    await heard(bed, "started")
    bed.host.drop()
    done = await job
    assert (done.ok, done.reason, run_of(done).rate) == (False, Reason.CONNECTION_LOST, None)
    assert [signal for signal, _ in bed.host.signals] == ["TERM"]


async def test_lost_host_is_given_up(bed: Bed):
    """Where the host is gone for good the job still ends."""
    bed.host.programs["bench"] = hangs
    job = asyncio.ensure_future(bed.bench().measure(bed.target(), work(), progress=bed.progress.append))
    await heard(bed, "started")
    bed.host.authorized.clear()
    bed.host.drop()
    assert (await job).reason is Reason.CONNECTION_LOST


async def test_unreachable_measurement_has_a_run_too(bed: Bed):
    """A measurement that did not begin is recorded as one that failed."""
    run = run_of(await bed.bench().measure(bed.target(bed.dead_port), work()))
    assert (run.reason, run.rate, run.concurrency) == (Reason.SSH_UNREACHABLE, None, None)


# start and quiesce


async def test_start_sees_what_the_benchmark_saw(bed: Bed):
    """Production is started with the same variables, and is done when its command returns."""
    seen: dict[str, str] = {}

    async def start(process: Process) -> int:
        seen.update(process.env)
        return 0

    bed.host.programs["prove &"] = start
    done = await bed.bench().start(bed.target(), work(start="prove &"), concurrency_limit=2)
    assert (done.ok, done.run) == (True, None)
    assert (seen["CONCURRENCY"], seen["TOKEN"]) == ("2", SECRET)


async def test_start_returns_though_production_holds_its_output(bed: Bed):
    """A daemon that keeps the start command's output open does not keep the job."""

    async def start(process: Process) -> int:
        process.ssh.channel._send_request(b"exit-status", UInt32(0))  # and no end of output, as OpenSSH does
        await asyncio.Event().wait()
        return 0

    bed.host.programs["prove &"] = start
    assert (await bed.bench().start(bed.target(), work(start="prove &"))).ok
    assert elapsed() < 60


async def test_start_that_fails_or_does_not_return(bed: Bed):
    """A start command that exits badly, or runs on in the foreground, has failed, and is not left running."""
    bed.host.programs |= {"prove": hangs, "false": prints("no such binary\n", status=1)}
    done = await bed.bench().start(bed.target(), work(start="false"))
    assert (done.reason, "no such binary" in done.detail) == (Reason.START_FAILED, True)
    done = await bed.bench().start(bed.target(), work(start="prove"))
    assert (done.ok, done.reason, bed.host.running) == (False, Reason.START_FAILED, {})


async def test_quiesce_is_bounded_by_the_drain(bed: Bed):
    """The stop command gets drainSeconds, and a dead host does not delay a release for longer."""
    bed.host.programs |= {"stop": prints("drained\n", every_s=50), "hang": hangs}
    assert (await bed.bench().quiesce(bed.target(), work(stop="stop"))).ok
    began = elapsed()
    assert not (await bed.bench().quiesce(bed.target(), work(stop="hang", drain_seconds=30))).ok
    assert not (await bed.bench().quiesce(bed.target(bed.dead_port), work(stop="stop", drain_seconds=30))).ok
    assert elapsed() - began < 100


async def test_nothing_to_start_or_stop_needs_no_connection(bed: Bed):
    """A fleet without start and stop commands is not connected to for them."""
    assert (await bed.bench().start(bed.target(), work())).ok
    assert (await bed.bench().quiesce(bed.target(), work())).ok
    assert bed.host.connections == []


# secrets


async def test_secrets_stay_on_the_instance(bed: Bed, caplog: pytest.LogCaptureFixture):
    """Values of env that a host prints back are in no progress, result, run, exception or log line."""
    caplog.set_level(logging.DEBUG)
    echo = f"TOKEN={SECRET}\n"
    broken = 'key = """\nMARKER-second line\n'
    secrets = {"TOKEN": SECRET, "PEM": "-----\nMARKER-second line\n-----"}
    bed.host.programs |= {
        "fetch": prints(echo, broken, status=1),
        "bench": prints(echo + '{"rate": 1, "unit": "' + SECRET + '/h"}\n'),
        "prove": hangs,
    }
    job = work(env=secrets, prepare_command="fetch", start="prove")
    results = [
        await bed.bench().prepare(bed.target(), job, progress=bed.progress.append),
        await bed.bench().measure(bed.target(), job, progress=bed.progress.append),
        await bed.bench().start(bed.target(), job, progress=bed.progress.append),
    ]
    everything = f"{results} {bed.progress} {caplog.text} {job!r}"
    assert "TOKEN=***" in everything
    assert re.findall("MARKER.*", everything) == []
    assert any(SECRET in command for command in bed.host.commands)
