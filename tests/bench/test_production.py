import asyncio
import logging
import re

import pytest
from asyncssh.packet import UInt32

from controller.model.instance import RunKind
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


async def test_read_does_not_touch_production(bed: Bed):
    """Production's rate is a run of its own kind, with its conditions, read while it works: nothing is stopped."""
    seen: dict[str, str] = {}

    async def ask(process: Process) -> int:
        seen.update(process.env)
        process.out('{"rate": 60.9, "unit": "proofs/h"}\n')
        return 0

    bed.host.programs |= {"prover status": ask, "serve": hangs}
    job = work(production_command="prover status", stop="stop", image="example/prover:1")
    done = await bed.bench().read(bed.target(neighbours=1, gpu_fraction=0.5), job)
    run = done.run
    assert run is not None
    assert (done.ok, done.reason, run.kind, run.rate) == (True, Reason.MEASURED, RunKind.PRODUCTION, 60.9)
    assert (run.neighbours, run.gpu_fraction, run.gpu_uuid, run.ram_gib) == (1, 0.5, "GPU-5d1f-0", 128.0)
    assert (seen["CONCURRENCY"], seen["WARMUP"], seen["TOKEN"]) == ("4", "0", SECRET)
    assert [command for command in bed.host.commands if "stop" in command or "bench" in command] == []


@pytest.mark.parametrize(
    ("text", "status", "reason"),
    [
        ("", 1, Reason.BENCHMARK_FAILED),
        ("idle\n", 0, Reason.NO_RATE),
        ('{"rate": 0}\n', 0, Reason.NO_RATE),
        ('{"rate": NaN}\n', 0, Reason.NO_RATE),
    ],
)
async def test_read_that_fails_is_no_run(bed: Bed, text, status, reason):
    """Production that tells no rate leaves no run: it says nothing about the machine."""
    bed.host.programs["prover status"] = prints(text, status=status)
    done = await bed.bench().read(bed.target(), work(production_command="prover status"))
    assert (done.ok, done.reason, done.run) == (False, reason, None)


async def test_read_is_short(bed: Bed):
    """A command that does not answer, and a host that is not there, are given up within two minutes each."""
    bed.host.programs["prover status"] = hangs
    job = work(production_command="prover status")
    done = await bed.bench().read(bed.target(), job)
    assert (done.reason, done.run, bed.host.running) == (Reason.BENCHMARK_TIMEOUT, None, {})
    done = await bed.bench().read(bed.target(bed.dead_port), job)
    assert (done.reason, done.run) == (Reason.SSH_UNREACHABLE, None)
    assert elapsed() < 260


async def test_read_in_its_own_format(bed: Bed):
    """Production may print its rate in another form than the benchmark."""
    bed.host.programs["prover log"] = prints("3600 proofs, 41.3s/proof\n")
    pattern = r"(?P<rate>[\d.]+)(?P<unit>s/proof)"
    job = work(production_command="prover log", production_format="regex", production_pattern=pattern)
    run = (await bed.bench().read(bed.target(), job)).run
    assert run is not None
    assert run.rate == pytest.approx(3600 / 41.3)


async def test_nothing_to_read(bed: Bed):
    """A fleet that does not say how production's rate is read is not connected to for it."""
    assert not (await bed.bench().read(bed.target(), work())).ok
    assert bed.host.connections == []


async def test_no_part_of_a_secret_is_shown(bed: Bed):
    """A secret that a line of evidence is cut within is not shown either, not even its beginning."""
    secret = "hunter2-" + "s3cr3t" * 100
    for padding in (0, 80, 140, 380):
        line = f'{{"rate": 61.4, "unit": "proofs/h", "pad": "{"x" * padding}", "token": "{secret}"}}\n'
        bed.host.programs["bench"] = bed.host.programs["rate"] = prints(line)
        job = work(env={"TOKEN": secret}, production_command="rate")
        for done in (await bed.bench().measure(bed.target(), job), await bed.bench().read(bed.target(), job)):
            assert done.run is not None
            assert done.run.rate == 61.4
            assert "hunter2" not in done.detail + done.run.detail
            assert len(done.detail) <= 500
