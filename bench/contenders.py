"""What is compared: rules that give verdicts in the place of the judge, and the judge itself in its several modes."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median

from bench.executor import HOUR_S, SHAPE, Executor, Judge, Place
from bench.score import DAY, SLOTS, WEEK, Record
from bench.world import FLOOR, Machine, Nature
from controller.judge.assumptions import DEFAULTS, Assumptions
from controller.loop import evidence
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance, Run, Verdict

CHOSEN = 64.0  # the rate below which the bound turns even good machines down
LAST, ENOUGH = 3, 2  # of so many runs, how many must agree


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What a simple rule finds; see `Findings`."""

    verdicts: dict[str, Verdict]
    expected: dict[Place, float]
    typical: dict[str, float]
    slow: frozenset[Place] = frozenset()
    doubted: dict[Place, float] = field(default_factory=dict)
    out_of_reach: dict[str, str] = field(default_factory=dict)
    suspect: None = None


Rule = Callable[[Machine, Sequence[float], Sequence[float]], Decision]  # of its rates ever, and in this rental


@dataclass(frozen=True, slots=True, kw_only=True)
class ByRule:
    """A judge that goes by a simple rule.

    `standard`: what is expected of a machine never measured. `rate_of`: of one whose rates are given.
    """

    machines: dict[int, Machine]
    rule: Rule
    rate_of: Callable[[Machine, Sequence[float]], float]
    standard: float = FLOOR
    again: float = math.inf  # hours from a run to the next

    def __call__(self, fleet: Fleet, instances: Sequence[Instance], runs: Sequence[Run], *, now: float) -> Said:
        """Verdicts by the rule; what it turned down is rented again when nothing new is left."""
        del fleet, now
        ever: defaultdict[int, list[float]] = defaultdict(list)
        own: defaultdict[str, list[float]] = defaultdict(list)
        last: dict[str, float] = {}
        for run in runs:
            if run.rate is not None:
                ever[run.machine_id].append(run.rate)
                own[run.nonce].append(run.rate)
                last[run.nonce] = run.ended_at
        expected = {(m, SHAPE): self.rate_of(self.machines[m], rates) for m, rates in ever.items()}
        verdicts = {}
        for i in instances:
            if not i.billable:
                continue
            rates = own[i.nonce]
            said = self.rule(self.machines[i.machine_id], ever[i.machine_id], rates) if rates else Decision.UNKNOWN
            rate = expected.get((i.machine_id, SHAPE))
            at = last.get(i.nonce, 0.0) + self.again * HOUR_S
            verdicts[i.nonce] = Verdict(decision=said, rate=rate, runs=len(rates), next_run_at=at, line=said.value)
        return Said(verdicts=verdicts, expected=expected, typical={SHAPE: self.standard})


def keep_highest(_machine: Machine, ever: Sequence[float], _own: Sequence[float]) -> Decision:
    """By the highest rate ever seen."""
    return Decision.ACCEPTED if max(ever) >= FLOOR else Decision.REJECTED


def two_of_three(_machine: Machine, _ever: Sequence[float], own: Sequence[float]) -> Decision:
    """By the median of its last three runs, the first of them in a row, as soon as it is known."""
    seen = own[-LAST:]
    made = sum(rate >= FLOOR for rate in seen)
    if made >= ENOUGH:
        return Decision.ACCEPTED
    return Decision.REJECTED if len(seen) - made >= ENOUGH else Decision.UNKNOWN


def anything(_machine: Machine, _ever: Sequence[float], _own: Sequence[float]) -> Decision:
    """Whatever was rented."""
    return Decision.ACCEPTED


def knows(standard: float) -> Rule:
    """By the true rate, once there was a run."""
    return lambda machine, _ever, _own: Decision.ACCEPTED if machine.rate >= standard else Decision.REJECTED


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One way to hold a fleet. `rule` None: the judge's own."""

    name: str
    rule: Rule | None = None
    rate_of: Callable[[Machine, Sequence[float]], float] = field(default=lambda _, rates: max(rates))
    standard: float = FLOOR
    again: float = math.inf
    reads: bool = False
    assumptions: Assumptions = DEFAULTS
    judgement: dict[str, float] = field(default_factory=dict)

    def executor(self, machines: list[Machine], slots: int = SLOTS) -> Executor:
        """So many slots on a market, at the beginning."""
        judge: Judge = partial(evidence.weigh, assumptions=self.assumptions)
        if self.rule is not None:
            judge = ByRule(
                machines={machine.id: machine for machine in machines},
                rule=self.rule,
                rate_of=self.rate_of,
                standard=self.standard,
                again=self.again,
            )
        return Executor(fleet(slots, self), machines, judge)

    def play(self, machines: list[Machine]) -> Record:
        """A week of all slots on a market."""
        return self.executor(machines).play(WEEK)


def fleet(slots: int, contender: Contender) -> Fleet:
    """So many instances of one shape, money no object, and successors whenever they are wanted."""
    spec = {
        "target": {"instances": slots},
        "budgetPerHour": 100,
        "shapes": ({"gpu": "RTX 4090", "minRate": FLOOR},),
        "require": {"reliability": 0, "verified": False, "remainingHours": 0},
        "instance": {"image": "example/prover"},
        "benchmark": {"command": "bench", "production": {"command": "rate"} if contender.reads else {}},
        "judgement": contender.judgement,
        "disruption": {"maxSurge": slots, "maxUnavailable": slots, "minLifetimeMinutes": 0},
    }
    made = {"apiVersion": "vastfleet.io/v1alpha1", "kind": "Fleet", "metadata": {"name": "bench"}, "spec": spec}
    return Fleet.model_validate(made)


def _truth(machine: Machine, _rates: Sequence[float]) -> float:
    return machine.rate


ORACLE = Contender(name="oracle after one exact run", rule=knows(FLOOR), rate_of=_truth)
OURS = Contender(name="ours")
READING = Contender(name="ours, with production", reads=True)
HIGHEST = Contender(name="one run, keep highest", rule=keep_highest)
CONTENDERS = (
    Contender(name="no screening", rule=anything),
    HIGHEST,
    Contender(name="2 of 3 runs", rule=two_of_three, rate_of=lambda _, rates: median(rates), again=DAY),
    OURS,
    READING,
    Contender(name="ours, 0.65 / 0.90", judgement={"replaceBelow": 0.65, "acceptAbove": 0.90}),
    ORACLE,
    Contender(name="bound: exact, 64 and up", rule=knows(CHOSEN), rate_of=_truth, standard=CHOSEN),
)
BY_NAME = {contender.name: contender for contender in CONTENDERS}


def told(nature: Nature) -> Contender:
    """Ours, with assumptions that are just so."""
    assumptions = replace(
        DEFAULTS,
        mean=math.log(nature.mean / FLOOR),
        sd=nature.machine_cv,
        session_sd=nature.session_cv,
        session_seconds=nature.session_hours * HOUR_S,
        disturbed=nature.disturbed,
        drop=nature.drop,
        least_error=nature.noise,
    )
    return replace(OURS, name="told", assumptions=assumptions)
