"""`vastfleet validate`: all that is wrong in manifests, at once."""

from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import Row, show
from controller.cli.words import money

if TYPE_CHECKING:
    from controller.model.manifest import Loaded


@click.command("validate")
@options.paths
@options.output
@options.verbose
def command(paths: tuple[str, ...], form: str) -> None:
    """Check manifests and say what is wrong with them.

    PATH is a file, a directory of *.yaml files, or - for stdin. Every error
    is told at once, as FILE:LINE:COLUMN, with the field, what is there and
    what would be right. Exit code 2 if there is any.
    """
    show((_row(loaded.fleet.name, loaded) for loaded in options.manifests(paths)), form)


def _row(name: str, loaded: "Loaded") -> Row:
    spec = loaded.fleet.spec
    target = (
        f"{spec.target.rate:g} {spec.benchmark.unit}" if spec.target.rate is not None else f"{spec.target.instances}"
    )
    place = f"{loaded.file}:{loaded.line}"
    cells = {"NAME": name, "TARGET": target, "BUDGET": money(spec.budget_per_hour), "FILE": place, "VALID": "True"}
    more = {"SHAPES": ", ".join(shape.key for shape in spec.shapes)}
    return Row(cells, {"name": name, "file": loaded.file, "line": loaded.line, "valid": True}, more)
