"""A Fleet's life in a cluster, from `kubectl apply` on: filled, at rest, measured again, seen through restarts."""

import json
import re
from pathlib import Path
from typing import Any

from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster
from tests.cluster.stage import Stage, condition, conditions, current, reason, stage

EXAMPLE = Path(__file__).parents[2] / "examples" / "fleet.yaml"
SETS = "fleets,instances,machines"
DRIFTS = (
    *("cost", "costUntil", "costPerUnit", "creditRunwayHours", "shapes", "line", "nextRunAt"),
    *("rate", "low", "high", "pGood", "independent", "disturbed", "keepHours", "measureHours", "replaceHours"),
)
RESTS = 20  # looks, of which one must find that nothing is written


async def versions(here: Stage) -> dict[str, str]:
    """The version of each object of the stage's."""
    objects = (await here.get("fleets,instances"))["items"] + await here.machines()
    return {f"{each['kind']}/{each['metadata']['name']}": each["metadata"]["resourceVersion"] for each in objects}


async def contents(here: Stage) -> list[str]:
    """The stage's objects, line by line, but for what goes on with time alone: costs, credit, and what is believed."""
    objects = (await here.get("fleets,instances"))["items"] + await here.machines()
    for body in objects:
        status = body["status"]
        status["conditions"] = [each for each in conditions(body) if each["type"] != "CreditSufficient"]
        for name in DRIFTS:
            status.pop(name, None)
        for name in ("resourceVersion", "managedFields"):
            body["metadata"].pop(name, None)
    return json.dumps(objects, indent=1).splitlines()


async def rests(here: Stage, *, passes: int = 4) -> bool:
    """Whether so many passes in a row leave every object as it is; some more of them are looked at until they do."""
    for _ in range(RESTS):
        before = await versions(here)
        await here.passes(passes)
        if await versions(here) == before:
            return True
    return False


def cells(table: str) -> list[dict[str, str]]:
    """The tables that kubectl prints, row by row."""
    rows = []
    for block in table.strip().split("\n\n"):
        head, *lines = block.splitlines()
        starts = [found.start() for found in re.finditer(r"\S+", head)]
        ends = [*starts[1:], None]
        cut = [[line[a:b].strip() for a, b in zip(starts, ends, strict=True)] for line in [head, *lines]]
        rows += [dict(zip(cut[0], row, strict=True)) for row in cut[1:]]
    return rows


async def test_the_example_is_applied_and_becomes_ready(kinds: Cluster, namespace: str, tmp_path: Path):
    """`kubectl apply` and `kubectl wait` are enough; `kubectl get` then shows how each rental stands.

    The six are held within the budget, and no more than these are rented.
    """
    async with (
        stage(kinds, namespace, tmp_path, market={"offers": 1000}, prover={"rateFactor": 1.3}) as here,
        here.operator(),
    ):
        await here.kubectl("apply", "-f", str(EXAMPLE))
        await here.wait("condition=Ready", "fleet/provers")
        shown = cells(await here.kubectl("get", SETS))
        fleet = next(row for row in shown if row["NAME"] == "fleet.vastfleet.io/provers")
        assert (fleet["READY"], fleet["TARGET"], fleet["HELD"], fleet["REASON"]) == ("True", "6", "6", "TargetReached")
        assert 0 < float(fleet["$/H"]) <= float(fleet["BUDGET"]) == 3.2
        assert here.emulator.peak_committed_per_hour <= 3.2
        admitted = [row for row in shown if row.get("PHASE") == "Admitted"]
        assert len(admitted) == 6 == len(here.alive)
        for row in admitted:
            assert all(row[head] for head in ("GPU", "REGION", "RATE", "P(GOOD)", "RUNS", "$/H", "NEXT", "AGE"))
        machines = [row for row in shown if row["NAME"].startswith(f"machine.vastfleet.io/{here.owner}-")]
        assert len(machines) >= 6
        assert all(row["GPU"] and float(row["RATE"]) > 0 and int(row["RUNS"]) > 0 for row in machines)
        assert "TargetReached" in await here.kubectl("events", "--for", "fleet/provers")


def measured_again(body: dict[str, Any]) -> bool:
    """Whether an instance works on after a second run."""
    status = body["status"]
    return bool(status.get("phase") == "Admitted" and status.get("runs", 0) > 1)


async def test_nothing_is_written_while_nothing_happens(kinds: Cluster, namespace: str, tmp_path: Path):
    """A fleet that is held is passed over again and again, and no object changes; until a check is due."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest(count=1).replace("command: json-bench", "recheckHours: 1, command: json-bench"))
        await here.ready()
        assert await rests(here)
        instance = (await here.instances("Admitted"))[0]["metadata"]["name"]
        await here.until("instance", instance, measured_again)
        assert len(here.rentals) == 1


async def test_a_restart_changes_nothing(kinds: Cluster, namespace: str, tmp_path: Path):
    """An operator that ends and starts anew takes up what is there: it rents, ends, measures and writes nothing."""
    async with stage(kinds, namespace, tmp_path) as here:
        async with here.operator():
            await here.apply(manifest())
            await here.ready()
            assert await rests(here)
        alive, before = here.alive, await contents(here)
        async with here.operator():
            await here.passes(4)
            assert await contents(here) == before
        assert here.alive == alive == tuple(rental.id for rental in here.rentals)


async def test_what_is_suspended_rents_nothing(kinds: Cluster, namespace: str, tmp_path: Path):
    """A suspended Fleet says so and rents nothing, until it is suspended no more."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest(suspend=True))
        await here.until("fleet", "provers", lambda body: condition(body, "Suspended") == "True")
        await here.passes(3)
        assert not here.rentals
        await here.apply(manifest())
        await here.ready()
        assert not condition(await here.get("fleet", "provers"), "Suspended")


async def test_a_pass_is_made_when_it_is_asked_for(kinds: Cluster, namespace: str, tmp_path: Path):
    """The annotation requestedAt wakes the operator, and the status says that the request was answered."""
    async with stage(kinds, namespace, tmp_path) as here, here.operator():
        await here.apply(manifest(suspend=True))
        await here.until("fleet", "provers", current)
        for at in ("2026-11-30T12:00:00Z", "again"):
            await here.kubectl("annotate", "--overwrite", "fleet", "provers", f"vastfleet.io/requestedAt={at}")

            def answered(body: dict[str, Any], at: str = at) -> bool:
                return bool(body["status"].get("lastHandledReconcileAt") == at)

            await here.until("fleet", "provers", answered)


async def test_a_secret_is_read_where_it_is_referred_to(kinds: Cluster, namespace: str, tmp_path: Path):
    """A missing Secret is named by the condition; once it is there what is rented has its values, and later new ones.

    No value of it is in any object of the fleet's, nor in what the operator prints.
    """
    values = ["SECRET-first-marker", "SECRET-second-marker"]
    async with stage(kinds, namespace, tmp_path) as here, here.operator("-vv") as operator:
        await here.apply(manifest(count=1, secrets=("prover-env",)))
        told = await here.until("fleet", "provers", lambda body: reason(body, "Ready") == "EnvUnresolved")
        message = next(each["message"] for each in told["status"]["conditions"] if each["type"] == "Ready")
        assert f"Secret {namespace}/prover-env does not exist" in message
        assert not here.rentals
        await here.kubectl("create", "secret", "generic", "prover-env", f"--from-literal=TOKEN={values[0]}")
        await here.ready()
        patch = f'{{"stringData": {{"TOKEN": "{values[1]}"}}}}'
        await here.kubectl("patch", "secret", "prover-env", "-p", patch)
        await here.apply(manifest(count=2, secrets=("prover-env",)))
        await here.ready()
        assert [here.env(rental.id)["TOKEN"] for rental in here.rentals] == values
        shown = await here.kubectl("get", "fleets,instances,events", "-o", "yaml")
        assert not any(value in "\n".join([shown, *operator.lines]) for value in values)


async def test_operators_of_namespaces_hold_their_own(kinds: Cluster, namespace: str, tmp_path: Path):
    """Of two operators with a namespace each, each holds the Fleets of its own, and no one those of a third."""
    mine, other, nobodys = (f"{namespace}-{name}" for name in ("a", "b", "c"))
    async with stage(kinds, namespace, tmp_path) as here:
        for name in (mine, other, nobodys):
            await here.kubectl("create", "namespace", name)
        first = await here.start(namespaces=(mine,), VASTFLEET_OWNER=f"{here.owner}-a")
        await here.start(namespaces=(other,), VASTFLEET_OWNER=f"{here.owner}-b")
        for name in (nobodys, mine, other):
            await here.apply(manifest(), namespace=name)
        await here.ready(namespace=mine)
        await here.ready(namespace=other)
        owners = sorted((rental.label or "").split("/")[1:3] for rental in here.rentals)
        want = [[f"{here.owner}-{which}", f"{name}.provers"] for which, name in (("a", mine), ("b", other))]
        assert owners == [each for each in want for _ in range(2)]
        await first.stop()
        await here.kubectl("delete", "fleet", "provers", namespace=other)
        assert {(here.label(each) or "").split("/")[2] for each in here.alive} == {f"{mine}.provers"}
        untouched = await here.get("fleet", "provers", namespace=nobodys)
        assert "finalizers" not in untouched["metadata"]
        assert not untouched.get("status", {}).get("conditions")
