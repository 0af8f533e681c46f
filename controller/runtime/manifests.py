"""Manifests that are read again when they change. Called before each pass of `run`.

What cannot be read, or is wrong, changes nothing: the fleets last read go on, so a missing file destroys nothing.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

from controller.model.fleet import Fleet
from controller.model.manifest import ManifestErrors
from controller.source.files import load_paths

Stamp = tuple[tuple[str, int, int, int], ...]


class Manifests:
    """The fleets of files and directories, as of now.

    Args:
        paths: files and directories.
        refused: told of what is wrong, once for each change of the files.
        changed: told of the fleets before and after, when they are not the same.

    Raises ManifestErrors when made if anything is wrong at the start.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        refused: Callable[[ManifestErrors], None],
        changed: Callable[[tuple[Fleet, ...], tuple[Fleet, ...]], None],
    ) -> None:
        self._paths = tuple(paths)
        self._refused = refused
        self._changed = changed
        self._stamp: Stamp | None = _stamp(self._paths)
        self._fleets = tuple(loaded.fleet for loaded in load_paths(self._paths))

    def reread(self) -> None:
        """Read the files at the next call of `current`, changed or not."""
        self._stamp = None

    def current(self) -> tuple[Fleet, ...]:
        """The fleets, read again if a file has changed."""
        stamp = _stamp(self._paths)
        if stamp == self._stamp:
            return self._fleets
        self._stamp = stamp
        try:
            fleets = tuple(loaded.fleet for loaded in load_paths(self._paths))
        except ManifestErrors as wrong:
            self._refused(wrong)
            return self._fleets
        if fleets != self._fleets:
            before, self._fleets = self._fleets, fleets
            self._changed(before, fleets)
        return self._fleets


def _stamp(paths: Sequence[Path]) -> Stamp:
    """What tells one state of the files from another: names, inodes, sizes and times of change."""
    found: list[tuple[str, int, int, int]] = []
    for path in paths:
        try:
            for file in (path, *(sorted(path.iterdir()) if path.is_dir() else ())):
                seen = file.stat()
                found.append((str(file), seen.st_ino, seen.st_size, seen.st_mtime_ns))
        except OSError as error:
            found.append((str(path), error.errno or 0, 0, 0))
    return tuple(found)
