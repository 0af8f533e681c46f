"""The jobs on one rented instance: prepare and measure it, start, read and quiesce its production. Called by the loop.

Each job opens its own connection, returns a Result whatever happens, and decides nothing about fleets. Cancelling a job
ends what it runs on the instance, and nothing else there.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from controller.bench.measuring import Attempt, checked, measure, variables, well
from controller.bench.memory import size
from controller.bench.progress import STRETCH, Limits
from controller.bench.reach import Reattach, reach
from controller.bench.readers import reader_of
from controller.bench.remote import Clock, Connect
from controller.bench.session import Session
from controller.bench.work import RanOut, Result, Target, Work
from controller.model.faults import Fault, Refused
from controller.model.instance import RunKind
from controller.model.reasons import Reason

Progress = Callable[[str], None]
SHOWN = 400  # characters of a detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait, in seconds of the clock, for what no manifest sets."""

    reach_s: float = 600.0  # until an instance lets us in
    stall_s: float = 600.0  # of silence, before a preparation counts as stalled
    start_s: float = 300.0  # for the start command to return
    read_s: float = 120.0  # for production to be reached, and as long again for its rate to be printed


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
                    stretch=STRETCH,
                    silence_s=self._patience.stall_s,
                    stall=Reason.PREPARE_STALLED,
                ),
                variables={"GPU_COUNT": work.gpu_count},
                said=done_when,
            )
            if done_when and not ended.said:
                raise Refused(Reason.PREPARE_FAILED, f"ended, and no line was {work.done_when!r}: {ended.log.tail}")
            if not done_when:
                well(ended, Reason.PREPARE_FAILED)
            return ended.log.tail

        return await self._job(self._session(target, work, progress), target, steps)

    async def measure(
        self, target: Target, work: Work, *, progress: Progress = unheard, ran_out: RanOut = ()
    ) -> Result:
        """Run the benchmark once, as wide as memory and `ran_out` allow. The Result always has a Run.

        Reasons: MEASURED; NO_RATE, OUT_OF_MEMORY, BENCHMARK_FAILED, BENCHMARK_STALLED, BENCHMARK_TIMEOUT, HOST_FAULT,
        CONNECTION_LOST, SSH_UNREACHABLE, SSH_REFUSED, HOST_KEY_CHANGED.
        """
        attempt = Attempt(self._clock.now())

        async def steps(session: Session) -> str:
            return await measure(session, work, attempt, clock=self._clock, ran_out=ran_out)

        result = await self._job(self._session(target, work, progress), target, steps, done=Reason.MEASURED)
        return self._recorded(result, attempt, target, work)

    async def read(self, target: Target, work: Work, *, progress: Progress = unheard, ran_out: RanOut = ()) -> Result:
        """Read the rate of ordinary production, which goes on. The Result has a Run only if it is ok.

        Reasons: MEASURED; NO_RATE, BENCHMARK_FAILED, BENCHMARK_TIMEOUT, of the command that reads, and as `measure`.
        """
        attempt = Attempt(self._clock.now(), kind=RunKind.PRODUCTION)

        async def steps(session: Session) -> str:
            attempt.conditions = found = await session.conditions()
            attempt.sizing = size(work, found.ram_gib, ran_out=ran_out, warm=True)
            reader = reader_of(work.production_format, pattern=work.production_pattern, wanted=work.unit)
            attempt.started_at = self._clock.now()
            ended = await session.run(
                work.production_command,
                limits=Limits(timeout_s=self._patience.read_s, timeout=Reason.BENCHMARK_TIMEOUT),
                variables=variables(work, found, attempt.sizing),
                read=reader.feed,
            )
            attempt.reading = checked(ended, reader.result())
            return attempt.reading.detail

        if not work.production_command:
            return Result(ok=False, reason=Reason.NO_RATE, detail="no command reads the rate of production")
        session = self._session(target, work, progress)
        result = await self._job(session, target, steps, done=Reason.MEASURED, reach_s=self._patience.read_s)
        return self._recorded(result, attempt, target, work) if result.ok else result

    async def start(self, target: Target, work: Work, *, progress: Progress = unheard, ran_out: RanOut = ()) -> Result:
        """Start production, with the variables a benchmark sees. The command returns while production goes on.

        Reasons: PREPARED; START_FAILED, OUT_OF_MEMORY, HOST_FAULT, and those of reaching it.
        """

        async def steps(session: Session) -> str:
            found = await session.conditions()
            warm = found.warm or bool(work.warmup_command)
            ended = await session.run(
                work.start,
                limits=Limits(timeout_s=self._patience.start_s, timeout=Reason.START_FAILED),
                variables=variables(work, found, size(work, found.ram_gib, ran_out=ran_out, warm=warm)),
            )
            well(ended, Reason.START_FAILED)
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
            well(ended, Reason.START_FAILED)
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
        return Result(ok=ok, reason=reason, detail=session.redact(detail)[:SHOWN], host_key=session.host_key)

    def _recorded(self, result: Result, attempt: Attempt, target: Target, work: Work) -> Result:
        """The result with its Run."""
        detail = attempt.detail(result.detail)
        run = attempt.run(
            target, work, run_id=self._new_id(), ended_at=self._clock.now(), reason=result.reason, detail=detail
        )
        return Result(ok=result.ok, reason=result.reason, detail=detail, host_key=result.host_key, run=run)
