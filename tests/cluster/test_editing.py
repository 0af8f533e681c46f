"""A Fleet that is edited, spoilt, wiped or watched by others: the last word counts, once, and its status stays true."""

import asyncio
import json
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster, KubectlError
from tests.cluster.stage import Stage, condition, current, reason, stage

WRONG = manifest().replace("command: json-bench", "prepare: {doneWhen: '('}, command: json-bench")


async def wipe(here: Stage, what: str) -> None:
    """Replace the status of objects by nothing; one that was written meanwhile is read again."""
    owed = {(body["kind"], body["metadata"]["name"]) for body in (await here.get(what))["items"]}
    while owed:
        for body in (await here.get(what))["items"]:
            named = body["kind"], body["metadata"]["name"]
            if named in owed:
                with suppress(KubectlError):
                    wiped = json.dumps(body | {"status": {}})
                    await here.kubectl("replace", "--subresource=status", "-f", "-", input=wiped)
                    owed.discard(named)


async def test_the_last_of_many_edits_wins_once(kinds: Cluster, namespace: str, tmp_path: Path):
    """Of twenty edits in a row the last is what is held: nothing is rented twice, and nothing is left over."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(*(manifest(count=1 + n // 5, budget=10 + n) for n in range(20)))
        await here.ready()
        assert (len(here.alive), len(here.rentals)) == (4, 4)
        await here.apply(*(manifest(count=4 - n // 5, budget=30 + n) for n in range(20)))
        await here.ready()
        await here.until("fleet", "provers", lambda body: body["status"].get("leaving") == 0)
        assert (len(here.alive), len(here.rentals)) == (1, 4)
        assert current(await here.get("fleet", "provers"))


async def test_a_wiped_status_is_written_again(kinds: Cluster, namespace: str, tmp_path: Path):
    """The status of a Fleet and its Instances, replaced by nothing, is soon there again, and nothing is rented."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest())
        await here.ready()
        ids = {body["metadata"]["name"]: body["status"]["instanceId"] for body in await here.instances()}
        await wipe(here, "fleets,instances")
        await here.ready()
        for name, id_ in ids.items():
            back = await here.until("instance", name, lambda body: condition(body, "Ready") == "True")
            assert (back["status"]["phase"], back["status"]["instanceId"]) == ("Admitted", id_)
        assert len(here.rentals) == 2


async def test_a_status_wiped_while_nobody_was_there_is_found_again(kinds: Cluster, namespace: str, tmp_path: Path):
    """An operator that finds objects without a status finds their instances by the labels, and rents none."""
    async with stage(kinds, namespace, tmp_path) as here:
        async with here.operator():
            await here.apply(manifest())
            await here.ready()
        ids = {body["metadata"]["name"]: body["status"]["instanceId"] for body in await here.instances()}
        await wipe(here, "fleets,instances")
        async with here.operator():
            await here.ready()
            back = {body["metadata"]["name"]: body["status"]["instanceId"] for body in await here.instances()}
            assert back == ids
            assert len(here.rentals) == 2


async def test_a_wrong_spec_is_told_of_and_the_last_good_one_held(kinds: Cluster, namespace: str, tmp_path: Path):
    """What the schema cannot tell the operator does: Stalled names the field, and the spec before is held meanwhile."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest())
        await here.ready()
        first = here.alive
        await here.apply(WRONG)
        told = await here.until("fleet", "provers", lambda body: current(body) and condition(body, "Stalled") == "True")
        message = next(each["message"] for each in told["status"]["conditions"] if each["type"] == "Stalled")
        assert "spec.benchmark.prepare.doneWhen" in message
        assert (condition(told, "Ready"), reason(told, "Ready")) == ("False", "InvalidSpec")
        assert "InvalidSpec" in await here.kubectl("events", "--for", "fleet/provers")

        await here.kubectl("delete", "instances", "--all")
        await here.until("fleet", "provers", lambda body: body["status"]["held"] == 2)
        assert not set(first) & set(here.alive)
        held = await here.get("fleet", "provers")
        assert reason(held, "Stalled") == "InvalidSpec"

        await here.apply(manifest())
        await here.ready()
        mended = await here.get("fleet", "provers")
        assert not condition(mended, "Stalled")
        assert len(here.rentals) == 4


async def test_a_wrong_fleet_rents_nothing_and_may_be_deleted(kinds: Cluster, namespace: str, tmp_path: Path):
    """A Fleet that was never right is stalled from the start, and goes when it is deleted; if mended, it is held."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(WRONG, WRONG.replace("name: provers", "name: doomed"))
        for name in ("provers", "doomed"):
            await here.until("fleet", name, lambda body: reason(body, "Stalled") == "InvalidSpec")
        await here.kubectl("delete", "fleet", "doomed")
        assert not here.rentals
        await here.apply(manifest())
        await here.ready()


async def collected(here: Stage, what: str) -> list[dict[str, Any]]:
    """Each state of objects that a watch shows; to be cancelled, and the result taken, when all is over."""
    seen: list[dict[str, Any]] = []
    with suppress(asyncio.CancelledError):
        async for body in here.watch(what):
            seen += [body]
    return seen


def told(here: Stage, bodies: list[dict[str, Any]]) -> list[str]:
    """What kstatus says of an object's states, one after the other, each once."""
    return [status for status, _ in groupby(standing.status for standing in here.kstatus(*bodies))]


async def test_kstatus_sees_each_state(whole_cluster: Cluster, kinds: Cluster, namespace: str, tmp_path: Path):
    """At each moment kstatus says of a Fleet and its Instance what is so, from the first sight to the last.

    Flux and Argo CD go by this: it is never Current before it is so, and Failed when only a person can help.
    """
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        fleets = asyncio.create_task(collected(here, "fleets"))
        instances = asyncio.create_task(collected(here, "instances"))
        await here.apply(manifest(count=1))
        await here.ready()
        await here.apply(WRONG)
        await here.until("fleet", "provers", lambda body: condition(body, "Stalled") == "True")
        await here.apply(manifest(count=1, budget=9))
        await here.ready()
        await here.kubectl("delete", "fleet", "provers")
        for watching in (fleets, instances):
            watching.cancel()
        seen = told(here, await fleets)
        assert seen[:2] == ["InProgress", "Current"]
        assert "Failed" in seen
        assert seen[-1] == "Terminating"
        assert seen.count("Current") == 2
        seen = told(here, await instances)
        assert seen[:2] == ["InProgress", "Current"]
