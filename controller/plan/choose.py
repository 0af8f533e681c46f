"""Which offers to rent.

A target of instances gets the fastest set that the budget buys; a target of rate, the cheapest that reaches it.

Of sets of as many, or of those that reach the rate, the one with the most on preferred machines comes first.

Greedy by price, by expected rate per dollar, and along the price of money between the two, then improved by single
changes: add, drop, swap. bench/ holds the outcome against the exact optimum.
"""

import math
from bisect import bisect_left, insort
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from controller.model.money import MicroUsd
from controller.plan.offers import Candidate

IMPROVEMENTS = 1000  # a bound, not a tuning
BISECTIONS = 24
DEAREST = 4.0  # worth of a dollar, in the best rate per dollar on offer
BESIDE = 2  # sizes that are tried below and above the simple sets'
UNBOUND: MicroUsd = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What is missing: a number of instances, or a rate. Zero of both wants only what `least_of` asks."""

    instances: int = 0
    rate: float = 0.0  # in the benchmark's unit
    most: int = 1_000_000  # rentals at most, whatever the rate
    budget: MicroUsd = 0  # an hour, for all of them
    least_of: dict[str, int] = field(default_factory=dict)  # by shape: rentals its minInstances still lacks
    most_of: dict[str, int] = field(default_factory=dict)  # by shape: rentals its maxInstances still allows

    @property
    def count(self) -> int:
        """How many may be rented at most."""
        floor = sum(self.least_of.values())
        wanted = self.instances if self.rate <= 0 else self.most
        return min(self.most, max(wanted, floor))

    def asks_for(self, shape: str) -> bool:
        """Whether a rental of that shape would serve: where only minimums are lacking, no other shape does."""
        only_minimums = self.instances <= 0 and self.rate <= 0 and bool(self.least_of)
        return self.most_of.get(shape, 1) > 0 and (shape in self.least_of or not only_minimums)


def choose(candidates: Iterable[Candidate], wanted: Wanted) -> tuple[Candidate, ...]:
    """The set to rent, most rate per dollar first.

    Never over budget, count or a shape's bounds; one offer a machine.
    """
    everything = sorted(candidates, key=lambda c: (c.price, -c.rate, c.offer.id))
    orders: list[Callable[[Candidate], float]] = [lambda c: c.price, lambda c: -c.rate / c.price]
    if any(c.preferred for c in everything):
        orders += [_preferred_first(order) for order in orders]
    baskets = [_filled(everything, order, wanted) for order in orders]
    worthwhile = _worthwhile(everything, 1 + max(len(basket.chosen) for basket in baskets))
    baskets += _along_price_of_money(worthwhile, wanted, baskets)
    pool = _by_shape(worthwhile)
    best = max((_improved(basket, pool) for basket in baskets), key=lambda basket: basket.score())
    best.shed()
    return tuple(sorted(best.chosen, key=lambda c: (-c.rate / c.price, c.offer.id)))


def _preferred_first(order: Callable[[Candidate], float]) -> Callable[[Candidate], float]:
    return lambda c: -math.inf if c.preferred else order(c)


def _worthwhile(everything: Iterable[Candidate], count: int) -> list[Candidate]:
    """Without those that a set of so many never needs: as many other machines have the shape as fast for no more.

    A preferred machine is compared with other preferred ones only.
    """
    kept: list[Candidate] = []
    rates: defaultdict[tuple[str, bool], list[float]] = defaultdict(list)  # of each machine's cheapest, ascending
    fastest: dict[tuple[str, int], float] = {}
    for candidate in everything:  # cheapest first
        shape, machine = candidate.shape, candidate.offer.machine_id
        alike = rates[shape, candidate.preferred]
        as_fast = len(alike) - bisect_left(alike, candidate.rate)
        known = fastest.get((shape, machine))
        if as_fast >= count or (known is not None and known >= candidate.rate):
            continue
        kept.append(candidate)
        fastest[shape, machine] = candidate.rate
        if known is None:
            insort(alike, candidate.rate)
    return kept


@dataclass(frozen=True, slots=True)
class _Shape:
    """The candidates of one shape, in the two orders in which they are looked through."""

    by_price: tuple[Candidate, ...]  # ascending
    by_rate: tuple[Candidate, ...]  # descending, then by price


def _by_shape(candidates: Iterable[Candidate]) -> list[_Shape]:
    """The candidates by shape; the preferred ones of a shape are a group of their own."""
    by_price = sorted(candidates, key=lambda c: (c.shape, c.preferred, c.price, c.offer.id))
    groups = [tuple(group) for _, group in groupby(by_price, key=lambda c: (c.shape, c.preferred))]
    return [_Shape(group, tuple(sorted(group, key=lambda c: (-c.rate, c.price)))) for group in groups]


class _Basket:
    """A set being put together, with its sums."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.chosen: list[Candidate] = []
        self.cost = 0
        self.rate = 0.0
        self.preferred = 0  # instances on preferred machines
        self.preferred_rate = 0.0
        self.machines: set[int] = set()
        self.shapes: Counter[str] = Counter()

    def add(self, candidate: Candidate) -> None:
        self.chosen.append(candidate)
        self.machines.add(candidate.offer.machine_id)
        self.shapes[candidate.shape] += 1
        self.cost += candidate.price
        self.rate += candidate.rate
        self.preferred += candidate.preferred
        self.preferred_rate += candidate.rate if candidate.preferred else 0.0

    def drop(self, candidate: Candidate) -> None:
        self.chosen.remove(candidate)
        self.machines.discard(candidate.offer.machine_id)
        self.shapes[candidate.shape] -= 1
        self.cost -= candidate.price
        self.rate -= candidate.rate
        self.preferred -= candidate.preferred
        self.preferred_rate -= candidate.rate if candidate.preferred else 0.0

    def fits(self, candidate: Candidate) -> bool:
        """Whether one more may be added."""
        return (
            self._room_for(candidate)
            and self.cost + candidate.price <= self.wanted.budget
            and candidate.offer.machine_id not in self.machines
            and self.shapes[candidate.shape] < self.wanted.most_of.get(candidate.shape, self.wanted.count)
        )

    def _room_for(self, candidate: Candidate) -> bool:
        """Whether the count allows one more: beyond the instances asked for, only what a shape's minimum lacks."""
        size, wanted = len(self.chosen), self.wanted
        if size >= wanted.count or wanted.rate > 0 or size < wanted.instances:
            return size < wanted.count
        serving = sum(min(least, self.shapes[shape]) for shape, least in wanted.least_of.items())
        return serving == size and self.shapes[candidate.shape] < wanted.least_of.get(candidate.shape, 0)

    @property
    def done(self) -> bool:
        return self.wanted.rate > 0 and self.rate >= self.wanted.rate and not self.lacking()

    def lacking(self, change: dict[str, int] | None = None) -> int:
        """How many rentals the shapes' minimums lack, or would lack after a change of the counts."""
        counts = change or {}
        least_of = self.wanted.least_of.items()
        return sum(max(0, least - self.shapes[shape] - counts.get(shape, 0)) for shape, least in least_of)

    def score(self, *, drop: Candidate | None = None, add: Candidate | None = None) -> tuple[float, ...]:
        """How good the set is, or would be after a change. More is better, compared part by part."""
        change = [(c, sign) for c, sign in ((drop, -1), (add, 1)) if c is not None]
        cost = self.cost + sum(sign * c.price for c, sign in change)
        rate = round(self.rate + sum(sign * c.rate for c, sign in change), 6)
        shapes: Counter[str] = Counter()
        for candidate, sign in change:
            shapes[candidate.shape] += sign
        lacking = self.lacking(shapes)
        if self.wanted.rate > 0:
            preferred = self.preferred_rate + sum(sign * c.rate for c, sign in change if c.preferred)
            if rate >= round(self.wanted.rate, 6):
                return (-lacking, True, round(min(preferred, self.wanted.rate), 6), -cost)
            return (-lacking, False, rate, -cost)
        preferred = self.preferred + sum(sign for c, sign in change if c.preferred)
        return (-lacking, len(self.chosen) + sum(sign for _, sign in change), preferred, rate, -cost)

    def shed(self) -> None:
        """Drop what the rate is reached without: the preferred last, the dearest first."""
        for candidate in sorted(self.chosen, key=lambda c: (c.preferred, -c.price)):
            lacking, reached, *_ = self.score()
            if self.wanted.rate > 0 and reached and self.score(drop=candidate)[:2] == (lacking, reached):
                self.drop(candidate)


def _filled(everything: Iterable[Candidate], order: Callable[[Candidate], float], wanted: Wanted) -> _Basket:
    """Take what fits, in that order: the shapes' minimums first, cheapest, then the rest."""
    basket = _Basket(wanted)
    by_price = sorted(everything, key=lambda c: (c.price, c.offer.id))
    for candidate in by_price:
        if basket.shapes[candidate.shape] < wanted.least_of.get(candidate.shape, 0) and basket.fits(candidate):
            basket.add(candidate)
    for candidate in sorted(by_price, key=order):
        if basket.done:
            break
        if basket.fits(candidate):
            basket.add(candidate)
    return basket


def _along_price_of_money(pool: list[Candidate], wanted: Wanted, simple: list[_Basket]) -> list[_Basket]:
    """Sets about as large as the simple ones that are best while a dollar is worth so much rate: the more, the slower.

    Each size gives two: on both sides of where the rate is just reached or, if it can't be, the budget just kept.
    """
    baskets = []
    sizes = [len(basket.chosen) for basket in simple]
    reachable = wanted.rate > 0 and any(basket.rate >= wanted.rate for basket in simple)
    for size in range(max(1, min(sizes) - BESIDE), min(wanted.count, max(sizes) + BESIDE) + 1):
        low, high = 0.0, DEAREST * max((c.rate / c.price for c in pool), default=0.0)
        instances = size if wanted.rate > 0 else min(size, wanted.instances)
        of_size = replace(wanted, instances=instances, rate=0.0, most=size, budget=UNBOUND)
        for _ in range(BISECTIONS):
            worth = (low + high) / 2
            basket = _filled(pool, _net_of(worth), of_size)
            cheaper = basket.rate >= wanted.rate if reachable else basket.cost > wanted.budget
            low, high = (worth, high) if cheaper else (low, worth)
        for worth in (low, high):
            basket = _filled(pool, _net_of(worth), replace(of_size, budget=wanted.budget))
            basket.wanted = wanted
            baskets.append(basket)
    return baskets


def _net_of(worth: float) -> Callable[[Candidate], float]:
    return lambda c: worth * c.price - c.rate


def _improved(basket: _Basket, pool: list[_Shape]) -> _Basket:
    """Apply the best single change until none helps."""
    for _ in range(IMPROVEMENTS):
        changes = ((basket.score(drop=drop, add=add), drop, add) for drop, add in _changes(basket, pool))
        score, drop, add = max(changes, key=lambda change: change[0], default=((), None, None))
        if score <= basket.score():
            break
        if drop is not None:
            basket.drop(drop)
        if add is not None:
            basket.add(add)
    return basket


def _changes(basket: _Basket, pool: list[_Shape]) -> Iterator[tuple[Candidate | None, Candidate | None]]:
    """What one drop, one addition, or one of each could be: for each shape, the addition that would be best."""
    for drop in (None, *tuple(basket.chosen)):
        if drop is not None:
            basket.drop(drop)
        lacking = basket.wanted.rate - basket.rate
        adds = [_best_of(shape, basket, lacking) for shape in pool if lacking > 0 or basket.wanted.rate <= 0]
        if drop is not None:
            basket.add(drop)
            yield drop, None
        yield from ((drop, add) for add in adds if add not in (None, drop))


def _best_of(shape: _Shape, basket: _Basket, lacking: float) -> Candidate | None:
    """The fastest that fits; or, where one suffices to reach the rate, the cheapest such."""
    enough = (c for c in shape.by_price if c.rate >= lacking and basket.fits(c)) if lacking > 0 else ()
    return next(iter(enough), None) or next((c for c in shape.by_rate if basket.fits(c)), None)
