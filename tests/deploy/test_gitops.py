"""The examples for Flux and Argo CD, as far as they can be held to their word without either."""

import re
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

EXAMPLES = Path(__file__).parents[2] / "examples"
CONDITIONS = {"Ready", "Reconciling", "Stalled"}


def bodies(path: str) -> dict[str, Any]:
    return {body["metadata"]["name"]: body for body in YAML(typ="safe").load_all(EXAMPLES / path)}


def test_flux_goes_by_the_conditions():
    """Fleets wait for the operator, and are judged by each of the three conditions that kstatus knows."""
    found = bodies("flux/fleets.yaml")
    spec = found["fleets"]["spec"]
    assert [each["name"] for each in spec["dependsOn"]] == ["vastfleet"]
    assert (EXAMPLES.parent / found["vastfleet"]["spec"]["path"] / "kustomization.yaml").exists()
    (check,) = spec["healthCheckExprs"]
    assert (check["apiVersion"], check["kind"]) == ("vastfleet.io/v1alpha1", "Fleet")
    asked = {name: set(re.findall(r"c\.type == '(\w+)'", check[name])) for name in ("inProgress", "failed", "current")}
    assert asked == {"inProgress": {"Reconciling"}, "failed": {"Stalled"}, "current": {"Ready"}}


def test_argo_cd_goes_by_the_conditions():
    """The health check asks for the three conditions, gives words that Argo CD knows, and closes what it opens."""
    script = bodies("argocd/health.yaml")["argocd-cm"]["data"]["resource.customizations.health.vastfleet.io_Fleet"]
    assert set(re.findall(r"found\.(\w+)\.status", script)) == CONDITIONS
    assert set(re.findall(r'status = "(\w+)"', script)) == {"Progressing", "Degraded", "Suspended", "Healthy"}
    lines = [line.strip() for line in script.splitlines()]
    assert sum(line.startswith(("if ", "for ")) for line in lines) == lines.count("end")
    assert script.rstrip().endswith("return health")


@pytest.mark.parametrize("path", ["flux/fleets.yaml", "argocd/health.yaml", "argocd/fleets.yaml"])
def test_every_example_is_yaml(path: str):
    """Each document has a kind, a version and a name."""
    assert all(body["kind"] and body["apiVersion"] for body in bodies(path).values())
