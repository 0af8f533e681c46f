import math

from controller.loop.pace import Pace, Schedule
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus
from tests.plan.conftest import NOW

PACE = Pace(active=15, steady=60, retry=300)


def said(name: str = "a.one", *, ready: bool = False, **values: int) -> FleetStatus:
    status = "True" if ready else "False"
    condition = Condition(type="Ready", status=status, reason=Reason.FILLING, last_transition_time=NOW)
    return FleetStatus(fleet=name, conditions=(condition,), **values)


def wait_after(*passes: FleetStatus, listed: bool = True) -> float:
    schedule = Schedule(PACE)
    for each in passes:
        schedule.begun([each.fleet])
        schedule.passed(each, now=NOW, listed=listed)
    return schedule.wait(NOW)


def test_what_moves_is_passed_over_soon():
    """A fleet with something on its way is due at the active pace, one that is ready at the steady."""
    assert wait_after(said(pending=1)) == 15
    assert wait_after(said(ready=True)) == 60


def test_what_waits_is_passed_over_ever_less_often():
    """While the market has nothing, or nothing can be listed, the wait doubles up to its ceiling."""
    waits = [wait_after(*[said()] * n) for n in range(1, 8)]
    assert waits == [15, 30, 60, 120, 240, 300, 300]
    assert wait_after(*[said(ready=True)] * 7, listed=False) == 300


def test_many_fleets_share_their_passes():
    """Fleets passed over at different moments are due at the same ones."""
    schedule = Schedule(PACE)
    for n in range(100):
        schedule.passed(said(f"a.f{n}", ready=True), now=NOW + n * 0.1, listed=True)
    (at,) = {NOW + schedule.wait(NOW)}
    assert len(schedule.due(at)) == 100
    assert schedule.due(at - 0.001) == set()


def test_a_change_is_due_at_once():
    """What is woken is due now, and not any more once it is forgotten."""
    schedule = Schedule(PACE)
    schedule.passed(said(ready=True), now=NOW, listed=True)
    schedule.wake(["a.one"])
    assert (schedule.due(NOW), schedule.wait(NOW)) == ({"a.one"}, 0.0)
    schedule.forget("a.one")
    assert (schedule.due(NOW), schedule.wait(NOW)) == (set(), math.inf)


def test_a_change_during_a_pass_is_due_after_it():
    """What is changed while its fleet is passed over was not seen by that pass: it is due at once, not at the pace."""
    schedule = Schedule(PACE)
    schedule.wake(["a.one", "a.two"])
    schedule.begun(["a.one", "a.two"])
    assert schedule.due(NOW) == set()
    schedule.wake(["a.one"])
    for name in ("a.one", "a.two"):
        schedule.passed(said(name), now=NOW, listed=True)
    assert schedule.due(NOW) == {"a.one"}
