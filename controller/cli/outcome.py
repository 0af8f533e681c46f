"""How the demo ended: what was rented, what struck, what it cost, and whether the promises were kept.

Every promise is checked against the emulator's books, not against what the controller says of itself.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from controller.cli.output import table
from controller.cli.words import NOTHING, count, money, price, rate, span
from controller.model.instance import Event, Instance
from controller.model.money import usd
from controller.model.reasons import Reason

if TYPE_CHECKING:
    from controller.emulator import Emulator
    from controller.ledger.sqlite import Ledger
    from controller.model.fleet import Fleet

FAILED = 1
CREATE = "PUT /api/v0/asks/{id}/"
CENT = 0.01
FITTING = {"slow-machine": Reason.BELOW_MIN_RATE, "host-lost": Reason.HOST_LOST}


def outcome(emulator: "Emulator", ledger: "Ledger", fleet: "Fleet") -> int:
    """Print the closing table and the promises; the exit code."""
    events = ledger.events(fleet.name, newest=20_000)
    instances = {i.instance_id: i for i in ledger.instances(fleet.name, gone=True) if i.instance_id is not None}
    print()
    _rentals(emulator, ledger, instances, events)
    struck = Counter(said.reason for said in events if said.kind == "Warning")
    struck += Counter(went for i in instances if (went := _went(i, events)) in FITTING.values())
    print(f"\nTroubles met: {', '.join(f'{reason} {n}' for reason, n in sorted(struck.items())) or 'none'}")
    creates = emulator.calls[CREATE]
    print(
        f"{count(creates, 'create call')}, {len(emulator.rentals())} rented; ${money(emulator.total_billed)} billed; "
        f"at most ${price(emulator.peak_committed_per_hour)}/h of ${price(fleet.spec.budget_per_hour)}/h\n"
    )
    kept = _promises(emulator, instances, fleet, events)
    for text, held in kept.items():
        print(f"{'ok    ' if held else 'FAILED'}  {text}")
    return 0 if all(kept.values()) else FAILED


def _rentals(emulator: "Emulator", ledger: "Ledger", instances: dict[int, Instance], events: Sequence[Event]) -> None:
    runs = {run.nonce: run for run in ledger.runs() if run.rate is not None}
    rows = []
    for rental in emulator.rentals():
        known = instances.get(rental.id)
        run = runs.get(known.nonce) if known is not None else None
        rows.append({
            "INSTANCE": str(rental.id),
            "MACHINE": str(rental.machine_id),
            "GPU": rental.gpu_name,
            "$/H": price(usd(known.price)) if known is not None else NOTHING,
            "RATE": rate(run.rate if run is not None else None),
            "LIVED": span(rental.destroyed_at - rental.created_at) if rental.destroyed_at is not None else "alive",
            "COST": money(rental.billed_usd),
            "WENT": str(_went(rental.id, events)),
        })  # fmt: skip
    table(rows)


def given_up(emulator: "Emulator", events: Sequence[Event], trouble: str) -> bool:
    """Whether what the emulator has struck with this trouble was given up for the reason that fits."""
    struck = [c.id for c in emulator.world.contracts.values() if any(fate.kind == trouble for fate in c.fates)]
    return bool(struck) and all(_went(i, events) is FITTING[trouble] for i in struck)


def _went(instance_id: int, events: Sequence[Event]) -> Reason:
    """Why an instance was given up: the last reason told of it but the proof that it is gone."""
    about = [said.reason for said in events if said.about == str(instance_id)]
    return next((reason for reason in reversed(about) if reason is not Reason.TEARDOWN_VERIFIED), Reason.RENTED)


def _promises(
    emulator: "Emulator", instances: dict[int, Instance], fleet: "Fleet", events: Sequence[Event]
) -> dict[str, bool]:
    rentals = emulator.rentals()
    reasons = {said.reason for said in events}
    labels = Counter(rental.label for rental in rentals)
    billed, counted = emulator.total_billed, sum(usd(i.cost) for i in instances.values())
    return {
        "the fleet filled, though the answer to a rental was lost": reasons
        >= {Reason.CREATE_UNCLEAR, Reason.TARGET_REACHED},
        "the slow machine was measured, judged and replaced": given_up(emulator, events, "slow-machine"),
        "the dead machine was given up and replaced": given_up(emulator, events, "host-lost"),
        "nothing leaked: no instance is alive": not emulator.alive,
        "nothing was rented twice: each rental has a label and a ledger entry of its own": set(labels.values()) <= {1}
        and {rental.id for rental in rentals} == instances.keys(),
        f"the budget was never exceeded: ${price(emulator.peak_committed_per_hour)}/h at most": (
            emulator.peak_committed_per_hour <= fleet.spec.budget_per_hour + 1e-9
        ),
        f"no cost was overlooked: ${money(counted)} by the ledger, ${money(billed)} billed": counted >= billed - CENT,
    }
