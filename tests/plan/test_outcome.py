import pytest

from controller.model.instance import Phase
from controller.model.reasons import Reason
from controller.plan.limits import Limits
from controller.plan.outcome import JobEnd, after_job
from tests.plan.conftest import NOW, instance, run, young


def after(of, job, *, ok=True, reason=Reason.MEASURED, **values):
    end = JobEnd(job=job, ok=ok, reason=reason, detail="said", **values)
    return after_job(of, end, now=NOW, limits=Limits())


def test_a_prepared_instance_is_measured_next():
    """Preparation done, the first benchmark follows, and the host key seen is pinned."""
    note = after(young(1, Phase.PREPARING, failures=2), "prepare", reason=Reason.PREPARED, host_key="ssh-ed25519 A")
    assert (note.instance.phase, note.instance.failures, note.instance.host_key) == (
        Phase.MEASURING,
        0,
        "ssh-ed25519 A",
    )


def test_a_pinned_host_key_is_never_replaced():
    """A key pinned at first contact stays, whatever a later job has seen."""
    assert (
        after(instance(1, host_key="ssh-ed25519 A"), "measure", host_key="ssh-ed25519 B").instance.host_key
        == "ssh-ed25519 A"
    )


def test_a_run_dates_the_check_good_or_bad():
    """The last check is dated by any run that ended, and by nothing else."""
    of = young(1, Phase.MEASURING)
    assert after(of, "measure", run=run(of)).instance.checked_at == NOW
    assert after(of, "measure", ok=False, reason=Reason.NO_RATE, run=run(of, None)).instance.checked_at == NOW
    assert after(of, "measure", ok=False, reason=Reason.SSH_UNREACHABLE).instance.checked_at is None


@pytest.mark.parametrize(("before", "wait"), [(0, 60), (1, 120), (2, 240), (50, 60 * 1024)])
def test_a_failed_job_is_tried_again_later_and_later(before, wait):
    """Each failure counts, doubles the wait, and says why."""
    note = after(young(1, Phase.PREPARING, failures=before), "prepare", ok=False, reason=Reason.SSH_REFUSED)
    assert (note.instance.failures, note.instance.not_before) == (before + 1, NOW + wait)
    assert (note.instance.reason, note.instance.phase) == (Reason.SSH_REFUSED, Phase.PREPARING)
    assert [event.kind for event in note.events] == ["Warning"]


def test_started_production_admits_and_forgives():
    """Where production has to be started, its start admits the instance, and ends what was held against it."""
    first = after(young(1, Phase.MEASURING), "start")
    assert (first.instance.phase, first.instance.admitted_at) == (Phase.ADMITTED, NOW)
    assert {scope for scope, _ in first.cleared} == {"machine", "shape"}
    of = instance(1, phase=Phase.MEASURING)
    assert after(of, "start").instance.admitted_at == of.admitted_at


@pytest.mark.parametrize("phase", [Phase.RELEASING, Phase.DESTROYING])
@pytest.mark.parametrize("job", ["prepare", "measure", "start", "quiesce"])
@pytest.mark.parametrize("ok", [True, False])
def test_no_job_brings_back_what_is_leaving(phase, job, ok):
    """An instance that is being given up stays so, for its own reason and without a wait, whatever a job's end says."""
    leaving = young(1, phase, reason=Reason.SURPLUS, detail="not needed")
    assert after(leaving, job, ok=ok, reason=Reason.START_FAILED).instance == leaving
