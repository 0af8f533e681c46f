"""What an operator knows about single machines: which to avoid, and which to prefer. Part of the manifest."""

import math
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Annotated, Self

from pydantic import Field, field_validator, model_validator

from controller.model.section import Problem, Section, refuse

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")
_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?(Z|[-+][0-9]{2}:[0-9]{2})\Z")
_DAY_SECONDS = 86_400.0


def _end_of(until: str) -> float:
    """Unix seconds at which an `until` is over: a day's end in UTC, or the time itself. Raises ValueError."""
    if _DAY.match(until):
        return datetime.fromisoformat(until).replace(tzinfo=UTC).timestamp() + _DAY_SECONDS
    if _TIME.match(until):
        return datetime.fromisoformat(until).timestamp()
    raise ValueError("neither a day nor a time")


class Pin(Section):
    """What is known of one machine."""

    id: Annotated[int, Field(strict=True, ge=1, le=10**15)] = Field(
        description="vast.ai's id of the machine, as `get instances` and `plan` show it. Required."
    )
    reason: Annotated[str, Field(pattern=r"\S", max_length=500)] = Field(
        description="Why, for whoever reads the manifest or an event later. Required."
    )
    until: str | None = Field(
        None,
        description='Last day in UTC on which it holds, such as "2027-01-31", or a time such as '
        '"2027-01-31T12:00:00Z", in quotes. Left out: for good.',
    )

    @field_validator("until")
    @classmethod
    def _a_time(cls, until: str | None) -> str | None:
        if until is not None:
            try:
                _end_of(until)
            except (ValueError, OverflowError):
                raise ValueError('must be a day such as "2027-01-31", or a time "2027-01-31T12:00:00Z"') from None
        return until

    @property
    def expires_at(self) -> float:
        """Unix seconds from which it has no effect, infinity when it never expires."""
        return math.inf if self.until is None else _end_of(self.until)


class Machines(Section):
    """Single machines to avoid or to prefer, whatever was measured of them."""

    avoid: Annotated[tuple[Pin, ...], Field(max_length=250)] = Field(
        (), description="Machines on which nothing is rented, and what runs is replaced. Default: none."
    )
    prefer: Annotated[tuple[Pin, ...], Field(max_length=250)] = Field(
        (),
        description="Machines whose offers are taken first where they meet every condition, until something of ours is "
        "on them. Default: none.",
    )

    @model_validator(mode="after")
    def _each_once(self) -> Self:
        problems: list[Problem] = []
        places: dict[int, str] = {}
        for name, pins in (("avoid", self.avoid), ("prefer", self.prefer)):
            for index, pin in enumerate(pins):
                place = f"{name}[{index}]"
                if places.setdefault(pin.id, place) != place:
                    text = f"machine {pin.id} is already {places[pin.id]}; give each machine once"
                    problems.append(((name, index, "id"), text))
        refuse(problems)
        return self

    def avoided(self, now: float) -> dict[int, str]:
        """The machines to avoid at a time in Unix seconds, each with its reason."""
        return _in_force(self.avoid, now)

    def preferred(self, now: float) -> dict[int, str]:
        """The machines to prefer at a time in Unix seconds, each with its reason."""
        return _in_force(self.prefer, now)


def _in_force(pins: Iterable[Pin], now: float) -> dict[int, str]:
    return {pin.id: pin.reason for pin in pins if now < pin.expires_at}
