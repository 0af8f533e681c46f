"""The Fleet: what is wanted, the same from a file, a git commit or the cluster.

The manifest's camelCase names are snake_case here. Built by `manifest.py` from YAML, read by every room.
"""

import hashlib
import json
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from controller.model import regions
from controller.model.disruption import Disruption, Window
from controller.model.machines import Machines, Pin
from controller.model.money import MicroUsd, micro
from controller.model.section import Dollars, Number, Problem, Section, Share, Switch, refuse
from controller.model.shape import Require, Shape
from controller.model.workload import Benchmark, EnvSource, InstanceSpec, Memory, Prepare, Production, WarmUp

__all__ = [
    "Benchmark",
    "Disruption",
    "EnvSource",
    "Fleet",
    "FleetSpec",
    "InstanceSpec",
    "Judgement",
    "Machines",
    "Memory",
    "Metadata",
    "Pin",
    "Prepare",
    "Production",
    "Require",
    "Shape",
    "Target",
    "WarmUp",
    "Window",
]

API_VERSION = "vastfleet.io/v1alpha1"
GIVEN_UP_BELOW = 0.40  # P(rate >= minRate): what is surely less is replaced, whatever the thresholds


class Target(Section):
    """How much to hold; exactly one of the two."""

    rate: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e15)] | None = Field(
        None, description="Rate to hold, in benchmark.unit. 0: hold nothing. Left out: instances says it."
    )
    instances: Annotated[int, Field(strict=True, ge=0, le=1000)] | None = Field(
        None, description="Admitted instances to hold, at most 1000. 0: none. Left out: rate says it."
    )

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.rate is None) == (self.instances is None):
            raise ValueError("must have exactly one of rate and instances")
        return self


class Judgement(Section):
    """How sure to be that an instance is fast enough."""

    planned_hours: Annotated[Number, Field(gt=0, le=8760)] = Field(
        48,
        description="How long the capacity is wanted, in hours, at most 8760; the longer, the more machines it pays to "
        "try. Default 48.",
    )
    replace_below: Share | None = Field(
        None, description="P(rate >= minRate) below which an instance gets a challenger. Left out: decided by cost."
    )
    accept_above: Annotated[Share, Field(ge=GIVEN_UP_BELOW)] | None = Field(
        None,
        description="P(rate >= minRate) from which an instance is accepted, at least 0.4, since below that it is given "
        "up. Left out: decided by cost.",
    )

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        low, high = self.replace_below, self.accept_above
        if low is not None and high is not None and low >= high:
            refuse([(("replaceBelow",), f"must be below acceptAbove, which is {high}")])
        return self


class FleetSpec(Section):
    """What is wanted."""

    target: Target = Field(description="How much to hold: a rate or a number of instances. Required.")
    budget_per_hour: Dollars = Field(
        description="Hard cap, USD an hour, over everything billed or possibly billed for this fleet. Required."
    )
    shapes: Annotated[tuple[Shape, ...], Field(max_length=50)] = Field(
        description="What may be rented, in any mix that fits. Required, at least one."
    )
    regions: tuple[str, ...] = Field(
        (),
        description="Where: ISO 3166-1 country codes, or the groups AF (Africa), AS (Asia), EU (Europe, not only the "
        "union), LC (Latin America and the Caribbean), NA (North America), OC (Oceania). A group wins over a country "
        "spelled alike: NA is not Namibia. Default: anywhere.",
    )
    require: Require = Field(Require(), description="Conditions on an offer.")
    instance: InstanceSpec = Field(description="What runs on each instance. Required.")
    benchmark: Benchmark = Field(description="How an instance is measured. Required.")
    judgement: Judgement = Field(Judgement(), description="How sure to be that an instance is fast enough.")
    disruption: Disruption = Field(Disruption(), description="How gently to replace what works.")
    machines: Machines = Field(Machines(), description="Single machines to avoid or to prefer.")
    suspend: Switch = Field(
        False,
        description="true: rent, measure and replace nothing; what runs keeps running and billing. Default false.",
    )
    deletion_policy: Literal["Destroy", "Orphan"] = Field(
        "Destroy",
        description="What deleting the fleet does to its instances: Destroy, or Orphan: they run on. Default Destroy.",
    )

    @field_validator("regions")
    @classmethod
    def _known(cls, given: tuple[str, ...]) -> tuple[str, ...]:
        if len(given) > len(regions.COUNTRIES):
            raise ValueError("must not name more regions than there are countries; leave it out for anywhere")
        problems: list[Problem] = []
        codes: list[str] = []
        for index, region in enumerate(given):
            try:
                codes.append(regions.code_of(region))
            except ValueError as error:
                problems.append(((index,), str(error)))
        refuse(problems)
        return tuple(codes)

    @field_validator("shapes")
    @classmethod
    def _some_and_distinct(cls, shapes: tuple[Shape, ...]) -> tuple[Shape, ...]:
        if not shapes:
            raise ValueError("must have at least one shape")
        keys = [shape.key for shape in shapes]
        refuse(
            ((index, "gpu"), f"{key} is already shapes[{keys.index(key)}]; give each shape once")
            for index, key in enumerate(keys)
            if keys.index(key) < index
        )
        return shapes

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        problems: list[Problem] = []
        wanted = sum(shape.min_instances for shape in self.shapes)
        if self.target.instances is not None and wanted > self.target.instances:
            problems.append(
                (("target", "instances"), f"must be at least {wanted}, the sum of the shapes' minInstances")
            )
        reserve, ram = self.benchmark.memory.reserve_gib, self.require.ram_gib
        if 0 < ram <= reserve:
            text = f"must be below require.ramGiB, which is {ram:g}: else no memory is left for the work"
            problems.append((("benchmark", "memory", "reserveGiB"), text))
        refuse(problems)
        return self

    @property
    def budget(self) -> MicroUsd:
        """The hard cap per hour."""
        return micro(self.budget_per_hour)

    def countries(self) -> frozenset[str] | None:
        """ISO codes of where instances may be, None for anywhere."""
        return regions.expand(self.regions) if self.regions else None

    def workload(self) -> str:
        """Fingerprint of all that makes a running instance outdated when it changes: 12 hex digits.

        Covers what runs, its environment (of envFrom the references, not what they hold), the disk, and how the rate is
        measured, with the warm-up only if there is one; not how much is wanted, where, or for how much.
        """
        benchmark = self.benchmark.model_dump(
            mode="json", include={"unit", "prepare", "command", "format", "pattern", "memory"}
        )
        if self.benchmark.warm_up.command:  # without one, the fingerprint is that of before there were any
            benchmark["warmUp"] = self.benchmark.warm_up.command
        instance = self.instance.model_dump(mode="json", include={"image", "env_from", "on_start", "start", "stop"})
        env = {name: _plain(value) for name, value in self.instance.env.items()}
        text = json.dumps([benchmark, instance, env, self.require.disk_gib], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]


def _plain(value: SecretStr) -> str:
    return value.get_secret_value()


class Metadata(Section):
    """Who it is. Labels, annotations and the namespace are Kubernetes' and mean nothing here."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=40)] = Field(
        description="The fleet's name: at most 40 lower-case letters, digits and -. Required."
    )
    namespace: str | None = Field(None, description="Kubernetes namespace; ignored outside a cluster.")
    labels: dict[str, str] = Field(default_factory=dict, description="Kubernetes labels; ignored.")
    annotations: dict[str, str] = Field(default_factory=dict, description="Kubernetes annotations; ignored.")


class Fleet(Section):
    """One manifest."""

    api_version: Literal["vastfleet.io/v1alpha1"] = Field(description="vastfleet.io/v1alpha1. Required.")
    kind: Literal["Fleet"] = Field(description="Fleet. Required.")
    metadata: Metadata = Field(description="Who it is. Required.")
    spec: FleetSpec = Field(description="What is wanted. Required.")

    @property
    def name(self) -> str:
        """The fleet's name."""
        return self.metadata.name
