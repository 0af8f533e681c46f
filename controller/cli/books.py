"""The ledger as the commands read it that only look: what is known, beside a controller that may be running."""

import difflib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import click

from controller.cli import options
from controller.ledger.sqlite import Ledger
from controller.loop.evidence import company_of
from controller.model.instance import Instance
from controller.model.status import FleetStatus, InstanceStatus


@dataclass(frozen=True, kw_only=True)
class Books:
    """Everything in the ledger that is printed, read at one moment."""

    ledger: Ledger
    now: float
    fleets: dict[str, FleetStatus]
    deleting: frozenset[str]
    company: dict[str, int]  # by nonce: how many other instances of ours are at work on its machine

    @cached_property
    def rated(self) -> Counter[str]:
        """By nonce: how many runs gave a rate."""
        return Counter(run.nonce for run in self.ledger.runs() if run.rate is not None)

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
            company=company_of(ledger.instances()),
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
