from collections.abc import Callable

import pytest

from controller.model.manifest import ManifestError, ManifestErrors, load_text
from tests.model.bad import BUDGET, GPU, RATE, TABLE, Row, in_spec

Build = Callable[..., str]


def refused(text: str) -> tuple[ManifestError, ...]:
    with pytest.raises(ManifestErrors) as wrong:
        load_text(text, name="f.yaml")
    return wrong.value.errors


@pytest.mark.parametrize("row", TABLE, ids=[row[3] for row in TABLE])
def test_a_refusal_names_the_place_the_value_and_what_would_be_right(manifest: Build, row: Row) -> None:
    """Whatever is refused is refused at its line and column, by its path, with its value and its remedy, and alone."""
    change, line, column, path, says, got = row
    (error,) = refused(manifest(change))
    assert (error.file, error.line, error.column, error.path, error.got) == ("f.yaml", line, column, path, got)
    assert says in error.message


def test_an_error_reads_as_one_line() -> None:
    """An error prints as file:line:column: path: message (got value), in one line."""
    error = ManifestError(file="f.yaml", line=2, column=3, path="spec.a", got="4", message="must be 5")
    assert str(error) == "f.yaml:2:3: spec.a: must be 5 (got 4)"
    assert str(ManifestError(file="f.yaml", message="is empty")) == "f.yaml: is empty"


def test_all_errors_of_all_documents_come_at_once_in_the_order_of_the_text(manifest: Build) -> None:
    """Strictness, types, bounds and unknown keys of every document are told together, top to bottom."""
    first = manifest(in_spec("suspend: maybe\n  bugdet: 3"), (GPU, "gpu: RTX 4900"), (RATE, "minRate: 0_1"))
    second = manifest((BUDGET, "budgetPerHour: -1"), ("name: provers", "name: second"))
    errors = refused(f"{first}---\n{second}---\nkind: Pod\n")
    assert [(error.line, error.path) for error in errors] == [
        (6, "spec.suspend"),
        (7, "spec.bugdet"),
        (12, "spec.shapes[0].gpu"),
        (13, "spec.shapes[0].minRate"),
        (26, "spec.budgetPerHour"),
        (35, "kind"),
    ]
