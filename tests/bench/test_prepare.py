import asyncio

import pytest

from controller.model.reasons import Reason
from tests.bench.conftest import (
    Bed,
    LoopClock,
    hangs,
    prints,
    work,
)

pytestmark = pytest.mark.looptime


def elapsed() -> float:
    return asyncio.get_running_loop().time()


async def test_prepare_ends_with_its_command(bed: Bed):
    """Without doneWhen the preparation is done when its command exits well, and its lines are progress."""
    bed.host.programs["fetch"] = prints("10%\r", "50%\r", "100%\n", every_s=500)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch"), progress=bed.progress.append)
    assert (done.ok, done.reason, done.run) == (True, Reason.PREPARED, None)
    assert [line for line in bed.progress if "%" in line] == ["10%", "50%", "100%"]


async def test_prepare_is_done_when_a_line_matches(bed: Bed):
    """With doneWhen a command that would go on for ever is ended once the line is seen, by its own pid."""
    bed.host.programs["tail -F log"] = prints(
        "loading\n", "params: all parameters ready!\n", *["more\n"] * 9, every_s=60
    )
    ready = work(prepare_command="tail -F log", done_when="parameters? ready")
    done = await bed.bench().prepare(bed.target(), ready)
    assert (done.ok, done.reason) == (True, Reason.PREPARED)
    assert bed.host.signals == [("TERM", 101)]
    assert elapsed() < 150


async def test_prepare_that_ends_by_itself_after_its_line_is_not_killed(bed: Bed):
    """A command gets a moment to finish what it does after the line it is known by."""
    bed.host.programs["fetch"] = prints("ready\n", "cleaned up\n", every_s=5)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch", done_when="^ready$"))
    assert (done.ok, done.detail, bed.host.signals) == (True, "Have fun! | ready | cleaned up", [])


async def test_prepare_without_its_line_has_failed(bed: Bed):
    """A command that exits with 0 but never printed what doneWhen asks for has not prepared anything."""
    bed.host.programs["fetch"] = prints("mirror unreachable, skipped\n")
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch", done_when="ready"))
    assert (done.ok, done.reason) == (False, Reason.PREPARE_FAILED)
    assert "mirror unreachable, skipped" in done.detail


async def test_prepare_that_fails_shows_its_last_lines(bed: Bed):
    """A failed preparation tells its exit status and the last lines, and no more than those."""
    bed.host.programs["fetch"] = prints(*(f"line {n}\n" for n in range(1000)), "No space left on device\n", status=1)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch"))
    assert (done.reason, done.detail) == (
        Reason.PREPARE_FAILED,
        "exit status 1: line 998 | line 999 | No space left on device",
    )


async def test_prepare_that_falls_silent_has_stalled(bed: Bed):
    """Ten minutes without a line end a preparation, and its process; one line each nine minutes does not."""
    bed.host.programs["fetch"] = prints("10%\r", "20%\r", "30%\r", every_s=540)
    assert (await bed.bench().prepare(bed.target(), work(prepare_command="fetch"))).ok
    bed.host.programs["fetch"] = hangs
    began = elapsed()
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch"))
    assert (done.reason, bed.host.signals) == (Reason.PREPARE_STALLED, [("TERM", 102)])
    assert "printed nothing for 600 s; last: Have fun! | started" in done.detail
    assert 599 < elapsed() - began < 620


async def test_prepare_is_over_in_its_time(bed: Bed):
    """A preparation that goes on talking is ended at its timeout."""
    bed.host.programs["fetch"] = prints(*["still at it\n"] * 1000, every_s=60)
    done = await bed.bench().prepare(bed.target(), work(prepare_command="fetch", prepare_timeout_s=1800))
    assert (done.reason, bed.host.signals) == (Reason.PREPARE_TIMEOUT, [("TERM", 101)])
    assert 1799 < elapsed() < 1820


async def test_job_hangs_up(bed: Bed):
    """When a job is over its connection is, at once."""
    assert (await bed.bench().prepare(bed.target(), work())).ok
    assert elapsed() < 1
    while bed.host.connections:
        await LoopClock().sleep(1)
