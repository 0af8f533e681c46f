"""What deploy/ has, as kubectl renders it, in a namespace of a test's own."""

import json
import os
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from tests.cluster.plane import Cluster

DEPLOY = Path(__file__).parents[2] / "deploy"
CLUSTER, NAMESPACED = DEPLOY, DEPLOY / "namespaced"
RIGHTS = ("ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding")

Body = dict[str, Any]


def rendered(cluster: Cluster, base: Path, place: Path, namespace: str) -> list[Body]:
    """The objects of a base, by an overlay as docs/kubernetes.md tells to make for another namespace."""
    overlay = place / f"overlay-{namespace}"
    overlay.mkdir(exist_ok=True)
    wanted = {"namespace": namespace, "nameSuffix": f"-{namespace}", "resources": [os.path.relpath(base, overlay)]}
    (overlay / "kustomization.yaml").write_text(json.dumps(wanted))
    return parsed(cluster.kubectl("kustomize", str(overlay)))


def parsed(text: str) -> list[Body]:
    """The objects of a stream of YAML."""
    return [body for body in YAML(typ="safe").load_all(text) if body]


def account(cluster: Cluster, base: Path, place: Path, namespace: str) -> str:
    """Make the operator's service account and its rights in a namespace; a token of it."""
    rights = [body for body in rendered(cluster, base, place, namespace) if body["kind"] in RIGHTS]
    cluster.kubectl("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": rights}))
    return cluster.token_for(namespace, f"vastfleet-{namespace}")
