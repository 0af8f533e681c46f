"""The control plane that the tests here rely on is a real one."""

import json
import ssl
import subprocess
import tempfile
import urllib.request
from pathlib import Path

import pytest

from tests.cluster import plane
from tests.cluster.plane import Cluster, KubectlError, Standing

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Widget, plural: widgets, singular: widget}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {low: {type: integer}, high: {type: integer}}
            x-kubernetes-validations:
            - {rule: self.low <= self.high, message: low must not be above high, fieldPath: .low}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


def widget(name: str, low: int, high: int) -> str:
    spec = {"low": low, "high": high}
    return json.dumps({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec})


@pytest.fixture
def widgets(cluster: Cluster) -> Cluster:
    cluster.kubectl("apply", "-f", "-", input=WIDGETS)
    cluster.kubectl("wait", "--for=condition=Established", "crd/widgets.example.com")
    return cluster


async def test_kubectl_finds_the_cluster(cluster: Cluster, namespace: str):
    """The server is reached by kubectl, from a loop too, and neither side is older than the other."""
    assert namespace in cluster.kubectl("get", "namespaces", "--output=name")
    assert await cluster.kubectl_async("auth", "can-i", "delete", "nodes") == "yes\n"
    said = json.loads(cluster.kubectl("version", "--output=json"))
    assert said["clientVersion"]["gitVersion"] == said["serverVersion"]["gitVersion"]
    with pytest.raises(KubectlError, match='namespaces "nowhere" not found'):
        await cluster.kubectl_async("get", "namespace", "nowhere")


def test_a_rule_of_a_crd_refuses(widgets: Cluster, namespace: str):
    """A custom resource that breaks a rule in CEL is refused at the field that the rule names; a good one is taken."""
    with pytest.raises(KubectlError, match=r"spec\.low: Invalid value: .*low must not be above high"):
        widgets.kubectl("create", "-n", namespace, "-f", "-", input=widget("odd", 3, 2))
    widgets.kubectl("create", "-n", namespace, "-f", "-", input=widget("even", 2, 2))


def test_rights_are_those_granted(cluster: Cluster, namespace: str):
    """A service account with a token of its own may do what a role lets it do, and no more."""

    def may(verb: str, what: str) -> bool:
        command = ("auth", "can-i", verb, what, "-n", namespace, "--token", token)
        try:
            return cluster.kubectl(*command) == "yes\n"
        except KubectlError:
            return False

    cluster.kubectl("create", "serviceaccount", "reader", "-n", namespace)
    token = cluster.token_for(namespace, "reader")
    assert not may("list", "secrets")
    cluster.kubectl("create", "role", "reader", "-n", namespace, "--verb=list", "--resource=secrets")
    cluster.kubectl(
        "create", "rolebinding", "reader", "-n", namespace, "--role=reader", f"--serviceaccount={namespace}:reader"
    )
    assert may("list", "secrets")
    assert not may("delete", "secrets")


def test_strict_clients_trust_the_server(cluster: Cluster, namespace: str):
    """A client that checks certificates as strictly as it can speaks with the server, as a service account."""
    cluster.kubectl("create", "serviceaccount", "caller", "-n", namespace)
    context = ssl.create_default_context(cafile=str(cluster.ca))
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    request = urllib.request.Request(
        f"{cluster.server}/apis/authentication.k8s.io/v1/selfsubjectreviews",
        json.dumps({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}).encode(),
        {"Authorization": f"Bearer {cluster.token_for(namespace, 'caller')}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, context=context) as answer:
        assert json.load(answer)["status"]["userInfo"]["username"] == f"system:serviceaccount:{namespace}:caller"


def test_what_is_owned_goes_with_its_owner(whole_cluster: Cluster, namespace: str):
    """An object goes when the object that owns it is deleted."""

    def config_map(name: str, *owners: dict[str, str]) -> str:
        made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "ownerReferences": owners}}
        return whole_cluster.kubectl(
            "create", "-n", namespace, "-f", "-", "-o", "jsonpath={.metadata.uid}", input=json.dumps(made)
        )

    uid = config_map("owner")
    config_map("owned", {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid})
    whole_cluster.kubectl("delete", "configmap", "owner", "-n", namespace)
    whole_cluster.kubectl("wait", "--for=delete", "configmap/owned", "-n", namespace, "--timeout=60s")


def test_a_namespace_goes_with_all_it_holds(whole_cluster: Cluster):
    """Deleting a namespace deletes what is in it, and it goes once that is gone."""
    whole_cluster.kubectl("create", "namespace", "doomed")
    whole_cluster.kubectl("create", "configmap", "kept", "-n", "doomed")
    whole_cluster.kubectl("delete", "namespace", "doomed", "--timeout=60s")
    with pytest.raises(KubectlError, match='"doomed" not found'):
        whole_cluster.kubectl("get", "namespace", "doomed")


def test_kstatus_judges_objects(whole_cluster: Cluster, widgets: Cluster, namespace: str):
    """An object is judged by its conditions, as kstatus judges, for one object and for a list."""
    for name in ("done", "busy"):
        widgets.kubectl("create", "-n", namespace, "-f", "-", input=widget(name, 1, 2))
    condition = {"type": "Reconciling", "status": "True", "reason": "Made", "message": "two to go"}
    status = json.dumps({"status": {"conditions": [condition]}})
    options = ("--subresource=status", "--type=merge", "--patch", status, "-o", "json")
    one = widgets.kubectl("patch", "widget", "busy", "-n", namespace, *options)
    assert whole_cluster.kstatus(one) == {"Widget/busy": Standing("InProgress", "two to go")}
    both = whole_cluster.kstatus(widgets.kubectl("get", "widgets", "-n", namespace, "-o", "json"))
    assert {name: said.status for name, said in both.items()} == {
        "Widget/busy": "InProgress",
        "Widget/done": "Current",
    }


def test_nothing_outlives_who_started_it(whole_cluster: Cluster):
    """A control plane whose starter dies without a word ends by itself, controllers and all, and removes its files."""
    place = tempfile.mkdtemp(prefix="vastfleet-cluster-")
    command = [str(whole_cluster.programs / "controlplane"), "serve", "-temporary", "-dir", place]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        # standard input is closed on the way out of the context, as it is when the starter is killed
    assert process.returncode == 0
    assert not Path(place).exists()


def test_a_failed_start_says_why(tmp_path: Path):
    """Where the control plane ends before it is ready, what it logged is told."""
    program = tmp_path / "controlplane"
    program.write_text("#!/bin/sh\necho no space left >&2\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(RuntimeError, match="no space left"), plane.running(tmp_path):
        pass
