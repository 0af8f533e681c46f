import asyncio
import json

import httpx
import pytest

from controller.emulator import Emulator, Scenario

pytestmark = pytest.mark.looptime

GOOD = {"client_id": "me", "image": "i", "disk": 10}


@pytest.mark.parametrize(
    ("spelling", "status"), [("auth_error", 404), ("auth_error_401", 401), ("forbidden_html", 403)]
)
async def test_a_bad_key_is_refused_in_the_chosen_spelling(make, spelling, status):
    """A wrong key gets the scenario's refusal, and no call with it has an effect."""
    api = await make(badKey=spelling, key="wrong")
    assert (await api("GET", "v1/instances/"))[0] == status
    offer = next(iter(api.emulator.world.market.slots)).row
    assert (await api("PUT", f"v0/asks/{offer['id']}/", GOOD))[0] == status
    assert api.emulator.rentals() == ()


async def test_without_a_key_the_market_is_open_and_the_account_closed(make):
    """Search and GPU names need no key; instances do; the key may come as a query parameter."""
    api = await make(key="")
    assert await api.offers()
    assert "RTX 4090" in (await api("GET", "v0/gpu_names/unique/"))[1]["gpu_names"]
    assert (await api("GET", "v1/instances/"))[0] == 403
    assert (await api("GET", "v1/instances/", api_key="emulator-key"))[0] == 200


async def test_the_old_list_is_gone_unless_kept(make):
    """The v0 list answers 410 by default and rows where the scenario keeps it."""
    api = await make()
    assert (await api("GET", "v0/instances/"))[0] == 410
    old = await make(v0List=True)
    number = await old.rent()
    assert [row["id"] for row in (await old("GET", "v0/instances/"))[1]["instances"]] == [number]


async def test_pages_cover_every_instance_once(make):
    """Sixty instances come in pages of at most 25, each once, with the total and the labels counted."""
    api = await make(limits={"enabled": False, "searchCap": 500})
    numbers = []
    for n in range(60):
        offer = (await api.offers())[0]
        numbers.append(await api.rent(offer, label="even" if n % 2 else None))
    seen, token = [], None
    while True:
        page = (await api("GET", "v1/instances/", limit=100, after_token=token or ""))[1]
        assert len(page["instances"]) == page["instances_found"] <= 25
        assert page["total_instances"] == 60
        assert page["label_counts"] == {"": 30, "even": 30}
        seen += [row["id"] for row in page["instances"]]
        token = page["next_token"]
        if token is None:
            break
    assert seen == numbers


async def test_the_cursor_outlives_what_happens_between_pages(make):
    """A row destroyed between two pages shifts nothing: the next page goes on after the last row seen."""
    api = await make()
    numbers = [await api.rent() for _ in range(8)]
    first = (await api("GET", "v1/instances/", limit=3))[1]
    await api("DELETE", f"v0/instances/{numbers[0]}/")
    second = (await api("GET", "v1/instances/", limit=3, after_token=first["next_token"]))[1]
    assert [row["id"] for row in second["instances"]] == numbers[3:6]


async def test_the_list_filters_and_orders_by_stored_columns_only(make):
    """A label filter is exact, order and columns are honoured, and computed columns are refused."""
    api = await make()
    numbers = [await api.rent(label=label) for label in ("a/1", "a/10", None, "007", "7")]

    async def listed(**query):
        return (await api("GET", "v1/instances/", **{k: json.dumps(v) for k, v in query.items()}))[1]

    assert [row["id"] for row in (await listed(select_filters={"label": {"eq": "a/1"}}))["instances"]] == numbers[:1]
    assert [row["id"] for row in (await listed(select_filters={"label": {"eq": "7"}}))["instances"]] == numbers[4:]
    rows = (await listed(order_by=[{"col": "id", "dir": "desc"}], select_cols=["id", "nonsense"]))["instances"]
    assert rows == [{"id": number, "nonsense": None} for number in reversed(numbers)]
    assert (await listed(select_filters={"dph_total": {"lt": 1}}))["error"] == "invalid_request"
    assert (await listed(order_by=[{"col": "dph_total"}]))["error"] == "invalid_request"
    assert (await api("GET", "v1/instances/", after_token="junk"))[1]["error"] == "invalid_token"


async def test_a_limit_of_none_is_five(make):
    """A limit of zero or less counts as five."""
    api = await make()
    for _ in range(7):
        await api.rent()
    assert len((await api("GET", "v1/instances/", limit=0))[1]["instances"]) == 5


@pytest.mark.parametrize(
    ("change", "status", "error"),
    [
        ({"image": None}, 400, "invalid_args"),
        ({"disk": 7}, 400, "invalid_args"),
        ({"disk": 1e9}, 400, "invalid_args"),
        ({"disk": "much"}, 400, "invalid_args"),
        ({"env": "-e A=1"}, 400, "invalid_args"),
        ({"price": 0}, 400, "invalid_price"),
        ({"label": "x" * 257}, 400, "label_too_long"),
        ({"onstart": "x" * 5000}, 400, "invalid_args"),
    ],
)
async def test_a_wrong_order_is_refused_and_rents_nothing(make, change, status, error):
    """Each class of bad create request has its refusal, and the offer stays on the market."""
    api = await make()
    offer = (await api.offers())[0]
    answer = await api("PUT", f"v0/asks/{offer['id']}/", {**GOOD, **change})
    assert (answer[0], answer[1]["error"]) == (status, error)
    assert api.emulator.alive == ()
    assert offer["id"] in [o["id"] for o in await api.offers()]


async def test_an_offer_is_rented_once(make):
    """The second taker of an offer is told 404, or 410 if it asked to cancel when unavailable."""
    api = await make()
    offer = (await api.offers())[0]
    await api.rent(offer)
    assert (await api("PUT", f"v0/asks/{offer['id']}/", GOOD))[0] == 404
    status, body = await api("PUT", f"v0/asks/{offer['id']}/", {**GOOD, "cancel_unavail": True})
    assert (status, body["error"]) == (410, "no_such_ask")
    assert (await api("PUT", "v0/asks/1/", GOOD))[0] == 404


async def test_an_unknown_id_reads_null_and_cannot_be_changed(make):
    """By id a stranger reads null with 200; labelling or destroying it is a 404."""
    api = await make()
    assert await api("GET", "v0/instances/5/") == (200, {"instances": None})
    assert (await api("PUT", "v0/instances/5/", {"label": "x"}))[0] == 404
    assert (await api("DELETE", "v0/instances/5/"))[0] == 404
    number = await api.rent()
    assert (await api("PUT", f"v0/instances/{number}/", {"label": "x" * 1025}))[1]["error"] == "label_too_long"


async def test_bulk_orders_reach_every_instance(make):
    """Stop and destroy take several ids at once and pass over what is not ours."""
    api = await make()
    numbers = [await api.rent() for _ in range(3)]
    await api("PUT", "v0/instances/", {"state": "stopped", "ids": [*numbers, 1]})
    assert {(await api.row(number))["intended_status"] for number in numbers} == {"stopped"}
    await api.http.request("DELETE", "/api/v0/instances/", json={"instance_ids": [*numbers, 1]})
    assert api.emulator.alive == ()


async def test_account_keys_are_kept_and_none_is_a_404(make):
    """Keys can be added once, changed and removed; the list of none is a 404 as on the real service."""
    api = await make()
    assert (await api("GET", "v0/ssh/"))[0] == 404
    key = (await api("POST", "v0/ssh/", {"ssh_key": "ssh-ed25519 AAAA me"}))[1]["key"]
    assert (await api("POST", "v0/ssh/", {"ssh_key": "ssh-ed25519 AAAA me"}))[1]["key"]["id"] == key["id"]
    assert (await api("POST", "v0/ssh/", {"ssh_key": "nonsense"}))[0] == 400
    await api("PUT", f"v0/ssh/{key['id']}/", {"ssh_key": "ssh-ed25519 BBBB me"})
    assert [row["public_key"] for row in (await api("GET", "v0/ssh/"))[1]] == ["ssh-ed25519 BBBB me"]
    assert (await api("DELETE", f"v0/ssh/{key['id']}/"))[0] == 200
    assert (await api("GET", "v0/ssh/"))[0] == 404


async def test_a_key_attached_twice_says_so(make):
    """Attaching answers success, a second time that it is there already; the list is JSON within JSON."""
    api = await make()
    number = await api.rent()
    attach = ("POST", f"v0/instances/{number}/ssh/", {"ssh_key": "ssh-ed25519 AAAA me"})
    assert (await api(*attach))[0] == 200
    status, body = await api(*attach)
    assert (status, "already" in body["msg"]) == (400, True)
    keys = json.loads((await api("GET", f"v0/instances/{number}/ssh/"))[1]["ssh_keys"])
    assert [key["public_key"] for key in keys] == ["ssh-ed25519 AAAA me"]


async def test_every_call_is_counted_and_wakes_who_waits(make):
    """Calls are counted by endpoint, and a test can wait for one without polling."""
    api = await make()
    path = "PUT /api/v0/asks/{id}/"
    waiting = asyncio.create_task(api.emulator.wait_for(lambda: api.emulator.calls[path] == 1))
    await api.rent()
    await waiting
    assert api.emulator.calls["POST /api/v0/bundles/"] == 1


class StepClock:
    """Time that passes only while somebody sleeps, so that two stories see the same moments to the last bit."""

    def __init__(self) -> None:
        self.time = 1_800_014_400.0

    def now(self) -> float:
        """Return the time."""
        return self.time

    async def sleep(self, seconds: float) -> None:
        """Let time pass, at once."""
        self.time += seconds


async def _story(seed: int) -> list[str]:
    """Rent, benchmark, list and destroy, and return every byte that was answered or printed."""
    troubles = [{"kind": "slow-host", "probability": 0.5}]
    fields = {"limits": {"enabled": False}, "market": {"offers": 60}, "prover": {"baseGib": 0}, "troubles": troubles}
    emulator = Emulator(seed=seed, clock=StepClock(), scenario=Scenario.model_validate(fields))
    texts = []
    headers = {"Authorization": "Bearer emulator-key"}
    transport = httpx.ASGITransport(emulator.app)
    async with httpx.AsyncClient(transport=transport, base_url="http://vast/api", headers=headers) as http:

        async def call(method, path, body=None):
            answer = await http.request(method, path, json=body)
            texts.append(answer.text)
            return answer.json()

        numbers = []
        for _ in range(4):
            offer = (await call("POST", "/v0/bundles/", {}))["offers"][0]
            numbers.append((await call("PUT", f"/v0/asks/{offer['id']}/", GOOD))["new_contract"])
        await emulator.world.clock.sleep(3600)
        bench = "nvidia-smi --query-gpu=uuid --format=csv; cuzk-bench batch --count 3 -c 1"
        await emulator.run(numbers[1], bench, texts.append, texts.append)
        await call("GET", "/v1/instances/")
        await call("DELETE", f"/v0/instances/{numbers[0]}/")
        await call("GET", "/v0/users/current/")
    await emulator.close()
    return texts


async def test_the_same_seed_and_calls_give_the_same_bytes():
    """Two emulators of one seed answer the same calls byte for byte; another seed answers differently."""
    first = await _story(1)
    assert "throughput" in "".join(first)
    assert first == await _story(1)
    assert first != await _story(2)
