"""`vastfleet events`: what happened, from the ledger; also how events are printed while they happen."""

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import show

if TYPE_CHECKING:
    from controller.ledger.sqlite import Ledger

POLL_S = 0.5  # of the wall


@click.command("events")
@click.argument("fleet", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on printing events as they happen, until Ctrl-C.")
@click.option("-n", "--newest", type=click.IntRange(1, 20_000), default=100, show_default=True, help="How many.")
@options.output
@options.ledger
@options.verbose
def command(fleet: str | None, *, follow: bool, newest: int, form: str, ledger: Path | None) -> None:
    """Show what happened to FLEET, or to all fleets, oldest first.

    With --follow, each event is one line; with -o json one JSON object.
    """
    from controller.cli import records
    from controller.cli.books import books, unknown

    with books(ledger) as known:
        past = known.ledger.events(fleet, newest=newest)
        if fleet is not None and not past and fleet not in known.fleets:
            raise unknown("fleet", fleet, known.fleets)
        if not follow:
            show([records.event(said, known.now) for said in past], form, nothing="nothing has happened yet")
            return
        after = known.ledger.newest_event() - len(past)
        asyncio.run(_follow(known.ledger, fleet, after=after, form=form))


async def _follow(ledger: "Ledger", fleet: str | None, *, after: int, form: str) -> None:
    from controller.cli import records
    from controller.runtime.clock import Clock

    wall = Clock()
    while True:
        for number, said in ledger.news(after=after):
            after = number
            if fleet in {None, said.fleet}:
                record = records.event_record(said)
                print(records.event_line(said) if form in {"table", "wide"} else json.dumps(record), flush=True)
        await wall.sleep(POLL_S)
