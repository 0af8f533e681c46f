import json
import math

import pytest

pytestmark = pytest.mark.looptime


async def test_names_have_spaces_and_match_exactly(make):
    """The name as listed finds offers; with an underscore, or cut short, it finds none."""
    api = await make(market={"offers": 200, "models": ["RTX 4090", "RTX 5090"]})
    assert {o["gpu_name"] for o in await api.offers(gpu_name={"eq": "RTX 4090"})} == {"RTX 4090"}
    assert await api.offers(gpu_name={"eq": "RTX_4090"}) == []
    assert await api.offers(gpu_name={"eq": "RTX 409"}) == []


async def test_numbers_may_come_as_strings(make):
    """Filters coerce numeric strings, as the official command sends them."""
    api = await make()
    offers = await api.offers(num_gpus={"eq": "1"}, dph_total={"lte": "0.5"}, reliability={"gte": 0.9})
    assert offers
    assert all(o["num_gpus"] == 1 and o["dph_total"] <= 0.5 and o["reliability"] >= 0.9 for o in offers)


@pytest.mark.parametrize(
    ("name", "test", "holds"),
    [
        ("num_gpus", {"neq": 1}, lambda o: o["num_gpus"] != 1),
        ("num_gpus", {"gt": 2, "lt": 8}, lambda o: 2 < o["num_gpus"] < 8),
        ("num_gpus", {"in": [1, "4"]}, lambda o: o["num_gpus"] in (1, 4)),
        ("num_gpus", {"notin": [1, 2]}, lambda o: o["num_gpus"] not in (1, 2)),
        ("geolocation", {"in": ["US", "CA"]}, lambda o: o["geolocation"][-2:] in ("US", "CA")),
        ("driver_version", {"gte": 550000000}, lambda o: o["driver_vers"] >= 550000000),
        ("datacenter", {"eq": True}, lambda o: o["hosting_type"] == 1),
    ],
)
async def test_every_operator_selects(make, name, test, holds):
    """Each operator of the filter language keeps the offers it should, and some."""
    api = await make()
    offers = await api.offers(**{name: test})
    assert offers
    assert all(map(holds, offers))


async def test_only_the_classic_search_adds_filters(make):
    """POST /bundles/ shows verified hosts by default; PUT /search/asks/ shows every host unless told otherwise."""
    api = await make()
    classic = await api.offers()
    status, body = await api("PUT", "v0/search/asks/", {"select_cols": ["*"], "q": {}})
    assert status == 200
    assert {o["verification"] for o in classic} == {"verified"}
    assert "unverified" in {o["verification"] for o in body["offers"]}
    encoded = json.dumps({"verified": {"eq": False}})
    assert "verified" not in {o["verification"] for o in (await api("GET", "v0/bundles/", q=encoded))[1]["offers"]}


async def test_a_search_is_strict_about_shapes(make):
    """A scalar filter and a flat body of the new search are refused, naming the field."""
    api = await make()
    status, body = await api("POST", "v0/bundles/", {"gpu_name": "RTX 4090"})
    assert (status, body["error"]) == (400, "bad_request")
    assert "q.gpu_name" in body["msg"]
    status, body = await api("PUT", "v0/search/asks/", {"rentable": {"eq": True}})
    assert status == 400
    assert "Extra inputs" in body["msg"]


async def test_an_id_is_no_filter_but_ask_contract_id_is(make):
    """Filtering by id finds nothing; by ask_contract_id it finds the offer."""
    api = await make()
    offer = (await api.offers())[0]
    assert await api.offers(id={"eq": offer["id"]}) == []
    assert [o["id"] for o in await api.offers(ask_contract_id={"eq": offer["id"]})] == [offer["id"]]


async def test_never_more_than_the_cap(make):
    """A search returns at most 64 rows whatever limit is asked, and fewer if fewer are asked."""
    api = await make(market={"offers": 300})
    assert len(await api.offers(limit=3000)) == 64
    assert len(await api.offers(limit=3)) == 3


async def test_the_price_includes_the_disk_that_was_named(make):
    """dph_total is the GPU part and the asked disk by a month of 720 hours; 8 GB when none is named."""
    api = await make()
    for gigabytes, offers in ((8, await api.offers()), (500, await api.offers(allocated_storage=500))):
        for offer in offers:
            assert offer["dph_total"] == pytest.approx(offer["dph_base"] + offer["storage_cost"] * gigabytes / 720)
            assert offer["search"]["totalHour"] == offer["dph_total"]


async def test_a_bid_search_is_priced_by_the_floor(make):
    """In a search for interruptibles the price is the minimum bid."""
    api = await make()
    assert all(o["dph_base"] == o["min_bid"] and o["is_bid"] for o in await api.offers(type="bid"))


async def test_order_is_kept(make):
    """Offers come in the asked order, ties by the next column."""
    api = await make()
    offers = await api.offers(order=[["num_gpus", "desc"], ["dph_total", "asc"]])
    assert [(-o["num_gpus"], o["dph_total"]) for o in offers] == sorted(
        (-o["num_gpus"], o["dph_total"]) for o in offers
    )


async def test_renting_takes_the_siblings(make):
    """Renting a whole machine takes its parts off the market; destroying it brings all back under new ids."""
    api = await make(limits={"enabled": False, "searchCap": 5000})
    offers = await api.offers()
    whole = next(o for o in offers if o["num_gpus"] > 1 and o["gpu_frac"] == 1 and _siblings(o, offers))
    siblings = {o["id"] for o in offers if o["machine_id"] == whole["machine_id"]}
    number = await api.rent(whole)
    assert not siblings & {o["id"] for o in await api.offers()}
    await api("DELETE", f"v0/instances/{number}/")
    back = {o["id"] for o in await api.offers() if o["machine_id"] == whole["machine_id"]}
    assert len(back) == len(siblings)
    assert not back & siblings


def _siblings(offer, offers):
    return [o for o in offers if o["machine_id"] == offer["machine_id"] and o is not offer]


async def test_nasty_rows_come_when_asked_for(make):
    """A market can show NaN and null prices, doubled ids, no place and no name, and still answers."""
    api = await make(market={"offers": 600, "nasty": 0.6}, limits={"enabled": False, "searchCap": 5000})
    offers = (await api("PUT", "v0/search/asks/", {"q": {}}))[1]["offers"]
    bases = [o["dph_base"] for o in offers]
    assert None in bases
    assert any(isinstance(base, float) and math.isnan(base) for base in bases)
    assert len({o["id"] for o in offers}) < len(offers)
    assert {None, ", US"} < {o["geolocation"] for o in offers}
    assert "" in {o["gpu_name"] for o in offers}
