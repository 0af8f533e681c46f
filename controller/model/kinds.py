"""The kinds of objects in a cluster: their names, what they hold, and the columns that kubectl shows of them."""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from controller.model.fleet import API_VERSION, FleetSpec
from controller.model.fleet_view import FleetStatusView
from controller.model.instance_view import InstanceSpecView, InstanceStatusView
from controller.model.machine_view import MachineSpecView, MachineStatusView

GROUP, _, VERSION = API_VERSION.partition("/")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. `path`: JSONPath below the object; `wide`: shown with -o wide only.

    A date is shown as how long ago it was; of one to come kubectl can only say that it is none, so that is text here.
    """

    name: str
    path: str
    type: Literal["string", "number", "integer", "date"] = "string"
    wide: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of object, in the group and version of the manifest."""

    name: str
    short: str  # what to type instead of the plural
    description: str
    namespaced: bool
    spec: type[BaseModel]
    status: type[BaseModel]
    columns: tuple[Column, ...]

    @property
    def plural(self) -> str:
        """The kind's name in URLs and for kubectl."""
        return f"{self.name.lower()}s"


def _condition(kind: str, field: str) -> str:
    return f'.status.conditions[?(@.type=="{kind}")].{field}'


AGE = Column("AGE", ".metadata.creationTimestamp", "date")

FLEET = Kind(
    name="Fleet",
    short="vf",
    description="A fleet of rented GPUs: how much is wanted, of what, and for how much money.",
    namespaced=True,
    spec=FleetSpec,
    status=FleetStatusView,
    columns=(
        Column("READY", _condition("Ready", "status")),
        Column("TARGET", ".status.target", "number"),
        Column("HELD", ".status.held", "integer"),
        Column("RATE", ".status.rate", "number"),
        Column("$/H", ".status.spendPerHour", "number"),
        Column("BUDGET", ".spec.budgetPerHour", "number"),
        Column("$/UNIT", ".status.costPerUnit", "number"),
        Column("REASON", _condition("Ready", "reason")),
        AGE,
        Column("UNIT", ".status.unit", wide=True),
        Column("PENDING", ".status.pending", "integer", wide=True),
        Column("LEAVING", ".status.leaving", "integer", wide=True),
        Column("MATCHING", ".status.market.matching", "integer", wide=True),
        Column("MESSAGE", _condition("Ready", "message"), wide=True),
    ),
)

INSTANCE = Kind(
    name="Instance",
    short="vfi",
    description="One rental, written down before it is made and kept until it is proven gone.",
    namespaced=True,
    spec=InstanceSpecView,
    status=InstanceStatusView,
    columns=(
        Column("PHASE", ".status.phase"),
        Column("GPU", ".spec.gpu"),
        Column("REGION", ".spec.country"),
        Column("RATE", ".status.rate", "number"),
        Column("P(GOOD)", ".status.pGood", "number"),
        Column("RUNS", ".status.runs", "integer"),
        Column("$/H", ".status.pricePerHour", "number"),
        Column("NEXT", ".status.nextRunAt"),
        AGE,
        Column("FLEET", ".spec.fleet", wide=True),
        Column("ID", ".status.instanceId", "integer", wide=True),
        Column("MACHINE", ".spec.machineId", "integer", wide=True),
        Column("DECISION", ".status.decision", wide=True),
        Column("REASON", ".status.reason", wide=True),
    ),
)

MACHINE = Kind(
    name="Machine",
    short="vfm",
    description="One physical host: what was measured on it, and what that says.",
    namespaced=False,
    spec=MachineSpecView,
    status=MachineStatusView,
    columns=(
        Column("GPU", ".status.gpu"),
        Column("RATE", ".status.rate", "number"),
        Column("P(GOOD)", ".status.pGood", "number"),
        Column("RUNS", ".status.runCount", "integer"),
        Column("LAST", ".status.lastRunAt", "date"),
        Column("QUARANTINED", ".status.quarantinedUntil"),
        AGE,
        Column("REASON", ".status.backoff.reason", wide=True),
    ),
)

KINDS = (FLEET, INSTANCE, MACHINE)
