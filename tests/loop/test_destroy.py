from dataclasses import replace

import pytest

from controller.model.actions import Confirm, Destroy, Release, Resume
from controller.model.faults import Gone, Misconfigured, Refused, Retry, Unclear
from controller.model.instance import Backoff, Phase
from controller.model.reasons import Reason
from tests.loop.conftest import of_kind
from tests.plan.conftest import NOW, fleet, instance, row, young

STOPPING = fleet(instance={"image": "example/prover:1.4", "stop": "stop-production"})


def release(of, *, actual=None, backoffs=()):
    return Release(instance=of, reason=Reason.SURPLUS, why="not needed", actual=actual, backoffs=backoffs)


def known(room, of, **shown):
    """An instance in the ledger, and how vast.ai shows it when it is asked by id."""
    room.ledger.put(of)
    room.provider.rows[of.instance_id] = row(of, **shown)
    return of


async def test_destroying_is_written_before_the_destroy_call(room):
    """A fresh look, then the phase Destroying in the ledger, then the call: in this order."""
    of = known(room, instance(1))
    done = await room.perform(release(of))
    assert done.fault is None
    assert room.provider.names == ["get", "destroy"]
    looked, called = (records[0] for _, records in room.provider.calls)
    assert (looked.phase, called.phase, called.destroy_calls) == (Phase.ADMITTED, Phase.DESTROYING, 0)
    after = room.only()
    assert (after.destroy_calls, after.not_before, after.reason) == (1, NOW + 90, Reason.SURPLUS)


@pytest.mark.parametrize("label", [None, "", "alice-training", "vf/tests/provers/other"])
@pytest.mark.parametrize("phase", [Phase.ADMITTED, Phase.DESTROYING])
async def test_what_lost_our_label_is_not_destroyed(room, label, phase):
    """An instance whose label somebody changed is not ours to destroy: it is told of, and let go."""
    of = known(room, instance(1, phase=phase), label=label)
    done = await room.perform(Destroy(instance=of, reason=Reason.SURPLUS, why=""))
    assert "destroy" not in room.provider.names
    assert done.dropped
    assert (room.only().phase, room.only().reason) == (Phase.GONE, Reason.RELABELLED)
    assert [event.kind for event in room.ledger.events()] == ["Warning"]


async def test_a_host_that_came_back_is_not_destroyed(room):
    """What was given up for a state is kept if that state has passed meanwhile, and nothing is written."""
    of = known(room, instance(1), actual="running")
    done = await room.perform(release(of, actual="offline"))
    assert "no longer offline" in done.dropped
    assert room.provider.names == ["get"]
    assert room.only() == of


async def test_what_is_unknown_by_its_id_is_destroyed_all_the_same(room):
    """That vast.ai does not know the id proves nothing: the call is made, and listings will tell."""
    of = instance(1)
    room.ledger.put(of)
    await room.perform(release(of))
    assert room.provider.names == ["get", "destroy"]


@pytest.mark.parametrize(
    ("fault", "told", "wait"),
    [
        (of_kind(Gone, Reason.VANISHED), False, 90),
        (of_kind(Unclear, Reason.UNREACHABLE), False, 90),
        (of_kind(Retry, Reason.RATE_LIMITED), True, 60),
        (of_kind(Retry, Reason.RATE_LIMITED, after=5.0), True, 5),
        (of_kind(Retry, Reason.QUOTA_EXCEEDED, after=80_000.0), True, 300),
        (of_kind(Refused, Reason.BAD_REQUEST), True, 90),
        (of_kind(Misconfigured, Reason.AUTH_FAILED), True, 90),
    ],
    ids=str,
)
async def test_whatever_the_destroy_call_says_it_goes_on(room, fault, told, wait):
    """No answer to a destroy call ends the matter: it stays Destroying, and is called again before long."""
    of = known(room, instance(1))
    room.provider.faults["destroy"] = fault
    done = await room.perform(release(of))
    assert (done.fault is fault) is told
    after = room.only()
    assert (after.phase, after.destroy_calls, after.not_before) == (Phase.DESTROYING, 1, NOW + wait)


async def test_a_look_that_fails_destroys_nothing(room):
    """Without the fresh look nothing is destroyed and nothing is written; the next pass tries again."""
    of = known(room, instance(1))
    room.provider.faults["get"] = of_kind(Retry, Reason.SERVER_ERROR)
    done = await room.perform(release(of))
    assert done.fault is not None
    assert room.provider.names == ["get"]
    assert room.only() == of


async def test_what_a_failure_is_held_against_is_written_with_it(room):
    """The machine of an instance that is given up is avoided from the same moment."""
    block = Backoff(scope="machine", key="101", until=NOW + 60, failures=1, reason=Reason.HOST_LOST)
    await room.perform(release(known(room, instance(1)), backoffs=(block,)))
    assert room.ledger.backoffs() == (block,)


async def test_production_is_quiesced_first(room):
    """An instance with production to stop is released before it is destroyed, unless it cannot be reached."""
    of = known(room, instance(1))
    await room.perform(release(of), of=STOPPING, seen={of.nonce: row(of)})
    assert room.provider.calls == []
    assert room.only().phase is Phase.RELEASING
    assert room.jobs.running()[of.nonce].kind == "quiesce"
    await room.jobs.close()


@pytest.mark.parametrize(
    ("of", "shown"), [(instance(1), {"actual": "offline"}), (instance(1), None), (young(1, Phase.PREPARING), {})]
)
async def test_what_has_no_production_is_destroyed_at_once(room, of, shown):
    """Out of contact, not listed or never admitted, there is nothing to quiesce."""
    known(room, of)
    await room.perform(release(of), of=STOPPING, seen={} if shown is None else {of.nonce: row(of, **shown)})
    assert room.only().phase is Phase.DESTROYING


# believing that something vanished


async def test_vanished_means_unknown_by_its_id_too(room):
    """What no listing shows and no id finds is gone."""
    of = instance(1, absent_since=NOW - 100)
    room.ledger.put(of)
    await room.perform(Confirm(instance=of, reason=Reason.MISSING, why="missing"))
    assert (room.only().phase, room.only().reason, room.only().ended_at) == (Phase.GONE, Reason.VANISHED, NOW)


async def test_a_listing_that_leaves_something_out_is_not_believed(room):
    """What vast.ai still knows by its id is kept, and the listing is told to be incomplete."""
    of = known(room, instance(1, absent_since=NOW - 100))
    done = await room.perform(Confirm(instance=of, reason=Reason.MISSING, why="missing"))
    assert done.fault is not None
    assert done.fault.reason is Reason.LISTING_INCOMPLETE
    assert room.only() == of


async def test_a_question_that_fails_proves_nothing(room):
    """When the question by id fails the instance is kept."""
    of = known(room, instance(1, absent_since=NOW - 100))
    room.provider.faults["get"] = of_kind(Retry, Reason.SERVER_ERROR)
    await room.perform(Confirm(instance=of, reason=Reason.MISSING, why="missing"))
    assert room.only() == of


# starting what was stopped


async def test_a_start_is_written_before_it_is_called(room):
    """A stopped instance is started once: that it was tried is in the ledger before the call goes out."""
    of = known(room, instance(1, trouble_since=NOW - 120))
    await room.perform(Resume(instance=of, reason=Reason.RESUMED, why="stopped"))
    ((call, (record,)),) = room.provider.calls
    assert (call, record.reason, record.not_before) == ("start", Reason.RESUMED, NOW + 600)


@pytest.mark.parametrize(
    ("fault", "tried", "wait"),
    [
        (of_kind(Refused, Reason.GPU_TAKEN), True, 0),
        (of_kind(Unclear, Reason.UNREACHABLE), True, 600),
        (of_kind(Retry, Reason.RATE_LIMITED), False, 60),
        (of_kind(Retry, Reason.RATE_LIMITED, after=7.0), False, 7),
    ],
    ids=str,
)
async def test_a_start_that_was_not_made_is_made_again(room, fault, tried, wait):
    """Too many requests are no reason to give up a working instance: only a start that was made was its one try."""
    of = known(room, instance(1, trouble_since=NOW - 120))
    room.provider.faults["start"] = fault
    done = await room.perform(Resume(instance=of, reason=Reason.RESUMED, why="stopped"))
    assert done.fault is fault
    after = room.only()
    assert (after.reason is Reason.RESUMED) is tried
    assert after.not_before == NOW + wait
    assert replace(after, reason=of.reason, detail=of.detail, not_before=of.not_before) == of
