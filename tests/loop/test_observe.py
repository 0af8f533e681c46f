import pytest

from controller.loop.observe import Observer
from controller.model.faults import Misconfigured, Retry
from controller.model.instance import Phase
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.fleet import plan
from controller.plan.limits import Limits
from controller.plan.track import twin_nonce
from controller.runtime.clock import Clock
from tests.loop.conftest import of_kind
from tests.plan.conftest import BOTH, NOW, OWNER, SHAPE, facts, fleet, instance, offer, row, run, young

IMAGE = "example/prover:1.4"


@pytest.fixture
def observer(room):
    clock = Clock(wall=lambda: NOW)
    return Observer(provider=room.provider, ledger=room.ledger, clock=clock, owner=OWNER, limits=Limits())


async def look(observer, room, *rows, fleets=None):
    room.provider.listing = rows
    return await observer.look((fleet(),) if fleets is None else fleets)


def reasons(room):
    return [event.reason for event in room.ledger.events()]


async def test_a_listing_that_fails_changes_nothing(observer, room):
    """When nobody knows what exists, the ledger is not touched: nothing is absent, nothing is charged."""
    room.ledger.put(instance(1, cost_until=NOW - 9999))
    before = room.ledger.instances()
    room.provider.faults["list"] = of_kind(Retry, Reason.SERVER_ERROR)
    seen = await look(observer, room)
    assert seen.listing is None
    assert room.ledger.instances() == before


async def test_another_accounts_listing_is_never_believed(observer, room):
    """With the key of another account everything would look gone: no listing is read before the account is known."""
    room.ledger.put_fact("account", "2")
    seen = await look(observer, room)
    assert seen.listing is None
    assert isinstance(seen.faults[0], Misconfigured)
    assert "list" not in room.provider.names


async def test_an_empty_ledger_takes_back_what_is_ours_alone(observer, room):
    """With the ledger lost, instances under our labels are adopted at their price, and the others are not read."""
    mine, other = instance(1), row(instance(2), label="alice")
    seen = await look(observer, room, row(mine, image=IMAGE), other)
    record = room.only()
    assert (record.nonce, record.price, record.phase) == (mine.nonce, micro(0.3), Phase.PREPARING)
    assert record.workload == fleet().spec.workload()
    assert set(seen.seen) == {mine.nonce}


@pytest.mark.parametrize(("image", "current"), [(IMAGE, True), (None, True), ("example/prover:1.3", False)])
async def test_an_adopted_instance_is_current_unless_its_image_is_another(observer, room, image, current):
    """An image that the listing does not tell is no other image: what runs is not given up for it."""
    await look(observer, room, row(instance(1), image=image))
    assert (room.only().workload == fleet().spec.workload()) is current


async def test_a_fleet_that_is_not_loaded_is_told_of_once_and_left_alone(observer, room):
    """Instances of a fleet whose manifest is not here are neither adopted nor destroyed, and are told of once."""
    theirs = instance(1, fleet="elsewhere")
    for _ in range(3):
        await look(observer, room, row(theirs))
    assert room.ledger.instances(gone=True) == ()
    assert reasons(room) == [Reason.STRAY]


@pytest.mark.parametrize("id_known", [True, False])
async def test_what_comes_back_is_destroyed_under_its_id(observer, room, id_known):
    """An instance that was gone, or that was believed never rented, and is listed, is destroyed: it bills."""
    gone = instance(1, phase=Phase.GONE, ended_at=NOW, absent_since=NOW, instance_id=1001 if id_known else None)
    room.ledger.put(gone)
    seen = await look(observer, room, row(gone, id=1001))
    record = room.only()
    assert (record.phase, record.instance_id, record.reason) == (Phase.DESTROYING, 1001, Reason.RESURRECTED)
    assert (record.ended_at, record.absent_since) == (None, None)
    assert set(seen.seen) == {gone.nonce}


async def test_a_double_is_destroyed_and_followed_until_it_is_gone(observer, room):
    """A second instance under one label gets a record that goes, is seen while it is listed, and is told of once."""
    one = instance(1)
    room.ledger.put(one)
    for _ in range(3):
        seen = await look(observer, room, row(one), row(one, id=7))
    twin = room.ledger.instance(twin_nonce(one, row(one, id=7)))
    assert twin is not None
    assert (twin.phase, twin.instance_id, twin.absent_since) == (Phase.DESTROYING, 7, None)
    assert set(seen.seen) == {one.nonce, twin.nonce}
    assert reasons(room) == [Reason.STRAY]
    await look(observer, room, row(one))
    absent = room.ledger.instance(twin.nonce)
    assert absent is not None
    assert absent.absent_since == NOW


@pytest.mark.parametrize("phase", [Phase.ADMITTED, Phase.GONE])
@pytest.mark.parametrize("known", [True, False])
async def test_one_of_ours_under_another_of_our_labels_is_left_alone(observer, room, phase, known):
    """An instance that somebody gave another of our labels breaks nothing, and gets no second record."""
    one, two = instance(1, phase=phase), instance(2)
    room.ledger.put(one)
    if known:
        room.ledger.put(two)
    await look(observer, room, row(two, id=one.instance_id), *([row(two)] if known else []))
    records = room.ledger.instances(gone=True)
    assert len(records) == 1 + known
    assert [r.instance_id for r in records if r.nonce == one.nonce] == [one.instance_id]


async def test_a_removed_shape_still_counts_for_what_it_does(observer, room):
    """The rate of an instance whose shape has left the manifest is what was measured, until it is replaced."""
    one = instance(1)
    room.ledger.put(one)
    for hour in range(3):
        room.ledger.add_run(run(one, 70.0, ended_at=NOW - hour * 36_000))
    seen = await look(observer, room, row(one))
    found = observer.facts("provers", fleet(shapes=BOTH[1:]), seen, {})
    assert found.rate_of(one) == pytest.approx(70, rel=0.05)


async def test_what_all_fleets_spend_is_told_to_each(observer, room):
    """Credit is one for all fleets, the budget is each fleet's own, and a machine is in use whoever uses it."""
    mine, other, lost = instance(1), instance(2, fleet="other"), young(3, Phase.UNCLEAR)
    for record in (mine, other, lost):
        room.ledger.put(record)
    seen = await look(observer, room, row(mine), row(other))
    found = observer.facts("provers", fleet(), seen, {})
    assert found.reserved == micro(0.6)
    assert found.spend == micro(0.6)
    assert {i.machine_id for i in (mine, other, lost)} == found.machines_in_use
    assert found.credit == micro(100)


async def test_the_credit_is_looked_at_before_a_stop_is_judged(observer, room):
    """When one of ours is stopped the account is asked again: it may be empty. For anybody else's it is not."""
    one = instance(1)
    room.ledger.put(one)
    await look(observer, room, row(one))
    assert room.provider.names.count("account") == 1
    observer._account._clock = Clock(wall=lambda: NOW + 120)
    await look(observer, room, row(one), row(instance(2), label="alice", intended="stopped"))
    await look(observer, room, row(one, intended="stopped"), fleets=())
    assert room.provider.names.count("account") == 1
    await look(observer, room, row(one, intended="stopped"))
    assert room.provider.names.count("account") == 2


async def test_the_funnel_counts_what_the_budget_leaves_out(observer, room):
    """Offers that meet every condition and do not fit what is left of the budget are counted as that."""

    async def search(_query):
        return (offer(1, 0.2, disk_gib=99), offer(2, 0.9, disk_gib=99), offer(3, 5.0, disk_gib=99))

    room.provider.search = search
    found = facts(instance(1), fleet=fleet(budget=1.0))
    candidates, market = await observer.market(found, plan(found))
    assert [c.offer.id for c in candidates] == [1]
    assert market.rejected == {Reason.BUDGET_EXHAUSTED: 2}


async def test_the_market_knows_the_manifests_machines(observer, room):
    """Offers of an avoided machine are turned away and counted, and those of a preferred one are marked."""

    async def search(_query):
        return tuple(offer(number, 0.2, machine_id=number, disk_gib=99) for number in (1, 2, 3))

    room.provider.search = search
    pins = {"avoid": ({"id": 1, "reason": "disk errors"},), "prefer": ({"id": 2, "reason": "close by"},)}
    found = facts(instance(1), fleet=fleet(machines=pins))
    candidates, market = await observer.market(found, plan(found))
    assert {c.offer.id: c.preferred for c in candidates} == {2: True, 3: False}
    assert market.rejected == {Reason.AVOIDED: 1}


async def test_a_machine_without_room_is_not_rented_again(observer, room):
    """A machine on which not even one piece of work fitted is turned away by its number, others by their memory."""

    async def search(_query):
        return tuple(offer(number, 0.2, machine_id=number, ram_gib=64.0 * number, disk_gib=99) for number in (1, 2, 3))

    room.provider.search = search
    found = facts(instance(1), ran_out={SHAPE: ((64.0, 1),)}, ran_out_here={(3, SHAPE): ((16.0, 0), (190.0, 5))})
    candidates, market = await observer.market(found, plan(found))
    assert [c.offer.id for c in candidates] == [2]
    assert market.rejected == {Reason.OUT_OF_MEMORY: 2}
    third = instance(3, machine_id=3)
    assert found.widths_out_of(third) == ((64.0, 1), (190.0, 5))
