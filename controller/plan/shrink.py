"""Whom a fleet gives up: over budget, astray, above the target, or to be replaced. Called by `fleet.py`.

Order in which instances are given up, whatever the cause: those not admitted yet, then by rate per dollar, worst first,
then the youngest.
"""

import math
from collections import Counter
from collections.abc import Iterable

from controller.model.actions import Release
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance
from controller.model.money import dollars
from controller.model.reasons import Reason
from controller.plan.facts import Facts
from controller.plan.windows import open_now

MARGIN = 0.05  # of a rate target: so much more than it is borne with before an instance goes
OUTDATED = "the manifest asks for another shape or workload now"


def value_of(facts: Facts, fleet: Fleet, instance: Instance) -> float:
    """What an instance adds towards the target: itself, or its rate."""
    return 1.0 if fleet.spec.target.instances is not None else facts.rate_of(instance)


def target_of(fleet: Fleet) -> float:
    """The target: instances, or a rate in the benchmark's unit."""
    target = fleet.spec.target
    return float(target.instances if target.instances is not None else target.rate or 0.0)


def staying(facts: Facts, going: set[str]) -> list[Instance]:
    """What counts or may come to count, without those that are about to go."""
    return [i for i in (*facts.working, *facts.pending) if i.nonce not in going]


def _least_valuable_first(facts: Facts, instances: Iterable[Instance]) -> list[Instance]:
    def key(instance: Instance) -> tuple[bool, float, float, str]:
        per_dollar = facts.rate_of(instance) / max(instance.price, 1)
        return instance.admitted_at is not None, per_dollar, -instance.created_at, instance.nonce

    return sorted(instances, key=key)


def over_budget(facts: Facts, fleet: Fleet, going: set[str]) -> list[Release]:
    """Give up until what stays is within the budget: what leaves already frees its share when it is gone."""
    stay = staying(facts, going)
    excess = sum(i.price for i in stay) - fleet.spec.budget
    releases = []
    for instance in _least_valuable_first(facts, (i for i in stay if i.instance_id is not None)):
        if excess <= 0:
            break
        why = f"{dollars(excess)}/h over the budget of {dollars(fleet.spec.budget)}/h"
        releases.append(Release(instance=instance, reason=Reason.OVER_BUDGET, why=why))
        excess -= instance.price
    return releases


def astray(facts: Facts, _fleet: Fleet, going: set[str]) -> list[Release]:
    """Instances on their way up for an older manifest: no run of theirs can admit them any more."""
    lost = (i for i in facts.pending if i.nonce not in going and i.instance_id is not None and facts.outdated(i))
    return [Release(instance=i, reason=Reason.OUTDATED, why=OUTDATED) for i in lost]


def surplus(facts: Facts, fleet: Fleet, going: set[str]) -> list[Release]:
    """Give up what the target and the shapes' bounds do not need.

    A rate target bears with a little too much: rates wander, and what is given up today would be missed tomorrow.
    """
    doomed = doomed_of(facts, going)
    tried = _to_be_compared(facts, fleet, {*going, *doomed})
    stay = [i for i in staying(facts, going) if i.nonce not in tried]
    margin = 0.0 if fleet.spec.target.instances is not None else MARGIN * target_of(fleet)
    bounds = {shape.key: shape for shape in fleet.spec.shapes}
    counts = Counter(i.shape for i in stay if i.nonce not in doomed)  # a successor may be held beside the doomed
    excess = sum(value_of(facts, fleet, i) for i in stay if i.nonce not in doomed) - target_of(fleet) - margin
    spare = sum(value_of(facts, fleet, i) for i in stay if i.admitted_at is not None) - target_of(fleet) - margin
    releases: list[Release] = []
    for instance in _least_valuable_first(
        facts, (i for i in stay if i.instance_id is not None and i.nonce not in doomed)
    ):
        shape = bounds.get(instance.shape)
        if shape is None:
            continue
        value = value_of(facts, fleet, instance)
        above = shape.max_instances is not None and counts[instance.shape] > shape.max_instances
        room = excess if instance.admitted_at is None else min(excess, spare)  # what is on its way may never work
        unneeded = value <= room + 1e-9 and counts[instance.shape] > shape.min_instances
        if above or unneeded:
            counts[instance.shape] -= 1
            excess -= value
            spare -= value if instance.admitted_at is not None else 0.0
            why = "above its shape's maxInstances" if above else "the target is met without it"
            releases.append(Release(instance=instance, reason=Reason.SURPLUS, why=why))
    return releases


def _to_be_compared(facts: Facts, fleet: Fleet, but: set[str]) -> set[str]:
    """Successors on their way that are measured though the doubt they were rented for grew less: they may be better.

    One for each instance in doubt, within maxSurge; none where more than the target is held without what goes.
    """
    working = [i for i in facts.working if i.nonce not in but]
    if sum(value_of(facts, fleet, i) for i in working) > target_of(fleet) + 1e-9:
        return set()
    doubts = sum(facts.decision(i) is Decision.PROBATION for i in working)
    coming = _least_valuable_first(facts, (i for i in facts.pending if i.nonce not in but))
    return {i.nonce for i in coming[::-1][: min(doubts, fleet.spec.disruption.max_surge)]}


def doomed_of(facts: Facts, going: set[str]) -> dict[str, tuple[Reason, str]]:
    """Working instances that are to be replaced, and why.

    Outside the manifest's windows, what may wait for them waits. While something that all machines share is suspected
    of making them slow, none is replaced for that: the next would be as slow.
    """
    open_ = facts.fleet is None or open_now(facts.fleet.spec.disruption.windows, facts.now)
    doomed: dict[str, tuple[Reason, str]] = {}
    for instance in facts.working:
        sentence = _sentence(facts, instance)
        if instance.nonce in going or sentence is None:
            continue
        spared = facts.suspect is not None and sentence[0] in {Reason.BELOW_MIN_RATE, Reason.OUTDATED}
        if not spared and (open_ or not voluntary(facts, instance, sentence[0])):
            doomed[instance.nonce] = sentence
    return doomed


def voluntary(facts: Facts, instance: Instance, reason: Reason) -> bool:
    """Whether an instance could as well work on for a while."""
    challenged = facts.decision(instance) is Decision.CHALLENGED and reason is Reason.BELOW_MIN_RATE
    return challenged or reason in {Reason.OUTDATED, Reason.AVOIDED}


def _sentence(facts: Facts, instance: Instance) -> tuple[Reason, str] | None:
    """Why an instance is to be replaced; what cannot wait comes before what can."""
    most, decision = facts.most_for(instance), facts.decision(instance)
    verdict = facts.verdicts.get(instance.nonce)
    slow = verdict.line if verdict is not None else ""
    avoided = facts.avoided(instance.machine_id)
    left = instance.ends_at - facts.now if instance.ends_at is not None else math.inf
    sentences = (
        (
            left < facts.limits.contract_end,
            Reason.CONTRACT_ENDING,
            f"its contract ends in {max(0.0, left) / 60:.0f} min",
        ),
        (
            most is not None and instance.price > most,
            Reason.PRICE_INCREASED,
            f"costs {dollars(instance.price)}/h, {dollars(most or 0)}/h at most are wanted",
        ),
        (decision is Decision.REJECTED and facts.suspect is None, Reason.BELOW_MIN_RATE, slow),
        (facts.outdated(instance), Reason.OUTDATED, OUTDATED),
        (
            avoided is not None,
            Reason.AVOIDED,
            f"the manifest says to avoid machine {instance.machine_id}: {avoided}",
        ),
        (decision in {Decision.CHALLENGED, Decision.REJECTED}, Reason.BELOW_MIN_RATE, slow),
    )
    return next(((reason, why) for holds, reason, why in sentences if holds), None)


def replaced(facts: Facts, fleet: Fleet, going: set[str], *, doomed: dict[str, tuple[Reason, str]]) -> list[Release]:
    """Give up doomed instances while the target, less maxUnavailable, is still met without them.

    While nothing can be rented, what works badly works: then only what the target does not need goes.
    """
    disruption = fleet.spec.disruption
    working = [i for i in facts.working if i.nonce not in going]
    held = sum(value_of(facts, fleet, i) for i in working)
    releases: list[Release] = []
    order = _least_valuable_first(facts, (i for i in working if i.nonce in doomed))
    doubted = sorted((i for i in order if doomed[i.nonce][0] is Reason.BELOW_MIN_RATE), key=lambda i: i.created_at)
    newcomers = doubted[1:]  # of several in doubt, those that came later were to be better: no age protects them
    for instance in sorted(order, key=lambda i: hope_of(facts, i, doomed[i.nonce][0])):
        reason, why = doomed[instance.nonce]
        value = value_of(facts, fleet, instance)
        hopeless = facts.held_off is not None or instance.shape in facts.out_of_reach
        bound = facts.decision(instance) is Decision.CHALLENGED or hopeless
        slack = 0.0 if bound else disruption.max_unavailable * value
        young = facts.now - instance.created_at < disruption.min_lifetime_minutes * 60 and instance not in newcomers
        spared = held - value >= target_of(fleet) - slack - 1e-9
        if (young and voluntary(facts, instance, reason)) or not spared:
            continue
        held -= value
        evidence = why.partition("; next:")[0]  # what was next for it is so no longer
        releases.append(Release(instance=instance, reason=reason, why=evidence))
    return releases


def hope_of(facts: Facts, instance: Instance, reason: Reason) -> float:
    """P(fast enough) of what may be too slow: of two in doubt the likelier stays. What must go anyhow has none."""
    verdict = facts.verdicts.get(instance.nonce)
    return 0.0 if verdict is None or reason is not Reason.BELOW_MIN_RATE else verdict.p_good or 0.0
