"""The first half of a pass: what exists, what that means for the ledger, what the runs say, what the market offers."""

import asyncio
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from controller.loop import evidence
from controller.loop.account import FRESH, AccountWatch
from controller.loop.evidence import Kind, Weighed
from controller.loop.learned import LEARNED_FROM
from controller.loop.ports import Clock, Ledger, Provider
from controller.loop.searches import Searches
from controller.model import labels
from controller.model.faults import Fault
from controller.model.fleet import Fleet, Shape
from controller.model.instance import Event, Instance, Job, Phase, Run
from controller.model.labels import Mark
from controller.model.market import Listing, Offer, OfferQuery, Sighting
from controller.model.reasons import Reason
from controller.model.status import Market
from controller.plan.facts import Facts
from controller.plan.fleet import Plan, affordable
from controller.plan.limits import Limits
from controller.plan.offers import Candidate, Sifted, sift
from controller.plan.track import adopted, differs, event, in_phase, match, name_of, twin_of, update


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What one look at vast.ai gave: a complete listing laid against the ledger, or the fault that prevented it."""

    listing: Listing | None
    seen: dict[str, Sighting]  # by nonce
    faults: tuple[Fault, ...] = ()


class Observer:
    """Looks, and brings the ledger up to what was seen."""

    def __init__(self, *, provider: Provider, ledger: Ledger, clock: Clock, owner: str, limits: Limits) -> None:
        self._provider = provider
        self._ledger = ledger
        self._clock = clock
        self._owner = owner
        self._limits = limits
        self._seen: tuple[float, Observation] | None = None
        self._known: dict[str, tuple[object, Weighed]] = {}
        self._grouped: tuple[tuple[Run, ...], dict[Kind, tuple[Run, ...]]] = (), {}
        self._searches = Searches(provider=provider, clock=clock)
        self._account = AccountWatch(provider=provider, ledger=ledger, clock=clock)

    async def look(self, fleets: Sequence[Fleet], *, max_age: float = 0.0) -> Observation:
        """List once for all fleets, unless what was seen last is younger than `max_age` seconds.

        Raises nothing of the provider's: a fault is an observation.
        """
        if self._seen is None or self._clock.now() - self._seen[0] >= max_age:
            at = self._clock.now()
            self._seen = at, await self._look(fleets)
        return self._seen[1]

    async def _look(self, fleets: Sequence[Fleet]) -> Observation:
        try:
            hourly = await self._account.look()
            listing = await self._provider.list()
            if any(row.intended == "stopped" and self._wanted(row, fleets) for row in listing.sightings):
                await self._account.look(FRESH)  # is it the account, or somebody's hand?
            if hourly:
                await self._account.proposals(listing)
        except Fault as fault:
            return Observation(listing=None, seen={}, faults=(fault,))
        matches = match(listing, owner=self._owner, find=self._ledger.instance, holder=self._ledger.holder)
        seen = dict(matches.seen)
        for instance in self._ledger.instances():
            self._update(instance, seen.get(instance.nonce), listing)
        for record, row in matches.back:
            seen[record.nonce] = row
            self._resurrect(record, row)
        for record, row in matches.doubles:
            seen |= self._second(record, row)
        seen |= self._adopt(matches.strays, fleets)
        return Observation(listing=listing, seen=seen)

    def _wanted(self, row: Sighting, fleets: Sequence[Fleet]) -> bool:
        """Whether a row is ours, and of a fleet that somebody asks for: what is unmanaged may stand still for weeks."""
        mark, known = labels.read(row.label, owner=self._owner), self._ledger.holder(row.id)
        moved = known is not None and known.label != row.label
        return mark is not None and not moved and any(fleet.name == mark.fleet for fleet in fleets)

    async def credit_before_renting(self) -> None:
        """Look at the credit, unless it was looked at just now."""
        await self._account.look(FRESH)

    def facts(self, name: str, fleet: Fleet | None, seen: Observation, jobs: dict[str, Job]) -> Facts:
        """All that the planner goes by for one fleet."""
        now = self._clock.now()
        mine = self._ledger.instances(name)
        company = self._company(mine)
        facts = Facts(
            now=now,
            name=name,
            fleet=fleet,
            instances=mine,
            listing=seen.listing,
            limits=self._limits,
            seen=seen.seen,
            jobs=jobs,
            company=company,
            machines_in_use=self._ledger.machines_in_use(),
            backoffs=tuple(self._ledger.backoffs()),
            credit=self._account.credit,
            spend=self._ledger.spend(),
            deleting=name in self._ledger.deleting(),
            discarded=self._ledger.discarded(),
        )
        if fleet is None:
            return facts
        weighed = self._weighed(fleet)
        suspect = weighed.suspect
        facts = replace(
            facts,
            verdicts=weighed.verdicts,
            failed_runs=weighed.failed_runs,
            typical=weighed.typical,
            search=weighed.search,
            out_of_reach=weighed.out_of_reach,
            ran_out=weighed.ran_out,
            ran_out_here=weighed.ran_out_here,
            suspect=None if suspect is None else (suspect.reason, suspect.text),
        )
        return self.with_experience(facts) if any(i.admitted_at is None for i in mine) else facts

    def with_experience(self, facts: Facts) -> Facts:
        """The facts, with what to expect of machines: needed only while something is on its way or to be rented."""
        if facts.fleet is None:
            return facts
        weighed = self._weighed(facts.fleet)
        return replace(facts, expected=weighed.expected, doubted=weighed.doubted, slow=weighed.slow)

    def _weighed(self, fleet: Fleet) -> Weighed:
        """What the evidence comes to, worked out again when there is more of it, or it is older."""
        now, runs = self._clock.now(), self._ledger.runs()
        alive = self._ledger.instances(fleet.name)
        company = self._company(alive)
        key = fleet, evidence.soon(now), len(runs), runs[-1:], company, *((i.nonce, i.phase, i.price) for i in alive)
        known = self._known.get(fleet.name)
        if known is None or known[0] != key:
            rented = self._ledger.instances(fleet.name, gone=True, since=now - LEARNED_FROM)
            grouped = self._by_kind(runs)
            weighed = evidence.weigh(fleet, rented, runs, now=now, company=company, grouped=grouped)
            known = self._known[fleet.name] = key, weighed
        return known[1]

    def _company(self, mine: Iterable[Instance]) -> dict[str, int]:
        """Of a fleet's instances: how many others, of any fleet, are at work on the same machine."""
        machines = {instance.machine_id for instance in mine}
        company = evidence.company_of(i for machine in machines for i in self._ledger.on_machine(machine))
        return {i.nonce: company[i.nonce] for i in mine}

    def _by_kind(self, runs: tuple[Run, ...]) -> dict[Kind, tuple[Run, ...]]:
        """The runs of each shape and workload, worked out once for all fleets."""
        if self._grouped[0] is not runs:
            self._grouped = runs, evidence.by_kind(runs)
        return self._grouped[1]

    def attempted(self, offer: Offer) -> None:
        """It was tried to rent an offer: it is for rent no more, whatever came of it."""
        self._searches.drop(offer)

    async def market(self, facts: Facts, plan: Plan) -> tuple[tuple[Candidate, ...], Market]:
        """Search for every shape that may be rented, and hold each offer against the manifest and our experience.

        Places and reliability are asked of vast.ai, whose answers end at so many rows. Where nothing fits, the search
        is repeated without them, to count what they turn away.
        """
        fleet = facts.fleet
        if fleet is None:
            return (), Market()
        candidates: list[Candidate] = []
        rejected: dict[Reason, int] = {}
        left = affordable(facts)
        preferred = fleet.spec.machines.preferred(facts.now)
        shapes = [shape for shape in fleet.spec.shapes if plan.wanted.asks_for(shape.key)]
        markets = await asyncio.gather(*(self._sifted(facts, fleet, shape) for shape in shapes))
        for shape, sifted in zip(shapes, markets, strict=True):
            for reason, count in sifted.rejected.items():
                rejected[reason] = rejected.get(reason, 0) + count
            over = sum(offer.price > left for offer in sifted.offers)
            if over:
                rejected[Reason.BUDGET_EXHAUSTED] = rejected.get(Reason.BUDGET_EXHAUSTED, 0) + over
            candidates += [
                Candidate(
                    offer=offer,
                    shape=shape.key,
                    rate=_expected(facts, offer, shape.key),
                    preferred=offer.machine_id in preferred,
                )
                for offer in sifted.offers
                if offer.price <= left
            ]
        return tuple(candidates), Market(at=facts.now, matching=len(candidates), rejected=rejected)

    async def _sifted(self, facts: Facts, fleet: Fleet, shape: Shape) -> Sifted:
        query = _query(fleet, shape)
        wide = replace(query, countries=(), min_reliability=None)
        found = {offer.id: offer for offer in await self._searches.ask(query)}
        blocked = _held_against(facts, shape.key)
        sifted = sift(found.values(), spec=fleet.spec, shape=shape, now=facts.now, blocked=blocked)
        if query == wide or sifted.offers:
            return sifted
        found |= {offer.id: offer for offer in await self._searches.ask(wide)}
        return sift(found.values(), spec=fleet.spec, shape=shape, now=facts.now, blocked=blocked)

    def _update(self, instance: Instance, row: Sighting | None, listing: Listing) -> None:
        after, events = update(instance, row, listing, now=self._clock.now())
        if differs(instance, after):
            self._ledger.put(after)
        for said in events:
            self._ledger.add_event(said)

    def _resurrect(self, record: Instance, row: Sighting) -> None:
        now = self._clock.now()
        why = "listed again after it was proven gone, or believed never rented"
        back = replace(
            in_phase(record, Phase.DESTROYING, Reason.RESURRECTED, now=now, detail=why),
            instance_id=row.id,
            price=max(row.price or 0, record.price),
            cost_until=now,
            ended_at=None,
            absent_since=None,
        )
        self._ledger.put(back)
        self._ledger.add_event(event(back, Reason.RESURRECTED, why, now=now, kind="Warning"))

    def _second(self, record: Instance, row: Sighting) -> dict[str, Sighting]:
        """A second instance under one label: it gets a record of its own, and goes."""
        now = self._clock.now()
        why = f"a second instance under the label of {name_of(record)}"
        twin = twin_of(record, row, why=why, now=now)
        self._ledger.put(twin)
        self._ledger.add_event(event(twin, Reason.STRAY, why, now=now, kind="Warning"))
        return {twin.nonce: row}

    def _adopt(self, strays: Iterable[tuple[Mark, Sighting]], fleets: Sequence[Fleet]) -> dict[str, Sighting]:
        """Take back what carries our mark though the ledger was lost.

        What belongs to a fleet nobody asked for is only told of.
        """
        now = self._clock.now()
        by_name = {fleet.name: fleet for fleet in fleets}
        taken: dict[str, Sighting] = {}
        unclaimed: list[int] = []
        for mark, row in strays:
            fleet = by_name.get(mark.fleet)
            if fleet is None and mark.fleet not in self._ledger.deleting():
                unclaimed.append(row.id)
                continue
            shape = f"{row.gpu} x{row.gpu_count}"
            same = fleet is not None and row.image in {None, fleet.spec.instance.image}
            workload = fleet.spec.workload() if fleet is not None and same else ""
            record = adopted(mark, row, shape=shape, workload=workload, now=now)
            self._ledger.put(record)
            self._ledger.add_event(
                event(record, Reason.ADOPTED, "found running under our label, and taken back", now=now)
            )
            taken[mark.nonce] = row
        self._tell_unclaimed(unclaimed, now)
        return taken

    def _tell_unclaimed(self, ids: list[int], now: float) -> None:
        text = json.dumps(ids)
        if ids and self._ledger.fact("unclaimed") != text:
            listed = ", ".join(map(str, ids))
            message = (
                f"instances {listed} carry our label for fleets that are not loaded here; they bill, and are left alone"
            )
            self._ledger.add_event(
                Event(at=now, fleet="", about="account", kind="Warning", reason=Reason.STRAY, message=message)
            )
        self._ledger.put_fact("unclaimed", text)


def _query(fleet: Fleet, shape: Shape) -> OfferQuery:
    require = fleet.spec.require
    return OfferQuery(
        gpu=shape.gpu,
        gpu_count=shape.gpu_count,
        disk_gib=require.disk_gib,
        verified=True if require.verified else None,
        countries=tuple(sorted(fleet.spec.countries() or ())),
        min_reliability=require.reliability or None,
        max_price=fleet.spec.budget,
    )


def _held_against(facts: Facts, shape: str) -> Callable[[Offer], Reason | None]:
    """What our own experience holds against an offer of a shape."""
    trouble = facts.shape_trouble(shape)
    narrow = (gib for gib, width in facts.ran_out.get(shape, ()) if gib is not None and width <= 1)
    too_small = max(narrow, default=0.0)
    resting = trouble is not None and trouble.until > facts.now

    def held(offer: Offer) -> Reason | None:
        if (offer.machine_id, shape) in facts.slow:
            return Reason.KNOWN_SLOW
        here = facts.ran_out_here.get((offer.machine_id, shape), ())
        if (offer.ram_gib is not None and offer.ram_gib <= too_small) or any(width <= 1 for _, width in here):
            return Reason.OUT_OF_MEMORY
        blocked = facts.blocked("machine", str(offer.machine_id)) or facts.blocked("offer", str(offer.id))
        return Reason.BACKING_OFF if resting or blocked is not None else None

    return held


def _expected(facts: Facts, offer: Offer, shape: str) -> float:
    return facts.expected.get((offer.machine_id, shape), facts.typical.get(shape, 0.0))
