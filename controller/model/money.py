"""Money as whole micro-dollars, so that three offers at 0.30 cost exactly 0.90.

Every price inside the controller is a `MicroUsd` an hour; floats of dollars exist only at the wire, in the manifest
and in print.
"""

import math

MicroUsd = int
MICRO = 1_000_000


def micro(usd: float) -> MicroUsd:
    """Dollars to the nearest micro-dollar.

    Raises ValueError on NaN, infinity and negative sums: unreadable is never free.
    """
    if not math.isfinite(usd) or usd < 0:
        raise ValueError(f"{usd!r} is not an amount of money")
    return round(usd * MICRO)


def usd(amount: MicroUsd) -> float:
    """Micro-dollars as dollars, for print and for machine-readable output."""
    return amount / MICRO


def dollars(amount: MicroUsd) -> str:
    """Micro-dollars as people read them: `$0.30`, `$0.2467`, with two to four decimals."""
    text = f"{amount / MICRO:.4f}"
    return "$" + text.removesuffix("0").removesuffix("0")
