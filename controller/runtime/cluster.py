"""The operator's process: everything is made here, wired together, and taken apart again.

    standby ─► leading: load ─► watch, rounds, writes ─► stopped

It ends when it is told to, and when it can't go on: then with exit code 1, to be started anew. What it knew is in the
cluster, and what it was doing is seen from there.
"""

import asyncio
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field

import kopf

from controller.bench.bench import Bench
from controller.bench.keys import load_or_make_key
from controller.bench.ssh import ssh_connector
from controller.bench.work import Target
from controller.ledger.api import Api, Connection
from controller.ledger.cluster import ClusterLedger
from controller.loop.passes import Loop
from controller.model.faults import Fault, Misconfigured
from controller.model.reasons import Reason
from controller.runtime.embedded import id_maker
from controller.runtime.health import application, serving
from controller.runtime.hosts import BenchHosts
from controller.runtime.lease import Lease, Term
from controller.runtime.operator import Operator
from controller.runtime.secret import ClusterSecrets
from controller.runtime.settings import Settings
from controller.runtime.watch import Seen, Watch, login
from controller.vast.client import VastClient

log = logging.getLogger(__name__)

AT_ONCE = 8  # fleets that are passed over at one time
LOAD_AGAIN = 2.0  # seconds of the wall's clock between tries to read what is remembered


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where an operator stands.

    namespaces: whose Fleets are held; none: those of all.
    home: the namespace of its Lease.
    identity: its name among its replicas.
    host, port: where it answers for its health; port 0: any free one.
    """

    namespaces: tuple[str, ...]
    home: str
    identity: str
    host: str = "0.0.0.0"  # noqa: S104 - the kubelet asks from outside
    port: int = 8080
    term: Term = field(default_factory=Term)


class Process:
    """One replica of the operator.

    Args:
        settings: vast.ai's key, and what else the controller goes by.
        place: where it stands.
        say: told what changes, line by line.
        client: makes the client of vast.ai.
    """

    def __init__(
        self,
        settings: Settings,
        place: Place,
        *,
        say: Callable[[str], None],
        client: Callable[..., VastClient] = VastClient,
    ) -> None:
        self._client = client
        self._settings = settings
        self._place = place
        self._say = say
        self._stop = asyncio.Event()
        self._operator: Operator | None = None
        self._state = "starting"

    def stop(self) -> None:
        """End after the pass under way."""
        self._stop.set()

    async def run(self) -> int:
        """Stand by, lead, and end; the exit code. Raises Misconfigured if there is no cluster here."""
        who = connection()
        waiting = Api(who)
        place = self._place
        lease = Lease(
            waiting,
            namespace=place.home,
            name=f"vastfleet-{self._settings.owner}",
            identity=place.identity,
            now=self._settings.clock.now,
            term=place.term,
        )
        app = application(live=self._sick, ready=self._unready)
        try:
            async with serving(app, host=place.host, port=place.port) as port:
                self._state = "standby"
                self._say(f"standing by as {place.identity}; health at port {port}")
                if not await self._first(lease.acquire()):
                    return 0
                self._say(f"leading; owner {self._settings.owner}")
                code = await self._lead(lease, who)
                await lease.release()
                return code
        finally:
            await waiting.close()

    async def _lead(self, lease: Lease, who: Callable[[], Connection]) -> int:
        settings = self._settings
        api = Api(who, fence=lease.check)
        client = self._client(api_key=settings.api_key, url=settings.url, clock=settings.clock, fence=lease.check)
        key = load_or_make_key(settings.ssh_key)
        secrets = ClusterSecrets(api)

        async def attach(target: Target) -> None:
            await client.attach_key(target.instance_id, key.public)

        new_id = id_maker(settings.clock)
        connect = ssh_connector(private_key=settings.ssh_key)
        bench = Bench(connect=connect, clock=settings.clock, new_id=new_id, reattach=attach)
        ledger = ClusterLedger(api, owner=settings.owner, lease=lease.path)
        loop = Loop(
            provider=client,
            hosts=BenchHosts(bench=bench, secrets=secrets),
            ledger=ledger,
            clock=settings.clock,
            secrets=secrets,
            new_id=new_id,
            owner=settings.owner,
            limits=settings.limits,
            pace=settings.pace,
            at_once=AT_ONCE,
        )
        keeping = asyncio.create_task(lease.keep(), name="lease")
        try:
            operator = Operator(loop=loop, ledger=ledger, clock=settings.clock, pace=settings.pace)
            if not await self._first(self._load(ledger, operator), keeping):
                return int(not self._stop.is_set())
            self._operator = operator
            return await self._operate(self._operator, keeping)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await client.close()
            await api.close()

    async def _operate(self, operator: Operator, keeping: asyncio.Task[None]) -> int:
        blind = asyncio.Event()
        watch = Watch(namespaces=self._place.namespaces, seen=operator.seen, ended=blind.set)
        watch.start()
        running = asyncio.create_task(operator.run(), name="rounds")
        others = [asyncio.create_task(event.wait()) for event in (self._stop, blind)]
        self._state = "leading"
        try:
            await asyncio.wait({running, keeping, *others}, return_when=asyncio.FIRST_COMPLETED)
            for ended, what in ((keeping.done(), "the lease is lost"), (blind.is_set(), "the cluster is not watched")):
                if ended:
                    log.error("%s: this process ends, to be started anew", what)
            operator.stop()
            if keeping.done():  # another may act: what is under way here is dropped, not finished
                running.cancel()
            await asyncio.gather(running, return_exceptions=keeping.done())
        finally:
            for task in others:
                task.cancel()
            await watch.close()
        return int(not self._stop.is_set())

    async def _load(self, ledger: ClusterLedger, operator: Operator) -> None:
        while True:
            try:
                for body in await ledger.load(self._place.namespaces):
                    operator.seen(Seen("Fleet", body, gone=False))
            except Misconfigured:
                raise
            except Fault as fault:
                log.warning("what is remembered could not be read: %s", fault)
                await asyncio.sleep(LOAD_AGAIN)  # noqa: TID251 - the cluster's time, not the controller's
            else:
                return

    async def _first(self, work: object, *ends: asyncio.Task[None]) -> bool:
        """Do some work, unless told to stop or something else ends before; whether it was done."""
        task = asyncio.ensure_future(work)  # type: ignore[call-overload]
        stopped = asyncio.create_task(self._stop.wait())
        await asyncio.wait({task, stopped, *ends}, return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if task.done():
            await task
            return True
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        return False

    def _sick(self) -> str:
        return self._operator.sick if self._operator is not None else ""

    def _unready(self) -> str:
        if self._state == "standby" or (self._operator is not None and self._operator.rounds):
            return ""
        return f"{self._state}: no round made yet"


def connection() -> Callable[[], Connection]:
    """How the API server is reached. Raises Misconfigured if nothing here says where it is."""

    def who() -> Connection:
        try:
            return login()
        except (kopf.LoginError, OSError, KeyError, ValueError) as error:
            raise Misconfigured(Reason.CLUSTER_REFUSED, f"no Kubernetes cluster to work in: {error}") from error

    who()
    return who


def place_of(
    environ: "os._Environ[str] | dict[str, str]", *, namespaces: tuple[str, ...], port: int, term: Term
) -> Place:
    """Where this process stands, as the pod says: POD_NAMESPACE and POD_NAME, which a Deployment sets."""
    name = environ.get("POD_NAME") or f"{os.uname().nodename}-{os.getpid()}"
    home = environ.get("POD_NAMESPACE") or (namespaces[0] if namespaces else "default")
    return Place(namespaces=namespaces, home=home, identity=name, port=port, term=term)
