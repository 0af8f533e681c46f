"""What the objects of a cluster have in common: how they spell times and figures, and their conditions.

A view declares what an object holds beside a Fleet's spec, for the schema and for `kubectl explain`. An object is JSON
that people read: times are RFC 3339, money is USD, and what is not known is left out, never null. Nothing is computed
from a view. Read by the modules that declare the kinds.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, WithJsonSchema

from controller.model.section import spelling

SHORT = 128  # characters of a name or a word

Moment = Annotated[str, WithJsonSchema({"type": "string", "format": "date-time"})]
"""A time in RFC 3339."""

Word = Annotated[str, Field(max_length=SHORT)]
"""A reason, or another word of a table. The schema lists none of them: an older one must not refuse newer words."""

Tally = Annotated[int, Field(ge=0)]


class View(BaseModel):
    """A part of an object, camelCase as the manifest is."""

    model_config = ConfigDict(frozen=True, alias_generator=spelling, validate_by_alias=True, validate_by_name=True)


class ConditionView(View):
    """One thing that holds, does not, or is not known."""

    type: Word = Field(description="What it says something about, such as Ready.")
    status: Literal["True", "False", "Unknown"] = Field(description="Whether it holds: True, False or Unknown.")
    reason: Word = Field(description="Why, in one word; `vastfleet explain REASON` says what to do about it.")
    message: str | None = Field(None, description="Why, for people.")
    last_transition_time: Moment = Field(description="When the status last changed.")
    observed_generation: Tally | None = Field(
        None, description="The metadata.generation that it was made for; an older one may be outdated."
    )


Conditions = Annotated[
    tuple[ConditionView, ...],
    Field(
        max_length=32,
        description="What holds and what does not, each with its reason.",
        json_schema_extra={"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"]},
    ),
]
Generation = Annotated[
    Tally | None,
    Field(description="The metadata.generation of the object that this status was made for; -1: none was made yet."),
]
