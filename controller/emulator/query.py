"""vast.ai's filter language: {field: {operator: value}}, and the order and limit of a search.

Numbers may come as strings; a scalar where a filter belongs is refused as the real service refuses it. Called by the
search routes and by the instance list.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.emulator.faults import Refusal, refusal

SHAPE = ("order", "type", "limit", "allocated_storage", "select_cols", "disable_bundling")
DEFAULTS = {"verified": {"eq": True}, "external": {"eq": False}, "rentable": {"eq": True}}  # POST /bundles/ only
BID_TYPES = ("bid", "interruptible")
DEFAULT_STORAGE_GB = 8.0

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Search:
    """A parsed search: filters, order, limit (None: the cap alone), disk in GB, and whether it asks for bids."""

    filters: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    order: tuple[tuple[str, bool], ...] = (("score", True),)  # field, descending
    limit: int | None = None
    storage_gb: float = DEFAULT_STORAGE_GB
    bid: bool = False


def parse(body: Mapping[str, Any], *, defaults: Mapping[str, Any]) -> Search:
    """Read a search body.

    Raises:
        Refusal: 400 bad_request, naming every filter that is not an object of known operators.
    """
    filters = {**defaults, **{k: v for k, v in body.items() if k not in SHAPE}}
    wrong = [f"q.{k}: Input should be a valid dictionary" for k, v in filters.items() if not isinstance(v, dict)]
    wrong += [
        f"q.{k}.{op}: Extra inputs are not permitted"
        for k, v in filters.items()
        if isinstance(v, dict)
        for op in v
        if op not in OPERATORS
    ]
    if wrong:
        raise refusal("bad_request", msg="; ".join(wrong))
    order = tuple((name, str(way).lower() == "desc") for name, way in body.get("order") or [["score", "desc"]])
    limit = body.get("limit")
    return Search(
        filters=filters,
        order=order,
        limit=None if limit is None else max(0, int(limit)),
        storage_gb=float(body.get("allocated_storage") or DEFAULT_STORAGE_GB),
        bid=body.get("type") in BID_TYPES,
    )


def run(search: Search, rows: Iterable[Row], *, cap: int) -> list[dict[str, Any]]:
    """Return the rows that pass, in order, never more than the cap."""
    found = [row for row in rows if matches(row, search.filters)]
    for name, descending in reversed(search.order):
        found.sort(key=lambda row, name=name: sortable(value_of(row, name)), reverse=descending)  # type: ignore[misc]
    return [dict(row) for row in found[: cap if search.limit is None else min(cap, search.limit)]]


def matches(row: Row, filters: Mapping[str, Mapping[str, Any]]) -> bool:
    """Tell whether a row passes every filter."""
    return all(
        OPERATORS[op](value_of(row, name), wanted) for name, tests in filters.items() for op, wanted in tests.items()
    )


def value_of(row: Row, name: str) -> Any:
    """Return what a filter on this name looks at, which is not always the field of that name."""
    if name == "id":
        return None  # the real search finds nothing by it; ask_contract_id is the name that works
    if name == "geolocation":
        place = row.get("geolocation")
        return place.rsplit(",", 1)[-1].strip() if place else None
    if name == "driver_version":
        return row.get("driver_vers")
    if name == "verified":
        return row.get("verification") == "verified"
    if name == "datacenter":
        return row.get("hosting_type") == 1
    value = row.get(name)
    return bool(value) if name == "external" else value


def sortable(value: Any) -> tuple[int, float, str]:
    """Return a key that puts any two values in an order: null and NaN first, numbers, then text."""
    number = _number(value)
    if number is not None:
        return (1, number, "")
    return (0, 0.0, "") if value is None or isinstance(value, float) else (2, 0.0, str(value))


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return None if math.isnan(number) else number


def _equal(have: Any, want: Any) -> bool:
    if isinstance(have, bool):
        return have == (str(want).lower() in ("true", "1", "1.0"))
    if isinstance(have, str):
        return have == str(want)
    left, right = _number(have), _number(want)
    return left == right if left is not None and right is not None else have is want


def _ordered(test: Callable[[float, float], bool]) -> Callable[[Any, Any], bool]:
    def compare(have: Any, want: Any) -> bool:
        left, right = _number(have), _number(want)
        return left is not None and right is not None and test(left, right)

    return compare


def _among(have: Any, want: Any) -> bool:
    return any(_equal(have, one) for one in (want if isinstance(want, list) else [want]))


OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "eq": _equal,
    "neq": lambda have, want: not _equal(have, want),
    "lt": _ordered(lambda a, b: a < b),
    "lte": _ordered(lambda a, b: a <= b),
    "gt": _ordered(lambda a, b: a > b),
    "gte": _ordered(lambda a, b: a >= b),
    "in": _among,
    "notin": lambda have, want: not _among(have, want),
    "nin": lambda have, want: not _among(have, want),
}

__all__ = ["DEFAULTS", "Refusal", "Search", "matches", "parse", "run"]
