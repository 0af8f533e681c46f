import re
from pathlib import Path

import pytest

from controller.emulator import Scenario

pytestmark = pytest.mark.looptime

COLD = Path(__file__).parents[2] / "examples/scenarios/cold-cache.yaml"
WIDE = "cuzk-bench batch --count 12 -c 10"


async def chilled(rent):
    """Return a running instance of the example's machine: two GPUs, 75 GiB, a cold cache."""
    return await rent(**Scenario.load(COLD).model_dump(mode="json", by_alias=True, include={"market", "prover"}))


async def kills(box):
    """Return how many the kernel says it has killed."""
    match = re.search(r"^oom_kill (\d+)$", await box.out("cat /sys/fs/cgroup/memory.events"), re.MULTILINE)
    assert match
    return int(match[1])


async def test_a_cold_cache_kills_a_wide_run_and_a_narrow_warm_up_lets_it_through(rent):
    """On the example's machine ten workers are killed while the cache is cold, two fit, and then ten do."""
    cold = await chilled(rent)
    assert await cold.out("cat /sys/fs/cgroup/memory.max") == f"{75 * 2**30}\n"
    code, out, err = await cold(WIDE)
    assert (code, err, "COMPLETED" in out) == (137, "Killed\n", False)
    assert "cache ready" in await cold.out("cuzk-bench warm-up --partition-workers 2")
    assert "completed:     12" in await cold.out(WIDE)


async def test_the_environment_says_how_many_workers_there_are(rent):
    """PARTITION_WORKERS counts where no option does, and an empty one is none; any batch that ends well warms up."""
    cold = await chilled(rent)
    narrow = "cuzk-bench batch --count 1 -c 1"
    assert (await cold(f"export PARTITION_WORKERS=\n{narrow}"))[0] == 137
    assert (await cold(f"export PARTITION_WORKERS=2\n{narrow} --partition-workers 10"))[0] == 137
    assert (await cold(f"export PARTITION_WORKERS=2\n{narrow}"))[0] == 0
    assert (await cold(WIDE))[0] == 0


async def test_the_cache_outlives_a_restart_and_not_the_container(rent):
    """A reboot keeps the cache with the disk; a recycle makes a new container, whose cache is cold."""
    cold = await chilled(rent)
    await cold.out("cuzk-bench warm-up --partition-workers 2")
    for order, code in (("reboot", 0), ("recycle", 137)):
        await cold.api("PUT", f"v0/instances/{order}/{cold.number}/")
        await cold.api.running(cold.number)
        assert (await cold(WIDE))[0] == code


async def test_a_warm_cache_is_not_warmed_twice(rent):
    """A second warm-up compiles nothing."""
    cold = await chilled(rent)
    assert "compiled circuit 4/4" in await cold.out("cuzk-bench warm-up --partition-workers 2")
    assert await cold.out("cuzk-bench warm-up") == "cache ready\n"


async def test_production_needs_the_memory_too(rent):
    """A daemon with a cold cache is killed as a benchmark is."""
    cold = await chilled(rent)
    assert (await cold("cuzk-daemon -c 5"))[0] == 137


async def test_the_kernel_counts_what_it_kills(rent):
    """Each kill raises oom_kill by one, and the count begins anew with the container's next start."""
    cold = await chilled(rent)
    assert await kills(cold) == 0
    for count in (1, 2):
        await cold(WIDE)
        assert await kills(cold) == count
    await cold.api("PUT", f"v0/instances/reboot/{cold.number}/")
    await cold.api.running(cold.number)
    assert await kills(cold) == 0


async def test_the_kernels_log_is_closed_unless_the_scenario_opens_it(rent):
    """Reading dmesg is not permitted; where it is, it tells which process was killed."""
    tight = {"baseGib": 10_000}
    shut = await rent(prover=tight)
    assert await shut("dmesg") == (1, "", "dmesg: read kernel buffer failed: Operation not permitted\n")
    open_ = await rent(prover=tight, kernelLog=True)
    assert await open_.out("dmesg") == ""
    await open_(WIDE)
    assert re.search(r"^\[\d+\.\d{6}\] Out of memory: Killed process \d+ \(cuzk-bench\)", await open_.out("dmesg"))


async def test_a_parent_may_outlive_its_killed_child_and_not_tell(rent):
    """Where the scenario says so, a run out of memory exits with 0, its log cut short; the kernel's count tells."""
    box = await rent(prover={"baseGib": 10_000}, troubles=[{"kind": "quiet-oom"}])
    code, out, err = await box(WIDE)
    assert (code, err, "Summary" in out, out.endswith("\n")) == (0, "", False, False)
    assert await kills(box) == 1
