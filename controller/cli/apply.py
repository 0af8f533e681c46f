"""`vastfleet apply`: converge, say so, and leave; or stay with --watch."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.words import count, price, rate

if TYPE_CHECKING:
    from controller.cli.keeping import Statuses
    from controller.model.fleet import Fleet
    from controller.model.status import FleetStatus
    from controller.runtime.settings import Settings


@click.command("apply")
@options.paths
@click.option("--watch", is_flag=True, help="Go on keeping the fleets once they are ready.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="MIN", help="Give up after so many minutes."
)
@click.option("-y", "--yes", is_flag=True, help="Do not ask, on a terminal, before money is spent.")
@options.ledger
@options.owner
@options.verbose
def command(
    paths: tuple[str, ...], *, watch: bool, timeout: float | None, yes: bool, ledger: Path | None, owner: str | None
) -> int:
    """Rent, measure and replace instances until every fleet in PATH is ready.

    Never spends more an hour than each manifest's budgetPerHour. Ctrl-C stops
    after the pass under way: what was rented goes on billing, is listed, and
    is taken up again by the next apply or run. Nothing is destroyed by
    stopping; that is what destroy is for.

    Exit codes: 0 ready, 1 a person must help first, 3 not ready in time.
    """
    fleets = [loaded.fleet for loaded in options.manifests(paths)]
    settings = options.settings(ledger, owner)
    if sys.stdin.isatty() and sys.stdout.isatty() and not yes:
        most = price(sum(fleet.spec.budget_per_hour for fleet in fleets))
        if not click.confirm(f"Hold {', '.join(f.name for f in fleets)}, for at most ${most}/h in all?"):
            raise click.ClickException("nothing was rented")
    return asyncio.run(_apply(settings, fleets, watch=watch, minutes=timeout))


async def _apply(settings: "Settings", fleets: "Sequence[Fleet]", *, watch: bool, minutes: float | None) -> int:
    from controller.cli.keeping import STALLED, News, bills, deadline, keep, stopping
    from controller.cli.live import View, live
    from controller.runtime.embedded import running

    names = [fleet.name for fleet in fleets]
    last: dict[str, FleetStatus] = {}
    async with running(settings) as made:
        view = View(made, settings.clock, names)
        with stopping(made) as stop, deadline(stop, settings.clock, minutes):
            async with live(view) as say:
                news = News(made.ledger, names, say=say)

                def passed(statuses: "Statuses") -> None:
                    last.update({said.fleet: said for said in statuses if said.fleet in names})
                    view.passed(statuses)
                    news.tell()

                def until(_: "Statuses") -> bool:
                    if watch:
                        return False
                    return all(said.ready for said in last.values()) or _stalled(last)

                await keep(made, lambda: fleets, until=until, stop=stop, passed=passed)
        for said in last.values():
            print(_conclusion(said))
        if stop.code is None:
            return STALLED if _stalled(last) else 0
        print("\n".join(bills(made.ledger, settings.clock.now())), file=sys.stderr)
        return stop.code


def _stalled(last: "dict[str, FleetStatus]") -> bool:
    return any(said.condition("Stalled") is not None for said in last.values())


def _conclusion(said: "FleetStatus") -> str:
    ready = said.condition("Ready")
    if not said.ready and ready is not None:
        return f"{said.fleet} is not ready: {ready.reason}: {ready.message}"
    return (
        f"{said.fleet} is ready: {count(said.held, 'instance')}, {rate(said.rate)} {said.unit}, "
        f"${price(said.spend_per_hour)}/h of ${price(said.budget_per_hour)}/h"
    )
