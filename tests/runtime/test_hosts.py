from collections.abc import Callable
from pathlib import Path

import pytest

from controller.bench.bench import Bench
from controller.bench.remote import Remote
from controller.bench.work import Target
from controller.loop.ports import Order
from controller.model.fleet import Fleet
from controller.model.instance import Instance, Phase, RunKind
from controller.model.reasons import Reason
from controller.runtime.hosts import BenchHosts, work_of
from controller.source.files import load_paths
from tests.bench.conftest import LoopClock

(LOADED,) = load_paths([Path("examples/production.yaml")])
FLEET = LOADED.fleet
INSTANCE = Instance(
    nonce="n0nce",
    fleet="steady",
    label="vf/default/steady/n0nce",
    shape=FLEET.spec.shapes[0].key,
    gpu="RTX 4090",
    gpu_count=1,
    machine_id=7,
    gpu_fraction=0.5,
    price=400_000,
    disk_gib=250,
    workload=FLEET.spec.workload(),
    phase=Phase.ADMITTED,
    phase_since=0.0,
    reason=Reason.MEETS_MIN_RATE,
    admitted_at=0.0,
)


class Answering:
    """A Remote whose instance prints the same rate whatever it is asked to run."""

    host_key = "ssh-ed25519 A"
    route = "direct"

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    async def run(self, command: str, *, out: Callable[[str], None], err: Callable[[str], None]) -> int:
        """See Remote."""
        self._asked.append(command)
        if "nvidia-smi" in command:
            return 127
        if command.startswith("echo vastfleet-pid"):
            out('{"rate": 61.0, "unit": "proofs/h"}\n')
        return 0

    async def close(self) -> None:
        """See Remote."""


async def nothing(fleet: Fleet) -> dict[str, str]:
    return {}


def hosts(asked: list[str]) -> BenchHosts:
    async def connect(_target: Target) -> Remote:
        return Answering(asked)

    bench = Bench(connect=connect, clock=LoopClock(), new_id=lambda: "run-1")
    return BenchHosts(bench=bench, secrets=nothing)


def test_manifest_becomes_work():
    """What a manifest says of warming up, measuring and reading production reaches the instance."""
    work = work_of(FLEET, INSTANCE.shape, env={})
    assert work.warmup_command == "cuzk-bench warm-up --partition-workers $PARTITION_WORKERS"
    assert (work.warmup_timeout_s, work.image) == (1800, "example/prover:1.4")
    assert (work.production_command, work.production_format) == ("cuzk-daemon status", "json")
    assert (work.reserve_gib, work.per_proof_gib, work.gpu_count) == (100, 6, 1)


async def test_production_is_read_without_quiescing_it():
    """A reading asks production for its rate, and runs neither its stop command nor the benchmark."""
    asked: list[str] = []
    order = Order(job="read", instance=INSTANCE, endpoints=(), fleet=FLEET, neighbours=2)
    end = await hosts(asked).carry_out(order, lambda _line: None)
    assert (end.ok, end.job, end.reason) == (True, "read", Reason.MEASURED)
    assert end.run is not None
    assert (end.run.kind, end.run.rate, end.run.neighbours, end.run.gpu_fraction) == (RunKind.PRODUCTION, 61.0, 2, 0.5)
    assert not any("pkill" in command or "cuzk-bench" in command for command in asked)


@pytest.mark.parametrize("ran_out", [((1e6, 1),), ((None, 1),)])
async def test_widths_that_ran_out_are_passed_on(ran_out):
    """What ran out of memory elsewhere is not tried again here."""
    asked: list[str] = []
    order = Order(job="start", instance=INSTANCE, endpoints=(), fleet=FLEET, ran_out=ran_out)
    end = await hosts(asked).carry_out(order, lambda _line: None)
    assert (end.ok, end.reason) == (False, Reason.OUT_OF_MEMORY)
    assert not any("cuzk-daemon" in command for command in asked)
