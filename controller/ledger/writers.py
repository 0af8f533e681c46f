"""What writes the objects of the ledger in a cluster: each is brought to what is remembered, as that is by then."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from controller.ledger import machines, objects
from controller.ledger.api import Api, Conflict
from controller.ledger.behind import Behind
from controller.ledger.memory import Memory
from controller.ledger.objects import ROOT, fleet_path, place_of
from controller.ledger.statuses import Statuses
from controller.ledger.told import Events
from controller.model.faults import Gone
from controller.model.instance import Instance
from controller.model.status import FleetStatus, InstanceStatus

GONE_KEPT = 10  # objects of instances that are gone, of each fleet

ACCOUNT = "vastfleet.io/account"


@dataclass
class Known:
    """What is known of the objects beside what is remembered."""

    uids: dict[str, str] = field(default_factory=dict)  # by fleet
    generations: dict[str, int] = field(default_factory=dict)  # by fleet: that of the spec which is being held
    handled: dict[str, str] = field(default_factory=dict)  # by fleet: the last requestedAt that a pass has answered
    paths: dict[str, str] = field(default_factory=dict)  # by nonce: where its object is, if there is one
    machines: set[int] = field(default_factory=set)  # those that have objects
    said: dict[str, InstanceStatus] = field(default_factory=dict)  # by nonce: what is thought of it


class Writers:
    """Writes what is owed.

    Args:
        memory: what is remembered.
        api: the server.
        events: what happened, and is to be told.
        owner: whose objects and labels are ours.
        lease: path of the Lease, which remembers the vast.ai account.
        fleet_gone: called with the key of a Fleet whose object turns out not to be there any more.

    Attributes:
        known: what is known of the objects.
        at: the statuses as they were written last.
        behind: what is still to be written.
    """

    def __init__(
        self, memory: Memory, api: Api, events: Events, *, owner: str, lease: str, fleet_gone: Callable[[str], None]
    ) -> None:
        self._memory = memory
        self._api = api
        self._fleet_gone = fleet_gone
        self._owner = owner
        self._lease = lease
        self.known = Known()
        self.at = Statuses(api)
        self.behind = Behind(  # instances first: a Fleet's object must not go before theirs are free
            {
                "instance": self._write_instance,
                "let go": self._let_go,
                "machine": self._write_machine,
                "account": self._write_account,
                "fleet": self._write_fleet,
                "end": self._free_fleet,
                "event": events.tell,
            }
        )

    # instances

    async def make(self, instance: Instance) -> None:
        """Make an instance's object."""
        body = objects.instance_object(instance, owner=self._owner, fleet_uid=self.known.uids.get(instance.fleet))
        namespace, _ = place_of(instance.fleet)
        path = f"{ROOT}/namespaces/{namespace}/instances"
        with suppress(Conflict):  # ours, from a create whose answer was lost
            await self._api.create(path, body)
        self.known.paths[instance.nonce] = f"{path}/{body['metadata']['name']}"

    def gone(self, nonce: str) -> None:
        """An instance's object is not there any more. It is made again while the instance bills."""
        path = self.known.paths.pop(nonce, None)
        if path is not None:
            self.at.forget(path)
        instance = self._memory.instance(nonce)
        if instance is None:
            return
        if instance.billable:
            self.behind.mark("instance", nonce)
        else:
            self.drop(nonce)

    def drop(self, nonce: str) -> None:
        """Forget an instance, and what is known of its object."""
        path = self.known.paths.pop(nonce, None)
        if path is not None:
            self.at.forget(path)
        self.known.said.pop(nonce, None)
        self.behind.drop("instance", nonce)
        self._memory.forget(nonce)

    async def _write_instance(self, nonce: str) -> None:
        instance = self._memory.instance(nonce)
        if instance is None:
            return
        if nonce not in self.known.paths:
            if not instance.billable:  # it never had one: nothing of it is left to be told
                self.drop(nonce)
                return
            await self.make(instance)
        path = self.known.paths[nonce]
        status = objects.instance_status(instance, self.known.said.get(nonce), generation=1)
        try:
            await self.at.write(path, status)
            if not instance.billable:
                await self.at.free(path)
        except Gone:
            self.gone(nonce)
            return
        if not instance.billable:
            await self._tidy(instance.fleet)

    async def _let_go(self, nonce: str) -> None:
        path = self.known.paths.get(nonce)
        if path is not None:
            await self.at.free(path)
        self.drop(nonce)

    async def _tidy(self, fleet: str) -> None:
        """Keep but the newest objects of instances that are gone."""
        gone = [i for i in self._memory.instances(fleet, gone=True, since=-1.0) if not i.billable]
        for instance in gone[:-GONE_KEPT]:
            path = self.known.paths.get(instance.nonce)
            if path is not None:
                await self._api.delete(path)
            self.drop(instance.nonce)

    # machines, the account

    async def _write_machine(self, name: str) -> None:
        machine = int(name)
        held = self._memory.backoff("machine", name)
        path = f"{ROOT}/machines/{machines.machine_name(self._owner, machine)}"
        if machine not in self.known.machines:
            try:
                await self._api.create(f"{ROOT}/machines", machines.machine_object(self._owner, machine))
            except Conflict:
                pass
            except Gone:  # their kind is taken away
                return
            self.known.machines.add(machine)
        here = self._memory.on_machine(machine)
        thought = {i.shape: self.known.said[i.nonce] for i in here if i.nonce in self.known.said}
        gpu = next((i.gpu for i in here), "")
        status = machines.machine_status(self._memory.runs(machine), thought, held, gpu=gpu, generation=1)
        try:
            await self.at.write(path, status)
        except Gone:
            self.known.machines.discard(machine)
            self.at.forget(path)
            self.behind.mark("machine", name)

    async def _write_account(self, account: str) -> None:
        await self._api.patch(self._lease, {"metadata": {"annotations": {ACCOUNT: account}}})

    # fleets

    async def _write_fleet(self, key: str) -> None:
        text = self._memory.status(key)
        if text is None or key not in self.known.generations:
            return
        held = [b for b in self._memory.backoffs() if b.scope in {"shape", "fleet"} and b.key.partition("/")[0] == key]
        status = objects.fleet_status(
            FleetStatus.model_validate_json(text),
            generation=self.known.generations[key],
            handled=self.known.handled.get(key, ""),
            backoffs=held,
        )
        mine = [i.nonce for i in self._memory.instances(key, gone=True, since=-1.0)]
        await self.behind.now("instance", mine)  # what is said of a Fleet is not said before what it speaks of
        try:
            await self.at.write(fleet_path(key), status)
        except Gone:
            self._fleet_gone(key)

    async def _free_fleet(self, key: str) -> None:
        mine = self._memory.instances(key, gone=True, since=-1.0)
        if any(self.behind.owes(kind, i.nonce) for i in mine for kind in ("instance", "let go")):
            self.behind.mark("end", key)  # theirs first
            return
        await self.at.free(fleet_path(key))
