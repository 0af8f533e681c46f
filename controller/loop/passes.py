"""One pass of the loop, and the loop that keeps passing.

    observe ─► judge ─► plan ─► act ─► report        for every fleet, on one listing

Level-triggered: a pass goes by what it sees and by the ledger, never by what an earlier pass meant to do. Between
passes jobs run on the instances; a pass begins when one ends, when something is due, or when the pace says so.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from controller.loop.act import Acts, Done
from controller.loop.jobs import Jobs
from controller.loop.observe import Observation, Observer
from controller.loop.pace import Pace
from controller.loop.ports import Clock, Hosts, Ledger, Provider, Secrets
from controller.model.actions import Action, Rent
from controller.model.faults import Fault
from controller.model.fleet import Fleet
from controller.model.instance import Phase
from controller.model.reasons import Reason
from controller.model.status import FleetStatus, Market
from controller.plan.facts import Facts
from controller.plan.fleet import Plan, plan, rent
from controller.plan.limits import Limits
from controller.plan.outcome import JobEnd, after_job
from controller.plan.track import event, in_phase
from controller.report.conditions import Found
from controller.report.fleet import failed, first, news, status

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Intended:
    """A fleet's plan, not carried out: what a dry run prints."""

    facts: Facts
    plan: Plan
    actions: tuple[Action, ...]
    market: Market | None
    faults: tuple[Fault, ...] = ()


class Loop:
    """Holds fleets to their manifests."""

    def __init__(  # noqa: PLR0913 - the ports, each by name
        self,
        *,
        provider: Provider,
        hosts: Hosts,
        ledger: Ledger,
        clock: Clock,
        secrets: Secrets,
        new_id: Callable[[], str],
        owner: str,
        limits: Limits | None = None,
        pace: Pace | None = None,
        at_once: int = 1,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._limits = limits or Limits()
        self._pace = pace or Pace()
        self.jobs = Jobs(hosts=hosts, clock=clock, ended=self._job_ended)
        self._observer = Observer(provider=provider, ledger=ledger, clock=clock, owner=owner, limits=self._limits)
        self._acts = Acts(
            provider=provider,
            ledger=ledger,
            jobs=self.jobs,
            clock=clock,
            secrets=secrets,
            new_id=new_id,
            owner=owner,
            limits=self._limits,
        )
        self._at_once = at_once  # fleets that are passed over at one time
        self._idle_passes = 0
        self.woken: set[str] = set()  # the fleets of which a job has ended; to be cleared by whoever passes over them
        self.listed = False  # whether the last pass had a listing to go by

    async def once(
        self, fleets: Sequence[Fleet], *, only: Collection[str] | None = None, max_age: float = 0.0
    ) -> tuple[FleetStatus, ...]:
        """One pass over the given fleets, and over what the ledger still has to finish. Returns each fleet's status.

        `only`: pass over the fleets of these names alone. `max_age`: seconds that the listing may be old.
        """
        self._recover()
        self._introduce(fleets)
        seen = await self._observer.look(fleets, max_age=max_age)
        self.listed = seen.listing is not None
        by_name = {fleet.name: fleet for fleet in fleets}
        names = only
        if names is None:
            names = {*by_name, *self._ledger.deleting(), *(i.fleet for i in self._ledger.instances())}
        room = asyncio.Semaphore(self._at_once)

        async def over(name: str) -> FleetStatus:
            async with room:
                await asyncio.sleep(0)  # noqa: TID251 - a pass may wait for nothing, and others are to have their turn
                return await self._pass_apart(name, by_name.get(name), seen)

        statuses = await asyncio.gather(*map(over, sorted(names)))
        moving = any(said.pending or said.leaving for said in statuses)
        waiting = not moving and not all(said.ready for said in statuses)
        self._idle_passes = self._idle_passes + 1 if seen.listing is None or waiting else 0
        return tuple(statuses)

    async def intend(self, fleets: Sequence[Fleet]) -> tuple[Intended, ...]:
        """What a pass would do, done by none of it. The market is looked at whether or not something is missing."""
        self._recover()
        seen = await self._observer.look(fleets)
        return tuple([await self._intend(fleet.name, fleet, seen, always_search=True) for fleet in fleets])

    async def keep(
        self, source: Callable[[], Sequence[Fleet]], *, until: Callable[[tuple[FleetStatus, ...]], bool]
    ) -> tuple[FleetStatus, ...]:
        """Pass, wait, and pass again, until the statuses satisfy `until`.

        `source` is asked for the fleets before each pass.
        """
        while True:
            self.jobs.wake.clear()
            statuses = await self.once(source())
            if until(statuses):
                return statuses
            await self.rest(self._until_next(statuses))

    async def close(self) -> None:
        """End the jobs; what they had not finished is begun again by the next loop."""
        await self.jobs.close()

    async def _pass_apart(self, name: str, fleet: Fleet | None, seen: Observation) -> FleetStatus:
        """A pass over one fleet; an error of our own in it leaves the other fleets held."""
        try:
            return await self._pass_over(name, fleet, seen)
        except Fault:
            raise
        except Exception:
            log.exception("%s: the pass ended in an error of our own; it is tried again", name)
            said = failed(self._before(name), name, now=self._clock.now())
            self._ledger.put_status(name, said.model_dump_json(by_alias=True))
            return said

    def _introduce(self, fleets: Sequence[Fleet]) -> None:
        """Give every new fleet a status before anything slow."""
        for fleet in fleets:
            if self._ledger.status(fleet.name) in {None, "{}"}:
                said = first(fleet, now=self._clock.now())
                self._ledger.put_status(fleet.name, said.model_dump_json(by_alias=True))

    def _before(self, name: str) -> FleetStatus | None:
        text = self._ledger.status(name)
        return FleetStatus.model_validate_json(text) if text not in {None, "{}"} else None

    async def _pass_over(self, name: str, fleet: Fleet | None, seen: Observation) -> FleetStatus:
        intended = await self._intend(name, fleet, seen, always_search=False)
        done = [await self._perform(action, intended) for action in _harm_first(intended)]
        faults = [*intended.faults, *(d.fault for d in done if d.fault is not None)]
        faults += await self._rent(intended)
        after = intended.facts
        if intended.actions:
            after = self._observer.facts(name, fleet, seen, self.jobs.running())
        before = self._before(name)
        found = Found(
            facts=after,
            plan=intended.plan,
            actions=intended.actions,
            faults=faults,
            market=intended.market,
            before=before,
        )
        said, told = news(before, status(found))
        for event_ in told:
            self._ledger.add_event(event_)
        self._ledger.put_status(name, said.model_dump_json(by_alias=True))
        if after.deleting and seen.listing is not None and not after.instances:
            self._ledger.set_deleting(name, deleting=False)
        return said

    async def _intend(self, name: str, fleet: Fleet | None, seen: Observation, *, always_search: bool) -> Intended:
        facts = self._observer.facts(name, fleet, seen, self.jobs.running())
        made = plan(facts)
        lacking = made.wanted.count > 0 and (made.missing > 0 or bool(made.wanted.least_of))
        market: Market | None = None
        rents: tuple[Rent, ...] = ()
        faults = seen.faults
        if facts.listing is not None and fleet is not None and not facts.deleting and (lacking or always_search):
            try:
                await self._observer.credit_before_renting()
                facts = self._observer.with_experience(facts)
                candidates, market = await self._observer.market(facts, made)
                rents = rent(facts, made, candidates) if lacking else ()
            except Fault as fault:
                faults = (*faults, fault)
        return Intended(facts=facts, plan=made, actions=(*made.actions, *rents), market=market, faults=faults)

    async def _perform(self, action: Action, intended: Intended) -> Done:
        facts = intended.facts
        done = await self._acts.perform(action, facts)
        if done.dropped:
            log.info("%s: %s dropped: %s", facts.name, type(action).__name__, done.dropped)
        return done

    async def _rent(self, intended: Intended) -> list[Fault]:
        """Rent one after the other; stop at the first answer that speaks of more than its own offer."""
        faults: list[Fault] = []
        for action in intended.actions:
            if not isinstance(action, Rent):
                continue
            self._observer.attempted(action.offer)
            done = await self._perform(action, intended)
            if done.fault is None:
                continue
            if done.fault.reason is not Reason.OFFER_GONE:
                return [*faults, done.fault]
        return faults

    def _recover(self) -> None:
        """What is intended though nobody is renting it may have been rented: its label will tell.

        Such an intent was left by a controller that ended, or by a pass that did.
        """
        for instance in self._ledger.instances():
            if instance.phase is Phase.INTENDED:
                why = "whoever rented it ended before the create call was answered"
                unclear = in_phase(instance, Phase.UNCLEAR, Reason.CREATE_UNCLEAR, now=self._clock.now(), detail=why)
                self._ledger.put(unclear)
                said = event(unclear, Reason.CREATE_UNCLEAR, why, now=self._clock.now(), kind="Warning")
                self._ledger.add_event(said)

    def _job_ended(self, nonce: str, end: JobEnd) -> None:
        """Write down what a job's end means, at once: a measurement must not be lost with the process."""
        if end.run is not None:
            self._ledger.add_run(end.run)
        instance = self._ledger.instance(nonce)
        if instance is None or not instance.billable:
            return
        self.woken.add(instance.fleet)
        note = after_job(instance, end, now=self._clock.now(), limits=self._limits)
        self._ledger.put(note.instance)
        for scope, key in note.cleared:
            self._ledger.drop_backoff(scope, key)
        for said in note.events:
            self._ledger.add_event(said)

    def _until_next(self, statuses: tuple[FleetStatus, ...]) -> float:
        if self._idle_passes:
            return min(self._pace.retry, self._pace.active * 2.0 ** min(self._idle_passes - 1, 16))
        return self._pace.steady if all(said.ready for said in statuses) else self._pace.active

    async def rest(self, seconds: float) -> None:
        """Until so many seconds have passed, or a job has ended."""
        timer = asyncio.ensure_future(self._clock.sleep(seconds))
        woken = asyncio.ensure_future(self.jobs.wake.wait())
        try:
            await asyncio.wait({timer, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (timer, woken):
                task.cancel()
            await asyncio.gather(timer, woken, return_exceptions=True)


def _harm_first(intended: Intended) -> list[Action]:
    """What is written down first, then what ends billing, then the rest; renting comes after all of it."""
    order = {"Note": 0, "Destroy": 1, "Release": 1, "Confirm": 2, "Resume": 3, "Begin": 3}
    actions = [action for action in intended.actions if not isinstance(action, Rent)]
    return sorted(actions, key=lambda action: order[type(action).__name__])
