"""What every part of the manifest has in common: its spelling, its numbers, and how it says what is wrong.

Read by the modules that declare the manifest (fleet, shape, workload).
"""

import re
from collections.abc import Iterable
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import InitErrorDetails, PydanticCustomError

Number = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1e9)]
"""Any amount: finite, not negative."""

Dollars = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=1e6)]
"""A sum of money that is worth stating."""

Share = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0, le=1)]
"""A probability or a reliability."""

Count = Annotated[int, Field(strict=True, ge=0, le=100_000)]
Minutes = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0, le=100_000)]
Switch = Annotated[bool, Field(strict=True)]

Problem = tuple[tuple[str | int, ...], str]
"""Where below the part that is being checked, by the manifest's own names, and what would be right."""


def spelling(field: str) -> str:
    """The manifest's name of a field: camelCase, with GiB as a unit is written."""
    return to_camel(field).replace("Gib", "GiB")


class Section(BaseModel):
    """A part of the manifest: frozen, camelCase outside, snake_case inside, and nothing in it that is not declared."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=spelling,
        validate_by_alias=True,
        validate_by_name=True,
        serialize_by_alias=True,
        hide_input_in_errors=True,
        validate_default=True,
    )


def refuse(problems: Iterable[Problem]) -> None:
    """Raise pydantic's ValidationError with all problems, each at its own place; do nothing when there is none."""
    details = [
        InitErrorDetails(type=PydanticCustomError("manifest", "{text}", {"text": text}), loc=place, input=None)
        for place, text in problems
    ]
    if details:
        raise ValidationError.from_exception_data("manifest", details)


def unless_compiles(pattern: str) -> str | None:
    """What is wrong with a regular expression, None when nothing is."""
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        return f"must be a regular expression: {error}"
    return None
