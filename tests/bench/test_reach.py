import asyncio
from contextlib import AsyncExitStack

import asyncssh
import pytest

from controller.bench.ssh import ssh_connector
from controller.bench.work import Target
from controller.model.faults import Fault, Retry
from controller.model.reasons import Reason
from tests.bench.conftest import Bed, Host, LoopClock, work

pytestmark = pytest.mark.looptime


def openssh(key: asyncssh.SSHKey) -> str:
    return " ".join(key.export_public_key().decode().split()[:2])


async def test_first_contact_pins_the_host_key(bed: Bed):
    """The key an instance shows first is returned, and from then on it is the only one taken."""
    done = await bed.bench().prepare(bed.target(), work())
    assert (done.ok, done.reason, done.host_key) == (True, Reason.PREPARED, openssh(bed.host.key))
    again = await bed.bench().prepare(bed.target(host_key=done.host_key), work())
    assert again.ok


async def test_changed_host_key_is_refused_at_once(bed: Bed):
    """An instance that shows another key gets no command, no variable, and no second try."""
    pinned = openssh(asyncssh.generate_private_key("ssh-ed25519"))
    began = asyncio.get_running_loop().time()
    done = await bed.bench().prepare(bed.target(host_key=pinned), work(prepare_command="fetch"))
    assert (done.ok, done.reason) == (False, Reason.HOST_KEY_CHANGED)
    assert bed.host.commands == []
    assert asyncio.get_running_loop().time() - began < 1


async def test_pinned_key_through_the_other_route(bed: Bed):
    """Where the direct address now belongs to another host, the proxy still leads to the pinned one."""
    async with AsyncExitStack() as stack:
        other = Host(bed.key)
        stranger = await other.listen(stack)
        target = bed.target(stranger, bed.port, host_key=openssh(bed.host.key))
        done = await bed.bench().prepare(target, work())
    assert done.ok
    assert other.commands == []


async def test_proxy_where_direct_is_dead(bed: Bed):
    """A closed direct port is no reason to give up."""
    remote = await ssh_connector(private_key=bed.key)(bed.target(bed.dead_port, bed.port))
    assert remote.route == "proxy"
    await remote.close()


async def test_both_denied_are_both_reported(bed: Bed):
    """Where each route denies the key, the detail says so of each, after trying for ten minutes."""
    bed.host.authorized.clear()
    began = asyncio.get_running_loop().time()
    done = await bed.bench().prepare(bed.target(bed.port, bed.port), work(), progress=bed.progress.append)
    assert (done.ok, done.reason, done.host_key) == (False, Reason.SSH_REFUSED, None)
    assert f"direct 127.0.0.1:{bed.port}: Permission denied" in done.detail
    assert f"proxy 127.0.0.1:{bed.port}: Permission denied" in done.detail
    assert 560 < asyncio.get_running_loop().time() - began <= 600
    assert len(bed.progress) > 10


async def test_denied_and_dead_is_denied(bed: Bed):
    """Where one route denies the key and one is dead, the key is the trouble, and both are told."""
    bed.host.authorized.clear()
    done = await bed.bench().prepare(bed.target(bed.port, bed.dead_port), work())
    assert done.reason is Reason.SSH_REFUSED
    assert f"proxy 127.0.0.1:{bed.dead_port}: " in done.detail


async def test_unreachable(bed: Bed):
    """Where nobody answers, or no endpoint is known, it is unreachable."""
    done = await bed.bench().prepare(bed.target(bed.dead_port), work())
    assert done.reason is Reason.SSH_UNREACHABLE
    nowhere = Target(nonce="n", instance_id=1, machine_id=1, endpoints=())
    done = await bed.bench().prepare(nowhere, work())
    assert (done.reason, done.detail) == (Reason.SSH_UNREACHABLE, "no SSH endpoint is known yet")


async def test_silent_server_is_given_up(bed: Bed):
    """A port that accepts and says nothing does not hold a job for longer than its time."""
    open_ends: list[asyncio.StreamWriter] = []
    silent = await asyncio.start_server(lambda _reader, writer: open_ends.append(writer), "127.0.0.1", 0)
    began = asyncio.get_running_loop().time()
    done = await bed.bench().prepare(bed.target(silent.sockets[0].getsockname()[1]), work())
    silent.close()
    for end in open_ends:
        end.close()
    assert done.reason is Reason.SSH_UNREACHABLE
    assert asyncio.get_running_loop().time() - began < 660


async def test_host_that_comes_up_late(bed: Bed):
    """An instance whose sshd starts minutes later is reached then."""
    async with AsyncExitStack() as stack:
        job = asyncio.ensure_future(bed.bench().prepare(bed.target(bed.dead_port), work()))
        await LoopClock().sleep(200)
        await Host(bed.key).listen(stack, bed.dead_port)
        done = await job
    assert done.ok


async def test_denied_key_is_attached_once(bed: Bed):
    """After a denial the key is handed over again, once; an instance that hears of it a minute later is reached."""
    allowed, bed.host.authorized = bed.host.authorized, set()
    calls: list[int] = []

    async def reattach(target: Target) -> None:
        calls.append(target.instance_id)
        asyncio.get_running_loop().call_later(60, bed.host.authorized.update, allowed)

    done = await bed.bench(reattach).prepare(bed.target(), work())
    assert (done.ok, calls) == (True, [36717044])


async def test_attaching_that_fails_is_tried_again(bed: Bed):
    """Where vast.ai is too busy to attach the key, it is asked again at the next denial."""
    allowed, bed.host.authorized = bed.host.authorized, set()
    calls: list[int] = []

    async def reattach(target: Target) -> None:
        calls.append(target.instance_id)
        if len(calls) < 3:
            raise Retry(Reason.RATE_LIMITED, "too many requests")
        bed.host.authorized.update(allowed)

    done = await bed.bench(reattach).prepare(bed.target(), work(), progress=bed.progress.append)
    assert (done.ok, len(calls)) == (True, 3)
    assert "attaching the key: too many requests" in bed.progress


async def test_unreachable_host_is_not_given_the_key(bed: Bed):
    """A dead port is not taken for a denial."""

    async def reattach(target: Target) -> None:
        pytest.fail("nobody denied anything")

    await bed.bench(reattach).prepare(bed.target(bed.dead_port), work())


async def test_transport_that_dies_raises(bed: Bed):
    """A command whose connection is cut ends in CONNECTION_LOST, not in an exit status."""
    remote = await ssh_connector(private_key=bed.key)(bed.target())
    bed.host.drop()
    with pytest.raises(Fault) as caught:
        await remote.run("nproc", out=print, err=print)
    assert (type(caught.value), caught.value.reason) == (Retry, Reason.CONNECTION_LOST)
    await remote.close()
