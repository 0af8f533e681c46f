"""YAML to Fleets. Used by `source/` for files and by `cli/` for what is piped in.

All that is wrong in a text is told at once, each with its file, line, column and path, what is there and what would be
right; checks between fields wait until the fields themselves are right. Values are shown of declared fields only, and
of env never: a secret put in the wrong place must not end up in a terminal or a log.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from controller.model import remedies
from controller.model.document import Document, Place, Steps, Trouble, Unreadable, documents
from controller.model.fleet import API_VERSION, Fleet

MAX_BYTES = 256 * 1024

_TOO_LONG = f"is longer than {MAX_BYTES // 1024} KiB: split it into several files"


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestError:
    """One thing wrong. `line` and `column` count from 1, 0 for the whole file; `got` is empty when nothing is shown."""

    file: str
    line: int = 0
    column: int = 0
    path: str = ""
    got: str = ""
    message: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        path = f" {self.path}:" if self.path else ""
        got = f" (got {self.got})" if self.got else ""
        line = f"{place}:{path} {self.message}{got}"
        return "".join(shown if shown.isprintable() else ascii(shown)[1:-1] for shown in line)


class ManifestErrors(Exception):  # noqa: N818 - several at once
    """All that is wrong, in the order of the text."""

    def __init__(self, errors: Iterable[ManifestError]) -> None:
        self.errors = tuple(errors)
        super().__init__("\n".join(map(str, self.errors)))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A fleet, and where its name stands."""

    fleet: Fleet
    file: str
    line: int
    column: int


def load_bytes(data: bytes, *, name: str) -> list[Loaded]:
    """The fleets of a file's content. `name` stands for the file in errors. Raises ManifestErrors."""
    if len(data) > MAX_BYTES:
        raise ManifestErrors([ManifestError(file=name, message=_TOO_LONG)])
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:4]:
        raise ManifestErrors([ManifestError(file=name, message="is UTF-16 or UTF-32: save it as UTF-8")])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        wrong = ManifestError(file=name, line=line, column=column, message="is not UTF-8 from here: save it as UTF-8")
        raise ManifestErrors([wrong]) from None
    return load_text(text, name=name)


def load_text(text: str, *, name: str) -> list[Loaded]:
    """The fleets of a text, at least one. `name` stands for the file in errors. Raises ManifestErrors."""
    if len(text.encode(errors="surrogatepass")) > MAX_BYTES:
        raise ManifestErrors([ManifestError(file=name, message=_TOO_LONG)])
    loaded: list[Loaded] = []
    errors: list[ManifestError] = []
    filled = 0
    try:
        for document in documents(text):
            if document.value is None and not document.troubles:
                continue
            filled += 1
            fleet, troubles = _fleet(document)
            errors += [_error(name, trouble) for trouble in troubles]
            if fleet is not None:
                place = document.values["metadata", "name"]
                loaded.append(Loaded(fleet, name, place.line, place.column))
    except Unreadable as unreadable:
        errors.append(_error(name, unreadable.trouble))
        filled += 1
    if not filled:
        errors.append(ManifestError(file=name, message="holds no fleet: write one, see examples/fleet.yaml"))
    errors += duplicates(loaded)
    if errors:
        raise ManifestErrors(sorted(errors, key=lambda error: (error.line, error.column)))
    return loaded


def duplicates(loaded: Iterable[Loaded]) -> list[ManifestError]:
    """An error for each fleet whose name an earlier one has."""
    errors: list[ManifestError] = []
    first: dict[str, Loaded] = {}
    for later in loaded:
        earlier = first.setdefault(later.fleet.name, later)
        if earlier is not later:
            where = f"{earlier.file}:{earlier.line}"
            errors.append(
                ManifestError(
                    file=later.file,
                    line=later.line,
                    column=later.column,
                    path="metadata.name",
                    got=later.fleet.name,
                    message=f"is the name of the fleet in {where} already: give each its own",
                )
            )
    return errors


def _fleet(document: Document) -> tuple[Fleet | None, list[Trouble]]:
    """The document's fleet, or what is wrong with it."""
    value, troubles = document.value, document.troubles
    if not isinstance(value, dict):
        what = Trouble(document.values[()], (), "must be a mapping with apiVersion, kind, metadata and spec")
        return None, troubles or [what]
    if foreign := _foreign(document, value):
        return None, foreign
    try:
        fleet = Fleet.model_validate(value, by_alias=True, by_name=False)
    except ValidationError as error:
        told = {trouble.path[:depth] for trouble in troubles for depth in range(len(trouble.path) + 1)}
        return None, troubles + [
            Trouble(_place(document, found), found["loc"], remedies.remedy(found), _got(document, found))
            for found in error.errors(include_url=False)
            if found["loc"] not in told  # it, or something in it, has been told of: the rest may follow from that
        ]
    return (None if troubles else fleet), troubles


def _foreign(document: Document, value: dict[str, object]) -> list[Trouble]:
    """What says that this is no fleet at all; then nothing else about it is worth saying."""
    return [
        Trouble(
            document.values[key,], (key,), f"must be {right}, which is all that is read", remedies.shown((key,), value)
        )
        for key, right in (("apiVersion", API_VERSION), ("kind", "Fleet"))
        if isinstance(value.get(key), str) and value[key] != right
    ]


def _place(document: Document, found: ErrorDetails) -> Place:
    """Where a finding is: at the wrong key, at the wrong value, or at the nearest thing around what is missing."""
    path: Steps = found["loc"]
    if found["type"] == "extra_forbidden":
        return document.keys[path]
    if path in document.values:
        return document.values[path]
    around = [path[:depth] for depth in range(len(path) - 1, 0, -1)]
    places = (document.keys.get(outer) or document.values.get(outer) for outer in around)
    return next(filter(None, places), document.values[()])


def _got(document: Document, found: ErrorDetails) -> str:
    return "" if found["type"] == "extra_forbidden" else remedies.shown(found["loc"], document.value)


def _error(name: str, trouble: Trouble) -> ManifestError:
    return ManifestError(
        file=name,
        line=trouble.place.line,
        column=trouble.place.column,
        path=remedies.spell(trouble.path),
        got=remedies.short(trouble.got) if remedies.may_show(trouble.path) else "",
        message=trouble.message,
    )
