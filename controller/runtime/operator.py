"""The operator: the same loop, with the cluster as its ledger and its face.

    watch ─► what is wanted ─► rounds of passes over what is due ─► ledger ─► objects, behind

Only the leader passes. What is remembered is read once it leads, and written behind the loop's back; a round is made
when something changed, a job ended or a pass is due. Level-triggered: of twenty edits the last is what counts.
"""

import asyncio
import logging
import time
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from controller.ledger import objects
from controller.ledger.api import Conflict
from controller.ledger.cluster import ClusterLedger
from controller.ledger.objects import FINALIZER, REQUESTED_AT, instance_path
from controller.loop.pace import Pace, Schedule
from controller.loop.passes import Loop
from controller.loop.ports import Clock
from controller.model.faults import Fault
from controller.model.fleet import Fleet
from controller.model.instance import Event
from controller.model.status import FleetStatus
from controller.report.fleet import first, invalid
from controller.runtime.watch import Seen

log = logging.getLogger(__name__)

GATHER = 0.2  # seconds of the wall's clock that changes are gathered before a round: twenty edits are one
WRITE_AGAIN = (0.5, 1.0, 2.0, 5.0, 10.0)  # seconds of the wall's clock between tries to write
DEAD = 600.0  # seconds of the wall's clock without a sign of life, after which the loop is held to be dead


class Operator:
    """Holds the Fleets of a cluster to their specs, while this replica leads.

    Args:
        loop: makes the passes, on the ledger given here.
        ledger: what is remembered, loaded.
        clock: the controller's time.
        pace: of the passes.
    """

    def __init__(self, *, loop: Loop, ledger: ClusterLedger, clock: Clock, pace: Pace) -> None:
        self._loop = loop
        self._ledger = ledger
        self._clock = clock
        self._schedule = Schedule(pace)
        self._active = pace.active
        self._fleets: dict[str, Fleet] = {}  # what is wanted, the last good spec of each
        self._bodies: dict[str, Mapping[str, Any]] = {}  # metadata of the Fleets as they are
        self._strange: set[str] = set()  # paths of Instances that are ours and not known
        self._orphans: set[str] = set()  # fleets that are deleted, and whose instances run on
        self._wake = loop.jobs.wake
        self._stopped = asyncio.Event()
        self._alive_at = time.monotonic()
        self.rounds = 0

    # what happens in the cluster

    def seen(self, seen: Seen) -> None:
        """An object as it is now, or that it is no more."""
        if seen.kind == "Fleet":
            self._fleet_seen(seen)
        else:
            self._instance_seen(seen)

    def _fleet_seen(self, seen: Seen) -> None:
        key, meta = objects.key_of(seen.body), seen.body["metadata"]
        if seen.gone:
            self._fleet_gone(key)
            return
        before = self._bodies.get(key)
        self._ledger.know_fleet(seen.body)
        self._bodies[key] = {
            k: meta.get(k) for k in ("uid", "generation", "deletionTimestamp", "finalizers", "annotations")
        }
        if before is not None and before["uid"] != meta["uid"]:
            before = None
        if meta.get("deletionTimestamp"):
            self._fleet_ending(key, seen.body)
        elif before is None or before["generation"] != meta["generation"] or not before["finalizers"]:
            self._wanted(key, seen.body)
        elif _requested(before) == _requested(self._bodies[key]):
            if not (seen.body.get("status") or {}).get("conditions"):
                self._ledger.fleet_wiped(key)
            return
        self._schedule.wake([key])
        self._wake.set()

    def _wanted(self, key: str, body: Mapping[str, Any]) -> None:
        """Take on a spec. What is wrong with it is told; the last good one is held until then."""
        meta = body["metadata"]
        try:
            fleet = objects.fleet_of(body)
        except ValidationError as error:
            self._ledger.hold(key, generation=meta["generation"], requested_at=_requested(meta))
            text = self._ledger.status(key)
            before = FleetStatus.model_validate_json(text) if text not in {None, "{}"} else None
            said = invalid(before, key, error, now=self._clock.now())
            if before is None or before.condition("Stalled") != said.condition("Stalled"):
                self._tell_refused(key, said)
            self._ledger.refuse(key, said)
            return
        self._ledger.accept(key)
        self._fleets[key] = fleet
        if self._ledger.status(key) is None:
            self._ledger.hold(key, generation=meta["generation"], requested_at="")
            self._ledger.put_status(key, first(fleet, now=self._clock.now()).model_dump_json(by_alias=True))

    def _tell_refused(self, key: str, said: FleetStatus) -> None:
        stalled = said.condition("Stalled")
        if stalled is None:
            return
        told = Event(
            at=self._clock.now(),
            fleet=key,
            about=key,
            kind="Warning",
            reason=stalled.reason,
            message=stalled.message,
        )
        self._ledger.add_event(told)

    def _fleet_ending(self, key: str, body: Mapping[str, Any]) -> None:
        if FINALIZER not in (body["metadata"].get("finalizers") or ()):
            return
        if key not in self._fleets:
            self._wanted(key, body)
        if body["spec"].get("deletionPolicy") == "Orphan":
            self._orphans.add(key)
        else:
            self._ledger.set_deleting(key, deleting=True)

    def _fleet_gone(self, key: str) -> None:
        """Its object is no more: what still bills of it goes on being taken down if its own object is being deleted."""
        self._fleets.pop(key, None)
        self._bodies.pop(key, None)
        self._ledger.forget_fleet(key)
        if not self._ledger.instances(key):
            self._schedule.forget(key)

    def _instance_seen(self, seen: Seen) -> None:
        nonce, key = seen.body["spec"]["nonce"], objects.key_of(seen.body)
        instance = self._ledger.instance(nonce)
        if instance is None and not seen.gone and self._ledger.is_ours(seen.body):
            self._strange.add(instance_path(seen.body))
            self._schedule.wake([key])
            self._wake.set()
            return
        if (
            instance is None
            or instance.fleet != key
            or objects.instance_name(instance) != seen.body["metadata"]["name"]
        ):
            return
        if seen.gone:
            self._ledger.object_gone(nonce)
        elif seen.body["metadata"].get("deletionTimestamp") and instance.billable:
            self._ledger.discard(nonce)
        elif "phase" not in (seen.body.get("status") or {}):
            self._ledger.instance_wiped(nonce)
            return
        else:
            return
        self._schedule.wake([key])
        self._wake.set()

    # rounds

    async def run(self) -> None:
        """Make rounds until `stop`. Raises what the loop can't go on after."""
        self._schedule.wake(i.fleet for i in self._ledger.instances())
        writer = asyncio.create_task(self._write(), name="write")
        try:
            while not self._stopped.is_set():
                self._wake.clear()
                await self._round()
                self._alive_at = time.monotonic()
                self.rounds += 1
                await self._wait()
        finally:
            await self._loop.close()
            writer.cancel()
            await asyncio.gather(writer, return_exceptions=True)
            if faults := await self._ledger.flush():
                log.warning("%d objects were not written at the end, the first: %s", len(faults), faults[0])

    def stop(self) -> None:
        """End after the pass that is under way."""
        self._stopped.set()
        self._wake.set()

    @property
    def sick(self) -> str:
        """What is wrong with the loop; empty when nothing is."""
        silent = time.monotonic() - self._alive_at
        return f"the loop did nothing for {silent:.0f} s" if silent > DEAD else ""

    async def _round(self) -> None:
        await self._take_in()
        due, woken = self._schedule.due(self._clock.now()), set(self._loop.woken)
        self._loop.woken.clear()
        names = (due | woken) - await self._not_ready(due | woken) - self._orphans
        for key in tuple(self._orphans):
            await self._orphan(key)
        if not names:
            return
        for key in names & self._bodies.keys():
            meta = self._bodies[key]
            self._ledger.hold(key, generation=meta["generation"], requested_at=_requested(meta))
        self._schedule.begun(names)
        statuses = await self._loop.once(tuple(self._fleets.values()), only=names, max_age=self._active / 2)
        now = self._clock.now()
        for said in statuses:
            self._schedule.passed(said, now=now, listed=self._loop.listed)
            if said.fleet not in self._bodies and not self._ledger.instances(said.fleet):
                self._schedule.forget(said.fleet)

    async def _take_in(self) -> None:
        """Take in what a leader before this one wrote after this one had read: its write was on its way."""
        for path in tuple(self._strange):
            try:
                await self._ledger.take_in(path)
            except Fault as fault:
                log.warning("%s could not be read: %s", path, fault)
            else:
                self._strange.discard(path)

    async def _not_ready(self, names: set[str]) -> set[str]:
        """Put our finalizer on Fleets that are without; nothing is rented for one before it was seen on it."""
        bare = {
            key
            for key in names & self._bodies.keys()
            if FINALIZER not in (self._bodies[key]["finalizers"] or ()) and not self._bodies[key]["deletionTimestamp"]
        }
        room = asyncio.Semaphore(8)

        async def put_on(key: str) -> None:
            async with room:
                self._schedule.forget(key)  # it wakes when it is seen with it
                try:
                    await self._ledger.bind(key)
                except Conflict:
                    self._schedule.wake([key])
                except Fault as fault:
                    log.warning("%s: no finalizer could be put on it: %s", key, fault)
                    self._schedule.later(key, self._clock.now())

        await asyncio.gather(*(put_on(key) for key in bare))
        return bare

    async def _orphan(self, key: str) -> None:
        """Let a fleet go whose instances run on: nothing is ever done to them from here again."""
        for instance in self._ledger.instances(key):
            log.warning("%s: instance %s runs on and bills: deletionPolicy is Orphan", key, instance.instance_id)
        self._ledger.let_go(key)
        self._orphans.discard(key)
        self._fleets.pop(key, None)
        self._schedule.forget(key)

    async def _wait(self) -> None:
        """Until something changes, a job ends, or a pass is due; what changes at once is gathered."""
        seconds = self._schedule.wait(self._clock.now())
        if self._loop.woken or self._stopped.is_set():
            seconds = 0.0
        await self._loop.rest(min(seconds, self._active))
        if not self._stopped.is_set():
            await asyncio.sleep(GATHER)  # noqa: TID251 - the cluster's time, not the controller's

    async def _write(self) -> None:
        """Write what the ledger has not written yet, again and again."""
        tries = 0
        while True:
            await self._ledger.behind.waiting.wait()
            faults = await self._ledger.flush()
            for fault in faults[:1]:
                log.warning("%d objects could not be written, the first: %s", len(faults), fault)
            tries = tries + 1 if faults else 0
            await asyncio.sleep(WRITE_AGAIN[min(tries, len(WRITE_AGAIN)) - 1] if faults else GATHER)  # noqa: TID251 - see GATHER


def _requested(meta: Mapping[str, Any]) -> str:
    return str((meta.get("annotations") or {}).get(REQUESTED_AT) or "")
