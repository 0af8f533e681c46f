import pytest

from controller.bench.work import Result
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.bench.conftest import (
    BOOT,
    BOOTED,
    MEMORY_EVENTS,
    MEMORY_MAX,
    WARM,
    Bed,
    LoopClock,
    Process,
    Program,
    hangs,
    work,
)

pytestmark = pytest.mark.looptime

RATE = '{"rate": 61.4, "unit": "proofs/h"}\n'
SIZES = ("CONCURRENCY", "WARMUP", "PARTITION_WORKERS")


def run_of(result: Result) -> Run:
    assert result.run is not None
    return result.run


def seeing(seen: list[tuple[str, ...]], text: str = "", status: int = 0) -> Program:
    """A program that notes how wide it is to work, prints, and exits."""

    async def program(process: Process) -> int:
        seen.append(tuple(process.env[name] for name in SIZES))
        process.out(text)
        return status

    return program


@pytest.fixture
def cold(bed: Bed) -> Bed:
    """A container that tells when it was started, with room for any width."""
    bed.host.files |= {**BOOT, MEMORY_MAX: f"{500 * 1024**3}\n"}
    return bed


async def test_narrow_then_wide_once_a_container(cold: Bed):
    """A cold container is warmed up narrow, then measured wide; a warm one only measured; one started anew is cold."""
    warmups: list[tuple[str, ...]] = []
    runs: list[tuple[str, ...]] = []
    cold.host.programs |= {"warm": seeing(warmups), "bench": seeing(runs, RATE)}
    job = work(warmup_command="warm")
    assert run_of(await cold.bench().measure(cold.target(), job)).concurrency == 5
    assert (warmups, runs) == ([("1", "1", "2")], [("5", "0", "")])
    assert cold.host.files[WARM] == f"{BOOTED}\n"
    await cold.bench().measure(cold.target(), job)
    assert (len(warmups), runs[1:]) == (1, [("5", "0", "")])
    cold.host.files["/proc/1/stat"] = BOOT["/proc/1/stat"].replace("4711", "99999")
    await cold.bench().measure(cold.target(), job)
    assert (len(warmups), len(runs)) == (2, 3)


async def test_run_begins_after_its_warm_up(cold: Bed):
    """The time of a warm-up, however long, is not the run's."""

    async def warm(process: Process) -> int:
        await LoopClock().sleep(1500)
        return 0

    cold.host.programs |= {"warm": warm, "bench": seeing([], RATE)}
    run = run_of(await cold.bench().measure(cold.target(), work(warmup_command="warm")))
    assert run.ended_at - run.started_at < 60


async def test_without_a_warm_up_the_benchmark_makes_its_own(cold: Bed):
    """Without a warm-up command the first benchmark of a container is told to warm up, and the next is not."""
    runs: list[tuple[str, ...]] = []
    cold.host.programs["bench"] = seeing(runs, RATE)
    for _ in range(2):
        assert (await cold.bench().measure(cold.target(), work())).ok
    assert runs == [("5", "5", ""), ("5", "0", "")]


@pytest.mark.parametrize("missing", sorted(BOOT))
async def test_container_that_does_not_tell_its_start_is_cold(cold: Bed, missing):
    """Where it cannot be told whether a container was started anew, it is warmed up each time."""
    warmups: list[tuple[str, ...]] = []
    cold.host.programs |= {"warm": seeing(warmups), "bench": seeing([], RATE)}
    del cold.host.files[missing]
    for _ in range(2):
        assert (await cold.bench().measure(cold.target(), work(warmup_command="warm"))).ok
    assert (len(warmups), WARM in cold.host.files) == (2, False)


async def test_benchmark_that_failed_warms_nothing(cold: Bed):
    """A container stays cold when its benchmark gave no rate, but for a warm-up that ended well before it."""
    cold.host.programs |= {"warm": seeing([]), "bench": seeing([], "nothing\n")}
    assert not (await cold.bench().measure(cold.target(), work())).ok
    assert WARM not in cold.host.files
    assert not (await cold.bench().measure(cold.target(), work(warmup_command="warm"))).ok
    assert WARM in cold.host.files


@pytest.mark.parametrize(
    ("text", "status", "events", "reason"),
    [
        ("no such file\n", 2, 0, Reason.BENCHMARK_FAILED),
        ("Killed\n", 137, 0, Reason.OUT_OF_MEMORY),
        ("went on\n", 0, 1, Reason.OUT_OF_MEMORY),
        ("GPU 0: FAULTY\n", 0, 0, Reason.HOST_FAULT),
    ],
)
async def test_warm_up_that_fails(cold: Bed, text, status, events, reason):
    """A warm-up that failed is told as one, by its own reason, as narrow as it was; no benchmark follows it."""
    runs: list[tuple[str, ...]] = []

    async def warm(process: Process) -> int:
        cold.host.files[MEMORY_EVENTS] = f"oom_kill {events}\n"
        process.out(text)
        return int(status)

    cold.host.files[MEMORY_EVENTS] = "oom_kill 0\n"
    cold.host.programs |= {"warm": warm, "bench": seeing(runs, RATE)}
    done = await cold.bench().measure(cold.target(), work(warmup_command="warm"))
    assert (done.reason, run_of(done).rate, run_of(done).concurrency, runs) == (reason, None, 1, [])
    assert done.detail.startswith("warm-up: ")
    assert WARM not in cold.host.files


async def test_warm_up_over_its_time(cold: Bed):
    """A warm-up has a limit of its own, and is ended by it."""
    cold.host.programs["warm"] = hangs
    done = await cold.bench().measure(cold.target(), work(warmup_command="warm", warmup_timeout_s=600))
    assert (done.reason, cold.host.running) == (Reason.BENCHMARK_TIMEOUT, {})
    assert done.detail.startswith("warm-up: not done in 600 s")
