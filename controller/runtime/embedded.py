"""The controller inside a process of one's own: everything is made here, wired together, and taken apart again.

Used by the command line; tests use it with transports of their own.
"""

import os
import secrets
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from controller.bench.bench import Bench
from controller.bench.keys import load_or_make_key
from controller.bench.remote import Connect
from controller.bench.ssh import ssh_connector
from controller.bench.work import Target
from controller.ledger.sqlite import Ledger
from controller.loop.passes import Loop
from controller.loop.ports import Hosts, Secrets
from controller.model.env import resolve_env
from controller.model.fleet import Fleet
from controller.runtime.clock import Clock
from controller.runtime.hosts import BenchHosts, NoHosts
from controller.runtime.settings import Settings
from controller.vast.client import VastClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A controller that is wired up."""

    loop: Loop
    ledger: Ledger
    client: VastClient


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    environ: Mapping[str, str] = os.environ,
    transport: httpx.AsyncBaseTransport | None = None,
    connect: Connect | None = None,
    new_id: Callable[[], str] | None = None,
    open_ledger: Callable[[Path], Ledger] = Ledger.open,
) -> AsyncIterator[Running]:
    """A controller, until the block ends. `transport`, `connect` and `new_id` take the place of HTTP, SSH and chance.

    Raises Misconfigured if the ledger can't be used.
    """
    ledger = open_ledger(settings.ledger)
    try:
        client = VastClient(api_key=settings.api_key, url=settings.url, clock=settings.clock, transport=transport)
        key = load_or_make_key(settings.ssh_key)

        async def attach(target: Target) -> None:
            await client.attach_key(target.instance_id, key.public)

        async def environment(fleet: Fleet) -> dict[str, str]:
            return resolve_env(fleet.spec.instance, environ, lambda path: Path(path).read_text(encoding="utf-8"))

        bench = Bench(
            connect=connect or ssh_connector(private_key=settings.ssh_key),
            clock=settings.clock,
            new_id=new_id or id_maker(settings.clock),
            reattach=attach,
        )
        hosts = BenchHosts(bench=bench, secrets=environment)
        loop = _loop(settings, client, hosts, ledger, secrets=environment, new_id=new_id)
        try:
            yield Running(loop=loop, ledger=ledger, client=client)
        finally:
            await loop.close()
            await client.close()
    finally:
        ledger.close()


@asynccontextmanager
async def asking(settings: Settings) -> AsyncIterator[Loop]:
    """A loop on a copy of the ledger, to be asked what a pass would do: no lock, nothing written, no host reached."""
    ledger = Ledger.copy(settings.ledger)
    client = VastClient(api_key=settings.api_key, url=settings.url, clock=settings.clock)
    try:
        yield _loop(settings, client, NoHosts(), ledger, secrets=_no_secrets, new_id=None)
    finally:
        await client.close()
        ledger.close()


def _loop(
    settings: Settings,
    client: VastClient,
    hosts: Hosts,
    ledger: Ledger,
    *,
    secrets: Secrets,
    new_id: Callable[[], str] | None,
) -> Loop:
    return Loop(
        provider=client,
        hosts=hosts,
        ledger=ledger,
        clock=settings.clock,
        secrets=secrets,
        new_id=new_id or id_maker(settings.clock),
        owner=settings.owner,
        limits=settings.limits,
        pace=settings.pace,
    )


async def _no_secrets(fleet: Fleet) -> dict[str, str]:  # noqa: ARG001 - the port's
    return {}


def id_maker(clock: Clock) -> Callable[[], str]:
    """Ids that sort by time and never repeat: eight hexadecimal digits of seconds, ten of chance."""
    return lambda: f"{int(clock.now()):08x}{secrets.token_hex(5)}"
