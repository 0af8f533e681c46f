"""When a schedule in cron's five fields comes, in a time zone. Used by the manifest to check, and by `plan/windows.py`.

As Debian's cron has it: a time that the clocks skip comes when they have gone on, a time that they repeat comes once,
and a schedule whose minute or hour begins with * goes by the time that passes.
"""

import difflib
import math
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache

from cronsim import CronSim, CronSimError

FIELDS = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day of month": "1 to 31",
    "month": "1 to 12 or JAN to DEC",
    "day of week": "0 to 7 or SUN to SAT",
}
MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")


def _field(number: str, *more: str, names: tuple[str, ...] = ()) -> str:
    """A regular expression for a field: numbers or names, ranges and steps of them, and what else it may hold."""
    one = f"({'|'.join((f'0*({number})', *names))})"
    entry = "|".join((rf"(\*|{one}(-{one})?)(/0*[1-9][0-9]*)?", *more))
    return f"({entry})(,({entry}))*"


PATTERNS = {
    "minute": _field("[0-9]|[1-5][0-9]"),
    "hour": _field("[0-9]|1[0-9]|2[0-3]"),
    "day of month": _field("[1-9]|[12][0-9]|3[01]", "LW?(/0*[1-9][0-9]*)?"),
    "month": _field("[1-9]|1[0-2]", names=MONTHS),
    "day of week": _field("[0-7]", "0*[0-7]L", f"(0*[0-7]|{'|'.join(DAYS)})#0*[1-5]", names=DAYS),
}
"""What the fields look like, in upper case: regular expressions that RE2 reads too, for the cluster's schema. They let
pass ranges that end before they start, and days that never come."""

_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


def unless_cron(cron: str) -> str | None:
    """What is wrong with a schedule, None when nothing is."""
    parts = cron.split()
    if len(parts) != len(FIELDS):
        return f"must have five fields, {', '.join(FIELDS)}, such as 0 3 * * *; it has {len(parts)}"
    for index, (name, bounds) in enumerate(FIELDS.items()):
        alone = ["*"] * len(FIELDS)
        alone[index] = parts[index]
        if not _comes(" ".join(alone)):
            return f"has a wrong {name}: must be {bounds}, written as *, 3, 1-5, 1,5 or */2"
    return None if _comes(cron) else "never comes: no such day is in such a month"


def _comes(cron: str) -> bool:
    """Whether a schedule can be read, and comes within fifty years."""
    try:
        return next(CronSim(cron, _EPOCH), None) is not None
    except (CronSimError, ValueError):  # ValueError: a number of thousands of digits
        return False


def unless_zone(name: str) -> str | None:
    """What is wrong with a time zone's name, None when nothing is."""
    known = _zones()
    if name in known:
        return None
    by_word = {word.casefold(): zone for zone in sorted(known) for word in (zone.rpartition("/")[2], zone)}
    word = name.strip().replace(" ", "_").casefold()
    close = [word] if word in by_word else difflib.get_close_matches(word, by_word, n=2, cutoff=0.75)
    zones = list(dict.fromkeys(by_word[word] for word in close))
    meant = f"; did you mean {' or '.join(zones)}?" if zones else " such as UTC or Europe/Berlin"
    return f"must be the IANA name of a time zone{meant}"


@cache
def _zones() -> frozenset[str]:
    """The names that mean the same on every machine."""
    return frozenset(zoneinfo.available_timezones() - {"localtime", "Factory"})


def openings(cron: str, zone: str, *, after: float) -> Iterator[float]:
    """The times at which a schedule comes, in Unix seconds, ascending, each later than `after`.

    Ends when it does not come for fifty years. Takes what `unless_cron` and `unless_zone` have nothing against.
    """
    last = after
    for at in CronSim(cron, datetime.fromtimestamp(math.floor(after), zoneinfo.ZoneInfo(zone))):
        if at.timestamp() > last:  # a repeated hour's second half would give the first half again
            last = at.timestamp()
            yield last
