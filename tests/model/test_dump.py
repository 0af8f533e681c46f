import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.model.document import documents
from controller.model.dump import dump_yaml

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
VALUES = st.recursive(
    st.booleans() | st.integers(-(10**17), 10**17) | st.floats(-1e15, 1e15) | TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner),
    max_leaves=10,
)


@pytest.mark.parametrize(
    "text", ["NO", "yes", "y", "Off", "010", "1_0", "1:30", "2026-11-30", "null", "~", "", "12.4", "true", "=", ".inf"]
)
def test_text_that_readers_differ_about_is_quoted(text: str) -> None:
    """What YAML 1.1 reads as something else is written in quotes, as a value and as a key."""
    assert dump_yaml({"a": text}) == f'a: "{text}"\n'
    assert dump_yaml({text: 1}) == f'"{text}": 1\n'


def test_several_lines_are_written_as_a_block() -> None:
    """A script is printed as it was written."""
    assert dump_yaml({"a": "one\ntwo\n"}) == "a: |\n  one\n  two\n"


@given(value=st.dictionaries(TEXT, VALUES, min_size=1))
def test_what_is_written_is_read_back(value: dict[str, object]) -> None:
    """Whatever is written comes back the same, by the strict reader, without a complaint."""
    (document,) = documents(dump_yaml(value))
    assert (document.value, document.troubles) == (value, [])
