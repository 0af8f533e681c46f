"""How gently to replace what works, and when. Part of the manifest."""

from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from controller.model.cron import unless_cron, unless_zone
from controller.model.section import Count, Minutes, Number, Section


class Window(Section):
    """A recurring time in which voluntary replacement may happen."""

    cron: Annotated[str, Field(max_length=200)] = Field(
        description='When it opens, in five cron fields, such as "0 3 * * SAT"; in quotes where it begins with *. '
        "Required."
    )
    duration_minutes: Minutes = Field(description="How long it stays open, in minutes. Required.")
    time_zone: Annotated[str, Field(max_length=64)] = Field(
        "UTC", description="IANA name of the cron fields' time zone. Default UTC."
    )

    @field_validator("cron")
    @classmethod
    def _comes(cls, cron: str) -> str:
        if wrong := unless_cron(cron):
            raise ValueError(wrong)
        return cron

    @field_validator("time_zone")
    @classmethod
    def _known(cls, time_zone: str) -> str:
        if wrong := unless_zone(time_zone):
            raise ValueError(wrong)
        return time_zone


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
    windows: Annotated[tuple[Window, ...], Field(max_length=50)] = Field(
        (),
        description="When what works may be replaced because it may be slow, or because the manifest changed; what is "
        "lost, ends, or is found too slow is replaced at any time. Default: always.",
    )

    @model_validator(mode="after")
    def _some_way(self) -> Self:
        if self.max_surge == 0 and self.max_unavailable == 0:
            raise ValueError("nothing can ever be replaced with maxSurge and maxUnavailable both 0; allow one of them")
        return self
