"""Manifests of Fleets that an emulated market fills at once."""

import json

FLEET = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: {name}}}
spec:
  target: {{instances: {count}}}
  budgetPerHour: {budget}
  suspend: {suspend}
  deletionPolicy: {policy}
  shapes:
  - {{gpu: RTX 4090, minRate: 40}}
  require: {{reliability: 0, verified: false, ramGiB: 128, diskGiB: 50, remainingHours: 0}}
  instance:
    image: example/prover:1.4
    envFrom: {secrets}
  benchmark: {{command: json-bench, format: json}}
"""


def manifest(
    name: str = "provers",
    *,
    count: int = 2,
    budget: float = 10.0,
    suspend: bool = False,
    policy: str = "Destroy",
    secrets: tuple[str, ...] = (),
) -> str:
    """A Fleet that fills within a second or two of the wall's time."""
    refs = json.dumps([{"secretRef": {"name": each}} for each in secrets])
    values = {"name": name, "count": count, "budget": budget, "policy": policy, "secrets": refs}
    return FLEET.format(**values, suspend=str(suspend).lower())
