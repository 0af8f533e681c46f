"""What the ledger of a cluster writes, and what it refuses to."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from controller.ledger import objects
from controller.ledger.api import Api
from controller.ledger.cluster import ClusterLedger
from controller.model.faults import Refused
from controller.model.instance import Phase
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus
from tests.plan.conftest import NOW, instance, run

KEY = "team-a.provers"
FLEET = {"kind": "Fleet", "metadata": {"namespace": "team-a", "name": "provers", "uid": "1"}, "spec": {}}
INTENT = instance(fleet=KEY, nonce="a1", phase=Phase.INTENDED, instance_id=None)


class Server:
    """An API server that makes whatever it is asked to. `made`: that."""

    def __init__(self) -> None:
        self.made: list[Mapping[str, Any]] = []

    async def create(self, _path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        self.made.append(body)
        return body


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture
def ledger(server: Server) -> ClusterLedger:
    return ClusterLedger(cast("Api", server), owner="default")


async def test_nothing_is_made_for_a_fleet_that_is_going_or_gone(server: Server, ledger: ClusterLedger):
    """A Fleet that was deleted after its pass decided to rent gets no Instance, so that nothing is rented for it."""
    ledger.know_fleet(FLEET)
    ledger.put(INTENT)
    ledger.set_deleting(KEY, deleting=True)
    with pytest.raises(Refused, match="deleted meanwhile"):
        await ledger.secure("a1")
    ledger.forget("a1")
    ledger.forget_fleet(KEY)
    ledger.put(INTENT)
    with pytest.raises(Refused, match="deleted meanwhile"):
        await ledger.secure("a1")
    assert not server.made


async def test_a_fleet_that_is_made_anew_is_held(server: Server, ledger: ClusterLedger):
    """A Fleet of the same name as one that was deleted is not torn down with it, and owns what is rented for it."""
    ledger.know_fleet(FLEET)
    ledger.set_deleting(KEY, deleting=True)
    ledger.put(instance(fleet=KEY, nonce="left"))
    ledger.forget_fleet(KEY)
    assert KEY in ledger.deleting()
    again = {**FLEET, "metadata": FLEET["metadata"] | {"uid": "2"}}  # type: ignore[operator]
    ledger.know_fleet(again)
    assert KEY not in ledger.deleting()
    ledger.put(INTENT)
    await ledger.secure("a1")
    assert [owner["uid"] for body in server.made for owner in body["metadata"]["ownerReferences"]] == ["2"]


def test_a_refused_spec_stays_told_of_whatever_a_pass_finds(ledger: ClusterLedger):
    """While a spec is wrong and the last good one is held, the conditions go on saying that it is wrong."""

    def said(kind: str, state: str, reason: Reason) -> Condition:
        return Condition.model_validate({"type": kind, "status": state, "reason": reason, "last_transition_time": NOW})

    wrong = FleetStatus(
        fleet=KEY,
        conditions=(said("Ready", "False", Reason.INVALID_SPEC), said("Stalled", "True", Reason.INVALID_SPEC)),
    )
    well = FleetStatus(
        fleet=KEY,
        held=2,
        conditions=(said("Ready", "True", Reason.TARGET_REACHED), said("TargetMet", "True", Reason.TARGET_REACHED)),
    )
    ledger.refuse(KEY, wrong)
    ledger.put_status(KEY, well.model_dump_json(by_alias=True))
    kept = FleetStatus.model_validate_json(ledger.status(KEY) or "")
    assert kept.held == 2
    assert {each.type: str(each.reason) for each in kept.conditions} == {
        "Ready": "InvalidSpec",
        "Stalled": "InvalidSpec",
        "TargetMet": "TargetReached",
    }
    ledger.accept(KEY)
    ledger.put_status(KEY, well.model_dump_json(by_alias=True))
    assert FleetStatus.model_validate_json(ledger.status(KEY) or "").ready


def test_a_machine_is_written_when_more_is_thought_of_it(ledger: ClusterLedger):
    """A Machine whose run was written before it was judged is written again with what came of it."""
    measured = instance(fleet=KEY, nonce="a1", machine_id=7)
    ledger.put(measured)
    ledger.add_run(run(measured))
    ledger.behind.drop("machine", "7")
    said = FleetStatus(fleet=KEY, instances=(InstanceStatus(nonce="a1", rate=60.0, p_good=0.9),))
    ledger.put_status(KEY, said.model_dump_json(by_alias=True))
    assert ledger.behind.owes("machine", "7")


def test_a_twin_has_a_name_that_kubernetes_takes():
    """A second instance under one label gets an object of its own, though its nonce has a sign that names lack."""
    name = objects.instance_name(replace(INTENT, nonce="a1+41000061"))
    assert name == "provers-a1-41000061"
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", name)
