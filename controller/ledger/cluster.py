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
from controller.ledger.api import Api
from controller.ledger.memory import Memory
from controller.ledger.objects import FINALIZER, OWNER_LABEL, ROOT, fleet_path, instance_path
from controller.ledger.told import Events
from controller.ledger.writers import ACCOUNT, Writers
from controller.model.faults import Fault, Gone, Refused
from controller.model.instance import Backoff, Event, Instance, Run
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus

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
        self._refused: dict[str, tuple[Condition, ...]] = {}  # by fleet: what is said of a spec that is wrong
        self._events = Events(api, owner=owner)
        self._writers = Writers(self, api, self._events, owner=owner, lease=lease, fleet_gone=self.forget_fleet)
        self._known, self._at = self._writers.known, self._writers.at
        self.behind = self._writers.behind

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
            self._known.machines.add(machine)
            self.load_runs(machine, machines.runs_of(body))
            held = machines.machine_backoff(body)
            if held is not None:
                super().put_backoff(held)

    def _load_instance(self, body: Body) -> None:
        instance = objects.instance_of(body | {"kind": "Instance"})
        super().put(instance)
        self._known.said[instance.nonce] = objects.said_of_instance(body)
        self._known.paths[instance.nonce] = instance_path(body)
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
        self._known.uids[key] = body["metadata"]["uid"]
        if not body["metadata"].get("deletionTimestamp"):
            self._deleting.discard(key)
        if self.status(key) is not None:
            return
        said = objects.said_of(body)
        if said is not None:
            mine = tuple(self._known.said[i.nonce] for i in self.instances(key) if i.nonce in self._known.said)
            super().put_status(key, said.model_copy(update={"instances": mine}).model_dump_json(by_alias=True))
            self._at.know(fleet_path(key), body["status"])
        for held in objects.backoffs_of(body):
            super().put_backoff(held)
        self._known.handled[key] = (body.get("status") or {}).get("lastHandledReconcileAt") or ""

    def hold(self, key: str, *, generation: int, requested_at: str) -> None:
        """Of which spec, and after which request, the next status of a Fleet speaks."""
        self._known.generations[key], self._known.handled[key] = generation, requested_at

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
                self._writers.drop(instance.nonce)
        for known in (self._known.uids, self._known.generations, self._known.handled, self._statuses, self._refused):
            known.pop(key, None)
        self._at.forget(fleet_path(key))
        if not self.instances(key):  # else it goes on being torn down: nobody asks for it any more
            self._deleting.discard(key)

    def object_gone(self, nonce: str) -> None:
        """An instance's object was taken away from outside. It is made again while the instance bills."""
        self._writers.gone(nonce)

    def instance_wiped(self, nonce: str) -> None:
        """The status of an instance's object is not there any more: it is written again."""
        if self._at.forget(self._known.paths.get(nonce, "")):
            self._mark("instance", nonce)

    def fleet_wiped(self, key: str) -> None:
        """The status of a Fleet is not there any more: it is written again."""
        if self._at.forget(fleet_path(key)):
            self._mark("fleet", key)

    async def bind(self, key: str) -> None:
        """Put our finalizer on a Fleet, unless it is going or gone. Raises Conflict if it was changed meanwhile."""
        await self._at.bind(fleet_path(key))

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
        if instance is None or nonce in self._known.paths:
            return
        if instance.fleet not in self._known.uids or instance.fleet in self._deleting:
            raise Refused(Reason.DELETED, "its Fleet was deleted meanwhile")
        await self._writers.make(instance)

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
            if self._known.said.get(said.nonce) != said:
                self._known.said[said.nonce] = said
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
        name = self._events.add(event, uid=self._known.uids.get(event.fleet))
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
