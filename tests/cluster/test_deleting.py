"""Whatever is deleted in a cluster, and however: nothing is left billing that nobody knows of."""

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster, KubectlError
from tests.cluster.stage import CREATE, DESTROY, KEY, Stage, condition, stage

TROUBLES = {
    "held up before it takes effect": {"kind": "hold", "on": "create", "nth": 1, "when": "before", "seconds": 600},
    "held up after it took effect": {"kind": "hold", "on": "create", "nth": 1, "when": "after", "seconds": 600},
    "whose answer is lost": {"kind": "lost-answer", "on": "create", "nth": 1, "answer": "drop"},
    "of unknown fate that rents nothing": {"kind": "error", "on": "create", "nth": 1, "like": "bad_gateway"},
}


async def last_words(here: Stage, namespace: str = "") -> dict[str, dict[str, Any]]:
    """What each Instance object was like when it was last seen; to be cancelled when all is over."""
    seen: dict[str, dict[str, Any]] = {}
    with suppress(asyncio.CancelledError):
        async for body in here.watch("instances", namespace=namespace):
            seen[body["metadata"]["name"]] = body
    return seen


async def rent_as_somebody_else(here: Stage) -> int:
    """Rent the dearest offer with the same key and a label that is not ours; its id."""
    async with httpx.AsyncClient(base_url=here.url, headers={"Authorization": f"Bearer {KEY}"}) as client:
        body = {"order": [["dph_total", "desc"]], "num_gpus": {"eq": 1}, "rentable": {"eq": True}}
        offers = (await client.post("/api/v0/bundles/", json=body)).json()["offers"]
        wanted = {"client_id": "me", "image": "other/image", "disk": 10, "label": "mine", "runtype": "ssh"}
        made = await client.put(f"/api/v0/asks/{offers[0]['id']}/", json=wanted)
        return int(made.json()["new_contract"])


async def test_a_fleet_goes_when_its_instances_are_gone(
    whole_cluster: Cluster, kinds: Cluster, namespace: str, tmp_path: Path
):
    """`kubectl delete` returns once nothing of the Fleet bills, each end proven and told; what is not ours stays."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        foreign = await rent_as_somebody_else(here)
        await here.apply(manifest())
        await here.ready()
        watching = asyncio.create_task(last_words(here))
        await here.kubectl("delete", "fleet", "provers")
        assert here.alive == (foreign,)
        watching.cancel()
        seen = await watching
        assert len(seen) == 2
        for body in seen.values():
            assert (body["status"]["phase"], condition(body, "TeardownVerified")) == ("Gone", "True")
            assert body["status"]["destroyCalls"] > 0


@pytest.mark.parametrize("how", TROUBLES)
async def test_a_fleet_is_deleted_while_something_is_rented_for_it(
    kinds: Cluster, namespace: str, tmp_path: Path, how: str
):
    """A create that is under way when the Fleet is deleted is waited for, found by its label, and ended."""
    async with stage(kinds, namespace, tmp_path, troubles=[TROUBLES[how]]) as here, here.operator():
        await here.apply(manifest())
        await here.happens(lambda: here.emulator.calls[CREATE] > 0)
        await here.kubectl("delete", "fleet", "provers")
        assert not here.alive
        assert here.emulator.calls[CREATE] <= 2


async def test_a_fleet_deleted_while_nobody_was_there_is_torn_down(kinds: Cluster, namespace: str, tmp_path: Path):
    """Deleted with the operator down, a Fleet waits with its instances; the next operator ends them and lets it go."""
    async with stage(kinds, namespace, tmp_path) as here:
        async with here.operator():
            await here.apply(manifest())
            await here.ready()
        await here.kubectl("delete", "fleet", "provers", "--wait=false")
        assert (await here.get("fleet", "provers"))["metadata"]["deletionTimestamp"]
        assert len(here.alive) == 2
        async with here.operator():
            await here.wait("delete", "fleet/provers")
            assert not here.alive


async def test_an_orphaning_fleet_leaves_its_instances(
    whole_cluster: Cluster, kinds: Cluster, namespace: str, tmp_path: Path
):
    """With deletionPolicy Orphan the objects go and the instances run on: no call is made to end one."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest(policy="Orphan"))
        await here.ready()
        alive = here.alive
        await here.kubectl("delete", "fleet", "provers")
        await here.wait("delete", "instances", "--all")
        assert here.alive == alive
        assert not here.emulator.calls[DESTROY]


@pytest.mark.parametrize("held", ["everywhere", "in the namespace"])
async def test_a_namespace_goes_when_its_instances_are_gone(
    whole_cluster: Cluster, kinds: Cluster, namespace: str, tmp_path: Path, held: str
):
    """Deleting the namespace of a running Fleet ends each of its instances, and then the namespace goes."""
    doomed = f"{namespace}-doomed"
    namespaces = () if held == "everywhere" else (doomed,)
    async with stage(kinds, namespace, tmp_path) as here, here.operator(namespaces=namespaces):
        await here.kubectl("create", "namespace", doomed)
        await here.apply(manifest(), namespace=doomed)
        await here.ready(namespace=doomed)
        watching = asyncio.create_task(last_words(here, doomed))
        await here.kubectl("delete", "namespace", doomed)
        assert not here.alive
        assert len(here.rentals) == 2
        watching.cancel()
        assert {condition(body, "TeardownVerified") for body in (await watching).values()} == {"True"}


async def test_an_instance_deleted_by_hand_is_ended_and_replaced_once(kinds: Cluster, namespace: str, tmp_path: Path):
    """Deleting Instance objects ends what they stand for; as many are rented in their place, and no more."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest())
        await here.ready()
        before = here.alive
        await here.kubectl("delete", "instances", "--all")
        assert not set(before) & set(here.alive)
        await here.ready()
        assert len(here.alive) == 2
        await here.passes(4)
        assert len(here.rentals) == 4


async def test_an_object_taken_away_by_force_is_made_again(kinds: Cluster, namespace: str, tmp_path: Path):
    """An Instance whose finalizer is taken off and which is deleted while what it stands for bills is written anew."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest(count=1))
        await here.ready()
        [body] = await here.instances()
        meta = body["metadata"]
        await here.free(body)
        await here.kubectl("delete", "instance", meta["name"], "--wait=false")
        again = await here.until(
            "instances",
            "",
            lambda made: made["metadata"]["uid"] != meta["uid"] and made.get("status", {}).get("phase") == "Admitted",
        )
        assert again["metadata"]["name"] == meta["name"]
        assert again["metadata"]["finalizers"] == ["vastfleet.io/teardown"]
        assert again["spec"] == body["spec"]
        assert again["status"]["instanceId"] == body["status"]["instanceId"] == here.alive[0]
        assert len(here.rentals) == 1


async def test_a_fleet_taken_away_by_force_leaves_nothing(
    whole_cluster: Cluster, kinds: Cluster, namespace: str, tmp_path: Path
):
    """A Fleet deleted without its finalizer takes its Instance objects with it, and with these what they stand for."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest())
        await here.ready()
        await here.kubectl("delete", "fleet", "provers", "--wait=false")
        with suppress(KubectlError):
            await here.free(await here.get("fleet", "provers"))
        await here.wait("delete", "fleet/provers")
        await here.wait("delete", "instances", "--all")
        assert not here.alive
        assert len(here.rentals) == 2


async def test_nothing_is_left_of_objects_forced_away_while_nobody_was_there(
    kinds: Cluster, namespace: str, tmp_path: Path
):
    """Instances whose objects were all taken away while the operator was down are found again by their labels."""
    async with stage(kinds, namespace, tmp_path) as here:
        async with here.operator():
            await here.apply(manifest())
            await here.ready()
        for body in await here.instances():
            await here.free(body)
        await here.kubectl("delete", "instances", "--all")
        async with here.operator():
            await here.until("fleet", "provers", lambda body: condition(body, "Ready") != "True")
            await here.ready()
            assert sorted(here.alive) == sorted(body["status"]["instanceId"] for body in await here.instances())
            assert len(here.rentals) == 2
