"""`vastfleet describe`: the whole story of one thing."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import say, show_record, table
from controller.cli.words import (
    MEANS,
    NOTHING,
    WAYS,
    count,
    hours,
    iso,
    money,
    percent,
    price,
    rate,
    share,
    since,
    span,
)

if TYPE_CHECKING:
    from controller.cli.books import Books
    from controller.model.instance import Event, Instance
    from controller.model.status import FleetStatus, InstanceStatus, ShapeStatus

EVENTS = 20
WIDTH = 12


@click.command("describe")
@click.argument("kind", type=click.Choice(["fleet", "instance"]))
@click.argument("name")
@options.output
@options.ledger
@options.verbose
def command(kind: str, name: str, *, form: str, ledger: Path | None) -> None:
    """Tell the whole story of one fleet, or of one instance by its id.

    Conditions, what it waits for and until when, what was measured and what
    that says, what it cost, and what happened to it.
    """
    from controller.cli.books import books

    with books(ledger) as known:
        if kind == "fleet":
            _fleet(known, known.fleet(name), form)
        else:
            _instance(known, known.instances(name)[-1], form)


def _fleet(known: "Books", status: "FleetStatus", form: str) -> None:
    from controller.cli import records

    now, mine = known.now, known.ledger.instances(status.fleet, gone=True)
    events = known.ledger.events(status.fleet, newest=EVENTS)
    if form in {"json", "yaml"}:
        instances = [records.instance_of(known, i).record for i in mine]
        told = [records.event_record(said) for said in events]
        show_record({**records.fleet_record(status), "instances": instances, "events": told}, form)
        return
    _facts(_overview(known, status, mine))
    conditions = [
        (c.type, c.status, since(c.last_transition_time, now), str(c.reason), c.message) for c in status.conditions
    ]
    _shapes(status)
    _section("Conditions", _rows("TYPE STATUS FOR REASON MESSAGE", conditions))
    funnel = sorted(status.market.rejected.items(), key=lambda item: -item[1])
    _section("Turned away", _rows("OFFERS REASON", [(str(n), str(reason)) for reason, n in funnel]))
    done = [(p.action, p.about, str(p.reason), p.why) for p in status.plan]
    _section("Last done", _rows("DO ABOUT REASON WHY", done))
    _section("Instances", [records.instance_of(known, i).cells for i in mine if i.billable])
    gone = [
        (records.name_of(i), str(i.machine_id), money(records.cost(i, now)), i.detail or str(i.reason))
        for i in mine
        if not i.billable
    ]
    _section("Gone", _rows("NAME MACHINE COST WHY", gone))
    _events(events, now)


def _overview(known: "Books", status: "FleetStatus", mine: "Sequence[Instance]") -> dict[str, str]:
    from controller.cli import records

    now, unit, market = known.now, status.unit, status.market
    by_rate = status.target_kind == "rate"
    spent = money(sum(records.cost(i, now) for i in mine))
    return {
        "Fleet": status.fleet,
        "Target": f"{status.target:g} {unit}" if by_rate else count(int(status.target), "instance"),
        "Held": f"{status.held}, {rate(status.rate)} {unit}; {status.pending} on their way, {status.leaving} leaving",
        "Billed": f"${price(status.spend_per_hour)}/h",
        "Taken": f"${price(status.reserved_per_hour)}/h of ${price(status.budget_per_hour)}/h",
        "Cost so far": f"${spent} in {count(len(mine), 'rental')}",
        "Market": f"{market.matching} offers match, looked at {since(market.at, now)} ago" if market.at else "",
        "Last pass": f"{since(status.last_pass, now)} ago",
        "Teardown": "under way" if status.fleet in known.deleting else "",
    }


def _shapes(status: "FleetStatus") -> None:
    """What instances are held to, what machines are like, and what it takes to find one that will do."""
    rows = [
        {
            "SHAPE": shape.key,
            "FLOOR": f"{shape.min_rate:g}",
            "TYPICAL": rate(shape.typical_rate),
            "SPREAD": percent(shape.spread),
            "MEASURED": count(shape.machines, "machine"),
        }
        for shape in status.shapes
    ]
    _section(f"Shapes, in {status.unit}", rows)
    for shape in status.shapes:
        if shape.search_hours is not None:
            say(f"  {one_more(shape)}", hang=4)
        if shape.out_of_reach:
            say(f"  {shape.key} is out of reach: {shape.out_of_reach}.", hang=4)


def one_more(shape: "ShapeStatus") -> str:
    """What finding one more instance costs, as a sentence."""
    rent = f"{hours(shape.search_hours)} h of rent"
    cost = rent if shape.search_cost is None else f"${money(shape.search_cost)} ({rent})"
    return f"Finding one more {shape.key} that is fast enough costs about {cost}."


def _instance(known: "Books", instance: "Instance", form: str) -> None:
    from controller.cli import measured, records

    now, thought = known.now, known.thought(instance)
    runs = [run for run in known.ledger.runs(instance.machine_id) if run.nonce == instance.nonce]
    events = [said for said in known.ledger.events(instance.fleet, newest=20_000) if _concerns(said, instance)]
    if form in {"json", "yaml"}:
        record = records.instance_of(known, instance).record
        told = {"runs": [measured.run_record(r) for r in runs], "events": [*map(records.event_record, events)]}
        show_record({**record, "history": told}, form)
        return
    _facts({**_rental(known, instance), **_judged(instance, thought, now, unit=runs[-1].unit if runs else "")})
    made = [
        (since(r.ended_at, now), str(r.kind), rate(r.rate), str(r.reason), str(r.concurrency or NOTHING),
         span(r.ended_at - r.started_at), r.detail)
        for r in runs
    ]  # fmt: skip
    _section("Runs", _rows("AGE KIND RATE REASON WIDTH TOOK DETAIL", made))
    _events(events, now)


def _rental(known: "Books", instance: "Instance") -> dict[str, str]:
    """What was rented, what it costs, and how far it is."""
    from controller.cli import records

    now, beside = known.now, known.company.get(instance.nonce, 0)
    share_of = f", {share(instance.gpu_fraction)} of its GPUs" if instance.gpu_fraction is not None else ""
    company = f", beside {beside} more of ours" if beside else ""
    return {
        "Instance": records.name_of(instance),
        "Fleet": instance.fleet,
        "Label": instance.label,
        "Rented": f"{instance.shape} on machine {instance.machine_id}{share_of}{company}",
        "Where": instance.country or "country not known",
        "Phase": f"{instance.phase} for {since(instance.phase_since, now)}",
        "Reason": f"{instance.reason}{': ' + instance.detail if instance.detail else ''}",
        "Next": waits(instance, known, now),
        "Price": f"${price(instance.price / 1e6)}/h, with {instance.disk_gib:g} GiB of disk",
        "Cost so far": f"${money(records.cost(instance, now))}",
        "Age": span((instance.ended_at or now) - instance.created_at),
        "Contract": f"until {iso(instance.ends_at)}" if instance.ends_at is not None else "",
    }


def _judged(instance: "Instance", thought: "InstanceStatus", now: float, *, unit: str) -> dict[str, str]:
    """What is thought of it, and why."""
    from controller.cli import records

    costs = [
        f"{WAYS[way]} {hours(spent)} h (${money(spent * instance.price / 1e6)})"
        for way, spent in records.costs_of(thought).items()
    ]
    read = f"read {since(instance.read_at, now)} ago" if instance.read_at is not None else ""
    return {
        "Rate": f"{rate(thought.rate)} {unit}, with 90 % between {rate(thought.low)} and {rate(thought.high)}"
        if thought.rate is not None
        else "",
        "P(good)": f"{share(thought.p_good)}, by {count(thought.runs, 'run')} worth {thought.independent:.1f} "
        "independent ones"
        if thought.p_good is not None
        else "",
        "Disturbed": f"the last run with {percent(thought.disturbed)}" if thought.disturbed is not None else "",
        "Costs": "; ".join(costs) + " of rent" if costs else "",
        "Decision": f"{thought.decision}: {MEANS[thought.decision]}" if thought.runs else "",
        "Verdict": thought.line,
        "Production": f"{read}, and no rate: {instance.read_fault}" if instance.read_fault else read,
    }


def waits(instance: "Instance", known: "Books", now: float) -> str:
    """What an instance waits for, and until when at the latest, as a sentence."""
    from controller.cli import records
    from controller.model.instance import Phase
    from controller.plan.limits import Limits

    limits = Limits()
    until: Mapping[Phase, tuple[str, float]] = {
        Phase.UNCLEAR: ("its label is looked for", instance.phase_since + limits.unclear),
        Phase.LAUNCHING: ("vast.ai starts its container", instance.created_at + limits.launch),
    }
    if instance.phase in until:
        what, end = until[instance.phase]
        return f"{what}, until {iso(end)} at the latest ({span(end - now)} from now)"
    if instance.absent_since is not None and instance.billable:
        return "missing from the last listing; a second listing without it proves it gone"
    if instance.phase is Phase.DESTROYING:
        return f"to be absent from two complete listings; {count(instance.destroy_calls, 'destroy call')} so far"
    return records.coming(instance, known.thought(instance), now)


def _concerns(said: "Event", instance: "Instance") -> bool:
    """Events are about an instance by its id, and by its nonce before it had one."""
    return said.about in {str(instance.instance_id), instance.nonce}


def _facts(facts: Mapping[str, str]) -> None:
    for title, text in facts.items():
        if text:
            say(f"{title + ':':<{WIDTH}} {text}", hang=WIDTH + 1)


def _rows(titles: str, rows: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """Rows of cells under titles, which are words."""
    return [dict(zip(titles.split(), row, strict=True)) for row in rows]


def _section(title: str, rows: Sequence[Mapping[str, str]]) -> None:
    if rows:
        print(f"\n{title}:")
        table(rows, indent=2)


def _events(events: "Sequence[Event]", now: float) -> None:
    from controller.cli import records

    _section("Events", [{k: v for k, v in records.event(said, now).cells.items() if k != "FLEET"} for said in events])
