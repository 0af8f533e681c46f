"""The operator's rights: those that it uses, and no others."""

import re
from functools import partial
from pathlib import Path

import pytest

from tests.cluster.deployed import CLUSTER, NAMESPACED, account, rendered
from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster, KubectlError
from tests.cluster.proxy import Call
from tests.cluster.replicas import Replicas, replicas

VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
ENFORCED = {("fleets/finalizers", "update")}  # used by no call: it lets one own Instances, where that is enforced
PATH = re.compile(
    r"/apis?(?:/[a-z0-9.]+)?/v1\w*(?:/namespaces/[^/?]+)?/(?P<kind>[a-z]+)(?:/(?P<name>[^/?]+))?(?P<sub>/status)?"
)

Right = tuple[str, str]


def used(calls: list[Call]) -> set[Right]:
    """What calls needed: resource and verb. What anybody may ask, what there is, needs nothing."""
    found = set[Right]()
    for call in calls:
        match = PATH.match(call.path)
        if match is None:
            continue
        look = "watch" if "watch=true" in call.path else "get" if match["name"] else "list"
        found.add((match["kind"] + (match["sub"] or ""), VERBS.get(call.method, look)))
    return found


def holds(here: Replicas, count: int) -> bool:
    """Whether so many instances bill."""
    return len(here.stage.alive) == count


def granted(cluster: Cluster, base: Path, place: Path, namespace: str) -> set[Right]:
    """What the rules of a base allow."""
    rules = [rule for body in rendered(cluster, base, place, namespace) for rule in body.get("rules", ())]
    return {(resource, verb) for rule in rules for resource in rule["resources"] for verb in rule["verbs"]}


@pytest.mark.parametrize("base", [NAMESPACED, CLUSTER], ids=["namespaced", "cluster"])
async def test_it_may_do_what_it_does_and_no_more(kinds: Cluster, namespace: str, tmp_path: Path, base: Path):
    """With the rights of deploy/ alone a Fleet becomes Ready, rolls and is deleted; each right was used for it."""
    async with replicas(kinds, namespace, tmp_path, speed=600, seconds=5, base=base) as here:
        here.start(everywhere=base == CLUSTER)
        await here.stage.kubectl("create", "secret", "generic", "tokens", "--from-literal=TOKEN=t")
        await here.stage.apply(manifest(count=6, secrets=("tokens",)))
        await here.stage.ready()
        for count in (1, 6, 1, 6, 1):  # more go than are remembered: the oldest objects are deleted
            await here.stage.apply(manifest(count=count, secrets=("tokens",)))
            await here.stage.ready()
            await here.stage.happens(partial(holds, here, count))
        await here.api.until(lambda: bool(here.api.sent("DELETE")))
        await here.stage.kubectl("delete", "fleet", "provers", "--timeout=60s")
        assert {call.path for call in here.api.calls if call.status == 403} == set()
        assert used(here.api.calls) == granted(kinds, base, tmp_path, namespace) - ENFORCED


def test_nothing_more_is_allowed(kinds: Cluster, namespace: str, tmp_path: Path):
    """What the API server says the account may do is what the rules say, beside what anybody may."""
    kinds.kubectl("create", "serviceaccount", "nobody", "-n", namespace)
    token = account(kinds, NAMESPACED, tmp_path, namespace)

    def listed(token: str) -> set[str]:
        return set(kinds.kubectl("auth", "can-i", "--list", "-n", namespace, "--token", token).splitlines())

    more = listed(token) - listed(kinds.token_for(namespace, "nobody"))
    said = set[Right]()
    for line in more:
        resource, verbs = line.split()[0], re.findall(r"\[([^\[\]]*)\]$", line.strip())[0].split()
        said |= {
            (resource.partition(".")[0] + ("/" + resource.partition("/")[2] if "/" in resource else ""), v)
            for v in verbs
        }
    assert said == granted(kinds, NAMESPACED, tmp_path, namespace)
    for question in (("list", "secrets"), ("get", "pods"), ("delete", "fleets"), ("delete", "machines")):
        with pytest.raises(KubectlError):
            kinds.kubectl("auth", "can-i", *question, "-n", namespace, "--token", token)
    with pytest.raises(KubectlError):
        kinds.kubectl("auth", "can-i", "get", "secrets", "-n", "default", "--token", token)
