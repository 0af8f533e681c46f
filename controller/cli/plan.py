"""`vastfleet plan`: what a pass would do, asked of the loop on a copy of the ledger."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import show_record, table
from controller.cli.words import NOTHING, count, money, price, rate

if TYPE_CHECKING:
    from controller.loop.passes import Intended
    from controller.model.actions import Action, Rent
    from controller.model.fleet import Fleet
    from controller.model.status import Market
    from controller.runtime.settings import Settings

PENDING = 2
FAILED = 1


@click.command("plan")
@options.paths
@options.output
@options.ledger
@options.owner
@options.verbose
def command(paths: tuple[str, ...], form: str, ledger: Path | None, owner: str | None) -> int:
    """Show what would be done for the fleets in PATH, and do none of it.

    Looks at the instances and the market on vast.ai; writes nothing, and may
    be used while a controller is running. Offers come and go: what is rented
    later may differ.

    Exit codes: 0 nothing to do, 2 changes are pending or wanted and not to be
    had now, 1 something is wrong.
    """
    fleets = [loaded.fleet for loaded in options.manifests(paths)]
    settings = options.settings(ledger, owner)
    intended = asyncio.run(_ask(settings, fleets))
    if form in {"json", "yaml"}:
        show_record({"items": [record(one) for one in intended]}, form)
    else:
        for number, one in enumerate(intended):
            print("\n" if number else "", end="")
            _show(one)
    if any(one.faults for one in intended):
        return FAILED
    return PENDING if any(one.actions or one.plan.missing > 0 for one in intended) else 0


async def _ask(settings: "Settings", fleets: "list[Fleet]") -> "tuple[Intended, ...]":
    from controller.runtime.embedded import asking

    async with asking(settings) as loop:
        return await loop.intend(fleets)


def record(one: "Intended") -> dict[str, object]:
    """A fleet's plan for programs. Money in USD an hour, rates in the benchmark's unit."""
    from controller.model.money import usd

    facts, plan, market = one.facts, one.plan, _market(one)
    return {
        "fleet": facts.name,
        "held": len(facts.working),
        "missing": plan.missing,
        "budgetPerHour": usd(_fleet(one).spec.budget),
        "reservedPerHour": usd(facts.reserved),
        "rentals": [_rental(rent) for rent in _rents(one)],
        "changes": [_change(action) for action in _others(one)],
        "blocked": None if plan.blocked is None else {"reason": str(plan.blocked), "why": plan.blocked_why},
        "market": None
        if market is None
        else {"matching": market.matching, "rejected": {str(k): n for k, n in market.rejected.items()}},
        "after": _after(one),
        "faults": [{"reason": str(fault.reason), "text": str(fault)} for fault in one.faults],
    }


def _rental(rent: "Rent") -> dict[str, object]:
    from controller.model.money import usd

    offer = rent.offer
    return {
        "offer": offer.id,
        "shape": rent.shape,
        "region": offer.country,
        "machineId": offer.machine_id,
        "rate": rent.rate,
        "pricePerHour": usd(rent.price),
        "reason": str(rent.reason),
        "why": rent.why,
    }


def _change(action: "Action") -> dict[str, object]:
    from controller.cli.records import name_of
    from controller.model.actions import Begin, Rent

    assert not isinstance(action, Rent)  # noqa: S101 - the caller has sifted
    kind = action.job if isinstance(action, Begin) else type(action).__name__.lower()
    return {
        "action": "destroy" if kind == "release" else kind,
        "instance": name_of(action.instance),
        "reason": str(action.reason),
        "why": action.why,
    }


def _after(one: "Intended") -> dict[str, float | int | None]:
    """What the fleet would be with all of it done: what is given up gone, what is rented fast enough."""
    from controller.model.actions import Destroy, Release
    from controller.model.money import usd
    from controller.model.status import an_hour

    facts = one.facts
    going = {action.instance.nonce for action in one.actions if isinstance(action, Release | Destroy)}
    staying = [i for i in (*facts.working, *facts.pending) if i.nonce not in going]
    rents = _rents(one)
    spend = usd(sum(i.price for i in staying) + sum(rent.price for rent in rents))
    total = sum(facts.rate_of(i) for i in staying) + sum(rent.rate for rent in rents)
    return {
        "instances": len(staying) + len(rents),
        "rate": total,
        "spendPerHour": spend,
        "costPerUnit": spend / an_hour(total, _fleet(one).spec.benchmark.unit) if total else None,
        "firstHour": usd(facts.reserved + sum(rent.price for rent in rents)),
        "perDay": 24 * spend,
    }


def _market(one: "Intended") -> "Market | None":
    """What the market has; None where it was not searched, since nothing of any shape may be rented."""
    asked = any(one.plan.wanted.asks_for(shape.key) for shape in _fleet(one).spec.shapes)
    return one.market if asked else None


def _fleet(one: "Intended") -> "Fleet":
    assert one.facts.fleet is not None  # noqa: S101 - a plan is asked for manifests
    return one.facts.fleet


def _rents(one: "Intended") -> "list[Rent]":
    from controller.model.actions import Rent

    return [action for action in one.actions if isinstance(action, Rent)]


def _others(one: "Intended") -> "list[Action]":
    from controller.model.actions import Rent

    return [action for action in one.actions if not isinstance(action, Rent)]


def _show(one: "Intended") -> None:
    from controller.model.money import usd

    facts, fleet = one.facts, _fleet(one)
    unit, target = fleet.spec.benchmark.unit, fleet.spec.target
    wanted = f"{target.rate:g} {unit}" if target.rate is not None else count(target.instances or 0, "instance")
    if facts.listing is None:
        print(f"{facts.name}: {wanted} wanted; what exists is not known")
    else:
        print(
            f"{facts.name}: {wanted} wanted, {len(facts.working)} held, {len(facts.pending)} on their way; "
            f"${price(usd(facts.reserved))}/h of ${price(usd(fleet.spec.budget))}/h taken"
        )
    for fault in one.faults:
        print(f"  not known: {fault} ({fault.reason})")
    _show_rentals(one, unit)
    if others := _others(one):
        changes = [_change(action) for action in others]
        columns = {"DO": "action", "INSTANCE": "instance", "REASON": "reason", "WHY": "why"}
        print("\nWould do:")
        table([{title: str(change[key]) for title, key in columns.items()} for change in changes], indent=2)
    _show_market(one)
    _show_after(one, unit)


def _show_rentals(one: "Intended", unit: str) -> None:
    from controller.model.money import usd

    rows, total = [], usd(one.facts.reserved)
    for rent in _rents(one):
        total += usd(rent.price)
        rows.append({
            "OFFER": str(rent.offer.id),
            "GPU": rent.shape.removesuffix(" x1"),
            "REGION": rent.offer.country or NOTHING,
            "MACHINE": str(rent.offer.machine_id),
            "RATE": rate(rent.rate),
            "$/H": price(usd(rent.price)),
            "TOTAL $/H": price(total),
        })  # fmt: skip
    if rows:
        print(f"\nWould rent {count(len(rows), 'instance')} (rates expected, in {unit}; prices with the disk):")
        table(rows, indent=2)


def _show_market(one: "Intended") -> None:
    from controller.model.reasons import EXPLANATIONS

    plan, market = one.plan, _market(one)
    if plan.blocked is not None:
        print(f"\nBlocked: {plan.blocked}: {plan.blocked_why}")
    if market is None:
        if one.market is not None:
            print("\nMarket: not searched, for no shape may have more instances now")
        return
    offers = market.matching + sum(market.rejected.values())
    print(f"\nMarket: {market.matching} of {offers} offers match" if offers else "\nMarket: no offer of such a GPU")
    funnel = sorted(market.rejected.items(), key=lambda item: (-item[1], item[0]))
    if funnel:
        rows = [
            {"OFFERS": str(n), "FAIL AT": str(reason), "WHICH MEANS": EXPLANATIONS[reason].split(". ")[0]}
            for reason, n in funnel
        ]
        table(rows, indent=2)
    short = plan.missing - (len(_rents(one)) if _fleet(one).spec.target.instances is not None else 0)
    if plan.blocked is None and _fleet(one).spec.target.instances is not None and short > 0:
        left = (
            "every matching offer is taken, or over what is left of the budget" if market.matching else "none matches"
        )
        print(f"\n{short:g} of {plan.missing:g} cannot be had: {left}")


def _show_after(one: "Intended", unit: str) -> None:
    after = _after(one)
    if not one.actions:
        if not one.faults:
            print("\nNothing can be done about it now" if one.plan.missing > 0 else "\nNothing to do")
        return
    work = unit.split("/", maxsplit=1)[0].removesuffix("s")
    print(
        f"\nAfterwards: {count(int(after['instances'] or 0), 'instance')}, {rate(after['rate'])} {unit} expected, "
        f"${price(after['spendPerHour'])}/h"
        + (f", ${money(after['costPerUnit'], 5)} a {work}" if after["costPerUnit"] is not None else "")
        + f"\n  first hour ${money(after['firstHour'])}, a day ${money(after['perDay'])}"
    )
