"""The only place where decisions take effect. What is about to be done is written down before it is done.

The order matters, and tests fail if it is swapped: the intent to rent before the create call; the phase Destroying
before the destroy call; a fresh look before anything is destroyed; the budget once more before anything is rented.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from controller.loop.jobs import Jobs
from controller.loop.ports import Clock, Ledger, Order, Provider, Secrets
from controller.model import labels
from controller.model.actions import Action, Begin, Confirm, Destroy, Note, Release, Rent, Resume
from controller.model.faults import Fault, Gone, Refused, Retry, Unclear
from controller.model.fleet import Fleet
from controller.model.instance import Backoff, Event, Instance, Phase
from controller.model.market import CreateRequest, Sighting
from controller.model.money import dollars
from controller.model.reasons import Reason
from controller.plan import backoffs
from controller.plan.facts import Facts
from controller.plan.limits import Limits
from controller.plan.track import event, in_phase


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What became of an action. `fault`: what vast.ai said instead of yes."""

    action: Action
    fault: Fault | None = None
    dropped: str = ""  # why it was not done after all


class Acts:
    """Performs actions, one after the other."""

    def __init__(
        self,
        *,
        provider: Provider,
        ledger: Ledger,
        jobs: Jobs,
        clock: Clock,
        secrets: Secrets,
        new_id: Callable[[], str],
        owner: str,
        limits: Limits,
    ) -> None:
        self._provider = provider
        self._ledger = ledger
        self._jobs = jobs
        self._clock = clock
        self._secrets = secrets
        self._new_id = new_id
        self._owner = owner
        self._limits = limits

    async def perform(self, action: Action, facts: Facts) -> Done:
        """Carry out one action that was decided on these facts.

        Faults of the provider are part of the answer; anything else is a bug and is raised.
        """
        fleet, seen = facts.fleet, facts.seen
        try:
            match action:
                case Note():
                    done = self._note(action)
                case Begin():
                    done = self._begin(action, facts)
                case Confirm():
                    done = await self._confirm(action)
                case Release():
                    done = await self._release(action, fleet, seen)
                case Resume():
                    done = await self._resume(action)
                case Destroy():
                    done = await self._destroy(action)
                case Rent():
                    done = await self._rent(action, fleet)
        except Fault as fault:
            return Done(action=action, fault=fault)
        return done

    def _note(self, note: Note) -> Done:
        self._ledger.put(note.instance)
        for backoff in note.backoffs:
            self._ledger.put_backoff(backoff)
        for scope, key in note.cleared:
            self._ledger.drop_backoff(scope, key)
        for said in note.events:
            self._ledger.add_event(said)
        return Done(action=note)

    def _begin(self, begin: Begin, facts: Facts) -> Done:
        instance = begin.instance
        row = facts.seen.get(instance.nonce)
        if facts.fleet is None or row is None:
            return Done(action=begin, dropped="not listed any more")
        order = Order(
            job=begin.job,
            instance=instance,
            endpoints=row.endpoints,
            fleet=facts.fleet,
            neighbours=facts.company.get(instance.nonce, 0),
            ran_out=facts.widths_out_of(instance),
        )
        return Done(action=begin, dropped="" if self._jobs.begin(order) else "its machine is being measured")

    async def _confirm(self, confirm: Confirm) -> Done:
        instance = confirm.instance
        assert instance.instance_id is not None  # noqa: S101 - only what has an id is confirmed
        row = await self._provider.get(instance.instance_id)
        if row is not None and row.label == instance.label:
            text = f"the listing leaves out instance {row.id}, which vast.ai still knows by its id"
            return Done(action=confirm, fault=Retry(Reason.LISTING_INCOMPLETE, text))
        reason, why = Reason.VANISHED, f"{confirm.why}, and unknown by its id"
        if row is not None:
            reason, why = (
                Reason.RELABELLED,
                f"its label is {row.label!r} now: it is not ours to touch, and may go on billing",
            )
        now = self._clock.now()
        gone = replace(in_phase(instance, Phase.GONE, reason, now=now, detail=why), ended_at=now)
        self._write(gone, event(gone, reason, why, now=now, kind="Warning"))
        return Done(action=confirm)

    async def _resume(self, resume: Resume) -> Done:
        """Written down first: a start whose GPU is taken is queued, and may start and bill later."""
        now = self._clock.now()
        wait = now + self._limits.resume
        resumed = replace(resume.instance, reason=Reason.RESUMED, detail=resume.why, not_before=wait)
        self._write(resumed, event(resumed, Reason.RESUMED, f"started again: {resume.why}", now=now, kind="Warning"))
        try:
            await self._provider.start(resume.instance.instance_id or 0)
        except Refused as refused:
            self._ledger.put(replace(resumed, detail=str(refused)[:200], not_before=now))
            return Done(action=resume, fault=refused)
        except Retry as retry:  # not started, so that this was not its one try
            self._ledger.put(replace(resume.instance, not_before=now + self._wait(retry)))
            return Done(action=resume, fault=retry)
        return Done(action=resume)

    async def _release(self, release: Release, fleet: Fleet | None, seen: Mapping[str, Sighting]) -> Done:
        instance, now = release.instance, self._clock.now()
        row = seen.get(instance.nonce)
        await self._jobs.cancel(instance.nonce)
        quiesced = fleet is not None and fleet.spec.instance.stop and row is not None and row.actual == "running"
        if quiesced and fleet is not None and row is not None and instance.admitted_at is not None:
            leaving = in_phase(instance, Phase.RELEASING, release.reason, now=now, detail=release.why)
            said = event(leaving, release.reason, f"released: {release.why}", now=now, kind=_kind(release.reason))
            self._write(leaving, said, *release.backoffs)
            self._jobs.begin(Order(job="quiesce", instance=leaving, endpoints=row.endpoints, fleet=fleet))
            return Done(action=release)
        destroy = Destroy(instance=instance, reason=release.reason, why=release.why, actual=release.actual)
        done = await self._destroy(destroy, *release.backoffs)
        return Done(action=release, fault=done.fault, dropped=done.dropped)

    async def _destroy(self, destroy: Destroy, *blocks: Backoff) -> Done:
        instance = destroy.instance
        assert instance.instance_id is not None  # noqa: S101 - what has no id is waited for
        row = await self._provider.get(instance.instance_id)
        if row is not None and row.label != instance.label:
            return self._let_go(destroy, row)
        if row is not None and destroy.actual is not None and row.actual != destroy.actual:
            return Done(action=destroy, dropped=f"it is {row.actual} now, no longer {destroy.actual}")
        await self._jobs.cancel(instance.nonce)
        leaving = self._leaving(destroy, *blocks)
        fault: Fault | None = None
        wait = self._limits.destroy_again
        try:
            await self._provider.destroy(leaving.instance_id or 0)
        except (Gone, Unclear):
            pass  # only listings tell
        except Retry as retry:
            fault, wait = retry, self._wait(retry)
        except Fault as other:
            fault = other
        called = replace(leaving, destroy_calls=leaving.destroy_calls + 1, not_before=self._clock.now() + wait)
        self._ledger.put(called)
        return Done(action=destroy, fault=fault)

    def _wait(self, retry: Retry) -> float:
        """Seconds before what is owed to a running bill is tried again: as asked, but never for long."""
        return min(retry.after or self._limits.retry, self._limits.longest_retry)

    def _leaving(self, destroy: Destroy, *blocks: Backoff) -> Instance:
        """Write down that an instance is being destroyed, before the call."""
        now = self._clock.now()
        if destroy.instance.phase is Phase.DESTROYING:
            return destroy.instance
        leaving = in_phase(destroy.instance, Phase.DESTROYING, destroy.reason, now=now, detail=destroy.why)
        said = event(leaving, destroy.reason, f"destroying: {destroy.why}", now=now, kind=_kind(destroy.reason))
        self._write(leaving, said, *blocks)
        return leaving

    def _let_go(self, destroy: Destroy, row: Sighting) -> Done:
        now = self._clock.now()
        why = f"its label is {row.label!r} now: it is not ours to touch, and may go on billing"
        gone = replace(in_phase(destroy.instance, Phase.GONE, Reason.RELABELLED, now=now, detail=why), ended_at=now)
        self._write(gone, event(gone, Reason.RELABELLED, why, now=now, kind="Warning"))
        return Done(action=destroy, dropped=why)

    async def _rent(self, rent: Rent, fleet: Fleet | None) -> Done:
        if fleet is None:
            return Done(action=rent, dropped="its manifest is not loaded")
        reserved = sum(instance.price for instance in self._ledger.instances(fleet.name))
        if reserved + rent.price > fleet.spec.budget:
            return Done(
                action=rent, dropped=f"{dollars(reserved)}/h are taken; {dollars(rent.price)}/h more is over the budget"
            )
        env = await self._secrets(fleet)
        taken = any(i.offer_id == rent.offer.id for i in self._ledger.on_machine(rent.offer.machine_id))
        if taken:
            return Done(action=rent, dropped=f"offer {rent.offer.id} was taken for another fleet of ours just now")
        intent = self._intent(rent, fleet)
        self._ledger.put(intent)
        request = CreateRequest(
            offer_id=rent.offer.id,
            image=fleet.spec.instance.image,
            disk_gib=intent.disk_gib,
            label=intent.label,
            env=env,
            on_start=fleet.spec.instance.on_start,
        )
        try:
            await self._ledger.secure(intent.nonce)
            created = await self._provider.create(request)
        except Fault as fault:
            self._not_rented(intent, fault)
            return Done(action=rent, fault=fault)
        for scope, key in backoffs.ended_by_rental(intent):
            self._ledger.drop_backoff(scope, key)
        now = self._clock.now()
        launched = in_phase(
            replace(intent, instance_id=created, cost_until=now), Phase.LAUNCHING, Reason.RENTED, now=now
        )
        where = f"machine {rent.offer.machine_id}" + (f" in {rent.offer.country}" if rent.offer.country else "")
        self._write(
            launched, event(launched, Reason.RENTED, f"{rent.shape} on {where} for {dollars(rent.price)}/h", now=now)
        )
        return Done(action=rent)

    def _intent(self, rent: Rent, fleet: Fleet) -> Instance:
        now = self._clock.now()
        nonce, label = labels.make(owner=self._owner, fleet=fleet.name, new_id=self._new_id())
        return Instance(
            nonce=nonce,
            fleet=fleet.name,
            label=label,
            shape=rent.shape,
            gpu=rent.offer.gpu,
            gpu_count=rent.offer.gpu_count,
            machine_id=rent.offer.machine_id,
            host_id=rent.offer.host_id,
            country=rent.offer.country,
            gpu_fraction=rent.offer.gpu_fraction,
            price=rent.price,
            disk_gib=fleet.spec.require.disk_gib,
            workload=fleet.spec.workload(),
            phase=Phase.INTENDED,
            phase_since=now,
            reason=rent.reason,
            created_at=now,
            offer_id=rent.offer.id,
        )

    def _not_rented(self, intent: Instance, fault: Fault) -> None:
        """Write down what the create call's fault means: nothing rented, something to destroy, or not known."""
        now = self._clock.now()
        text = str(fault)[:200]
        if isinstance(fault, Unclear):
            unclear = in_phase(intent, Phase.UNCLEAR, Reason.CREATE_UNCLEAR, now=now, detail=text)
            self._write(unclear, event(unclear, Reason.CREATE_UNCLEAR, text, now=now, kind="Warning"))
            return
        if isinstance(fault, Refused) and fault.instance_id is not None:
            left = replace(intent, instance_id=fault.instance_id, cost_until=now)
            left = in_phase(
                left, Phase.DESTROYING, fault.reason, now=now, detail=f"refused, yet left an instance: {text}"
            )
            self._write(left, event(left, fault.reason, left.detail, now=now, kind="Warning"))
        else:
            gone = replace(in_phase(intent, Phase.GONE, fault.reason, now=now, detail=text), ended_at=now)
            self._write(gone, event(gone, fault.reason, f"not rented: {text}", now=now, kind="Warning"))
        known = tuple(self._ledger.backoffs())
        self._ledger.put_backoff(backoffs.after_refusal(intent, fault, known=known, now=now))

    def _write(self, instance: Instance, said: Event, *blocks: Backoff) -> None:
        self._ledger.put(instance)
        for block in blocks:
            self._ledger.put_backoff(block)
        self._ledger.add_event(said)


EXPECTED = frozenset({Reason.SURPLUS, Reason.DELETED, Reason.OBJECT_DELETED, Reason.OUTDATED, Reason.CONTRACT_ENDING})


def _kind(reason: Reason) -> str:
    return "Normal" if reason in EXPECTED else "Warning"
