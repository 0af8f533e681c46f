"""A Fleet's status in a cluster. Its spec is the manifest's own, in `fleet.py`."""

from typing import Literal

from pydantic import Field

from controller.model.views import Conditions, Generation, Moment, Tally, View, Word

_MOST = 1000  # entries of a list


class MarketView(View):
    """What the last search of the market found."""

    at: Moment | None = Field(None, description="When it was searched.")
    matching: Tally | None = Field(None, description="Offers that meet every condition.")
    rejected: dict[str, Tally] = Field(
        {}, description="Offers turned away, by the reason of the first condition that they fail."
    )


class PlannedView(View):
    """One thing that is to be done next."""

    action: Word = Field(description="What is done: Rent, Prepare, Measure, Start, Quiesce, Destroy, ...")
    about: str = Field(description="The offer or the instance that it is done to.")
    reason: Word = Field(description="Why, in one word.")
    why: str | None = Field(None, description="Why, for people.")


class ShapeView(View):
    """What instances of one shape are judged by."""

    key: str = Field(description="The shape: GPU model and count, such as RTX 4090 x1.")
    min_rate: float = Field(description="Rate that an instance must reach, in unit.")
    typical_rate: float | None = Field(None, description="Rate to be expected of a machine never measured, in unit.")
    spread: float | None = Field(None, description="How unlike the machines are: standard deviation over mean.")
    machines: Tally | None = Field(None, description="Machines measured that these two come from.")
    search_hours: float | None = Field(None, description="Hours of rent that finding a fast enough one takes.")
    search_cost: float | None = Field(None, description="The same in USD.")
    run_hours: float | None = Field(None, description="Hours that a benchmark takes.")
    provision_hours: float | None = Field(None, description="Hours from the rental to the first benchmark.")
    planned_hours: float | None = Field(None, description="How long the capacity is wanted, in hours.")
    replace_below: float | None = Field(None, description="P(rate >= minRate) below which a successor is tried.")
    accept_above: float | None = Field(None, description="P(rate >= minRate) from which an instance is accepted.")
    out_of_reach: str | None = Field(None, description="Why no more machines are tried, if so.")


class BackoffView(View):
    """Something that failed and is left alone for a while."""

    scope: Word = Field(description="The kind of thing: offer, machine, shape, fleet or account.")
    key: str = Field(description="Which one.")
    until: Moment = Field(description="When it may be tried again.")
    failures: Tally = Field(description="How often it failed in a row.")
    reason: Word = Field(description="How, in one word.")
    detail: str | None = Field(None, description="How, for people.")


class FleetStatusView(View):
    """How the fleet stands; written by the controller alone."""

    observed_generation: Generation = None
    last_handled_reconcile_at: str | None = Field(
        None, description="The annotation that last asked for a pass, and got it."
    )
    conditions: Conditions = ()
    unit: str | None = Field(None, description="Unit of every rate, as spec.benchmark.unit has it.")
    target: float | None = Field(None, description="What is to be held: instances or a rate, as targetKind says.")
    target_kind: Literal["instances", "rate"] | None = Field(None, description="What target counts.")
    held: Tally | None = Field(None, description="Instances that count: measured, fast enough and running.")
    measuring: Tally | None = Field(None, description="Of the pending ones, those being prepared or measured.")
    pending: Tally | None = Field(None, description="Instances on their way, from the rental to the admission.")
    leaving: Tally | None = Field(None, description="Instances being given up that may still bill.")
    rate: float | None = Field(None, description="Rate of the held instances together, in unit.")
    spend_per_hour: float | None = Field(None, description="USD an hour that bills now.")
    reserved_per_hour: float | None = Field(
        None, description="USD an hour that bills or may bill; the budget caps this."
    )
    budget_per_hour: float | None = Field(None, description="USD an hour: the budget that was last acted upon.")
    cost_per_unit: float | None = Field(None, description="USD for one unit of work, at this rate and spending.")
    credit_runway_hours: float | None = Field(None, description="Hours that the account's credit lasts.")
    market: MarketView | None = Field(None, description="What the last search of the market found.")
    plan: tuple[PlannedView, ...] = Field(
        (), max_length=_MOST, description="What is to be done next, each with its reason."
    )
    shapes: tuple[ShapeView, ...] = Field(
        (), max_length=_MOST, description="What instances of each shape are judged by."
    )
    workload: str | None = Field(None, description="Fingerprint of what runs on instances, and how it is measured.")
    recheck_hours: float | None = Field(
        None, description="How old a rate may get before it is measured again, in hours."
    )
    told: str | None = Field(None, description="What the last event said of Ready.")
    backoffs: tuple[BackoffView, ...] = Field(
        (), max_length=_MOST, description="What failed and is left alone for a while."
    )
