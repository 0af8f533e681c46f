"""The scripted prover: a log in the cuzk grammar, line by line in emulated time, and memory that can run out.

Each run adds its noise (CV 3 %) to the rate that rates says the machine has. Called by commands.
"""

import json
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from controller.emulator.chance import jitter, lognormal, stream
from controller.emulator.host import Host, Killed, Process, Write

NOISE_CV = 0.03
PIPELINE = {1: 0.72, 2: 0.90}  # of the full rate, with so few proofs in flight
ON_GPU = 1.86  # proofs that share a GPU's time
FIRST_PROOF_S = 60.0  # how much longer the first proof of a boot takes
OOM_AFTER_S = 90.0
OOM_CODE = 137
CIRCUITS = ("porep-32g", "porep-64g", "winning-post", "window-post")
CIRCUIT_S = 60.0  # to compile one for a cold cache
STATUS_S = 600.0  # over which a production rate is averaged
FOREVER_S = 30 * 86400.0


class Width(NamedTuple):
    """How wide a prover works: proofs in flight, and workers that fill a cold cache at once."""

    concurrency: int
    workers: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch run: proofs, how wide, proofs made first that do not count."""

    count: int
    width: Width
    warmup: int = 0


@dataclass(frozen=True, slots=True)
class _Proof:
    done_s: float  # since the batch began
    wall_s: float
    prove_ms: int
    queue_ms: int


class _Proving:
    """Counts a prover on its machine while it runs."""

    def __init__(self, host: Host, process: Process, concurrency: int) -> None:
        self._provers, self._machine = host.world.proving, host.contract.slot.machine_id
        self._host, self._process, self._concurrency = host, process, concurrency
        host.runs += 1

    def __enter__(self) -> None:
        self._provers[self._machine] += 1
        self._process.proving = self._concurrency
        self._process.proving_since = self._host.world.time

    def __exit__(self, *_: object) -> None:
        self._provers[self._machine] -= 1
        self._process.proving = 0
        self._host.kernel.proved(self._process.boot, self._process.proving_since, self._host.world.time)


async def bench(host: Host, process: Process, batch: Batch, out: Write) -> int:
    """Run a batch and print its log line by line; return the exit code.

    Raises:
        Killed: by a signal, or by the kernel for want of memory.
        ConnectionLost: the instance stopped.
    """
    out("=== Batch Benchmark ===\nproof type:  porep\n")
    out(f"count:       {batch.count}\nconcurrency: {batch.width.concurrency}\n\n")
    with _Proving(host, process, batch.width.concurrency):
        rng = _noise_of_run(host)
        await _warm_up(host, process, batch.warmup)
        if not _fits(host, batch.width):
            return await _run_out_of_memory(host, process, batch.width, out)
        proofs = await _prove(host, process, batch, out=out, rng=rng)
    host.cached = True
    _summary(batch, proofs, out)
    return 0


async def warm_up(host: Host, process: Process, width: Width, out: Write) -> int:
    """Make one proof that fills a cold cache, printing what it fills; return the exit code.

    Raises:
        Killed, ConnectionLost: see bench.
    """
    with _Proving(host, process, width.concurrency):
        if not _fits(host, width):
            return await _run_out_of_memory(host, process, width, out)
        for number, circuit in enumerate(CIRCUITS if not host.cached else (), start=1):
            await host.sleep(process, CIRCUIT_S)
            out(f"compiled circuit {number}/{len(CIRCUITS)}: {circuit}\n")
        await _warm_up(host, process, 1)
    host.cached = True
    out("cache ready\n")
    return 0


async def daemon(host: Host, process: Process, width: Width, out: Write) -> int:
    """Prove in production until killed; `status` reads the rate."""
    out("cuzk-daemon: ready\n")
    with _Proving(host, process, width.concurrency):
        if not _fits(host, width):
            return await _run_out_of_memory(host, process, width, out)
        while True:
            await host.sleep(process, FOREVER_S)


def status(host: Host, out: Write) -> int:
    """Print the rate of what proves on the instance now as one JSON line; return 1 if nothing does.

    The noise is that of the ten minutes in which it is read: reading changes nothing, not even a further reading.
    """
    working = [process.proving for process in host.processes.values() if process.proving]
    if not working:
        return 1
    window = int((host.world.time - host.world.started) // STATUS_S)
    rng = stream(host.world.seed, "status", host.contract.nth, window)
    _print_rate(host.rate() * PIPELINE.get(sum(working), 1.0), out, rng)
    return 0


async def measure(host: Host, process: Process, seconds: float, out: Write) -> int:
    """Measure for some seconds and print one JSON line."""
    with _Proving(host, process, 4):
        await host.sleep(process, seconds)
        _print_rate(host.rate(), out, _noise_of_run(host))
    return 0


def _noise_of_run(host: Host) -> Random:
    return stream(host.world.seed, "run", host.contract.nth, host.runs)


def _print_rate(rate: float, out: Write, rng: Random) -> None:
    noise = lognormal(rng, mean=1.0, cv=NOISE_CV)
    out(json.dumps({"rate": round(rate * noise, 2), "unit": "proofs/h"}) + "\n")


async def _warm_up(host: Host, process: Process, proofs: int) -> None:
    first = 0.0 if host.warm == host.contract.boots else FIRST_PROOF_S
    await host.sleep(process, first + proofs * 3600 / host.rate())
    host.warm = host.contract.boots


def _need_gib(host: Host, width: Width) -> float:
    need = host.world.scenario.prover
    cold = 0.0 if host.cached else need.cold_per_worker_gib * width.workers
    return need.base_gib + need.per_proof_gib * width.concurrency + cold


def _fits(host: Host, width: Width) -> bool:
    return _need_gib(host, width) <= host.ram_gib


async def _run_out_of_memory(host: Host, process: Process, width: Width, out: Write) -> int:
    """Grow until the kernel kills; return 0 where a parent outlives the prover and does not tell.

    Raises:
        Killed: always elsewhere.
    """
    await host.sleep(process, OOM_AFTER_S)
    host.kernel.kill_for_memory(process.pid, process.program, min(_need_gib(host, width), host.ram_gib))
    if host.contract.trouble("quiet-oom", host.world.time) is None:
        raise Killed(OOM_CODE)
    out("  [1/")  # a line cut short, and no summary
    return 0


async def _prove(host: Host, process: Process, batch: Batch, *, out: Write, rng: Random) -> list[_Proof]:
    noise = lognormal(rng, mean=1.0, cv=NOISE_CV) * PIPELINE.get(batch.width.concurrency, 1.0)
    proofs: list[_Proof] = []
    now, concurrency = 0.0, batch.width.concurrency
    for number in range(batch.count):
        gap = 3600 / (host.rate() * noise) * jitter(rng, 0.04)
        await host.sleep(process, gap)
        now += gap
        wall = now - (proofs[number - concurrency].done_s if number >= concurrency else 0.0)
        proof = _Proof(now, wall, int(min(wall * 0.96, ON_GPU * gap) * 1000), rng.randrange(180, 950))
        proofs.append(proof)
        place, times = f"[{number + 1}/{batch.count}]", f"prove={proof.prove_ms} ms, queue={proof.queue_ms} ms"
        out(f"  {place} COMPLETED — {wall:.1f}s ({times})\n")
    return proofs


def _summary(batch: Batch, proofs: list[_Proof], out: Write) -> None:
    out("\n=== Batch Summary ===\n")
    total = proofs[-1].done_s if proofs else 0.0
    out(f"total time:    {total:.1f}s\ncompleted:     {len(proofs)}\nfailed:        {batch.count - len(proofs)}\n")
    if not proofs:
        return
    out(f"wall time:     {_spread([proof.wall_s for proof in proofs])}\n")
    out(f"prove time:    {_spread([proof.prove_ms / 1000 for proof in proofs])}\n")
    each = total / len(proofs)
    out(f"throughput:    {60 / each:.3f} proofs/min ({each:.1f}s/proof)\n")


def _spread(seconds: list[float]) -> str:
    mean = sum(seconds) / len(seconds)
    return f"avg={mean:.1f}s min={min(seconds):.1f}s max={max(seconds):.1f}s"
