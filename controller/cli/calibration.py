"""`vastfleet calibration`: whether P may be trusted, by what became of the machines that were given it."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import say, show_record, table

if TYPE_CHECKING:
    from controller.judge.calibration import Band, Calibration


@click.command("calibration")
@click.argument("fleet", required=False)
@options.output
@options.ledger
@options.verbose
def command(fleet: str | None, *, form: str, ledger: Path | None) -> None:
    """Say whether P(good) may be trusted, by FLEET's own history or by all of it.

    The runs of the last 60 days are put before the judge again, one by one. Of
    the machines that were given a P, so many turned out good by all their runs,
    and so many should have. Machines of which that is not known are left out:
    those with fewer than 3 independent runs afterwards, unless they are plainly
    good or slow by now. A machine counts once in a row.
    """
    from controller.cli.books import books
    from controller.cli.cases import Cases

    with books(ledger) as known:
        if fleet is not None:
            known.fleet(fleet)
        found = Cases(known).calibration(fleet)
    if form in {"json", "yaml"}:
        show_record(_record(found), form)
        return
    table([_cells(band) for band in found.bands])
    print()
    say(f"{found.verdict}.")
    say(f"{found.left_out} of {found.machines} machines with such a P are left out: not known well enough yet.")


def _cells(band: "Band") -> dict[str, str]:
    return {
        "P": f"{band.low:.1f} to {band.high:.1f}",
        "MACHINES": str(band.machines),
        "GOOD": str(band.good),
        "EXPECTED": f"{band.expected:.1f}",
    }


def _record(found: "Calibration") -> dict[str, object]:
    """The same for programs."""
    rows = [
        {"from": b.low, "to": b.high, "machines": b.machines, "good": b.good, "expected": round(b.expected, 3)}
        for b in found.bands
    ]
    return {"items": rows, "machines": found.machines, "leftOut": found.left_out, "verdict": found.verdict}
