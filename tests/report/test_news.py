import pytest

from controller.model.instance import Event
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus
from controller.report.fleet import PATIENCE, news
from tests.plan.conftest import NOW


def status(ready="True", reason=Reason.TARGET_REACHED, *, at=NOW, since=NOW, stalled=False):
    """A status that says no more than Ready."""
    conditions = [Condition(type="Ready", status=ready, reason=reason, message="said", last_transition_time=since)]
    if stalled:
        conditions.append(Condition(type="Stalled", status="True", reason=reason, last_transition_time=since))
    return FleetStatus(fleet="provers", conditions=tuple(conditions), last_pass=at)


def told(*statuses):
    """The events of a row of statuses, each seen after the one before."""
    before: FleetStatus | None = None
    events: list[Event] = []
    for after in statuses:
        before, more = news(before, after)
        events += more
    return [(event.kind, event.reason) for event in events]


def test_steady_state_is_silent():
    """Ready is told once, however many passes follow."""
    assert told(*(status(at=NOW + n) for n in range(50))) == [("Normal", Reason.TARGET_REACHED)]


def test_a_change_of_status_or_reason_is_told():
    """What changed is told: the status, or why."""
    rows = [status("False", Reason.FILLING), status(), status("False", Reason.BUDGET_EXHAUSTED)]
    assert [reason for _, reason in told(*rows)] == [Reason.FILLING, Reason.TARGET_REACHED, Reason.BUDGET_EXHAUSTED]


def test_what_only_a_person_can_mend_is_a_warning():
    """A stalled fleet is told as a warning."""
    assert told(status("False", Reason.AUTH_FAILED, stalled=True)) == [("Warning", Reason.AUTH_FAILED)]


@pytest.mark.parametrize(("seconds", "events"), [(PATIENCE - 1, 1), (PATIENCE, 2)])
def test_one_failed_listing_is_no_news(seconds, events):
    """Not knowing is told when it lasts; when it has passed unsaid, its end is not told either."""
    unknown = status("Unknown", Reason.SERVER_ERROR, at=NOW + seconds, since=NOW)
    assert len(told(status(), unknown)) == events
    assert len(told(status(), unknown, status(at=NOW + seconds + 60))) == 2 * events - 1
