"""What the tests of the inner rooms share: fleets, instances, sightings and offers that say what a test is about."""

from dataclasses import replace
from typing import Any

from controller.model import labels
from controller.model.fleet import Fleet
from controller.model.instance import Decision, Instance, Phase, Run, Verdict
from controller.model.market import Listing, Offer, Sighting
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.plan.facts import Facts
from controller.plan.limits import Limits
from controller.plan.offers import Candidate

NOW = 1_800_000_000.0
OWNER = "tests"
SHAPE = "RTX 4090 x1"
OTHER_SHAPE = "RTX 5090 x1"
BOTH = ({"gpu": "RTX 4090", "minRate": 50}, {"gpu": "RTX 5090", "minRate": 80})


def fleet(*, name: str = "provers", target: dict[str, Any] | None = None, budget: float = 4.0, **spec: Any) -> Fleet:
    """A fleet of four RTX 4090 at a floor of 50; `spec` overrides whole sections, by the manifest's names."""
    made: dict[str, Any] = {
        "target": target or {"instances": 4},
        "budgetPerHour": budget,
        "shapes": ({"gpu": "RTX 4090", "minRate": 50},),
        "require": {"reliability": 0, "verified": False, "remainingHours": 0, "diskGiB": 50},
        "instance": {"image": "example/prover:1.4"},
        "benchmark": {"command": "bench"},
    }
    return Fleet.model_validate(
        {"apiVersion": "vastfleet.io/v1alpha1", "kind": "Fleet", "metadata": {"name": name}, "spec": made | spec}
    )


def instance(number: int = 1, **values: Any) -> Instance:
    """An admitted instance of `fleet()`, a day old, at $0.30; its id is 1000 + number, its machine 100 + number."""
    nonce, label = labels.make(owner=OWNER, fleet=values.get("fleet", "provers"), new_id=f"{number:08x}")
    made: dict[str, Any] = {
        "nonce": nonce,
        "fleet": "provers",
        "label": label,
        "shape": SHAPE,
        "gpu": "RTX 4090",
        "gpu_count": 1,
        "machine_id": 100 + number,
        "price": micro(0.3),
        "disk_gib": 50.0,
        "workload": fleet().spec.workload(),
        "phase": Phase.ADMITTED,
        "phase_since": NOW - 80_000,
        "reason": Reason.MEETS_MIN_RATE,
        "created_at": NOW - 86_400,
        "instance_id": 1000 + number,
        "launched_at": NOW - 86_000,
        "prepared_at": NOW - 83_000,
        "admitted_at": NOW - 80_000,
        "checked_at": NOW - 80_000,
        "cost_until": NOW,
    }
    return Instance(**(made | values))


def young(number: int = 1, phase: Phase = Phase.LAUNCHING, **values: Any) -> Instance:
    """An instance that is not admitted yet, a minute into its phase."""
    bare: dict[str, Any] = {
        "phase": phase,
        "phase_since": NOW - 60,
        "created_at": NOW - 60,
        "reason": Reason.RENTED,
        "launched_at": None if phase in {Phase.INTENDED, Phase.UNCLEAR, Phase.LAUNCHING} else NOW - 60,
        "prepared_at": None,
        "admitted_at": None,
        "checked_at": None,
    }
    if phase in {Phase.INTENDED, Phase.UNCLEAR}:
        bare["instance_id"] = None
    return instance(number, **(bare | values))


def row(of: Instance, **values: Any) -> Sighting:
    """An instance as a listing shows it: running, unless said otherwise."""
    made: dict[str, Any] = {
        "id": of.instance_id or 1000,
        "label": of.label,
        "machine_id": of.machine_id,
        "gpu": of.gpu,
        "gpu_count": of.gpu_count,
        "price": of.price,
        "actual": "running",
        "intended": "running",
    }
    return Sighting(**(made | values))


def verdict(decision: Decision = Decision.ACCEPTED, rate: float | None = 60.0, **values: Any) -> Verdict:
    """What is thought of an instance; measured again tomorrow."""
    made: dict[str, Any] = {"decision": decision, "rate": rate, "runs": 3, "next_run_at": NOW + 86_400, "line": "said"}
    return Verdict(**(made | values))


def facts(*instances: Instance, rows: dict[str, Sighting] | None = None, **values: Any) -> Facts:
    """Facts in which every instance with an id is listed as running and judged fast enough, unless said otherwise."""
    seen = {i.nonce: row(i) for i in instances if i.instance_id is not None} if rows is None else rows
    made: dict[str, Any] = {
        "now": NOW,
        "name": "provers",
        "fleet": fleet(),
        "instances": instances,
        "listing": Listing(at=NOW, sightings=tuple(seen.values())),
        "limits": Limits(),
        "seen": seen,
        "verdicts": {i.nonce: verdict() for i in instances if i.admitted_at is not None},
        "typical": {SHAPE: 60.0, OTHER_SHAPE: 90.0},
        "credit": micro(100),
    }
    return Facts(**(made | values))


def offer(number: int = 1, price: float = 0.3, **values: Any) -> Offer:
    """An offer that meets `fleet()`."""
    made: dict[str, Any] = {
        "id": number,
        "machine_id": 500 + number,
        "gpu": "RTX 4090",
        "gpu_count": 1,
        "price": micro(price),
    }
    return Offer(**(made | values))


def candidate(number: int = 1, price: float = 0.3, rate: float = 60.0, shape: str = SHAPE, **values: Any) -> Candidate:
    """An offer that fits a shape."""
    return Candidate(offer=offer(number, price, **values), shape=shape, rate=rate)


def run(of: Instance, rate: float | None = 60.0, *, ended_at: float = NOW, **values: Any) -> Run:
    """A run of an instance."""
    made: dict[str, Any] = {
        "id": f"run-{of.nonce}-{ended_at}",
        "nonce": of.nonce,
        "fleet": of.fleet,
        "machine_id": of.machine_id,
        "shape": of.shape,
        "workload": of.workload,
        "started_at": ended_at - 600,
        "ended_at": ended_at,
        "reason": Reason.MEASURED if rate is not None else Reason.NO_RATE,
        "rate": rate,
        "unit": "proofs/h",
    }
    return Run(**(made | values))


def later(found: Facts, seconds: float) -> Facts:
    """The same facts, seen again later: nothing has changed but the time."""
    now = found.now + seconds
    listing = replace(found.listing, at=now) if found.listing is not None else None
    return replace(found, now=now, listing=listing)
