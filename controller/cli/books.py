"""The ledger as the commands read it that only look: what is known, beside a controller that may be running."""

import difflib
import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click

from controller.cli import options
from controller.judge.assumptions import UNMEASURED, USUAL, Effort, Prior
from controller.judge.verdict import Terms, judge
from controller.ledger.sqlite import Ledger
from controller.loop.case import alike
from controller.model.instance import Backoff, Decision, Instance, Run, Verdict
from controller.model.reasons import Reason
from controller.model.status import FleetStatus, InstanceStatus, ShapeStatus

UNKNOWN = Verdict(decision=Decision.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What was measured on one physical host with one shape, and what is thought of it."""

    id: int
    shape: str
    verdict: Verdict
    runs: tuple[Run, ...]
    held_until: float | None = None  # unix seconds: not rented again before
    held_for: Reason | None = None

    @property
    def last(self) -> float:
        """When it was last measured, unix seconds."""
        return self.runs[-1].ended_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """Everything in the ledger that is printed, read at one moment."""

    ledger: Ledger
    now: float
    fleets: dict[str, FleetStatus]
    deleting: frozenset[str]

    def fleet(self, name: str) -> FleetStatus:
        """A fleet by its name. Raises click.ClickException with what was meant."""
        if name not in self.fleets:
            raise unknown("fleet", name, self.fleets)
        return self.fleets[name]

    def thought(self, instance: Instance) -> InstanceStatus:
        """What is thought of an instance."""
        status = self.fleets.get(instance.fleet)
        found = (said for said in (status.instances if status else ()) if said.nonce == instance.nonce)
        return next(found, InstanceStatus(nonce=instance.nonce))

    def instances(self, name: str | None = None, *, gone: bool = False) -> list[Instance]:
        """Instances that may bill, or one by id or nonce, gone or not. Raises click.ClickException."""
        if name is None:
            return list(self.ledger.instances(gone=gone))
        everything = self.ledger.instances(gone=True)
        found = [i for i in everything if name in {str(i.instance_id), i.nonce}]
        if not found:
            raise unknown("instance", name, [str(i.instance_id or i.nonce) for i in everything])
        return found

    def machines(self) -> list[Machine]:
        """What was measured, by machine and shape."""
        grouped: dict[tuple[int, str], list[Run]] = {}
        for run in self.ledger.runs():
            grouped.setdefault((run.machine_id, run.shape), []).append(run)
        backoffs = {int(b.key): b for b in self.ledger.backoffs() if b.scope == "machine" and b.until > self.now}
        return [self._machine(key, runs, backoffs.get(key[0])) for key, runs in sorted(grouped.items())]

    def _machine(self, key: tuple[int, str], runs: list[Run], backoff: Backoff | None) -> Machine:
        machine, shape = key
        verdict = self._verdict(shape, runs)
        slow = Reason.KNOWN_SLOW if verdict.decision is Decision.REJECTED else None
        return Machine(
            id=machine,
            shape=shape,
            verdict=verdict,
            runs=tuple(runs),
            held_until=backoff.until if backoff is not None else None,
            held_for=backoff.reason if backoff is not None else slow,
        )

    def _verdict(self, shape: str, runs: list[Run]) -> Verdict:
        """By the terms of the fleet that measured last, over runs that may be compared with the last one."""
        rated = [run for run in runs if run.rate is not None]
        status = self.fleets.get(rated[-1].fleet) if rated else None
        floor = next((s for s in status.shapes if s.key == shape), None) if status else None
        if floor is None or status is None:
            return UNKNOWN
        same = alike(run for run in rated if run.workload == rated[-1].workload)
        return judge(same, terms_of(floor, status.recheck_hours), now=self.now)


def terms_of(floor: ShapeStatus, recheck_hours: float) -> Terms:
    """What instances of a shape are judged by, as the last pass wrote it down."""
    learned = floor.typical_rate is not None and floor.spread is not None
    prior = (
        Prior(round(math.log((floor.typical_rate or 1.0) / floor.min_rate), 2), floor.spread or 0.0, floor.machines)
        if learned
        else UNMEASURED
    )
    effort = Effort(
        planned_hours=floor.planned_hours,
        run_hours=floor.run_hours or USUAL.run_hours,
        provision_hours=floor.provision_hours or USUAL.provision_hours,
    )
    return Terms(
        floor=floor.min_rate,
        recheck_seconds=recheck_hours * 3600,
        prior=prior,
        effort=effort,
        replace_below=floor.replace_below,
        accept_above=floor.accept_above,
    )


@contextmanager
def books(path: Path | None) -> Iterator[Books]:
    """The ledger, opened for reading. Raises Misconfigured."""
    settings = options.settings(path, needs_key=False)
    ledger = Ledger.read(settings.ledger)
    try:
        said = {name: text for name, text in ledger.statuses().items() if text != "{}"}
        yield Books(
            ledger=ledger,
            now=settings.clock.now(),
            fleets={name: FleetStatus.model_validate_json(text) for name, text in said.items()},
            deleting=ledger.deleting(),
        )
    finally:
        ledger.close()


def unknown(kind: str, name: str, known: Iterable[str]) -> click.ClickException:
    """An error that says which was meant, or which there are."""
    known = list(known)
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        hint = f"did you mean {' or '.join(close)}?"
    elif known:
        hint = f"the ledger has {', '.join(known[:10])}" + (f" and {len(known) - 10} more" if len(known) > 10 else "")  # noqa: PLR2004
    else:
        hint = f"the ledger has no {kind}"
    return click.ClickException(f"there is no {kind} {name!r}; {hint}")
