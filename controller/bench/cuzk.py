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
say only how steady the run was, and whether as many were in flight as should have been: by Little's law that is the
rate times the mean wall time. A log whose numbers contradict each other has no rate.
"""

import heapq
import math
import re
import statistics
from dataclasses import replace

from controller.bench.rates import MOST_WORK, Reading, number, reading

LEAST_ERROR = 0.03  # relative, of a batch's rate, whatever its blocks say
BLOCK = 2  # proofs that are on the GPU at once: they end in bunches of so many
LEAST_BLOCKS = 3  # for their spread to mean anything
UNSTEADY = 4  # errors between the two halves of a run
MOST = 10_000  # proofs remembered
ROUNDING = 0.0006  # of the printed proofs/min, and a bit
EACH_ROUNDING = 0.06  # of the printed s/proof, likewise
OFF = 0.4  # share by which the proofs in flight may differ from those asked for

_FIELD = re.compile(
    r"\s*(?P<name>count|concurrency|total time|completed|failed|throughput):"
    r"\s+(?P<value>[^\s()]+?)s?(?:\s+(?P<unit>[^\s()]+))?"
    r"(?:\s+\((?P<each>[^\s()]+?)s/proof\))?(?:\s.*)?"
)
_PROOF = re.compile(
    r"\s*\[(?P<nth>\d+)/(?P<of>\d+)\]\s+(?P<status>[A-Z]+)(?:\s+\S+\s+(?P<wall>[^\s()]+?)s\b)?"
    r"(?:\s+\(prove=(?P<prove>\d+) ms)?"
)
_HEADER = "=== Batch Benchmark ==="


class CuzkReader:
    """Follows one log; a second header starts over."""

    def __init__(self, *, wanted: str) -> None:
        self._wanted = wanted
        self._begin()

    def _begin(self) -> None:
        self._fields: dict[str, tuple[str, str]] = {}
        self._walls: list[float] = []
        self._proves: list[float] = []
        self._lines = 0
        self._bad = ""

    def feed(self, line: str) -> None:
        """Take the next line."""
        if line.strip() == _HEADER:
            self._begin()
        elif match := _PROOF.match(line):
            self._proof(match)
        elif match := _FIELD.fullmatch(line):
            self._fields[match["name"]] = (match["value"], match["unit"] or "")
            if match["each"]:
                self._fields["each"] = (match["each"], "")

    def _proof(self, match: re.Match[str]) -> None:
        self._lines += 1
        if match["status"] != "COMPLETED":
            self._bad = self._bad or f"proof {match['nth']} of {match['of']}: {match['status']}"
        wall, prove = number(match["wall"] or ""), number(match["prove"] or "")
        if wall is not None and len(self._walls) < MOST:
            self._walls.append(wall)
        if prove is not None and len(self._proves) < MOST:
            self._proves.append(prove / 1000.0)

    def result(self) -> Reading:
        """What the lines so far say."""
        count, completed, failed = (self._number(name) for name in ("count", "completed", "failed"))
        total, printed = self._number("total time"), self._number("throughput")
        if self._bad or failed:
            return Reading(detail=self._bad or f"{failed:g} proofs failed")
        if completed is None or failed is None or not total or printed is None:
            return Reading(detail=f"no summary after {self._lines} proofs")
        if wrong := self._contradiction(completed, count or completed, total=total, printed=printed):
            return Reading(detail=wrong)
        unit = self._fields["throughput"][1] or "proofs/min"
        evidence = f"{completed:g} proofs in {total:g} s"
        made = reading(completed * 60.0 / total, unit, wanted=self._wanted, evidence=evidence)
        if made.rate is None:
            return made
        error, unsteady = self._spread(total)
        notes = self._queue(total), self._idle(total)
        return replace(
            made,
            detail="; ".join(text for text in (made.detail, "its halves differ" if unsteady else "", *notes) if text),
            error=error,
            count=int(completed) if completed <= MOST_WORK else None,
            disturbed=unsteady or bool(notes[0]),
        )

    def _contradiction(self, completed: float, count: float, *, total: float, printed: float) -> str:
        """What in the summary cannot be; empty if all can."""
        if completed != count:
            return f"{completed:g} of {count:g} proofs were made"
        if self._lines and self._lines != completed:
            return f"{self._lines} of {completed:g} proofs are in the log"
        if abs(completed * 60.0 / total - printed) > ROUNDING + 0.01 * printed:
            return f"{completed:g} proofs in {total:g} s are not {printed:g} proofs/min"
        each = self._number("each")
        if each is not None and abs(total / completed - each) > EACH_ROUNDING + 0.01 * each:
            return f"{completed:g} proofs in {total:g} s are not {each:g} s/proof"
        return ""

    def _queue(self, total: float) -> str:
        """Why the proofs in flight were not as many as asked for; empty if they were."""
        slots = min(int(self._number("concurrency") or 1), len(self._walls))
        if slots < 1 or len(self._walls) != self._lines:
            return ""
        in_flight, count = sum(self._walls) / total, len(self._walls)
        emptying = slots * (slots - 1) / (2.0 * count)  # at the end none follows; at most so much is missing
        if in_flight < (1.0 - OFF) * (slots - emptying):
            return f"the queue was not kept full: {in_flight:.1f} proofs in flight of {slots}"
        if in_flight > (1.0 + OFF) * slots:
            return f"the times of the proofs do not fit: {in_flight:.1f} in flight, and {slots} at most"
        return ""

    def _idle(self, total: float) -> str:
        """That the GPU had to wait for work, as it does where memory allows few partition workers."""
        on_gpu = sum(self._proves) / total
        return f"the GPUs waited: {on_gpu:.2f} proofs on them" if self._proves and on_gpu < 1.0 - OFF else ""

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
