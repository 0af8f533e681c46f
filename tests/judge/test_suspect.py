import math
from collections.abc import Sequence
from dataclasses import replace
from random import Random
from typing import Any

import pytest

from controller.judge.suspect import Suspect, suspect
from controller.model.instance import Run, RunKind
from controller.model.reasons import Reason
from tests.judge.conftest import DAY_S, FLOOR, HOUR_S, run

SHAPE = "RTX 4090 x1"
NOW = 1_800_000_000.0
HOURS = 96  # of history


def made(machine: int, rate: float | None, hours_ago: float, **values) -> Run:
    at = NOW - hours_ago * HOUR_S
    given: dict[str, Any] = {
        "id": f"{machine}-{hours_ago}-{values.get('kind', '')}",
        "machine_id": machine,
        "nonce": f"n{machine}",
        "started_at": at - 900,
        "ended_at": at,
    }
    return replace(run(rate), **(given | values))


def failure(machine: int, hours_ago: float, reason: Reason = Reason.BENCHMARK_FAILED) -> Run:
    return made(machine, None, hours_ago, reason=reason, detail="exit status 1: CUDA error 209")


def said(*runs: Run, workload: str = "w", floor: float = FLOOR, now: float = NOW) -> Suspect | None:
    ordered = sorted(runs, key=lambda one: one.ended_at)
    return suspect(ordered, workload=workload, floors={SHAPE: floor}, now=now)


def history(rng: Random, machine: int, *, mean: float = 64.0, fall: float = 1.0, fell: float = 0.0, runs: int = 5):
    """Runs of a machine over four days, in sessions that differ and are now and then disturbed."""
    true = mean * math.exp(rng.gauss(0.0, 0.08))
    spaced = sorted(rng.uniform(1, HOURS) for _ in range(runs))
    found = []
    for ago in spaced:
        disturbed = 0.75 if rng.random() < 0.15 else 1.0
        rate = true * disturbed * math.exp(rng.gauss(0.0, 0.085))
        found.append(made(machine, rate * (fall if ago <= fell else 1.0), ago))
    return found


def test_three_machines_that_fail_alike_are_not_to_blame():
    """The same failure on three machines is the workload's: it is named with the failure's text and its time."""
    found = said(failure(1, 3), failure(2, 2), failure(3, 1))
    assert found is not None
    assert found.reason is Reason.WORKLOAD_SUSPECT
    assert found.since == NOW - 3 * HOUR_S - 900
    assert "3 machines fail alike: BenchmarkFailed: exit status 1: CUDA error 209" in found.text


@pytest.mark.parametrize(
    "runs",
    [
        [failure(1, 3), failure(2, 2)],
        [failure(1, 3), failure(1, 2), failure(1, 1)],
        [failure(1, 3), failure(2, 2), failure(3, 1, Reason.NO_RATE)],
        [failure(1, 3), failure(2, 2), failure(3, 1), made(4, 60, 0.5)],
        [failure(1, 3), failure(2, 2), failure(3, 1), made(1, 60, 0.5)],
        [failure(1, 30), failure(2, 29), failure(3, 28)],
        [failure(n, n, Reason.SSH_UNREACHABLE) for n in (1, 2, 3)],
        [failure(n, n, Reason.HOST_FAULT) for n in (1, 2, 3)],
        [failure(n, n, Reason.OUT_OF_MEMORY) for n in (1, 2, 3)],
    ],
    ids=["two", "one machine", "two reasons", "another well", "well again", "long ago", "reach", "gpus", "memory"],
)
def test_what_fails_is_the_machines_own(runs):
    """Two machines, or different failures, or a success since, or what hosts do of themselves, cast no suspicion."""
    assert said(*runs) is None


def test_another_workload_failures_say_nothing():
    """A mended manifest is another workload: what failed before it is not held against it."""
    assert said(failure(1, 3), failure(2, 2), failure(3, 1), workload="mended") is None


def everybody(fall: float, *, machines: int = 10, before: int = 3, after: int = 3, seed: int = 3) -> list[Run]:
    """Machines with a few runs on each side of a moment 30 hours ago."""
    rng = Random(seed)
    runs: list[Run] = []
    for machine in range(machines):
        true = 61.0 * math.exp(rng.gauss(0.0, 0.05))
        ago = [90 - 20 * nth + rng.uniform(-5, 5) for nth in range(before)]
        since = [24 - 9 * nth + rng.uniform(-3, 3) for nth in range(after)]
        runs += [made(machine, true * math.exp(rng.gauss(0, 0.06)), hours) for hours in ago]
        runs += [made(machine, true * fall * math.exp(rng.gauss(0, 0.06)), hours) for hours in since]
    return runs


@pytest.mark.parametrize("seed", range(8))
def test_a_fall_of_all_machines_at_one_time_is_not_the_machines(seed):
    """Ten machines that all lose 15 % since one time: it is said, by how much, and since when."""
    found = said(*everybody(0.85, seed=seed))
    assert found is not None
    assert found.reason is Reason.FLEET_SHIFT
    assert 24 * HOUR_S < NOW - found.since < 52 * HOUR_S
    share = int(found.text.split("%", maxsplit=1)[0].split()[-1])
    assert found.text.startswith("10 machines are")
    assert 9 <= share <= 22


def test_two_runs_on_each_side_mostly_suffice():
    """Ten machines measured twice before and twice after they all lost 15 %: seen in at least six cases of eight."""
    assert sum(said(*everybody(0.85, before=2, after=2, seed=seed)) is not None for seed in range(8)) >= 6


@pytest.mark.parametrize("machines", [1, 2])
def test_a_fall_of_one_or_two_machines_is_theirs(machines):
    """One machine's fall is its own, however many of its cards, kinds of run and companies show it."""
    runs = everybody(0.6, machines=machines)
    more = [replace(r, kind=RunKind.PRODUCTION, id=f"{r.id}p") for r in runs]
    cards = [replace(r, gpu_uuid="B", nonce="b", id=f"{r.id}b") for r in (*runs, *more)]
    assert said(*runs, *more, *cards) is None


def test_one_slow_machine_among_many_is_its_own():
    """Where nine of ten stay as they were, nothing is suspected."""
    rng = Random(8)
    runs = [r for n in range(9) for r in history(rng, n)]
    assert said(*runs, *history(rng, 9, fall=0.6, fell=30, runs=8)) is None


def test_a_fall_that_leaves_all_fast_enough_is_nobodys_concern():
    """Where the floor is lowered below what the machines still make, nothing is suspected any more."""
    runs = everybody(0.85)
    assert said(*runs) is not None
    assert said(*runs, floor=45.0) is None


@pytest.mark.parametrize("days", [1, 3, 6, 10])
@pytest.mark.parametrize("kind", list(RunKind))
def test_a_fall_is_remembered_for_as_long_as_it_lasts(days, kind):
    """Days later, and with a reading each hour, what all machines lost at one time is still not held against them."""
    rng = Random(2)
    runs = []
    for machine in range(8):
        for hour in range(48 + 24 * days):
            ago = float(47 + 24 * days - hour) + 0.5
            rate = 61.0 * (0.75 if hour >= 48 else 1.0) * math.exp(rng.gauss(0, 0.06))
            if kind is RunKind.PRODUCTION or hour % 12 == 0:
                runs.append(made(machine, rate, ago, kind=kind))
    found = said(*runs)
    assert found is not None
    assert abs(NOW - found.since - days * DAY_S) < 13 * HOUR_S


@pytest.mark.parametrize("kind", list(RunKind))
def test_noise_alone_casts_no_suspicion(kind):
    """Of 500 histories of ten machines whose rates only wander, less than 1 % are taken for a fall."""
    alarms = 0
    for seed in range(500):
        rng = Random(seed)
        runs = [r for n in range(10) for r in history(rng, n, mean=60.0, runs=6)]
        alarms += said(*(replace(one, kind=kind) for one in runs)) is not None
    assert alarms < 5


def of_workload(workload: str, rate: float, hours_ago: Sequence[float], *, first: int, **values) -> list[Run]:
    rng = Random(first)
    return [
        made(first + nth, rate * math.exp(rng.gauss(0.0, 0.1)), ago, workload=workload, **values)
        for nth, ago in enumerate(hours_ago)
    ]


BEFORE = of_workload("w", 62.0, (60, 58, 56, 54, 52, 50, 48, 46), first=100)


def test_a_slower_new_workload_is_named():
    """Where machines of a changed manifest make 30 % less than those of the one before it, the change is named."""
    found = said(*BEFORE, *of_workload("w2", 43.0, (8, 7, 6, 5, 4), first=200), workload="w2")
    assert found is not None
    assert found.reason is Reason.FLEET_SHIFT
    assert "with workload w2" in found.text
    assert "with w, the one before" in found.text
    assert found.since == NOW - 8 * HOUR_S - 900


@pytest.mark.parametrize(
    ("runs", "workload"),
    [
        (of_workload("w2", 62.0, (8, 7, 6, 5, 4), first=200), "w2"),
        (of_workload("w2", 43.0, (8, 7), first=200), "w2"),
        (of_workload("w2", 43.0, (8, 7, 6, 5, 4), first=200, unit="proofs/min"), "w2"),
        (of_workload("w2", 43.0, (8, 7, 6, 5, 4), first=200, fleet="another"), "w2"),
        ([], "w2"),
    ],
    ids=["as fast", "two machines", "another unit", "another fleet", "none yet"],
)
def test_a_new_workload_is_not_suspected_without_cause(runs, workload):
    """As fast as before, hardly measured, in another unit, or compared with another fleet's work: no suspicion."""
    assert said(*BEFORE, *runs, workload=workload) is None


def test_a_slower_workload_that_is_fast_enough_is_not_suspected():
    """Heavier work with a lower floor is what somebody wanted."""
    assert said(*BEFORE, *of_workload("w2", 43.0, (8, 7, 6, 5, 4), first=200), workload="w2", floor=40.0) is None


def test_the_newest_workload_before_is_compared_with():
    """Of several workloads before it, the last one counts."""
    older = of_workload("w0", 120.0, (90, 89, 88, 87), first=300)
    assert said(*older, *BEFORE, *of_workload("w2", 60.0, (8, 7, 6), first=200), workload="w2") is None


def test_no_runs_no_suspicion():
    """Without evidence nothing is suspected."""
    assert said() is None
