"""vast.ai's rows become records: values with their units, None for what cannot be read, and nothing for nobody."""

import json
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.model.market import Endpoint, Offer, Sighting
from controller.vast import values, wire
from controller.vast.countries import country_of

NASTY: list[Any] = [
    None,
    True,
    False,
    "",
    " ",
    "x",
    "NaN",
    float("nan"),
    float("inf"),
    -float("inf"),
    1e308,
    -1,
    0,
    [],
    {},
    "1e999",
    10**400,
    "9" * 5000,
]
nasty = st.one_of(st.sampled_from(NASTY), st.floats(), st.integers(), st.text(), st.lists(st.none()))
machine_pace = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine fails no test
OFFER_FIELDS = (
    "id machine_id num_gpus gpu_name dph_total dph_base storage_cost cpu_ram cpu_cores cpu_cores_effective gpu_frac"
)
INSTANCE_FIELDS = (
    "label dph_total ports ssh_port ssh_host status_msg mem_limit cpu_ram start_date country_code actual_status"
)


def test_offer(offer_row):
    """An offer's memory and cores are its share of the machine's, its price is whole micro-dollars with the disk."""
    assert wire.offer(offer_row, disk_gib=250) == Offer(
        id=7100001,
        machine_id=4201,
        gpu="RTX 4090",
        gpu_count=1,
        price=400_000,
        host_id=881,
        gpu_fraction=0.5,
        gpu_ram_mib=24564,
        ram_gib=128.0,
        cpu_cores=32.0,
        disk_gib=900.5,
        down_mbps=812.4,
        up_mbps=640.0,
        down_usd_per_gb=0.004,
        reliability=0.991,
        verified=True,
        country="NO",
        cuda=12.8,
        direct_ports=120,
        remaining_seconds=864000.5,
    )


def test_sighting(instance_row):
    """An instance's label is without blanks, its message one line, its endpoints direct first."""
    assert wire.sighting(instance_row) == Sighting(
        id=9000017,
        label="vf/acme/provers/01",
        machine_id=4201,
        host_id=881,
        gpu="RTX 4090",
        gpu_count=1,
        price=410_000,
        actual="running",
        intended="running",
        current="running",
        message="success, running example/prover_1.4/ssh",
        country="US",
        started_at=1795990000.25,
        ends_at=1800000000.0,
        ram_gib=128.0,
        cpu_cores=32.0,
        disk_gib=250.0,
        image="example/prover:1.4",
        endpoints=(
            Endpoint(route="direct", host="198.51.100.7", port=30022),
            Endpoint(route="proxy", host="ssh4.vast.ai", port=10017),
        ),
    )


@pytest.mark.parametrize(
    ("change", "micro_usd"),
    [
        ({}, 400_000),
        ({"dph_total": 0.361}, 400_000),  # a search that ignored the disk: 0.36 + 0.1152 × 250 / 720
        ({"dph_total": 0.45}, 450_000),
        ({"dph_base": None}, 400_000),
        ({"storage_cost": float("nan")}, 400_000),
        ({"dph_base": 0, "storage_cost": 0, "dph_total": 0.3}, 300_000),
        ({"dph_total": "0.4"}, 400_000),
    ],
)
def test_offer_price_is_all_in(change, micro_usd, offer_row):
    """An offer costs the dearer of what is shown and what its parts come to with the disk."""
    seen = wire.offer(offer_row | change, disk_gib=250)
    assert seen is not None
    assert seen.price == micro_usd


@pytest.mark.parametrize("field", ["id", "machine_id", "num_gpus", "gpu_name", "dph_total"])
@pytest.mark.parametrize("value", [None, float("nan"), "", 0, False, -1, [], 10**400])
def test_offer_of_nothing_is_dropped(field, value, offer_row):
    """An offer without an id, a machine, a GPU or a price is no offer."""
    assert wire.offer(offer_row | {field: value}, disk_gib=250) is None


@pytest.mark.parametrize(
    "change",
    [
        {"dph_total": 10_001},
        {"dph_base": 1e9},
        {"storage_cost": 1e9},
        {"dph_total": 1e-9, "dph_base": 0, "storage_cost": 0},
    ],
)
def test_offer_at_an_absurd_price_is_dropped(change, offer_row):
    """A price that nobody means is not a price."""
    assert wire.offer(offer_row | change, disk_gib=250) is None


@pytest.mark.parametrize(
    ("change", "field", "expected"),
    [
        ({"rentable": False}, "rentable", False),
        ({"rented": True}, "rentable", False),
        ({"rentable": None}, "rentable", True),
        ({"cpu_cores": None}, "ram_gib", 128.0),  # by its share of the GPUs
        ({"cpu_cores": None, "gpu_frac": None}, "ram_gib", 256.0),
        ({"cpu_cores_effective": 128}, "ram_gib", 256.0),
        ({"cpu_ram": None}, "ram_gib", None),
        ({"verification": "unverified"}, "verified", False),
        ({"verification": "deverified"}, "verified", False),
        ({"verification": None, "verified": True}, "verified", True),
        ({"verification": None, "verified": "verified"}, "verified", True),
        ({"verification": None}, "verified", None),
        ({"reliability2": None}, "reliability", 0.98),
        ({"reliability2": 1.5}, "reliability", None),
        ({"reliability2": float("nan")}, "reliability", None),
        ({"cuda_max_good": None}, "cuda", None),
        ({"direct_port_count": -1}, "direct_ports", None),
        ({"disk_space": "900.5"}, "disk_gib", 900.5),
        ({"duration": -5}, "remaining_seconds", None),
        ({"geolocation": None}, "country", None),
        ({"country_code": "SE"}, "country", "SE"),
    ],
)
def test_offer_field(change, field, expected, offer_row):
    """A field that cannot be read is None, and the rest of the offer stands."""
    seen = wire.offer(offer_row | change, disk_gib=250)
    assert seen is not None
    assert getattr(seen, field) == expected
    assert (seen.id, seen.price) == (7100001, 400_000)


@pytest.mark.parametrize(
    ("change", "routes"),
    [
        ({}, ["direct 198.51.100.7:30022", "proxy ssh4.vast.ai:10017"]),
        ({"ports": {"22/tcp": [{"HostPort": 30022}]}}, ["direct 198.51.100.7:30022", "proxy ssh4.vast.ai:10017"]),
        ({"ports": None}, ["proxy ssh4.vast.ai:10017"]),
        ({"ports": {}}, ["proxy ssh4.vast.ai:10017"]),
        ({"ports": [8080, 8081]}, ["proxy ssh4.vast.ai:10017"]),
        ({"ports": {"22/tcp": []}}, ["proxy ssh4.vast.ai:10017"]),
        ({"ports": {"22/tcp": [{"HostPort": "70000"}]}}, ["proxy ssh4.vast.ai:10017"]),
        ({"public_ipaddr": None}, ["proxy ssh4.vast.ai:10017"]),
        ({"public_ipaddr": "-oProxyCommand=x y"}, ["proxy ssh4.vast.ai:10017"]),
        ({"image_runtype": "jupyter_direc ssh_direc ssh_proxy", "ports": {}}, ["proxy ssh4.vast.ai:10018"]),
        ({"ssh_host": None, "ports": {}}, []),
        ({"ssh_port": "10017", "ports": {}}, ["proxy ssh4.vast.ai:10017"]),
        ({"ssh_port": 65535, "image_runtype": "jupyter", "ports": {}}, []),
    ],
)
def test_endpoints(change, routes, instance_row):
    """Where SSH is: the mapped port if there is one, and the relay, one port on beside Jupyter."""
    seen = wire.sighting(instance_row | change)
    assert seen is not None
    assert [f"{end.route} {end.host}:{end.port}" for end in seen.endpoints] == routes


@pytest.mark.parametrize("value", [None, 0, -0.1, float("nan"), "free", True, 1e9])
def test_instance_without_a_price_is_not_free(value, instance_row):
    """A price that cannot be read is unknown, never zero."""
    seen = wire.sighting(instance_row | {"dph_total": value})
    assert seen is not None
    assert seen.price is None


def test_message_is_one_short_line(instance_row):
    """A host's message cannot break a table or steer a terminal."""
    seen = wire.sighting(instance_row | {"status_msg": "a\nb\x1b[31m\u202e \ud800" + "x" * 500})
    assert seen is not None
    assert seen.message.startswith("a b [31m ?xxx")
    assert len(seen.message) == 200


def test_new_instance_is_bare():
    """In its first seconds an instance has an id and little else."""
    assert wire.sighting({"id": 9, "actual_status": None, "status_msg": None, "ports": None}) == Sighting(id=9)


@pytest.mark.parametrize(
    ("place", "country"),
    [
        ("Ontario, CA", "CA"),
        (", US", "US"),
        ("US", "US"),
        ("Norway", "NO"),
        ("California, United States", "US"),
        ("Georgia, US", "US"),
        ("Tbilisi, Georgia", "GE"),
        ("London, UK", "GB"),
        ("", None),
        (None, None),
        (",", None),
        ("Atlantis", None),
        ("no", None),
    ],
)
def test_country(place, country):
    """A place's country is what it ends with."""
    assert country_of(place) == country


@machine_pace
@given(st.dictionaries(st.sampled_from(OFFER_FIELDS.split()), nasty))
def test_no_number_breaks_an_offer(changes):
    """Whatever stands in a row, it is an offer with a sane price and finite numbers, or it is none."""
    good = {"id": 1, "machine_id": 2, "num_gpus": 1, "gpu_name": "RTX 4090", "dph_total": 0.4}
    seen = wire.offer(good | changes, disk_gib=250)
    if seen is not None:
        assert 0 < seen.price <= 10_000 * 1_000_000
        assert seen.gpu_count > 0
        json.dumps(asdict(seen), allow_nan=False)


@machine_pace
@given(st.dictionaries(st.sampled_from(INSTANCE_FIELDS.split()), nasty))
def test_no_number_breaks_a_sighting(changes):
    """Whatever stands in a row with an id, it is a sighting whose every value can be stored and printed."""
    seen = wire.sighting({"id": 1} | changes)
    assert seen is not None
    json.dumps(asdict(seen), allow_nan=False).encode()
    str(asdict(seen)).encode()


@machine_pace
@given(st.binary())
def test_any_bytes_are_json_or_none(body):
    """No body can do worse than not to be JSON."""
    json.dumps(values.parse(body), allow_nan=False)


def test_deep_and_long_json_is_none():
    """A body nested without end, or with a number without end, is not JSON."""
    assert values.parse(b"[" * 100_000) is None
    assert values.parse(b"9" * 5_000) is None


@pytest.mark.parametrize("row", [None, [], "x", 5, {}, {"id": None}, {"id": True}, {"id": -4}, {"id": 1.5}])
def test_row_of_nobody(row):
    """A row without an id is neither an offer, nor an instance, nor a price increase."""
    assert wire.offer(row, disk_gib=1) is None
    assert wire.sighting(row) is None
    assert wire.price_increase(row, {}) is None
