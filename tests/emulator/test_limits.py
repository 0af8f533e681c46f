import asyncio

import pytest

pytestmark = pytest.mark.looptime

STRICT = {"enabled": True}


async def test_an_endpoint_wants_its_interval(make):
    """A list right after a list is refused with 429, a second later it is served; other endpoints are not held up."""
    api = await make(limits=STRICT)
    assert (await api("GET", "v1/instances/"))[0] == 200
    assert await api("GET", "v1/instances/") == (429, "API requests too frequent")
    assert (await api("GET", "v0/users/current/"))[0] == 200
    await api.emulator.world.clock.sleep(1)
    assert (await api("GET", "v1/instances/"))[0] == 200


async def test_a_refused_create_costs_a_penalty_and_rents_nothing(make):
    """Creating too soon is refused without effect and bars the endpoint for twelve seconds more."""
    api = await make(limits=STRICT)
    offers = await api.offers()
    await api.rent(offers[0])
    order = {"client_id": "me", "image": "i", "disk": 10}
    statuses = []
    for wait in (0, 5, 12):
        await api.emulator.world.clock.sleep(wait)
        statuses.append((await api("PUT", f"v0/asks/{offers[-1]['id']}/", order))[0])
    assert statuses == [429, 429, 200]
    assert len(api.emulator.alive) == 2


async def test_destroys_take_their_pace(make):
    """Destroys at the allowed pace of three seconds all pass; one sooner is refused in the JSON of that endpoint."""
    api = await make(limits=STRICT)
    numbers = [await _rented(api) for _ in range(5)]
    start = asyncio.get_running_loop().time()
    for number in numbers[:-1]:
        assert (await api("DELETE", f"v0/instances/{number}/"))[0] == 200
        await api.emulator.world.clock.sleep(3)
    assert (await api("DELETE", f"v0/instances/{numbers[-1]}/"))[0] == 200
    assert asyncio.get_running_loop().time() - start == 12
    status, body = await api("DELETE", f"v0/instances/{numbers[-1]}/")
    assert (status, body["error"]) == (429, "rate_limit_exceeded")


async def _rented(api):
    await api.emulator.world.clock.sleep(20)
    return await api.rent()


@pytest.mark.parametrize("spelling", ["text", "threshold", "detail", "json"])
async def test_a_429_comes_in_every_spelling(make, spelling):
    """Text or JSON, with Retry-After where the scenario sends it."""
    api = await make(limits={"body": spelling, "retryAfter": True})
    await api("GET", "v1/instances/")
    answer = await api.http.get("/api/v1/instances/")
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "2"
    assert "too frequent" in answer.text
    assert ("json" in answer.headers["content-type"]) == (spelling in ("detail", "json"))


async def test_the_search_quota_ends_and_comes_back_at_midnight(make):
    """Past the daily quota searches are refused, naming the reset at 00:00 UTC, after which they are served."""
    api = await make(limits={"enabled": True, "searchQuota": 3})
    for _ in range(3):
        await api.offers()
    answer = await api.http.post("/api/v0/bundles/", json={})
    assert (answer.status_code, answer.json()["error"]) == (429, "search_quota_exceeded")
    reset = int(answer.headers["x-ratelimit-reset"])
    assert reset % 86400 == 0
    await api.emulator.world.clock.sleep(reset - api.emulator.world.time)
    assert await api.offers()
