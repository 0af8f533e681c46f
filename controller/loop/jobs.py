"""Work on instances that outlasts a pass: each job is one task of this process, at most one an instance.

A job's end is written to the ledger at once, and wakes the loop. A job that dies with the process is simply begun
again: what an instance needs next is read from its record, not from here.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import replace

from controller.loop.ports import Clock, Hosts, Order
from controller.model.faults import Fault
from controller.model.instance import Job
from controller.model.reasons import Reason
from controller.plan.outcome import JobEnd

log = logging.getLogger(__name__)

NOTHING: frozenset[str] = frozenset()
DISTURBED = {  # by job: the jobs on its machine that it is not begun beside
    "measure": frozenset({"measure", "start"}),
    "read": frozenset({"measure"}),
    "start": frozenset({"measure"}),
}


class Jobs:
    """The jobs under way. `ended` is called once for each, in this loop's thread."""

    def __init__(self, *, hosts: Hosts, clock: Clock, ended: Callable[[str, JobEnd], None]) -> None:
        self._hosts = hosts
        self._clock = clock
        self._ended = ended
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._jobs: dict[str, Job] = {}
        self._machines: dict[str, int] = {}
        self.wake = asyncio.Event()

    def running(self) -> dict[str, Job]:
        """The jobs under way, by nonce."""
        return dict(self._jobs)

    def begin(self, order: Order) -> bool:
        """Start a job, unless the instance has one, or it and one on its machine would disturb each other.

        Nothing is measured or begins to work beside a measurement: what it was made beside would not be so.
        """
        nonce, machine = order.instance.nonce, order.instance.machine_id
        beside = {job.kind for n, job in self._jobs.items() if self._machines[n] == machine}
        if nonce in self._tasks or beside & DISTURBED.get(order.job, NOTHING):
            return False
        self._jobs[nonce] = Job(kind=order.job, nonce=nonce, since=self._clock.now(), progress_at=self._clock.now())
        self._machines[nonce] = machine
        self._tasks[nonce] = asyncio.create_task(self._carry_out(order), name=f"{order.job} {nonce}")
        return True

    async def cancel(self, nonce: str) -> None:
        """End an instance's job, if it has one, and wait until it has ended."""
        task = self._tasks.get(nonce)
        if task is not None:
            task.cancel()
            await asyncio.wait({task})
            if self._tasks.get(nonce) is task:  # it was cancelled before it had begun
                self._forget(nonce)

    async def close(self) -> None:
        """End all jobs, at once: each may take a while to leave its host in order."""
        await asyncio.gather(*map(self.cancel, tuple(self._tasks)))

    async def _carry_out(self, order: Order) -> None:
        nonce = order.instance.nonce
        try:
            end = await self._hosts.carry_out(order, lambda line: self._progress(nonce, line))
        except asyncio.CancelledError:
            self._forget(nonce)
            raise
        except Exception:
            log.exception("%s of %s ended in an error of our own", order.job, nonce)
            end = _our_fault(order.job)
        self._forget(nonce)
        try:
            self._ended(nonce, end)
        except Fault:
            raise
        except Exception:  # what cannot be written down is a failed try, or it would be tried for ever
            log.exception("%s of %s: its end could not be written down: %s", order.job, nonce, end)
            self._ended(nonce, _our_fault(order.job))
        self.wake.set()

    def _progress(self, nonce: str, line: str) -> None:
        if nonce in self._jobs:
            self._jobs[nonce] = replace(self._jobs[nonce], progress=line[:200], progress_at=self._clock.now())

    def _forget(self, nonce: str) -> None:
        self._tasks.pop(nonce, None)
        self._jobs.pop(nonce, None)
        self._machines.pop(nonce, None)


def _our_fault(job: str) -> JobEnd:
    text = "an error of the controller's own; see its log"
    return JobEnd(job=job, ok=False, reason=Reason.BENCHMARK_FAILED, detail=text)
