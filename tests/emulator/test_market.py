import json
from statistics import median

import pytest

from controller.emulator import Market, Scenario
from controller.emulator.generate import Spec
from controller.emulator.gpus import BY_NAME

NOON = 1_800_014_400.0


def test_generated_prices_follow_the_real_quantiles():
    """Per GPU, the 10th percentile, the median and the 90th lie near the real ones."""
    slots = Market.generate(Spec(offers=6000, models=("RTX 4090",)), seed=3, now=NOON).slots
    per_gpu = sorted(slot.row["dph_base"] / slot.row["num_gpus"] for slot in slots)
    price = BY_NAME["RTX 4090"].price
    assert median(per_gpu) == pytest.approx(price.median, rel=0.03)
    assert per_gpu[len(per_gpu) // 10] == pytest.approx(price.low, rel=0.05)
    assert per_gpu[len(per_gpu) * 9 // 10] == pytest.approx(price.high, rel=0.05)


def test_the_same_seed_draws_the_same_market():
    """A market is a function of its seed."""
    one, two, other = (
        [dict(slot.row) for slot in Market.generate(Spec(offers=50), seed=seed, now=NOON).slots] for seed in (3, 3, 4)
    )
    assert one == two
    assert one != other


def test_a_listing_gets_what_it_lacks_and_keeps_what_it_has(tmp_path):
    """Rows of a listing keep their values; absent and null fields get values that do not depend on the row's place."""
    rows = [
        {"id": 9, "machine_id": 5, "gpu_name": "RTX 4090", "num_gpus": 1, "dph_base": 0.3, "geolocation": None,
         "cpu_cores": 64, "cpu_cores_effective": 16.0, "rentable": False, "_src": "x"},
        {"id": 10, "machine_id": 5, "gpu_name": "RTX 4090", "num_gpus": 4, "dph_base": 1.1, "rentable": True},
    ]  # fmt: skip
    path = tmp_path / "listing.json"
    path.write_text(json.dumps({"offers": rows}))
    market = Market.load(path, seed=1, now=NOON)
    one, four = (slot.row for slot in market.slots)
    assert (one["dph_base"], one["rentable"], one["gpu_frac"]) == (0.3, False, 0.25)
    assert one["geolocation"] == four["geolocation"] is not None
    assert "_src" not in one
    assert market.slots[0].gpus < market.slots[1].gpus
    path.write_text(json.dumps(rows[::-1]))
    again = Market.load(path, seed=1, now=NOON, assume_rentable=True).slots
    assert dict(again[1].row) == {**one, "rentable": True}


@pytest.mark.parametrize("text", ["{}", "[]", "[1]", '{"offers": [{"id": 1}]}', "no json"])
def test_a_file_that_is_no_listing_is_named(tmp_path, text):
    """What cannot be read as offers is refused with the file's name."""
    path = tmp_path / "listing.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=r"listing\.json"):
        Market.load(path, seed=1, now=NOON)


@pytest.mark.looptime
async def test_a_machine_may_be_stated(make):
    """A stated machine has the memory, price, id and fields that are said, beside what is drawn for all the others."""
    stated = {"model": "RTX 4090", "gpus": 2, "ramGib": 75, "perHour": 0.7, "id": 77, "row": {"inet_down": 900.0}}
    drawn = await (await make(limits={"searchCap": 1000})).offers()
    offers = await (await make(limits={"searchCap": 1000}, market={"offers": 120, "machines": [stated]})).offers()
    mine = next(offer for offer in offers if offer["machine_id"] == 77)
    assert (mine["num_gpus"], mine["cpu_ram"], mine["gpu_frac"], mine["inet_down"]) == (2, 75 * 1024, 1, 900)
    assert mine["dph_base"] == pytest.approx(0.7)
    assert mine["verification"] == "verified"
    assert [offer["id"] for offer in offers if offer is not mine] == [offer["id"] for offer in drawn]


@pytest.mark.looptime
async def test_a_stated_machine_may_be_offered_in_parts(make):
    """Two parts are two offers of half the GPUs, memory and price; renting one leaves the other for rent."""
    machine = {"model": "RTX 5090", "gpus": 4, "parts": 2, "ramGib": 256, "perHour": 2.0}
    api = await make(market={"offers": 0, "machines": [machine]})
    offers = await api.offers()
    assert [(offer["num_gpus"], offer["gpu_frac"], offer["dph_base"]) for offer in offers] == [(2, 0.5, 1.0)] * 2
    assert len({offer["id"] for offer in offers}) == 2
    contract = api.emulator.world.contracts[await api.rent(offers[0])]
    assert contract.ram_bytes == 128 * 2**30
    assert [offer["id"] for offer in await api.offers()] == [offers[1]["id"]]


@pytest.mark.parametrize(
    "market", [{"offers": 0}, {"offers": 0, "machines": [{"model": "RTX 4090", "gpus": 3, "parts": 2}]}]
)
def test_a_market_that_cannot_be_is_refused(market):
    """A market of nothing, and a machine in parts that are not equal, are refused."""
    with pytest.raises(ValueError, match=r"needs machines|equal parts"):
        Scenario.model_validate({"market": market})
