import httpx
import pytest

from controller.model.status import FleetStatus
from tests.journeys.stage import Stage, converge, fleet, stage

pytestmark = pytest.mark.looptime

FAULTS = {
    "deprecated_endpoint": "EndpointRetired",
    "empty_200": "BadAnswer",
    "empty_object": "BadAnswer",
    "empty_list": "ListingIncomplete",
    "html_200": "BadAnswer",
    "auth_error": "AuthFailed",
    "bad_gateway": "ServerError",
}
START, END = 6000.0, 9000.0


async def until(here: Stage, seconds: float) -> None:
    await here.emulator.world.clock.sleep(here.emulator.world.started + seconds - here.emulator.world.clock.now())


def status(text: str) -> FleetStatus:
    return FleetStatus.model_validate_json(text)


@pytest.mark.parametrize("like", FAULTS)
async def test_a_listing_that_fails_is_not_an_empty_one(tmp_path, like):
    """While the listing fails nothing is rented and nothing forgotten, and the condition names the true cause."""
    trouble = {"kind": "error", "on": "list", "like": like, "between": [START, END]}
    here = stage(tmp_path, troubles=[trouble])
    wanted = fleet(target="instances: 3")
    async with here.controller() as made:
        await converge(made.loop, wanted)
        before, rented = made.ledger.instances(), here.creates
        await until(here, START + 1)
        for _ in range(8):
            (said,) = await made.loop.once((wanted,))
            await here.emulator.world.clock.sleep(60)
        ready = said.condition("Ready")
        assert ready is not None
        assert ready.status != "True"
        assert ready.reason == FAULTS[like]
        assert here.creates == rented
        assert made.ledger.instances() == before
        await until(here, END + 1)
        await converge(made.loop, wanted)
        assert here.creates == rented
    assert len(here.emulator.alive) == 3
    await here.emulator.close()


async def test_an_empty_listing_that_adds_up_is_not_believed_against_the_ids(tmp_path):
    """Even a listing that says zero of zero, again and again, forgets nothing that vast.ai still knows by its id."""
    body = {"success": True, "instances": [], "total_instances": 0, "next_token": None}
    trouble = {"kind": "error", "on": "list", "status": 200, "body": body, "between": [START, END]}
    here = stage(tmp_path, troubles=[trouble])
    wanted = fleet(target="instances: 3")
    async with here.controller() as made:
        await converge(made.loop, wanted)
        rented = here.creates
        await until(here, START + 1)
        for _ in range(8):
            (said,) = await made.loop.once((wanted,))
            await here.emulator.world.clock.sleep(60)
        ready = said.condition("Ready")
        assert ready is not None
        assert (ready.status, ready.reason) == ("Unknown", "Missing")
        assert len(made.ledger.instances()) == 3
        assert here.creates == rented
        await until(here, END + 1)
        await converge(made.loop, wanted)
    assert here.creates == rented
    await here.emulator.close()


class SecondPageFails(httpx.ASGITransport):
    """vast.ai, but for the second page of a listing."""

    failing = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.failing and "after_token" in request.url.params:
            return httpx.Response(500, json={})
        return await super().handle_async_request(request)


async def test_a_failing_second_page_says_nothing_of_the_rest(tmp_path):
    """With more instances than a page holds, a failing second page fails the listing: nothing is missed or rented."""
    here = stage(tmp_path, market={"offers": 400, "models": ["RTX 4090"]})
    wanted = fleet(target="instances: 3", budget=9)
    await here.rent_foreign(*["alice"] * 26)
    transport = SecondPageFails(app=here.emulator.app)
    async with here.controller(transport=transport) as made:
        await converge(made.loop, wanted)
        before, rented = made.ledger.instances(), here.creates
        transport.failing = True
        for _ in range(6):
            (said,) = await made.loop.once((wanted,))
            await here.emulator.world.clock.sleep(60)
        ready = said.condition("Ready")
        assert ready is not None
        assert (ready.status, ready.reason) == ("Unknown", "ServerError")
        assert made.ledger.instances() == before
        assert here.creates == rented
    await here.emulator.close()
