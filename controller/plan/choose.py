"""Which offers to rent.

A target of instances gets the fastest set that the budget buys; a target of rate, the cheapest that reaches it.

Greedy by price, by expected rate per dollar, and along the price of money between the two, then improved by single
changes: add, drop, swap. bench/ holds the outcome against the exact optimum.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby

from controller.model.money import MicroUsd
from controller.plan.offers import Candidate

IMPROVEMENTS = 1000  # a bound, not a tuning
BISECTIONS = 24
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


def choose(candidates: Iterable[Candidate], wanted: Wanted) -> tuple[Candidate, ...]:
    """The set to rent, most rate per dollar first.

    Never over budget, count or a shape's bounds; one offer a machine.
    """
    pool = _classes(candidates)
    everything = [candidate for group in pool for candidate in group]
    orders: list[Callable[[Candidate], float]] = [lambda c: c.price, lambda c: -c.rate / c.price]
    baskets = [_filled(everything, order, wanted) for order in orders]
    baskets += _along_price_of_money(everything, wanted)
    best = max((_improved(basket, pool) for basket in baskets), key=lambda basket: basket.score())
    return tuple(sorted(best.chosen, key=lambda c: (-c.rate / c.price, c.offer.id)))


def _classes(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Candidates alike in shape and rate, cheapest first: within a class only price and machine matter."""

    def alike(candidate: Candidate) -> tuple[str, float]:
        return candidate.shape, candidate.rate

    ordered = sorted(candidates, key=lambda c: (*alike(c), c.price, c.offer.id))
    return [list(group) for _, group in groupby(ordered, key=alike)]


class _Basket:
    """A set being put together, with its sums."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.chosen: list[Candidate] = []
        self.cost = 0
        self.rate = 0.0
        self.machines: set[int] = set()
        self.shapes: Counter[str] = Counter()

    def add(self, candidate: Candidate) -> None:
        self.chosen.append(candidate)
        self.machines.add(candidate.offer.machine_id)
        self.shapes[candidate.shape] += 1
        self.cost += candidate.price
        self.rate += candidate.rate

    def drop(self, candidate: Candidate) -> None:
        self.chosen.remove(candidate)
        self.machines.discard(candidate.offer.machine_id)
        self.shapes[candidate.shape] -= 1
        self.cost -= candidate.price
        self.rate -= candidate.rate

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
            reached = rate >= round(self.wanted.rate, 6)
            return (-lacking, reached, -cost if reached else rate, -cost)
        return (-lacking, len(self.chosen) + sum(sign for _, sign in change), rate, -cost)


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


def _along_price_of_money(everything: list[Candidate], wanted: Wanted) -> list[_Basket]:
    """The sets that are best when a dollar is worth so much rate, on both sides of where the budget begins to bind."""
    low, high = 0.0, max((c.rate / c.price for c in everything), default=0.0)
    unbound = replace(wanted, budget=UNBOUND)
    for _ in range(BISECTIONS):
        worth = (low + high) / 2
        if _filled(everything, _net_of(worth), unbound).cost > wanted.budget:
            low = worth
        else:
            high = worth
    return [_filled(everything, _net_of(worth), wanted) for worth in (low, high)]


def _net_of(worth: float) -> Callable[[Candidate], float]:
    return lambda c: worth * c.price - c.rate


def _improved(basket: _Basket, pool: list[list[Candidate]]) -> _Basket:
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


def _changes(basket: _Basket, pool: list[list[Candidate]]) -> Iterator[tuple[Candidate | None, Candidate | None]]:
    """What one drop, one addition, or one of each could be."""
    for drop in (None, *tuple(basket.chosen)):
        if drop is not None:
            basket.drop(drop)
        fitting = [next((c for c in group if c is not drop and basket.fits(c)), None) for group in pool]
        if drop is not None:
            basket.add(drop)
            yield drop, None
        yield from ((drop, add) for add in fitting if add is not None)
