"""`vastfleet crds`: the custom resource definitions of a cluster, from the models."""

import sys
from pathlib import Path

import click

from controller.cli import options

DIFFER = 1


@click.command("crds")
@click.argument("directory", required=False, type=click.Path(path_type=Path, file_okay=False))
@click.option("--check", is_flag=True, help="Write nothing; say which files in DIRECTORY are not up to date.")
@options.verbose
def command(*, directory: Path | None, check: bool) -> int:
    """Print the custom resource definitions, or write them.

    Without DIRECTORY, print them all, as in: vastfleet crds | kubectl apply
    -f -. With it, write each to a file there, and print the names of those
    that changed. Exit code 1 if --check finds any that would.
    """
    from controller.model.crd import files

    texts = files()
    if directory is None:
        if check:
            raise click.UsageError("--check needs a DIRECTORY to check")
        print("---\n".join(texts.values()), end="")
        return 0
    outdated = {directory / name: text for name, text in texts.items() if _text(directory / name) != text}
    if check:
        for path in outdated:
            told = "is not up to date" if path.exists() else "is missing"
            print(f"{path} {told}: run vastfleet crds {directory}", file=sys.stderr)
        return DIFFER if outdated else 0
    directory.mkdir(parents=True, exist_ok=True)
    for path, text in outdated.items():
        path.write_text(text, encoding="utf-8")
        print(path)
    return 0


def _text(path: Path) -> str | None:
    return path.read_text(encoding="utf-8") if path.exists() else None
