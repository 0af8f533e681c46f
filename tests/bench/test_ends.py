import asyncio

import pytest

from controller.bench.work import Result
from controller.model.instance import Run
from controller.model.reasons import Reason
from tests.bench.conftest import (
    Bed,
    LoopClock,
    hangs,
    work,
)

pytestmark = pytest.mark.looptime


def run_of(result: Result) -> Run:
    assert result.run is not None
    return result.run


async def heard(bed: Bed, line: str) -> None:
    """Wait until the job told of a line."""
    while line not in bed.progress:
        await LoopClock().sleep(1)


async def test_timeout_ends_our_process_alone(bed: Bed):
    """A benchmark over its time is ended by its own pid; what else runs on the host goes on."""
    bed.host.programs |= {"serve": hangs, "bench": hangs}
    other = asyncio.ensure_future(
        bed.bench().prepare(bed.target(), work(prepare_command="serve", prepare_timeout_s=1e6))
    )
    await LoopClock().sleep(5)
    done = await bed.bench().measure(bed.target(), work(timeout_s=300))
    assert (done.reason, run_of(done).reason) == (Reason.BENCHMARK_TIMEOUT, Reason.BENCHMARK_TIMEOUT)
    assert [command for command in bed.host.commands if "kill" in command] == ["kill -TERM -108"]
    assert list(bed.host.running) == [101]
    other.cancel()


async def test_process_deaf_to_term_is_killed(bed: Bed):
    """What ignores SIGTERM gets SIGKILL ten seconds later."""
    bed.host.deaf = True
    bed.host.programs["bench"] = hangs
    await bed.bench().measure(bed.target(), work(timeout_s=300))
    assert [signal for signal, _ in bed.host.signals] == ["TERM", "KILL"]
    assert bed.host.running == {}


async def test_cancelled_job_ends_its_process(bed: Bed):
    """Cancelling a job ends what it runs before the job is gone."""
    bed.host.programs["bench"] = hangs
    job = asyncio.ensure_future(bed.bench().measure(bed.target(), work(), progress=bed.progress.append))
    await heard(bed, "started")
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    assert [signal for signal, _ in bed.host.signals] == ["TERM"]
    assert bed.host.running == {}


async def test_lost_connection_is_no_verdict(bed: Bed):
    """A connection cut mid-run is CONNECTION_LOST, without a rate, and the run left behind is ended over a new one."""
    bed.host.programs["bench"] = hangs
    job = asyncio.ensure_future(bed.bench().measure(bed.target(), work(), progress=bed.progress.append))
    await heard(bed, "started")
    bed.host.drop()
    done = await job
    assert (done.ok, done.reason, run_of(done).rate) == (False, Reason.CONNECTION_LOST, None)
    assert [signal for signal, _ in bed.host.signals] == ["TERM"]


async def test_lost_host_is_given_up(bed: Bed):
    """Where the host is gone for good the job still ends."""
    bed.host.programs["bench"] = hangs
    job = asyncio.ensure_future(bed.bench().measure(bed.target(), work(), progress=bed.progress.append))
    await heard(bed, "started")
    bed.host.authorized.clear()
    bed.host.drop()
    assert (await job).reason is Reason.CONNECTION_LOST


async def test_unreachable_measurement_has_a_run_too(bed: Bed):
    """A measurement that did not begin is recorded as one that failed."""
    run = run_of(await bed.bench().measure(bed.target(bed.dead_port), work()))
    assert (run.reason, run.rate, run.concurrency) == (Reason.SSH_UNREACHABLE, None, None)
