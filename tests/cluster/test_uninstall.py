"""What taking the operator away leaves: nothing that bills, in whichever order it is done while it runs."""

import asyncio
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.model.crd import files
from tests.cluster import plane
from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster
from tests.cluster.replicas import replicas

DEFINITIONS = ("fleets", "instances", "machines")


@pytest.fixture
def alone(whole_cluster: Cluster) -> Iterator[Cluster]:
    """A control plane of the test's own: it takes away the kinds that the other tests need."""
    with plane.running(whole_cluster.programs) as started:
        started.kubectl("apply", "-f", "-", input="---\n".join(files().values()))
        started.kubectl("wait", "--for=condition=Established", *(f"crd/{each}.vastfleet.io" for each in DEFINITIONS))
        started.kubectl("create", "namespace", "farm")
        yield started


async def test_deleting_the_kinds_ends_every_rental(alone: Cluster, tmp_path: Path):
    """`kubectl delete crd` while the operator runs ends every rental before the definitions go.

    The operator then ends, for it has nothing to watch: to be started anew, until there is.
    """
    async with replicas(alone, "farm", tmp_path, speed=600, seconds=5) as here:
        operator = here.start()
        await here.stage.apply(manifest(count=2))
        await here.stage.ready()
        names = [f"{each}.vastfleet.io" for each in DEFINITIONS]
        await here.stage.kubectl("delete", "crd", *names, "--timeout=60s")
        assert not here.stage.alive
        assert await operator.ended() == 1


async def test_what_is_documented_ends_every_rental_first(alone: Cluster, tmp_path: Path):
    """The documented order: Fleets, then a look at what is left, then the rest."""
    async with replicas(alone, "farm", tmp_path, speed=600, seconds=5) as here:
        operator = here.start()
        await here.stage.apply(manifest(count=2))
        await here.stage.ready()
        await alone.kubectl_async("delete", "fleets", "--all", "-A", "--timeout=60s")
        assert not here.stage.alive
        await here.stage.wait("delete", "instances", "--all")
        operator.signal(signal.SIGTERM)
        assert await operator.ended() == 0
        names = [f"{each}.vastfleet.io" for each in DEFINITIONS]
        await here.stage.kubectl("delete", "crd", *names, "--timeout=60s")


async def test_an_operator_that_comes_back_ends_what_was_left(alone: Cluster, tmp_path: Path):
    """Taken away before the Fleets were, it leaves them stuck, and their instances billing; put back, it ends them."""
    async with replicas(alone, "farm", tmp_path, speed=600, seconds=1) as here:
        operator = here.start()
        await here.stage.apply(manifest(count=2))
        await here.stage.ready()
        await operator.kill()
        names = [f"{each}.vastfleet.io" for each in DEFINITIONS]
        await here.stage.kubectl("delete", "crd", *names, "--wait=false")
        await here.stage.until("fleet", "provers", lambda body: "deletionTimestamp" in body["metadata"])
        assert len(here.stage.alive) == 2
        here.start()
        await asyncio.gather(*(here.stage.wait("delete", f"crd/{name}") for name in names))
        assert not here.stage.alive
