"""A market read from a listing file: real offers, whose absent fields get plausible values that never change.

Called by Market.load.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from controller.emulator.offers import complete

NEEDED = ("id", "machine_id", "gpu_name", "num_gpus")

Row = tuple[dict[str, Any], frozenset[int]]


def read(document: Any, *, seed: int, now: float, rentable: bool) -> Iterator[Row]:
    """Yield each offer with its GPUs.

    Args:
        document: parsed JSON, {"offers": [...]} or a list of rows.
        seed: names the streams that fill absent fields.
        now: unix time at which the market opens; end dates in the past are moved on by the market.
        rentable: take every row for rentable, whatever the file says.

    Raises:
        ValueError: the document is no listing, or a row lacks a field that cannot be guessed.
    """
    rows = document.get("offers") if isinstance(document, dict) else document
    if not isinstance(rows, list) or not rows:
        raise ValueError("expected a list of offers, or an object with one in 'offers'")
    for number, row in enumerate(rows):
        if not isinstance(row, dict):
            raise ValueError(f"offer {number} is no object")  # noqa: TRY004  a file's fault, not a caller's
        absent = [name for name in NEEDED if row.get(name) is None]
        price = row.get("dph_base", row.get("dph_total"))
        if absent or price is None:
            raise ValueError(f"offer {number} lacks {', '.join(absent) or 'dph_base'}")
    sizes: Counter[int] = Counter()
    for row in rows:
        sizes[row["machine_id"]] = max(sizes[row["machine_id"]], _machine_size(row))
    seen: Counter[tuple[int, int]] = Counter()
    for row in rows:
        key, size = (row["machine_id"], row["num_gpus"]), sizes[row["machine_id"]]
        known = {k: v for k, v in row.items() if not k.startswith("_")}
        known |= {"dph_base": row.get("dph_base", row.get("dph_total"))} | ({"rentable": True} if rentable else {})
        blocks = max(1, size // row["num_gpus"])
        first = seen[key] % blocks * row["num_gpus"]
        seen[key] += 1
        gpus = frozenset(range(first, first + row["num_gpus"]))
        yield complete(known, seed=seed, gpus=size, started=now), gpus


def _machine_size(row: dict[str, Any]) -> int:
    """Return how many GPUs the machine has, read off the offer's share of it."""
    count = int(row["num_gpus"])
    if row.get("gpu_frac"):
        return max(count, round(count / float(row["gpu_frac"])))
    cores, share = row.get("cpu_cores"), row.get("cpu_cores_effective")
    return max(count, round(count * float(cores) / float(share))) if cores and share else count
