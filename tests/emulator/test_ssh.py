import asyncio
from contextlib import asynccontextmanager

import asyncssh
import pytest

pytestmark = pytest.mark.looptime

KEY = asyncssh.generate_private_key("ssh-ed25519")
OTHER = asyncssh.generate_private_key("ssh-ed25519")


def public(key):
    return key.export_public_key().decode().strip()


@pytest.fixture
async def box(make):
    """Rent an instance whose SSH is served; `make` takes a scenario's fields."""

    async def rent(**fields):
        api = await make(ssh=True, **fields)
        api.emulator.open_ssh()
        await api("POST", "v0/ssh/", {"ssh_key": public(KEY)})
        number = await api.rent()
        contract = api.emulator.world.contracts[number]
        await api.running(number)
        while (await api.row(number))["ports"] is None:
            await api.emulator.world.clock.sleep(1)
        return api, contract

    return rent


@asynccontextmanager
async def connected(port, key=KEY, **options):
    options = {"known_hosts": None, "config": None, "agent_path": None, **options}
    async with asyncssh.connect("127.0.0.1", port, username="root", client_keys=[key], **options) as connection:
        yield connection


async def test_the_row_says_where_ssh_answers(box):
    """The direct endpoint of the row and its proxy endpoint both lead to the instance's shell."""
    api, contract = await box()
    row = await api.row(contract.id)
    for host, port in (
        (row["public_ipaddr"].strip(), int(row["ports"]["22/tcp"][0]["HostPort"])),
        (row["ssh_host"], row["ssh_port"]),
    ):
        assert host == "127.0.0.1"
        async with connected(port) as connection:
            result = await connection.run("echo $CONTAINER_ID; nothing-such")
        assert (result.exit_status, result.stdout) == (127, f"{contract.id}\n")
        assert result.stderr == "sh: 1: nothing-such: not found\n"


async def test_output_comes_line_by_line_as_time_passes(box):
    """A command's output streams in emulated time, not at its end."""
    _, contract = await box()
    loop = asyncio.get_running_loop()
    async with connected(contract.direct_port) as connection:
        process = await connection.create_process("echo a; sleep 300; echo b")
        assert await process.stdout.readline() == "a\n"
        start = loop.time()
        assert await process.stdout.readline() == "b\n"
        assert loop.time() - start == pytest.approx(300, abs=0.1)


async def test_strangers_stay_out_until_their_key_is_attached(box):
    """A key not known at creation is refused; attached, it works after the scenario's delay; root alone may come."""
    api, contract = await box(attachSeconds=30)
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(contract.direct_port, OTHER):
            pass
    await api("POST", f"v0/instances/{contract.id}/ssh/", {"ssh_key": public(OTHER)})
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(contract.direct_port, OTHER):
            pass
    await api.emulator.world.clock.sleep(30)
    async with connected(contract.direct_port, OTHER) as connection:
        assert (await connection.run("true")).exit_status == 0


async def test_each_instance_has_its_own_host_key_which_a_scenario_may_change(box):
    """A pinned host key is right until the scenario changes it; then the pin no longer fits."""
    api, contract = await box(troubles=[{"kind": "host-key-changed", "after": 600}])
    key = await asyncssh.get_server_host_key("127.0.0.1", contract.direct_port)
    pinned: tuple[list[object], ...] = ([key], [], [])
    async with connected(contract.proxy_port, known_hosts=pinned) as connection:
        assert (await connection.run("true")).exit_status == 0
    await api.emulator.wait_for(lambda: contract.host_key == 1)
    await api.emulator.world.clock.sleep(1)
    with pytest.raises(asyncssh.HostKeyNotVerifiable):
        async with connected(contract.proxy_port, known_hosts=pinned):
            pass


@pytest.mark.parametrize(("kind", "dead", "alive"), [
    ("direct-refused", "direct_port", "proxy_port"),
    ("proxy-refused", "proxy_port", "direct_port"),
])  # fmt: skip
async def test_one_way_in_may_be_refused_for_a_while(box, kind, dead, alive):
    """A refused endpoint refuses connections while the other serves, and serves again when the trouble is over."""
    api, contract = await box(troubles=[{"kind": kind, "seconds": 120}])
    with pytest.raises(ConnectionRefusedError):
        async with connected(getattr(contract, dead)):
            pass
    async with connected(getattr(contract, alive)) as connection:
        assert (await connection.run("true")).exit_status == 0
    await api.emulator.world.clock.sleep(130)
    async with connected(getattr(contract, dead)) as connection:
        assert (await connection.run("true")).exit_status == 0


async def test_keys_may_be_refused_for_a_while(box):
    """While the scenario refuses keys a good one is denied, and let in afterwards."""
    api, contract = await box(troubles=[{"kind": "key-refused", "seconds": 60}])
    with pytest.raises(asyncssh.PermissionDenied):
        async with connected(contract.direct_port):
            pass
    await api.emulator.world.clock.sleep(60)
    async with connected(contract.direct_port) as connection:
        assert (await connection.run("true")).exit_status == 0


@pytest.mark.parametrize("how", ["stop", "ssh-drop"])
async def test_a_cut_connection_leaves_no_exit_status(box, how):
    """A command whose instance stops, or whose connection is cut, ends without an exit status."""
    api, contract = await box(troubles=[{"kind": "ssh-drop", "after": 600}] if how == "ssh-drop" else [])
    async with connected(contract.direct_port) as connection:
        command = asyncio.create_task(connection.run("sleep 99999"))
        await api.emulator.world.clock.sleep(30)
        if how == "stop":
            await api("PUT", f"v0/instances/{contract.id}/", {"state": "stopped"})
        assert (await command).exit_status is None
    if how == "stop":
        with pytest.raises(ConnectionRefusedError):
            async with connected(contract.direct_port):
                pass


async def test_production_survives_the_connection_that_began_it(box):
    """A daemon started in the background is found working by a later connection."""
    _, contract = await box(prover={"baseGib": 0, "perProofGib": 0})
    async with connected(contract.direct_port) as connection:
        assert (await connection.run("nohup cuzk-daemon > /log 2>&1 &")).exit_status == 0
    async with connected(contract.direct_port) as connection:
        result = await connection.run("sleep 60; cuzk-daemon status")
    assert (result.exit_status, "proofs/h" in result.stdout) == (0, True)


async def test_a_silent_command_outlives_its_client_and_dies_at_its_next_word(box):
    """When the client goes, the command goes on until it wants to print, as with a real shell."""
    api, contract = await box()
    async with connected(contract.direct_port) as connection:
        await connection.create_process("sleep 60; touch /silent; sleep 60; echo word; touch /said")
        await api.emulator.world.clock.sleep(1)
    await api.emulator.world.clock.sleep(200)
    async with connected(contract.direct_port) as connection:
        assert (await connection.run("test -f /silent")).exit_status == 0
        assert (await connection.run("test -f /said")).exit_status == 1
        await connection.create_process("sleep 99999")  # left running: closing the emulator ends it
        await api.emulator.world.clock.sleep(1)
