import pytest

from controller.bench.conditions import gpus
from controller.bench.telemetry import sample_of
from controller.bench.work import Result
from controller.model.faults import Refused
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.bench.conftest import CPU_STAT, GPU, MEMORY_EVENTS, Bed, LoopClock, Process, prints, work

pytestmark = pytest.mark.looptime

RATE = '{"rate": 61.4, "unit": "proofs/h"}\n'
SAMPLE = "nvidia-smi --query-gpu=temperature.gpu"
NEW, OLD = f"{SAMPLE},clocks_event_reasons.active", f"{SAMPLE},clocks_throttle_reasons.active"
STAT = "usage_usec 1\nuser_usec 1\nsystem_usec 0\nnr_periods {had}\nnr_throttled {held}\nthrottled_usec 99999\n"


def run_of(result: Result) -> Run:
    assert result.run is not None
    return result.run


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["71, 0x0000000000000004"], (71.0, {"SwPowerCap"})),
        (["64, 0x0000000000000001", "92, 0x0000000000000060"], (92.0, {"SwThermal", "HwThermal"})),
        (["70, 0x88"], (70.0, {"HwSlowdown", "HwPowerBrake"})),
        (["[N/A], [N/A]"], (None, set())),
        (["N/A, 0x0000000000000000"], (None, set())),
        (["Unable to determine the device handle"], (None, set())),
        ([], (None, set())),
    ],
)
def test_samples(lines, expected):
    """A mask is read as nvidia-smi's names, the hottest GPU counts, and what is not available is nothing."""
    assert sample_of(lines) == expected


async def test_conditions_are_recorded(bed: Bed):
    """A run tells its power limit, driver, image, temperature, share of the machine and neighbours."""
    bed.host.gpus = (0, GPU.format(n=1, limit="450.00") + GPU.format(n=0, limit="300.00"))
    bed.host.programs["bench"] = prints(RATE, every_s=100)
    run = run_of(await bed.bench().measure(bed.target(gpu_fraction=0.25, neighbours=1), work(image="example/p:1")))
    assert (run.power_limit_w, run.power_default_w, run.driver) == (300.0, 450.0, "580.65.06")
    assert (run.gpu_fraction, run.neighbours, run.image) == (0.25, 1, "example/p:1")
    assert (run.temperature_c, run.throttled, run.cpu_throttled) == (71.0, "SwPowerCap", None)
    assert (run.disturbed, run.gpu_uuid) == (False, "GPU-5d1f-0,GPU-5d1f-1")


async def test_heat_in_the_middle_of_a_run(bed: Bed):
    """A GPU slowed by heat for a minute, and cool at the end, disturbed the run; the detail says by what."""

    async def bench(process: Process) -> int:
        await LoopClock().sleep(300)
        bed.host.answers[SAMPLE] = (0, "92, 0x0000000000000064\n")
        await LoopClock().sleep(60)
        bed.host.answers[SAMPLE] = (0, "60, 0x0000000000000001\n")
        await LoopClock().sleep(300)
        process.out(RATE)
        return 0

    bed.host.programs["bench"] = bench
    run = run_of(await bed.bench().measure(bed.target(), work()))
    assert (run.rate, run.throttled, run.temperature_c) == (61.4, "HwThermal,SwPowerCap,SwThermal", 92.0)
    assert (run.disturbed, run.detail) == (True, f"{RATE.strip()}; the GPU was slowed by HwThermal, SwThermal")


async def test_samples_are_few_and_short(bed: Bed):
    """A run is asked about twice a minute, by one question each time."""
    bed.host.programs["bench"] = prints(RATE, every_s=600)
    await bed.bench().measure(bed.target(), work())
    asked = [command for command in bed.host.commands if command.startswith(SAMPLE)]
    assert 18 <= len(asked) <= 22


async def test_older_driver(bed: Bed):
    """A driver that does not know the word is asked once in it, and from then on in the older one."""
    refusal = (2, 'Field "clocks_event_reasons.active" is not a valid field to query.\n')
    bed.host.answers = {NEW: refusal, OLD: (0, "90, 0x0000000000000020\n"), **bed.host.answers}
    bed.host.programs["bench"] = prints(RATE, every_s=300)
    assert run_of(await bed.bench().measure(bed.target(), work())).throttled == "SwThermal"
    assert bed.host.commands.count(f"{NEW} --format=csv,noheader") == 1


@pytest.mark.parametrize("answer", [(127, ""), (9, "NVIDIA-SMI has failed\n"), (0, "gibberish\n"), (0, "")])
async def test_question_that_fails_is_no_evidence(bed: Bed, answer):
    """Where nvidia-smi fails during a run, the run is measured all the same, and nothing is held against it."""
    bed.host.answers[SAMPLE] = answer
    bed.host.programs["bench"] = prints(RATE, every_s=300)
    done = await bed.bench().measure(bed.target(), work())
    assert (done.reason, run_of(done).throttled, run_of(done).disturbed) == (Reason.MEASURED, "", False)


@pytest.mark.parametrize(
    ("path", "held", "share", "disturbed"),
    [
        (CPU_STAT, 300, 0.05, False),
        (CPU_STAT, 2100, 0.35, True),
        ("/sys/fs/cgroup/cpu/cpu.stat", 2100, 0.35, True),
        (CPU_STAT, 0, 0.0, False),
    ],
)
async def test_quota_that_held_the_cores_back(bed: Bed, path, held, share, disturbed):
    """The share of a run's time in which its quota was used up is recorded, and disturbs it from a tenth on."""

    async def bench(process: Process) -> int:
        bed.host.files[path] = STAT.format(had=7000, held=500 + held)
        process.out(RATE)
        return 0

    bed.host.files[path] = STAT.format(had=1000, held=500)
    bed.host.programs["bench"] = bench
    run = run_of(await bed.bench().measure(bed.target(), work()))
    assert run.cpu_throttled == pytest.approx(share)
    assert run.disturbed is disturbed
    assert ("held its cores back for 35% of the time" in run.detail) is disturbed


async def test_failed_run_tells_its_conditions_too(bed: Bed):
    """A run that failed by its time has been watched all the same."""
    bed.host.programs["bench"] = prints(*["still at it\n"] * 100, every_s=60)
    run = run_of(await bed.bench().measure(bed.target(), work(timeout_s=900)))
    assert (run.reason, run.temperature_c) == (Reason.BENCHMARK_TIMEOUT, 71.0)


async def test_absurd_figures_are_none(bed: Bed):
    """What a host prints in thousands of digits is not known; the run is measured, and can be written down."""
    digits = "9" * 4000
    bed.host.files["/proc/meminfo"] = f"MemTotal: {digits} kB\n"
    bed.host.files["/sys/fs/cgroup/memory.max"] = f"{digits}\n"
    bed.host.files["/sys/fs/cgroup/cpu.max"] = f"{digits} 100000\n"
    bed.host.files[MEMORY_EVENTS] = f"oom_kill {digits}\n"
    bed.host.files[CPU_STAT] = f"nr_periods {digits}\nnr_throttled {digits}\n"
    bed.host.answers["nproc"] = (0, f"{digits}\n")
    bed.host.answers[SAMPLE] = (0, f"{digits}, 0x0000000000000004\n")
    bed.host.programs["bench"] = prints(RATE)
    run = run_of(await bed.bench().measure(bed.target(), work()))
    assert (run.rate, run.ram_gib, run.cpu_cores, run.temperature_c) == (61.4, None, None, None)


@pytest.mark.parametrize("watts", ["1.2.3", "9" * 4000, "inf"])
def test_a_power_limit_that_is_none_is_no_gpu(watts):
    """A GPU whose line cannot be read is not taken for a sound one."""
    with pytest.raises(Refused, match="0 of 1 GPUs"):
        gpus(0, [f"RTX 4090, GPU-5d1f, 24564 MiB, {watts} W, 450.00 W"], expected=1)
