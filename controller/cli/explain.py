"""`vastfleet explain`: what a word means, or why something is as it is."""

import difflib
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import show_record, table

if TYPE_CHECKING:
    from controller.cli.books import Books
    from controller.model.explain import FieldHelp
    from controller.model.instance import Instance
    from controller.model.reasons import Reason
    from controller.model.status import FleetStatus

EVENTS = 5
TOP = ("apiVersion", "kind", "metadata", "spec")


@click.command("explain")
@click.argument("term", required=False)
@options.output
@options.ledger
@options.verbose
def command(*, term: str | None, form: str, ledger: Path | None) -> None:
    """Say what TERM means, or why it is as it is.

    TERM is a reason such as BelowMinRate, a field of the manifest such as
    spec.require.ramGiB, or the name of a fleet or instance in the ledger.
    Without it, every reason and what to do about it.
    """
    from controller.model.reasons import EXPLANATIONS, Reason

    reasons = {str(reason).lower(): reason for reason in Reason}
    if term is None:
        _print([{"reason": str(r), "meaning": text} for r, text in EXPLANATIONS.items()], form)
    elif term.lower() in reasons:
        reason = reasons[term.lower()]
        _print([{"reason": str(reason), "meaning": EXPLANATIONS[reason]}], form)
    elif term.split(".")[0].split("[")[0] in TOP:
        _field(term, form)
    else:
        _thing(term, form, ledger)


def _print(rows: list[dict[str, str]], form: str) -> None:
    if form in {"json", "yaml"}:
        show_record({"items": rows}, form)
        return
    for row in rows:
        _say(f"{row['reason']}: {row['meaning']}" if "reason" in row else row["text"])


def _say(text: str) -> None:
    print(textwrap.fill(text, width=80, subsequent_indent="  ", break_on_hyphens=False))


def _field(path: str, form: str) -> None:
    from controller.model.explain import explain_field

    try:
        help_ = explain_field(path)
        inner = [explain_field(f"{help_.path}.{name}") for name in help_.fields]
    except LookupError as error:
        raise click.ClickException(str(error.args[0])) from error
    if form in {"json", "yaml"}:
        show_record({"items": [_record(help_), *map(_record, inner)]}, form)
        return
    print(f"{help_.path} <{help_.holds}>{' required' if help_.required else ''}\n")
    _say(help_.description)
    if inner:
        print("\nFields:")
        table(
            [
                {"NAME": each.path.rsplit(".", 1)[-1], "HOLDS": each.holds, "MEANS": each.description.split(". ")[0]}
                for each in inner
            ],
            indent=2,
        )


def _record(help_: "FieldHelp") -> dict[str, object]:
    return {
        "path": help_.path,
        "holds": help_.holds,
        "required": help_.required,
        "description": help_.description,
        "fields": list(help_.fields),
    }


def _thing(term: str, form: str, ledger: Path | None) -> None:
    from controller.cli.books import books
    from controller.model.faults import Misconfigured

    try:
        with books(ledger) as known:
            instances = [i for i in known.ledger.instances(gone=True) if term in {str(i.instance_id), i.nonce}]
            if term in known.fleets:
                sentences = _why_fleet(known, known.fleets[term])
            elif instances:
                sentences = _why_instance(known, instances[-1])
            else:
                raise click.ClickException(_meant(term, [*known.fleets, *_names(known)]))
    except Misconfigured as error:
        raise click.ClickException(_meant(term, [])) from error
    _print([{"text": sentence} for sentence in sentences], form)


def _names(known: "Books") -> list[str]:
    return [str(i.instance_id or i.nonce) for i in known.ledger.instances(gone=True)]


def _meant(term: str, names: list[str]) -> str:
    from controller.model.explain import explain_field
    from controller.model.reasons import Reason

    fields = [f"spec.{name}" for name in explain_field("spec").fields]
    close = difflib.get_close_matches(term, [*map(str, Reason), *fields, *names], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "see vastfleet explain, or vastfleet explain spec"
    return f"{term!r} is no reason, field, fleet or instance; {hint}"


def _why_fleet(known: "Books", status: "FleetStatus") -> list[str]:
    sentences = []
    for kind in ("Ready", "BudgetAvailable", "MarketAvailable", "CreditSufficient", "BenchmarksHealthy"):
        said = status.condition(kind)
        if said is None or (kind != "Ready" and said.status == "True"):
            continue
        state = {"True": "is", "False": "is not", "Unknown": "may or may not be"}[said.status]
        word = "ready" if kind == "Ready" else kind
        sentences.append(f"{status.fleet} {state} {word}: {said.message}. {_meaning(said.reason)}")
    return [*sentences, *_lately(known, status.fleet, status.fleet)]


def _why_instance(known: "Books", instance: "Instance") -> list[str]:
    from controller.cli.describe import waits
    from controller.cli.records import name_of
    from controller.cli.words import since

    name, thought = name_of(instance), known.thought(instance)
    detail = f" ({instance.detail})" if instance.detail else ""
    phase = f"{name} has been {instance.phase} for {since(instance.phase_since, known.now)}"
    sentences = [f"{phase}, for the reason {instance.reason}{detail}. {_meaning(instance.reason)}"]
    if thought.line:
        sentences.append(f"What was measured says: {thought.line}.")
    if instance.billable:
        sentences.append(f"What comes next: {waits(instance, known, known.now)}.")
    return [*sentences, *_lately(known, instance.fleet, name)]


def _meaning(reason: "Reason") -> str:
    from controller.model.reasons import EXPLANATIONS

    return f"{reason} means: {EXPLANATIONS[reason]}"


def _lately(known: "Books", fleet: str, about: str) -> list[str]:
    from controller.cli.words import since

    events = [said for said in known.ledger.events(fleet, newest=20_000) if said.about == about][-EVENTS:]
    return [f"{since(said.at, known.now)} ago, {said.reason}: {said.message}" for said in events]
