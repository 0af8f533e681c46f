import asyncio
from typing import Any

import pytest

from controller.emulator import ConnectionLost
from controller.emulator.syntax import expand

pytestmark = pytest.mark.looptime

RICH = {"baseGib": 0, "perProofGib": 0}


class Box:
    """A running instance and its shell."""

    def __init__(self, make):
        self.make = make
        self.api: Any = None
        self.number = 0

    async def __call__(self, text):
        """Run a text; return its exit code, what it printed, and what it printed on stderr."""
        if self.api is None:
            self.api = await self.make(prover=RICH)
            self.number = await self.api.rent(env={"FROM_ENV": "yes"}, disk=100)
            await self.api.running(self.number)
        out: list[str] = []
        err: list[str] = []
        code = await self.api.emulator.run(self.number, text, out.append, err.append)
        return code, "".join(out), "".join(err)


@pytest.fixture
def sh(make):
    return Box(make)


@pytest.mark.parametrize(
    ("text", "code", "out"),
    [
        ("echo a  b", 0, "a b\n"),
        ("echo 'a  $HOME' \"b  $HOME\" c\\ d", 0, "a  $HOME b  /root c d\n"),
        ("export A=1 B=two\necho $A ${B} ${C:-three} $C.", 0, "1 two three .\n"),
        ("A=x; A=y echo $A; echo $A", 0, "x\nx\n"),
        ("CONCURRENCY=2 cuzk-bench batch --count 0", 2, ""),
        ("exit many", 2, ""),
        ("true && echo yes || echo no", 0, "yes\n"),
        ("false && echo yes || echo no", 0, "no\n"),
        ("false; echo $?", 0, "1\n"),
        ("echo a # a comment\n# another\necho b", 0, "a\nb\n"),
        ("exit 3; echo never", 3, ""),
        ("set -e\nfalse\necho never", 1, ""),
        ("set -e\nfalse || echo saved\ntrue && false\necho never", 1, "saved\n"),
        ("echo a > /f; echo b >> /f; cat /f", 0, "a\nb\n"),
        ("nothing-such 2>&1", 127, "sh: 1: nothing-such: not found\n"),
        ("echo a > ~/f; cat $HOME/f; echo ~ '~' a~/b", 0, "a\n/root ~ a~/b\n"),
        ("rm -f /f && test -f /f", 1, ""),
        ("touch /f && [ -f /f ] && echo is", 0, "is\n"),
        ("echo $FROM_ENV $CONTAINER_ID > /dev/null", 0, ""),
        ("nohup echo a", 0, "a\n"),
        ('echo "a', 2, ""),
        ("echo a | cat", 2, ""),
    ],
)
async def test_the_shell_understands_what_sh_does(sh, text, code, out):
    """Quotes, variables, lists, comments, redirections and errors behave as in sh; the rest is a syntax error."""
    assert (await sh(text))[:2] == (code, out)


async def test_the_environment_of_the_order_reaches_the_shell(sh):
    """A variable given at creation is seen by commands."""
    assert (await sh("echo $FROM_ENV"))[1] == "yes\n"


def test_unquoted_variables_split_and_empty_ones_vanish():
    """An unquoted variable becomes as many words as it holds, a quoted one stays one."""
    variables = {"A": "one two", "E": ""}
    assert expand("$A", variables) == ["one", "two"]
    assert expand('"$A"', variables) == ["one two"]
    assert expand("$E", variables) == []
    assert expand('"$E"', variables) == [""]


async def test_the_machine_shows_its_whole_memory_and_the_container_its_share(sh):
    """/proc/meminfo is the machine's, the cgroup's limit is the instance's, nproc its cores."""
    await sh("true")
    row = await sh.api.row(sh.number)
    code, out, _ = await sh("cat /proc/meminfo; cat /sys/fs/cgroup/memory.max; nproc")
    whole, _, share, cores = out.splitlines()
    assert code == 0
    assert int(whole.split()[1]) == row["cpu_ram"] * 1024
    assert int(share) == pytest.approx(row["cpu_ram"] * 2**20 * row["cpu_cores_effective"] / row["cpu_cores"])
    assert int(cores) == int(row["cpu_cores_effective"])
    assert (await sh("cat /nothing"))[0] == 1


async def test_nvidia_smi_answers_queries(sh):
    """A line a GPU with the asked fields, with or without head and units; an unknown field is refused."""
    code, out, _ = await sh("nvidia-smi --query-gpu=name,memory.total,power.limit --format=csv,noheader,nounits")
    name, memory, power = out.strip().split(", ")
    assert (code, name.startswith("NVIDIA"), int(memory) > 1000, float(power) > 50) == (0, True, True, True)
    assert (await sh("nvidia-smi --query-gpu=uuid --format=csv"))[1].splitlines()[0] == "uuid"
    assert (await sh("nvidia-smi --query-gpu=age --format=csv"))[0] == 2


async def test_parameters_come_at_the_machines_speed_and_only_once(sh):
    """The download takes size by bandwidth and shows its progress; the second time it is ready at once."""
    await sh("true")
    mbps = (await sh.api.row(sh.number))["inet_down"]
    loop = asyncio.get_running_loop()
    start = loop.time()
    code, out, _ = await sh("fetch-params --size-gib 10")
    assert (code, len(out.splitlines()), out.splitlines()[-1]) == (0, 11, "parameters ready")
    assert loop.time() - start == pytest.approx(10 * 8590 / mbps, rel=1e-3)
    start = loop.time()
    assert (await sh("fetch-params --size-gib 10"))[1] == "parameters ready\n"
    assert loop.time() == start
    code, _, err = await sh("fetch-params --size-gib 200")
    assert (code, "No space left" in err) == (1, True)


async def test_a_stalled_download_says_nothing_more(make):
    """Where the scenario stalls it, a download stops in the middle and never ends."""
    api = await make(troubles=[{"kind": "download-stall"}])
    number = await api.rent(disk=60)
    await api.running(number)
    lines: list[str] = []
    work = api.emulator.run(number, "fetch-params", lines.append, lines.append)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(work, 86400)
    assert len(lines) == 4


async def test_kill_ends_the_group_that_a_pid_names(sh):
    """A command told its pid; killing its group from another session ends it with 143, and nothing twice."""
    said = asyncio.Event()
    pid = []

    def hear(text):
        pid.append(int(text.split()[1]))
        said.set()

    await sh("true")
    work = asyncio.create_task(
        sh.api.emulator.run(sh.number, "echo pid $$\nsleep 9999; echo never", hear, lambda _: None)
    )
    await said.wait()
    assert (await sh(f"kill -0 -- -{pid[0]}"))[0] == 0
    assert (await sh(f"kill -TERM -- -{pid[0]}"))[0] == 0
    assert await work == 143
    assert len(pid) == 1
    assert (await sh(f"kill -TERM -- -{pid[0]}"))[0] == 1
    assert (await sh("kill nonsense"))[0] == 2


async def test_background_work_outlives_its_shell_until_killed(sh):
    """A daemon started with & runs on, reports its rate, and ends when killed by name or by its group."""
    code, out, _ = await sh("nohup cuzk-daemon -c 4 > /log 2>&1 &\necho $$")
    assert code == 0
    await sh("sleep 5")
    assert (await sh("cuzk-daemon status"))[1].startswith('{"rate": ')
    assert (await sh("cat /log"))[1] == "cuzk-daemon: ready\n"
    assert (await sh(f"kill -- -{out.strip()}"))[0] == 0
    await sh("sleep 1")
    assert (await sh("cuzk-daemon status"))[0] == 1
    await sh("cuzk-daemon &")
    assert (await sh("sleep 1; pkill cuzk-daemon"))[0] == 0
    assert (await sh("sleep 1; pgrep cuzk-daemon"))[0] == 1


@pytest.mark.parametrize("how", ["stop", "destroy", "host-lost", "ssh-drop", "credit"])
async def test_a_command_is_lost_with_its_instance(make, how):
    """When the instance stops, is destroyed, loses host, connection or credit, a running command ends as lost."""
    troubles = [{"kind": how, "after": 600}] if how in ("host-lost", "ssh-drop") else []
    api = await make(troubles=troubles, credit=0.2 if how == "credit" else 100)
    number = await api.rent()
    await api.running(number)
    work = asyncio.create_task(api.emulator.run(number, "sleep 999999", lambda _: None, lambda _: None))
    if how in ("stop", "destroy"):
        await api.emulator.world.clock.sleep(600)
        await (
            api("DELETE", f"v0/instances/{number}/")
            if how == "destroy"
            else api("PUT", f"v0/instances/{number}/", {"state": "stopped"})
        )
    with pytest.raises(ConnectionLost):
        await work
    if how == "ssh-drop":
        assert await api.emulator.run(number, "true", lambda _: None, lambda _: None) == 0
    else:
        with pytest.raises(ConnectionLost):
            await api.emulator.run(number, "true", lambda _: None, lambda _: None)
