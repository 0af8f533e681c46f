"""Many Fleets created at once in a cluster: time, memory and calls until each has been seen to, and at rest.

    python -m bench.fleets [FLEETS...]        default: 100 1000 3000

For each number a control plane of its own, an emulated vast.ai and a `vastfleet operator`, all on this machine; every
Fleet wants two instances. "Rented" is when vast.ai has them all, "passed" when the status of each Fleet says so,
"ready" when all are measured. The clock runs fast, and vast.ai's limits are not waited for: at its documented pace it
would take hours to rent as many. CPU is in seconds of each process until then, calls are of the operator; at rest, in
ten minutes of its clock. The Fleets are looked at but seldom, for that costs the server more than they do. Exit code 1
if 1,000 Fleets take more than 60 s to be passed over, or the operator more than 200 MiB.
"""

import asyncio
import os
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from bench.steady import resident_mib
from controller.emulator import Emulator, ScaledClock, Scenario
from controller.model.crd import files
from controller.model.kinds import GROUP, KINDS
from tests.cluster import plane
from tests.cluster.plane import Cluster
from tests.controlplane.build import build

NUMBERS = (100, 1000, 3000)
EACH = 2  # instances
SPEED = 4.0
REST_S = 600.0  # of the operator's clock
MOST_S, MOST_MIB, HELD_TO = 60.0, 200.0, 1000
LOOK_S = 2.0  # between looks
GIVE_UP_S = 1800.0
FLEET = """---
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: fleet-{number:04}, namespace: many}}
spec:
  target: {{instances: {each}}}
  budgetPerHour: 10
  shapes: [{{gpu: RTX 4090, minRate: 20}}]
  require: {{reliability: 0, verified: false, remainingHours: 0}}
  instance: {{image: example/prover}}
  benchmark: {{command: json-bench --seconds 60, format: json, recheckHours: 720}}
"""
READY = '.status.conditions[?(@.type=="Ready")]'
LINES = f'{{range .items[*]}}{{{READY}.status}} {{{READY}.message}}{{"\\n"}}{{end}}'
REQUESTS = re.compile(r"apiserver_request_total\{([^}]*)\} (\S+)")


@dataclass(slots=True)
class Row:
    """What was seen of so many Fleets. Seconds are the wall's."""

    fleets: int
    created_s: float = 0.0
    rented_s: float = 0.0
    passed_s: float = 0.0
    ready_s: float = 0.0
    mib: float = 0.0
    operator_cpu_s: float = 0.0
    server_cpu_s: float = 0.0
    emulator_cpu_s: float = 0.0
    vast: Counter[str] = field(default_factory=Counter)
    writes: Counter[str] = field(default_factory=Counter)
    vast_at_rest: Counter[str] = field(default_factory=Counter)
    writes_at_rest: Counter[str] = field(default_factory=Counter)


class Bed:
    """A control plane that knows the kinds, an emulator, and an operator between them."""

    def __init__(
        self, cluster: Cluster, emulator: Emulator, operator: asyncio.subprocess.Process, clock: ScaledClock
    ) -> None:
        self.cluster, self.emulator, self.operator, self.clock = cluster, emulator, operator, clock

    async def ready(self) -> Counter[str]:
        """How many Fleets are how: "first" until they were passed over, else True, False or Unknown."""
        text = await self.cluster.kubectl_async("get", "fleets", "-n", "many", "-o", f"jsonpath={LINES}")
        lines = text.splitlines()
        return Counter("first" if "first pass" in line else line.split()[0] for line in lines if line.strip())

    async def writes(self) -> Counter[str]:
        """Writes of our kinds that the API server has answered, by verb and kind."""
        found: Counter[str] = Counter()
        for labels, count in REQUESTS.findall(await self.cluster.kubectl_async("get", "--raw", "/metrics")):
            known = dict(part.split("=", 1) for part in labels.replace('"', "").split(",") if "=" in part)
            if known.get("verb") in {"POST", "PATCH", "PUT", "DELETE"} and known.get("group") == GROUP:
                name = known["resource"] + ("/" + known["subresource"] if known.get("subresource") else "")
                found[f"{known['verb']} {name}"] += int(float(count))
        return found


async def measure(cluster: Cluster, fleets: int, directory: Path) -> Row:
    """Create so many Fleets, and look on."""
    clock = ScaledClock(SPEED)
    market = {"offers": max(300, fleets * EACH * 4), "models": ["RTX 4090"]}
    scenario = {"seed": 7, "credit": 10_000_000, "market": market, "limits": {"enabled": False}, "bootSeconds": 20}
    emulator = Emulator(clock=clock, scenario=Scenario.model_validate(scenario))
    url = await emulator.serve()
    env = {**cluster.env, "VAST_URL": url, "VAST_API_KEY": emulator.api_key, "VASTFLEET_OWNER": "bench"}
    env |= {
        "VASTFLEET_CLOCK": f"{SPEED}@{clock.origin!r}",
        "VASTFLEET_SSH_KEY": str(directory / "key"),
        "POD_NAMESPACE": "many",
    }
    command = [sys.executable, "-m", "bench.unpaced", "many"]
    operator = await asyncio.create_subprocess_exec(*command, env=env, stdout=asyncio.subprocess.PIPE)
    try:
        assert operator.stdout is not None
        while b"leading" not in await operator.stdout.readline():
            pass
        async with asyncio.timeout(GIVE_UP_S):
            return await look_on(Bed(cluster, emulator, operator, clock), fleets)
    finally:
        if operator.returncode is None:
            operator.send_signal(signal.SIGTERM)
        await operator.wait()
        await emulator.close()


async def look_on(bed: Bed, fleets: int) -> Row:
    """Create the Fleets and note when what is so; then wait, and note what happens at rest."""
    row, began = Row(fleets), time.monotonic()
    mine, servers = cpu_s(os.getpid()), cpu_of_servers(bed.cluster)
    manifest = "".join(FLEET.format(number=number, each=EACH) for number in range(fleets))
    before = await bed.writes()
    created = asyncio.create_task(bed.cluster.kubectl_async("apply", "-f", "-", input=manifest))
    created.add_done_callback(lambda _: setattr(row, "created_s", time.monotonic() - began))
    while not row.ready_s:
        await asyncio.sleep(LOOK_S)  # noqa: TID251 - the wall's time is what is measured
        row.mib = max(row.mib, resident_mib(bed.operator.pid))
        if (rented := len(bed.emulator.alive)) < EACH * fleets:
            sys.stderr.write(f"{time.monotonic() - began:6.0f} s  {rented} rented\n")
            continue
        row.rented_s = row.rented_s or time.monotonic() - began
        seen, at = await bed.ready(), time.monotonic() - began
        told = sum(seen.values())
        cpu = f"CPU s: {cpu_s(bed.operator.pid):.0f} operator, {cpu_of_servers(bed.cluster) - servers:.0f} cluster"
        sys.stderr.write(
            f"{at:6.0f} s  {dict(seen)}  {row.mib:.0f} MiB  {cpu}, {cpu_s(os.getpid()) - mine:.0f} vast.ai\n"
        )
        if not row.passed_s and told - seen["first"] >= fleets:
            row.passed_s, row.operator_cpu_s = at, cpu_s(bed.operator.pid)
            row.server_cpu_s = cpu_of_servers(bed.cluster) - servers
            row.emulator_cpu_s = cpu_s(os.getpid()) - mine
        row.ready_s = at if seen["True"] >= fleets else 0.0
    await created
    row.vast, row.writes = Counter(bed.emulator.calls), await bed.writes() - before
    await asyncio.sleep(2 * LOOK_S)  # noqa: TID251 - what is written behind is written
    at_first, vast = await bed.writes(), Counter(bed.emulator.calls)
    await bed.clock.sleep(REST_S)
    row.vast_at_rest, row.writes_at_rest = Counter(bed.emulator.calls) - vast, await bed.writes() - at_first
    return row


def cpu_s(pid: int) -> float:
    """CPU time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_of_servers(cluster: Cluster) -> float:
    """CPU time of the control plane's processes."""
    marker = str(cluster.kubeconfig.parent).encode()
    found = 0.0
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if marker in (process / "cmdline").read_bytes():
                    found += cpu_s(int(process.name))
            except OSError:  # it has ended
                continue
    return found


def shown(counts: Counter[str], per: int) -> str:
    """Counts for each of so many, those that matter."""
    return ", ".join(f"{name} {count / per:.2f}" for name, count in sorted(counts.items()) if count) or "none"


def print_row(row: Row, first: Row) -> None:
    """A row, with how each number grew from the first."""
    grew = row.fleets / first.fleets
    print(
        f"{row.fleets:6} {row.created_s:8.1f} {row.rented_s:8.1f} {row.passed_s:8.1f} {row.ready_s:8.1f}"
        f" {row.passed_s / first.passed_s / grew:7.2f} {row.mib:6.0f} {row.mib / first.mib:6.2f}"
        f" {row.operator_cpu_s:8.1f} {row.server_cpu_s:6.1f} {row.emulator_cpu_s:8.1f}"
    )
    print(f"       a Fleet, until ready: vast.ai: {shown(row.vast, row.fleets)}")
    print(f"                             cluster: {shown(row.writes, row.fleets)}")
    print(
        f"       ten minutes at rest:  vast.ai: {shown(row.vast_at_rest, 1)}; cluster: {shown(row.writes_at_rest, 1)}",
        flush=True,
    )


async def main(numbers: tuple[int, ...]) -> int:
    """Print a row for each number; the exit code."""
    built = build()
    print("Fleets  created rented s passed s  ready s x/Fleet    MiB  x MiB  CPU s: operator cluster vast.ai")
    first: Row | None = None
    good = True
    for number in numbers:
        with plane.running(built) as cluster, tempfile.TemporaryDirectory(prefix="vastfleet-bench-") as directory:
            await cluster.kubectl_async("apply", "-f", "-", input="---\n".join(files().values()))
            await cluster.kubectl_async(
                "wait", "--for=condition=Established", *(f"crd/{kind.plural}.{GROUP}" for kind in KINDS)
            )
            await cluster.kubectl_async("create", "namespace", "many")
            row = await measure(cluster, number, Path(directory))
        first = first or row
        print_row(row, first)
        good &= number != HELD_TO or (row.passed_s <= MOST_S and row.mib <= MOST_MIB)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main(tuple(map(int, sys.argv[1:])) or NUMBERS)))
