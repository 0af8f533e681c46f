from collections.abc import Callable

import pytest

from controller.model.fleet import Fleet
from controller.model.manifest import load_text

Build = Callable[..., str]
Change = tuple[str, str]


def one(text: str) -> Fleet:
    (loaded,) = load_text(text, name="f.yaml")
    return loaded.fleet


def test_what_is_left_out_is_what_the_descriptions_say(manifest: Build) -> None:
    """A minimal fleet rents one verified GPU an instance, anywhere, and is destroyed with its manifest."""
    spec = one(manifest()).spec
    assert (spec.shapes[0].key, spec.shapes[0].max_price, spec.budget) == ("RTX 4090 x1", None, 1_500_000)
    assert (spec.countries(), spec.require.verified, spec.require.disk_gib) == (None, True, 32)
    assert (spec.suspend, spec.deletion_policy) == (False, "Destroy")


def test_prices_are_whole_micro_dollars(manifest: Build) -> None:
    """Three shapes at 0.30 cost exactly 0.90."""
    fleet = one(manifest(("minRate: 59", "minRate: 59\n    maxPricePerHour: 0.30"), ("1.50", "0.90")))
    cap = fleet.spec.shapes[0].max_price
    assert cap is not None
    assert 3 * cap == fleet.spec.budget


@pytest.mark.parametrize(
    "change",
    [
        ("prover:1.4", "prover:1.5"),
        (":1.4\n", ":1.4\n    env: {A: b}\n"),
        (":1.4\n", ":1.4\n    envFrom: [{variable: A}]\n"),
        (":1.4\n", ":1.4\n    onStart: a\n"),
        (":1.4\n", ":1.4\n    start: a\n"),
        (":1.4\n", ":1.4\n    stop: a\n"),
        ("command: bench\n", "command: bench 2\n"),
        ("command: bench\n", "command: bench\n    prepare: {command: a}\n"),
        ("command: bench\n", "command: bench\n    format: json\n"),
        ("command: bench\n", "command: bench\n    unit: tokens/s\n"),
        ("command: bench\n", "command: bench\n    memory: {reserveGiB: 3}\n"),
        ("command: bench\n", "command: bench\n    warmUp: {command: a}\n"),
        ("spec:\n", "spec:\n  require: {diskGiB: 40}\n"),
    ],
)
def test_the_workload_changes_with_what_runs(manifest: Build, change: Change) -> None:
    """A change of what runs, or of how it is measured, makes running instances outdated."""
    assert one(manifest(change)).spec.workload() != one(manifest()).spec.workload()


@pytest.mark.parametrize(
    "change",
    [
        ("1.50", "2"),
        ("instances: 2", "rate: 100"),
        ("minRate: 59", "minRate: 60"),
        ("minRate: 59", "minRate: 59\n    maxPricePerHour: 1"),
        ("spec:\n", "spec:\n  regions: [EU]\n"),
        ("spec:\n", "spec:\n  require: {ramGiB: 64, diskGiB: 32}\n"),
        ("spec:\n", "spec:\n  judgement: {acceptAbove: 0.9}\n"),
        ("spec:\n", "spec:\n  disruption: {maxSurge: 2}\n"),
        (":1.4\n", ":1.4\n    drainSeconds: 5\n"),
        ("command: bench\n", "command: bench\n    recheckHours: 5\n"),
        ("command: bench\n", "command: bench\n    timeoutMinutes: 5\n"),
        ("command: bench\n", "command: bench\n    production: {command: a, everyMinutes: 5}\n"),
        ("spec:\n", "spec:\n  judgement: {plannedHours: 5}\n"),
        ("spec:\n", "spec:\n  machines: {avoid: [{id: 7, reason: a}]}\n"),
        ("name: provers\n", "name: others\n"),
    ],
)
def test_the_workload_stays_with_how_much_and_where(manifest: Build, change: Change) -> None:
    """A change of how much is wanted, where, or for how much leaves running instances as they are."""
    assert one(manifest(change)).spec.workload() == one(manifest()).spec.workload()


def test_the_workload_stays_with_the_time_that_a_warm_up_may_take(manifest: Build) -> None:
    """A warm-up's command makes running instances outdated when it changes, its time limit does not."""
    warm = ("", ", timeoutMinutes: 5")
    changes = [("command: bench\n", f"command: bench\n    warmUp: {{command: a{more}}}\n") for more in warm]
    first, second = (one(manifest(change)).spec.workload() for change in changes)
    assert first == second


def test_a_fingerprint_is_the_same_in_every_version(manifest: Build) -> None:
    """An upgrade of vastfleet makes no running instance outdated: fingerprints once given stay."""
    rich = manifest(
        ("spec:\n", "spec:\n  require: {diskGiB: 250}\n"),
        (":1.4\n", ":1.4\n    env: {A: b}\n    start: go\n"),
        ("command: bench\n", "command: bench\n    prepare: {command: fetch}\n    memory: {reserveGiB: 100}\n"),
    )
    assert [one(text).spec.workload() for text in (manifest(), rich)] == ["2bab06ef4e88", "25c428a4edc5"]


def test_a_pin_holds_until_it_expires(manifest: Build) -> None:
    """A machine is avoided or preferred to the end of the last day in UTC or to the very second, else for good."""
    pins = (
        '{id: 1, reason: slow disk, until: "2027-01-31"}',
        '{id: 2, reason: a, until: "2027-01-31T12:00:00+02:00"}',
        "{id: 3, reason: b}",
        '{id: 4, reason: c, until: "9999-12-31"}',
    )
    machines = one(manifest(("spec:\n", f"spec:\n  machines: {{avoid: [{', '.join(pins)}]}}\n"))).spec.machines
    noon, night = 1_801_389_600.0, 1_801_440_000.0  # 2027-01-31T10:00Z, 2027-02-01T00:00Z
    assert machines.avoided(noon - 1) == {1: "slow disk", 2: "a", 3: "b", 4: "c"}
    assert set(machines.avoided(noon)) == {1, 3, 4}
    assert set(machines.avoided(night - 1)) == {1, 3, 4}
    assert set(machines.avoided(night)) == {3, 4}
    assert machines.preferred(noon) == {}


def test_a_value_of_env_is_in_no_print_of_a_fleet(manifest: Build) -> None:
    """A fleet's repr, text and dumps hide the values of env; its fingerprint does not hold them either."""
    fleet = one(manifest((":1.4\n", ":1.4\n    env: {TOKEN: marker}\n")))
    printed = f"{fleet!r} {fleet} {fleet.model_dump()} {fleet.model_dump_json()} {fleet.spec.workload()}"
    assert "TOKEN" in printed
    assert "marker" not in printed
    assert fleet.spec.instance.env["TOKEN"].get_secret_value() == "marker"


def test_a_fleet_is_the_same_after_its_own_dump(manifest: Build) -> None:
    """What a fleet dumps, without its unset fields, is a manifest of the same fleet."""
    fleet = one(manifest(("spec:\n", "spec:\n  regions: [NO, eu]\n  require: {ramGiB: 64}\n")))
    dumped = fleet.model_dump(mode="json", exclude_none=True)
    assert "ramGiB" in dumped["spec"]["require"]
    assert Fleet.model_validate(dumped, by_alias=True, by_name=False) == fleet


@pytest.mark.parametrize(
    "said",
    [
        "memory: {reserveGiB: 63.9}\n  require: {ramGiB: 64}",
        "memory: {reserveGiB: 64}\n  require: {ramGiB: 0}",
        "production: {}\n    warmUp: {}",
        'production: {command: "", everyMinutes: 60, format: json}\n    warmUp: {command: "", timeoutMinutes: 30}',
        "production: {command: rate, everyMinutes: 5}\n    warmUp: {command: warm, timeoutMinutes: 5}",
        "recheckHours: 5\n  judgement: {acceptAbove: 0.4}",
    ],
)
def test_what_makes_sense_is_taken(manifest: Build, said: str) -> None:
    """Memory that leaves room, defaults written out, and commands with all that is said of them are no faults."""
    assert one(manifest(("command: bench\n", f"command: bench\n    {said}\n")))
