"""Options that several commands share, and what is made of them."""

import logging
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from controller.model.manifest import Loaded, ManifestError
    from controller.runtime.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])

FORMATS = ("table", "wide", "json", "yaml")
STDIN = "-"


def _log(_context: click.Context, _parameter: click.Parameter, verbosity: int) -> None:
    if verbosity:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
        logging.getLogger("controller").setLevel(logging.DEBUG if verbosity > 1 else logging.INFO)


def verbose(command: Command) -> Command:
    """Add -v."""
    option = click.option("-v", "--verbose", count=True, expose_value=False, callback=_log, help="Log to stderr.")
    return option(command)


def output(command: Command) -> Command:
    """Add -o."""
    text = "How to print: table, wide (a table with more columns), json or yaml."
    return click.option(
        "-o", "--output", "form", type=click.Choice(FORMATS), default="table", metavar="FORMAT", help=text
    )(command)


def ledger(command: Command) -> Command:
    """Add --ledger."""
    text = "Ledger file. Default: $VASTFLEET_LEDGER, or vastfleet/ledger.db in the state directory."
    return click.option("--ledger", type=click.Path(path_type=Path, dir_okay=False), metavar="PATH", help=text)(command)


def owner(command: Command) -> Command:
    """Add --owner."""
    text = "Name in the labels of what is rented. Default: $VASTFLEET_OWNER, or default."
    return click.option("--owner", metavar="NAME", help=text)(command)


def named(_context: click.Context, parameter: click.Parameter, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """Refuse an empty argument: of a path, it would mean the current directory, and all the fleets in it."""
    if "" in ((value,) if isinstance(value, str) else value):
        raise click.BadParameter("is empty; is a variable not set?", param=parameter)
    return value


def paths(command: Command) -> Command:
    """Take manifests."""
    return click.argument("paths", nargs=-1, required=True, metavar="PATH...", callback=named)(command)


def settings(path: Path | None, owner: str | None = None, *, needs_key: bool = True) -> "Settings":
    """The settings of this process. Raises Misconfigured."""
    from controller.runtime.settings import read_settings

    return read_settings(os.environ, ledger=path, owner=owner, needs_key=needs_key)


def manifests(given: tuple[str, ...]) -> "list[Loaded]":
    """The fleets of files, directories and `-`, which is stdin. Raises ManifestErrors with all that is wrong."""
    from controller.model.manifest import MAX_BYTES, ManifestErrors, duplicates, load_bytes
    from controller.source.files import load_paths

    loaded: list[Loaded] = []
    errors: list[ManifestError] = []
    try:
        loaded += load_paths([Path(path) for path in given if path != STDIN])
    except ManifestErrors as wrong:
        errors += wrong.errors
    if STDIN in given:
        try:
            loaded += load_bytes(sys.stdin.buffer.read(MAX_BYTES + 1), name="<stdin>")
        except ManifestErrors as wrong:
            errors += wrong.errors
    errors += [error for error in duplicates(loaded) if STDIN in given]
    if errors:
        raise ManifestErrors(errors)
    return loaded
