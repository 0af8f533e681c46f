"""Fleets from files and directories, all of them or none. Called by `cli/` and `runtime/`."""

from collections.abc import Sequence
from pathlib import Path

from controller.model.manifest import MAX_BYTES, Loaded, ManifestError, ManifestErrors, duplicates, load_bytes


def load_paths(paths: Sequence[Path]) -> list[Loaded]:
    """The fleets of these files, and of the *.yaml and *.yml files right in these directories.

    In the order given, a directory's files by name; subdirectories and hidden files are passed over, and a file that is
    given twice is read once. Raises ManifestErrors with all that is wrong in any of them.
    """
    loaded: list[Loaded] = []
    errors: list[ManifestError] = []
    seen: set[Path] = set()
    for path in paths:
        files = _inside(path) if path.is_dir() else [path]
        if not files:
            errors.append(ManifestError(file=str(path), message="holds no *.yaml file: name one, or another directory"))
        for file in files:
            try:
                content = _read(file)  # first: what cannot be read has no place to resolve to
                if (real := file.resolve()) not in seen:
                    seen.add(real)
                    loaded += load_bytes(content, name=str(file))
            except ManifestErrors as wrong:
                errors += wrong.errors
            except OSError as error:
                why = f"cannot be read: {error.strerror or error}"
                errors.append(ManifestError(file=str(file), message=why))
    errors += duplicates(loaded)
    if errors:
        raise ManifestErrors(errors)
    return loaded


def _inside(directory: Path) -> list[Path]:
    found = [*directory.glob("*.yaml"), *directory.glob("*.yml")]
    return sorted(file for file in found if not file.name.startswith(".") and not file.is_dir())


def _read(file: Path) -> bytes:
    """No more of the file than can be refused."""
    with file.open("rb") as content:
        return content.read(MAX_BYTES + 1)
