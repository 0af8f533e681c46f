"""Remotes over asyncssh. The one place that knows asyncssh's exceptions; nothing of the user's own SSH set-up is used.

A host key is pinned per instance at first contact, not per address: vast.ai's proxies lend one address to many hosts.
"""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

import asyncssh

from controller.bench.remote import Connect, Remote
from controller.bench.work import Target
from controller.model.faults import Fault, Refused, Retry
from controller.model.market import Endpoint
from controller.model.reasons import Reason

CLOSE_S = 5.0  # for a goodbye
LINGER_S = 2.0  # for the last output of a command that ended; what it left running may hold its output open for ever
SHOWN = 160  # characters of what went wrong at one endpoint


def ssh_connector(
    *,
    private_key: Path | asyncssh.SSHKey,
    username: str = "root",
    connect_timeout_s: float = 10.0,
    login_timeout_s: float = 20.0,
    keepalive_s: float = 15.0,
) -> Connect:
    """Make a Connect over SSH with this key alone. Its timeouts are the wall's: a handshake takes what it takes.

    A link that is silent is probed every `keepalive_s` and given up after three probes without an answer.
    """
    asyncssh.set_log_level("WARNING")  # at INFO it would write down each command's text, which holds env values
    key = asyncssh.read_private_key(private_key) if isinstance(private_key, Path) else private_key
    options = asyncssh.SSHClientConnectionOptions(
        config=None,
        client_keys=[key],
        agent_path=None,
        known_hosts=([], [], []),
        preferred_auth="publickey",
        gss_kex=False,
        gss_auth=False,
        username=username,
        connect_timeout=connect_timeout_s,
        login_timeout=login_timeout_s,
        keepalive_interval=keepalive_s,
        keepalive_count_max=3,
    )

    async def connect(target: Target) -> Remote:
        faults: list[Fault] = []
        for endpoint in target.endpoints:
            try:
                return await _open(endpoint, target.host_key, options)
            except Fault as fault:
                faults.append(fault)
        text = "; ".join(map(str, faults)) or "no SSH endpoint is known yet"
        for reason in (Reason.HOST_KEY_CHANGED, Reason.SSH_REFUSED):
            if any(fault.reason is reason for fault in faults):
                raise Refused(reason, text)
        raise Retry(Reason.SSH_UNREACHABLE, text)

    return connect


class _Pinning(asyncssh.SSHClient):
    """Accepts the pinned key only, or, at first contact, any; remembers what it saw."""

    def __init__(self, pinned: str | None) -> None:
        self._pinned = pinned
        self.seen: str | None = None

    def validate_host_public_key(self, host: str, addr: str, port: int, key: asyncssh.SSHKey) -> bool:  # noqa: ARG002
        """Called by asyncssh when it knows no key of the host, which is always."""
        self.seen = " ".join(key.export_public_key("openssh").decode().split()[:2])
        return self._pinned is None or self._pinned.split()[:2] == self.seen.split()


async def _open(endpoint: Endpoint, pinned: str | None, options: asyncssh.SSHClientConnectionOptions) -> Remote:
    client = _Pinning(pinned)
    where = f"{endpoint.route} {endpoint.host}:{endpoint.port}"
    try:
        connection = await asyncssh.connect(
            endpoint.host, endpoint.port, options=options, client_factory=lambda: client
        )
    except asyncssh.HostKeyNotVerifiable as error:
        raise Refused(Reason.HOST_KEY_CHANGED, f"{where}: shows another host key than at first contact") from error
    except asyncssh.PermissionDenied as error:
        raise Refused(Reason.SSH_REFUSED, f"{where}: {_short(error)}") from error
    except (OSError, asyncssh.Error) as error:
        raise Retry(Reason.SSH_UNREACHABLE, f"{where}: {_short(error)}") from error
    return SshRemote(connection, host_key=client.seen, route=endpoint.route)


def _short(error: BaseException) -> str:
    return " ".join(str(error).split())[:SHOWN] or type(error).__name__


class SshRemote:
    """An open SSH connection."""

    def __init__(self, connection: asyncssh.SSHClientConnection, *, host_key: str | None, route: str) -> None:
        self._connection = connection
        self.host_key = host_key
        self.route = route

    async def run(self, command: str, *, out: Callable[[str], None], err: Callable[[str], None]) -> int:
        """Run a command; see Remote."""
        running = _Exec(out, err)
        try:
            channel, _ = await self._connection.create_session(
                lambda: running, command, encoding="utf-8", errors="replace"
            )
            channel.write_eof()
        except (OSError, asyncssh.Error) as error:
            raise Retry(Reason.CONNECTION_LOST, f"{self.route}: {_short(error)}") from error
        try:
            await running.ended
        finally:
            channel.close()
        if running.status is None:
            raise Retry(Reason.CONNECTION_LOST, f"{self.route}: the connection was lost while a command ran")
        return running.status

    async def close(self) -> None:
        """Hang up, politely if the other side is there."""
        self._connection.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._connection.wait_closed()
        except TimeoutError:
            self._connection.abort()


class _Exec(asyncssh.SSHClientSession[str]):
    """One command's channel. `ended` is done when it is closed, or a little after the command's exit."""

    def __init__(self, out: Callable[[str], None], err: Callable[[str], None]) -> None:
        self._out = out
        self._err = err
        self.status: int | None = None
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def data_received(self, data: str, datatype: asyncssh.DataType) -> None:
        """Pass output on, each stream to its own."""
        (self._err if datatype == asyncssh.EXTENDED_DATA_STDERR else self._out)(data)

    def exit_status_received(self, status: int) -> None:
        """The command exited."""
        self._exited(status)

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:  # noqa: ARG002, FBT001 - asyncssh's
        """The command was killed."""
        self._exited(128 + _number(signal))

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncssh's
        """The channel is closed, in order or not."""
        self._end()

    def _exited(self, status: int) -> None:
        self.status = status
        asyncio.get_running_loop().call_later(LINGER_S, self._end)

    def _end(self) -> None:
        if not self.ended.done():
            self.ended.set_result(None)


def _number(name: str) -> int:
    try:
        return int(signal.Signals[f"SIG{name}"])
    except KeyError:
        return int(signal.SIGTERM)
