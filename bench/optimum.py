"""How good the planner's choice of offers is: beside the exact optimum, found by an integer program on the same input.

    python bench/optimum.py [--listing FILE] [--seed N]

The market is a listing file, or a generated one of about the same size as vast.ai's. Every row is one question: a
target, and a budget that many times what the cheapest answer to it costs. `none measured`: all machines of a model are
expected to do the same; `all measured`: each has its own rate. Exit code 1 if a choice is more than 1 % off.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import highspy

from controller.emulator import Market
from controller.emulator.generate import Spec
from controller.emulator.gpus import BY_NAME
from controller.model.fleet import Fleet
from controller.model.manifest import load_text
from controller.plan.choose import UNBOUND, Wanted, choose
from controller.plan.offers import Candidate, sift
from controller.vast.wire import offer

MODELS = ("RTX 4090", "RTX 5080", "RTX PRO 6000 WS")
SIZE = 1400  # offers in a generated market
NOW = 1_800_000_000.0
DISK_GIB = 100.0
BUDGETS = (0.6, 1.01, 1.05, 1.15, 1.3, 1.6, 2.5)  # the first buys less than was asked for
COUNTS = (5, 20, 50)
RATES = (300.0, 1200.0, 3000.0)
EXACT = 1e-4  # share of the optimum by which the program may be off
TAKEN = 0.5  # of a binary variable, which the solver returns as a float
CV = 0.08  # of machines of one model around their mean
WITHIN = 0.99
MANIFEST = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: bench}}
spec:
  target: {{instances: 1}}
  budgetPerHour: 1000
  shapes: [{shapes}]
  require: {{reliability: 0, verified: false, diskGiB: {disk:g}, remainingHours: 0}}
  instance: {{image: example/prover}}
  benchmark: {{command: "true"}}
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """A set of offers, and how long it took to find."""

    chosen: tuple[Candidate, ...]
    ms: float

    @property
    def rate(self) -> float:
        """Of all of them together."""
        return sum(c.rate for c in self.chosen)

    @property
    def cost(self) -> int:
        """Micro-dollars an hour."""
        return sum(c.price for c in self.chosen)


def fleet() -> Fleet:
    """A fleet of one GPU of each model; its minimum rates play no part."""
    shapes = ", ".join(f"{{gpu: {model}, minRate: 1}}" for model in MODELS)
    return load_text(MANIFEST.format(shapes=shapes, disk=DISK_GIB), name="bench")[0].fleet


def candidates(market: Market, *, measured: bool, seed: int) -> list[Candidate]:
    """What fits the fleet, with the rates to expect."""
    rows = market.rows(NOW, allocated_gb=DISK_GIB)
    offers = [made for row in rows if (made := offer(row, disk_gib=DISK_GIB)) is not None]
    spec = fleet().spec
    found = []
    for shape in spec.shapes:
        for one in sift(offers, spec=spec, shape=shape, now=NOW, blocked=lambda _: None).offers:
            own = Random(f"{seed}/{one.machine_id}").gauss(1.0, CV) if measured else 1.0
            rate = BY_NAME[shape.gpu].proofs_per_hour * own
            found.append(Candidate(offer=one, shape=shape.key, rate=rate))
    return found


def timed(ask: Callable[[], tuple[Candidate, ...]]) -> Answer:
    """An answer, with its time."""
    begun = time.perf_counter()
    chosen = ask()
    return Answer(chosen, (time.perf_counter() - begun) * 1000)


class Program:
    """The same choice as an integer program: one binary variable an offer."""

    def __init__(self, pool: list[Candidate], wanted: Wanted) -> None:
        self.pool = pool
        self.wanted = wanted
        self.solver = highspy.Highs()  # type: ignore[no-untyped-call]
        self.solver.setOptionValue("output_flag", False)
        self.solver.setOptionValue("mip_rel_gap", EXACT)
        self.solver.setOptionValue("time_limit", 30.0)
        self.taken = [self.solver.addBinary() for _ in pool]
        self._keep(lambda c: c.price / 1e6, most=wanted.budget / 1e6)
        for machine in {c.offer.machine_id for c in pool}:
            self._keep(lambda c: float(c.offer.machine_id == machine), most=1)  # noqa: B023 - called at once
        for shape in {c.shape for c in pool}:
            least, most = wanted.least_of.get(shape, 0), wanted.most_of.get(shape, len(pool))
            self._keep(lambda c: float(c.shape == shape), least=least, most=most)  # noqa: B023 - called at once

    def solve(self) -> tuple[Candidate, ...]:
        """By count: as many as can be had, then the most rate. By rate: the cheapest that reaches it, or the most."""
        if self.wanted.rate > 0:
            fastest = self._best(lambda c: c.rate)
            if Answer(fastest, 0).rate < self.wanted.rate:
                return fastest
            self._keep(lambda c: c.rate, least=self.wanted.rate)
            return self._best(lambda c: -c.price / 1e6)
        self._keep(lambda _: 1.0, most=self.wanted.instances)
        count = len(self._best(lambda _: 1.0))
        self._keep(lambda _: 1.0, least=count)
        return self._best(lambda c: c.rate)

    def _keep(self, weigh: Callable[[Candidate], float], *, least: float = 0.0, most: float = 1e9) -> None:
        weights = {index: weight for index, c in enumerate(self.pool) if (weight := weigh(c))}
        self.solver.addRow(least, most, len(weights), list(weights), list(weights.values()))

    def _best(self, worth: Callable[[Candidate], float]) -> tuple[Candidate, ...]:
        for index, candidate in enumerate(self.pool):
            self.solver.changeColCost(index, worth(candidate))
        self.solver.changeObjectiveSense(highspy.ObjSense.kMaximize)
        self.solver.run()
        if self.solver.getModelStatus() != highspy.HighsModelStatus.kOptimal:
            raise SystemExit(f"no exact optimum: {self.solver.getModelStatus()}")
        values = self.solver.getSolution().col_value
        return tuple(c for c, value in zip(self.pool, values, strict=True) if value > TAKEN)


def questions(pool: list[Candidate]) -> Iterator[tuple[str, float, Wanted]]:
    """What is asked: the target in words, how loose the budget is, and the rest."""
    first, second, third = (f"{model} x1" for model in MODELS)
    for count in COUNTS:
        bounds = {third: max(1, count // 4)}
        target = Wanted(instances=count, budget=UNBOUND, least_of={second: 1}, most_of=bounds)
        yield from _budgets(f"{count} instances", target, _cheapest(pool, target))
    for rate in RATES:
        target = Wanted(rate=rate, budget=UNBOUND, most_of={first: 10})
        yield from _budgets(f"{rate:g} proofs/h", target, Answer(Program(pool, target).solve(), 0).cost)


def _cheapest(pool: list[Candidate], wanted: Wanted) -> int:
    """What so many cost at the least: the rate plays no part when every offer has the same."""
    same = [replace(c, rate=1.0) for c in pool]
    return Answer(choose(same, wanted), 0).cost


def _budgets(target: str, wanted: Wanted, cheapest: int) -> Iterator[tuple[str, float, Wanted]]:
    for loose in BUDGETS:
        yield target, loose, replace(wanted, budget=round(cheapest * loose))


def compare(pool: list[Candidate], target: str, loose: float, wanted: Wanted) -> float:
    """Print one row; how near to the optimum the choice is, 1 being it."""
    ours = timed(lambda: choose(pool, wanted))
    best = timed(Program(pool, wanted).solve)
    if 0 < wanted.rate <= best.rate:
        ratio = best.cost / ours.cost if ours.rate >= wanted.rate else 0.0
        figures = f"{ours.cost / 1e6:9.4f} {best.cost / 1e6:9.4f}  $/h     "
    else:
        ratio = ours.rate / best.rate if wanted.rate > 0 or len(ours.chosen) == len(best.chosen) else 0.0
        figures = f"{ours.rate:9.1f} {best.rate:9.1f}  proofs/h"
    print(f"{target:15} {loose:5.2f} {len(ours.chosen):5} {figures} {ratio:8.4%} {ours.ms:7.0f} {best.ms:8.0f}")
    return ratio


def main() -> int:
    """Ask everything of both; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listing", type=Path, help="offers as vast.ai lists them, in JSON, all taken for rentable")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    if args.listing:
        market = Market.load(args.listing, seed=args.seed, now=NOW, assume_rentable=True)
    else:
        market = Market.generate(Spec(offers=SIZE, models=MODELS), seed=args.seed, now=NOW)
    ratios = []
    for measured in (False, True):
        pool = candidates(market, measured=measured, seed=args.seed)
        print(f"\n{len(pool)} offers of {', '.join(MODELS)}; {'all' if measured else 'none'} measured")
        print("target         budget count    chosen   optimum               ratio      ms ms exact")
        ratios += [compare(pool, *question) for question in questions(pool)]
    print(f"\nworst ratio {min(ratios):.4%} of {len(ratios)}")
    return 0 if min(ratios) >= WITHIN else 1


if __name__ == "__main__":
    sys.exit(main())
