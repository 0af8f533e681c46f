"""The scripts in a real POSIX shell, in a session of its own as sshd starts it: no emulation of quoting or of kill."""

import asyncio
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from controller.bench.bench import Bench
from controller.bench.remote import Remote
from controller.bench.work import Target, Work
from controller.model.reasons import Reason
from tests.bench.conftest import LoopClock, work

TARGET = Target(nonce="n", instance_id=1, machine_id=1, endpoints=())


class Local:
    """A Remote that is this machine."""

    host_key = None
    route = "direct"

    def __init__(self, shell: str, home: Path) -> None:
        self._shell = shell
        self._home = home

    async def run(self, command: str, *, out: Callable[[str], None], err: Callable[[str], None]) -> int:
        """See Remote."""
        process = await asyncio.create_subprocess_exec(
            self._shell, "-c", command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "HOME": str(self._home)}, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        await asyncio.gather(_pass_on(process.stdout, out), _pass_on(process.stderr, err))
        return await process.wait() % 256

    async def close(self) -> None:
        """See Remote."""


async def _pass_on(stream: asyncio.StreamReader | None, take: Callable[[str], None]) -> None:
    assert stream is not None
    while piece := await stream.read(4096):
        take(piece.decode())


@pytest.fixture(params=["sh", "bash"])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Bench:
    """A bench that works here, in a home of its own."""
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param} here")

    async def connect(_target: Target) -> Remote:
        return Local(request.param, tmp_path)

    return Bench(connect=connect, clock=LoopClock(), new_id=lambda: "run-1")


def local_work(**changes: object) -> Work:
    return work(reserve_gib=0, per_proof_gib=0.001, **changes)


async def test_variables_arrive_as_they_are(bench):
    """Quotes, blanks, dollars, backslashes and newlines in a value reach the command unharmed."""
    nasty = 'it\'s "$HOME" `id` \\n\nsecond line; exit 9 #'
    command = 'test "$NASTY" = "$(cat expected)" && echo "{\\"rate\\": $CONCURRENCY$WARMUP}"'
    expected = "printf '%s' " + "'" + nasty.replace("'", "'\\''") + "'"
    done = await bench.measure(
        TARGET, local_work(env={"NASTY": nasty}, command=command.replace("cat expected", expected))
    )
    assert (done.reason, done.run is not None and done.run.rate) == (Reason.MEASURED, 55.0)


async def test_conditions_of_this_machine(bench):
    """Memory and cores are read where every Linux has them."""
    done = await bench.measure(TARGET, local_work(command="""echo '{"rate": 1}'"""))
    assert done.run is not None
    assert done.run.cpu_cores is not None
    assert 1 <= done.run.cpu_cores <= (os.cpu_count() or 1)
    assert done.run.ram_gib is not None
    assert 0.1 < done.run.ram_gib < 100_000


async def test_called_off_with_all_that_it_started(bench, tmp_path: Path):
    """A cancelled command is ended with its children, and the shell beside it is not."""
    pids = tmp_path / "pids"
    command = f"sleep 600 & echo $! > {pids}; sleep 600 & echo $! >> {pids}; echo started; wait"
    started = asyncio.Event()
    bystander = await asyncio.create_subprocess_exec("sleep", "600")
    job = asyncio.ensure_future(
        bench.measure(
            TARGET, local_work(command=command), progress=lambda line: started.set() if line == "started" else None
        )
    )
    await started.wait()
    job.cancel()
    with pytest.raises(asyncio.CancelledError):
        await job
    async with asyncio.timeout(60):
        while any(_runs(int(pid)) for pid in pids.read_text().split()):  # they have let go of their output already
            await LoopClock().sleep(0.01)
    assert bystander.returncode is None
    bystander.kill()
    await bystander.wait()


def _runs(pid: int) -> bool:
    """Whether a process is there, and not just waiting to be reaped by whoever adopted it."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
