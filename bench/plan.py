"""How long `vastfleet plan` takes, from the shell and back, at the wall's own pace.

    python bench/plan.py [--listing FILE] [--seed N]

Twenty instances of three models are planned on a market of real size, served over HTTP with vast.ai's rate limits. The
ratio is to `vastfleet --version`, which does nothing but start. Exit code 1 if the median takes 2 s or more.
"""

import argparse
import asyncio
import os
import re
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

from controller.emulator import Emulator, ScaledClock, Scenario

TRIES = 5
WITHIN_S = 2.0
CHANGES_PENDING = 2
MANIFEST = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {name: bench}
spec:
  target: {instances: 20}
  budgetPerHour: 8
  shapes:
  - {gpu: RTX 4090, minRate: 59}
  - {gpu: RTX 5080, minRate: 53}
  - {gpu: RTX PRO 6000 WS, minRate: 100}
  require: {reliability: 0, verified: false, diskGiB: 100, remainingHours: 0}
  instance: {image: example/prover}
  benchmark: {command: "true"}
"""


async def timed(env: dict[str, str], *args: str, code: int = 0) -> tuple[float, str]:
    """Seconds that a command takes, and what it prints. RuntimeError if it exits with another code."""
    begun = time.perf_counter()
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "controller.cli.main", *args), env=env, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    if process.returncode != code:
        raise RuntimeError(f"vastfleet {args[0]} exited with {process.returncode}: {out.decode()}")
    return time.perf_counter() - begun, out.decode()


async def main() -> int:
    """Print the times; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--listing", type=Path, help="offers as vast.ai lists them, in JSON, all taken for rentable")
    parser.add_argument("--seed", type=int, default=7)
    args = parser.parse_args()
    market = {"listing": args.listing, "assumeRentable": True} if args.listing else {"offers": 1400}
    scenario = Scenario.model_validate({"market": market, "seed": args.seed})
    plans, starts, out = [], [], ""
    with tempfile.TemporaryDirectory(prefix="vastfleet-bench-") as directory:
        manifest = Path(directory, "fleet.yaml")
        manifest.write_text(MANIFEST)  # noqa: ASYNC240 - a short file, and nothing else to do
        for _ in range(TRIES):
            emulator = Emulator(clock=ScaledClock(1.0), scenario=scenario, ssh=False)  # its limits are fresh
            env = {**os.environ, "VAST_API_KEY": emulator.api_key, "VAST_URL": await emulator.serve()}
            env |= {"VASTFLEET_LEDGER": str(Path(directory, "ledger.db"))}
            seconds, out = await timed(env, "plan", str(manifest), code=CHANGES_PENDING)
            plans.append(seconds)
            starts.append((await timed(env, "--version"))[0])
            await emulator.close()
    print("\n".join(line for line in out.splitlines() if re.match(r"Would rent|Market|Afterwards", line)))
    plan, start = statistics.median(plans), statistics.median(starts)
    print(f"\nplan {plan:.2f} s, start-up alone {start:.2f} s, ratio {plan / start:.1f}; medians of {TRIES}")
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    busy = (used.ru_utime + used.ru_stime) / TRIES
    print(f"slowest plan {max(plans):.2f} s; a plan and a start-up together keep a processor busy for {busy:.2f} s")
    print(f"calls of vast.ai: {sum(emulator.calls.values())}")
    return 0 if plan < WITHIN_S else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
