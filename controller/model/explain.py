"""What each field of the manifest means, from its declaration. Used by `vastfleet explain` and by `remedies.py`."""

import difflib
import re
import types
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from controller.model.fleet import Fleet
from controller.model.section import Section

_WORDS: dict[object, str] = {
    float: "number",
    int: "whole number",
    str: "text",
    bool: "true or false",
    SecretStr: "text",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldHelp:
    """One field: its path, what it holds, what it means, and the names of the fields in it."""

    path: str
    holds: str
    required: bool
    description: str
    fields: tuple[str, ...]


def section_at(path: Sequence[str | int]) -> type[Section] | None:
    """The part of the manifest that a path leads to, indices skipped; None when it leads to a value or nowhere."""
    section: type[Section] = Fleet
    for name in path:
        if isinstance(name, int):
            continue
        found = fields_of(section).get(name)
        inner = _section_in(found.annotation) if found else None
        if inner is None:
            return None
        section = inner
    return section


def fields_of(section: type[Section]) -> dict[str, FieldInfo]:
    """The fields of a part, by the manifest's names."""
    return {info.alias or name: info for name, info in section.model_fields.items()}


def field_at(path: Sequence[str | int]) -> FieldInfo | None:
    """The declaration of the field that a path ends at, None when there is none; items of a list count as the list."""
    names = [name for name in path if isinstance(name, str)]
    section = section_at(names[:-1]) if names else None
    return fields_of(section).get(names[-1]) if section else None


def explain_field(path: str) -> FieldHelp:
    """Help on a field such as `spec.require.ramGiB` or `spec.shapes[0].gpu`. Raises LookupError naming the nearest."""
    names = re.sub(r"\[[0-9]*\]", "", path).strip(".").split(".")
    for depth, name in enumerate(names):
        section = section_at(names[:depth])
        if section is None:
            raise LookupError(f"{'.'.join(names[:depth])} has no fields in it")
        known = fields_of(section)
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise LookupError(f"{'.'.join([*names[:depth], name])} is no field; {meant}")
    info = field_at(names)
    inner = section_at(names)
    assert info is not None  # noqa: S101 - the loop has found it
    return FieldHelp(
        path=".".join(names),
        holds=_holds(info.annotation),
        required=info.is_required(),
        description=info.description or "",
        fields=tuple(fields_of(inner)) if inner else (),
    )


def _section_in(annotation: object) -> type[Section] | None:
    if isinstance(annotation, type) and get_origin(annotation) is None:
        return annotation if issubclass(annotation, Section) else None
    return next((found for part in get_args(annotation) if (found := _section_in(part))), None)


def _holds(annotation: object) -> str:
    """What a field holds, in words."""
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin in (Union, types.UnionType):
        return _holds(parts[0])
    if origin is Literal:
        return " or ".join(map(str, parts))
    if origin is tuple:
        return f"list of {_holds(parts[0])}"
    if origin is dict:
        return "mapping of names to text"
    if parts:  # Annotated
        return _holds(parts[0])
    return _WORDS.get(annotation, "mapping")
