"""`vastfleet destroy`: end a fleet's instances, and prove that they are gone."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.words import count, price

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.cli.keeping import Statuses, Stop
    from controller.ledger.sqlite import Ledger
    from controller.model.fleet import Fleet
    from controller.model.instance import Instance
    from controller.runtime.embedded import Running
    from controller.runtime.settings import Settings

FAILED = 1


@click.command("destroy")
@click.argument("what", metavar="FLEET|PATH", callback=options.named)
@click.option("-y", "--yes", is_flag=True, help="Do not ask. Needed where nobody can be asked.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="MIN", help="Give up after so many minutes."
)
@options.ledger
@options.owner
@options.verbose
def command(what: str, *, yes: bool, timeout: float | None, ledger: Path | None, owner: str | None) -> int:
    """Destroy all instances of FLEET, or of the fleets in the manifest PATH.

    Instances are found by the ledger and by their labels on vast.ai, so this
    works without a manifest and after the ledger was lost. Each is destroyed
    until two complete listings, apart in time, no longer have it. With PATH,
    its stop command is run first on each instance that works.

    Exit codes: 0 every one is proven gone, 1 not, 3 not in time.
    """
    fleets = _fleets(what)
    names = [fleet.name for fleet in fleets] or [what]
    settings = options.settings(ledger, owner)
    _ask(settings, names, yes=yes)
    return asyncio.run(_destroy(settings, names, fleets, minutes=timeout))


def _fleets(what: str) -> "list[Fleet]":
    """The fleets of a manifest; none if a name was given."""
    if not (what == options.STDIN or Path(what).exists() or "/" in what or what.endswith((".yaml", ".yml"))):
        return []
    fleets = [loaded.fleet for loaded in options.manifests((what,))]
    kept = [fleet.name for fleet in fleets if fleet.spec.deletion_policy == "Orphan"]
    if kept:
        raise click.ClickException(
            f"{', '.join(kept)}: deletionPolicy is Orphan, which leaves the instances running; to end them all the "
            f"same, write Destroy there, or name the fleet: vastfleet destroy {kept[0]}"
        )
    return fleets


def _ask(settings: "Settings", names: Sequence[str], *, yes: bool) -> None:
    """Have it confirmed, with what the ledger knows of. Nothing is written."""
    from controller.ledger.sqlite import Ledger
    from controller.model.money import usd

    if yes:
        return
    if not sys.stdin.isatty():
        raise click.UsageError("nobody can be asked here; say --yes to destroy without asking")
    ledger = Ledger.copy(settings.ledger)
    alive = [instance for name in names for instance in ledger.instances(name)]
    ledger.close()
    cost = price(usd(sum(instance.price for instance in alive)))
    known = f"{count(len(alive), 'instance')} known, ${cost}/h; others under its label too"
    if not click.confirm(f"Destroy {', '.join(names)} ({known})?"):
        raise click.ClickException("nothing was destroyed")


async def _destroy(
    settings: "Settings", names: Sequence[str], fleets: "Sequence[Fleet]", *, minutes: float | None
) -> int:
    from controller.cli.keeping import News, bills, deadline, stopping
    from controller.runtime.embedded import running

    async with running(settings) as made:
        ledger = made.ledger
        strange = [name for name in names if name not in ledger.statuses() and not ledger.instances(name, gone=True)]
        with stopping(made) as stop, deadline(stop, settings.clock, minutes):
            news, last = News(ledger, names, say=lambda line: print(line, flush=True)), dict[str, str]()

            def passed(statuses: "Statuses") -> None:
                news.tell()
                last.update({s.fleet: ready.message for s in statuses if (ready := s.condition("Ready")) is not None})

            gone, why = await teardown(made, names, fleets, stop=stop, passed=passed)
        if stop.code is not None:
            left = [f"{name} is not finished: {last.get(name, 'never looked')}; destroy again" for name in names]
            print("\n".join([*left, *bills(ledger, settings.clock.now())]), file=sys.stderr)
            return stop.code
        if why:
            raise click.ClickException(why)
        return _concluded(ledger, names, gone, strange)


async def teardown(
    made: "Running",
    names: Sequence[str],
    fleets: "Sequence[Fleet]",
    *,
    stop: "Stop",
    passed: "Callable[[Statuses], object]",
) -> "tuple[list[Instance], str]":
    """Destroy these fleets' instances until none is left; those that went, and why it stopped short, if it did."""
    from controller.cli.keeping import keep

    before = {i.nonce for i in made.ledger.instances(gone=True) if not i.billable}
    stalled: dict[str, str] = {}
    for name in names:
        made.ledger.set_deleting(name, deleting=True)

    def seen(statuses: "Statuses") -> None:
        passed(statuses)
        mine = [said for said in statuses if said.fleet in names]
        stalled.update({s.fleet: found.message for s in mine if (found := s.condition("Stalled")) is not None})

    def until(_: "Statuses") -> bool:
        return bool(stalled) or not made.ledger.deleting().intersection(names)

    await keep(made, lambda: fleets, until=until, stop=stop, passed=seen)
    ended = [i for name in names for i in made.ledger.instances(name, gone=True)]
    return [i for i in ended if not i.billable and i.nonce not in before], next(iter(stalled.values()), "")


def _concluded(ledger: "Ledger", names: Sequence[str], gone: "Sequence[Instance]", strange: Sequence[str]) -> int:
    """Say what became of it. Fleets of which nothing was found anywhere are an error: a name may be misspelt."""
    from controller.cli.books import unknown
    from controller.cli.records import name_of
    from controller.model.reasons import Reason

    known = [name for name in ledger.statuses() if name not in strange]
    for name in names:
        ledger.forget_fleet(name)
    found = {instance.fleet for instance in gone}
    if lost := [name for name in strange if name not in found]:
        raise unknown("fleet", lost[0], known)
    left = [instance for instance in gone if instance.reason is Reason.RELABELLED]
    for instance in left:
        print(f"{name_of(instance)} was not destroyed: {instance.detail}", file=sys.stderr)
    print(f"{', '.join(names)}: {count(len(gone) - len(left), 'instance')} proven gone, {len(left)} left")
    return FAILED if left else 0
