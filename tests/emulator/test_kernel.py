import pytest

pytestmark = pytest.mark.looptime


async def stat(box):
    """Return cpu.stat's counts by name."""
    lines = (await box.out("cat /sys/fs/cgroup/cpu.stat")).splitlines()
    return {name: int(count) for name, count in (line.split() for line in lines)}


async def test_a_start_of_the_container_has_a_time_of_its_own(rent):
    """/proc/1/stat has 52 fields; the 22nd is the same until the container starts again, boot_id for ever."""
    box = await rent()
    look = "cat /proc/1/stat /proc/sys/kernel/random/boot_id"
    first = (await box.out(look)).splitlines()
    await box.pass_time(1000)
    assert (await box.out(look)).splitlines() == first
    await box.api("PUT", f"v0/instances/reboot/{box.number}/")
    await box.api.running(box.number)
    second = (await box.out(look)).splitlines()
    before, after = first[0].split(), second[0].split()
    assert len(before) == len(after) == 52
    assert [n for n in range(1, 53) if before[n - 1] != after[n - 1]] == [22]
    assert int(after[21]) > int(before[21])
    assert first[1] == second[1]


async def test_machines_have_boot_ids_of_their_own(make, rent):
    """Two instances on one machine see the same boot_id, one on another machine sees another."""
    one = {"model": "RTX 4090", "gpus": 2, "parts": 2}
    box = await rent(market={"offers": 0, "machines": [one, {"model": "RTX 5090"}]})
    ids = {box.contract.slot.machine_id: {await box.out("cat /proc/sys/kernel/random/boot_id")}}
    for offer in await box.api.offers():
        other = type(box)(box.api, await box.api.rent(offer))
        await box.api.running(other.number)
        seen = await other.out("cat /proc/sys/kernel/random/boot_id")
        ids.setdefault(other.contract.slot.machine_id, set()).add(seen)
    assert [len(seen) for seen in ids.values()] == [1, 1]
    assert len(set.union(*ids.values())) == 2


async def test_a_throttled_cpu_shows_in_its_counts(rent):
    """Work slowed by its quota raises throttled_usec while it works, by a third of the time, and the pressure."""
    box = await rent(troubles=[{"kind": "cpu-throttled", "after": 3600, "seconds": 7200}])
    quiet = await stat(box)
    await box.out("json-bench --seconds 600")
    free = await stat(box)
    assert free["usage_usec"] > quiet["usage_usec"]
    assert (free["nr_throttled"], free["throttled_usec"]) == (0, 0)
    await box.pass_time(3600)
    assert (await stat(box))["throttled_usec"] == 0
    await box.out("json-bench --seconds 600")
    held = await stat(box)
    assert held["throttled_usec"] == pytest.approx(0.35 * 600e6, rel=1e-3)
    assert held["nr_throttled"] == held["throttled_usec"] // 100_000


async def test_what_runs_now_is_counted_too(rent):
    """While a throttled daemon works, each look sees more throttled time, and a pressure; a restart counts anew."""
    box = await rent(troubles=[{"kind": "cpu-throttled"}])
    assert "some avg10=0.00 " in await box.out("cat /sys/fs/cgroup/cpu.pressure")
    await box.out("cuzk-daemon > /dev/null &")
    seen = []
    for _ in range(3):
        await box.pass_time(100)
        seen.append((await stat(box))["throttled_usec"])
    assert seen[1] - seen[0] == pytest.approx(35e6, rel=1e-3)
    assert seen[2] - seen[1] == pytest.approx(35e6, rel=1e-3)
    assert "some avg10=35.00 " in await box.out("cat /sys/fs/cgroup/cpu.pressure")
    await box.api("PUT", f"v0/instances/reboot/{box.number}/")
    await box.api.running(box.number)
    assert (await stat(box))["throttled_usec"] == 0
