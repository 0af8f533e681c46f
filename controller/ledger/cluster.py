"""The ledger in a Kubernetes cluster: what is remembered is in memory, and each record is an object of its own.

    Instance   one rental; made, with its finalizer, before the instance is rented, and freed when that is proven gone
    Machine    what was measured on one machine, and for how long it is left alone
    Fleet      its status, and the back-offs of its shapes

Only the intent to rent must be durable before anything happens: `secure` waits for its object. Everything else is
written behind, again and again until it is there, and only where it differs from what was written last. If the process
ends before, the label on vast.ai tells what the objects do not.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from controller.ledger import machines, objects
from controller.ledger.api import Api, Conflict
from controller.ledger.behind import Behind
from controller.ledger.memory import Memory
from controller.ledger.objects import FINALIZER, OWNER_LABEL, place_of
from controller.ledger.statuses import Statuses
from controller.ledger.told import Events
from controller.model.faults import Fault, Gone, Refused
from controller.model.instance import Backoff, Event, Instance, Run
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus

ROOT = "/apis/vastfleet.io/v1alpha1"
GONE_KEPT = 10  # objects of instances that are gone, of each fleet

ACCOUNT = "vastfleet.io/account"

Body = dict[str, Any]


class ClusterLedger(Memory):
    """What the operator remembers.

    Args:
        api: the server.
        owner: whose objects and labels are ours.
        lease: path of the Lease, which remembers the vast.ai account; empty: that is not remembered.
    """

    def __init__(self, api: Api, *, owner: str, lease: str = "") -> None:
        super().__init__()
        self._lease = lease
        self._api = api
        self._owner = owner
        self._uids: dict[str, str] = {}  # by fleet
        self._generations: dict[str, int] = {}  # by fleet: that of the spec which is being held
        self._handled: dict[str, str] = {}  # by fleet: the last requestedAt that a pass has answered
        self._objects: dict[str, str] = {}  # by nonce: the path of its object, where there is one
        self._machine_objects: set[int] = set()
        self._at = Statuses(api)
        self._said: dict[str, InstanceStatus] = {}
        self._refused: dict[str, tuple[Condition, ...]] = {}  # by fleet: what is said of a spec that is wrong
        self._events = Events(api, owner=owner)
        self.behind = Behind(  # instances first: a Fleet's object must not go before theirs are free
            {
                "instance": self._write_instance,
                "let go": self._let_go,
                "machine": self._write_machine,
                "account": self._write_account,
                "fleet": self._write_fleet,
                "end": self._free_fleet,
                "event": self._events.tell,
            }
        )

    # reading all of it, once

    async def load(self, namespaces: tuple[str, ...] = ()) -> list[Body]:
        """Read all objects that are ours, and return the Fleets, which are to be seen before anything is done.

        Raises a fault if they can't be read: nothing may be done without them.
        """
        lease = await self._api.get(self._lease) if self._lease else None
        account = ((lease or {"metadata": {}})["metadata"].get("annotations") or {}).get(ACCOUNT)
        if account:
            super().put_fact("account", account)
        ours = f"{OWNER_LABEL}={self._owner}"
        places = [f"/namespaces/{n}" for n in namespaces] or [""]
        for place in places:
            async for body in self._api.items(f"{ROOT}{place}/instances", labels=ours):
                self._load_instance(body)
        with suppress(Gone):  # their kind is taken away, and what bills must be ended all the same
            await self._load_machines(ours)
        return [body for place in places async for body in self._api.items(f"{ROOT}{place}/fleets")]

    async def _load_machines(self, labels: str) -> None:
        async for body in self._api.items(f"{ROOT}/machines", labels=labels):
            machine = int(body["spec"]["machineId"])
            self._machine_objects.add(machine)
            self.load_runs(machine, machines.runs_of(body))
            held = machines.machine_backoff(body)
            if held is not None:
                super().put_backoff(held)

    def _load_instance(self, body: Body) -> None:
        instance = objects.instance_of(body | {"kind": "Instance"})
        super().put(instance)
        self._said[instance.nonce] = objects.said_of_instance(body)
        self._objects[instance.nonce] = instance_path(body)
        self._at.know(instance_path(body), body.get("status") or {})
        if not instance.billable and self.is_ours(body):  # who wrote that it is gone did not come to free it
            self._mark("instance", instance.nonce)

    def is_ours(self, body: Mapping[str, Any]) -> bool:
        """Whether an Instance's object is held, and by this controller."""
        meta = body["metadata"]
        return FINALIZER in meta.get("finalizers", ()) and (meta.get("labels") or {}).get(OWNER_LABEL) == self._owner

    async def take_in(self, path: str) -> None:
        """Read an Instance's object that was not there when all were read, unless it is held no more."""
        body = await self._api.get(path)
        if body is not None and self.is_ours(body) and self.instance(body["spec"]["nonce"]) is None:
            self._load_instance(body)

    def know_fleet(self, body: Mapping[str, Any]) -> None:
        """A Fleet's object as it was seen: its uid, and what its status kept if this process has said nothing yet."""
        key = objects.key_of(body)
        self._uids[key] = body["metadata"]["uid"]
        if not body["metadata"].get("deletionTimestamp"):
            self._deleting.discard(key)
        if self.status(key) is not None:
            return
        said = objects.said_of(body)
        if said is not None:
            mine = tuple(self._said[i.nonce] for i in self.instances(key) if i.nonce in self._said)
            super().put_status(key, said.model_copy(update={"instances": mine}).model_dump_json(by_alias=True))
            self._at.know(_fleet_path(key), body["status"])
        for held in objects.backoffs_of(body):
            super().put_backoff(held)
        self._handled[key] = (body.get("status") or {}).get("lastHandledReconcileAt") or ""

    def hold(self, key: str, *, generation: int, requested_at: str) -> None:
        """Of which spec, and after which request, the next status of a Fleet speaks."""
        self._generations[key], self._handled[key] = generation, requested_at

    def refuse(self, key: str, said: FleetStatus) -> None:
        """A Fleet's spec is wrong: its conditions say so until it is held to another, whatever its passes find."""
        self._refused[key] = tuple(each for each in said.conditions if each.type in {"Ready", "Stalled"})
        self.put_status(key, said.model_dump_json(by_alias=True))

    def accept(self, key: str) -> None:
        """A Fleet's spec is right, or does not matter any more."""
        self._refused.pop(key, None)

    def forget_fleet(self, key: str) -> None:
        """Its object is gone, and with it those of its instances that are gone."""
        for instance in self.instances(key, gone=True, since=-1.0):
            if not instance.billable:
                self._drop(instance.nonce)
        for known in (self._uids, self._generations, self._handled, self._statuses, self._refused):
            known.pop(key, None)
        self._at.forget(_fleet_path(key))
        if not self.instances(key):  # else it goes on being torn down: nobody asks for it any more
            self._deleting.discard(key)

    def object_gone(self, nonce: str) -> None:
        """An instance's object was taken away from outside. It is made again while the instance bills."""
        path = self._objects.pop(nonce, None)
        if path is not None:
            self._at.forget(path)
        instance = self.instance(nonce)
        if instance is None:
            return
        if instance.billable:
            self._mark("instance", nonce)
        else:
            self._drop(nonce)

    def instance_wiped(self, nonce: str) -> None:
        """The status of an instance's object is not there any more: it is written again."""
        if self._at.forget(self._objects.get(nonce, "")):
            self._mark("instance", nonce)

    def fleet_wiped(self, key: str) -> None:
        """The status of a Fleet is not there any more: it is written again."""
        if self._at.forget(_fleet_path(key)):
            self._mark("fleet", key)

    def let_go(self, key: str) -> None:
        """A Fleet's instances run on, and are nobody's from now on: all its objects may go."""
        for instance in self.instances(key, gone=True, since=-1.0):
            self._mark("let go", instance.nonce)
        self._mark("end", key)

    # writing

    def put(self, instance: Instance) -> None:
        """Write an instance, new or changed."""
        super().put(instance)
        self._mark("instance", instance.nonce)

    async def secure(self, nonce: str) -> None:
        """Return when there is an object of an instance. Raises a fault if the server would not take it.

        Nothing is to be rented for a Fleet that is gone, or going, since it was decided on.
        """
        instance = self.instance(nonce)
        if instance is None or nonce in self._objects:
            return
        if instance.fleet not in self._uids or instance.fleet in self._deleting:
            raise Refused(Reason.DELETED, "its Fleet was deleted meanwhile")
        await self._make(instance)

    def add_run(self, run: Run) -> None:
        """Keep a run with its machine."""
        super().add_run(run)
        self._mark("machine", str(run.machine_id))

    def put_backoff(self, backoff: Backoff) -> None:
        """Keep a back-off: of a machine with that, of a shape or a fleet with the Fleet, others in memory alone."""
        super().put_backoff(backoff)
        self._mark_backoff(backoff.scope, backoff.key)

    def drop_backoff(self, scope: str, key: str) -> None:
        """Forget a back-off."""
        super().drop_backoff(scope, key)
        self._mark_backoff(scope, key)

    def put_status(self, fleet: str, status: str) -> None:
        """Keep a Fleet's status, and with each instance and its machine what is thought of it."""
        found = FleetStatus.model_validate_json(status)
        if fleet in self._refused:
            rest = tuple(each for each in found.conditions if each.type not in {"Ready", "Stalled", "Reconciling"})
            found = found.model_copy(update={"conditions": (*self._refused[fleet], *rest)})
            status = found.model_dump_json(by_alias=True)
        super().put_status(fleet, status)
        for said in found.instances:
            if self._said.get(said.nonce) != said:
                self._said[said.nonce] = said
                self._mark("instance", said.nonce)
                instance = self.instance(said.nonce)
                if instance is not None and self.runs(instance.machine_id):
                    self._mark("machine", str(instance.machine_id))
        self._mark("fleet", fleet)

    def set_deleting(self, fleet: str, *, deleting: bool) -> None:
        """Note that a Fleet is to be torn down; or that nothing of it is left, so that its object may go.

        It is being torn down until that is gone: or something would be rented for it anew.
        """
        if deleting:
            self.accept(fleet)
            super().set_deleting(fleet, deleting=True)
        else:
            self._mark("end", fleet)

    def put_fact(self, name: str, value: str) -> None:
        """Remember a single value; which account the instances are of, for good."""
        super().put_fact(name, value)
        if name == "account" and self._lease:
            self._mark("account", value)

    def add_event(self, event: Event) -> None:
        """Tell of something, as a Kubernetes event. What cannot be told is not tried again."""
        name = self._events.add(event, uid=self._uids.get(event.fleet))
        if name is not None:
            self._mark("event", name)

    def _mark(self, kind: str, name: str) -> None:
        self.behind.mark(kind, name)

    def _mark_backoff(self, scope: str, key: str) -> None:
        if scope == "machine":
            self._mark("machine", key)
        elif scope in {"shape", "fleet"}:
            self._mark("fleet", key.partition("/")[0])

    async def flush(self) -> list[Fault]:
        """Write what differs from what was written last; what can't be written now is written the next time."""
        return await self.behind.flush()

    # instances

    async def _make(self, instance: Instance) -> None:
        body = objects.instance_object(instance, owner=self._owner, fleet_uid=self._uids.get(instance.fleet))
        namespace, _ = place_of(instance.fleet)
        path = f"{ROOT}/namespaces/{namespace}/instances"
        with suppress(Conflict):  # ours, from a create whose answer was lost
            await self._api.create(path, body)
        self._objects[instance.nonce] = f"{path}/{body['metadata']['name']}"

    async def _write_instance(self, nonce: str) -> None:
        instance = self.instance(nonce)
        if instance is None:
            return
        if nonce not in self._objects:
            if not instance.billable:  # it never had one: nothing of it is left to be told
                self._drop(nonce)
                return
            await self._make(instance)
        path = self._objects[nonce]
        status = objects.instance_status(instance, self._said.get(nonce), generation=1)
        try:
            await self._at.write(path, status)
            if not instance.billable:
                await self._at.free(path)
        except Gone:
            self.object_gone(nonce)
            return
        if not instance.billable:
            await self._tidy(instance.fleet)

    async def _let_go(self, nonce: str) -> None:
        path = self._objects.get(nonce)
        if path is not None:
            await self._at.free(path)
        self._drop(nonce)

    async def _tidy(self, fleet: str) -> None:
        """Keep but the newest objects of instances that are gone."""
        gone = [i for i in self.instances(fleet, gone=True, since=-1.0) if not i.billable]
        for instance in gone[:-GONE_KEPT]:
            path = self._objects.get(instance.nonce)
            if path is not None:
                await self._api.delete(path)
            self._drop(instance.nonce)

    def _drop(self, nonce: str) -> None:
        path = self._objects.pop(nonce, None)
        if path is not None:
            self._at.forget(path)
        self._said.pop(nonce, None)
        self.behind.drop("instance", nonce)
        self.forget(nonce)

    # machines and fleets

    async def _write_machine(self, name: str) -> None:
        machine = int(name)
        held = self._backoffs.get(("machine", name))
        path = f"{ROOT}/machines/{machines.machine_name(self._owner, machine)}"
        if machine not in self._machine_objects:
            try:
                await self._api.create(f"{ROOT}/machines", machines.machine_object(self._owner, machine))
            except Conflict:
                pass
            except Gone:  # their kind is taken away
                return
            self._machine_objects.add(machine)
        here = self.on_machine(machine)
        thought = {i.shape: self._said[i.nonce] for i in here if i.nonce in self._said}
        gpu = next((i.gpu for i in here), "")
        status = machines.machine_status(self.runs(machine), thought, held, gpu=gpu, generation=1)
        try:
            await self._at.write(path, status)
        except Gone:
            self._machine_objects.discard(machine)
            self._at.forget(path)
            self._mark("machine", name)

    async def _write_account(self, account: str) -> None:
        await self._api.patch(self._lease, {"metadata": {"annotations": {ACCOUNT: account}}})

    async def _write_fleet(self, key: str) -> None:
        text = self.status(key)
        if text is None or key not in self._generations:
            return
        held = [b for b in self.backoffs() if b.scope in {"shape", "fleet"} and b.key.partition("/")[0] == key]
        status = objects.fleet_status(
            FleetStatus.model_validate_json(text),
            generation=self._generations[key],
            handled=self._handled.get(key, ""),
            backoffs=held,
        )
        try:
            await self._at.write(_fleet_path(key), status)
        except Gone:
            self.forget_fleet(key)

    async def _free_fleet(self, key: str) -> None:
        mine = self.instances(key, gone=True, since=-1.0)
        if any(self.behind.owes(kind, i.nonce) for i in mine for kind in ("instance", "let go")):
            self._mark("end", key)  # theirs first
            return
        await self._at.free(_fleet_path(key))


def instance_path(body: Mapping[str, Any]) -> str:
    """Where an Instance's object is."""
    meta = body["metadata"]
    return f"{ROOT}/namespaces/{meta['namespace']}/instances/{meta['name']}"


def _fleet_path(key: str) -> str:
    namespace, name = place_of(key)
    return f"{ROOT}/namespaces/{namespace}/fleets/{name}"
