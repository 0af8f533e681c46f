"""A Kubernetes control plane for the tests here, started when the first asks for it: one for each process of pytest.

It is the project's own, or what KUBEBUILDER_ASSETS names, which cannot do all that `whole_cluster` stands for.
"""

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.model.crd import files
from controller.model.kinds import GROUP, KINDS
from tests.cluster import assets, plane
from tests.cluster.plane import Cluster
from tests.controlplane.build import BuildError, build, in_use

ASSETS = os.environ.get("KUBEBUILDER_ASSETS")
BUILT = pytest.StashKey[Path | BuildError]()
NUMBERS = itertools.count(1)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Build before the first test, and in sight: a test's time limit and captured output are not for this."""
    wanted = any("cluster" in getattr(item, "fixturenames", ()) for item in session.items)
    if ASSETS or not wanted or session.config.getoption("collectonly"):
        return
    with session.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        try:
            session.config.stash[BUILT] = build()
        except (BuildError, OSError) as error:
            session.config.stash[BUILT] = BuildError(str(error))


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Iterator[Cluster]:
    """A control plane; what tests make in it, each keeps in a `namespace` of its own, or under names of its own."""
    if ASSETS:
        with assets.running(Path(ASSETS)) as started:
            yield started
        return
    built = pytestconfig.stash[BUILT]
    if isinstance(built, BuildError):
        pytest.fail(str(built), pytrace=False)
    with in_use(built), plane.running(built) as started:
        yield started


@pytest.fixture
def whole_cluster(cluster: Cluster) -> Cluster:
    """A control plane with kube-controller-manager (garbage collection, namespaces that go) and kstatus."""
    if ASSETS:
        pytest.skip("KUBEBUILDER_ASSETS has neither kube-controller-manager nor kstatus")
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace of the test's own; it goes afterwards, which is not waited for."""
    name = f"test-{next(NUMBERS)}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false", "--ignore-not-found")


@pytest.fixture(scope="session")
def kinds(cluster: Cluster) -> Cluster:
    """A control plane that knows Fleets, Instances and Machines."""
    cluster.kubectl("apply", "-f", "-", input="---\n".join(files().values()))
    cluster.kubectl("wait", "--for=condition=Established", *(f"crd/{kind.plural}.{GROUP}" for kind in KINDS))
    return cluster
