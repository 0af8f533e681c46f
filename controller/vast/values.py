"""Reading single values off the wire: what is not usable becomes None, never zero and never an exception.

vast.ai writes numbers as numbers or as strings, and sometimes null, NaN, infinity or a sentinel. `wire` builds records
of these.
"""

import json
import math
from typing import Any

from controller.model.money import MICRO, MicroUsd, micro

MAX_ID = 2**53  # beyond this a JSON number is no longer an exact id
MAX_USD_PER_HOUR = 10_000.0  # above this no price is meant; it also keeps sums small
MAX_BALANCE_USD = 1e9


def parse(body: bytes) -> Any:
    """The JSON in `body`, its NaN and infinities as None. None when it is not JSON: no caller takes null for data."""
    try:
        return json.loads(body, parse_constant=lambda _: None)
    except (ValueError, RecursionError):
        return None


def number(value: Any) -> float | None:
    """A finite number, also from a string; True and False are not numbers."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        read = float(value)
    except (ValueError, OverflowError):
        return None
    return read if math.isfinite(read) else None


def positive(value: Any) -> float | None:
    """A number above zero: vast.ai writes 0 and -1 for what it does not know."""
    read = number(value)
    return read if read is not None and read > 0 else None


def nonnegative(value: Any) -> float | None:
    """A number that is not below zero."""
    read = number(value)
    return read if read is not None and read >= 0 else None


def fraction(value: Any) -> float | None:
    """A number from 0 to 1."""
    read = number(value)
    return read if read is not None and 0 <= read <= 1 else None


def whole(value: Any) -> int | None:
    """A whole number not below zero: a count, a port, an id."""
    read = number(value)
    if read is None or not read.is_integer() or not 0 <= read <= MAX_ID:
        return None
    return int(read)


def identity(value: Any) -> int | None:
    """An id: a whole number above zero."""
    return whole(value) or None


def text(value: Any) -> str | None:
    """A string without the blanks and line ends that vast.ai leaves around it; None when nothing is left."""
    if not isinstance(value, str):
        return None
    return value.encode("utf-8", "replace").decode().strip() or None  # a lone surrogate cannot be printed or stored


def line(value: Any, *, most: int = 200) -> str:
    """A string as one printable line of at most `most` characters; empty when there is none."""
    printable = "".join(c if c.isprintable() else " " for c in text(value) or "")
    return " ".join(printable.split())[:most]


def price(value: Any) -> MicroUsd | None:
    """Dollars an hour. None when unreadable, absurd, or nothing at all: what cannot be read is not free."""
    read = positive(value)
    return (micro(read) or None) if read is not None and read <= MAX_USD_PER_HOUR else None


def balance(value: Any) -> MicroUsd | None:
    """Dollars of an account, below zero when it owes."""
    read = number(value)
    return round(read * MICRO) if read is not None and abs(read) <= MAX_BALANCE_USD else None
