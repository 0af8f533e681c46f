"""How long one decision takes, and how long to weigh the evidence of a large fleet at once.

    python -m bench.judge [--seed N]

One decision: a run of one more machine has come in, and nothing was known of it before. 500 instances: of a fleet of
which nothing was worked out before, with one to four runs each. The ratio is to the same fleet weighed once more, an
hour later. Times are of the processor. Exit code 1 if a decision takes 10 ms or more, or the fleet 2 s or more.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from random import Random

from bench.contenders import OURS, fleet
from bench.executor import HOUR_S, ORIGIN, SHAPE
from bench.world import Machine, Nature, market
from controller.loop import evidence
from controller.loop.evidence import Weighed
from controller.model.fleet import Fleet
from controller.model.instance import Instance, Phase, Run
from controller.model.money import micro
from controller.model.reasons import Reason

INSTANCES = 500
DECISIONS = 100
RUNS = 4  # of a machine, at the most
GAP_HOURS = 2.5  # between them
DECISION_MS = 10.0
FLEET_S = 2.0


def instance(of: Fleet, number: int) -> Instance:
    """An instance at work, on a machine of the same number."""
    return Instance(
        nonce=f"{number:06d}",
        fleet=of.name,
        label=str(number),
        shape=SHAPE,
        gpu="RTX 4090",
        gpu_count=1,
        machine_id=number,
        price=micro(0.4),
        disk_gib=of.spec.require.disk_gib,
        workload=of.spec.workload(),
        phase=Phase.ADMITTED,
        phase_since=ORIGIN,
        reason=Reason.MEASURED,
        created_at=ORIGIN - HOUR_S,
        instance_id=number,
        prepared_at=ORIGIN - HOUR_S / 2,
        admitted_at=ORIGIN,
    )


def run(of: Instance, machine: Machine, hour: float) -> Run:
    """A run of an instance that began at that hour."""
    end = machine.run_ends(hour)
    return Run(
        id=f"{of.nonce}/{hour}",
        nonce=of.nonce,
        fleet=of.fleet,
        machine_id=of.machine_id,
        shape=of.shape,
        workload=of.workload,
        started_at=ORIGIN + hour * HOUR_S,
        ended_at=ORIGIN + end * HOUR_S,
        reason=Reason.MEASURED,
        rate=machine.run_shows(hour, end),
        unit="proofs/h",
        gpu_uuid=f"GPU-{of.machine_id}",
    )


def timed(work: Callable[[], object]) -> float:
    """Seconds of the processor that something takes."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def everything(weighed: Weighed) -> object:
    """All that a pass asks of the evidence."""
    return weighed.verdicts, weighed.expected, weighed.typical, weighed.slow, weighed.doubted, weighed.suspect


def main() -> int:
    """Print the times; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    of = fleet(INSTANCES, OURS)
    machines = market(Nature(machines=INSTANCES + DECISIONS), args.seed)
    rng = Random(args.seed)
    held = [instance(of, machine.id) for machine in machines]
    first, late = held[:INSTANCES], held[INSTANCES:]
    runs = [
        run(i, machine, GAP_HOURS * n)
        for i, machine in zip(first, machines, strict=False)
        for n in range(rng.randint(1, RUNS))
    ]
    now = ORIGIN + RUNS * GAP_HOURS * HOUR_S
    whole = timed(lambda: everything(evidence.weigh(of, first, runs, now=now)))
    again = timed(lambda: everything(evidence.weigh(of, first, runs, now=now + HOUR_S)))
    decisions = []
    for i, machine in zip(late, machines[INSTANCES:], strict=True):
        runs.append(run(i, machine, GAP_HOURS * rng.randint(0, RUNS - 1)))
        weighed = evidence.weigh(of, [*first, i], runs, now=now)
        known = weighed.cases[SHAPE, of.spec.workload()]
        known.effort, known.learned.prior  # noqa: B018 - learned from the fleet, and no part of the decision
        decisions.append(1000 * timed(lambda i=i, known=known: known.verdict(i, neighbours=0)))  # type: ignore[misc]
    median, slowest = statistics.median(decisions), max(decisions)
    print(
        f"one decision       {median:8.1f} ms median of {DECISIONS}, slowest {slowest:.1f} ms; bound {DECISION_MS:g} ms"
    )
    print(f"{INSTANCES} instances      {whole:8.2f} s, {1000 * whole / INSTANCES:.1f} ms each; bound {FLEET_S:g} s")
    print(f"an hour later      {again:8.2f} s, ratio {whole / again:.1f}")
    return 0 if median < DECISION_MS and whole < FLEET_S else 1


if __name__ == "__main__":
    sys.exit(main())
