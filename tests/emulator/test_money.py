import pytest

pytestmark = pytest.mark.looptime

HOUR = 3600.0


async def test_the_gpu_bills_while_running_and_the_disk_until_destroyed(make):
    """An hour running costs GPU and disk, an hour stopped costs the disk, and after a destroy nothing."""
    api = await make()
    number = await api.rent(disk=72)
    contract = api.emulator.world.contracts[number]
    assert contract.storage_per_hour == pytest.approx(contract.slot.row["storage_cost"] / 10)
    await api.running(number)
    before = api.emulator.total_billed
    await api.emulator.world.clock.sleep(HOUR)
    assert api.emulator.total_billed - before == pytest.approx(contract.price_per_hour, rel=1e-3)
    await api("PUT", f"v0/instances/{number}/", {"state": "stopped"})
    await api.emulator.world.clock.sleep(10)
    before = api.emulator.total_billed
    await api.emulator.world.clock.sleep(HOUR)
    assert api.emulator.total_billed - before == pytest.approx(contract.storage_per_hour, rel=1e-3)
    await api("DELETE", f"v0/instances/{number}/")
    before = api.emulator.total_billed
    await api.emulator.world.clock.sleep(HOUR)
    assert api.emulator.total_billed == before


async def test_loading_bills_the_disk_alone(make):
    """Before it runs an instance costs its disk and nothing more."""
    api = await make(troubles=[{"kind": "stuck-loading"}])
    number = await api.rent()
    await api.emulator.world.clock.sleep(HOUR)
    contract = api.emulator.world.contracts[number]
    assert api.emulator.total_billed == pytest.approx(contract.storage_per_hour, rel=1e-6)


async def test_what_is_billed_is_what_the_credit_lost(make):
    """The instances' bills add up to the total, and the credit fell by it."""
    api = await make(credit=50)
    for offer in (await api.offers())[:20:7]:
        await api.running(await api.rent(offer))
    await api.emulator.world.clock.sleep(5 * HOUR)
    billed = sum(rental.billed_usd for rental in api.emulator.rentals())
    assert billed == pytest.approx(api.emulator.total_billed)
    assert (await api("GET", "v0/users/current"))[1]["credit"] == pytest.approx(50 - billed)


async def test_credit_that_runs_out_stops_everything_at_that_moment(make):
    """When the credit is gone all instances stop, further orders are refused, and after the grace the rows vanish."""
    api = await make(credit=0.5, graceHours=6)
    offers = await api.offers()
    number = await api.rent(offers[0])
    contract = api.emulator.world.contracts[number]
    await api.running(number)
    await api.emulator.world.clock.sleep(0.6 / contract.price_per_hour * HOUR)
    row = await api.row(number)
    assert (row["actual_status"], row["intended_status"]) == ("exited", "stopped")
    assert -0.5 < api.emulator.credit <= 0
    order = {"client_id": "me", "image": "i", "disk": 10}
    assert (await api("PUT", f"v0/asks/{offers[-1]['id']}/", order))[1]["error"] == "insufficient_credit"
    assert (await api("PUT", f"v0/instances/{number}/", {"state": "running"}))[1]["error"] == "insufficient_credit"
    await api.emulator.world.clock.sleep(7 * HOUR)
    assert await api.row(number) is None


async def test_a_top_up_in_time_saves_the_rows(make):
    """Money paid in within the grace keeps the instances, which stay stopped until started."""
    api = await make(troubles=[{"kind": "credit-out", "after": 600}], graceHours=1)
    number = await api.rent()
    await api.running(number)
    await api.emulator.world.clock.sleep(900)
    assert (await api.row(number))["actual_status"] == "exited"
    api.emulator.top_up(10)
    await api("PUT", f"v0/instances/{number}/", {"state": "running"})
    await api.running(number)
    await api.emulator.world.clock.sleep(2 * HOUR)
    assert (await api.row(number))["actual_status"] == "running"


async def test_the_peak_is_the_dearest_moment(make):
    """The peak spend is that of the moment when most ran; the committed peak counts instances that only load, too."""
    api = await make()
    offers = await api.offers()
    pair = [api.emulator.world.contracts[await api.rent(offer)] for offer in (offers[0], offers[-1])]
    whole = sum(contract.price_per_hour for contract in pair)
    assert api.emulator.peak_committed_per_hour == pytest.approx(whole)
    assert api.emulator.peak_spend_per_hour < whole / 2
    for contract in pair:
        await api.running(contract.id)
    assert api.emulator.peak_spend_per_hour == pytest.approx(whole)


async def test_a_proposed_price_holds_only_once_accepted(make):
    """A pending price increase is listed per second; rejecting keeps the rate, accepting takes it, stale is a 404."""
    api = await make(troubles=[{"kind": "price-rise", "factor": 2, "after": 60}])
    numbers = [await api.rent(offer) for offer in (await api.offers())[:16:15]]
    for number in numbers:
        await api.running(number)
    await api.emulator.world.clock.sleep(120)
    body = (await api("GET", "v0/instances/pending-price-increases/"))[1]
    first, second = body["pending_price_increases"]
    base = (await api.row(first["contract_id"]))["dph_base"]
    assert first["new_gpu_costpersec"] * 3600 == pytest.approx(2 * base)
    yes, no = ({"pending_price_increase_id": row["pending_price_increase_id"]} for row in (first, second))
    assert (await api("PUT", "v0/instances/accept-price-increase/", yes))[0] == 200
    assert (await api("PUT", "v0/instances/reject-price-increase/", no))[0] == 200
    assert (await api.row(first["contract_id"]))["dph_base"] == pytest.approx(2 * base)
    assert (await api.row(second["contract_id"]))["dph_base"] * 3600 != second["new_gpu_costpersec"]
    assert (await api("PUT", "v0/instances/accept-price-increase/", yes))[1]["error"] == "no_pending_price_increase"
    assert (await api("PUT", "v0/instances/accept-price-increase/", {**yes, "host_id": 1}))[0] == 400
