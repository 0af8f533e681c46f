import json

import pytest

pytestmark = pytest.mark.looptime

ONE = {"offers": 0, "machines": [{"model": "RTX 4090", "id": 501}]}
HOUR = 3600


async def rates(box, *times):
    """Measure at each time, in seconds after the emulator's start."""
    found = []
    for at in times:
        await box.until(at)
        found.append(await box.rate())
    return found


async def ratios(rent, trouble, *times, **fields):
    """Return what a trouble leaves of the rate at each time; two emulators of one seed are alike but for it."""
    spoilt = await rates(await rent(market=ONE, troubles=[trouble], **fields), *times)
    sound = await rates(await rent(market=ONE, **fields), *times)
    return [a / b for a, b in zip(spoilt, sound, strict=True)]


@pytest.mark.parametrize("kind", ["disturbed", "hot", "cpu-throttled", "slow-image", "power-capped", "slow-machine"])
async def test_a_rate_is_multiplied_while_a_trouble_holds(rent, kind):
    """Each trouble of a rate multiplies it from `after` on, for `seconds`, and leaves it as it was."""
    trouble = {"kind": kind, "factor": 0.5, "since": "start", "after": HOUR, "seconds": HOUR}
    assert await ratios(rent, trouble, 0.5 * HOUR, 1.5 * HOUR, 2.5 * HOUR) == pytest.approx([1, 0.5, 1], rel=1e-3)


async def test_a_machine_may_lose_a_part_of_its_rate_for_good(rent):
    """The machine that is named makes 15 % less from a time on, and so for ever; another does not."""
    fall = {"kind": "disturbed", "machine": 501, "factor": 0.85, "since": "start", "after": 2 * HOUR}
    assert await ratios(rent, fall, HOUR, 3 * HOUR, 200 * HOUR) == pytest.approx([1, 0.85, 0.85], rel=1e-3)
    assert await ratios(rent, fall | {"machine": 502}, HOUR, 3 * HOUR) == pytest.approx([1, 1], rel=1e-3)


async def test_troubles_of_a_rate_multiply(rent):
    """Two troubles in force at once leave the product, and one kind may come twice at different times."""
    first = {"kind": "disturbed", "factor": 0.8, "since": "start", "seconds": HOUR}
    troubles = [first, first | {"after": 2 * HOUR}, {"kind": "hot", "factor": 0.5, "since": "start", "after": 2 * HOUR}]
    times = [0.5 * HOUR, 1.5 * HOUR, 2.5 * HOUR, 3.5 * HOUR]
    spoilt = await rates(await rent(market=ONE, troubles=troubles), *times)
    sound = await rates(await rent(market=ONE), *times)
    found = [a / b for a, b in zip(spoilt, sound, strict=True)]
    assert found == pytest.approx([0.8, 1, 0.4, 0.5], rel=1e-3)


async def test_an_image_may_be_slow(rent):
    """A trouble aimed at a part of an image's name meets the instances made of it, and no others."""
    slow = {"kind": "slow-image", "image": ":2", "factor": 0.6}
    assert await ratios(rent, slow, HOUR, image="example/prover:2") == pytest.approx([0.6], rel=1e-3)
    assert await ratios(rent, slow, HOUR, image="example/prover:1") == pytest.approx([1], rel=1e-3)


async def test_instances_may_be_slow_from_a_creation_time_on(rent):
    """With createdAfter, an instance made before is spared for ever, and one made after is slow."""
    market = {"offers": 0, "machines": [{"model": "RTX 4090", "id": n} for n in (501, 502)]}
    found: list[list[float]] = []
    for troubles in ([], [{"kind": "slow-image", "createdAfter": HOUR, "factor": 0.6}]):
        early = await rent(market=market, troubles=troubles)
        await early.until(2 * HOUR)
        late = type(early)(early.api, await early.api.rent())
        await late.api.running(late.number)
        found.append([await early.rate(), await late.rate()])
    sound, spoilt = found
    assert [b / a for a, b in zip(sound, spoilt, strict=True)] == pytest.approx([1, 0.6], rel=1e-3)


@pytest.mark.parametrize("command", ["cuzk-bench batch --count 2", "cuzk-bench warm-up", "json-bench", "cuzk-daemon"])
async def test_an_image_may_be_broken_everywhere(rent, command):
    """Each program of a broken image's workload fails with the same text and exit code 1; another image's do not."""
    broken = [{"kind": "broken-image", "image": "prover:2"}]
    box = await rent(image="example/prover:2", troubles=broken)
    code, out, err = await box(command)
    assert (code, out) == (1, "")
    assert "CUDA error 209" in err
    spared = await rent(image="example/prover:1", troubles=broken)
    assert await spared.rate() > 0


async def test_production_tells_its_rate_to_three_percent(rent):
    """Status follows the session and the troubles of its machine, as a benchmark does, with a noise of its own."""
    trouble = {"kind": "disturbed", "factor": 0.5, "since": "start", "after": 50 * HOUR}
    box = await rent(market=ONE, troubles=[trouble])
    assert await box("cuzk-daemon status") == (1, "", "")
    await box.out("cuzk-daemon -c 4 > /dev/null &\nsleep 1")
    read = []
    for hour in range(1, 100):
        await box.until(hour * HOUR)
        answer = json.loads(await box.out("cuzk-daemon status"))
        assert answer["unit"] == "proofs/h"
        read.append(answer["rate"])
    whole, half = sum(read[:49]) / 49, sum(read[50:]) / 49
    assert half / whole == pytest.approx(0.5, rel=0.08)
    assert len(set(read)) > 90


async def test_reading_production_disturbs_nothing(rent):
    """A reading is the same however often one reads, and later benchmarks give what they would have given."""
    asked, left_alone = await rent(market=ONE), await rent(market=ONE)
    for box, times in ((asked, 5), (left_alone, 0)):
        await box.out("cuzk-daemon > /dev/null &\nsleep 1")
        assert len({await box.out("cuzk-daemon status") for _ in range(times)}) <= 1
        await box.out("pkill cuzk-daemon; sleep 1")
    assert await rates(asked, HOUR) == await rates(left_alone, HOUR)


async def test_production_is_crowded_by_a_neighbour(rent):
    """While another instance of ours proves on the machine, each reads three quarters of what it read alone."""
    one = await rent(market={"offers": 0, "machines": [{"model": "RTX 4090", "gpus": 2, "parts": 2}]})
    two = type(one)(one.api, await one.api.rent())
    await two.api.running(two.number)
    await one.until(HOUR)
    await one.out("cuzk-daemon > /dev/null &\nsleep 1")
    alone = json.loads(await one.out("cuzk-daemon status"))["rate"]
    await two.out("cuzk-daemon > /dev/null &\nsleep 1")
    assert json.loads(await one.out("cuzk-daemon status"))["rate"] == pytest.approx(alone * 0.75, rel=1e-3)
