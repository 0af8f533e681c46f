"""The jobs against the emulator's instances over SSH: another hand wrote what answers here."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx
import pytest

from controller.bench.work import Work
from controller.emulator import Emulator, LoopClock, Scenario
from controller.model.reasons import Reason
from tests.bench.rented import ATTACH_S, Rented, public

pytestmark = pytest.mark.looptime


def work(**changes: Any) -> Work:
    base: dict[str, Any] = {
        "fleet": "provers",
        "shape": "RTX 4090 x1",
        "workload": "w",
        "gpu_count": 1,
        "unit": "proofs/h",
        "command": "cuzk-bench batch --count 12 -c $CONCURRENCY --warmup $WARMUP",
        "format": "cuzk",
        "reserve_gib": 100,
        "per_proof_gib": 6,
        "prepare_command": "fetch-params --size-gib 20",
        "done_when": "parameters ready",
        "start": "cuzk-daemon -c $CONCURRENCY > /var/log/prover.log 2>&1 &",
        "stop": "pkill cuzk-daemon",
    }
    return Work(**base | changes)


Rent = Callable[..., Awaitable[Rented]]


@pytest.fixture
async def rent() -> AsyncIterator[Rent]:
    made: list[Rented] = []

    async def one(*, known_key: bool = True, gpus: int = 1, ram_mib: int = 140_000, **fields: Any) -> Rented:
        scenario = Scenario.model_validate({"limits": {"enabled": False}, "attachSeconds": ATTACH_S, **fields})
        emulator = Emulator(clock=LoopClock(1_800_000_000.0), scenario=scenario)
        emulator.open_ssh()
        transport = httpx.ASGITransport(emulator.app)
        http = httpx.AsyncClient(
            transport=transport, base_url="http://vast", headers={"Authorization": "Bearer emulator-key"}
        )
        if known_key:
            await http.post("/api/v0/ssh/", json={"ssh_key": public()})
        wanted = {"gpu_name": {"eq": "RTX 4090"}, "num_gpus": {"eq": gpus}, "cpu_ram": {"gte": ram_mib}}
        offers = (await http.post("/api/v0/bundles/", json=wanted)).json()["offers"]
        order = {"client_id": "me", "image": "example/prover:1", "disk": 60, "runtype": "ssh_direc ssh_proxy"}
        answer = (await http.put(f"/api/v0/asks/{offers[0]['id']}/", json=order)).json()
        contract = emulator.world.contracts[answer["new_contract"]]
        await emulator.wait_for(lambda: contract.actual == "running")
        made.append(Rented(emulator, http, contract))
        return made[-1]

    yield one
    for rented in made:
        await rented.http.aclose()
        await rented.emulator.close()


async def test_from_first_contact_to_production(rent: Rent):
    """An instance is prepared, measured, put to work, measured again beside nobody, and quiesced."""
    rented = await rent()
    prepared = await rented.bench.prepare(rented.target(), work(), progress=rented.progress.append)
    assert (prepared.ok, prepared.reason) == (True, Reason.PREPARED)
    assert any("10.0/20.0 GiB" in line for line in rented.progress)
    target = rented.target(prepared.host_key)
    measured = await rented.bench.measure(target, work())
    assert (measured.ok, measured.reason) == (True, Reason.MEASURED)
    run = measured.run
    assert run is not None
    assert run.rate is not None
    assert 30 < run.rate < 90
    assert (run.count, run.gpu_uuid.startswith("GPU-"), run.machine_id) == (12, True, rented.contract.slot.machine_id)
    assert run.ram_gib == pytest.approx(rented.contract.ram_bytes / 1024**3)
    assert run.error is not None
    assert 0.03 <= run.error < 0.10
    started = await rented.bench.start(target, work())
    assert (started.ok, rented.emulator.world.proving[rented.contract.slot.machine_id]) == (True, 1)
    quiesced = await rented.bench.quiesce(target, work())
    await rented.emulator.world.clock.sleep(1)
    assert (quiesced.ok, rented.emulator.world.proving[rented.contract.slot.machine_id]) == (True, 0)


async def test_key_that_the_instance_does_not_know(rent: Rent):
    """An instance made without our key gets it attached, and is reached once it has it."""
    rented = await rent(known_key=False)
    assert (await rented.bench.prepare(rented.target(), work())).ok


@pytest.mark.parametrize(
    ("trouble", "reason"),
    [
        ({"kind": "direct-refused"}, Reason.PREPARED),
        ({"kind": "proxy-refused"}, Reason.PREPARED),
        ({"kind": "key-refused", "seconds": 200}, Reason.PREPARED),
        ({"kind": "key-refused"}, Reason.SSH_REFUSED),
        ({"kind": "download-stall"}, Reason.PREPARE_STALLED),
    ],
)
async def test_trouble_while_preparing(rent: Rent, trouble, reason):
    """One dead route or a late key is got over; a key refused for good and a download that stalls are named."""
    rented = await rent(troubles=[trouble])
    assert (await rented.bench.prepare(rented.target(), work())).reason is reason


async def test_more_work_than_memory(rent: Rent):
    """A benchmark that needs more than it declares is killed by the kernel, and that is what its run says."""
    rented = await rent(prover={"perProofGib": 1000})
    done = await rented.bench.measure(rented.target(), work())
    assert done.reason is Reason.OUT_OF_MEMORY


async def test_connection_that_drops(rent: Rent):
    """A connection cut mid-run ends the job without a rate; the next one works and is undisturbed by the first."""
    rented = await rent(troubles=[{"kind": "ssh-drop", "after": 600}])
    done = await rented.bench.measure(rented.target(), work())
    assert (done.reason, done.run is not None and done.run.rate) == (Reason.CONNECTION_LOST, None)
    assert (await rented.bench.measure(rented.target(), work())).ok
    assert rented.emulator.world.proving[rented.contract.slot.machine_id] == 0


async def test_host_key_that_changes(rent: Rent):
    """An instance that comes back with another host key is not spoken to."""
    rented = await rent(troubles=[{"kind": "host-key-changed", "after": 300}])
    first = await rented.bench.prepare(rented.target(), work(prepare_command=""))
    await rented.emulator.world.clock.sleep(600)
    again = await rented.bench.prepare(rented.target(first.host_key), work())
    assert (first.ok, again.reason) == (True, Reason.HOST_KEY_CHANGED)


async def test_host_that_is_lost(rent: Rent):
    """A host that goes away mid-run ends the job, though nothing answers any more."""
    rented = await rent(troubles=[{"kind": "host-lost", "after": 600}])
    assert (await rented.bench.measure(rented.target(), work())).reason is Reason.CONNECTION_LOST


async def test_cancelled_measurement_leaves_nothing_behind(rent: Rent):
    """A measurement that is called off proves no further."""
    rented = await rent()
    job = asyncio.ensure_future(rented.bench.measure(rented.target(), work(), progress=rented.progress.append))
    await rented.heard("COMPLETED")
    assert rented.emulator.world.proving[rented.contract.slot.machine_id] == 1
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert rented.emulator.world.proving[rented.contract.slot.machine_id] == 0


COLD: dict[str, Any] = {
    "market": {"offers": 0, "machines": [{"model": "RTX 4090", "gpus": 2, "ramGib": 75}]},
    "prover": {"baseGib": 40, "perProofGib": 3, "coldPerWorkerGib": 6},
    "gpus": 2,
    "ram_mib": 70_000,
}
NARROW = {"gpu_count": 2, "reserve_gib": 40, "per_proof_gib": 3, "warmup_command": "cuzk-bench warm-up"}


async def test_cold_cache_of_two_gpus_is_warmed_up_narrow(rent: Rent):
    """75 GiB that a wide run overruns while the cache is cold are enough for one warmed up narrow, then run wide."""
    rented = await rent(**COLD)
    measured = await rented.bench.measure(rented.target(), work(**NARROW), progress=rented.progress.append)
    assert (measured.reason, measured.run is not None and measured.run.concurrency) == (Reason.MEASURED, 10)
    proving = next(at for at, said in enumerate(rented.progress) if "COMPLETED" in said)
    assert rented.progress.index("warming up") < proving
    rented.progress.clear()
    assert (await rented.bench.measure(rented.target(), work(**NARROW), progress=rented.progress.append)).ok
    assert "warming up" not in rented.progress


async def test_cold_cache_without_a_warm_up(rent: Rent):
    """Without one the kill is recognised, also where the parent hides it; what ran out narrow is not run again."""
    for troubles in ([], [{"kind": "quiet-oom"}]):
        rented = await rent(**COLD, troubles=troubles)
        bare = work(**{**NARROW, "warmup_command": ""})
        ran_out: tuple[tuple[float | None, int], ...] = ()
        widths: list[int] = []
        while len(widths) < 9:
            done = await rented.bench.measure(rented.target(), bare, ran_out=ran_out)
            assert (done.reason, done.run is not None and done.run.rate) == (Reason.OUT_OF_MEMORY, None)
            assert done.run is not None
            if done.run.concurrency is None:
                break
            widths.append(done.run.concurrency)
            ran_out = (*ran_out, (done.run.ram_gib, done.run.concurrency))
        assert widths == [10, 5, 2, 1]
        assert done.detail.endswith("raise require.ramGiB above 75")


async def test_memory_overrun_wide_is_retried_narrower(rent: Rent):
    """A benchmark that needs more than it declares is killed wide, and measured at half the width after that."""
    rented = await rent(**{**COLD, "prover": {"baseGib": 40, "perProofGib": 6}})
    bare = work(**{**NARROW, "warmup_command": ""})
    first = (await rented.bench.measure(rented.target(), bare)).run
    assert first is not None
    assert (first.reason, first.concurrency) == (Reason.OUT_OF_MEMORY, 10)
    then = (await rented.bench.measure(rented.target(), bare, ran_out=((first.ram_gib, 10),))).run
    assert then is not None
    assert (then.reason, then.concurrency, then.rate is not None) == (Reason.MEASURED, 5, True)


@pytest.mark.parametrize(
    ("trouble", "expected"),
    [
        ({"kind": "hot"}, {"throttled": "HwThermal,SwThermal", "temperature_c": 92.0, "disturbed": True}),
        ({"kind": "cpu-throttled"}, {"cpu_throttled": 0.35, "disturbed": True}),
        ({"kind": "power-capped"}, {"power_limit_w": 315.0, "power_default_w": 450.0, "disturbed": False}),
        ({"kind": "old-driver"}, {"throttled": "SwPowerCap", "temperature_c": 71.0, "disturbed": False}),
    ],
)
async def test_what_slows_a_run_is_recorded(rent: Rent, trouble, expected):
    """Heat, a quota, a lowered power limit and a driver of older words are in the run's record."""
    rented = await rent(troubles=[trouble])
    run = (await rented.bench.measure(rented.target(), work())).run
    assert run is not None
    assert {name: getattr(run, name) for name in expected} == {
        name: pytest.approx(value, abs=0.02) if isinstance(value, float) else value for name, value in expected.items()
    }


@pytest.mark.parametrize("bar", ["", " --bar"])
async def test_slow_download_is_given_its_time(rent: Rent, bar):
    """A download that takes longer than its limit, and gets on, is told to be slow and ends well."""
    rented = await rent(troubles=[{"kind": "slow-download", "factor": 0.02}])
    slow = work(prepare_command=f"fetch-params --size-gib 30{bar}", prepare_timeout_s=20 * 60)
    began = rented.emulator.world.time
    done = await rented.bench.prepare(rented.target(), slow, progress=rented.progress.append)
    assert done.ok, done.detail
    assert rented.emulator.world.time - began > 20 * 60
    assert any(line.startswith("slow: ") and "%/min" in line and "to go" in line for line in rented.progress)


async def test_retries_are_a_stall(rent: Rent):
    """A download that prints the same figure for ever has stalled there."""
    rented = await rent(troubles=[{"kind": "download-retries"}])
    done = await rented.bench.prepare(rented.target(), work(), progress=rented.progress.append)
    assert (done.reason, "stalled at 40 %" in done.detail) == (Reason.PREPARE_STALLED, True)
    assert any("stalled at 40 % for 8 min" in line for line in rented.progress)


async def test_production_is_read_while_it_works(rent: Rent):
    """What production makes is read without disturbing it; where nothing works, there is nothing to read."""
    rented = await rent()
    job = work(production_command="cuzk-daemon status")
    assert not (await rented.bench.read(rented.target(), job)).ok
    assert (await rented.bench.start(rented.target(), job)).ok
    measured = [(await rented.bench.read(rented.target(), job)).run for _ in range(3)]
    assert all(run is not None and run.rate is not None and 30 < run.rate < 90 for run in measured)
    assert rented.emulator.world.proving[rented.contract.slot.machine_id] == 1
