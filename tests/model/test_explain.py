import re
from collections.abc import Iterator

import pytest

from controller.model.explain import explain_field, fields_of, section_at
from controller.model.reasons import EXPLANATIONS, Reason


def paths(path: tuple[str, ...] = ()) -> Iterator[str]:
    section = section_at(path)
    for name in fields_of(section) if section else ():
        yield ".".join((*path, name))
        yield from paths((*path, name))


@pytest.mark.parametrize("path", list(paths()))
def test_every_field_is_explained(path: str) -> None:
    """Each field says what it means, what it holds, and either that it is required or what its default is."""
    told = explain_field(path)
    inner = section_at(path.split("."))
    assert told.path == path
    assert told.description.endswith(".")
    assert told.required == ("Required" in told.description)
    assert told.required or inner or re.search("Default|Left out|ignored", told.description)
    assert told.fields == (tuple(fields_of(inner)) if inner else ())


def test_an_index_in_a_path_does_not_matter() -> None:
    """A path copied from an error can be asked about."""
    assert explain_field("spec.shapes[0].gpu") == explain_field("spec.shapes.gpu")
    assert explain_field("spec.shapes[0].gpu").holds == "text"
    assert explain_field("spec.shapes").holds == "list of mapping"


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("spec.require.ramGib", "did you mean ramGiB"),
        ("spec.qqq", "there are target"),
        ("spec.budgetPerHour.usd", "has no fields in it"),
        ("", "there are apiVersion"),
    ],
)
def test_an_unknown_field_is_answered_with_its_nearest(path: str, says: str) -> None:
    """A mistyped path is answered with what exists."""
    with pytest.raises(LookupError, match=says):
        explain_field(path)


@pytest.mark.parametrize("reason", Reason)
def test_every_reason_is_explained(reason: Reason) -> None:
    """Each reason has one or two plain sentences of its own."""
    text = EXPLANATIONS[reason]
    assert text.endswith(".")
    assert 20 < len(text) < 250
    assert list(EXPLANATIONS.values()).count(text) == 1


def test_what_ran_out_of_memory_is_not_to_ask_for_less() -> None:
    """Of an offer that is turned away because work ran out of as much memory, nobody is told to ask for less."""
    what, remedy = EXPLANATIONS[Reason.MEMORY].split(". ")
    assert what.endswith("or one piece of work ran out of as much before")
    assert "where work ran out, raise it, or let the work need less" in remedy
