import asyncio
import logging
import re

import pytest
from asyncssh.packet import UInt32

from controller.model.reasons import Reason
from tests.bench.conftest import (
    SECRET,
    Bed,
    Process,
    hangs,
    prints,
    work,
)

pytestmark = pytest.mark.looptime


def elapsed() -> float:
    return asyncio.get_running_loop().time()


async def test_start_sees_what_the_benchmark_saw(bed: Bed):
    """Production is started with the same variables, and is done when its command returns."""
    seen: dict[str, str] = {}

    async def start(process: Process) -> int:
        seen.update(process.env)
        return 0

    bed.host.programs["prove &"] = start
    done = await bed.bench().start(bed.target(), work(start="prove &"), ran_out=((128.0, 4),))
    assert (done.ok, done.run) == (True, None)
    assert (seen["CONCURRENCY"], seen["TOKEN"]) == ("2", SECRET)


async def test_start_returns_though_production_holds_its_output(bed: Bed):
    """A daemon that keeps the start command's output open does not keep the job."""

    async def start(process: Process) -> int:
        process.ssh.channel._send_request(b"exit-status", UInt32(0))  # and no end of output, as OpenSSH does
        await asyncio.Event().wait()
        return 0

    bed.host.programs["prove &"] = start
    assert (await bed.bench().start(bed.target(), work(start="prove &"))).ok
    assert elapsed() < 60


async def test_start_that_fails_or_does_not_return(bed: Bed):
    """A start command that exits badly, or runs on in the foreground, has failed, and is not left running."""
    bed.host.programs |= {"prove": hangs, "false": prints("no such binary\n", status=1)}
    done = await bed.bench().start(bed.target(), work(start="false"))
    assert (done.reason, "no such binary" in done.detail) == (Reason.START_FAILED, True)
    done = await bed.bench().start(bed.target(), work(start="prove"))
    assert (done.ok, done.reason, bed.host.running) == (False, Reason.START_FAILED, {})


async def test_quiesce_is_bounded_by_the_drain(bed: Bed):
    """The stop command gets drainSeconds, and a dead host does not delay a release for longer."""
    bed.host.programs |= {"stop": prints("drained\n", every_s=50), "hang": hangs}
    assert (await bed.bench().quiesce(bed.target(), work(stop="stop"))).ok
    began = elapsed()
    assert not (await bed.bench().quiesce(bed.target(), work(stop="hang", drain_seconds=30))).ok
    assert not (await bed.bench().quiesce(bed.target(bed.dead_port), work(stop="stop", drain_seconds=30))).ok
    assert elapsed() - began < 100


async def test_nothing_to_start_or_stop_needs_no_connection(bed: Bed):
    """A fleet without start and stop commands is not connected to for them."""
    assert (await bed.bench().start(bed.target(), work())).ok
    assert (await bed.bench().quiesce(bed.target(), work())).ok
    assert bed.host.connections == []


async def test_secrets_stay_on_the_instance(bed: Bed, caplog: pytest.LogCaptureFixture):
    """Values of env that a host prints back are in no progress, result, run, exception or log line."""
    caplog.set_level(logging.DEBUG)
    echo = f"TOKEN={SECRET}\n"
    broken = 'key = """\nMARKER-second line\n'
    secrets = {"TOKEN": SECRET, "PEM": "-----\nMARKER-second line\n-----"}
    bed.host.programs |= {
        "fetch": prints(echo, broken, status=1),
        "bench": prints(echo + '{"rate": 1, "unit": "' + SECRET + '/h"}\n'),
        "prove": hangs,
    }
    job = work(env=secrets, prepare_command="fetch", start="prove")
    results = [
        await bed.bench().prepare(bed.target(), job, progress=bed.progress.append),
        await bed.bench().measure(bed.target(), job, progress=bed.progress.append),
        await bed.bench().start(bed.target(), job, progress=bed.progress.append),
    ]
    everything = f"{results} {bed.progress} {caplog.text} {job!r}"
    assert "TOKEN=***" in everything
    assert re.findall("MARKER.*", everything) == []
    assert any(SECRET in command for command in bed.host.commands)
