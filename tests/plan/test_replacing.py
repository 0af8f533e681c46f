from dataclasses import replace

import pytest

from controller.model.actions import Begin, Release
from controller.model.instance import Backoff, Decision, Phase
from controller.model.market import Listing
from controller.model.reasons import Reason
from controller.plan.fleet import plan, rent
from tests.plan.conftest import (
    BOTH,
    NOW,
    SHAPE,
    candidate,
    facts,
    fleet,
    instance,
    row,
    verdict,
    young,
)

DOUBTED = verdict(Decision.CHALLENGED)
SLOW = verdict(Decision.REJECTED, 30.0, next_run_at=None)
NEW = fleet(instance={"image": "example/prover:1.5"})


def released(planned):
    """Who goes, and why."""
    return [(a.instance.instance_id, a.reason) for a in planned.actions if isinstance(a, Release)]


def four(**values):
    return [instance(n, **values) for n in range(1, 5)]


def judged(*decisions, **values):
    """Four instances with verdicts of these decisions."""
    held = four()
    verdicts = {i.nonce: d for i, d in zip(held, decisions, strict=True)}
    return facts(*held, verdicts=verdicts, **values)


def beside(found, *more):
    """Facts with these instances too."""
    rows = {i.nonce: row(i) for i in more}
    listing = Listing(at=NOW, sightings=(*found.seen.values(), *rows.values()))
    return replace(found, instances=(*found.instances, *more), seen={**found.seen, **rows}, listing=listing)


GOOD = verdict()


def test_too_slow_instances_go_within_max_unavailable():
    """Of three that are too slow one goes at a time, so that at most one is missing."""
    assert len(released(plan(judged(SLOW, SLOW, SLOW, GOOD)))) == 1
    two = fleet(disruption={"maxUnavailable": 2})
    assert len(released(plan(judged(SLOW, SLOW, SLOW, GOOD, fleet=two)))) == 2


def test_below_the_target_what_works_slowly_goes_on_working():
    """When something is missing already, no slow instance is given up on top of it."""
    found = facts(*four()[:3], verdicts={i.nonce: SLOW for i in four()[:3]})
    assert released(plan(found)) == []


def test_without_unavailability_a_successor_comes_first():
    """With maxUnavailable 0 a slow instance stays until the target is met without it."""
    surge = fleet(disruption={"maxUnavailable": 0, "maxSurge": 1})
    planned = plan(judged(SLOW, GOOD, GOOD, GOOD, fleet=surge))
    assert released(planned) == []
    assert planned.wanted.count == 1
    held = [*four(), instance(5)]
    verdicts = {i.nonce: GOOD for i in held} | {held[0].nonce: SLOW}
    assert released(plan(facts(*held, verdicts=verdicts, fleet=surge))) == [(1001, Reason.BELOW_MIN_RATE)]


def test_a_doubted_instance_is_challenged_and_never_just_dropped():
    """A doubtful instance gets a challenger within maxSurge, and goes only when that one holds the target too."""
    planned = plan(judged(DOUBTED, DOUBTED, GOOD, GOOD))
    assert released(planned) == []
    assert planned.wanted.count == 1
    on_its_way = facts(*four(), young(9), verdicts={i.nonce: DOUBTED for i in four()})
    assert plan(on_its_way).wanted.count == 0


def test_of_two_in_doubt_the_likelier_stays():
    """A challenger that is less likely fast enough than the challenged goes itself, though it may be faster."""
    old, new = instance(1), instance(2)
    one = fleet(target={"instances": 1}, disruption={"minLifetimeMinutes": 0})
    likely = verdict(Decision.CHALLENGED, 54.0, p_good=0.92)
    for p_good, gone in ((0.67, 1002), (0.95, 1001)):
        verdicts = {old.nonce: likely, new.nonce: verdict(Decision.CHALLENGED, 57.0, p_good=p_good)}
        assert released(plan(facts(old, new, verdicts=verdicts, fleet=one))) == [(gone, Reason.BELOW_MIN_RATE)]


def test_no_age_protects_a_challenger_that_is_no_better():
    """The shortest life is for what works alone: a challenger in doubt does not outlive a likelier one by its youth."""
    old, new = instance(1), instance(2, created_at=NOW - 1200)
    verdicts = {
        old.nonce: verdict(Decision.CHALLENGED, p_good=0.92),
        new.nonce: verdict(Decision.CHALLENGED, p_good=0.67),
    }
    found = facts(old, new, verdicts=verdicts, fleet=fleet(target={"instances": 1}))
    assert released(plan(found)) == [(1002, Reason.BELOW_MIN_RATE)]
    both_young = replace(found, instances=(replace(old, created_at=NOW - 1300), new))
    assert released(plan(both_young)) == [(1002, Reason.BELOW_MIN_RATE)]


def test_a_successor_on_its_way_is_measured_though_the_doubt_grew_less():
    """What was rented for an instance in doubt is not thrown away unmeasured while any doubt is left."""
    unsure = verdict(Decision.PROBATION)
    for decision, given_up in ((DOUBTED, 0), (unsure, 0), (GOOD, 1)):
        assert len(released(plan(beside(judged(decision, GOOD, GOOD, GOOD), young(9))))) == given_up
    full = fleet(shapes=({"gpu": "RTX 4090", "minRate": 50, "maxInstances": 4},))
    assert released(plan(beside(judged(unsure, GOOD, GOOD, GOOD, fleet=full), young(9)))) == []


def test_no_more_successors_are_measured_than_are_worth_it():
    """One for each in doubt, within maxSurge, and none when the target sank below what works."""
    unsure = verdict(Decision.PROBATION)
    wide = fleet(disruption={"maxSurge": 3})
    assert len(released(plan(beside(judged(unsure, unsure, GOOD, GOOD), young(8), young(9))))) == 1
    assert len(released(plan(beside(judged(unsure, GOOD, GOOD, GOOD, fleet=wide), young(8), young(9))))) == 1
    less = fleet(target={"instances": 3})
    assert 1009 in dict(released(plan(beside(judged(unsure, GOOD, GOOD, GOOD, fleet=less), young(9)))))


def test_two_in_doubt_do_not_replace_each_other_for_ever():
    """A challenger known to be in doubt itself must be plainly likelier fast enough: the likelier of two stays."""
    worst = verdict(Decision.CHALLENGED, 45.0, p_good=0.5)

    def rented(p_good, price=0.3, rate=45.0, number=1):
        found = judged(worst, GOOD, GOOD, GOOD, doubted={(501, SHAPE): p_good})
        return len(rent(found, plan(found), [candidate(number, price, rate)]))

    assert [rented(p_good) for p_good in (0.4, 0.5, 0.59, 0.61)] == [0, 0, 0, 1]
    assert rented(0.4, price=0.1, rate=70.0) == 0  # cheaper and faster, and yet it would be the one to go
    assert rented(0.4, number=2) == 1  # another machine, never measured
    found = judged(worst, GOOD, GOOD, GOOD, doubted={(501, SHAPE): 0.4})
    missing = replace(found, instances=found.instances[1:])
    assert len(rent(missing, plan(missing), [candidate(1, 0.3, 45)])) == 1


def test_what_must_go_anyhow_is_replaced_by_what_is_in_doubt_too():
    """An ending contract's successor may be a machine in doubt, where there is no other: better that than none."""
    ending = [replace(i, ends_at=NOW + 600) if n == 0 else i for n, i in enumerate(four())]
    found = facts(*ending, doubted={(501, SHAPE): 0.4}, fleet=fleet(disruption={"maxUnavailable": 0}))
    assert released(plan(found)) == []
    assert len(rent(found, plan(found), [candidate(1, 0.3, 45)])) == 1


@pytest.mark.parametrize(
    "poor",
    [
        {"credit": 0},
        {
            "backoffs": (
                Backoff(scope="account", key="account", until=NOW + 9, failures=1, reason=Reason.SPEND_LIMITED),
            )
        },
        {"out_of_reach": {SHAPE: "of 9 machines measured, next to none"}},
    ],
)
def test_slow_ones_are_kept_while_nothing_can_be_rented(poor):
    """A slow instance is better than none: it is not given up for a successor that cannot come."""
    assert released(plan(judged(SLOW, GOOD, GOOD, GOOD, **poor))) == []


def test_a_changed_manifest_rolls_one_at_a_time():
    """A new image replaces old instances one by one, once they have had their shortest life."""
    assert [reason for _, reason in released(plan(facts(*four(), fleet=NEW)))] == [Reason.OUTDATED]
    fresh = [replace(i, created_at=NOW - 3599) for i in (*four(), instance(5))]
    assert released(plan(facts(*fresh[:4], fleet=NEW))) == []
    assert plan(facts(*fresh[:4], fleet=NEW)).wanted.count == 1
    assert plan(facts(*fresh, fleet=NEW)).wanted.count == 0  # one is above the target already


def test_what_is_on_its_way_for_an_older_manifest_is_given_up():
    """An instance that is not admitted yet when the manifest changes can never be: it is not paid for any longer."""
    coming = [young(9, phase) for phase in (Phase.LAUNCHING, Phase.PREPARING, Phase.MEASURING)]
    for one in coming:
        planned = plan(facts(one, fleet=NEW))
        assert released(planned) == [(1009, Reason.OUTDATED)]
        assert not any(isinstance(action, Begin) for action in planned.actions)
        assert planned.missing == 4


def test_a_removed_shape_is_replaced_gently():
    """Working instances of a removed shape go one at a time; those on their way go at once."""
    other = fleet(shapes=BOTH[1:])
    found = facts(*four(), young(9), fleet=other)
    assert sorted(released(plan(found))) == [(1001, Reason.OUTDATED), (1009, Reason.OUTDATED)]


def test_a_removed_shape_does_not_block_a_rate_target():
    """With a rate target and the budget full, instances of a removed shape make room for their successors."""
    other = fleet(target={"rate": 240}, budget=1.2, shapes=BOTH[1:])
    assert [reason for _, reason in released(plan(facts(*four(), fleet=other)))] == [Reason.OUTDATED]


def test_a_contract_that_ends_is_replaced_in_time():
    """An instance whose contract ends within two hours is replaced before it does."""
    ending = replace(instance(1), ends_at=NOW + 7199)
    assert released(plan(facts(ending, *four()[1:]))) == [(1001, Reason.CONTRACT_ENDING)]
    assert released(plan(facts(replace(ending, ends_at=NOW + 7200), *four()[1:]))) == []
