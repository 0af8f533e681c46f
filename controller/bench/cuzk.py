"""The log of `cuzk-bench batch`: a header, one line for each proof in the order of submission, and a summary.

    === Batch Benchmark ===
    count:       12
    concurrency: 5

      [1/12] COMPLETED — 143.6s (prove=86213 ms, queue=394 ms)
      ...
    === Batch Summary ===
    total time:    722.4s
    completed:     12
    failed:        0
    throughput:    0.997 proofs/min (60.2s/proof)

The rate is the makespan's, all proofs over all the time, as the program prints it: times of single proofs overlap, and
say only how steady the run was. A log whose numbers contradict each other has no rate.
"""

import heapq
import math
import re
import statistics

from controller.bench.rates import Reading, number, reading

LEAST_ERROR = 0.03  # relative, of a batch's rate, whatever its blocks say
BLOCK = 2  # proofs that are on the GPU at once: they end in bunches of so many
LEAST_BLOCKS = 3  # for their spread to mean anything
UNSTEADY = 4  # errors between the two halves of a run
MOST = 10_000  # proofs remembered
ROUNDING = 0.0006  # of the printed proofs/min, and a bit

_FIELD = re.compile(
    r"\s*(?P<name>count|concurrency|total time|completed|failed|throughput):"
    r"\s+(?P<value>[^\s()]+?)s?(?:\s+(?P<unit>\S+).*)?"
)
_PROOF = re.compile(r"\s*\[(?P<nth>\d+)/(?P<of>\d+)\]\s+(?P<status>[A-Z]+)(?:\s+\S+\s+(?P<wall>[^\s()]+?)s\b)?")
_HEADER = "=== Batch Benchmark ==="


class CuzkReader:
    """Follows one log; a second header starts over."""

    def __init__(self, *, wanted: str) -> None:
        self._wanted = wanted
        self._begin()

    def _begin(self) -> None:
        self._fields: dict[str, tuple[str, str]] = {}
        self._walls: list[float] = []
        self._bad = ""

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.strip() == _HEADER:
            self._begin()
        elif match := _PROOF.match(line):
            wall = number(match["wall"] or "")
            if match["status"] != "COMPLETED":
                self._bad = self._bad or f"proof {match['nth']} of {match['of']}: {match['status']}"
            elif wall is not None and len(self._walls) < MOST:
                self._walls.append(wall)
        elif match := _FIELD.fullmatch(line):
            self._fields[match["name"]] = (match["value"], match["unit"] or "")

    def result(self) -> Reading:
        """What the lines so far say."""
        count, completed, failed = (self._number(name) for name in ("count", "completed", "failed"))
        total, printed = self._number("total time"), self._number("throughput")
        if self._bad or failed:
            return Reading(detail=self._bad or f"{failed:g} proofs failed")
        if completed is None or failed is None or not total or printed is None:
            return Reading(detail=f"no summary after {len(self._walls)} proofs")
        if completed != (count or completed):
            return Reading(detail=f"{completed:g} of {count:g} proofs were made")
        minutes = total / 60.0
        if abs(completed / minutes - printed) > ROUNDING + 0.01 * printed:
            return Reading(detail=f"{completed:g} proofs in {total:g} s are not {printed:g} proofs/min")
        unit = self._fields["throughput"][1] or "proofs/min"
        evidence = f"{completed:g} proofs in {total:g} s"
        made = reading(completed / minutes, unit, wanted=self._wanted, evidence=evidence)
        error, unsteady = self._spread(total)
        return (
            Reading(rate=made.rate, detail=made.detail, error=error, count=int(completed), disturbed=unsteady)
            if made.rate is not None
            else made
        )

    def _number(self, name: str) -> float | None:
        return number(self._fields.get(name, ("", ""))[0])

    def _spread(self, total: float) -> tuple[float, bool]:
        """The relative error of the rate, and whether its halves differ."""
        ends = _ends(self._walls, slots=int(self._number("concurrency") or 1))
        if not ends or abs(ends[-1] - total) > 0.01 * total + 0.1 * len(ends):
            return LEAST_ERROR, False
        blocks = [last - first for first, last in zip(ends[::BLOCK], ends[BLOCK::BLOCK], strict=False)]
        if len(blocks) < LEAST_BLOCKS:
            return LEAST_ERROR, False
        mean = statistics.fmean(blocks)
        error = max(LEAST_ERROR, statistics.stdev(blocks) / mean / math.sqrt(len(blocks)))
        half = len(blocks) // 2
        apart = abs(statistics.fmean(blocks[:half]) - statistics.fmean(blocks[-half:])) / mean
        return error, apart > UNSTEADY * error


def _ends(walls: list[float], *, slots: int) -> list[float]:
    """When each proof ended, seconds from the start, in order of ending: the next is submitted as a slot falls free."""
    free = [0.0] * max(1, min(slots, len(walls)))
    ends = []
    for wall in walls:
        end = heapq.heappop(free) + wall
        heapq.heappush(free, end)
        ends.append(end)
    return sorted(ends)
