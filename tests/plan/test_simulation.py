"""The planner against a simulated market: many passes of random fleets, with things going wrong, then calm."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controller.model.actions import Destroy, Release, Rent
from controller.model.fleet import Fleet
from controller.model.instance import Phase
from controller.model.reasons import Reason
from controller.plan.facts import Facts
from controller.plan.fleet import Plan
from controller.plan.shrink import target_of, value_of
from tests.plan.conftest import fleet
from tests.plan.simulation import World

VOLUNTARY = {Reason.SURPLUS, Reason.OUTDATED, Reason.BELOW_MIN_RATE, Reason.CONTRACT_ENDING}
TROUBLED_PASSES = 60
CALM_PASSES = 150
QUIET_PASSES = 40


@st.composite
def fleets(draw) -> Fleet:
    """A fleet that the market can hold, by number or rate, with room in the budget or hardly any."""
    count = draw(st.integers(0, 6))
    target = {"instances": count} if draw(st.booleans()) else {"rate": float(55 * count)}
    first = {"gpu": "RTX 4090", "minRate": 50}
    second = {"gpu": "RTX 5090", "minRate": 50}
    if count >= 1 and draw(st.booleans()):
        second["minInstances"] = 1
    surge, unavailable = draw(st.sampled_from([(1, 1), (0, 1), (1, 0), (2, 2)]))
    return fleet(
        target=target,
        budget=draw(st.sampled_from([0.5, 1.0, 2.0, 4.0])),
        shapes=draw(st.sampled_from([(first,), (first, second)])) if "minInstances" not in second else (first, second),
        disruption={
            "maxSurge": surge,
            "maxUnavailable": unavailable,
            "minLifetimeMinutes": draw(st.sampled_from([0, 60])),
        },
    )


def check(world: World, facts: Facts, made: Plan, rents: tuple[Rent, ...]) -> None:
    """What must hold in every pass, whatever went wrong before."""
    counted = sum(i.price for i in facts.instances)
    assert world.billing <= counted, "something bills that is not counted"
    if facts.listing is None:
        assert not rents
        assert all(isinstance(a, Destroy) and a.instance.phase is Phase.DESTROYING for a in made.actions)
    if rents:
        assert counted + sum(r.price for r in rents) <= world.fleet.spec.budget
        assert len({r.offer.machine_id for r in rents}) == len(rents)
    releases = [a for a in made.actions if isinstance(a, Release)]
    going = {release.instance.nonce for release in releases}
    staying = sum(i.nonce not in going for i in (*facts.working, *facts.pending))
    if rents and world.fleet.spec.target.instances is not None:
        assert staying + len(rents) <= most_of(world.fleet)
    check_spared(world.fleet, facts, releases)


def most_of(wanted: Fleet) -> float:
    """The target and its surge, or what the shapes' minimums ask for beside the rest."""
    minimums = sum(shape.min_instances for shape in wanted.spec.shapes)
    return target_of(wanted) + max(wanted.spec.disruption.max_surge, minimums)


def check_spared(wanted: Fleet, facts: Facts, releases: list[Release]) -> None:
    """Nothing that works goes by choice unless the target, less maxUnavailable, is held without it."""
    chosen = [r for r in releases if r.instance.admitted_at is not None and r.reason in VOLUNTARY]
    if not chosen or any(r.reason not in VOLUNTARY for r in releases):
        return  # nothing by choice, or something that had to go was lost in the same pass
    going = {release.instance.nonce for release in releases}
    held = sum(value_of(facts, wanted, i) for i in facts.working if i.nonce not in going)
    surplus = all(r.reason is Reason.SURPLUS for r in chosen)
    slack = (
        0
        if surplus
        else wanted.spec.disruption.max_unavailable * max(value_of(facts, wanted, r.instance) for r in chosen)
    )
    assert held >= target_of(wanted) - slack - 1e-6, f"{going} were not to spare"


def trouble(world: World) -> None:
    """Something that happens to what runs."""
    nonces = sorted(world.existing)
    if nonces and world.luck(0.1):
        world.offline.add(world.chance.choice(nonces))
    if nonces and world.luck(0.05):
        world.existing.discard(world.chance.choice(nonces))
    if nonces and world.luck(0.05):
        nonce = world.chance.choice(nonces)
        world.records[nonce] = replace(world.records[nonce], price=world.records[nonce].price * 5 // 4)
    if world.luck(0.03):
        changed = world.fleet.spec.model_dump(by_alias=True) | {"target": {"instances": world.chance.randint(1, 6)}}
        world.fleet = fleet(
            target=changed["target"],
            budget=world.chance.choice((0.7, 1.5, 3.0)),
            instance={"image": f"example/prover:{world.chance.randint(1, 3)}"},
            disruption=changed["disruption"],
        )


@settings(max_examples=25)
@given(fleets(), st.integers(0, 2**32))
def test_a_fleet_converges_and_stays(wanted, seed):
    """Through lost answers, dead hosts and changed manifests no promise breaks; left in peace, the fleet settles."""
    world = World(wanted, random.Random(seed))
    for _ in range(TROUBLED_PASSES):
        trouble(world)
        facts, made, rents = world.decide()
        check(world, facts, made, rents)
        world.act(made, rents)
    world.calm = True
    world.offline.clear()
    for _ in range(CALM_PASSES):
        facts, made, rents = world.decide()
        check(world, facts, made, rents)
        world.act(made, rents)
    tried: list[int] = []
    for _ in range(QUIET_PASSES):
        facts, made, rents = world.decide()
        world.act(made, rents)
        tried += [r.offer.machine_id for r in rents]
        released = [a for a in made.actions if isinstance(a, Release)]
        assert all(a.reason is Reason.BELOW_MIN_RATE and a.instance.admitted_at is None for a in released), "it flaps"
    assert len(set(tried)) == len(tried), "it rents and gives up by turns"
