"""What would be right instead: pydantic's findings in the manifest's own words. Used by `manifest.py` alone."""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from pydantic_core import ErrorDetails

from controller.model.document import Steps
from controller.model.explain import field_at, fields_of, section_at

_SHOWN = 60  # characters of a value that are worth printing


def remedy(found: ErrorDetails) -> str:
    """What would be right, for one of pydantic's findings."""
    kind, path, value = found["type"], found["loc"], found["input"]
    if kind in _FIXED:
        return _FIXED[kind]
    if kind in _BY_BOUND:
        return _BY_BOUND[kind].format_map(found["ctx"])
    if kind in _BY_PLACE:
        return _BY_PLACE[kind](path, value)
    context: Mapping[str, Any] = found.get("ctx", {})
    return str(context.get("text") or context.get("error") or found["msg"].lower())


def shown(path: Steps, root: object) -> str:
    """The scalar at a path for print; empty when it may not be shown, or when there is none."""
    value = root
    for step in path:
        if isinstance(value, dict | list):
            value = value.get(step) if isinstance(value, dict) else value[int(step)]
    if isinstance(value, dict | list) or value is None or not may_show(path):
        return ""
    return json.dumps(value, ensure_ascii=False)


def short(text: str) -> str:
    """A text for print, by its length when it is long."""
    return text if len(text) <= _SHOWN else f"{len(text)} characters"


def may_show(path: Steps) -> bool:
    """Whether what stands at this path may be printed: in a declared field, and not below env."""
    return field_at(path) is not None and not any(str(step).startswith("env") for step in path)


def spell(path: Steps) -> str:
    """A path as people write it: `spec.shapes[0].gpu`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{_word(step)}" for step in path)
    return "".join(steps).removeprefix(".")


def _word(key: str) -> str:
    return key if re.fullmatch(r"[\w/-]{1,60}", key) else short(json.dumps(key))


def _meaning(path: Steps) -> str:
    """The first sentence of the field's description."""
    field = field_at(path)
    return ((field.description if field else None) or "").split(". ")[0].removesuffix(".")


def _unknown(path: Steps, _: object) -> str:
    section = section_at(path[:-1])
    known = list(fields_of(section)) if section else []
    wanted = str(path[-1]).replace("_", "").lower()
    folded = {name.lower(): name for name in known}
    if close := difflib.get_close_matches(wanted, folded, n=1):
        return f"no such key: did you mean {folded[close[0]]}?"
    return f"no such key: there are {', '.join(known)}"


def _no_number(_: Steps, value: object) -> str:
    if not isinstance(value, str) or not value.strip().replace(",", "", 1).replace(".", "", 1).isdecimal():
        return "must be a number such as 10 or 0.5"
    return "must be a number with a point" if "," in value else "must be a number, without quotes"


def _no_whole_number(path: Steps, value: object) -> str:
    return (
        _no_number(path, value)
        .replace("number such as 10 or 0.5", "whole number")
        .replace("a number", "a whole number")
    )


def _no_text(path: Steps, value: object) -> str:
    meaning = _meaning(path)
    if meaning:
        return f"must be text: {meaning}"
    return "must be text" if isinstance(value, dict | list) else "must be text: put it in quotes"


def _no_fit(path: Steps, value: object) -> str:
    return f"does not fit: {_meaning(path)}" if str(value).strip() else "must not be empty"


_FIXED = {
    "bool_type": "must be true or false",
    "finite_number": "must be a finite number",
    "tuple_type": "must be a list",
    "model_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
}
_BY_BOUND = {
    "greater_than": "must be above {gt:.15g}",
    "greater_than_equal": "must be at least {ge:.15g}",
    "less_than_equal": "must be at most {le:.15g}",
    "string_too_long": "must be at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
    "literal_error": "must be {expected}",
}
_BY_PLACE: dict[str, Callable[[Steps, object], str]] = {
    "missing": lambda path, _: f"is missing: {_meaning(path)}",
    "extra_forbidden": _unknown,
    "float_type": _no_number,
    "int_type": _no_whole_number,
    "string_type": _no_text,
    "string_pattern_mismatch": _no_fit,
}
