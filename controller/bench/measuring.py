"""One benchmark on an open session: sized to the memory, warmed up once a container, watched, read, and judged sound.

A container is cold until a warm-up or a benchmark has ended well in it since it was started. A warm-up of its own runs
narrow, for a cold cache takes more memory than a warm one; the benchmark after it runs wide. Called by `bench`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from controller.bench.conditions import Conditions
from controller.bench.memory import Sizing, size
from controller.bench.progress import STRETCH, Limits
from controller.bench.rates import Reading
from controller.bench.readers import reader_of
from controller.bench.remote import Clock
from controller.bench.session import Ended, Session
from controller.bench.telemetry import Telemetry
from controller.bench.work import RanOut, Target, Work
from controller.model.faults import Refused
from controller.model.instance import Run, RunKind
from controller.model.reasons import Reason

NARROW = Sizing(1, 1)
NARROW_WORKERS = 2  # partition workers of a warm-up


@dataclass(slots=True)
class Attempt:
    """What is known of a run so far."""

    started_at: float
    kind: RunKind = RunKind.BENCHMARK
    conditions: Conditions = field(default_factory=Conditions)
    sizing: Sizing | None = None
    reading: Reading = field(default_factory=Reading)
    telemetry: Telemetry | None = None

    @property
    def disturbances(self) -> list[str]:
        """What its telemetry says against it, beside what its log says."""
        return self.telemetry.disturbances if self.telemetry else []

    def detail(self, text: str) -> str:
        """`text`, and what a person should know beside it."""
        return "; ".join(part for part in (text, self.conditions.gpus.note, *self.disturbances) if part)

    def run(self, target: Target, work: Work, *, run_id: str, ended_at: float, reason: Reason, detail: str) -> Run:
        """The record of it."""
        reading, found, seen = self.reading, self.conditions, self.telemetry
        return Run(
            id=run_id,
            nonce=target.nonce,
            fleet=work.fleet,
            machine_id=target.machine_id,
            shape=work.shape,
            workload=work.workload,
            started_at=self.started_at,
            ended_at=ended_at,
            reason=reason,
            kind=self.kind,
            detail=detail,
            rate=reading.rate,
            unit=work.unit,
            error=reading.error,
            concurrency=self.sizing.concurrency if self.sizing else None,
            count=reading.count,
            ram_gib=found.ram_gib,
            cpu_cores=found.cpu_cores,
            gpu_uuid=found.gpus.uuids,
            gpu_fraction=target.gpu_fraction,
            neighbours=target.neighbours,
            power_limit_w=found.gpus.power_limit_w,
            power_default_w=found.gpus.power_default_w,
            throttled=seen.throttled if seen else "",
            temperature_c=seen.temperature_c if seen else None,
            cpu_throttled=seen.held_back if seen else None,
            driver=found.driver,
            image=work.image,
            disturbed=reading.disturbed or bool(self.disturbances),
        )


async def measure(session: Session, work: Work, attempt: Attempt, *, clock: Clock, ran_out: RanOut) -> str:
    """Run the benchmark and read its rate, telling `attempt` of all that becomes known; the evidence in one line.

    Raises:
        Refused: HOST_FAULT, OUT_OF_MEMORY, BENCHMARK_FAILED, BENCHMARK_STALLED, BENCHMARK_TIMEOUT or NO_RATE.
        Retry: CONNECTION_LOST.
    """
    attempt.conditions = found = await session.conditions()
    wide = size(work, found.ram_gib, ran_out=ran_out, warm=found.warm or bool(work.warmup_command))
    if work.warmup_command and not found.warm:
        attempt.sizing = NARROW
        await _warm_up(session, work, found, clock=clock)
        await session.warmed(found.boot)
    attempt.sizing = wide
    attempt.started_at = clock.now()
    attempt.telemetry = telemetry = Telemetry(session, clock)
    reader = reader_of(work.format, pattern=work.pattern, wanted=work.unit)
    ended = await _watched(
        session,
        work.command,
        telemetry=telemetry,
        limits=_limits(work.timeout_s),
        variables=variables(work, found, wide),
        read=reader.feed,
    )
    attempt.reading = checked(ended, reader.result(), telemetry)
    await session.warmed(found.boot)
    return attempt.reading.detail


def variables(work: Work, found: Conditions, sizing: Sizing, *, workers: int | None = None) -> Mapping[str, object]:
    """What commands see, beside the fleet's own variables. Unknown, or left to them: empty."""
    return {
        "GPU_COUNT": work.gpu_count,
        "RAM_GIB": "" if found.ram_gib is None else int(found.ram_gib),
        "CPU_CORES": found.cpu_cores or "",
        "CONCURRENCY": sizing.concurrency,
        "WARMUP": sizing.warmup,
        "PARTITION_WORKERS": "" if workers is None else workers,
    }


def checked(ended: Ended, reading: Reading, telemetry: Telemetry | None = None) -> Reading:
    """The reading, if it is of a run that went well.

    Raises:
        Refused: HOST_FAULT, OUT_OF_MEMORY, BENCHMARK_FAILED or NO_RATE.
    """
    _sound(ended, telemetry, failed=bool(ended.status) or reading.rate is None)
    if reading.rate is None:
        raise Refused(Reason.NO_RATE, f"{reading.detail}; last: {ended.log.tail}")
    return reading


def well(ended: Ended, reason: Reason) -> None:
    """Raise Refused, for that reason, if the exit status says that it failed."""
    if ended.status:
        raise Refused(reason, f"exit status {ended.status}: {ended.log.tail}")


def _sound(ended: Ended, telemetry: Telemetry | None, *, failed: bool) -> None:
    if ended.log.broken_gpu:
        raise Refused(Reason.HOST_FAULT, ended.log.broken_gpu)
    if failed and (sign := ended.log.no_memory(ended.status)):
        raise Refused(Reason.OUT_OF_MEMORY, sign)
    if telemetry is not None:
        _spared(telemetry, f"last: {ended.log.tail}", failed=failed)
    well(ended, Reason.BENCHMARK_FAILED)


def _spared(telemetry: Telemetry, text: str, *, failed: bool) -> None:
    """Raise Refused, OUT_OF_MEMORY, if the kernel killed: by its log only of a failure, for that has neighbours too."""
    if sign := telemetry.killed or (telemetry.logged if failed else ""):
        raise Refused(Reason.OUT_OF_MEMORY, f"{sign}; {text}")


async def _warm_up(session: Session, work: Work, found: Conditions, *, clock: Clock) -> None:
    session.report("warming up")
    telemetry = Telemetry(session, clock)
    try:
        ended = await _watched(
            session,
            work.warmup_command,
            telemetry=telemetry,
            limits=_limits(work.warmup_timeout_s),
            variables=variables(work, found, NARROW, workers=NARROW_WORKERS),
        )
        _sound(ended, telemetry, failed=bool(ended.status))
    except Refused as fault:
        raise Refused(fault.reason, f"warm-up: {fault}") from fault


async def _watched(
    session: Session,
    command: str,
    *,
    telemetry: Telemetry,
    limits: Limits,
    variables: Mapping[str, object],
    read: Callable[[str], None] | None = None,
) -> Ended:
    """Run a command under watch. One that hangs when the kernel has killed part of it ran out of memory."""
    try:
        async with telemetry.watching():
            return await session.run(command, limits=limits, variables=variables, read=read)
    except Refused as fault:
        _spared(telemetry, str(fault), failed=True)
        raise


def _limits(timeout_s: float) -> Limits:
    return Limits(
        timeout_s=timeout_s, timeout=Reason.BENCHMARK_TIMEOUT, stretch=STRETCH, stall=Reason.BENCHMARK_STALLED
    )
