"""Every method of the client, once, against an emulated vast.ai that shares no code with it; rate limits on."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from controller.emulator import Emulator, LoopClock, Scenario
from controller.model.faults import Gone, Misconfigured, Refused, Unclear
from controller.model.market import CreateRequest, Offer, OfferQuery, Sighting
from controller.model.reasons import Reason
from controller.vast.client import VastClient

NOON = 1_800_014_400.0  # 12:00 UTC of some day
QUERY = OfferQuery(gpu="RTX 4090", gpu_count=1, disk_gib=60)
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIG1vbm90b25vdXMgYnV0IGEga2V5 vastfleet"

pytestmark = pytest.mark.looptime


@dataclass
class Account:
    """A client and the vast.ai it talks to."""

    emulator: Emulator
    client: VastClient

    async def rent(self, offer: Offer, label: str = "vf/acme/provers/01") -> int:
        """Rent an offer."""
        request = CreateRequest(
            offer_id=offer.id, image="example/prover:1", disk_gib=60, label=label, env={"A": "b"}, on_start="true"
        )
        return await self.client.create(request)

    async def running(self) -> tuple[int, Sighting]:
        """Rent the cheapest offer and wait until it runs."""
        new = await self.rent((await self.client.search(QUERY))[0])
        await self.emulator.wait_for(lambda: self.emulator.world.contracts[new].actual == "running")
        seen = await self.client.get(new)
        assert seen is not None
        return new, seen


Make = Callable[..., Account]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Build an emulated vast.ai from a scenario's fields, and a client of it."""
    built: list[Account] = []

    def build(key: str = "emulator-key", **fields: Any) -> Account:
        market = {"offers": 200, "models": ["RTX 4090"]}
        emulator = Emulator(
            clock=LoopClock(NOON), scenario=Scenario.model_validate({"market": market, **fields}), ssh=False
        )
        transport = httpx.ASGITransport(emulator.app)
        client = VastClient(api_key=key, url="http://vast", clock=LoopClock(NOON), transport=transport)
        built.append(Account(emulator, client))
        return built[-1]

    yield build
    for account in built:
        await account.client.close()
        await account.emulator.close()


async def test_search(make):
    """All offers of the shape are found past the cap of 64, as asked for, and cheapest first."""
    vast = make()
    found = await vast.client.search(QUERY)
    assert len(found) > 64
    assert {(seen.gpu, seen.gpu_count, seen.rentable, seen.verified) for seen in found} == {("RTX 4090", 1, True, True)}
    assert [seen.price for seen in found] == sorted(seen.price for seen in found)
    for field in Offer.__slots__:
        assert all(getattr(seen, field) is not None for seen in found), field


async def test_search_by_country_and_price(make):
    """Places are filtered by vast.ai as they are read by us, and no page is asked for beyond the price that matters."""
    vast = make()
    all_of_them = await vast.client.search(QUERY)
    home, most = all_of_them[0].country, all_of_them[0].price
    assert home is not None
    some = OfferQuery(gpu="RTX 4090", gpu_count=1, disk_gib=60, countries=(home,), max_price=most, min_reliability=0.9)
    before = vast.client.calls["search"]
    found = await vast.client.search(some)
    assert {seen.country for seen in found} == {home}
    assert vast.client.calls["search"] == before + 1


async def test_search_a_nasty_market(make):
    """Rows of nonsense are left out, and what is left has a price and a machine."""
    found = await make(market={"offers": 200, "models": ["RTX 4090"], "nasty": 0.3}).client.search(QUERY)
    assert found
    assert len({seen.id for seen in found}) == len(found)
    assert all(seen.price > 0 and seen.gpu == "RTX 4090" for seen in found)


async def test_rent_look_and_destroy(make):
    """What is rented is what was offered, at its price with the disk; destroyed, it is seen no more."""
    vast = make()
    offer = (await vast.client.search(QUERY))[0]
    new = await vast.rent(offer)
    (listed,) = (await vast.client.list()).sightings
    seen = await vast.client.get(new)
    assert seen == listed
    assert (listed.id, listed.label, listed.machine_id) == (new, "vf/acme/provers/01", offer.machine_id)
    assert listed.price == pytest.approx(offer.price, abs=1)
    assert (listed.intended, listed.is_bid, listed.disk_gib, listed.country) == ("running", False, 60, offer.country)
    await vast.client.destroy(new)
    assert (await vast.client.list()).sightings == ()
    assert await vast.client.get(new) is None
    with pytest.raises(Gone):
        await vast.client.destroy(new)
    with pytest.raises(Refused) as caught:
        await vast.rent(offer)
    assert caught.value.reason is Reason.OFFER_GONE


async def test_running_instance(make):
    """A running instance is reachable both ways, and has its share of memory, its image and its contract's end."""
    vast = make()
    await vast.client.add_account_key(PUBLIC_KEY)
    offer = (await vast.client.search(QUERY))[0]
    _, seen = await vast.running()
    assert [end.route for end in seen.endpoints] == ["direct", "proxy"]
    assert (seen.actual, seen.image) == ("running", "example/prover:1")
    assert seen.message.startswith("success, running")
    assert seen.ram_gib == pytest.approx(offer.ram_gib, rel=0.1)
    assert seen.ends_at is not None
    assert seen.ends_at > NOON


async def test_label_stop_start_logs(make):
    """A label sticks, a stopped instance starts again, and its log is text."""
    vast = make()
    new, _ = await vast.running()
    await vast.client.label(new, "vf/acme/provers/ø")
    await vast.client.stop(new)
    stopped = await vast.client.get(new)
    assert stopped is not None
    assert (stopped.label, stopped.intended) == ("vf/acme/provers/ø", "stopped")
    await vast.client.start(new)
    started = await vast.client.get(new)
    assert started is not None
    assert started.intended == "running"
    assert await vast.client.logs(new, tail=5)


async def test_start_of_a_taken_gpu(make):
    """A start that is queued is refused as such: it may still happen."""
    vast = make(troubles=[{"kind": "gpu-taken", "seconds": 600}])
    new, _ = await vast.running()
    await vast.client.stop(new)
    with pytest.raises(Refused) as caught:
        await vast.client.start(new)
    assert caught.value.reason is Reason.GPU_TAKEN


async def test_keys(make):
    """An account has no keys, then one, however often it is added; the same key is attached twice without a fault."""
    vast = make()
    assert await vast.client.account_keys() == ()
    await vast.client.add_account_key(PUBLIC_KEY)
    await vast.client.add_account_key(PUBLIC_KEY)
    assert await vast.client.account_keys() == (PUBLIC_KEY,)
    new, _ = await vast.running()
    await vast.client.attach_key(new, PUBLIC_KEY)
    await vast.client.attach_key(new, PUBLIC_KEY)


async def test_account_and_names(make):
    """The account shows its credit, and vast.ai its GPU models."""
    vast = make(credit=12.5)
    assert (await vast.client.account()).credit == 12_500_000
    assert "RTX 4090" in await vast.client.gpu_names()


async def test_price_increase(make):
    """A host's proposal shows the price that is paid now and the one that is wanted."""
    vast = make(troubles=[{"kind": "price-rise", "after": 60, "factor": 2.0}])
    new, seen = await vast.running()
    await vast.emulator.world.clock.sleep(120)
    (increase,) = await vast.client.price_increases(await vast.client.list())
    assert increase.instance_id == new
    assert increase.old_price == pytest.approx(seen.price, abs=2)
    assert increase.new_price > increase.old_price


async def test_paging(make):
    """Sixty instances are listed in three pages, in the listing's own pace."""
    vast = make(credit=10_000)
    offers = {offer.machine_id: offer for offer in await vast.client.search(QUERY)}
    rented = [await vast.rent(offer, f"vf/acme/provers/{n}") for n, offer in enumerate(list(offers.values())[:60])]
    assert [seen.id for seen in (await vast.client.list()).sightings] == sorted(rented)
    assert len(rented) == 60
    assert vast.client.calls["list"] == 3


async def test_our_pace_is_within_the_limits(make):
    """With vast.ai's documented limits in force, a busy minute meets no 429: every call is sent once."""
    vast = make()
    offers = {offer.machine_id: offer for offer in await vast.client.search(QUERY)}
    rented = [await vast.rent(offer) for offer in list(offers.values())[:6]]
    for new in rented:
        await vast.client.get(new)
        await vast.client.list()
        await vast.client.label(new, "x")
        await vast.client.destroy(new)
    sent = vast.client.calls
    assert (sent["create"], sent["get"], sent["list"], sent["label"], sent["destroy"]) == (6, 6, 6, 6, 6)


async def test_lost_create(make):
    """A create whose answer never comes is Unclear, was sent once, and its label shows that it rented."""
    vast = make(troubles=[{"kind": "lost-answer", "on": "create", "nth": 1}])
    offer = (await vast.client.search(QUERY))[0]
    with pytest.raises(Unclear):
        await vast.rent(offer)
    assert vast.client.calls["create"] == 1
    assert [seen.label for seen in (await vast.client.list()).sightings] == ["vf/acme/provers/01"]


@pytest.mark.parametrize("spelling", ["auth_error", "auth_error_401", "forbidden_html"])
async def test_wrong_key(spelling, make):
    """A wrong key is a person's to mend, in every spelling vast.ai has for it."""
    vast = make(key="another-key", badKey=spelling)
    for call in (vast.client.list, vast.client.account, lambda: vast.client.destroy(5)):
        with pytest.raises(Misconfigured) as caught:
            await call()
        assert caught.value.reason is Reason.AUTH_FAILED
