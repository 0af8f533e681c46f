"""What deploy/ has is taken by a real API server, and is as strict as it says."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tests.cluster.deployed import CLUSTER, DEPLOY, NAMESPACED, Body, parsed, rendered
from tests.cluster.plane import Cluster, KubectlError

ROOT = DEPLOY.parent
BASES = pytest.mark.parametrize("base", [CLUSTER, NAMESPACED], ids=["cluster", "namespaced"])


def one(bodies: list[Body], kind: str) -> Body:
    (found,) = (body for body in bodies if body["kind"] == kind)
    return found


def pod(bodies: list[Body], namespace: str) -> Body:
    """A Pod as the Deployment would make it. Nothing here starts Pods, and one that is only tried needs no account."""
    template = one(bodies, "Deployment")["spec"]["template"]
    spec = {name: value for name, value in template["spec"].items() if name != "serviceAccountName"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tried", "namespace": namespace}, "spec": spec}


@BASES
def test_the_server_takes_it(kinds: Cluster, namespace: str, tmp_path: Path, base: Path):
    """A server-side dry run accepts every object, without a field that it does not know; the Secret example too."""
    items = rendered(kinds, base, tmp_path, namespace)
    secret = parsed((DEPLOY / "secret.example.yaml").read_text())[0]
    secret["metadata"]["namespace"] = namespace
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items, secret]})
    said = kinds.kubectl("apply", "--dry-run=server", "--validate=strict", "-f", "-", input=text)
    assert said.count("(server dry run)") == len(items) + 1


@BASES
def test_it_is_named_alike(kinds: Cluster, base: Path):
    """Without an overlay all is in the namespace vastfleet; bindings bind what is there to its account."""
    bodies = parsed(kinds.kubectl("kustomize", str(base)))
    names = {(body["kind"], body["metadata"]["name"]) for body in bodies}
    assert {body["metadata"].get("namespace", "vastfleet") for body in bodies} == {"vastfleet"}
    for body in bodies:
        if body["kind"].endswith("Binding"):
            assert (body["roleRef"]["kind"], body["roleRef"]["name"]) in names
            assert body["subjects"] == [{"kind": "ServiceAccount", "name": "vastfleet", "namespace": "vastfleet"}]


def test_its_pods_are_restricted(kinds: Cluster, namespace: str, tmp_path: Path):
    """A namespace that enforces the restricted Pod Security Standard takes its Pods, and none that may gain rights."""
    kinds.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    made = pod(rendered(kinds, CLUSTER, tmp_path, namespace), namespace)
    create = ("create", "--dry-run=server", "-f", "-")
    kinds.kubectl(*create, input=json.dumps(made))
    made["spec"]["containers"][0]["securityContext"]["allowPrivilegeEscalation"] = True
    with pytest.raises(KubectlError, match="violates PodSecurity"):
        kinds.kubectl(*create, input=json.dumps(made))


def test_it_writes_where_it_may(kinds: Cluster, tmp_path: Path):
    """The root file system is read-only; the SSH key and HOME are on volumes, and HOME is where the image says."""
    (container,) = pod(rendered(kinds, CLUSTER, tmp_path, "a"), "a")["spec"]["containers"]
    env = {each["name"]: each.get("value", "") for each in container["env"]}
    mounted = [each["mountPath"] for each in container["volumeMounts"]]
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert str(Path(env["VASTFLEET_SSH_KEY"]).parent) in mounted
    home = re.search(r"HOME=(\S+)", (ROOT / "Dockerfile").read_text())
    assert home is not None
    assert home[1] in mounted


def test_it_is_of_this_version(kinds: Cluster, tmp_path: Path):
    """The image's tag is the project's version, and the name that the Dockerfile is told to be built under."""
    (container,) = pod(rendered(kinds, CLUSTER, tmp_path, "a"), "a")["spec"]["containers"]
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert container["image"] == f"vastfleet:{version}"
    assert f"docker build -t {container['image']} ." in (ROOT / "Dockerfile").read_text()


def test_every_kind_is_installed(kinds: Cluster):
    """Kustomize takes every definition that crds/ has."""
    bodies = parsed(kinds.kubectl("kustomize", str(CLUSTER)))
    definitions = {body["metadata"]["name"] for body in bodies if body["kind"] == "CustomResourceDefinition"}
    assert len(definitions) == len(list((ROOT / "crds").glob("*.yaml")))
