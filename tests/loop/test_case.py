import math
from dataclasses import replace

import pytest

from controller.loop.case import Case
from controller.loop.learned import alike
from controller.model.instance import Decision, Instance, Phase, Run, RunKind
from controller.model.reasons import Reason
from tests.plan.conftest import NOW, fleet, instance, run

HOUR = 3600.0
DAY = 24 * HOUR
FLEET = fleet()  # four RTX 4090 at a floor of 50
FLOOR = FLEET.spec.shapes[0].min_rate


def case(*runs: Run, rentals: tuple[Instance, ...] = (), now: float = NOW + 1800, min_rate: float = FLOOR) -> Case:
    shape = FLEET.spec.shapes[0].model_copy(update={"min_rate": min_rate})
    return Case(FLEET, shape, rentals, tuple(sorted(runs, key=lambda one: one.ended_at)), now)


def spaced(of: Instance, *rates: float, hours_ago: float = 1.0, apart: float = 3.0, **values) -> list[Run]:
    """Runs of one instance, the last of them so many hours ago."""
    last = len(rates) - 1
    return [
        run(of, rate, ended_at=NOW - HOUR * (hours_ago + apart * (last - nth)), **values)
        for nth, rate in enumerate(rates)
    ]


def market(*rates: float, **values) -> list[Run]:
    """A run of each of so many machines that were given up days ago."""
    return [
        one
        for nth, rate in enumerate(rates)
        for one in spaced(instance(50 + nth, machine_id=900 + nth), rate, rate, hours_ago=100.0 + nth, **values)
    ]


MINE = instance(1)


@pytest.mark.parametrize(
    "other",
    [
        {"count": 24},
        {"concurrency": 2},
        {"gpu_fraction": 0.5},
        {"neighbours": 1},
    ],
    ids=lambda value: next(iter(value)),
)
def test_only_runs_made_alike_are_compared(other):
    """Runs as long, as wide, on as large a part of a machine and in like company count together, others apart."""
    usual = {"count": 12, "concurrency": 5, "gpu_fraction": 1.0}
    slow = [replace(one, **other) for one in spaced(MINE, 30, 30, 30, hours_ago=20.0, **usual)]
    fast = spaced(MINE, 70, 70, 70, **usual)
    said = case(*slow, *fast).verdict(MINE, neighbours=0)
    assert (said.decision, said.runs) == (Decision.ACCEPTED, 3)
    assert said == case(*fast).verdict(MINE, neighbours=0)


def test_the_newest_benchmark_says_what_is_compared():
    """When an instance comes to be measured otherwise, its new runs count from the first on."""
    old = spaced(MINE, 70, 70, 70, hours_ago=20.0, count=12)
    assert [one.count for one in alike([*old, *spaced(MINE, 60, count=24)])] == [24]


def test_productions_rate_stands_beside_benchmarks_as_wide():
    """Readings of production count with benchmarks of that width, whatever the benchmark's length, and no others."""
    bench = spaced(MINE, 70, count=12, concurrency=5, hours_ago=9.0)
    read = spaced(MINE, 70, 70, kind=RunKind.PRODUCTION, concurrency=5)
    narrow = spaced(MINE, 30, 30, kind=RunKind.PRODUCTION, concurrency=2, hours_ago=1.5)
    said = case(*bench, *read, *narrow).verdict(MINE, neighbours=0)
    assert said.runs == 3


def test_a_predecessors_runs_count_once_there_is_one_of_its_own():
    """On GPUs that were rented before, nothing is known until they were measured again; then all runs count."""
    before, again = instance(7, machine_id=101), instance(8, machine_id=101)
    old = spaced(before, 70, 70, 70, hours_ago=30.0, gpu_uuid="GPU-a")
    assert case(*old).verdict(again, neighbours=0).decision is Decision.UNKNOWN
    own = spaced(again, 68, gpu_uuid="GPU-a")
    assert case(*old, *own).verdict(again, neighbours=0).runs == 4
    other_card = spaced(again, 68, gpu_uuid="GPU-b")
    assert case(*old, *other_card).verdict(again, neighbours=0).runs == 1


def test_failed_runs_are_no_evidence_of_a_rate():
    """A run without a rate leaves an instance as unknown as it was."""
    assert case(run(MINE, None)).verdict(MINE, neighbours=0).decision is Decision.UNKNOWN


def test_runs_made_alone_do_not_speak_for_two():
    """Once another instance works on its machine, an accepted one is on probation and due at once."""
    runs = spaced(MINE, 70, 70, 70)
    alone, beside = (case(*runs).verdict(MINE, neighbours=count) for count in (0, 1))
    assert alone.decision is Decision.ACCEPTED
    assert (beside.decision, beside.next_run_at) == (Decision.PROBATION, runs[-1].ended_at)
    assert "beside 1 other of ours" in beside.line
    measured = case(*runs, *spaced(MINE, 64, neighbours=1, hours_ago=0.1)).verdict(MINE, neighbours=1)
    assert (measured.runs, (measured.next_run_at or 0.0) > NOW) == (1, True)


def test_runs_made_beside_another_do_not_condemn_one_that_is_alone():
    """An instance found too slow beside another is measured again before it is given up, once it is alone."""
    runs = spaced(MINE, 35, 35, 35, neighbours=1)
    assert case(*runs).verdict(MINE, neighbours=1).decision is Decision.REJECTED
    alone = case(*runs).verdict(MINE, neighbours=0)
    assert (alone.decision, alone.next_run_at) == (Decision.PROBATION, runs[-1].ended_at)
    assert "alone on its machine" in alone.line
    assert case(*runs).verdict(MINE, neighbours=2).decision is Decision.REJECTED


def test_a_machine_is_thought_of_as_it_is_alone():
    """What two instances made side by side is not held against their machine, nor expected of others."""
    runs = [*spaced(MINE, 64, 64, hours_ago=30.0), *spaced(MINE, 40, 40, 40, neighbours=1)]
    found = case(*runs)
    assert found.machines[MINE.machine_id].decision is not Decision.REJECTED
    assert found.typical > FLOOR


def test_productions_rate_is_read_as_the_benchmark_would_show_it():
    """Where production shows a third less than the benchmark on every machine, that is no reason to reject any."""
    runs = []
    for nth in range(20):
        of = instance(20 + nth)
        runs += spaced(of, 57, 57, hours_ago=20.0, concurrency=5)
        runs += spaced(of, *(38.0,) * 6, hours_ago=1.0, kind=RunKind.PRODUCTION, concurrency=5)
    found = case(*runs)
    assert 54 < (found.verdict(instance(20), neighbours=0).rate or 0.0) < 58
    assert found.verdict(instance(20), neighbours=0).decision is Decision.ACCEPTED


def test_readings_beside_others_are_no_measure_of_production():
    """That two share a machine does not make production look slower than the benchmark."""
    alone = [one for nth in range(10) for one in spaced(instance(20 + nth), 60, hours_ago=9.0, concurrency=5)]
    shared = [
        one
        for nth in range(10)
        for one in spaced(instance(20 + nth), 45, 45, kind=RunKind.PRODUCTION, concurrency=5, neighbours=1)
    ]
    assert case(*alone, *shared).learned.offset == 0.0


def test_what_is_learned_of_machines_does_not_forget_those_never_put_to_work():
    """Machines turned down at their first benchmark count beside those whose production is read."""
    rejected = market(35, 35, 35, 35, 35, 35, count=12, concurrency=5)
    working = spaced(MINE, 60, hours_ago=9.0, count=12, concurrency=5)
    read = spaced(MINE, 60, 60, 60, kind=RunKind.PRODUCTION, concurrency=5)
    found = case(*rejected, *working, *read)
    assert found.learned.prior.machines == 7
    assert found.learned.prior_of((*working, *read)).machines == 7
    assert found.learned.prior.mean < math.log(45 / FLOOR)


def gone(number: int, hours: float, reason: Reason, *, prepared: bool = False) -> Instance:
    """A rental that ended so many hours after it was made."""
    made = NOW - 50 * HOUR
    values = {"created_at": made, "ended_at": made + hours * HOUR, "phase": Phase.GONE, "reason": reason}
    return instance(number, prepared_at=made + hours * HOUR if prepared else None, admitted_at=None, **values)


def test_what_finding_takes_is_learned_from_rentals():
    """Hours until the first benchmark count, with those of rentals that failed before it, over those that did not."""
    ready = tuple(gone(n, 1.0, Reason.BELOW_MIN_RATE, prepared=True) for n in range(20))
    assert case().effort.provision_hours == pytest.approx(0.42, abs=0.05)
    assert case(rentals=ready).effort.provision_hours == pytest.approx(1.0, abs=0.12)
    failed = tuple(gone(30 + n, 1.0, Reason.LAUNCH_TIMEOUT) for n in range(20))
    assert case(rentals=ready + failed).effort.provision_hours == pytest.approx(1.8, abs=0.2)


@pytest.mark.parametrize("reason", [Reason.SURPLUS, Reason.DELETED, Reason.OUTDATED, Reason.OVER_BUDGET])
def test_what_was_given_up_for_no_fault_teaches_nothing(reason):
    """Rentals that nobody needed any more are no failures."""
    given_up = tuple(gone(n, 5.0, reason) for n in range(20))
    assert case(rentals=given_up).effort == case().effort


def test_what_a_run_takes_is_learned_from_benchmarks():
    """Readings, which take a moment, do not make benchmarks look short."""
    bench = [run(MINE, 60, ended_at=NOW - n * DAY, started_at=NOW - n * DAY - HOUR) for n in range(1, 20)]
    read = [run(MINE, 60, ended_at=NOW - n * HOUR, kind=RunKind.PRODUCTION) for n in range(1, 20)]
    assert case(*bench, *read).effort.run_hours == pytest.approx(0.9, abs=0.1)


def test_rentals_under_way_are_not_counted_yet():
    """What is still being prepared has neither failed nor shown how long it takes."""
    coming = tuple(instance(n, prepared_at=None, admitted_at=None, phase=Phase.PREPARING) for n in range(9))
    assert case(rentals=coming).effort == case().effort


def test_a_floor_that_no_machine_reaches_is_out_of_reach():
    """After several machines of half the floor it is no use to try more, and it is said in numbers; not after four."""
    assert case().out_of_reach == ""
    assert case(*market(25, 26, 25, 24)).out_of_reach == ""
    text = case(*market(25, 26, 25, 24, 25, 26, 24)).out_of_reach
    assert text.startswith("of 7 machines measured, a typical one makes ")
    assert "minRate of 50" in text


def test_machines_a_little_too_slow_are_no_reason_to_stop():
    """Where machines make a tenth less than the floor, one that makes it may still be found."""
    assert case(*market(*(45,) * 40)).out_of_reach == ""


def test_a_lower_floor_is_within_reach_again():
    """The same machines, held to what they make, are worth trying."""
    slow = market(25, 26, 25, 24, 25, 26, 24)
    assert case(*slow).out_of_reach != ""
    assert case(*slow, min_rate=24).out_of_reach == ""


def test_a_bad_name_fades():
    """A machine found too slow is so for days; after weeks it may be tried again, since hosts change."""
    runs = [*spaced(MINE, 44, 44, 44), *market(60, 60, 60, 60)]
    days = {after: case(*runs, now=NOW + after * DAY).machines.get(MINE.machine_id) for after in (0, 3, 40, 70)}
    assert [said is not None and said.decision is Decision.REJECTED for said in days.values()] == [
        True,
        True,
        False,
        False,
    ]


def test_a_clock_that_was_set_teaches_nothing():
    """A run or a rental that seems to have taken months, or less than no time, does not change what they take."""
    runs = spaced(MINE, 52, 52)
    late = [replace(one, id=f"late {one.id}", started_at=one.ended_at - 365 * DAY) for one in runs]
    early = [replace(one, id=f"early {one.id}", started_at=one.ended_at + DAY) for one in runs]
    usual = replace(MINE, created_at=NOW - 9 * HOUR, prepared_at=NOW - 8.5 * HOUR)
    rentals = (usual, *(replace(usual, prepared_at=NOW + days * DAY) for days in (-365, 365)))
    assert case(*runs, *late, *early, rentals=rentals).effort == case(*runs, rentals=(usual,)).effort
