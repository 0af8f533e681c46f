"""`vastfleet run`: keep fleets as their manifests say, speaking when something changes."""

import asyncio
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.words import count

if TYPE_CHECKING:
    from controller.cli.keeping import Statuses
    from controller.ledger.sqlite import Ledger
    from controller.model.fleet import Fleet
    from controller.model.manifest import ManifestErrors
    from controller.runtime.manifests import Manifests
    from controller.runtime.settings import Settings


@click.command("run")
@options.paths
@options.ledger
@options.owner
@options.verbose
def command(paths: tuple[str, ...], *, ledger: Path | None, owner: str | None) -> int:
    """Keep the fleets in PATH, files or directories, as their manifests say.

    The files are read again when they change, and on SIGHUP. One that has
    become wrong is told of, and what it said before stays in force. A fleet
    that is no longer in any file is left running, and told of: destroy ends
    it. Prints a line when something changes, and nothing otherwise.

    Ctrl-C or SIGTERM stops after the pass under way; what was rented goes on
    billing, is listed, and is taken up again by the next run.
    """
    from controller.runtime.manifests import Manifests

    speaker = Speaker()
    manifests = Manifests([Path(path) for path in paths], refused=speaker.refused, changed=speaker.changed)
    return asyncio.run(_run(options.settings(ledger, owner), manifests, speaker))


class Speaker:
    """Says what became of the manifests."""

    def refused(self, wrong: "ManifestErrors") -> None:
        """They are wrong now."""
        print(
            f"{wrong}\nnothing is changed: what the manifests said before stays in force", file=sys.stderr, flush=True
        )

    def changed(self, before: "tuple[Fleet, ...]", after: "tuple[Fleet, ...]") -> None:
        """They say something else now."""
        old, new = ({fleet.name: fleet for fleet in fleets} for fleets in (before, after))
        for name, fleet in new.items():
            if fleet != old.get(name):
                print(f"manifest of {name} {'changed' if name in old else 'added'}", flush=True)

    def unmanaged(self, ledger: "Ledger", known: set[str], told: set[str]) -> None:
        """Tell once of each fleet that has instances and no manifest; `told` is kept up to date."""
        counts: dict[str, int] = {}
        for instance in ledger.instances():
            if instance.fleet not in known | ledger.deleting():
                counts[instance.fleet] = counts.get(instance.fleet, 0) + 1
        for name in sorted(counts.keys() - told):
            print(
                f"{name} is unmanaged: no manifest here has it; {count(counts[name], 'instance')} left running and "
                f"billing. To end them, stop this and: vastfleet destroy {name}",
                flush=True,
            )
        told.intersection_update(counts)
        told.update(counts)


async def _run(settings: "Settings", manifests: "Manifests", speaker: Speaker) -> int:
    from controller.cli.keeping import News, bills, keep, stopping
    from controller.runtime.embedded import running

    async with running(settings) as made:
        told: set[str] = set()
        news = News(made.ledger, say=lambda line: print(line, flush=True))
        names = ", ".join(fleet.name for fleet in manifests.current())
        print(f"keeping {names}; ledger {settings.ledger}", flush=True)

        def passed(_: "Statuses") -> None:
            news.tell()
            speaker.unmanaged(made.ledger, {fleet.name for fleet in manifests.current()}, told)

        def reread() -> None:
            manifests.reread()
            made.loop.jobs.wake.set()

        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, reread)
        with stopping(made) as stop:
            await keep(made, manifests.current, until=lambda _: False, stop=stop, passed=passed)
        print("\n".join(bills(made.ledger, settings.clock.now()) or ["nothing bills"]), file=sys.stderr)
        return stop.code or 0
