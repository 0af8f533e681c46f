"""Replicas of the operator that may be harmed: each behind proxies of its own to the API server and to vast.ai.

They are forked from a process that has everything imported, so that fifty of them start in the time of a few.
"""

import asyncio
import itertools
import json
import logging
import multiprocessing
import os
import signal
import ssl
import sys
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path

from controller.emulator import ScaledClock
from tests.cluster.deployed import NAMESPACED, account
from tests.cluster.plane import Cluster
from tests.cluster.proxy import Proxy, proxy
from tests.cluster.stage import KEY, Stage, stage

log = logging.getLogger(__name__)

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["controller.cli.main", "controller.cli.operator", "controller.runtime.cluster", __name__])
NUMBERS = itertools.count(1)


def operate(environ: Mapping[str, str], log: str, arguments: tuple[str, ...]) -> None:
    """Be `vastfleet operator`: what the forked process runs. It ends when the tests do."""
    from controller.cli.main import main

    parent = multiprocessing.parent_process()
    assert parent is not None

    def outlive_nobody() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=outlive_nobody, daemon=True).start()
    os.environ.clear()
    os.environ.update(environ)
    out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(out, 1)
    os.dup2(out, 2)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    sys.argv = ["vastfleet", "operator", "--health-port=0", *arguments]
    main()


@dataclass
class Replica:
    """One process. `api`, `vast`: the proxies that it is behind; `log`: the file that it prints to."""

    process: BaseProcess
    stage: Stage
    api: Proxy
    vast: Proxy
    log: Path
    _over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        asyncio.get_running_loop().add_reader(self.process.sentinel, self._ends)

    def _ends(self) -> None:
        asyncio.get_running_loop().remove_reader(self.process.sentinel)
        self._over.set()

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process.pid is not None
        os.kill(self.process.pid, number)

    async def ended(self) -> int:
        """Wait for its end; its exit code, or a signal's number below 0."""
        async with asyncio.timeout(60):
            await self._over.wait()
        self.process.join()
        assert self.process.exitcode is not None
        return self.process.exitcode

    async def kill(self) -> None:
        """End it without warning."""
        self.process.kill()
        await self.ended()


@dataclass
class Replicas:
    """An operator's replicas on a stage, all behind one pair of proxies unless told otherwise.

    `token`: whose rights they have. `seconds`: for how long their Lease is held.
    """

    stage: Stage
    api: Proxy
    vast: Proxy
    token: str
    seconds: int
    started: list[Replica] = field(default_factory=list)

    def start(self, *, api: Proxy | None = None, vast: Proxy | None = None, everywhere: bool = False) -> Replica:
        """Start one for the stage's namespace, or for all; it stands by while another leads."""
        api, vast = api or self.api, vast or self.vast
        name = f"replica-{next(NUMBERS)}"
        place = self.stage.place
        kubeconfig, log = place / f"{name}.kubeconfig", place / f"{name}.log"
        kubeconfig.write_text(_kubeconfig(api.url, self.token))
        clock = self.stage.emulator.world.clock
        assert isinstance(clock, ScaledClock)
        environ = {each: value for each, value in os.environ.items() if not each.startswith(("VAST", "POD", "KUBE"))}
        environ |= {
            "HOME": str(place),
            "KUBECONFIG": str(kubeconfig),
            "POD_NAMESPACE": self.stage.namespace,
            "POD_NAME": name,
            "VAST_URL": vast.url,
            "VAST_API_KEY": KEY,
            "VASTFLEET_CLOCK": f"{clock.speed:g}@{clock.origin!r}",
            "VASTFLEET_OWNER": self.stage.owner,
            "VASTFLEET_SSH_KEY": str(place / "key"),
        }
        where = () if everywhere else (f"--namespace={self.stage.namespace}",)
        options = (f"--lease-seconds={self.seconds}", *where)
        process = FORKS.Process(target=operate, args=(environ, str(log), options), daemon=True)
        process.start()
        self.started.append(Replica(process, self.stage, api, vast, log))
        return self.started[-1]

    async def close(self) -> None:
        """End all of them."""
        for replica in self.started:
            await replica.kill()

    def log(self) -> str:
        """The end of what the last ones have printed."""
        return "\n".join(f"{r.log.name}: {r.log.read_text()[-3000:]}" for r in self.started[-2:] if r.log.exists())


@asynccontextmanager
async def replicas(
    cluster: Cluster,
    namespace: str,
    place: Path,
    *,
    speed: float,
    seed: int = 3,
    seconds: int = 1,
    base: Path = NAMESPACED,
    **scenario: object,
) -> AsyncIterator[Replicas]:
    """A stage on which replicas may be started, with the rights that `base` gives."""
    context = ssl.create_default_context(cafile=str(cluster.ca))
    token = account(cluster, base, place, namespace)
    async with (
        stage(cluster, namespace, place, speed=speed, seed=seed, **scenario) as here,
        proxy(cluster.server, context) as api,
        proxy(here.url) as vast,
    ):
        made = Replicas(here, api, vast, token, seconds)
        try:
            yield made
        finally:
            log.warning("%s", made.log())  # shown where a test fails
            await made.close()


def _kubeconfig(server: str, token: str) -> str:
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "clusters": [{"name": "test", "cluster": {"server": server}}],
        "users": [{"name": "test", "user": {"token": token}}],
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
    }
    return json.dumps(config)
