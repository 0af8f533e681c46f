"""What asks right before anything is sent that changes something, as late as that can be asked."""

import asyncio

import httpx
import pytest

from controller.model.faults import Refused
from controller.model.market import CreateRequest
from controller.model.reasons import Reason
from controller.vast.client import VastClient

KEY = "key-that-must-not-leak-71c0ffee"
RENT = CreateRequest(offer_id=7, image="i", disk_gib=50, label="vf/a/b/c", env={})
RENTED = {"success": True, "new_contract": 41}

pytestmark = pytest.mark.looptime


def refuse() -> None:
    raise Refused(Reason.NOT_LEADING, "it does not lead")


async def test_what_waited_for_its_turn_is_asked_after_the_wait(clock):
    """A second create, which waits 4.5 s for its turn, is not sent if leadership was lost while it waited."""
    ends_at = clock.now() + 2.0
    sent = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(200, json=RENTED)

    def fence() -> None:
        if clock.now() > ends_at:
            refuse()

    client = VastClient(api_key=KEY, clock=clock, transport=httpx.MockTransport(answer), fence=fence)
    assert await client.create(RENT) == 41
    with pytest.raises(Refused):
        await client.create(RENT)
    assert len(sent) == 1
    await client.close()


async def test_what_waited_for_a_connection_is_asked_after_it(clock):
    """Nothing is sent over a connection that was made after leadership was lost."""
    heard = asyncio.Queue[bytes]()

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await heard.put(await reader.read())
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    asked = []

    def fence() -> None:
        asked.append(clock.now())
        if len(asked) > 1:
            refuse()

    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = VastClient(api_key=KEY, url=url, clock=clock, fence=fence)
    with pytest.raises(Refused):
        await client.destroy(41)
    assert await heard.get() == b""
    await client.close()
    server.close()


async def test_a_look_asks_nobody(clock):
    """What changes nothing may be asked by anybody: listings, single instances, searches."""
    rows = {"offers": [], "instances": [], "total_instances": 0}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=rows))
    client = VastClient(api_key=KEY, clock=clock, transport=transport, fence=refuse)
    assert (await client.list()).sightings == ()
    await client.close()
