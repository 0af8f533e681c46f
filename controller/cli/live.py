"""The live view of a terminal: what each instance is at, under the news that scrolls by."""

import asyncio
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from controller.cli import records
from controller.cli.keeping import Statuses
from controller.cli.output import rich_table
from controller.cli.words import price, rate
from controller.model.status import FleetStatus, InstanceStatus

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.live import Live

    from controller.runtime.clock import Clock
    from controller.runtime.embedded import Running

REFRESH_S = 0.25  # of the wall
COLUMNS = ("NAME", "PHASE", "GPU", "REGION", "RATE", "P(GOOD)", "$/H", "NEXT")


class View:
    """What is known now, drawn on demand."""

    def __init__(self, made: "Running", clock: "Clock", fleets: Sequence[str]) -> None:
        self._made = made
        self._clock = clock
        self._fleets = fleets
        self._statuses: dict[str, FleetStatus] = {}

    def passed(self, statuses: Statuses) -> None:
        """Take note of a pass."""
        self._statuses = {said.fleet: said for said in statuses}

    def draw(self) -> "RenderableType":
        """Fleets, their instances, and what jobs last printed."""
        from rich.console import Group
        from rich.text import Text

        parts: list[RenderableType] = [Text("")]
        for name in self._fleets:
            parts += [Text(self._headline(name), style="bold"), *self._instances(name)]
        return Group(*parts)

    def _headline(self, name: str) -> str:
        said = self._statuses.get(name)
        if said is None:
            return f"{name}: looking"
        ready = said.condition("Ready")
        return (
            f"{name}: {said.held} held, {said.pending} on their way, {rate(said.rate)} {said.unit}, "
            f"${price(said.reserved_per_hour)}/h of ${price(said.budget_per_hour)}/h, "
            f"{ready.reason if ready is not None else '?'}"
        )

    def _instances(self, name: str) -> "list[RenderableType]":
        from rich.text import Text

        now, jobs = self._clock.now(), self._made.loop.jobs.running()
        said = self._statuses.get(name)
        thoughts = {t.nonce: t for t in said.instances} if said is not None else {}
        rows, lines = [], []
        for instance in self._made.ledger.instances(name):
            job = jobs.get(instance.nonce)
            thought = records.with_job(thoughts.get(instance.nonce, InstanceStatus(nonce=instance.nonce)), job)
            cells = records.instance(instance, thought, now).cells
            rows.append({title: cells[title] for title in COLUMNS})
            if job is not None and job.progress:
                lines.append(Text(f"  {cells['NAME']}: {job.progress}", style="dim", no_wrap=True, overflow="ellipsis"))
        return [rich_table(COLUMNS, rows, width=shutil.get_terminal_size().columns), *lines] if rows else []


@asynccontextmanager
async def live(view: View, *, wanted: bool = True) -> AsyncIterator[Callable[[str], None]]:
    """Show the view while the block runs, if stdout is a terminal; yields what prints a line above it."""
    if not (wanted and sys.stdout.isatty()):
        yield lambda line: print(line, flush=True)
        return
    from rich.live import Live

    with Live(view.draw(), auto_refresh=False, transient=True) as shown:
        task = asyncio.create_task(_refresh(shown, view))
        try:
            yield lambda line: shown.console.print(line, markup=False, highlight=False)
        finally:
            task.cancel()


async def _refresh(shown: "Live", view: View) -> None:
    from controller.runtime.clock import Clock

    wall = Clock()
    while True:
        shown.update(view.draw(), refresh=True)
        await wall.sleep(REFRESH_S)
