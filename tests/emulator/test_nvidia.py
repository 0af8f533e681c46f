import pytest

pytestmark = pytest.mark.looptime

LOOK = "nvidia-smi --query-gpu=temperature.gpu,clocks_event_reasons.active --format=csv,noheader"
OLD = LOOK.replace("event", "throttle")
POWER = "nvidia-smi --query-gpu=power.limit,power.default_limit --format=csv,noheader,nounits"


async def watts(box):
    """Return limit and default of the first GPU."""
    return [float(text) for text in (await box.out(POWER)).splitlines()[0].split(", ")]


async def test_a_busy_gpu_is_warm_and_an_idle_one_is_not(rent):
    """Temperature and the reasons for its clocks follow what proves; both names of the reasons answer alike."""
    box = await rent()
    assert (await box.out(LOOK)).splitlines()[0] == "38, 0x0000000000000001"
    await box.out("cuzk-daemon > /dev/null &\nsleep 1")
    assert (await box.out(LOOK)).splitlines()[0] == "71, 0x0000000000000004"
    assert await box.out(OLD) == await box.out(LOOK)


async def test_a_hot_gpu_says_so_while_it_works(rent):
    """For as long as the scenario heats it, a working GPU shows 92 degrees and both thermal reasons."""
    box = await rent(troubles=[{"kind": "hot", "after": 600, "seconds": 500}])
    await box.out("cuzk-daemon > /dev/null &\nsleep 1")
    seen = []
    for _ in range(3):
        seen.append((await box.out(LOOK)).splitlines()[0])
        await box.pass_time(600)
    usual = "71, 0x0000000000000004"
    assert seen == [usual, "92, 0x0000000000000060", usual]


async def test_an_old_driver_knows_the_old_name_alone(rent):
    """The new name is refused with nvidia-smi's text and exit code 2, the old one is answered."""
    box = await rent(troubles=[{"kind": "old-driver"}])
    refused = 'Field "clocks_event_reasons.active" is not a valid field to query.\n'
    assert await box(LOOK) == (2, refused, "")
    assert (await box.out(OLD)).splitlines()[0] == "38, 0x0000000000000001"
    assert await box.out("nvidia-smi --query-gpu=driver_version --format=csv,noheader")


async def test_a_capped_machine_shows_its_lowered_limit(rent):
    """A machine whose host lowered the power limit shows it below the default; others show them equal."""
    limit, default = await watts(await rent(troubles=[{"kind": "power-capped"}]))
    assert limit < default
    limit, default = await watts(await rent())
    assert limit == default


async def test_a_trait_of_a_machine_is_drawn_for_the_machine(rent):
    """With a probability, both instances on a machine have its lowered limit or neither has."""
    market = {"offers": 0, "machines": [{"model": "RTX 4090", "gpus": 2, "parts": 2, "id": 600 + n} for n in range(12)]}
    box = await rent(market=market, troubles=[{"kind": "power-capped", "probability": 0.5}])
    capped: dict[int, list[bool]] = {}
    for offer in await box.api.offers():
        other = type(box)(box.api, await box.api.rent(offer))
        await box.api.running(other.number)
        limit, default = await watts(other)
        capped.setdefault(offer["machine_id"], []).append(limit < default)
    pairs = [pair for pair in capped.values() if len(pair) == 2]
    assert all(a == b for a, b in pairs)
    assert {a for a, _ in pairs} == {True, False}
