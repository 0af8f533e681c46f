"""The jobs on one rented instance: prepare it, measure it, start and quiesce its production. Called by the loop.

Each job opens its own connection, returns a Result whatever happens, and decides nothing about fleets. Cancelling a job
ends what it runs on the instance, and nothing else there.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from controller.bench.command import Limits
from controller.bench.conditions import Conditions, Sizing, size
from controller.bench.rates import Reading
from controller.bench.reach import Reattach, reach
from controller.bench.readers import reader_of
from controller.bench.remote import Clock, Connect
from controller.bench.session import Ended, Session
from controller.bench.work import Result, Target, Work
from controller.model.faults import Fault, Refused
from controller.model.instance import Run
from controller.model.reasons import Reason

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait, in seconds of the clock, for what no manifest sets."""

    reach_s: float = 600.0  # until an instance lets us in
    stall_s: float = 600.0  # of silence, before a preparation counts as stalled
    start_s: float = 300.0  # for the start command to return


@dataclass(slots=True)
class _Attempt:
    """What is known of a measurement so far."""

    started_at: float
    conditions: Conditions = field(default_factory=Conditions)
    sizing: Sizing | None = None
    reading: Reading = field(default_factory=Reading)


def unheard(_line: str) -> None:
    """Progress that nobody follows."""


class Bench:
    """Carries out jobs.

    Args:
        connect: opens the way to an instance.
        clock: the controller's time.
        new_id: makes the ids of runs.
        reattach: hands our key to an instance again after it was denied; None: do not.
        patience: see there.
    """

    def __init__(
        self,
        *,
        connect: Connect,
        clock: Clock,
        new_id: Callable[[], str],
        reattach: Reattach | None = None,
        patience: Patience = Patience(),
    ) -> None:
        self._connect = connect
        self._clock = clock
        self._new_id = new_id
        self._reattach = reattach
        self._patience = patience

    async def prepare(self, target: Target, work: Work, *, progress: Progress = unheard) -> Result:
        """Reach the instance and run the preparation, seeing its progress.

        It is done when the command ends well, or, with `done_when`, once a line matches it: a command that goes on
        after that is ended. Reasons: PREPARED; SSH_UNREACHABLE, SSH_REFUSED, HOST_KEY_CHANGED, CONNECTION_LOST,
        PREPARE_FAILED, PREPARE_STALLED, PREPARE_TIMEOUT.
        """

        async def steps(session: Session) -> str:
            if not work.prepare_command:
                return "nothing to prepare"
            done_when = re.compile(work.done_when) if work.done_when else None
            ended = await session.run(
                work.prepare_command,
                limits=Limits(
                    timeout_s=work.prepare_timeout_s,
                    timeout=Reason.PREPARE_TIMEOUT,
                    stall_s=self._patience.stall_s,
                    stall=Reason.PREPARE_STALLED,
                ),
                variables={"GPU_COUNT": work.gpu_count},
                said=done_when,
            )
            if done_when and not ended.said:
                raise Refused(Reason.PREPARE_FAILED, f"ended, and no line was {work.done_when!r}: {ended.log.tail}")
            if not done_when:
                _check(ended, Reason.PREPARE_FAILED)
            return ended.log.tail

        return await self._job(self._session(target, work, progress), target, steps)

    async def measure(
        self, target: Target, work: Work, *, progress: Progress = unheard, concurrency_limit: int | None = None
    ) -> Result:
        """Run the benchmark once, as wide as memory and `concurrency_limit` allow. The Result always has a Run.

        Reasons: MEASURED; NO_RATE, OUT_OF_MEMORY, BENCHMARK_FAILED, BENCHMARK_TIMEOUT, HOST_FAULT, CONNECTION_LOST,
        SSH_UNREACHABLE, SSH_REFUSED, HOST_KEY_CHANGED.
        """
        attempt = _Attempt(self._clock.now())

        async def steps(session: Session) -> str:
            attempt.started_at = self._clock.now()
            attempt.conditions = await session.conditions()
            attempt.sizing = size(work, attempt.conditions, limit=concurrency_limit)
            reader = reader_of(work)
            ended = await session.run(
                work.command,
                limits=Limits(timeout_s=work.timeout_s, timeout=Reason.BENCHMARK_TIMEOUT),
                variables=_variables(work, attempt.conditions, attempt.sizing),
                read=reader.feed,
            )
            attempt.reading = _checked(ended, reader.result())
            return attempt.reading.detail

        result = await self._job(self._session(target, work, progress), target, steps, done=Reason.MEASURED)
        detail = "; ".join(text for text in (result.detail, attempt.conditions.note) if text)
        run = self._run(target, work, attempt, reason=result.reason, detail=detail)
        return Result(ok=result.ok, reason=result.reason, detail=detail, host_key=result.host_key, run=run)

    async def start(
        self, target: Target, work: Work, *, progress: Progress = unheard, concurrency_limit: int | None = None
    ) -> Result:
        """Start production, with the variables a benchmark sees. The command returns while production goes on.

        Reasons: PREPARED; START_FAILED, OUT_OF_MEMORY, HOST_FAULT, and those of reaching it.
        """

        async def steps(session: Session) -> str:
            found = await session.conditions()
            ended = await session.run(
                work.start,
                limits=Limits(timeout_s=self._patience.start_s, timeout=Reason.START_FAILED),
                variables=_variables(work, found, size(work, found, limit=concurrency_limit)),
            )
            _check(ended, Reason.START_FAILED)
            return "production started"

        if not work.start:
            return Result(ok=True, reason=Reason.PREPARED, detail="nothing to start")
        return await self._job(self._session(target, work, progress), target, steps)

    async def quiesce(self, target: Target, work: Work, *, progress: Progress = unheard) -> Result:
        """Stop production, within `drain_seconds` for reaching the instance and as long again for the command.

        Reasons: PREPARED; START_FAILED, of the stop command, and those of reaching it.
        """

        async def steps(session: Session) -> str:
            limits = Limits(timeout_s=work.drain_seconds, timeout=Reason.START_FAILED)
            ended = await session.run(work.stop, limits=limits, variables={"GPU_COUNT": work.gpu_count})
            _check(ended, Reason.START_FAILED)
            return "production stopped"

        if not work.stop:
            return Result(ok=True, reason=Reason.PREPARED, detail="nothing to stop")
        return await self._job(self._session(target, work, progress), target, steps, reach_s=work.drain_seconds)

    def _session(self, target: Target, work: Work, progress: Progress) -> Session:
        return Session(target, work, connect=self._connect, clock=self._clock, progress=progress)

    async def _job(
        self,
        session: Session,
        target: Target,
        steps: Callable[[Session], Awaitable[str]],
        *,
        done: Reason = Reason.PREPARED,
        reach_s: float | None = None,
    ) -> Result:
        try:
            session.remote = await reach(
                target,
                connect=self._connect,
                clock=self._clock,
                patience_s=self._patience.reach_s if reach_s is None else reach_s,
                reattach=self._reattach,
                report=session.report,
            )
            ok, reason, detail = True, done, await steps(session)
        except Fault as fault:
            ok, reason, detail = False, fault.reason, str(fault)
        finally:
            if session.remote:
                await session.remote.close()
        return Result(ok=ok, reason=reason, detail=session.redact(detail), host_key=session.host_key)

    def _run(self, target: Target, work: Work, attempt: _Attempt, *, reason: Reason, detail: str) -> Run:
        reading, found = attempt.reading, attempt.conditions
        return Run(
            id=self._new_id(),
            nonce=target.nonce,
            fleet=work.fleet,
            machine_id=target.machine_id,
            shape=work.shape,
            workload=work.workload,
            started_at=attempt.started_at,
            ended_at=self._clock.now(),
            reason=reason,
            detail=detail,
            rate=reading.rate,
            unit=work.unit,
            error=reading.error,
            concurrency=attempt.sizing.concurrency if attempt.sizing else None,
            count=reading.count,
            ram_gib=found.ram_gib,
            cpu_cores=found.cpu_cores,
            gpu_uuid=found.gpu_uuid,
            disturbed=reading.disturbed,
        )


def _variables(work: Work, found: Conditions, sizing: Sizing) -> Mapping[str, object]:
    """What a benchmark or production sees, beside the fleet's own variables. Unknown: empty."""
    return {
        "GPU_COUNT": work.gpu_count,
        "RAM_GIB": "" if found.ram_gib is None else int(found.ram_gib),
        "CPU_CORES": found.cpu_cores or "",
        "CONCURRENCY": sizing.concurrency,
        "WARMUP": sizing.warmup,
    }


def _checked(ended: Ended, reading: Reading) -> Reading:
    """The reading, if it is of a run that went well.

    Raises:
        Refused: HOST_FAULT, OUT_OF_MEMORY, BENCHMARK_FAILED or NO_RATE.
    """
    if ended.log.broken_gpu:
        raise Refused(Reason.HOST_FAULT, ended.log.broken_gpu)
    if (ended.status or reading.rate is None) and (sign := ended.log.no_memory(ended.status)):
        raise Refused(Reason.OUT_OF_MEMORY, sign)
    _check(ended, Reason.BENCHMARK_FAILED)
    if reading.rate is None:
        raise Refused(Reason.NO_RATE, f"{reading.detail}; last: {ended.log.tail}")
    return reading


def _check(ended: Ended, reason: Reason) -> None:
    if ended.status:
        raise Refused(reason, f"exit status {ended.status}: {ended.log.tail}")
