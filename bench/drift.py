"""Whether a machine that becomes slower is replaced, and one that had a bad hour is not.

    python -m bench.drift [--weeks N] [--seed N] [--jobs N] [--production]

A fleet of three, two of them on machines that are plainly fast enough. The third has settled, and is at work at day 2:

    falls        its rate of 66 becomes 56, 15 % less, and 59 are asked for
    disturbed    its rate is 64, and its next run is disturbed and shows a quarter less; no other is
    steady       its rate is 66 or 64, and nothing happens: what is replaced then is replaced for no reason

Printed is the share replaced within the week's other five days, and how long that took.
"""

import argparse
import math
import os
import statistics
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from random import Random

from bench.contenders import OURS, READING
from bench.score import DAY, WEEK
from bench.world import Machine, Nature, Session, market, sessions

WEEKS = 200
SETTLED = 2 * DAY
SLOTS = 3
PLAINLY = 80.0  # rate of the other two
SUBJECT = 1  # the third's id
FALL = 0.85
USUAL = Nature()
CALM = replace(USUAL, disturbed=0.0)
MOST_TRIES = 20  # seeds for one week, before it is given up that the machine settles at all


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What happens to the third machine at day 2."""

    name: str
    rate: float
    nature: Nature = USUAL
    falls: bool = False
    disturbed: bool = False


FATES = (
    Fate(name="falls from 66 by 15 %", rate=66.0, falls=True),
    Fate(name="steady at 66", rate=66.0),
    Fate(name="one disturbed run at 64", rate=64.0, nature=CALM, disturbed=True),
    Fate(name="steady at 64, none disturbed", rate=64.0, nature=CALM),
)


class OnceDisturbed(Machine):
    """A machine whose first run after it settled shows too little."""

    spared = True

    def run_shows(self, begin: float, end: float) -> float:
        """The rate that a run shows."""
        rate = super().run_shows(begin, end)
        if begin >= SETTLED and self.spared:
            self.spared = False
            return rate * USUAL.drop
        return rate


def falling(course: Iterator[Session]) -> Iterator[Session]:
    """Sessions that are slower by the fall once it has settled."""
    begin = 0.0
    for end, factor in course:
        if begin < SETTLED <= end:
            yield SETTLED, factor
        yield end, factor * (FALL if end > SETTLED else 1.0)
        begin = end


def machines(fate: Fate, seed: int) -> list[Machine]:
    """The third machine, the two that are plainly good, and the market."""
    course = sessions(fate.nature, Random(f"{seed}/subject"))
    kind = OnceDisturbed if fate.disturbed else Machine
    luck = Random(f"{seed}/subject/luck")
    found = [kind(SUBJECT, fate.rate, falling(course) if fate.falls else course, luck, USUAL)]
    for machine in market(USUAL, seed):
        rate = PLAINLY if machine.id < SLOTS else machine.rate
        own = sessions(USUAL, Random(f"{seed}/{machine.id}/sessions"))
        found.append(Machine(machine.id + SUBJECT, rate, own, Random(f"{seed}/{machine.id}/luck"), USUAL))
    return found


def week(fate: Fate, seed: int, *, production: bool) -> tuple[float, int]:
    """Hours from day 2 until the third machine was given up, inf if it was not; and how many weeks it took to settle.

    Raises:
        RuntimeError: it never settles.
    """
    for tries in range(1, MOST_TRIES + 1):
        executor = (READING if production else OURS).executor(machines(fate, seed * MOST_TRIES + tries), SLOTS)
        executor.advance(SETTLED)
        if not any(s.machine.id == SUBJECT for s in executor.record.rented) and executor.holds(SUBJECT):
            rented = [s for s in executor.play(WEEK).rented if s.machine.id == SUBJECT]
            until = rented[0].end
            return (until - SETTLED if until < WEEK else math.inf), tries
    raise RuntimeError(f"{fate.name}: not settled at day 2 in any of {MOST_TRIES} weeks")


def main() -> int:
    """Print the rates of all fates; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weeks", type=int, default=WEEKS, help=f"of each; default {WEEKS}")
    parser.add_argument("--seed", type=int, default=1, help="of the first; default 1")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default: one a processor")
    parser.add_argument("--production", action="store_true", help="read production's rate each hour, too")
    args = parser.parse_args()
    print("the third machine              weeks  replaced         median hours until  settled at day 2")
    with ProcessPoolExecutor(max_workers=args.jobs) as pool:
        for fate in FATES:
            play = partial(week, fate, production=args.production)
            found = list(pool.map(play, range(args.seed, args.seed + args.weeks)))
            after = [hours for hours, _ in found if hours < math.inf]
            share = len(after) / len(found)
            give = 1.96 * math.sqrt(share * (1 - share) / len(found))
            median = f"{statistics.median(after):.1f}" if after else "-"
            settled = len(found) / sum(tries for _, tries in found)
            print(
                f"{fate.name:30} {len(found):5}  {share:6.1%} ± {give:5.1%}  {median:>18}  {settled:16.0%}", flush=True
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
