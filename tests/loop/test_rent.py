import asyncio

import pytest

from controller.model import labels
from controller.model.actions import Rent
from controller.model.faults import Fault, Gone, Misconfigured, Refused, Retry, Unclear
from controller.model.instance import Backoff, Phase
from controller.model.money import micro
from controller.model.reasons import Reason
from tests.loop.conftest import of_kind
from tests.plan.conftest import NOW, OWNER, SHAPE, facts, fleet, instance, offer, young


async def test_the_intent_is_written_before_the_create_call(room):
    """When the create call goes out, its label and its price are in the ledger already."""
    await room.rent()
    ((call, (intent,)),) = room.provider.calls
    assert (call, intent.phase, intent.price, intent.instance_id) == ("create", Phase.INTENDED, micro(0.3), None)
    assert room.provider.requests[0].label == intent.label
    assert labels.read(intent.label, owner=OWNER) == labels.Mark("provers", intent.nonce)


async def test_a_rented_instance_is_launching_and_billed_from_now(room):
    """A rental that was answered has its id, bills, and is told of with its machine and price."""
    done = await room.rent()
    record = room.only()
    assert done.fault is None
    assert (record.phase, record.instance_id, record.cost_until) == (Phase.LAUNCHING, 4242, NOW)
    assert [event.reason for event in room.ledger.events()] == [Reason.RENTED]


@pytest.mark.parametrize(
    ("taken", "budget", "rented"), [(0.6, 0.9, True), (0.600001, 0.9, False), (0.9, 0.9, False), (0.0, 0.3, True)]
)
async def test_the_budget_is_looked_at_once_more_before_renting(room, taken, budget, rented):
    """What the ledger says is taken at that moment counts, not what the plan was made on; to the micro-dollar."""
    if taken:
        room.ledger.put(young(7, Phase.DESTROYING, price=micro(taken)))
    room.ledger.put(instance(8, fleet="another", price=micro(50)))
    room.ledger.put(instance(9, phase=Phase.GONE, price=micro(50)))
    done = await room.rent(of=fleet(budget=budget))
    assert (room.provider.names == ["create"]) is rented
    assert ("over the budget" in done.dropped) is not rented


async def test_nothing_is_rented_for_a_manifest_that_is_gone(room):
    """Without its manifest a fleet rents nothing, whatever was planned."""
    action = Rent(fleet="provers", shape=SHAPE, offer=offer(), rate=1, reason=Reason.FILLING, why="")
    done = await room.acts.perform(action, facts(fleet=None))
    assert done.dropped
    assert room.provider.calls == []


FAULTS = [
    (of_kind(Refused, Reason.OFFER_GONE), Phase.GONE, ("offer", "1", 600)),
    (of_kind(Gone, Reason.OFFER_GONE), Phase.GONE, ("offer", "1", 600)),
    (of_kind(Refused, Reason.BAD_REQUEST), Phase.GONE, ("offer", "1", 600)),
    (of_kind(Refused, Reason.CREDIT_EXHAUSTED), Phase.GONE, ("account", "account", 60)),
    (of_kind(Refused, Reason.SPEND_LIMITED), Phase.GONE, ("account", "account", 3600)),
    (of_kind(Retry, Reason.RATE_LIMITED), Phase.GONE, ("account", "account", 60)),
    (of_kind(Retry, Reason.RATE_LIMITED, after=17.0), Phase.GONE, ("account", "account", 17)),
    (
        of_kind(Misconfigured, Reason.AUTH_FAILED),
        Phase.GONE,
        ("fleet", f"provers/{fleet().spec.workload()}", 900),
    ),
    (of_kind(Refused, Reason.OFFER_GONE, instance_id=77), Phase.DESTROYING, ("offer", "1", 600)),
    (of_kind(Unclear, Reason.UNREACHABLE), Phase.UNCLEAR, None),
]


@pytest.mark.parametrize(("fault", "phase", "block"), FAULTS, ids=lambda value: str(value)[:40])
async def test_what_became_of_a_create_that_failed(room, fault, phase, block):
    """No ends the intent and waits; a no that left an instance destroys it; a perhaps keeps its share of the budget."""
    done = await room.rent(fault)
    record = room.only()
    assert done.fault is fault
    assert record.phase is phase
    assert record.instance_id == getattr(fault, "instance_id", None)
    assert (record.ended_at is not None) is (phase is Phase.GONE)
    blocks = [(b.scope, b.key, b.until - NOW) for b in room.ledger.backoffs()]
    assert blocks == ([] if block is None else [block])
    assert [event.kind for event in room.ledger.events()] == ["Warning"]


async def test_failures_in_a_row_wait_longer_and_a_success_forgets(room):
    """An account that is limited again waits twice as long; once something is rented, all is forgotten."""
    for _ in range(2):
        await room.rent(of_kind(Retry, Reason.RATE_LIMITED))
    assert [b.until - NOW for b in room.ledger.backoffs()] == [120]
    room.ledger.put_backoff(
        Backoff(
            scope="fleet", key=f"provers/{fleet().spec.workload()}", until=NOW, failures=3, reason=Reason.AUTH_FAILED
        )
    )
    room.provider.faults.clear()
    await room.rent()
    assert room.ledger.backoffs() == ()


@pytest.mark.parametrize("sudden", [asyncio.CancelledError(), RuntimeError("a bug")])
async def test_whatever_interrupts_a_create_its_intent_stays(room, sudden):
    """A create that was interrupted may have been carried out: its intent stays, with its share of the budget."""
    with pytest.raises(type(sudden)):
        await room.rent(sudden)
    record = room.only()
    assert (record.phase, record.price) == (Phase.INTENDED, micro(0.3))
    assert record.billable


async def test_missing_secrets_rent_nothing(room):
    """When the environment can't be resolved nothing is rented, and nothing is written."""

    def missing(_fleet):
        raise of_kind(Misconfigured, Reason.ENV_UNRESOLVED)

    room.acts._secrets = missing
    done = await room.rent()
    assert done.fault is not None
    assert done.fault.reason is Reason.ENV_UNRESOLVED
    assert room.provider.calls == []
    assert room.ledger.instances(gone=True) == ()


async def test_secrets_go_to_the_wire_and_nowhere_else(room):
    """The environment's values are in the request, and in no line of the ledger."""
    room.secrets["TOKEN"] = "SECRET-marker"
    await room.rent()
    assert room.provider.requests[0].env == {"TOKEN": "SECRET-marker"}
    assert "SECRET-marker" not in "\n".join(room.ledger.dump())


async def test_a_ledger_that_cannot_write_rents_nothing(room):
    """When the intent can't be written down, the create call is not made."""
    room.ledger._execute("PRAGMA query_only = 1")
    done = await room.rent()
    assert isinstance(done.fault, Fault)
    assert done.fault.reason is Reason.LEDGER_UNUSABLE
    assert room.provider.calls == []
