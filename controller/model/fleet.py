"""The Fleet: what is wanted, the same from a file, a git commit or the cluster.

The manifest's camelCase names are snake_case here. Built by `manifest.py` from YAML, read by every room.
"""

import hashlib
import json
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from controller.model import regions
from controller.model.money import MicroUsd, micro
from controller.model.section import Count, Dollars, Minutes, Number, Problem, Section, Share, Switch, refuse
from controller.model.shape import Require, Shape
from controller.model.workload import Benchmark, EnvSource, InstanceSpec, Memory, Prepare, Production

__all__ = [
    "Benchmark",
    "Disruption",
    "EnvSource",
    "Fleet",
    "FleetSpec",
    "InstanceSpec",
    "Judgement",
    "Memory",
    "Metadata",
    "Prepare",
    "Production",
    "Require",
    "Shape",
    "Target",
    "Window",
]

API_VERSION = "vastfleet.io/v1alpha1"


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

    planned_hours: Number = Field(
        48, description="How long the capacity is wanted, in hours. Default 48; other values are not yet supported."
    )
    replace_below: Share | None = Field(
        None, description="P(rate >= minRate) below which an instance gets a challenger. Left out: decided by cost."
    )
    accept_above: Share | None = Field(
        None, description="P(rate >= minRate) from which an instance is accepted. Left out: decided by cost."
    )

    @field_validator("planned_hours")
    @classmethod
    def _not_yet(cls, planned_hours: float) -> float:
        if planned_hours != 48:  # noqa: PLR2004 - the field's default
            raise ValueError("other values than 48 are not yet supported; leave it out")
        return planned_hours

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        low, high = self.replace_below, self.accept_above
        if low is not None and high is not None and low >= high:
            refuse([(("replaceBelow",), f"must be below acceptAbove, which is {high}")])
        return self


class Window(Section):
    """A recurring time in which voluntary replacement may happen."""

    cron: str = Field(description="When it opens, in five cron fields. Required.")
    duration_minutes: Minutes = Field(description="How long it stays open, in minutes. Required.")
    time_zone: str = Field("UTC", description="IANA name of the cron fields' time zone. Default UTC.")


class Disruption(Section):
    """How gently to replace what works."""

    max_surge: Count = Field(
        1,
        description="Instances that may be held above the target during a replacement, budget permitting. Default 1.",
    )
    max_unavailable: Count = Field(
        1, description="Instances below the target that a voluntary replacement may cause. Default 1."
    )
    min_lifetime_minutes: Annotated[Number, Field(le=100_000)] = Field(
        60, description="Age before which a working instance is not replaced voluntarily, in minutes. Default 60."
    )
    windows: tuple[Window, ...] = Field(
        (), description="When voluntary replacement may happen. Default: always. Not yet supported."
    )

    @field_validator("windows")
    @classmethod
    def _not_yet(cls, windows: tuple[Window, ...]) -> tuple[Window, ...]:
        if windows:
            raise ValueError("not yet supported; leave it out")
        return windows

    @model_validator(mode="after")
    def _some_way(self) -> Self:
        if self.max_surge == 0 and self.max_unavailable == 0:
            raise ValueError("nothing can ever be replaced with maxSurge and maxUnavailable both 0; allow one of them")
        return self


class FleetSpec(Section):
    """What is wanted."""

    target: Target = Field(description="How much to hold: a rate or a number of instances. Required.")
    budget_per_hour: Dollars = Field(
        description="Hard cap, USD an hour, over everything billed or possibly billed for this fleet. Required."
    )
    shapes: tuple[Shape, ...] = Field(description="What may be rented, in any mix that fits. Required, at least one.")
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
    def _minima_fit(self) -> Self:
        wanted = sum(shape.min_instances for shape in self.shapes)
        if self.target.instances is not None and wanted > self.target.instances:
            refuse([(("target", "instances"), f"must be at least {wanted}, the sum of the shapes' minInstances")])
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
        measured; not how much is wanted, where, or for how much.
        """
        benchmark = self.benchmark.model_dump(
            mode="json", include={"unit", "prepare", "command", "format", "pattern", "memory"}
        )
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
