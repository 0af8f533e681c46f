import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.actions import Note, Release
from controller.model.instance import Backoff, Decision, Phase
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan import backoffs
from controller.plan.backoffs import extended, key_of
from controller.plan.fleet import plan, rent
from tests.plan.conftest import (
    BOTH,
    NOW,
    OTHER_SHAPE,
    SHAPE,
    candidate,
    facts,
    fleet,
    instance,
    later,
    verdict,
    young,
)


def released(planned):
    """Who goes, and why."""
    return [(a.instance.instance_id, a.reason) for a in planned.actions if isinstance(a, Release)]


def four(**values):
    return [instance(n, **values) for n in range(1, 5)]


def test_a_fleet_that_is_as_it_should_be_is_left_alone():
    """At its target, in its budget and measured, a fleet gets no action, now or an hour later."""
    for at in (facts(*four()), later(facts(*four()), 3600)):
        assert plan(at).actions == ()
        assert plan(at).missing == 0


@pytest.mark.parametrize(("held", "pending", "missing"), [(0, 0, 4), (2, 0, 2), (2, 1, 1), (3, 1, 0), (4, 0, 0)])
def test_what_is_missing_is_what_is_neither_held_nor_on_its_way(held, pending, missing):
    """What works and what is on its way counts towards the target; only the rest is rented."""
    found = facts(*four()[:held], *(young(9 + n) for n in range(pending)))
    assert plan(found).missing == missing
    assert plan(found).wanted.count == missing


def test_an_unclear_create_counts_as_on_its_way():
    """While a lost create may still turn up, nothing is rented in its place."""
    found = facts(*four()[:3], young(9, Phase.UNCLEAR))
    assert plan(found).missing == 0


def test_the_budget_left_is_after_everything_that_may_bill():
    """Running, loading, unclear and destroyed-but-not-proven-gone instances all keep their share of the budget."""
    found = facts(
        instance(1),
        young(2),
        young(3, Phase.UNCLEAR),
        young(4, Phase.DESTROYING, destroy_calls=1),
        fleet=fleet(budget=2),
    )
    assert plan(found).wanted.budget == micro(2 - 4 * 0.3)


def test_nothing_is_rented_blind():
    """Without a listing, without a manifest, or while deleting, nothing is wanted and nobody goes."""
    for blind in ({"listing": None}, {"fleet": None}):
        planned = plan(facts(instance(1), **blind))
        assert (planned.actions, planned.wanted.count, planned.missing) == ((), 0, 0)
    assert plan(facts(deleting=True)).wanted.count == 0


BLOCKS = [
    ({"fleet": fleet(suspend=True)}, Reason.SUSPENDED),
    ({"credit": micro(0.99)}, Reason.CREDIT_EXHAUSTED),
    ({"credit": 0}, Reason.CREDIT_EXHAUSTED),
    ({"credit": -micro(5)}, Reason.CREDIT_EXHAUSTED),
    ({"credit": micro(3), "spend": micro(3.01)}, Reason.CREDIT_EXHAUSTED),
    ({"fleet": fleet(budget=0.3)}, Reason.BUDGET_EXHAUSTED),
    (
        {"backoffs": (Backoff(scope="account", key="account", until=NOW + 1, failures=1, reason=Reason.RATE_LIMITED),)},
        Reason.RATE_LIMITED,
    ),
    ({"backoffs": (Backoff(scope="account", key="account", until=NOW, failures=1, reason=Reason.RATE_LIMITED),)}, None),
    ({"credit": None}, None),
    ({}, None),
]


@pytest.mark.parametrize(("given", "reason"), BLOCKS)
def test_why_nothing_is_rented(given, reason):
    """Suspension, empty accounts, spent budgets and back-offs stop renting, and are told apart."""
    planned = plan(facts(instance(1), **given))
    assert planned.blocked is reason
    assert (planned.wanted.count == 0) is (reason is not None)


def test_an_unknown_price_is_not_free():
    """While an instance's price is not known, nothing is rented beside it: it may take all of the budget."""
    planned = plan(facts(instance(1, price=0)))
    assert planned.blocked is Reason.BUDGET_EXHAUSTED
    assert planned.wanted.count == 0


def test_over_budget_the_least_valuable_go_first():
    """A cut budget costs what is not admitted yet, then the worst rate per dollar, and no more than it must."""
    held = [instance(n, price=micro(price)) for n, price in ((1, 0.3), (2, 0.5), (3, 0.4))]
    coming = young(9)
    assert released(plan(facts(*held, coming, fleet=fleet(budget=1.5)))) == []
    assert released(plan(facts(*held, coming, fleet=fleet(budget=1.4)))) == [(1009, Reason.OVER_BUDGET)]
    cut = plan(facts(*held, coming, fleet=fleet(budget=0.9)))
    assert released(cut) == [(1009, Reason.OVER_BUDGET), (1002, Reason.OVER_BUDGET)]


def test_what_is_leaving_is_not_cut_for_again():
    """An instance that is being destroyed frees its share by itself: nobody else goes for it."""
    found = facts(*four()[:3], young(9, Phase.DESTROYING, destroy_calls=1), fleet=fleet(budget=0.9))
    assert released(plan(found)) == []


def test_a_cent_over_the_budget_costs_one_instance_and_does_not_flap():
    """Ten at $0.1999 that rise to $0.2003 under $2.00 cost one instance, and it is not rented again."""
    wanted = fleet(target={"instances": 10}, budget=2.0)
    ten = [instance(n, price=micro(0.2003)) for n in range(1, 11)]
    first = plan(facts(*ten, fleet=wanted))
    assert [reason for _, reason in released(first)] == [Reason.OVER_BUDGET]
    left = facts(*ten[:9], fleet=wanted)
    planned = plan(left)
    assert released(planned) == []
    assert rent(left, planned, [candidate(1, 0.1999)]) == ()


def test_suspension_stops_everything_but_the_budget():
    """A suspended fleet keeps its surplus and its outdated instances, and still does not exceed its budget."""
    still = fleet(target={"instances": 1}, suspend=True, shapes=BOTH[1:])
    assert plan(facts(*four(), young(9, Phase.PREPARING), fleet=still)).actions == ()
    assert len(released(plan(facts(*four(), fleet=fleet(suspend=True, budget=0.9))))) == 1


# more than the target


def test_a_surplus_is_given_up_from_the_bottom():
    """Above the target what is on its way goes first, then the worst rate per dollar."""
    held = [instance(n, price=micro(price)) for n, price in ((1, 0.3), (2, 0.5), (3, 0.4))]
    found = facts(*held, young(9), fleet=fleet(target={"instances": 2}))
    assert released(plan(found)) == [(1009, Reason.SURPLUS), (1002, Reason.SURPLUS)]


def test_nothing_that_works_goes_for_something_that_may_never():
    """A working instance is no surplus because another is on its way: that one may turn out slow."""
    mixed = fleet(target={"instances": 4}, shapes=({"gpu": "RTX 4090", "minRate": 50}, BOTH[1] | {"minInstances": 1}))
    coming = young(9, shape=OTHER_SHAPE, gpu="RTX 5090")
    assert released(plan(facts(*four(), coming, fleet=mixed))) == []
    there = instance(9, shape=OTHER_SHAPE, gpu="RTX 5090")
    assert len(released(plan(facts(*four(), there, fleet=mixed)))) == 1


def test_a_shape_above_its_maximum_goes_down_to_it():
    """A shape's maxInstances is kept even where the target is not met."""
    low = fleet(shapes=({"gpu": "RTX 4090", "minRate": 50, "maxInstances": 3},))
    planned = plan(facts(*four(), fleet=low))
    assert [reason for _, reason in released(planned)] == [Reason.SURPLUS]
    assert plan(facts(*four()[:3], fleet=low)).wanted.most_of == {SHAPE: 0}


def test_a_shape_at_its_minimum_is_kept_whatever_it_does():
    """A shape's minInstances are held even where they are the worst value."""
    mixed = fleet(
        target={"instances": 3},
        shapes=({"gpu": "RTX 4090", "minRate": 50}, {"gpu": "RTX 5090", "minRate": 80, "minInstances": 1}),
    )
    dear = instance(9, shape=OTHER_SHAPE, price=micro(2))
    assert 1009 not in [who for who, _ in released(plan(facts(*four(), dear, fleet=mixed)))]


def test_a_missing_minimum_is_rented_though_the_target_is_met():
    """When a shape lacks its minimum, that shape is rented and no other, and only as many as lack."""
    mixed = fleet(shapes=(BOTH[0], BOTH[1] | {"minInstances": 2}))
    found = facts(*four(), fleet=mixed)
    planned = plan(found)
    assert rent(found, planned, [candidate(1, 0.1)]) == ()
    rented = rent(found, planned, [candidate(1, 0.1), *(candidate(n, 0.5, 90, OTHER_SHAPE) for n in (2, 3, 4))])
    assert [r.shape for r in rented] == [OTHER_SHAPE] * 2


# rates


def test_a_rate_target_does_not_flap_around_an_instance():
    """A rate that hovers about the target by a percent neither gives up an instance nor, having it, misses one."""
    wanted = fleet(target={"rate": 180})
    for wobble in (0.99, 1.0, 1.01):
        held = [instance(n) for n in range(1, 5)]
        found = facts(*held, verdicts={i.nonce: verdict(rate=60 * wobble) for i in held}, fleet=wanted)
        assert released(plan(found)) == []


def test_a_rate_target_gives_up_what_it_clearly_does_not_need():
    """Twice the rate that is asked for is a surplus."""
    found = facts(*four(), fleet=fleet(target={"rate": 100}))
    assert len(released(plan(found))) == 2


def test_a_rate_target_rents_the_cheapest_that_reaches_it():
    """What a rate target lacks is filled at the least cost, and what is on its way counts as is expected."""
    found = facts(instance(1), young(2), fleet=fleet(target={"rate": 170}))
    planned = plan(found)
    assert planned.missing == pytest.approx(50)
    assert [
        r.offer.id for r in rent(found, planned, [candidate(1, 0.5, 70), candidate(2, 0.4, 60), candidate(3, 0.2, 40)])
    ] == [2]


# one at a time


def test_one_instance_a_machine_unless_nothing_else_is_left():
    """An offer on a machine that we are on already is taken only when there is no other."""
    found = facts(machines_in_use=frozenset({501}))
    planned = plan(found)
    assert [r.offer.id for r in rent(found, planned, [candidate(1, 0.1), candidate(2, 0.5)])] == [2]
    assert [r.offer.id for r in rent(found, planned, [candidate(1, 0.1)])] == [1]


@pytest.mark.parametrize("target", [{"instances": 1}, {"rate": 50}])
def test_a_preferred_machine_that_is_in_use_is_preferred_no_more(target):
    """The rest of a preferred machine that we are on is taken after all that is apart, and like what is in use too."""
    taken, other = replace(candidate(1, 0.3, 60), preferred=True), candidate(2, 0.2, 65)

    def rented(*in_use):
        found = facts(fleet=fleet(target=target), machines_in_use=frozenset(in_use))
        return [r.offer.id for r in rent(found, plan(found), [taken, other])]

    assert rented() == [1]
    assert rented(501) == [2]
    assert rented(501, 502) == [2]
    assert rented(502) == [1]


def test_rechecks_take_turns():
    """However many re-checks are due, as many as maxUnavailable allows are made at a time."""
    overdue = {i.nonce: verdict(next_run_at=0.0) for i in four()}
    planned = plan(facts(*four(), verdicts=overdue))
    assert [a.reason for a in planned.actions if isinstance(a, Note)] == [Reason.RECHECK_DUE]
    busy = [replace(four()[0], phase=Phase.MEASURING, phase_since=NOW), *four()[1:]]
    planned = plan(facts(*busy, verdicts=overdue))
    assert not [a for a in planned.actions if isinstance(a, Note)]


def test_failures_of_one_pass_all_count():
    """Four instances that fail in the same pass are four failures of their shape, not one."""
    failed = [young(n, Phase.PREPARING, failures=3, reason=Reason.PREPARE_FAILED) for n in range(1, 5)]
    blocks = [
        b for a in plan(facts(*failed)).actions if isinstance(a, Release) for b in a.backoffs if b.scope == "shape"
    ]
    assert max(b.failures for b in blocks) == 4
    assert plan(facts(*failed)).blocked is Reason.PREPARE_FAILED


def test_a_shape_that_keeps_failing_is_tried_one_at_a_time():
    """After three failures without a success a shape is tried with a single instance, not with all that are missing."""
    key = key_of("provers", SHAPE, fleet().spec.workload())
    failures: tuple[Backoff, ...] = ()
    for _ in range(3):
        failures = (
            extended(failures, "shape", key, backoffs.SHAPE, reason=Reason.PREPARE_FAILED, detail="", now=NOW - 9999),
        )
    found = facts(backoffs=failures)
    planned = plan(found)
    assert len(rent(found, planned, [candidate(n) for n in range(1, 9)])) == 1


HOSTILE = st.one_of(st.floats(), st.sampled_from([float("nan"), float("inf"), -float("inf"), 0.0, 1e300]))
TARGETS = st.sampled_from([{"instances": 4}, {"instances": 5}, {"rate": 180}, {"rate": 1e15}, {"rate": 0}])


@given(st.lists(HOSTILE, min_size=4, max_size=4), st.sampled_from(list(Decision)), TARGETS)
def test_hostile_rates_neither_overspend_nor_empty_the_fleet(rates, decision, target):
    """Whatever rates are believed, the budget holds, and a rate that is no number gives nothing up."""
    held = four()
    verdicts = {i.nonce: verdict(decision, rate) for i, rate in zip(held, rates, strict=True)}
    found = facts(*held, verdicts=verdicts, fleet=fleet(target=target, budget=2.0))
    planned = plan(found)
    rented = rent(found, planned, [candidate(n, 0.25) for n in range(1, 9)])
    assert sum(r.price for r in rented) <= micro(2.0 - 4 * 0.3)
    if "rate" in target and any(math.isnan(rate) for rate in rates):
        assert released(planned) == []
    if "instances" in target:
        assert len(released(planned)) <= 1
