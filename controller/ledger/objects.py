"""Records as Kubernetes objects, and back.

A Fleet goes by `namespace.name` in the loop: no namespace has a dot. An Instance's spec is what was written before it
was rented, and never changes; its status is everything since. Without a status it is an intent, and the label on
vast.ai tells the rest.
"""

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from controller.ledger.values import TIMES, alias, back, out, rfc3339, rounded, unix
from controller.model.fleet import API_VERSION, Fleet
from controller.model.instance import Backoff, Decision, Instance, Phase
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus
from controller.report.instance import conditions_of

Body = Mapping[str, Any]

ROOT = "/apis/vastfleet.io/v1alpha1"

FINALIZER = "vastfleet.io/teardown"
OWNER_LABEL = "vastfleet.io/owner"
FLEET_LABEL = "vastfleet.io/fleet"
REQUESTED_AT = "vastfleet.io/requestedAt"

SPEC = (
    "nonce",
    "label",
    "shape",
    "gpu",
    "gpu_count",
    "machine_id",
    "host_id",
    "country",
    "gpu_fraction",
    "disk_gib",
    "workload",
    "offer_id",
    "created_at",
    "price",
)
STATUS = (*(f.name for f in fields(Instance) if f.name not in {*SPEC, "fleet"}), "price")
SAID = (
    "decision",
    "p_good",
    "rate",
    "low",
    "high",
    "runs",
    "independent",
    "disturbed",
    "keep_hours",
    "measure_hours",
    "replace_hours",
    "next_run_at",
    "line",
    "job",
    "job_since",
)


# fleets


def key_of(body: Body) -> str:
    """What a Fleet, or the Fleet of an Instance, goes by in the loop."""
    meta = body["metadata"]
    name = body["spec"]["fleet"] if body.get("kind") == "Instance" else meta["name"]
    return f"{meta['namespace']}.{name}"


def place_of(key: str) -> tuple[str, str]:
    """Namespace and name of a Fleet, from what it goes by."""
    namespace, _, name = key.partition(".")
    return namespace, name


def fleet_path(key: str) -> str:
    """Where a Fleet's object is."""
    namespace, name = place_of(key)
    return f"{ROOT}/namespaces/{namespace}/fleets/{name}"


def fleet_of(body: Body) -> Fleet:
    """The Fleet that an object asks for. Raises pydantic's ValidationError."""
    meta = body["metadata"]
    asked = {
        "apiVersion": API_VERSION,
        "kind": "Fleet",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "spec": body["spec"],
    }
    fleet = Fleet.model_validate(asked)
    return fleet.model_copy(update={"metadata": fleet.metadata.model_copy(update={"name": key_of(body)})})


def fleet_status(said: FleetStatus, *, generation: int, handled: str, backoffs: Iterable[Backoff]) -> dict[str, Any]:
    """A Fleet's status. Nothing in it changes with time alone, so that nothing is written while nothing happens."""
    left_out = {"fleet", "instances", "created_at", "last_pass", "conditions", "market", "credit_runway_hours"}
    status = said.model_dump(mode="json", by_alias=True, exclude=left_out)
    runway = said.credit_runway_hours
    return status | {
        "observedGeneration": generation,
        "lastHandledReconcileAt": handled or None,
        "creditRunwayHours": None if runway is None else float(f"{runway:.2g}"),
        "market": {"matching": said.market.matching, "rejected": {str(r): n for r, n in said.market.rejected.items()}},
        "conditions": [condition(each, generation) for each in said.conditions],
        "rate": rounded(said.rate),
        "costPerUnit": rounded(said.cost_per_unit),
        "shapes": [{k: rounded(v) for k, v in shape.items() if v is not None} for shape in status["shapes"]],
        "backoffs": [backoff_out(each) for each in backoffs],
    }


def condition(said: Condition, generation: int) -> dict[str, Any]:
    """A condition as Kubernetes has them."""
    return {
        "type": said.type,
        "status": said.status,
        "reason": str(said.reason),
        "message": said.message[:32_768],
        "lastTransitionTime": rfc3339(int(said.last_transition_time)),
        "observedGeneration": generation,
    }


def said_of(body: Body) -> FleetStatus | None:
    """What the last pass said of a Fleet, as far as its object has it; None: no pass ever did."""
    status = body.get("status") or {}
    if not status.get("conditions"):
        return None
    conditions = [{**each, "lastTransitionTime": unix(each["lastTransitionTime"])} for each in status["conditions"]]
    market = {name: value for name, value in (status.get("market") or {}).items() if name != "at"}
    return FleetStatus.model_validate({**status, "fleet": key_of(body), "conditions": conditions, "market": market})


def backoff_out(backoff: Backoff) -> dict[str, Any]:
    """A back-off as objects have it."""
    return {f.name: out(f.name, getattr(backoff, f.name)) for f in fields(Backoff)}


def backoffs_of(body: Body) -> list[Backoff]:
    """The back-offs that a Fleet's status keeps."""
    return [backoff_in(each) for each in (body.get("status") or {}).get("backoffs") or ()]


def backoff_in(each: Body) -> Backoff:
    """A back-off as records have it."""
    values = {name: back(name, value) for name, value in each.items()}
    return Backoff(**{**values, "reason": Reason(values["reason"])})


# instances


def instance_name(instance: Instance) -> str:
    """What an instance's object is called."""
    return f"{place_of(instance.fleet)[1]}-{instance.nonce}".replace("+", "-")  # a twin's nonce has one


def instance_path(body: Body) -> str:
    """Where an Instance's object is."""
    meta = body["metadata"]
    return f"{ROOT}/namespaces/{meta['namespace']}/instances/{meta['name']}"


def instance_object(instance: Instance, *, owner: str, fleet_uid: str | None) -> dict[str, Any]:
    """An instance's object as it is first written: all of it but its status."""
    namespace, fleet = place_of(instance.fleet)
    meta: dict[str, Any] = {
        "name": instance_name(instance),
        "namespace": namespace,
        "labels": {OWNER_LABEL: owner, FLEET_LABEL: fleet},
        "finalizers": [FINALIZER],
    }
    if fleet_uid is not None:
        controller = {"apiVersion": API_VERSION, "kind": "Fleet", "name": fleet, "uid": fleet_uid, "controller": True}
        meta["ownerReferences"] = [controller | {"blockOwnerDeletion": True}]
    values = {alias(name): out(name, getattr(instance, name)) for name in SPEC}
    spec = {"fleet": fleet, "owner": owner} | {name: value for name, value in values.items() if value is not None}
    return {"apiVersion": API_VERSION, "kind": "Instance", "metadata": meta, "spec": spec}


def instance_status(instance: Instance, said: InstanceStatus | None, *, generation: int) -> dict[str, Any]:
    """An instance's status. None means that a field is not there."""
    status = {alias(name): out(name, getattr(instance, name)) for name in STATUS}
    status |= {name: str(status[name]) for name in ("phase", "reason")}
    for name in SAID:
        value = None if said is None else getattr(said, name)
        status[alias(name)] = out(name, value if name in TIMES else rounded(value))
    status["job"] = status["job"] or None
    if said is not None and said.decision is Decision.UNKNOWN:  # to be measured, now
        status["nextRunAt"] = None
    status["conditions"] = [condition(each, generation) for each in conditions_of(instance)]
    return status | {"observedGeneration": generation}


def instance_of(body: Body) -> Instance:
    """The record of an instance's object. Without a status it is an intent."""
    spec, status = body["spec"], body.get("status") or {}
    values: dict[str, Any] = {name: back(name, spec.get(alias(name))) for name in SPEC}
    values |= {"fleet": key_of(body), "phase": Phase.INTENDED, "phase_since": values["created_at"]}
    values |= {"reason": Reason.FILLING}
    if "phase" in status:
        values |= {name: back(name, status[alias(name)]) for name in STATUS if status.get(alias(name)) is not None}
        values |= {"phase": Phase(values["phase"]), "reason": Reason(values["reason"])}
    return Instance(**values)


def said_of_instance(body: Body) -> InstanceStatus:
    """What was thought of an instance."""
    status = body.get("status") or {}
    values = {name: back(name, status[alias(name)]) for name in SAID if status.get(alias(name)) is not None}
    return InstanceStatus(nonce=body["spec"]["nonce"], **values)
