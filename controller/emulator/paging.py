"""The v1 instance list's query: filters on stored columns, a total order, and a keyset cursor.

Called by instance_routes.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any

from controller.emulator import query
from controller.emulator.faults import refusal

MAX_ROWS, LEAST_ROWS = 25, 5
STORED = frozenset((
    "id", "label", "actual_status", "intended_status", "cur_state", "next_state", "gpu_name", "verification",
    "machine_id", "host_id", "image_uuid", "is_bid", "start_date", "end_date", "template_id", "template_hash_id",
    "geolocation", "country_code",
))  # fmt: skip

Row = Mapping[str, Any]
Order = tuple[tuple[str, bool], ...]  # column, descending


@dataclass(frozen=True, slots=True)
class Page:
    """One page of rows, the rows that matched in all, and the cursor of the next page."""

    rows: list[dict[str, Any]]
    total: int
    next_token: str | None


def page_of(rows: list[dict[str, Any]], parameters: Mapping[str, str]) -> Page:
    """Filter, order and cut rows as the query parameters say.

    Raises:
        Refusal: 400 invalid_request or invalid_token.
    """
    filters = _json(parameters, "select_filters", {})
    bad = [name for name in filters if name not in STORED]
    if bad:
        raise refusal("invalid_request", msg=f"Error in query parameters: {bad[0]} is not a valid search key")
    order = _order(_json(parameters, "order_by", []))
    found = query.run(query.parse(filters, defaults={}), rows, cap=len(rows))
    found.sort(key=cmp_to_key(lambda a, b: _compare(_key(a, order), _key(b, order), order)))
    after = parameters.get("after_token")
    rest = found
    if after:
        last = _decode(after, order)
        rest = [row for row in found if _compare(_key(row, order), last, order) > 0]
    limit = _limit(parameters.get("limit"))
    page = rest[:limit]
    token = _encode(_key(page[-1], order)) if len(rest) > limit else None
    wanted = _json(parameters, "select_cols", ["*"])
    if "*" not in wanted:
        page = [{name: row.get(name) for name in wanted} for row in page]
    return Page(page, len(found), token)


def _limit(text: str | None) -> int:
    try:
        limit = MAX_ROWS if text is None else int(text)
    except ValueError:
        raise refusal("invalid_request", msg="Error in query parameters: limit") from None
    return min(limit, MAX_ROWS) if limit > 0 else LEAST_ROWS


def _json(parameters: Mapping[str, str], name: str, default: Any) -> Any:
    try:
        value = json.loads(parameters[name]) if parameters.get(name) else default
    except ValueError:
        raise refusal("invalid_request", msg=f"Error in query parameters: {name}") from None
    if not isinstance(value, type(default)):
        raise refusal("invalid_request", msg=f"Error in query parameters: {name}")
    return value


def _order(columns: list[Any]) -> Order:
    try:
        order = tuple((str(c["col"]), str(c.get("dir", "asc")).lower() == "desc") for c in columns)
    except (TypeError, KeyError, AttributeError):
        raise refusal("invalid_request", msg="Error in query parameters: order_by") from None
    if any(column not in STORED for column, _ in order):
        raise refusal("invalid_request", msg="Error in query parameters: order_by")
    return order if any(column == "id" for column, _ in order) else (*order, ("id", False))


def _key(row: Row, order: Order) -> list[Any]:
    return [row.get(column) for column, _ in order]


def _compare(left: list[Any], right: list[Any], order: Order) -> int:
    for a, b, (_, descending) in zip(left, right, order, strict=True):
        x, y = query.sortable(a), query.sortable(b)
        if x != y:
            return (1 if x > y else -1) * (-1 if descending else 1)
    return 0


def _encode(values: list[Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps({"values": values}).encode()).decode()


def _decode(token: str, order: Order) -> list[Any]:
    try:
        values = json.loads(base64.urlsafe_b64decode(token))["values"]
    except (ValueError, KeyError, TypeError):
        raise refusal("invalid_token") from None
    if not isinstance(values, list) or len(values) != len(order):
        raise refusal("invalid_token")
    return values
