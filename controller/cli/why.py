"""Why an instance or a machine is thought fast enough or not: the evidence, the costs, and what would change it."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from controller.cli import measured, records
from controller.cli.cases import Story
from controller.cli.output import aligned
from controller.cli.words import (
    MEANS,
    ONCE_GONE,
    WAYS,
    count,
    hours,
    iso,
    money,
    number,
    percent,
    rate,
    share,
    since,
    span,
)
from controller.judge.assumptions import DEFAULTS
from controller.model.instance import Run
from controller.model.money import usd
from controller.model.reasons import Reason

if TYPE_CHECKING:
    from controller.loop.outlook import Band
    from controller.model.fleet import Judgement

WIDTH = 80
LEAST_NOTES = 12  # columns
LAST = 12  # runs shown


def tell(story: Story, now: float) -> None:
    """Print a story."""
    _runs(story, now)
    if story.case is None:
        print("\nThe ledger holds no floor to judge them by: the fleet is gone.")
        return
    if story.verdict.p_good is not None:
        _facts("Belief", _belief(story))
    _facts("Machines of its kind", _prior(story))
    _costs(story)
    decision = story.verdict.decision
    means = MEANS if story.instance.billable else ONCE_GONE
    print()
    print(textwrap.fill(f"Decided: {decision}: {means[decision]}.", WIDTH, subsequent_indent="  "))
    if story.elsewhere:
        print(f"Not measured yet as it works now, {_beside(story.neighbours)}: that comes next.")
    _outlook(story, now)


def record(story: Story, now: float) -> dict[str, object]:
    """A story for programs. Rates in the fleet's unit, money in USD, times as ISO 8601."""
    verdict, instance = story.verdict, story.instance
    weighed, alive = {run.id for run in story.weighed}, instance.billable
    costs = {way: {"hours": h, "usd": round(h * usd(instance.price), 4)} for way, h in _spent(story).items()}
    return {
        "name": records.name_of(instance),
        "nonce": instance.nonce,
        "fleet": instance.fleet,
        "machineId": instance.machine_id,
        "shape": instance.shape,
        "phase": str(instance.phase),
        "reason": str(instance.reason),
        "pricePerHour": usd(instance.price),
        "neighbours": story.neighbours,
        "unit": _unit(story),
        "floor": story.case.shape.min_rate if story.case is not None else None,
        "runs": [{**measured.run_record(run), "weighed": run.id in weighed} for run in story.runs],
        "belief": _belief_record(story),
        "machinesOfItsKind": _prior_record(story),
        "costs": costs or None,
        "decision": str(verdict.decision),
        "verdict": verdict.line if alive else verdict.line.partition("; next:")[0],
        "nextRunAt": iso(verdict.next_run_at) if alive else None,
        "ifNextRunShows": [
            {"from": band.low, "below": band.high, "decision": str(band.decision)} for band in story.outlook(now)
        ],
    }


def _belief_record(story: Story) -> dict[str, object] | None:
    verdict = story.verdict
    if verdict.p_good is None:
        return None
    return {
        "pGood": verdict.p_good,
        "rate": verdict.rate,
        "low": verdict.low,
        "high": verdict.high,
        "runs": verdict.runs,
        "independent": verdict.independent,
        "disturbed": verdict.disturbed,
    }


def _prior_record(story: Story) -> dict[str, object] | None:
    case, prior = story.case, story.prior
    if case is None or prior is None:
        return None
    return {"rate": case.rate_of(prior), "spread": prior.sd, "machines": prior.machines}


def _unit(story: Story) -> str:
    return story.case.fleet.spec.benchmark.unit if story.case is not None else story.runs[-1].unit if story.runs else ""


def _spent(story: Story) -> dict[str, float]:
    costs = story.verdict.costs
    return {} if costs is None else {"keep": costs.keep, "measure": costs.measure, "replace": costs.replace}


def _runs(story: Story, now: float) -> None:
    if not story.runs:
        print("\nNothing was measured on it yet.")
        return
    weighed = {run.id for run in story.weighed}
    older = len(story.runs) - LAST
    rows = [
        {
            "AGE": since(run.ended_at, now),
            "KIND": str(run.kind).lower(),
            "RATE": rate(run.rate),
            "+-": percent(run.error),
            "WIDTH": number(run.concurrency),
            "COUNT": number(run.count),
            "BESIDE": str(run.neighbours),
            "SHARE": share(run.gpu_fraction),
            "NOTES": "; ".join(_notes(run, story, weighed=run.id in weighed)),
        }
        for run in story.runs[-LAST:]
    ]
    more = f", the last {LAST} of {len(story.runs)}" if older > 0 else ""
    print(f"\nRuns, in {_unit(story)}{more}:")
    _folded(rows)


def _notes(run: Run, story: Story, *, weighed: bool) -> list[str]:
    """What a run's numbers do not tell."""
    notes = {
        str(run.reason): run.reason is not Reason.MEASURED,
        f"throttled: {run.throttled.replace(',', ', ')}": bool(run.throttled),
        f"limited to {measured.power(run)}": measured.power_lowered(run),
        f"CPU held back {percent(run.cpu_throttled)}": bool(run.cpu_throttled),
        "disturbed": run.disturbed,
        "of another rental": run.nonce != story.instance.nonce,
        "not weighed": not weighed and run.rate is not None,
    }
    return [note for note, holds in notes.items() if holds]


def _folded(rows: Sequence[Mapping[str, str]], *, indent: int = 2) -> None:
    """A table whose last column goes on below where it is too long for the terminal."""
    titles = list(rows[0])
    widths = [max(len(title), *(len(row[title]) for row in rows)) + 2 for title in titles[:-1]]
    room = max(LEAST_NOTES, WIDTH - indent - sum(widths))
    lines: list[list[str]] = []
    for row in rows:
        *cells, last = row.values()
        first, *rest = textwrap.wrap(last, room, break_on_hyphens=False) or [""]
        lines += [[*cells, first], *([""] * len(cells) + [part] for part in rest)]
    print(aligned(titles, lines, indent=indent))


def _belief(story: Story) -> dict[str, str]:
    verdict, case = story.verdict, story.case
    floor = case.shape.min_rate if case is not None else 0.0
    worth = f", worth {verdict.independent:.1f} independent ones" if verdict.runs > 1 else ""
    return {
        f"P(rate >= {floor:g})": share(verdict.p_good),
        "Rate": f"{rate(verdict.rate)}, with 90 % between {rate(verdict.low)} and {rate(verdict.high)}",
        "Evidence": f"{count(verdict.runs, 'run')}{worth}",
        "Last run": f"disturbed with a probability of {percent(verdict.disturbed)}",
    }


def _prior(story: Story) -> dict[str, str]:
    prior, case = story.prior, story.case
    if prior is None or case is None:
        return {}
    learned = f"learned from {count(prior.machines, 'machine')}" if prior.machines else "taken for granted"
    facts = {"Typical": f"{rate(case.rate_of(prior))}, within {percent(prior.sd)}; {learned}"}
    if case.out_of_reach:
        facts["But"] = case.out_of_reach
    return facts


def _facts(title: str, facts: Mapping[str, str]) -> None:
    print(f"\n{title}:")
    wide = max(map(len, facts))
    for name, text in facts.items():
        start = f"  {name:<{wide}}  "
        print(textwrap.fill(text, WIDTH, initial_indent=start, subsequent_indent=" " * len(start)))


def _costs(story: Story) -> None:
    spent = _spent(story)
    if story.case is None or story.verdict.p_good is None:
        return
    judgement = story.case.fleet.spec.judgement
    if not spent:
        print(f"\nDecided by thresholds of P: {_thresholds(judgement)}.")
        return
    price, least = usd(story.instance.price), min(spent.values())
    rows = [
        {
            "TO": WAYS[way],
            "HOURS OF RENT": hours(cost),
            "MONEY": f"${money(cost * price)}",
            "": "least" if cost == least else "",
        }
        for way, cost in spent.items()
    ]
    expected = "Expected to cost" if story.instance.billable else "Would be expected to cost, were it rented"
    print(f"\n{expected}, at ${price:.3f}/h and {judgement.planned_hours:g} h planned:")
    print(aligned(list(rows[0]), [list(row.values()) for row in rows], indent=2))


def _thresholds(judgement: "Judgement") -> str:
    accept = DEFAULTS.accept_above if judgement.accept_above is None else judgement.accept_above
    below = f"challenged below {judgement.replace_below:g}, " if judgement.replace_below is not None else ""
    return f"{below}accepted from {accept:g} on"


def _outlook(story: Story, now: float) -> None:
    bands = story.outlook(now)
    if not bands:
        return
    due = story.verdict.next_run_at
    when = f"due in {span(due - now)}" if due is not None and due > now else "if it were made now"
    rows = [{"IF IT SHOWS": _between(band), "THEN": f"{band.decision}: {MEANS[band.decision]}"} for band in bands]
    print(f"\nThe next run, {when}, would decide:")
    print(aligned(list(rows[0]), [list(row.values()) for row in rows], indent=2))


def _beside(neighbours: int) -> str:
    return f"beside {count(neighbours, 'other')} of ours" if neighbours else "alone there"


def _between(band: "Band") -> str:
    if band.low is None:
        return "anything" if band.high is None else f"under {rate(band.high)}"
    return f"{rate(band.low)} or more" if band.high is None else f"{rate(band.low)} to {rate(band.high)}"
