"""Randomness by name: every draw comes from a stream that belongs to one thing.

A single generator would give other numbers whenever two requests swap places. A stream per machine, per instance or per
trouble gives each the same fate whatever happens around it. Called by every module here that draws a number.
"""

import math
from random import Random


def stream(seed: int, *key: object) -> Random:
    """Return the generator of one named thing; the same seed and key give the same numbers in every process."""
    return Random("/".join(str(part) for part in (seed, *key)))  # noqa: S311  a market, not a cipher


def lognormal(rng: Random, *, mean: float, cv: float) -> float:
    """Draw a positive number with this mean and coefficient of variation."""
    sigma = math.sqrt(math.log1p(cv * cv))
    return mean * math.exp(rng.gauss(-sigma * sigma / 2, sigma))


def jitter(rng: Random, spread: float) -> float:
    """Draw a factor within `spread` of 1."""
    return rng.uniform(1 - spread, 1 + spread)
