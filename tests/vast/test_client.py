"""What the client sends, and how it puts an answer together from pages."""

import json
from typing import Any

import pytest

from controller.model.faults import Misconfigured, Retry
from controller.model.market import Account, CreateRequest, Listing, OfferQuery, PriceIncrease, Sighting
from controller.model.reasons import Reason
from controller.vast.client import VastClient

QUERY = OfferQuery(gpu="RTX 4090", gpu_count=1, disk_gib=250)

pytestmark = pytest.mark.looptime


def page(*ids: int, total: int, token: str | None = None) -> tuple[int, dict[str, Any]]:
    rows = [{"id": one} for one in ids]
    return 200, {"success": True, "instances": rows, "total_instances": total, "next_token": token}


async def test_search_asks_for_the_shape(play):
    """A search asks for exactly the shape, priced with the disk that will be rented, cheapest first."""
    played = play((200, {"offers": []}))
    query = OfferQuery(
        gpu="RTX 4090", gpu_count=2, disk_gib=250, countries=("NO", "SE"), min_reliability=0.97, max_price=600_000
    )
    assert await played.client.search(query) == ()
    request = played.requests[0]
    assert (request.method, request.url.path) == ("POST", "/api/v0/bundles/")
    assert request.headers["content-type"] == "application/json"
    assert played.bodies()[0] == {
        "gpu_name": {"eq": "RTX 4090"},
        "num_gpus": {"eq": 2},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        "verified": {"eq": True},
        "geolocation": {"in": ["NO", "SE"]},
        "reliability": {"gte": 0.97},
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": 64,
        "allocated_storage": 250,
    }


async def test_search_leaves_out_what_was_not_asked(play):
    """A condition that is None is not sent; but that unverified machines will do is said outright."""
    played = play((200, {"offers": []}))
    await played.client.search(OfferQuery(gpu="H200", gpu_count=8, disk_gib=100, verified=None))
    assert played.bodies()[0].keys().isdisjoint({"geolocation", "reliability", "dph_total"})
    assert played.bodies()[0]["verified"] == {"in": [True, False]}


async def test_search_reads_on_past_the_cap(play, offer_row):
    """A full page is followed by the offers from its dearest on, and an offer seen twice is one."""
    first = [offer_row | {"id": n, "dph_base": 0, "dph_total": 0.30 + n / 1000} for n in range(1, 65)]
    second = [first[-1], offer_row | {"id": 90, "dph_base": 0, "dph_total": 0.5}]
    played = play((200, {"offers": first}), (200, {"offers": second}))
    found = await played.client.search(QUERY)
    assert [seen.id for seen in found] == [*range(1, 65), 90]
    assert [body.get("dph_total") for body in played.bodies()] == [None, {"gte": first[-1]["dph_total"]}]


async def test_search_has_an_end(play, offer_row):
    """A market that answers the same full page again is not asked a third time; an endless one is asked five times."""
    same = [offer_row | {"id": n} for n in range(1, 65)]
    played = play((200, {"offers": same}))
    assert len(await played.client.search(QUERY)) == 64
    assert len(played.requests) == 2
    endless = [(200, {"offers": [row | {"dph_total": page} for row in same]}) for page in range(1, 10)]
    played = play(*endless)
    await played.client.search(QUERY)
    assert len(played.requests) == 5


async def test_list_reads_all_pages(play, clock):
    """A listing is all pages together, each id once, and dated before its first page was asked for."""
    played = play(page(1, 2, total=4, token="two"), page(2, 3, total=4, token="three"), page(4, total=4))
    before = clock.now()
    seen = await played.client.list()
    assert seen.by_id().keys() == {1, 2, 3, 4}
    assert before <= seen.at <= played.times[0]
    asked = [dict(request.url.params) for request in played.requests]
    first = {"limit": "25", "order_by": '[{"col": "id", "dir": "asc"}]'}
    assert asked == [first, first | {"after_token": "two"}, first | {"after_token": "three"}]
    assert {request.url.path for request in played.requests} == {"/api/v1/instances/"}


async def test_empty_account_is_listed(play):
    """An account without instances is a complete listing of none."""
    assert (await play(page(total=0)).client.list()).sightings == ()


@pytest.mark.parametrize("second", [(502, "<html>"), (200, ""), (200, {}), (410, {"error": "deprecated_endpoint"})])
async def test_list_fails_whole(second, play):
    """When a later page fails there is no listing at all."""
    with pytest.raises((Retry, Misconfigured)):
        await play(page(1, total=2, token="two"), second).client.list()


async def test_create_sends_what_is_needed(play):
    """A create sends the image, env, disk, label and start-up text, asks for SSH both ways, and returns the new id."""
    played = play((200, {"success": True, "new_contract": 9000001, "instance_api_key": "secret"}))
    request = CreateRequest(
        offer_id=7100001, image="example/prover:1.4", disk_gib=250, label="vf/a/b/c", env={"N": "1"}, on_start="touch x"
    )
    assert await played.client.create(request) == 9000001
    assert (played.requests[0].method, played.requests[0].url.path) == ("PUT", "/api/v0/asks/7100001/")
    assert played.bodies() == [
        {
            "client_id": "me",
            "image": "example/prover:1.4",
            "env": {"N": "1"},
            "disk": 250,
            "label": "vf/a/b/c",
            "onstart": "touch x",
            "runtype": "ssh_direc ssh_proxy",
            "cancel_unavail": True,
        }
    ]


@pytest.mark.parametrize(
    ("call", "sent"),
    [
        (lambda c: c.destroy(7), ("DELETE", "/api/v0/instances/7/", {})),
        (lambda c: c.start(7), ("PUT", "/api/v0/instances/7/", {"state": "running"})),
        (lambda c: c.stop(7), ("PUT", "/api/v0/instances/7/", {"state": "stopped"})),
        (lambda c: c.label(7, "ø"), ("PUT", "/api/v0/instances/7/", {"label": "ø"})),
        (
            lambda c: c.attach_key(7, "ssh-ed25519 A"),
            ("POST", "/api/v0/instances/7/ssh/", {"ssh_key": "ssh-ed25519 A"}),
        ),
        (lambda c: c.add_account_key("ssh-ed25519 A"), ("POST", "/api/v0/ssh/", {"ssh_key": "ssh-ed25519 A"})),
    ],
    ids=["destroy", "start", "stop", "label", "attach_key", "add_account_key"],
)
async def test_effects(call, sent, play):
    """Each effect is one request to its own endpoint, with the key in the header."""
    played = play((200, {"success": True}))
    assert await call(played.client) is None
    request = played.requests[0]
    assert (request.method, request.url.path, json.loads(request.content)) == sent
    assert request.headers["authorization"].startswith("Bearer ")


async def test_logs_are_fetched_when_written(play):
    """A log is asked for, then fetched without the key from where vast.ai puts it, once it is there."""
    ready = {"success": True, "result_url": "https://logs.example/abc.log"}
    played = play((200, ready), (404, "<Error>NoSuchKey</Error>"), (403, ""), (200, "line one\nline two\n"))
    assert await played.client.logs(7, tail=2) == "line one\nline two\n"
    asked, *polls = played.requests
    assert (asked.url.path, json.loads(asked.content)) == ("/api/v0/instances/request_logs/7/", {"tail": "2"})
    assert {str(poll.url) for poll in polls} == {"https://logs.example/abc.log"}
    assert not any("authorization" in poll.headers for poll in polls)


async def test_logs_are_not_waited_for_for_ever(play, clock):
    """A log that is never written out is given up after half a minute."""
    played = play((200, {"success": True, "result_url": "https://logs.example/abc.log"}), (404, ""))
    with pytest.raises(Retry, match="not written out"):
        await played.client.logs(7)
    assert 29 < played.times[-1] - played.times[0] < 32


@pytest.mark.parametrize("url", ["file:///etc/passwd", "https://logs.example:port/x", "ftp://x/y"])
async def test_logs_from_no_address(url, play):
    """A log's address that is none of the web's is refused."""
    with pytest.raises(Misconfigured):
        await play((200, {"success": True, "result_url": url})).client.logs(7)


@pytest.mark.parametrize(
    ("said", "credit"),
    [(12.5, 12_500_000), ("12.5", 12_500_000), (0, 0), (-0.25, -250_000), (None, None), ("much", None), (1e300, None)],
)
async def test_credit_is_never_guessed(said, credit, play):
    """Credit is what `credit` says, unknown when it cannot be read, and `balance` is not looked at."""
    played = play((200, {"id": 31, "credit": said, "balance": 99.0}))
    assert await played.client.account() == Account(id=31, credit=credit)


async def test_unreadable_credit_is_unknown(play):
    """A credit of NaN is unknown, and so is an absent one."""
    assert (await play((200, '{"id": 31, "credit": NaN}')).client.account()).credit is None
    assert (await play((200, '{"id": 31}')).client.account()).credit is None


async def test_account_keys(play):
    """The account's keys are the public texts of its rows; an unreadable row is none."""
    rows = [{"id": 1, "public_key": "ssh-ed25519 A a@b\n"}, {"id": 2, "public_key": None}, "x"]
    assert await play((200, rows)).client.account_keys() == ("ssh-ed25519 A a@b",)


async def test_price_increases_are_per_hour(play):
    """Rates a second, a GPU and a GB become prices of the instance; a rate that is null does not change."""
    row = {
        "pending_price_increase_id": 5,
        "contract_id": 9000001,
        "old_gpu_costpersec": 0.0001,
        "new_gpu_costpersec": 0.0002,
        "old_disk_ram_costpersec": 0.0000001,
        "new_disk_ram_costpersec": None,
    }
    rows = [row, row | {"contract_id": 9000002}, {"pending_price_increase_id": 6, "contract_id": 9000001}, None]
    played = play((200, {"success": True, "pending_price_increases": rows}))
    listing = Listing(at=0, sightings=(Sighting(id=9000001, gpu_count=2, disk_gib=100),))
    assert await played.client.price_increases(listing) == (
        PriceIncrease(id=5, instance_id=9000001, old_price=756_000, new_price=1_476_000),
    )


async def test_gpu_names(play):
    """GPU names come in vast.ai's spelling, blanks left out."""
    names = ["RTX 4090", "", None, "H100 SXM"]
    assert await play((200, {"gpu_names": names})).client.gpu_names() == ("RTX 4090", "H100 SXM")


@pytest.mark.parametrize("key", ["", "a b", "line\nbreak", "ключ", "null\x00"])
def test_impossible_key(key, clock):
    """A key that cannot be one is a person's to mend, and is not repeated in the text that says so."""
    with pytest.raises(Misconfigured, match="the API key") as caught:
        VastClient(api_key=key, clock=clock)
    assert caught.value.reason is Reason.AUTH_FAILED
    assert not key or key not in str(caught.value)


@pytest.mark.parametrize(
    "url", ["", "console.vast.ai", "ftp://console.vast.ai", "https://me:pass@console.vast.ai", "http://vast.ai:port"]
)
def test_impossible_address(url, clock):
    """An address that no call can be made to is refused at once; a user name in it would replace the key."""
    with pytest.raises(Misconfigured, match="address") as caught:
        VastClient(api_key="k", url=url, clock=clock)
    assert "pass" not in str(caught.value)
