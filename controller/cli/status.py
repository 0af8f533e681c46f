"""`vastfleet status`: how fleets stand, at a glance."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import show, show_record, table

if TYPE_CHECKING:
    from controller.cli.books import Books
    from controller.model.status import FleetStatus

GOOD = {"Ready": "True", "Reconciling": "False", "Stalled": "False", "Suspended": "False"}


@click.command("status")
@click.argument("fleet", required=False)
@options.output
@options.ledger
@options.verbose
def command(fleet: str | None, *, form: str, ledger: Path | None) -> None:
    """Show how FLEET stands, or every fleet: target, money, instances, troubles.

    Reads the ledger alone, whether or not a controller is running.
    """
    from controller.cli import records
    from controller.cli.books import books

    with books(ledger) as known:
        chosen = [known.fleet(fleet)] if fleet else list(known.fleets.values())
        if form in {"json", "yaml"}:
            show_record({"items": [_record(known, status) for status in chosen]}, form)
            return
        show([records.fleet(status, known.now) for status in chosen], form, nothing="the ledger has no fleets")
        for status in chosen:
            _troubles(status)
        alive = [i for status in chosen for i in known.instances() if i.fleet == status.fleet]
        if alive:
            print()
            show([records.instance_of(known, i) for i in alive], form)


def _record(known: "Books", status: "FleetStatus") -> dict[str, object]:
    """The fleet with its instances in full."""
    from controller.cli import records

    mine = known.ledger.instances(status.fleet)
    instances = [records.instance_of(known, i).record for i in mine]
    return {**records.fleet_record(status), "instances": instances}


def _troubles(status: "FleetStatus") -> None:
    """The conditions that are not as one would have them."""
    rows = [
        {"CONDITION": said.type, "STATUS": said.status, "REASON": str(said.reason), "MESSAGE": said.message}
        for said in status.conditions
        if said.status != GOOD.get(said.type, "True")
    ]
    if rows:
        print(f"\n{status.fleet}:")
        table(rows, indent=2)
