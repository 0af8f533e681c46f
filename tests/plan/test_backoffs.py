import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.instance import Backoff
from controller.model.reasons import Reason
from controller.plan import backoffs
from controller.plan.backoffs import Wait, after_failure, extended, forgiven
from tests.plan.conftest import NOW, instance

HOUR = 3600.0


def failed(times: int, wait: Wait, **values) -> Backoff:
    known: tuple[Backoff, ...] = ()
    for _ in range(times):
        known = (extended(known, "machine", "7", wait, reason=Reason.HOST_LOST, detail="d", now=NOW, **values),)
    return known[0]


@pytest.mark.parametrize(("times", "hours"), [(1, 1), (2, 2), (3, 4), (6, 32), (7, 48), (1000, 48)])
def test_a_machine_is_left_alone_for_longer_each_time(times, hours):
    """Waits double from an hour to two days and no further."""
    assert failed(times, backoffs.MACHINE).until == NOW + hours * HOUR


@pytest.mark.parametrize(("times", "minutes"), [(1, 0), (2, 0), (3, 5), (4, 10), (9, 120)])
def test_a_shape_waits_from_its_third_failure_on(times, minutes):
    """Two failures are chance; from the third on the shape itself is waited for."""
    assert failed(times, backoffs.SHAPE).until == NOW + minutes * 60


def test_an_offer_that_is_always_refused_is_asked_for_ever_less_often():
    """An offer that stays listed and cannot be rented is tried a few times a day, not every few minutes."""
    assert [(failed(times, backoffs.OFFER).until - NOW) / 60 for times in (1, 2, 3, 20)] == [10, 20, 40, 480]


def test_failures_of_one_thing_are_not_anothers():
    """A failure counts for its own scope and key alone."""
    known = (Backoff(scope="machine", key="8", until=0, failures=9, reason=Reason.HOST_LOST),)
    assert extended(known, "machine", "7", backoffs.MACHINE, reason=Reason.HOST_LOST, detail="", now=NOW).failures == 1
    assert extended(known, "offer", "8", backoffs.OFFER, reason=Reason.OFFER_GONE, detail="", now=NOW).failures == 1


@given(st.floats())
def test_no_answer_can_stop_us_for_ever(after):
    """Whatever number of seconds an answer names, the wait is between none and a day."""
    assert 0 <= failed(1, backoffs.ACCOUNT, after=after).until - NOW <= 24 * HOUR


@pytest.mark.parametrize(("after", "waited"), [(90.0, 90.0), (0.0, 0.0), (-5.0, 0.0), (math.nan, 0.0)])
def test_a_wait_that_was_named_is_kept(after, waited):
    """What vast.ai asks for is waited, instead of our own guess."""
    assert failed(5, backoffs.ACCOUNT, after=after).until == NOW + waited


def test_a_failure_is_held_against_machine_and_shape_and_an_image_fault_against_no_machine():
    """A machine that failed is avoided; for an image that no machine can pull, machines are not blamed."""
    one = instance()
    scopes = [b.scope for b in after_failure(one, Reason.HOST_LOST, "", known=(), now=NOW)]
    assert scopes == ["machine", "shape"]
    assert [b.scope for b in after_failure(one, Reason.IMAGE_FAULT, "", known=(), now=NOW)] == ["shape"]


def test_a_success_forgives_what_a_failure_held():
    """What an admission ends is exactly what a failure of the same instance began."""
    one = instance()
    assert set(forgiven(one)) == {(b.scope, b.key) for b in after_failure(one, Reason.HOST_LOST, "", known=(), now=NOW)}


def test_the_detail_is_bounded():
    """A long message does not grow the ledger."""
    long = extended((), "offer", "1", backoffs.OFFER, reason=Reason.BAD_REQUEST, detail="x" * 9000, now=NOW)
    assert len(long.detail) == 200
