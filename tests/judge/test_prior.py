import math
from random import Random

import pytest

from controller.judge.assumptions import DEFAULTS, UNMEASURED, Prior
from controller.judge.belief import Sample, samples
from controller.judge.prior import learn
from tests.judge.conftest import FLOOR, HOUR_S, run


def machine(*ratios: float) -> tuple[Sample, ...]:
    """A machine's runs, three hours apart, as shares of the floor."""
    runs = [run(FLOOR * ratio, nth * 3.0) for nth, ratio in enumerate(ratios)]
    return samples(runs, floor=FLOOR, now=100 * HOUR_S, assumptions=DEFAULTS)


def machines(ratio: float, count: int, *, sd: float, seed: int = 5) -> list[tuple[Sample, ...]]:
    """Machines around a mean, each with four runs."""
    rng = Random(seed)
    made = []
    for _ in range(count):
        true = ratio * math.exp(rng.gauss(0.0, sd))
        made.append(machine(*(true * math.exp(rng.gauss(0.0, 0.05)) for _ in range(4))))
    return made


@pytest.mark.parametrize("histories", [[], [()], [(), ()]])
def test_nothing_measured_leaves_what_is_taken_for_granted(histories):
    """Without a usable run the next machine is expected to be as the defaults say."""
    assert learn(histories) == UNMEASURED == Prior(0.0, 0.10, 0)


@pytest.mark.parametrize("ratio", [0.6, 0.9, 1.2, 1.6])
def test_the_mean_goes_to_what_was_measured(ratio):
    """The more machines were measured, the nearer is what is expected of the next to what they do."""
    found = [learn(machines(ratio, count, sd=0.05)).mean for count in (1, 4, 16, 64)]
    apart = [abs(mean - math.log(ratio)) for mean in found]
    assert apart == sorted(apart, reverse=True)
    assert apart[-1] < 0.05
    assert all(0.0 < mean / math.log(ratio) <= 1.1 for mean in found)


def test_slow_machines_count_as_fast_ones_do():
    """Those that were measured and rejected are learned from: without them the next would be expected to be better."""
    kept, rejected = machines(1.1, 10, sd=0.03), machines(0.7, 10, sd=0.03)
    assert learn([*kept, *rejected]).mean < learn(kept).mean - 0.1
    assert learn([*kept, *rejected]).machines == 20


def test_the_spread_is_what_it_is():
    """Machines that agree lower what the next is expected to differ by; machines that differ raise it."""
    alike, mixed = learn(machines(1.0, 40, sd=0.01)).sd, learn(machines(1.0, 40, sd=0.25)).sd
    assert alike < 0.08 < DEFAULTS.sd < 0.18 < mixed


def test_one_absurd_machine_does_not_move_the_rest_far():
    """A machine a thousand times too slow is one machine."""
    usual = machines(1.1, 20, sd=0.05)
    assert abs(learn([*usual, machine(0.001)]).mean - learn(usual).mean) < 0.4


def test_the_order_of_machines_says_nothing():
    """What is learned does not depend on which machine was measured first."""
    found = machines(1.0, 12, sd=0.1)
    assert learn(found) == learn(found[::-1])
