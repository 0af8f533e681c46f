"""What the ledger remembers, held in memory and indexed by what is asked for; made durable by what is built on it.

Thousands of instances are read many times a pass, so that no read goes over all of them.
"""

from bisect import insort
from collections import defaultdict
from collections.abc import Collection, Iterable, KeysView
from collections.abc import Set as AbstractSet

from controller.ledger.runs import kept
from controller.model.instance import Backoff, Event, Instance, Run
from controller.model.money import MicroUsd


class Memory:
    """All that is remembered between passes."""

    def __init__(self) -> None:
        self._instances: dict[str, Instance] = {}
        self._holders: dict[int, str] = {}
        self._by_fleet: defaultdict[str, set[str]] = defaultdict(set)
        self._on_machine: defaultdict[int, set[str]] = defaultdict(set)  # those that bill or may bill
        self._spend = 0
        self._runs: dict[int, tuple[Run, ...]] = {}
        self._all_runs: tuple[Run, ...] | None = ()
        self._backoffs: dict[tuple[str, str], Backoff] = {}
        self._statuses: dict[str, str] = {}
        self._deleting: set[str] = set()
        self._discarded: set[str] = set()
        self._facts: dict[str, str] = {}

    # instances

    def put(self, instance: Instance) -> None:
        """Write an instance, new or changed."""
        before = self._instances.get(instance.nonce)
        if before is not None:
            self._uncount(before)
        self._instances[instance.nonce] = instance
        self._by_fleet[instance.fleet].add(instance.nonce)
        if instance.instance_id is not None:
            self._holders[instance.instance_id] = instance.nonce
        if instance.billable:
            self._on_machine[instance.machine_id].add(instance.nonce)
            self._spend += instance.price if instance.instance_id is not None else 0

    async def secure(self, nonce: str) -> None:
        """Nothing more is done for a record than to hold it."""

    def forget(self, nonce: str) -> None:
        """Drop an instance's record; nothing happens if there is none."""
        self._discarded.discard(nonce)
        instance = self._instances.pop(nonce, None)
        if instance is None:
            return
        self._uncount(instance)
        self._by_fleet[instance.fleet].discard(nonce)
        if not self._by_fleet[instance.fleet]:
            del self._by_fleet[instance.fleet]
        if instance.instance_id is not None and self._holders.get(instance.instance_id) == nonce:
            del self._holders[instance.instance_id]

    def _uncount(self, instance: Instance) -> None:
        if not instance.billable:
            return
        self._on_machine[instance.machine_id].discard(instance.nonce)
        if not self._on_machine[instance.machine_id]:
            del self._on_machine[instance.machine_id]
        self._spend -= instance.price if instance.instance_id is not None else 0

    def instance(self, nonce: str) -> Instance | None:
        """One instance by its nonce, gone or not."""
        return self._instances.get(nonce)

    def holder(self, instance_id: int) -> Instance | None:
        """The record that has vast.ai's id, gone or not."""
        nonce = self._holders.get(instance_id)
        return None if nonce is None else self._instances.get(nonce)

    def instances(self, fleet: str | None = None, *, gone: bool = False, since: float = 0.0) -> tuple[Instance, ...]:
        """Instances, oldest first; those proven gone only if asked for, and rented after `since`, unix seconds."""
        found: Iterable[Instance] = self._instances.values()
        if fleet is not None:
            found = self._named(self._by_fleet.get(fleet, ()))
        wanted = [i for i in found if i.billable or (gone and i.created_at > since)]
        return tuple(sorted(wanted, key=lambda i: (i.created_at, i.nonce)))

    def on_machine(self, machine_id: int) -> tuple[Instance, ...]:
        """The instances on a machine that bill or may bill, oldest first."""
        found = self._named(self._on_machine.get(machine_id, ()))
        return tuple(sorted(found, key=lambda i: (i.created_at, i.nonce)))

    def machines_in_use(self) -> KeysView[int]:
        """The machines of all that bills or may bill; it changes with what is written."""
        return self._on_machine.keys()

    def spend(self) -> MicroUsd:
        """What all instances with an id cost an hour."""
        return self._spend

    def _named(self, nonces: Collection[str]) -> list[Instance]:
        return [self._instances[nonce] for nonce in nonces]

    # runs

    def add_run(self, run: Run) -> None:
        """Keep a run: of one machine so many benchmarks, and of production's rate the last of each hour for a week."""
        before = self._runs.get(run.machine_id, ())
        after = self._runs[run.machine_id] = kept(before, run)
        dropped = {each.id for each in before} - {each.id for each in after}
        if self._all_runs is not None and run in after:
            known = [each for each in self._all_runs if each.id not in dropped] if dropped else list(self._all_runs)
            insort(known, run, key=lambda each: (each.ended_at, each.id))
            self._all_runs = tuple(known)

    def runs(self, machine_id: int | None = None) -> tuple[Run, ...]:
        """Runs, oldest first, of one machine or of all; the same tuple until there is another run."""
        if machine_id is not None:
            return self._runs.get(machine_id, ())
        if self._all_runs is None:
            every = (run for runs in self._runs.values() for run in runs)
            self._all_runs = tuple(sorted(every, key=lambda run: (run.ended_at, run.id)))
        return self._all_runs

    def load_runs(self, machine_id: int, runs: Iterable[Run]) -> None:
        """What is known of a machine, as it was kept."""
        self._runs[machine_id] = tuple(sorted(runs, key=lambda run: (run.ended_at, run.id)))
        self._all_runs = None

    # back-offs, statuses, facts

    def put_backoff(self, backoff: Backoff) -> None:
        """Write a back-off."""
        self._backoffs[backoff.scope, backoff.key] = backoff

    def drop_backoff(self, scope: str, key: str) -> None:
        """Forget a back-off; nothing happens if there is none."""
        self._backoffs.pop((scope, key), None)

    def backoff(self, scope: str, key: str) -> Backoff | None:
        """One back-off, ended or not."""
        return self._backoffs.get((scope, key))

    def backoffs(self) -> tuple[Backoff, ...]:
        """All back-offs, ended ones too: their failures count towards the next."""
        return tuple(self._backoffs.values())

    def add_event(self, event: Event) -> None:
        """Nothing is kept of what happened; who builds on this tells it."""

    def put_status(self, fleet: str, status: str) -> None:
        """Keep a fleet's status, as JSON text."""
        self._statuses[fleet] = status

    def status(self, fleet: str) -> str | None:
        """A fleet's status, as JSON text."""
        return self._statuses.get(fleet)

    def statuses(self) -> dict[str, str]:
        """Each fleet's status, as JSON text."""
        return dict(self._statuses)

    def set_deleting(self, fleet: str, *, deleting: bool) -> None:
        """Note that a fleet is to be torn down, or no longer."""
        if deleting:
            self._deleting.add(fleet)
        else:
            self._deleting.discard(fleet)

    def discard(self, nonce: str) -> None:
        """Note that an instance is to go because its record is to be taken away."""
        self._discarded.add(nonce)

    def discarded(self) -> AbstractSet[str]:
        """The instances that are to go because their records are to be taken away."""
        return self._discarded

    def deleting(self) -> frozenset[str]:
        """The fleets to be torn down."""
        return frozenset(self._deleting)

    def fact(self, name: str) -> str | None:
        """A single remembered value."""
        return self._facts.get(name)

    def put_fact(self, name: str, value: str) -> None:
        """Remember a single value."""
        self._facts[name] = value
