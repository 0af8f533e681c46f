"""`vastfleet get`: lists of what the ledger holds."""

from pathlib import Path

import click

from controller.cli import options
from controller.cli.output import show

KINDS = ("fleets", "instances", "machines", "runs")


@click.command("get")
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Of instances, those that are gone too.")
@options.output
@options.ledger
@options.verbose
def command(kind: str, name: str | None, *, everything: bool, form: str, ledger: Path | None) -> None:
    """List fleets, instances, machines or runs, or one of them by NAME.

    Reads the ledger alone, whether or not a controller is running. An
    instance's name is its id on vast.ai, a machine's its machine_id.

    RATE, P(GOOD) and the decision of a machine are what its best GPUs are
    worth to rent anew, with nothing of ours beside them: an instance on it may
    be thought of otherwise.
    """
    from controller.cli import measured, records
    from controller.cli.books import books, unknown
    from controller.cli.cases import Cases

    with books(ledger) as known:
        now, cases = known.now, Cases(known)
        match kind:
            case "fleets":
                found = [known.fleet(name)] if name else list(known.fleets.values())
                rows = [records.fleet(status, now) for status in found]
            case "instances":
                rows = [records.instance_of(known, i) for i in known.instances(name, gone=everything)]
            case "machines":
                machines = [m for m in cases.machines() if name in {None, str(m.id)}]
                rows = [measured.machine(machine, now) for machine in machines]
            case _:
                rows = [measured.run(run, now) for run in cases.runs if name in {None, run.id}]
        if name and not rows:
            names = dict.fromkeys(str(r.machine_id) if kind == "machines" else r.id for r in cases.runs)
            raise unknown(kind.removesuffix("s"), name, names)
        show(rows, form, nothing=f"the ledger has no {kind}")
