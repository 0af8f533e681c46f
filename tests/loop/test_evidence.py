from controller.loop.evidence import company_of, soon, weigh
from controller.model.instance import Decision, Instance, Phase, Run
from controller.model.reasons import Reason
from tests.plan.conftest import NOW, SHAPE, fleet, instance, run, young

HOUR = 3600.0


def runs_of(of: Instance, *rates: float | None, **values) -> list[Run]:
    last = len(rates) - 1
    return [
        run(of, rate, ended_at=NOW - HOUR * (1 + 3 * (last - nth)), **({"detail": "said"} | values))
        for nth, rate in enumerate(rates)
    ]


def weighed(*instances: Instance, runs: list[Run], **values):
    return weigh(fleet(**values), instances, sorted(runs, key=lambda one: one.ended_at), now=NOW)


def test_each_instance_is_judged_by_its_own_workload():
    """Runs of another workload say nothing: an outdated instance is judged by those of its own."""
    new, old = instance(1), instance(2, workload="old")
    runs = [*runs_of(new, 70, 70, 70), *runs_of(old, 30, 30, 30)]
    found = weighed(new, old, runs=runs)
    assert found.verdicts[new.nonce].decision is Decision.ACCEPTED
    assert found.verdicts[old.nonce].decision is Decision.REJECTED
    assert set(found.expected) == {(new.machine_id, SHAPE)}


def test_a_removed_shape_is_judged_all_the_same():
    """What still works in a shape that the manifest has dropped is held to the first shape's floor."""
    of = instance(1, shape="RTX 3090 x1")
    assert weighed(of, runs=runs_of(of, 70, 70, 70)).verdicts[of.nonce].decision is Decision.ACCEPTED


def test_machines_have_names_good_and_bad():
    """Machines measured are fast, slow or in doubt, whether or not they are rented now."""
    good, bad, doubted = (instance(n, phase=Phase.GONE, machine_id=700 + n) for n in (1, 2, 3))
    runs = [*runs_of(good, 80, 80, 80), *runs_of(bad, 30, 30, 30), *runs_of(doubted, 50)]
    found = weighed(runs=runs)
    assert found.slow == {(702, SHAPE)}
    assert set(found.doubted) == {(703, SHAPE)}
    assert 0.4 < found.doubted[703, SHAPE] < 0.6
    assert set(found.expected) == {(701, SHAPE), (702, SHAPE), (703, SHAPE)}


def test_other_fleets_measurements_count():
    """What another fleet measured with the same workload and shape is known of its machines."""
    other = instance(5, fleet="others")
    found = weighed(other, runs=runs_of(other, 30, 30, 30))
    assert found.slow == {(other.machine_id, SHAPE)}
    assert found.verdicts == {}


def test_company_is_who_works_on_the_same_machine():
    """Those of any fleet that are admitted and not on their way out are each other's company."""
    first, second = instance(1, machine_id=9), instance(2, machine_id=9, fleet="others")
    trial, leaving = young(3, Phase.MEASURING, machine_id=9), instance(4, machine_id=9, phase=Phase.RELEASING)
    other, lost = instance(5), instance(6, machine_id=9, phase=Phase.GONE)
    found = company_of((first, second, trial, leaving, other, lost))
    assert found == {first.nonce: 1, second.nonce: 1, trial.nonce: 2, leaving.nonce: 2, other.nonce: 0}


def test_the_last_run_is_told_if_it_failed():
    """A failure is told until a run has gone well."""
    failed, well = instance(1), instance(2)
    runs = [*runs_of(failed, 60, None), *runs_of(well, None, 60)]
    assert set(weighed(failed, well, runs=runs).failed_runs) == {failed.nonce}


def test_a_suspicion_is_of_the_manifests_workload():
    """Three machines that fail alike are told of while their workload is the manifest's."""
    three = [instance(n, created_at=NOW - HOUR) for n in (1, 2, 3)]
    runs = [one for of in three for one in runs_of(of, None, reason=Reason.BENCHMARK_FAILED)]
    found = weighed(*three, runs=runs).suspect
    assert found is not None
    assert found.reason is Reason.WORKLOAD_SUSPECT
    assert weighed(*three, runs=runs, instance={"image": "example/prover:1.5"}).suspect is None


def test_what_finding_takes_is_not_other_fleets_troubles():
    """Rentals of another fleet, which may ask for other disks and images, do not count."""
    theirs = [instance(n, fleet="others", prepared_at=NOW, created_at=NOW - 20 * HOUR) for n in range(9)]
    assert weighed(*theirs, runs=[]).search == weighed(runs=[]).search


def test_verdicts_hold_for_an_hour():
    """Within an hour nothing that ages is worked out again."""
    assert soon(7200.0) == 7200.0
    assert soon(7200.5) == soon(10_800.0) == 10_800.0
