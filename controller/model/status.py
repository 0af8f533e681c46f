"""What is said of a fleet: conditions, counts, plan. Made by `report/`, kept by the ledger, printed by `cli/`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict
from pydantic.alias_generators import to_camel

from controller.model.instance import Decision
from controller.model.reasons import Reason

AN_HOUR = {"s": 3600.0, "min": 60.0, "h": 1.0}


def an_hour(rate: float, unit: str) -> float:
    """A rate in work an hour, from its unit, such as `proofs/min`."""
    return rate * AN_HOUR.get(unit.rpartition("/")[2], 1.0)


class _Said(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, populate_by_name=True, extra="ignore")


class Condition(_Said):
    """One condition, with Kubernetes' meaning."""

    type: str
    status: Literal["True", "False", "Unknown"]
    reason: Reason
    message: str = ""
    last_transition_time: float  # unix seconds; when `status` last changed


class Market(_Said):
    """What the last search found for a fleet."""

    at: float | None = None  # unix seconds
    matching: int = 0
    rejected: dict[Reason, int] = {}


class Planned(_Said):
    """One line of the plan."""

    action: str
    about: str
    reason: Reason
    why: str


class ShapeStatus(_Said):
    """What instances of one shape are judged by. Rates in the benchmark's unit, money in dollars."""

    key: str
    min_rate: float
    typical_rate: float | None = None  # of a machine never measured; None: nothing is learned yet
    spread: float | None = None  # between machines, relative standard deviation
    machines: int = 0  # measured ones behind these two
    search_hours: float | None = None  # of rent, to find one that is fast enough
    search_cost: float | None = None
    run_hours: float | None = None
    provision_hours: float | None = None
    planned_hours: float = 48.0
    replace_below: float | None = None
    accept_above: float | None = None
    out_of_reach: str = ""  # why no more machines are tried


class InstanceStatus(_Said):
    """What is thought of one instance, and being done with it. Rates in the benchmark's unit, times in unix seconds."""

    nonce: str
    decision: Decision = Decision.UNKNOWN
    p_good: float | None = None
    rate: float | None = None
    low: float | None = None
    high: float | None = None
    runs: int = 0
    independent: float = 0.0
    disturbed: float | None = None
    keep_hours: float | None = None  # of rent: what keeping, measuring again and replacing it are expected to cost
    measure_hours: float | None = None
    replace_hours: float | None = None
    next_run_at: float | None = None
    line: str = ""
    job: str = ""  # under way at the end of the pass: prepare, measure, start, quiesce
    job_since: float | None = None


class FleetStatus(_Said):
    """A fleet after a pass. Money in dollars an hour, rates in the benchmark's unit, times in unix seconds."""

    fleet: str
    unit: str = ""
    target: float = 0
    target_kind: Literal["instances", "rate"] = "instances"
    held: int = 0
    measuring: int = 0
    pending: int = 0
    leaving: int = 0
    rate: float = 0.0
    spend_per_hour: float = 0.0
    reserved_per_hour: float = 0.0
    budget_per_hour: float = 0.0
    cost_per_unit: float | None = None
    credit_runway_hours: float | None = None
    conditions: tuple[Condition, ...] = ()
    market: Market = Market()
    plan: tuple[Planned, ...] = ()
    workload: str = ""  # fingerprint of what runs on its instances
    recheck_hours: float = 24.0
    shapes: tuple[ShapeStatus, ...] = ()
    instances: tuple[InstanceStatus, ...] = ()
    told: str = ""  # the status and reason of Ready that the last event spoke of
    created_at: float | None = None
    last_pass: float | None = None

    def condition(self, kind: str) -> Condition | None:
        """The condition of that type."""
        return next((c for c in self.conditions if c.type == kind), None)

    @property
    def ready(self) -> bool:
        """Whether reality matches the manifest."""
        ready = self.condition("Ready")
        return ready is not None and ready.status == "True"
