"""`vastfleet explain`: what a word means, or why something is as it is."""

import difflib
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import show_record, table

if TYPE_CHECKING:
    from controller.cli.books import Books
    from controller.cli.cases import Cases, Story
    from controller.model.explain import FieldHelp
    from controller.model.instance import Instance
    from controller.model.reasons import Reason
    from controller.model.status import FleetStatus

EVENTS = 5
KINDS = ("fleet", "instance", "machine")
TOLD = (
    "Ready",
    "BudgetAvailable",
    "MarketAvailable",
    "CreditSufficient",
    "BenchmarksHealthy",
    "RemediationAllowed",
)  # conditions that are told of, of a fleet
TOP = ("apiVersion", "kind", "metadata", "spec")


@click.command("explain")
@click.argument("terms", metavar="[KIND] [TERM]", nargs=-1)
@options.output
@options.ledger
@options.verbose
def command(*, terms: tuple[str, ...], form: str, ledger: Path | None) -> None:
    """Say what TERM means, or why it is as it is.

    TERM is a reason such as BelowMinRate, a decision such as Challenged, a
    phase such as Admitted, a field of the manifest such as
    spec.require.ramGiB, or the name of a fleet, an instance or a machine in
    the ledger. Without it, all reasons, decisions and phases.

    Of an instance or a machine: what was measured, what that says, what
    keeping it, measuring it again and replacing it are expected to cost, what
    is decided, and what would change that. KIND is fleet, instance or machine,
    for a name that fits several.
    """
    words = {str(row.get("reason") or row["word"]).lower(): row for row in _words()}
    kind, term = _asked(terms)
    if kind is not None:
        _thing(str(term), form, ledger, kind)
    elif term is None:
        _print([*words.values()], form)
    elif term.lower() in words:
        _print([words[term.lower()]], form)
    elif term.split(".")[0].split("[")[0] in TOP:
        _field(term, form)
    else:
        _thing(term, form, ledger)


def _asked(terms: tuple[str, ...]) -> tuple[str | None, str | None]:
    """The kind that was named, if any, and the term. Raises click.UsageError."""
    match terms:
        case ():
            return None, None
        case (term,):
            return None, term
        case (kind, term) if kind in KINDS:
            return kind, term
        case _:
            raise click.UsageError(f"one term is explained, perhaps with {', '.join(KINDS)} before it")


def _words() -> list[dict[str, str]]:
    """Every reason, decision and phase, with what it means."""
    from controller.cli.words import DECISIONS, PHASES
    from controller.model.reasons import EXPLANATIONS

    reasons = [{"reason": str(reason), "meaning": text} for reason, text in EXPLANATIONS.items()]
    return [*reasons, *({"word": word, "meaning": text} for word, text in (DECISIONS | PHASES).items())]


def _print(rows: list[dict[str, str]], form: str) -> None:
    if form in {"json", "yaml"}:
        show_record({"items": rows}, form)
        return
    for row in rows:
        _say(row.get("text") or f"{row.get('reason') or row['word']}: {row['meaning']}")


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


def _thing(term: str, form: str, ledger: Path | None, kind: str | None = None) -> None:
    from controller.cli.books import books, unknown
    from controller.cli.cases import Cases
    from controller.model.faults import Misconfigured

    try:
        with books(ledger) as known:
            cases = Cases(known)
            instances = [i for i in cases.rented if term in {str(i.instance_id), i.nonce}]
            machines = {str(i.machine_id): i.machine_id for i in cases.rented}
            fits = {"fleet": term in known.fleets, "instance": bool(instances), "machine": term in machines}
            chosen = next((each for each in KINDS if fits[each] and kind in {None, each}), None)
            _note_others(term, chosen, [each for each in KINDS if fits[each] and kind is None])
            match chosen:
                case "fleet":
                    _print([{"text": text} for text in _why_fleet(known, known.fleets[term])], form)
                case "instance":
                    _rental(known, cases.story(instances[-1]), form)
                case "machine":
                    _machine(known, cases, machines[term], form)
                case _:
                    names = {"fleet": [*known.fleets], "instance": _names(known), "machine": [*machines]}
                    if kind is not None:
                        raise unknown(kind, term, names[kind])
                    raise click.ClickException(_meant(term, [name for each in names.values() for name in each]))
    except Misconfigured as error:
        raise click.ClickException(_meant(term, [])) from error


def _note_others(term: str, chosen: str | None, fits: list[str]) -> None:
    others = " or ".join(f"vastfleet explain {kind} {term}" for kind in fits if kind != chosen)
    if others:
        print(f"{term} is taken for the {chosen} of that name; else: {others}", file=sys.stderr)


def _rental(known: "Books", story: "Story", form: str) -> None:
    from controller.cli import why

    said, happened = _why_instance(known, story.instance)
    if form in {"json", "yaml"}:
        show_record({"items": [{"text": [*said, *happened], **why.record(story, known.now)}]}, form)
        return
    for sentence in said:
        _say(sentence)
    why.tell(story, known.now)
    print("\nLately:" if happened else "")
    for sentence in happened:
        _say(sentence)


def _machine(known: "Books", cases: "Cases", machine: int, form: str) -> None:
    from controller.cli import why
    from controller.cli.records import name_of
    from controller.cli.words import share, since, span
    from controller.model.instance import Decision
    from controller.model.reasons import Reason

    stories = cases.stories(machine)
    if form in {"json", "yaml"}:
        show_record({"items": [why.record(story, known.now) for story in stories]}, form)
        return
    of_ours = [name_of(story.instance) for story in stories if story.instance.billable]
    _say(f"Machine {machine}: {', '.join(of_ours) or 'nothing'} of ours is on it now.")
    for held in known.ledger.backoffs():
        if (held.scope, held.key) == ("machine", str(machine)) and held.until > known.now:
            _say(f"Nothing is rented there for {span(held.until - known.now)} more: {held.reason}, {held.detail}.")
    for found in (each for each in cases.machines() if each.id == machine and each.verdict.p_good is not None):
        worth = f"{found.verdict.decision}, with a P(good) of {share(found.verdict.p_good)}"
        _say(f"Rented anew, its best {found.shape} would be {worth}: get machines shows that. Below: each as rented.")
        if found.verdict.decision is Decision.REJECTED:
            _say(f"No {found.shape} is rented there now. {_meaning(Reason.KNOWN_SLOW)}")
    for story in stories:
        instance = story.instance
        when = f"now {instance.phase}" if instance.billable else f"gone for {since(instance.ended_at, known.now)}"
        print(f"\n{instance.shape}, last rented as {name_of(instance)}, {when}")
        why.tell(story, known.now)


def _names(known: "Books") -> list[str]:
    return [str(i.instance_id or i.nonce) for i in known.ledger.instances(gone=True)]


def _meant(term: str, names: list[str]) -> str:
    from controller.model.explain import explain_field

    fields = [f"spec.{name}" for name in explain_field("spec").fields]
    words = [row.get("reason") or row["word"] for row in _words()]
    close = difflib.get_close_matches(term, [*words, *fields, *names], n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "see vastfleet explain, or vastfleet explain spec"
    return f"{term!r} is no reason, decision, phase, field, fleet, instance or machine; {hint}"


def _why_fleet(known: "Books", status: "FleetStatus") -> list[str]:
    from controller.cli.describe import one_more

    sentences = []
    for kind in (
        "Ready",
        "BudgetAvailable",
        "MarketAvailable",
        "CreditSufficient",
        "BenchmarksHealthy",
        "RemediationAllowed",
    ):
        said = status.condition(kind)
        if said is None or (kind != "Ready" and said.status == "True"):
            continue
        state = {"True": "is", "False": "is not", "Unknown": "may or may not be"}[said.status]
        word = "ready" if kind == "Ready" else kind
        sentences.append(f"{status.fleet} {state} {word}: {said.message}. {_meaning(said.reason)}")
    found = (one_more(shape) for shape in status.shapes if shape.search_hours is not None)
    return [*sentences, *found, *_lately(known, status.fleet, status.fleet)]


def _why_instance(known: "Books", instance: "Instance") -> tuple[list[str], list[str]]:
    """What is so, and what happened to it lately."""
    from controller.cli.describe import waits
    from controller.cli.records import name_of
    from controller.cli.words import since

    name, thought = name_of(instance), known.thought(instance)
    detail = f" ({instance.detail})" if instance.detail and instance.detail != thought.line else ""
    phase = f"{name} has been {instance.phase} for {since(instance.phase_since, known.now)}"
    sentences = [f"{phase}, for the reason {instance.reason}{detail}. {_meaning(instance.reason)}"]
    if thought.line:
        sentences.append(f"What was measured says: {thought.line}.")
    if instance.billable:
        sentences.append(f"What comes next: {waits(instance, known, known.now)}.")
    status = known.fleets.get(instance.fleet)
    held = status.condition("RemediationAllowed") if status is not None else None
    if held is not None and held.status == "False":
        sentences.append(f"In its fleet: {held.message}. {_meaning(held.reason)}")
    return sentences, _lately(known, instance.fleet, name)


def _meaning(reason: "Reason") -> str:
    from controller.model.reasons import EXPLANATIONS

    return f"{reason} means: {EXPLANATIONS[reason]}"


def _lately(known: "Books", fleet: str, about: str) -> list[str]:
    from controller.cli.words import since

    events = [said for said in known.ledger.events(fleet, newest=20_000) if said.about == about][-EVENTS:]
    return [f"{since(said.at, known.now)} ago, {said.reason}: {said.message}" for said in events]
