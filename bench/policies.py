"""The judge and the planner in simulated markets, beside simpler rules and beside one that knows the truth.

    python -m bench.policies [--worlds N] [--seed N] [--jobs N] [--only NAME] [--no-misspecified]

Ten slots for a week, on a market of 100 machines of one model, of which 65 % do the 59 proofs/h that are asked for.
Sessions of some 1.5 h move what a machine does by 8 %, and three in twenty slow it to 0.75. All have the same machines
and sessions, world by world, and the same planner; they differ in what gives the verdicts. Money is all that was spent,
proofs count from good machines. The misspecified rows are worlds that the judge's assumptions fit badly, beside a judge
whose assumptions are those of the world. Exit code 1 if a promise is not met.
"""

import argparse
import os
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from bench import tally
from bench.contenders import BY_NAME, CONTENDERS, ORACLE, OURS, READING, told
from bench.score import Score, score
from bench.world import Nature, market

WORLDS = 500
FEWER = 5  # times fewer worlds of each misspecified row
AS_ASSUMED = Nature()
MISSPECIFIED = {
    "session CV 4 %": Nature(session_cv=0.04),
    "session CV 16 %": Nature(session_cv=0.16),
    "disturbed 5 %": Nature(disturbed=0.05),
    "disturbed 30 %": Nature(disturbed=0.30),
    "drop 0.60": Nature(drop=0.60),
    "machine CV 4 %": Nature(machine_cv=0.04),
    "machine CV 16 %": Nature(machine_cv=0.16),
    "model mean 57": Nature(mean=57.0),
    "model mean 66": Nature(mean=66.0),
    "sessions of 0.5 h": Nature(session_hours=0.5),
    "sessions of 6 h": Nature(session_hours=6.0),
}
TOLD = "told"  # ours, with the row's own noise for its assumptions
MOST_DEARER = 2.0  # per cent above the oracle
MOST_DEARER_READING = 0.0
MOST_BAD = 3.0  # per cent of the hours
MOST_OVER = 3.0  # points
MOST_HOURS = 7.0
MOST_MISSPECIFIED = 3.0  # points


@dataclass(frozen=True, slots=True)
class Task:
    """One contender's week in one world."""

    contender: str
    row: str  # of the misspecified; empty: the world as it is assumed
    seed: int

    def play(self) -> Score:
        """What came of it."""
        nature = MISSPECIFIED[self.row] if self.row else AS_ASSUMED
        contender = told(nature) if self.contender == TOLD else BY_NAME[self.contender]
        return score(contender.play(market(nature, self.seed)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What was promised of a value, and what it is."""

    what: str
    value: float
    bound: float
    strict: bool = False

    @property
    def met(self) -> bool:
        """Whether it is kept."""
        return self.value < self.bound if self.strict else self.value <= self.bound


Scores = dict[tuple[str, str], list[Score]]  # by contender and row, in the order of the seeds


def play(tasks: Sequence[Task], jobs: int) -> Scores:
    """All tasks, on so many processes."""
    scores: defaultdict[tuple[str, str], list[Score]] = defaultdict(list)
    with ProcessPoolExecutor(max_workers=jobs) as pool:
        for done, (task, found) in enumerate(zip(tasks, pool.map(Task.play, tasks), strict=True), start=1):
            scores[task.contender, task.row].append(found)
            if sys.stderr.isatty():
                sys.stderr.write(f"\r{done} of {len(tasks)} weeks" + ("\n" if done == len(tasks) else ""))
    return dict(scores)


def tasks(names: Iterable[str], *, worlds: int, seed: int, misspecified: bool) -> list[Task]:
    """What is to be played: long ones first, so that no process is left alone with one at the end."""
    wanted = sorted(names, key=lambda name: name not in {READING.name, OURS.name})
    found = [Task(name, "", seed + n) for name in wanted for n in range(worlds)]
    if misspecified:
        few = range(max(1, worlds // FEWER))
        found += [Task(c, row, seed + n) for row in MISSPECIFIED for c in (OURS.name, TOLD, ORACLE.name) for n in few]
    return found


def print_policies(scores: Scores) -> None:
    """The table of contenders."""
    print(f"{'':26} {'bad hours':>9}  {'$/1000 good':>12}  {'above the oracle, %':>20}  {'$/1000':>6}", end="")
    print(f"  {'ten good, h':>11}  {'tried':>5} {'good at':>9}")
    print(f"{'policy':26} {'%':>9}  {'24 h':>5} {'7 d':>6}  {'24 h':>10} {'7 d':>9}  {'all':>6}", end="")
    print(f"  {'median':>6} {'24 h':>4}  {'/slot':>5} {'24 h':>4} {'7 d':>4}")
    oracle = scores.get((ORACLE.name, ""))
    for contender in CONTENDERS:
        found = scores.get((contender.name, ""))
        if found is None:
            continue
        beside = ["", ""]
        if oracle is not None:
            beside = [tally.against(found, oracle, day=day).shown("+.1f") for day in (True, False)]
        print(
            f"{contender.name:26} {tally.bad(found).shown():>9}"
            f"  {tally.mean(s.day.per_good for s in found).value:5.2f}"
            f" {tally.mean(s.week.per_good for s in found).value:6.3f}  {beside[0]:>10} {beside[1]:>9}"
            f"  {tally.mean(s.week.per_proof for s in found).value:6.3f}  {tally.filled(found):6.1f}"
            f" {tally.filled_in_a_day(found):4.0%}  {tally.rentals(found):5.1f}"
            f" {tally.mean(s.day.good_at_work for s in found).value:4.1f}"
            f" {tally.mean(s.week.good_at_work for s in found).value:4.1f}"
        )


def print_calibration(name: str, scores: Sequence[Score]) -> None:
    """What P stated after each run, and what came true."""
    print(f"\nP after each run, {name}: stated, and the share truly good")
    tenths = tally.calibration(scores)
    for tenth in tenths:
        print(
            f"  {tenth.low:.1f} to {tenth.low + 0.1:.1f}  {tenth.verdicts:7} verdicts  stated {tenth.stated:.3f}"
            f"  good {tenth.good.shown('.3f')}  over-confident by {tenth.over:+5.1f} points"
        )
    print(f"  worst {tally.worst(tenths):+.1f} points")


def print_misspecified(scores: Scores) -> dict[str, float]:
    """Each misspecified row; by how many per cent a good proof comes dearer than to a judge that is told the noise."""
    costs: dict[str, float] = {}
    print("\nmisspecified          worlds  bad hours, %  against its oracle, %  against one told, %  over, points")
    for row in MISSPECIFIED:
        ours, told_, oracle = (scores[name, row] for name in (OURS.name, TOLD, ORACLE.name))
        dearer = tally.against(ours, told_)
        costs[row] = dearer.value
        print(
            f"{row:20} {len(ours):7}  {tally.bad(ours).shown():>12}  {tally.against(ours, oracle).shown('+.1f'):>21}"
            f"  {dearer.shown('+.1f'):>19}  {tally.worst(tally.calibration(ours)):+12.1f}"
        )
    return costs


def promises(scores: Scores, costs: dict[str, float]) -> list[Promise]:
    """What is promised of what was played."""
    oracle, ours, reading = (scores.get((c.name, "")) for c in (ORACLE, OURS, READING))
    found: list[Promise] = []
    if ours and oracle:
        value = tally.against(ours, oracle).value
        found.append(Promise(what="ours above the oracle, $ per good proof, %", value=value, bound=MOST_DEARER))
    if reading and oracle:
        value, what = tally.against(reading, oracle).value, "ours with production above the oracle, %"
        found.append(Promise(what=what, value=value, bound=MOST_DEARER_READING))
    for name, mine in ((OURS.name, ours), (READING.name, reading)):
        if mine:
            over = tally.worst(tally.calibration(mine))
            found += [
                Promise(what=f"{name}: bad hours, %", value=tally.bad(mine).value, bound=MOST_BAD),
                Promise(what=f"{name}: over-confident, points", value=over, bound=MOST_OVER),
                Promise(what=f"{name}: hours to ten good", value=tally.filled(mine), bound=MOST_HOURS, strict=True),
            ]
    if costs:
        row = max(costs, key=lambda row: costs[row])
        what = f"misspecified ({row}) costs, points"
        found.append(Promise(what=what, value=costs[row], bound=MOST_MISSPECIFIED, strict=True))
    return found


def parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", type=int, default=WORLDS, help=f"how many; default {WORLDS}")
    parser.add_argument("--seed", type=int, default=1, help="of the first world; default 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default: one a processor")
    parser.add_argument("--only", action="append", choices=sorted(BY_NAME), help="play these alone; may be repeated")
    parser.add_argument("--misspecified", action=argparse.BooleanOptionalAction, default=True)
    return parser.parse_args()


def main() -> int:
    """Play, print, and hold the promises to account; the exit code."""
    args = parsed()
    names = args.only or [contender.name for contender in CONTENDERS]
    misspecified = args.misspecified and {OURS.name, ORACLE.name} <= set(names)
    scores = play(tasks(names, worlds=args.worlds, seed=args.seed, misspecified=misspecified), args.jobs)
    print(f"{args.worlds} worlds from seed {args.seed}, ± is a 95 % interval over worlds\n")
    print_policies(scores)
    for name in (OURS.name, READING.name):
        if name in names:
            print_calibration(name, scores[name, ""])
    costs = print_misspecified(scores) if misspecified else {}
    held = promises(scores, costs)
    print()
    for promise in held:
        sign = "< " if promise.strict else "<="
        print(
            f"{'met' if promise.met else 'NOT MET':8} {promise.what:52} {promise.value:8.2f}  {sign} {promise.bound:g}"
        )
    return 0 if all(promise.met for promise in held) else 1


if __name__ == "__main__":
    sys.exit(main())
