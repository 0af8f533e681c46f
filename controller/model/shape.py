"""What to rent: the shapes of a fleet, and the conditions an offer must meet. Part of the manifest."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from controller.model import gpus
from controller.model.money import MicroUsd, micro
from controller.model.section import Count, Dollars, Number, Section, Share, Switch, refuse


class Shape(Section):
    """A GPU model and count, with the rate an instance of it must reach."""

    gpu: Annotated[str, Field(max_length=64)] = Field(
        description="GPU model in vast.ai's spelling, such as RTX 4090; RTX_4090 and rtx4090 mean the same. Required."
    )
    gpu_count: Annotated[int, Field(strict=True, ge=1, le=64)] = Field(
        1, description="GPUs of one instance. Default 1."
    )
    min_rate: Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e15)] = Field(
        description="Rate that one instance must reach to be kept, in benchmark.unit. Required."
    )
    max_price_per_hour: Dollars | None = Field(
        None,
        description="Most that one instance may cost, USD an hour, with its disk. Left out: only the budget limits it.",
    )
    min_instances: Count = Field(
        0, description="Instances of this shape to hold even when another shape is better value. Default 0: none."
    )
    max_instances: Count | None = Field(
        None,
        description="Most instances of this shape to hold. 0: none. Left out: only target and budget limit it.",
    )

    @field_validator("gpu")
    @classmethod
    def _spelt_as_vast_does(cls, gpu: str) -> str:
        return gpus.normalise(gpu)

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if self.max_instances is not None and self.min_instances > self.max_instances:
            refuse([(("minInstances",), f"must not be above maxInstances, which is {self.max_instances}")])
        return self

    @property
    def key(self) -> str:
        """The shape's name in records and messages: `RTX 4090 x1`."""
        return f"{self.gpu} x{self.gpu_count}"

    @property
    def max_price(self) -> MicroUsd | None:
        """`max_price_per_hour` in micro-dollars, None when there is no cap."""
        return None if self.max_price_per_hour is None else micro(self.max_price_per_hour)


class Require(Section):
    """Conditions on an offer; they are checked again on the instance that came of it."""

    reliability: Share = Field(
        0.95, description="Least reliability that vast.ai ascribes to the machine, 0 to 1. Default 0.95. 0: any."
    )
    verified: Switch = Field(
        True, description="Whether only machines that vast.ai has verified will do. Default true. false: others too."
    )
    ram_gib: Number = Field(0, description="Least memory of the instance, in GiB. Default 0: any.")
    disk_gib: Annotated[float, Field(strict=True, allow_inf_nan=False, ge=8, le=100_000)] = Field(
        32,
        description="Disk to rent with each instance, in GiB, at least 8; it costs money and cannot grow. Default 32.",
    )
    cuda: str | None = Field(
        None, description='Oldest CUDA version that the driver must run, such as "12.4". Left out: any.'
    )
    down_mbps: Number = Field(0, description="Least download speed of the machine, in Mbit/s. Default 0: any.")
    whole_machine: Switch = Field(
        False, description="Whether only offers of all GPUs of a machine will do. Default false."
    )
    remaining_hours: Number = Field(
        24,
        description="Least time until the machine's listing, and so the contract, ends, in hours. Default 24. 0: any.",
    )
    rental: Literal["on-demand", "interruptible"] = Field(
        "on-demand", description="How to rent. Default on-demand; interruptible is not yet supported."
    )

    @field_validator("cuda", mode="before")
    @classmethod
    def _version_as_text(cls, cuda: object) -> object:
        return str(cuda) if isinstance(cuda, (int, float)) and not isinstance(cuda, bool) else cuda

    @field_validator("cuda")
    @classmethod
    def _version(cls, cuda: str | None) -> str | None:
        if cuda is not None and not re.fullmatch(r"[0-9]{1,2}(\.[0-9]{1,2})?", cuda):
            raise ValueError('must be a version such as "12.4"')
        return cuda

    @field_validator("rental")
    @classmethod
    def _on_demand(cls, rental: str) -> str:
        if rental != "on-demand":
            raise ValueError("interruptible is not yet supported; leave it out or write on-demand")
        return rental

    @property
    def cuda_version(self) -> float | None:
        """`cuda` as the market has it, None when any will do."""
        return None if self.cuda is None else float(self.cuda)
