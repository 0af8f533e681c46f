from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.market import Offer
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.offers import sift
from tests.plan.conftest import NOW, fleet

REQUIRE = {
    "reliability": 0.97,
    "verified": True,
    "ramGiB": 128,
    "diskGiB": 250,
    "cuda": "12.4",
    "downMbps": 300,
    "wholeMachine": True,
    "remainingHours": 72,
}
STRICT = fleet(
    budget=3.2,
    regions=("NO", "SE"),
    require=REQUIRE,
    shapes=({"gpu": "RTX 4090", "minRate": 50, "maxPricePerHour": 0.6},),
).spec
FIT = Offer(
    id=1,
    machine_id=2,
    gpu="RTX 4090",
    gpu_count=1,
    price=micro(0.6),
    gpu_fraction=1.0,
    ram_gib=128.0,
    disk_gib=250.0,
    down_mbps=300.0,
    reliability=0.97,
    verified=True,
    country="NO",
    cuda=12.4,
    remaining_seconds=72 * 3600.0,
)


def fell(offer, spec=STRICT, blocked=None, now=NOW):
    """At which step an offer fell, None if it is kept."""
    sifted = sift([offer], spec=spec, shape=spec.shapes[0], now=now, blocked=lambda _: blocked)
    assert len(sifted.offers) + sum(sifted.rejected.values()) == 1
    return next(iter(sifted.rejected), None)


def test_an_offer_that_just_meets_everything_is_kept():
    """At each bound exactly, an offer fits."""
    assert fell(FIT) is None


STEPS = [
    ({"gpu": "RTX 4090D"}, Reason.WRONG_GPU),
    ({"gpu_count": 2}, Reason.WRONG_GPU),
    ({"rentable": False}, Reason.NOT_RENTABLE),
    ({"country": "DK"}, Reason.REGION),
    ({"country": None}, Reason.REGION),
    ({"verified": False}, Reason.UNVERIFIED),
    ({"verified": None}, Reason.UNVERIFIED),
    ({"reliability": 0.969}, Reason.RELIABILITY),
    ({"reliability": None}, Reason.RELIABILITY),
    ({"reliability": float("nan")}, Reason.RELIABILITY),
    ({"ram_gib": 127.9}, Reason.MEMORY),
    ({"ram_gib": None}, Reason.MEMORY),
    ({"disk_gib": 249.9}, Reason.DISK),
    ({"disk_gib": None}, Reason.DISK),
    ({"cuda": 12.3}, Reason.CUDA),
    ({"cuda": None}, Reason.CUDA),
    ({"down_mbps": 299.0}, Reason.NETWORK),
    ({"down_mbps": None}, Reason.NETWORK),
    ({"down_mbps": float("nan")}, Reason.NETWORK),
    ({"gpu_fraction": 0.5}, Reason.PARTIAL_MACHINE),
    ({"gpu_fraction": None}, Reason.PARTIAL_MACHINE),
    ({"remaining_seconds": 72 * 3600.0 - 1}, Reason.REMAINING_TIME),
    ({"remaining_seconds": None}, Reason.REMAINING_TIME),
    ({"remaining_seconds": float("-inf")}, Reason.REMAINING_TIME),
    ({"price": micro(0.6) + 1}, Reason.PRICE),
    ({"price": 0}, Reason.PRICE),
    ({"price": -1}, Reason.PRICE),
]


@pytest.mark.parametrize(("change", "reason"), STEPS)
def test_each_step_of_the_funnel(change, reason):
    """One thing wrong, or unknown, turns an offer away, and is named."""
    assert fell(replace(FIT, **change)) is reason


def test_an_offer_is_charged_to_the_first_step_that_it_fails():
    """The counts read as a funnel: an offer of another GPU is not counted again for its price."""
    assert fell(replace(FIT, gpu="H100 SXM", price=micro(9), country=None)) is Reason.WRONG_GPU


def test_experience_is_asked_last():
    """What our own experience holds against an offer counts only where the market's own words do not."""
    assert fell(FIT, blocked=Reason.KNOWN_SLOW) is Reason.KNOWN_SLOW
    assert fell(replace(FIT, cuda=None), blocked=Reason.KNOWN_SLOW) is Reason.CUDA


def test_a_machine_is_avoided_until_the_pin_expires():
    """Offers of a machine that the manifest avoids are turned away to the last second, and of no other machine."""
    pins = {"avoid": ({"id": 2, "reason": "disk errors", "until": "2027-01-31"},)}
    spec = fleet(machines=pins).spec
    expiry = spec.machines.avoid[0].expires_at
    assert fell(FIT, spec, now=expiry - 1) is Reason.AVOIDED
    assert fell(FIT, spec, now=expiry) is None
    assert fell(replace(FIT, machine_id=3), spec, now=expiry - 1) is None
    assert fell(replace(FIT, gpu="H100 SXM"), spec, now=expiry - 1) is Reason.WRONG_GPU


def test_a_preferred_machine_must_meet_every_condition():
    """To be preferred spares an offer no condition, and none of our experience."""
    spec = fleet(require={"ramGiB": 256}, machines={"prefer": ({"id": 2, "reason": "fast"},)}).spec
    assert fell(FIT, spec) is Reason.MEMORY
    assert fell(replace(FIT, ram_gib=256.0), spec, blocked=Reason.KNOWN_SLOW) is Reason.KNOWN_SLOW


def test_without_a_cap_of_its_own_a_shape_is_capped_by_the_budget():
    """An offer dearer than the whole budget never fits, whatever the shape says."""
    loose = fleet(budget=0.5).spec
    high = fleet(budget=0.5, shapes=({"gpu": "RTX 4090", "minRate": 50, "maxPricePerHour": 9.0},)).spec
    for spec in (loose, high):
        assert fell(replace(FIT, price=micro(0.5)), spec) is None
        assert fell(replace(FIT, price=micro(0.5) + 1), spec) is Reason.BUDGET_EXHAUSTED


def test_what_is_not_asked_for_may_be_unknown():
    """A manifest without conditions takes an offer that says nothing beyond its GPU and price."""
    assert fell(Offer(id=1, machine_id=2, gpu="RTX 4090", gpu_count=1, price=1, disk_gib=50), fleet().spec) is None


NUMBERS = st.one_of(st.none(), st.floats())


@given(st.builds(replace, st.just(FIT), ram_gib=NUMBERS, down_mbps=NUMBERS, reliability=NUMBERS, price=st.integers()))
def test_no_hostile_number_passes(offer):
    """Whatever numbers an offer carries, what is kept meets every bound."""
    if fell(offer) is None:
        assert offer.ram_gib is not None
        assert offer.down_mbps is not None
        assert offer.reliability is not None
        assert offer.ram_gib >= 128
        assert offer.down_mbps >= 300
        assert offer.reliability >= 0.97
        assert 0 < offer.price <= micro(0.6)
