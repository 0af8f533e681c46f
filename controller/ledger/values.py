"""Fields of records in the words of objects, and back: names, times, money.

Times are RFC 3339 in objects and unix seconds in records, money is USD and micro-dollars.
"""

from datetime import UTC, datetime
from typing import Any

from pydantic.alias_generators import to_camel

from controller.model.money import micro, usd

TIMES = frozenset(
    (
        "phase_since",
        "created_at",
        "launched_at",
        "prepared_at",
        "admitted_at",
        "checked_at",
        "read_at",
        "ends_at",
        "absent_since",
        "trouble_since",
        "not_before",
        "cost_until",
        "ended_at",
        "started_at",
        "until",
        "next_run_at",
        "job_since",
    )
)
MONEY = {"price": "pricePerHour", "cost": "cost"}


def rfc3339(at: float) -> str:
    """Unix seconds as Kubernetes has them, to the microsecond."""
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def unix(text: str) -> float:
    """The time that `rfc3339` made, or anybody's of that form."""
    return datetime.fromisoformat(text).timestamp()


def alias(name: str) -> str:
    """A record's field as objects have it."""
    return MONEY.get(name) or to_camel(name).replace("Gib", "GiB")


def out(name: str, value: Any) -> Any:
    """A field's value as objects have it."""
    if value is None:
        return None
    if name in TIMES:
        return rfc3339(value)
    return usd(value) if name in MONEY else value


def back(name: str, value: Any) -> Any:
    """A field's value as records have it."""
    if value is None:
        return None
    if name in TIMES:
        return unix(value)
    return micro(value) if name in MONEY else value


def rounded(value: Any) -> Any:
    """A number to four digits: what is thought wanders in those behind, and would be written for it."""
    return float(f"{value:.4g}") if isinstance(value, float) else value
