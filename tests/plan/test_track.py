from dataclasses import replace

import pytest

from controller.model import labels
from controller.model.instance import Phase
from controller.model.market import Listing, Sighting
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.track import adopted, differs, fault_in, match, twin_of, update
from tests.plan.conftest import NOW, OWNER, SHAPE, instance, row, young


def listing(*rows, at=NOW):
    return Listing(at=at, sightings=rows)


def matched(*rows, known=()):
    holders = {i.instance_id: i for i in known if i.instance_id is not None}
    return match(listing(*rows), owner=OWNER, find={i.nonce: i for i in known}.get, holder=holders.get)


def test_a_foreign_instance_is_nobodys_business():
    """Instances without our label appear nowhere: neither seen nor stray nor double."""
    rows = [
        Sighting(id=n, label=label) for n, label in enumerate((None, "", "vf/tests/provers/x", "vf/other/provers/1"))
    ]
    assert matched(*rows, known=[instance()]) == match(
        listing(), owner=OWNER, find=lambda _: None, holder=lambda _: None
    )


def test_a_known_label_is_seen_and_an_unknown_one_of_ours_is_a_stray():
    """What the ledger knows is matched; what carries our mark but is not known can be adopted."""
    one, two = instance(1), instance(2)
    found = matched(row(one), row(two), known=[one])
    assert found.seen == {one.nonce: row(one)}
    assert found.strays == ((labels.Mark("provers", two.nonce), row(two)),)


def test_a_second_instance_under_one_label_is_a_double():
    """Two instances with one label are one of ours and one too many, whichever comes first in the listing."""
    one = instance(1)
    found = matched(row(one, id=7), row(one), known=[one])
    assert found.seen == {one.nonce: row(one)}
    assert [double.id for _, double in found.doubles] == [7]


def test_of_two_answers_to_one_lost_create_one_is_kept():
    """When a create whose answer was lost was carried out twice, one instance is identified, the other is a double."""
    lost = young(1, Phase.UNCLEAR)
    found = matched(row(lost, id=8), row(lost, id=7), known=[lost])
    assert found.seen[lost.nonce].id == 7
    assert [double.id for _, double in found.doubles] == [8]


@pytest.mark.parametrize("phase", [Phase.UNCLEAR, Phase.GONE])
def test_an_instance_that_was_given_another_label_of_ours_is_nobodys(phase):
    """An instance whose label was overwritten with that of another record is not taken for that one."""
    one, two = instance(1), young(2, phase)
    found = matched(row(one, label=two.label), known=[one, two])
    assert found == matched(known=[one, two])


def test_a_double_that_has_a_record_is_followed_like_any_other():
    """A double being destroyed is seen for as long as it is listed: it is not proven gone while it bills."""
    one = instance(1)
    twin = twin_of(one, row(one, id=7), why="twice", now=NOW)
    found = matched(row(one), row(one, id=7), known=[one, twin])
    assert found.seen == {one.nonce: row(one), twin.nonce: row(one, id=7)}
    assert not found.doubles


def test_a_double_that_comes_back_is_back():
    """A double that was proven gone and is listed again is dealt with again."""
    one = instance(1)
    twin = replace(twin_of(one, row(one, id=7), why="twice", now=NOW), phase=Phase.GONE)
    assert matched(row(one), row(one, id=7), known=[one, twin]).back == ((twin, row(one, id=7)),)


def test_a_double_that_shows_its_storage_alone_counts_in_full():
    """A stopped double shows a small price, and may start: it is counted like the one that it doubles."""
    one = instance(1)
    assert twin_of(one, row(one, id=7, price=micro(0.01)), why="twice", now=NOW).price == micro(0.3)


def test_a_double_starts_with_a_clean_record():
    """A double's record bills from its own start, is not absent, has not ended, and is on its way out."""
    gone = instance(
        1, phase=Phase.GONE, ended_at=NOW, absent_since=NOW - 100, cost=5, not_before=NOW + 9, destroy_calls=2
    )
    twin = twin_of(gone, row(gone, id=7, price=micro(0.5)), why="twice", now=NOW)
    assert (twin.phase, twin.instance_id, twin.price, twin.cost) == (Phase.DESTROYING, 7, micro(0.5), 0)
    assert (twin.ended_at, twin.absent_since, twin.admitted_at, twin.destroy_calls, twin.not_before) == (
        None,
        None,
        None,
        0,
        0,
    )


@pytest.mark.parametrize("known_by", [1001, None])
def test_what_was_gone_and_is_listed_is_back(known_by):
    """An instance proven gone, or believed never rented, that is listed after all is told of."""
    gone = instance(1, phase=Phase.GONE, instance_id=known_by)
    assert matched(row(gone, id=1001), known=[gone]).back == ((gone, row(gone, id=1001)),)


def test_a_lost_create_is_identified_by_its_label():
    """A create whose answer was lost goes on as launching once its label is listed, with an event."""
    lost = young(1, Phase.UNCLEAR)
    after, said = update(lost, row(lost, id=1001, actual="loading"), listing(), now=NOW)
    assert (after.phase, after.instance_id) == (Phase.LAUNCHING, 1001)
    assert [event.reason for event in said] == [Reason.RENTED]


def test_absence_is_dated_by_the_first_listing_without_it():
    """The first listing without an instance dates its absence, later ones don't, and one sight of it ends it."""
    one = instance(1)
    first, _ = update(one, None, listing(at=NOW - 100), now=NOW)
    second, _ = update(first, None, listing(at=NOW), now=NOW)
    assert first.absent_since == second.absent_since == NOW - 100
    assert update(second, row(one), listing(), now=NOW)[0].absent_since is None


@pytest.mark.parametrize(
    ("shown", "counts", "events"),
    [(0.30, 0.30, []), (0.45, 0.45, [Reason.PRICE_INCREASED]), (0.02, 0.30, []), (None, 0.30, [])],
)
def test_the_dearest_price_seen_counts(shown, counts, events):
    """A rise counts at once and is told; a stopped instance's storage price, or none, lowers nothing."""
    one = instance(1)
    after, said = update(one, row(one, price=None if shown is None else micro(shown)), listing(), now=NOW)
    assert after.price == micro(counts)
    assert [event.reason for event in said] == events


def test_cost_is_our_own_clocks():
    """Two hours at $0.30 cost $0.60, listed or not; nothing before there is an id, nor for time running back."""
    one = instance(1, cost_until=NOW - 7200)
    assert update(one, row(one), listing(), now=NOW)[0].cost == micro(0.6)
    assert update(one, None, listing(), now=NOW)[0].cost == micro(0.6)
    assert update(replace(one, cost_until=NOW + 60), row(one), listing(), now=NOW)[0].cost == 0
    assert update(young(1, Phase.UNCLEAR), None, listing(), now=NOW)[0].cost == 0


def test_a_cost_alone_is_written_now_and_then_and_never_lost():
    """Small sums are not worth a write each pass, yet they add up: what is not written is charged again next time."""
    one = instance(1, cost_until=NOW)
    soon, _ = update(one, row(one), listing(), now=NOW + 60)
    late, _ = update(one, row(one), listing(), now=NOW + 600)
    assert not differs(one, soon)
    assert differs(one, late)
    assert late.cost == round(micro(0.3) / 6)


@pytest.mark.parametrize(
    ("actual", "message", "fault"),
    [
        ("loading", "", None),
        ("loading", "0123abcd: Downloading [==>   ] 1.2GB/4GB", None),
        ("loading", "0123abcd: Retrying in 5 seconds", None),
        ("loading", "Error response from daemon: Get https://registry: Retrying in 5 seconds", None),
        ("running", "Error response from daemon: OCI runtime create failed", None),
        ("created", "Error response from daemon: OCI runtime create failed", Reason.HOST_FAULT),
        ("loading", "no space left on device", Reason.HOST_FAULT),
        (None, "gpu error, unable to start instance", Reason.HOST_FAULT),
        ("loading", "toomanyrequests: You have reached your pull rate limit", Reason.HOST_FAULT),
        ("loading", "manifest for example/prover:1.4 not found: manifest unknown", Reason.IMAGE_FAULT),
        (
            "loading",
            "Error response from daemon: pull access denied for x, repository does not exist",
            Reason.IMAGE_FAULT,
        ),
        ("loading", "success, running example/prover:1.4", None),
    ],
)
def test_what_a_status_message_says_is_broken(actual, message, fault):
    """Daemon and registry errors are faults; progress, retries and anything said by a running instance are none."""
    assert fault_in(Sighting(id=1, actual=actual, message=message)) is fault


def test_trouble_is_dated_once_and_ends_when_it_runs():
    """An instance out of contact is dated from the first sight of it, and all is forgiven when it runs again."""
    one = instance(1)
    first, _ = update(one, row(one, actual="offline"), listing(), now=NOW)
    second, _ = update(first, row(one, actual=None), listing(), now=NOW + 300)
    assert first.trouble_since == second.trouble_since == NOW
    assert update(second, row(one), listing(), now=NOW + 400)[0].trouble_since is None


def test_an_adopted_instance_is_launching_until_it_runs():
    """What is found under our label is taken on at its price and in the phase that it is in."""
    one = instance(1)
    mark = labels.Mark("provers", one.nonce)
    running = adopted(mark, row(one, started_at=NOW - 9e5), shape=SHAPE, workload="w", now=NOW)
    loading = adopted(mark, row(one, actual="loading"), shape=SHAPE, workload="w", now=NOW)
    assert (running.phase, running.price, running.instance_id) == (Phase.PREPARING, one.price, 1001)
    assert (running.cost_until, running.admitted_at) == (NOW, None)
    assert loading.phase is Phase.LAUNCHING
