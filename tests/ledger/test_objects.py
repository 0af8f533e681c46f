from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from controller.ledger import machines, objects
from controller.ledger.values import rfc3339, unix
from controller.model.instance import Backoff, Decision, Instance, Phase, Run
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus
from tests.plan.conftest import NOW, fleet, instance, run, young

KEY = "team-a.provers"
times = st.floats(1.5e9, 2.5e9).map(lambda at: round(at, 6))


def there(status: dict[str, Any]) -> dict[str, Any]:
    """A status as the server keeps it: what is None is not there."""
    return {name: value for name, value in status.items() if value is not None}


def written(of: Instance, said: InstanceStatus | None = None) -> dict[str, Any]:
    body = objects.instance_object(of, owner="default", fleet_uid="uid-1")
    return {**body, "status": there(objects.instance_status(of, said, generation=1))}


def near(one: Instance, other: Instance) -> bool:
    """Whether two records are the same, times to the microsecond."""
    pairs = ((getattr(one, f.name), getattr(other, f.name)) for f in fields(Instance))
    return all(a == pytest.approx(b, abs=2e-6) if isinstance(a, float) else a == b for a, b in pairs)


@given(times)
def test_a_time_survives_being_written(at: float):
    """Times are kept to the microsecond."""
    assert unix(rfc3339(at)) == pytest.approx(at, abs=2e-6)


@given(
    st.builds(
        instance,
        fleet=st.just(KEY),
        phase=st.sampled_from(Phase),
        phase_since=times,
        detail=st.text(max_size=20),
        price=st.integers(1, 10**9),
        cost=st.integers(0, 10**12),
        launched_at=st.none() | times,
        host_key=st.none() | st.just("ssh-ed25519 AAAA"),
        instance_id=st.none() | st.integers(1, 10**9),
        gpu_fraction=st.none() | st.floats(0.1, 1),
        failures=st.integers(0, 5),
        not_before=st.just(0.0) | times,
        ended_at=st.none() | times,
    )
)
def test_an_instance_survives_being_written(of: Instance):
    """A record read back from its object is the record, every field of it; only its price then is not the price now."""
    found = objects.instance_of(written(of))
    assert near(found, of)


def test_an_object_without_a_status_is_an_intent():
    """What was written before the rental, or has lost its status, is an intent: the label tells the rest."""
    of = instance(1, fleet=KEY)
    found = objects.instance_of(objects.instance_object(of, owner="default", fleet_uid=None) | {"status": {}})
    assert (found.phase, found.instance_id, found.label) == (Phase.INTENDED, None, of.label)
    assert (found.price, found.machine_id, found.fleet) == (of.price, of.machine_id, KEY)


def test_what_is_thought_survives_being_written():
    """The verdict beside a record is read back with it, to four digits."""
    of = instance(1, fleet=KEY)
    said = InstanceStatus(nonce=of.nonce, decision=Decision.PROBATION, p_good=0.123456, runs=2, next_run_at=NOW)
    found = objects.said_of_instance(written(of, said))
    assert found == said.model_copy(update={"p_good": 0.1235})


def test_instances_are_held_and_owned():
    """An instance's object carries our finalizer from the start, and its Fleet as the controller that owns it."""
    meta = objects.instance_object(young(1, fleet=KEY), owner="default", fleet_uid="uid-1")["metadata"]
    assert (meta["namespace"], meta["finalizers"]) == ("team-a", [objects.FINALIZER])
    assert meta["name"].startswith("provers-")
    (owner,) = meta["ownerReferences"]
    assert (owner["uid"], owner["controller"], owner["blockOwnerDeletion"]) == ("uid-1", True, True)


@given(
    st.builds(
        run,
        st.just(instance(1, fleet=KEY)),
        rate=st.none() | st.floats(1, 1000),
        started_at=times,
        ended_at=times,
        error=st.none() | st.floats(0, 1),
        throttled=st.sampled_from(["", "SwPowerCap"]),
        disturbed=st.booleans(),
        neighbours=st.integers(0, 3),
    )
)
def test_a_run_survives_being_written(of: Run):
    """A machine's runs are read back as they were measured."""
    status = machines.machine_status((of,), {}, None, gpu="RTX 4090", generation=1)
    (found,) = machines.runs_of({"status": there(status)})
    pairs = ((getattr(found, f.name), getattr(of, f.name)) for f in fields(Run))
    assert all(a == pytest.approx(b, abs=2e-6) if isinstance(a, float) else a == b for a, b in pairs)


def test_back_offs_survive_being_written():
    """What is held against a machine is in its object, what is held against a shape in the Fleet's."""
    held = Backoff(scope="machine", key="77", until=NOW, failures=2, reason=Reason.HOST_FAULT, detail="no start")
    status = machines.machine_status((), {}, held, gpu="", generation=1)
    assert machines.machine_backoff({"spec": {"machineId": 77}, "status": there(status)}) == held
    assert status["quarantinedUntil"] == rfc3339(NOW)
    shape = replace(held, scope="shape", key=f"{KEY}/RTX 4090 x1/abc")
    said = objects.fleet_status(FleetStatus(fleet=KEY), generation=1, handled="", backoffs=[shape])
    assert objects.backoffs_of({"status": said}) == [shape]


def body_of(**spec: Any) -> dict[str, Any]:
    made = fleet().spec.model_dump(mode="json", by_alias=True, exclude_unset=True) | spec
    return {"kind": "Fleet", "metadata": {"name": "provers", "namespace": "team-a", "uid": "u"}, "spec": made}


def test_a_fleet_goes_by_its_namespace_and_name():
    """Two Fleets of one name in two namespaces are two fleets."""
    found = objects.fleet_of(body_of())
    assert (found.name, found.spec) == (KEY, fleet().spec)
    assert objects.place_of(found.name) == ("team-a", "provers")
    with pytest.raises(ValidationError, match="budgetPerHour"):
        objects.fleet_of(body_of(budgetPerHour=-1))


def test_a_status_says_which_spec_it_speaks_of():
    """Every condition carries the generation, and what was said is read back; time alone changes nothing in it."""
    ready = Condition(type="Ready", status="True", reason=Reason.TARGET_REACHED, last_transition_time=NOW)
    said = FleetStatus(fleet=KEY, held=3, conditions=(ready,), credit_runway_hours=123.456, last_pass=NOW)
    status = objects.fleet_status(said, generation=7, handled="now", backoffs=())
    assert (status["observedGeneration"], status["conditions"][0]["observedGeneration"]) == (7, 7)
    assert status["lastHandledReconcileAt"] == "now"
    later = said.model_copy(update={"last_pass": NOW + 60, "credit_runway_hours": 122.9})
    assert objects.fleet_status(later, generation=7, handled="now", backoffs=()) == status
    found = objects.said_of({**body_of(), "status": there(status)})
    assert found is not None
    assert (found.held, found.conditions, found.fleet) == (3, (ready,), KEY)
