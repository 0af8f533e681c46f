"""Machines as Kubernetes objects: what was measured on one physical host, and what is thought of it."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from controller.ledger.objects import OWNER_LABEL, Body, backoff_in, backoff_out
from controller.ledger.values import alias, back, out, rfc3339, rounded
from controller.model.fleet import API_VERSION
from controller.model.instance import Backoff, Decision, Run, RunKind
from controller.model.reasons import Reason
from controller.model.status import InstanceStatus


def machine_name(owner: str, machine_id: int) -> str:
    """What a machine's object is called: each controller keeps its own."""
    return f"{owner}-{machine_id}"


def machine_object(owner: str, machine_id: int) -> dict[str, Any]:
    """A machine's object, all of it but its status."""
    meta = {"name": machine_name(owner, machine_id), "labels": {OWNER_LABEL: owner}}
    spec = {"machineId": machine_id, "owner": owner}
    return {"apiVersion": API_VERSION, "kind": "Machine", "metadata": meta, "spec": spec}


def machine_status(
    runs: tuple[Run, ...], thought: Mapping[str, InstanceStatus], backoff: Backoff | None, *, gpu: str, generation: int
) -> dict[str, Any]:
    """A machine's status: its runs, oldest first, and by shape what is thought of it. None: a field is not there."""
    best = max(thought.values(), key=lambda said: said.p_good or 0.0, default=None)
    standing = [
        {
            "shape": shape,
            "decision": str(said.decision),
            "rate": rounded(said.rate),
            "pGood": rounded(said.p_good),
            "runs": said.runs,
        }
        for shape, said in sorted(thought.items())
        if said.decision is not Decision.UNKNOWN
    ]
    held = None if backoff is None else backoff_out(backoff)
    return {
        "observedGeneration": generation,
        "gpu": gpu or None,
        "shapes": [{name: value for name, value in each.items() if value is not None} for each in standing],
        "runs": [run_out(run) for run in runs],
        "runCount": len(runs),
        "lastRunAt": rfc3339(runs[-1].ended_at) if runs else None,
        "rate": None if best is None else rounded(best.rate),
        "pGood": None if best is None else rounded(best.p_good),
        "backoff": None if held is None else {n: held[n] for n in ("until", "failures", "reason", "detail")},
        "quarantinedUntil": None if held is None else held["until"],
    }


def run_out(run: Run) -> dict[str, Any]:
    """A run as objects have it."""
    values = {alias(f.name): out(f.name, getattr(run, f.name)) for f in fields(Run)}
    return {name: value for name, value in values.items() if value not in (None, "")}


def runs_of(body: Body) -> list[Run]:
    """The runs that a machine's object keeps."""
    names = {alias(f.name): f.name for f in fields(Run)}
    found = []
    for each in (body.get("status") or {}).get("runs") or ():
        values = {names[k]: back(names[k], v) for k, v in each.items() if k in names}
        kind = RunKind(values.get("kind", RunKind.BENCHMARK))
        found.append(Run(**{**values, "reason": Reason(values["reason"]), "kind": kind}))
    return found


def machine_backoff(body: Body) -> Backoff | None:
    """What is held against a machine."""
    held = (body.get("status") or {}).get("backoff")
    if not held:
        return None
    return backoff_in({**held, "scope": "machine", "key": str(body["spec"]["machineId"])})
