import math
from collections import defaultdict
from random import Random

from controller.judge.verdict import Terms, judge
from controller.model.instance import Run
from tests.judge.conftest import FLOOR, run

MACHINES = 1500
GAP_HOURS = 2.4  # the cooldown and a run


def lognormal(rng: Random, cv: float) -> float:
    sigma = math.sqrt(math.log1p(cv * cv))
    return math.exp(rng.gauss(-sigma * sigma / 2, sigma))


def machine(rng: Random) -> tuple[bool, list[Run]]:
    """A machine of a world the assumptions do not quite fit: whether it is good, and one to four runs of it."""
    true = 61 * lognormal(rng, 0.08)
    runs: list[Run] = []
    session, session_ends = 1.0, 0.0
    for nth in range(rng.randint(1, 4)):
        while session_ends <= nth * GAP_HOURS:
            session = lognormal(rng, 0.08) * (0.75 if rng.random() < 0.15 else 1.0)
            session_ends += rng.expovariate(1 / 1.5)
        runs.append(run(true * session * lognormal(rng, 0.03), nth * GAP_HOURS))
    return true >= FLOOR, runs


def test_p_is_not_overconfident():
    """Of the machines given P of 0.5, 0.6, ... 0.9 and more, at least that share is good."""
    rng = Random(41)
    good: defaultdict[int, list[bool]] = defaultdict(list)
    for _ in range(MACHINES):
        is_good, runs = machine(rng)
        p_good = judge(runs, Terms(floor=FLOOR), now=runs[-1].ended_at).p_good
        assert p_good is not None
        good[min(9, int(p_good * 10))].append(is_good)
    for tenth in range(5, 10):
        share = sum(good[tenth]) / len(good[tenth])
        assert share >= tenth / 10, f"P in [{tenth / 10}, {tenth / 10 + 0.1}): {share:.2f} of {len(good[tenth])} good"


def test_most_machines_are_told_apart():
    """With four spaced runs, most machines 10 % above the floor are accepted and most 10 % below are rejected."""
    rng = Random(42)
    said: defaultdict[tuple[str, str], int] = defaultdict(int)
    for _ in range(100):
        for side, ratio in (("above", 1.1), ("below", 0.9)):
            runs = [run(FLOOR * ratio * lognormal(rng, 0.085), nth * GAP_HOURS) for nth in range(4)]
            said[side, judge(runs, Terms(floor=FLOOR), now=runs[-1].ended_at).decision.value] += 1
    assert said["above", "Accepted"] >= 65
    assert said["above", "Rejected"] <= 3
    assert said["below", "Rejected"] >= 75
    assert said["below", "Accepted"] <= 3
