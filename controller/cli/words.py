"""Numbers, times and money as people read them."""

from datetime import UTC, datetime

MINUTE, HOUR, DAY = 60, 3600, 86400
NOTHING = "-"

WAYS = {"keep": "keep it", "measure": "measure it again", "replace": "replace it"}
MEANS = {
    "Unknown": "it has no usable run yet, and is measured",
    "Accepted": "it works, and is only checked now and then",
    "Probation": "it works, and is measured again soon",
    "Challenged": "it works until a better one is found",
    "Rejected": "it is too slow, and is replaced",
}
ONCE_GONE = {
    "Unknown": "nothing is known of it",
    "Accepted": "it would do",
    "Probation": "in doubt, and so rented again only where there is no other",
    "Challenged": "in doubt, and so rented again only where there is no other",
    "Rejected": "too slow, and not rented again until that is too old to believe",
}

DECISIONS = {
    "Unknown": "No run tells anything of the instance yet. It is measured. Of a condition: nobody can tell whether it "
    "holds.",
    "Accepted": "By what its runs say, keeping the instance costs least, or P is acceptAbove or more. It works, and is "
    "measured again after recheckHours.",
    "Probation": "The instance is in doubt, and another run is worth what it costs. It works and counts, and is "
    "measured again soon.",
    "Challenged": "The instance may be too slow, and finding another is expected to cost less than keeping it, or P is "
    "under replaceBelow. It works and counts while a successor is tried, and goes when that one works.",
    "Rejected": "The instance is too slow: P(rate >= minRate) is under 0.40, on evidence enough. It goes as soon as "
    "maxUnavailable allows, and its machine is left alone until that is too old to believe.",
}
PHASES = {  # but Preparing, which is a reason too
    "Intended": "The rental is written down, and vast.ai is asked for it. It counts against the budget. Wait.",
    "Unclear": "The answer to the rental was lost, so it may exist. It counts until its label tells. Wait.",
    "Launching": "The instance is rented, and vast.ai starts its container. Wait.",
    "Measuring": "The benchmark runs, or is about to. Wait.",
    "Admitted": "The instance was measured, works, and counts towards the target.",
    "Releasing": "The instance is given up. What it does is brought to an end before it is destroyed.",
    "Destroying": "The instance is being destroyed, and may bill until two complete listings no longer have it.",
    "Gone": "The instance is proven gone, or was never rented. It bills no more.",
}


def span(seconds: float | None) -> str:
    """A span of time in its two largest units: 45s, 12m, 3h05m, 2d4h."""
    if seconds is None:
        return NOTHING
    whole = max(0, int(seconds))
    if whole < 2 * MINUTE:
        return f"{whole}s"
    if whole < HOUR:
        return f"{whole // MINUTE}m"
    if whole < DAY:
        return f"{whole // HOUR}h{whole % HOUR // MINUTE:02d}m"
    return f"{whole // DAY}d{whole % DAY // HOUR}h"


def since(at: float | None, now: float) -> str:
    """How long ago."""
    return NOTHING if at is None else span(now - at)


def iso(at: float | None) -> str | None:
    """Unix seconds as ISO 8601, UTC, for machines and pipes."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def money(usd: float | None, places: int = 2) -> str:
    """Dollars: sums with two decimals, prices an hour with three, prices a piece of work with five."""
    return NOTHING if usd is None else f"{usd:.{places}f}"


def price(usd: float | None) -> str:
    """Dollars an hour."""
    return money(usd, 3)


def rate(value: float | None) -> str:
    """A rate in three or four digits."""
    if value is None:
        return NOTHING
    if 0.0 < abs(value) < 10:  # noqa: PLR2004 - as many digits as below
        return f"{value:.3g}"
    return f"{value:.1f}" if abs(value) < 1000 else f"{value:.0f}"  # noqa: PLR2004


def share(value: float | None) -> str:
    """A probability."""
    return NOTHING if value is None else f"{value:.2f}"


def percent(value: float | None) -> str:
    """A share as a percentage, without decimals."""
    return NOTHING if value is None else f"{value:.0%}"


def number(value: float | None, unit: str = "") -> str:
    """A whole number, or one shown as such, and its unit."""
    return NOTHING if value is None else f"{value:.0f}{unit}"


def hours(value: float | None) -> str:
    """Hours of rent."""
    return NOTHING if value is None else f"{value:.1f}"


def count(number: int, noun: str) -> str:
    """`1 instance`, `2 instances`."""
    return f"{number} {noun}" + ("" if number == 1 else "s")
