"""What the machines of one shape are like, learned from all that were measured, the rejected too.

Without those, only what survived would count, and the next machine would be expected to be better than it is. The
spread between machines and their mean are found by expectation and maximisation from each machine's own summary, drawn
towards the defaults as if so many machines had been measured that are just like these.
"""

import math
from collections.abc import Iterable
from functools import lru_cache
from operator import mul

from controller.judge.assumptions import DEFAULTS, Assumptions, Prior
from controller.judge.belief import Sample, believe

ROUNDS = 30
ROUNDED = 2  # decimals of what is learned: finer, it would change with every run, and all that is cached with it
LEAST_SD = 0.02  # ln


def learn(histories: Iterable[tuple[Sample, ...]], assumptions: Assumptions = DEFAULTS) -> Prior:
    """What to expect of the next machine, from the usable runs of each machine so far."""
    a = assumptions
    summaries = [_summary(history, a) for history in histories if history]
    mean, variance = a.mean, a.sd**2
    for _ in range(ROUNDS if summaries else 0):
        posts = [_posterior(m, v, mean, variance) for m, v in summaries]
        mean = (a.mean_weight * a.mean + math.fsum(m for m, _ in posts)) / (a.mean_weight + len(posts))
        found = math.fsum((m - mean) ** 2 + v for m, v in posts)
        variance = (a.sd_weight * a.sd**2 + found) / (a.sd_weight + len(posts))
    return Prior(round(mean, ROUNDED), max(LEAST_SD, round(math.sqrt(variance), ROUNDED)), len(summaries))


def _posterior(seen: float, noise: float, mean: float, variance: float) -> tuple[float, float]:
    """A machine's mean and variance, from its own runs' and what its like are."""
    share = variance / (variance + noise)
    return mean + share * (seen - mean), share * noise


@lru_cache(maxsize=4096)
def _summary(history: tuple[Sample, ...], assumptions: Assumptions) -> tuple[float, float]:
    """Mean and variance of a machine's x by its own runs alone."""
    belief = believe(history, now=history[-1].at, prior=None, assumptions=assumptions)
    weights, xs = belief.weights(), belief.grid.xs()
    mean = math.fsum(map(mul, weights, xs))
    return mean, math.fsum(w * (x - mean) ** 2 for w, x in zip(weights, xs, strict=True))
