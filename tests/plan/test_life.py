from dataclasses import replace

import pytest

from controller.model.actions import Begin, Confirm, Destroy, Note, Release, Resume
from controller.model.instance import Decision, Job, Phase
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.life import next_step
from tests.plan.conftest import BOTH, NOW, facts, fleet, instance, row, verdict, young

HOUR = 3600.0


def step(of, *, actual="running", listed=True, **values):
    """What is decided for one instance, listed with that state."""
    rows = {of.nonce: row(of, **{"actual": actual, **values.pop("shown", {})})} if listed else {}
    return next_step(of, facts(of, rows=rows, **values))


def said(action):
    return (type(action), action.reason) if action is not None else None


LIMITS = [
    (young(1), {"actual": "running"}, (Note, Reason.CONNECTING)),
    (young(1), {"actual": "loading"}, None),
    (young(1), {"actual": None}, None),
    (young(1), {"actual": "scheduling"}, None),
    (young(1, phase_since=NOW - 1799), {"actual": "loading"}, None),
    (young(1, phase_since=NOW - 1800), {"actual": "loading"}, (Release, Reason.LAUNCH_TIMEOUT)),
    (young(1), {"actual": "loading", "shown": {"machine_id": 7}}, (Release, Reason.MACHINE_MISMATCH)),
    (young(1), {"actual": "running", "shown": {"machine_id": 7}}, (Release, Reason.MACHINE_MISMATCH)),
    (young(1), {"actual": "loading", "shown": {"machine_id": None}}, None),
    (young(1, trouble_since=NOW - 59), {"actual": "loading", "shown": {"message": "OCI runtime"}}, None),
    (
        young(1, trouble_since=NOW - 60),
        {"actual": "loading", "shown": {"message": "OCI runtime"}},
        (Release, Reason.HOST_FAULT),
    ),
    (
        young(1, trouble_since=NOW - 60),
        {"actual": "created", "shown": {"message": "manifest unknown"}},
        (Release, Reason.IMAGE_FAULT),
    ),
    (young(1, trouble_since=NOW - 119), {"actual": "created", "shown": {"intended": "stopped"}}, None),
    (
        young(1, trouble_since=NOW - 120),
        {"actual": "created", "shown": {"intended": "stopped"}},
        (Release, Reason.STOPPED_OUTSIDE),
    ),
    (young(1, Phase.PREPARING), {}, (Begin, Reason.PREPARING)),
    (young(1, Phase.PREPARING, not_before=NOW + 1), {}, None),
    (young(1, Phase.PREPARING, failures=2, reason=Reason.SSH_REFUSED), {}, (Begin, Reason.PREPARING)),
    (young(1, Phase.PREPARING, failures=3, reason=Reason.SSH_REFUSED), {}, (Release, Reason.SSH_REFUSED)),
    (young(1, Phase.PREPARING, failures=1, reason=Reason.HOST_KEY_CHANGED), {}, (Release, Reason.HOST_KEY_CHANGED)),
    (young(1, Phase.MEASURING), {}, (Begin, Reason.BENCHMARKING)),
    (young(1, Phase.MEASURING, failures=3, reason=Reason.NO_RATE), {}, (Release, Reason.NO_RATE)),
    (instance(1, trouble_since=NOW - 599), {"actual": "offline"}, None),
    (instance(1, trouble_since=NOW - 600), {"actual": "offline"}, (Release, Reason.HOST_LOST)),
    (instance(1, trouble_since=NOW - 600), {"actual": None}, (Release, Reason.HOST_LOST)),
    (instance(1, trouble_since=NOW - 600), {"actual": "running"}, None),
    (instance(1, trouble_since=NOW - 119), {"actual": "exited"}, None),
    (instance(1, trouble_since=NOW - 120), {"actual": "exited"}, (Resume, Reason.RESUMED)),
    (instance(1, trouble_since=NOW - 120), {"actual": "exited", "credit": micro(0.5)}, None),
    (
        instance(1, trouble_since=NOW - 120, reason=Reason.RESUMED),
        {"actual": "exited"},
        (Release, Reason.STOPPED_OUTSIDE),
    ),
    (instance(1, trouble_since=NOW - 120, reason=Reason.RESUMED, not_before=NOW + 1), {"actual": "exited"}, None),
    (instance(1, trouble_since=NOW - 120), {"actual": "exited", "shown": {"is_bid": True}}, (Release, Reason.OUTBID)),
    (instance(1), {}, None),
]


@pytest.mark.parametrize(("of", "given", "wanted"), LIMITS)
def test_each_phase_has_its_limit_and_reason(of, given, wanted):
    """One second below a limit an instance is borne with; at the limit it goes, for the reason that the table names."""
    assert said(step(of, **given)) == wanted


@pytest.mark.parametrize("phase", [p for p in Phase if p not in {Phase.GONE, Phase.DESTROYING}])
def test_an_unknown_listing_moves_nothing(phase):
    """While nobody knows what exists, no instance is touched, however long it was in whatever state."""
    of = young(1, phase, phase_since=0.0, created_at=0.0, trouble_since=0.0, absent_since=0.0)
    assert next_step(of, facts(of, rows={}, listing=None)) is None


def test_a_destroy_call_is_repeated_even_when_the_listing_fails():
    """What is being destroyed goes on being destroyed while the listing fails, and is never called gone."""
    leaving = young(1, Phase.DESTROYING, destroy_calls=1, absent_since=0.0)
    assert isinstance(next_step(leaving, facts(leaving, rows={}, listing=None)), Destroy)
    waiting = replace(leaving, not_before=NOW + 1)
    assert next_step(waiting, facts(waiting, rows={}, listing=None)) is None


@pytest.mark.parametrize(
    "phase", [p for p in Phase if p not in {Phase.GONE, Phase.DESTROYING, Phase.INTENDED, Phase.UNCLEAR}]
)
def test_absent_once_is_nothing_and_absent_for_a_while_is_asked_about(phase):
    """One listing without an instance says nothing; two that are a minute apart have it asked for by its id."""
    of = young(1, phase, phase_since=NOW - HOUR)
    assert step(replace(of, absent_since=NOW), listed=False) is None
    assert step(replace(of, absent_since=NOW - 59), listed=False) is None
    assert said(step(replace(of, absent_since=NOW - 60), listed=False)) == (Confirm, Reason.MISSING)


def test_a_new_instance_may_be_invisible_for_a_while():
    """vast.ai may not list a new instance at once: it is not asked about in its first three minutes."""
    of = young(1, absent_since=NOW - 100)
    assert step(replace(of, phase_since=NOW - 179), listed=False) is None
    assert isinstance(step(replace(of, phase_since=NOW - 180), listed=False), Confirm)


@pytest.mark.parametrize("phase", [Phase.INTENDED, Phase.UNCLEAR])
@pytest.mark.parametrize(
    ("waited", "absent", "gone"),
    [(179, 170, False), (180, None, False), (180, 59, False), (180, 60, True), (9e5, None, False), (9e5, 0, False)],
)
def test_a_lost_create_is_given_up_only_after_time_and_two_listings(phase, waited, absent, gone):
    """A create whose answer was lost keeps its share of the budget until time and two listings say it was not made."""
    of = young(1, phase, phase_since=NOW - waited, absent_since=None if absent is None else NOW - absent)
    action = step(of, listed=False)
    assert said(action) == ((Note, Reason.CREATE_UNCONFIRMED) if gone else None)
    if isinstance(action, Note):
        assert (action.instance.phase, action.instance.ended_at) == (Phase.GONE, NOW)


@pytest.mark.parametrize(
    ("calls", "absent", "listed", "wanted"),
    [
        (0, None, True, Destroy),
        (1, None, True, Destroy),
        (0, 500, False, Destroy),
        (1, None, False, Destroy),
        (1, 59, False, None),
        (1, 60, False, Note),
    ],
)
def test_gone_means_destroyed_and_absent_twice(calls, absent, listed, wanted):
    """An instance is gone when it was destroyed and two listings lack it; until then it is destroyed again.

    Its record keeps the reason that it was given up for.
    """
    of = young(1, Phase.DESTROYING, destroy_calls=calls, absent_since=None if absent is None else NOW - absent)
    action = step(of, listed=listed)
    assert (type(action) if action is not None else None) is wanted
    if isinstance(action, Note):
        assert (action.instance.phase, action.reason) == (Phase.GONE, Reason.TEARDOWN_VERIFIED)
        assert action.instance.reason is of.reason


@pytest.mark.parametrize("phase", [Phase.LAUNCHING, Phase.PREPARING, Phase.MEASURING, Phase.ADMITTED])
def test_a_fleet_that_nobody_asked_for_is_left_to_run(phase):
    """Without its manifest an instance is neither measured nor given up, in whatever state it is."""
    of = young(1, phase, phase_since=0.0, created_at=0.0, trouble_since=1.0)
    assert step(of, actual="offline", fleet=None) is None


@pytest.mark.parametrize("phase", [Phase.LAUNCHING, Phase.PREPARING, Phase.MEASURING, Phase.ADMITTED])
@pytest.mark.parametrize("manifest", [None, fleet()])
def test_a_deleted_fleet_is_given_up_instance_by_instance(phase, manifest):
    """Deleting a fleet gives up all it has, whether its manifest is still there or not."""
    assert said(step(young(1, phase), fleet=manifest, deleting=True)) == (Release, Reason.DELETED)


def test_a_release_waits_for_its_quiesce_and_no_longer():
    """A released instance is destroyed when its production is quiesced, or when that has taken too long."""
    of = young(1, Phase.RELEASING, phase_since=NOW - 100, reason=Reason.SURPLUS)
    busy = {of.nonce: Job(kind="quiesce", nonce=of.nonce, since=NOW)}
    drain = fleet(instance={"image": "i", "stop": "stop", "drainSeconds": 60})
    assert step(of, jobs=busy, fleet=drain) is None
    assert isinstance(step(of, fleet=drain), Destroy)
    assert step(replace(of, phase_since=NOW - 179), jobs=busy, fleet=drain) is None
    assert isinstance(step(replace(of, phase_since=NOW - 180), jobs=busy, fleet=drain), Destroy)
    assert isinstance(step(replace(of, phase_since=NOW - 180), jobs=busy, fleet=None), Destroy)


MEASURED = young(1, Phase.MEASURING, checked_at=NOW - 1)


@pytest.mark.parametrize(
    ("decision", "wanted"),
    [
        (Decision.ACCEPTED, (Note, Reason.MEETS_MIN_RATE)),
        (Decision.PROBATION, (Note, Reason.INCONCLUSIVE)),
        (Decision.CHALLENGED, (Note, Reason.INCONCLUSIVE)),
        (Decision.REJECTED, (Release, Reason.BELOW_MIN_RATE)),
        (Decision.UNKNOWN, (Begin, Reason.BENCHMARKING)),
    ],
)
def test_admission_is_the_verdicts(decision, wanted):
    """A measured instance is admitted unless it is too slow; without a rate it is measured again."""
    assert said(step(MEASURED, verdicts={MEASURED.nonce: verdict(decision)})) == wanted


def test_no_admission_on_an_old_run():
    """A rate from before this phase, or followed by a failed run, admits nothing."""
    for of in (replace(MEASURED, checked_at=NOW - 61), replace(MEASURED, failures=1)):
        assert said(step(of, verdicts={of.nonce: verdict()})) == (Begin, Reason.BENCHMARKING)


def test_an_admitted_instance_counts_from_its_first_admission_and_forgives_its_machine():
    """A re-check does not make an instance young again, and a success ends what was held against machine and shape."""
    again = instance(1, phase=Phase.MEASURING, phase_since=NOW - 60, checked_at=NOW - 1)
    action = step(again)
    assert isinstance(action, Note)
    assert action.instance.admitted_at == again.admitted_at
    assert {scope for scope, _ in action.cleared} == {"machine", "shape"}


def test_a_working_instance_found_too_slow_is_not_dropped_by_itself():
    """A re-check that finds an admitted instance too slow leaves it working until the fleet can spare it."""
    again = instance(1, phase=Phase.MEASURING, phase_since=NOW - 60, checked_at=NOW - 1)
    rejected = {again.nonce: verdict(Decision.REJECTED, next_run_at=None)}
    action = step(again, verdicts=rejected)
    assert said(action) == (Note, Reason.BELOW_MIN_RATE)
    assert isinstance(action, Note)
    assert action.instance.phase is Phase.ADMITTED
    assert step(action.instance, verdicts=rejected) is None


@pytest.mark.parametrize(
    ("due", "suspend", "wanted"),
    [(NOW, False, (Note, Reason.RECHECK_DUE)), (NOW + 1, False, None), (NOW, True, None)],
)
def test_a_recheck_is_made_when_it_is_due(due, suspend, wanted):
    """An admitted instance is measured again when its verdict says so, and not while the fleet is suspended."""
    of = instance(1)
    given = {"verdicts": {of.nonce: verdict(next_run_at=due)}, "fleet": fleet(suspend=suspend)}
    assert said(step(of, **given)) == wanted


@pytest.mark.parametrize("manifest", [fleet(instance={"image": "new"}), fleet(shapes=BOTH[1:])])
def test_what_is_to_be_replaced_is_not_measured_again(manifest):
    """An instance of an older manifest is left to work: no run could count, and each would stop its production."""
    of = instance(1)
    overdue = {of.nonce: verdict(next_run_at=0.0)}
    assert step(of, fleet=manifest, verdicts=overdue) is None
    assert step(of, fleet=manifest, verdicts={}) is None


@pytest.mark.parametrize("decision", [Decision.CHALLENGED, Decision.REJECTED])
@pytest.mark.parametrize(("hours", "wanted"), [(5.9, None), (6.0, (Note, Reason.RECHECK_DUE))])
def test_what_a_suspicion_spares_is_measured_now_and_then(decision, hours, wanted):
    """Only runs can show that what slowed all machines is over: what is spared is measured every six hours."""
    of = instance(1, checked_at=NOW - hours * HOUR)
    verdicts = {of.nonce: verdict(decision, next_run_at=None if decision is Decision.REJECTED else NOW - 1)}
    assert said(step(of, verdicts=verdicts, suspect=(Reason.FLEET_SHIFT, "all of them"))) == wanted


def test_what_works_and_was_never_measured_is_due():
    """A working instance without a usable run is measured, whatever time its verdict names."""
    of = instance(1)
    unknown = verdict(Decision.UNKNOWN, None, next_run_at=NOW + 1800)
    assert said(step(of, verdicts={of.nonce: unknown})) == (Note, Reason.RECHECK_DUE)


@pytest.mark.parametrize("verdicts", [True, False])
@pytest.mark.parametrize("manifest", [fleet(instance={"image": "new"}), fleet(shapes=BOTH[1:])])
def test_a_recheck_that_the_manifest_overtook_ends(manifest, verdicts):
    """A working instance that is being measured when the manifest changes goes back to work, measured or not."""
    of = instance(1, phase=Phase.MEASURING, phase_since=NOW - 60)
    action = step(of, fleet=manifest, verdicts={of.nonce: verdict()} if verdicts else {})
    assert isinstance(action, Note)
    assert (action.instance.phase, action.instance.admitted_at) == (Phase.ADMITTED, of.admitted_at)


def test_a_suspended_fleet_begins_nothing():
    """While a fleet is suspended no job begins, and nothing is given up for want of one."""
    for of in (young(1, Phase.PREPARING), young(1, Phase.MEASURING), young(1, Phase.PREPARING, failures=9)):
        assert step(of, fleet=fleet(suspend=True)) is None


def test_a_running_job_is_not_begun_twice():
    """An instance with a job under way is left to it."""
    for phase in (Phase.PREPARING, Phase.MEASURING):
        of = young(1, phase)
        assert step(of, jobs={of.nonce: Job(kind="prepare", nonce=of.nonce, since=NOW)}) is None


def test_an_adopted_instance_out_of_contact_gets_the_time_of_a_new_one():
    """An instance taken back while its host flickers is not too late to launch: it may have run for weeks."""
    of = young(1, created_at=NOW - 30 * 86_400, reason=Reason.ADOPTED)
    assert step(of, actual="offline") is None


def test_what_relied_on_a_state_says_so():
    """Giving up for a state carries that state, so that it is dropped if the host has come back meanwhile."""
    action = step(instance(1, trouble_since=NOW - 600), actual="offline")
    assert isinstance(action, Release)
    assert action.actual == "offline"
