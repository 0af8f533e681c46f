import asyncio

import httpx
import pytest

from controller.emulator import Scenario, ScenarioError

pytestmark = pytest.mark.looptime

ORDER = {"client_id": "me", "image": "i", "disk": 10}


async def test_a_lost_answer_leaves_its_effect(make):
    """A create whose answer is lost hangs for the client, and the instance exists."""
    api = await make(troubles=[{"kind": "lost-answer", "on": "create", "nth": 2}])
    offers = await api.offers()
    await api.rent(offers[0])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(api("PUT", f"v0/asks/{offers[-1]['id']}/", {**ORDER, "label": "lost"}), 60)
    assert [rental.label for rental in api.emulator.rentals()] == [None, "lost"]


async def test_a_lost_answer_may_be_another_answer(make):
    """The effect can hide behind a gateway's page."""
    api = await make(troubles=[{"kind": "lost-answer", "on": "destroy", "like": "bad_gateway"}])
    number = await api.rent()
    status, body = await api("DELETE", f"v0/instances/{number}/")
    assert (status, "Bad Gateway" in body) == (502, True)
    assert api.emulator.alive == ()


async def test_a_client_that_leaves_prevents_nothing(make):
    """A request held before its effect takes effect though its client has gone."""
    api = await make(troubles=[{"kind": "hold", "on": "create", "when": "before", "seconds": 30}])
    offer = (await api.offers())[0]
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(api("PUT", f"v0/asks/{offer['id']}/", ORDER), 5)
    assert api.emulator.alive == ()
    await api.emulator.wait_for(lambda: api.emulator.alive != ())
    assert asyncio.get_running_loop().time() == pytest.approx(30, abs=0.01)


async def test_a_hold_after_the_effect_delays_the_answer_alone(make):
    """Held after its effect, a create is done at once and answered later."""
    api = await make(troubles=[{"kind": "hold", "on": "create", "when": "after", "seconds": 30}])
    task = asyncio.create_task(api.rent())
    await api.emulator.wait_for(lambda: api.emulator.alive != ())
    assert asyncio.get_running_loop().time() < 1
    await task
    assert asyncio.get_running_loop().time() == pytest.approx(30)


@pytest.mark.parametrize(
    ("trouble", "status", "body"),
    [
        ({"like": "deprecated_endpoint"}, 410, None),
        ({"like": "html_200"}, 200, "<html><body>Vast.ai is being updated.</body></html>"),
        ({"like": "empty_200"}, 200, ""),
        ({"like": "empty_object"}, 200, {}),
        ({"like": "empty_list"}, 200, {"instances": []}),
        ({"status": 500, "body": {"x": None}}, 500, {"x": None}),
        ({"status": 200, "body": ""}, 200, ""),
    ],
)
async def test_a_listing_fails_in_every_known_way(make, trouble, status, body):
    """The nth list answers what the scenario says; the ones around it are whole."""
    api = await make(troubles=[{"kind": "error", "on": "list", "nth": 2, **trouble}])
    number = await api.rent()
    answers = [await api("GET", "v1/instances/") for _ in range(3)]
    assert [row["id"] for row in answers[0][1]["instances"]] == [number]
    assert answers[1][0] == status
    assert body is None or answers[1][1] == body
    assert answers[2][0] == 200


async def test_conditions_choose_the_calls(make):
    """every, between and times each meet the calls they describe."""
    down = {"kind": "error", "on": "user", "status": 503}
    for condition, met in (
        ({"every": 3}, [2, 5, 8]),
        ({"between": [20, 50]}, [2, 3, 4]),
        ({"times": 2}, [0, 1]),
        ({"probability": 0}, []),
    ):
        api = await make(troubles=[{**down, **condition}])
        statuses = []
        for _ in range(9):
            statuses.append((await api("GET", "v0/users/current/"))[0])
            await api.emulator.world.clock.sleep(10)
        assert [n for n, status in enumerate(statuses) if status == 503] == met


async def test_a_trouble_meets_only_the_instances_it_names(make):
    """The nth instance, or all on a machine, are met; others are not."""
    api = await make(troubles=[{"kind": "stuck-loading", "instance": 2}])
    numbers = [await api.rent() for _ in range(3)]
    await api.emulator.world.clock.sleep(1200)
    assert [(await api.row(number))["actual_status"] for number in numbers] == ["running", "loading", "running"]


async def test_a_dropped_answer_breaks_off_on_the_wire(make):
    """Over a real socket an answer can stop after its head, and its effect has happened."""
    api = await make(troubles=[{"kind": "lost-answer", "on": "create", "answer": "drop"}])
    offer = (await api.offers())[0]
    url = await api.emulator.serve()
    async with httpx.AsyncClient(base_url=url, headers=api.http.headers) as client:
        with pytest.raises(httpx.RemoteProtocolError):
            await client.put(f"/api/v0/asks/{offer['id']}/", json=ORDER)
    assert len(api.emulator.alive) == 1


async def test_a_hanging_answer_hangs_on_the_wire_too(make):
    """Over a real socket the client runs into its own timeout, and closing the emulator is not held up."""
    api = await make(troubles=[{"kind": "lost-answer", "on": "create"}])
    offer = (await api.offers())[0]
    url = await api.emulator.serve()
    async with httpx.AsyncClient(base_url=url, headers=api.http.headers, timeout=20) as client:
        with pytest.raises(httpx.ReadTimeout):
            await client.put(f"/api/v0/asks/{offer['id']}/", json=ORDER)
    assert len(api.emulator.alive) == 1


def test_a_scenario_file_is_read_whole(tmp_path):
    """Every part of a scenario can be said in a file, with a listing found beside it."""
    path = tmp_path / "scenario.yaml"
    path.write_text(
        "seed: 9\nspeed: 60\ncredit: 12.5\nmarket: {listing: offers.json, assumeRentable: true}\n"
        "limits: {searchQuota: 5}\nv0List: true\ntroubles:\n"
        "- {kind: lost-answer, on: create, nth: 2}\n- {kind: host-lost, instance: 3, after: 60}\n"
        "- {kind: credit-out, after: 900}\n"
    )
    scenario = Scenario.load(path)
    assert (scenario.seed, scenario.speed, scenario.v0_list) == (9, 60, True)
    assert scenario.market.listing == tmp_path / "offers.json"
    assert [trouble.kind for trouble in scenario.calls] == ["lost-answer"]
    assert [trouble.kind for trouble in scenario.hosts] == ["host-lost"]
    assert scenario.credit_out_after == 900


@pytest.mark.parametrize(
    ("text", "places"),
    [
        ("sede: 1\nspeed: -1", ["sede", "speed"]),
        ("troubles: [{kind: host-lost, nth: 2}]", ["troubles.0.nth"]),
        ("troubles: [{kind: surprise}]", ["troubles.0.kind"]),
        ("troubles: [{kind: error, on: list}]", ["troubles.0"]),
        ("troubles: [{kind: error, like: nothing}]", ["troubles.0"]),
        ("[1]", ["(top)"]),
        ("a: [", ["scenario.yaml"]),
    ],
)
def test_a_wrong_scenario_names_file_and_place(tmp_path, text, places):
    """Unknown keys, values out of range and broken YAML are refused, all at once, with file and field."""
    path = tmp_path / "scenario.yaml"
    path.write_text(text)
    with pytest.raises(ScenarioError) as caught:
        Scenario.load(path)
    assert all(f"{path}" in line for line in str(caught.value).splitlines() if line.startswith("/"))
    assert all(place in str(caught.value) for place in places)
