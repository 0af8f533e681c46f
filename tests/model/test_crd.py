import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from ruamel.yaml import YAML

from controller.model import cron, gpus
from controller.model.crd import definition, files, schema
from controller.model.explain import field_at
from controller.model.fleet_view import BackoffView, FleetStatusView, MarketView, PlannedView, ShapeView
from controller.model.instance import Backoff, Instance, Run
from controller.model.instance_view import InstanceSpecView, InstanceStatusView
from controller.model.kinds import FLEET, INSTANCE, KINDS, MACHINE, Kind
from controller.model.machine_view import RunView
from controller.model.status import Condition, FleetStatus, InstanceStatus, Market, Planned, ShapeStatus
from controller.model.structural import structural
from controller.model.twins import ONLY_THE_LOADER
from controller.model.views import ConditionView

ROOT = Path(__file__).parents[2]


def parts(found: object) -> Iterator[dict[str, Any]]:
    """All mappings in a value."""
    if isinstance(found, dict):
        yield found
    inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
    for each in inner:
        yield from parts(each)


def test_the_definitions_in_the_tree_are_those_of_the_models():
    """crds/ holds what `vastfleet crds` writes today, to the byte, and no other definition."""
    there = {path.name: path.read_text() for path in (ROOT / "crds").glob("*.yaml")}
    assert there == files(), "run: vastfleet crds crds"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_reader_of_yaml_reads_the_same(kind: Kind):
    """A YAML 1.1 reader, kubectl's kind, takes no NO, on or 010 in a definition for anything but text."""
    (text,) = [text for name, text in files().items() if kind.plural in name]
    for version in ((1, 1), (1, 2)):
        yaml = YAML(typ="safe", pure=True)
        yaml.version = version
        assert yaml.load(text) == definition(kind)


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_schema_has_no_defaults_and_says_what_every_field_means(kind: Kind):
    """The API server fills in but that nobody saw the object yet, and `kubectl explain` has words for every field."""
    found = schema(kind)
    assert not any("default" in part for part in parts(found["properties"]["spec"]))
    filled_in = [part["default"] for part in parts(found) if "default" in part]
    assert filled_in == [{}, -1]
    assert found["properties"]["status"]["properties"]["observedGeneration"]["default"] == -1
    for part in parts({name: found["properties"][name] for name in ("spec", "status")}):
        for name, field in part.get("properties", {}).items() if part.get("type") == "object" else ():
            assert field.get("description", "").endswith((".", "...")), name


PLACES: list[tuple[Any, set[str], tuple[type[BaseModel], ...]]] = [
    (Instance, {"price"}, (InstanceSpecView, InstanceStatusView)),  # pricePerHour, in both
    (Run, set(), (RunView,)),
    (Backoff, set(), (BackoffView,)),
    (FleetStatus, {"fleet", "instances", "created_at", "last_pass"}, (FleetStatusView,)),  # its name; objects; Events
    (Condition, set(), (ConditionView,)),
    (Market, set(), (MarketView,)),
    (Planned, set(), (PlannedView,)),
    (ShapeStatus, set(), (ShapeView,)),
    (InstanceStatus, set(), (InstanceSpecView, InstanceStatusView)),
]


@pytest.mark.parametrize(("record", "left_out", "views"), PLACES, ids=[row[0].__name__ for row in PLACES])
def test_every_field_of_a_record_has_its_place(record: Any, left_out: set[str], views: tuple[type[BaseModel], ...]):
    """Whatever is remembered of an instance, a run or a fleet can be stored in an object: else it would be pruned."""
    names = set(getattr(record, "model_fields", None) or record.__dataclass_fields__)
    assert names - left_out <= {name for view in views for name in view.model_fields}
    assert left_out <= names


def test_the_columns_are_those_of_the_command_line():
    """What kubectl shows of fleets, instances and machines is in the columns that vastfleet promises."""
    shown = {kind.name: " ".join(column.name for column in kind.columns if not column.wide) for kind in KINDS}
    assert shown[FLEET.name] == "READY TARGET HELD RATE $/H BUDGET $/UNIT REASON AGE"
    assert shown[INSTANCE.name] == "PHASE GPU REGION RATE P(GOOD) RUNS $/H NEXT AGE"
    assert shown[MACHINE.name] == "GPU RATE P(GOOD) RUNS LAST QUARANTINED AGE"


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_column_shows_a_field_that_there_is(kind: Kind):
    """No column's path leads past the schema."""
    for column in kind.columns:
        at = schema(kind)
        for step in re.sub(r"\[.*?\]", "", column.path).strip(".").split("."):
            if step == "metadata":
                break
            at = at["properties"][step]
            at = at.get("items", at)


class Odd(BaseModel):
    """A part."""

    bounded: Annotated[int, Field(ge=1, gt=0, lt=9, le=10)] = 1
    maybe: Annotated[str, Field(max_length=3, pattern="^a")] | None = Field(None, description="What. More.")
    table: dict[str, list[float]] = {}


def test_a_model_becomes_a_structural_schema():
    """References, nulls, titles and defaults go; the narrower bound stays, and a pattern says what it is for."""
    assert structural(Odd, {"Odd": {"table{}": {"maxItems": 2}}}, {}) == {
        "description": "A part.",
        "type": "object",
        "properties": {
            "bounded": {"type": "integer", "format": "int64", "minimum": 1, "maximum": 9, "exclusiveMaximum": True},
            "maybe": {
                "description": "What. More.",
                "type": "string",
                "maxLength": 3,
                "x-kubernetes-validations": [{"rule": "self.matches(r'^a')", "message": "does not fit: What"}],
            },
            "table": {
                "type": "object",
                "additionalProperties": {"type": "array", "items": {"type": "number"}, "maxItems": 2},
            },
        },
    }


class Tuple(BaseModel):
    """What no structural schema can say."""

    pair: tuple[int, str]


def test_what_kubernetes_has_no_words_for_is_an_error():
    """A field declared in a way that a schema would not keep is noticed when the definitions are made."""
    with pytest.raises(ValueError, match="prefixItems has no place"):
        structural(Tuple, {}, {})


def test_what_only_the_loader_refuses_is_in_fields_that_exist():
    """The list of rules without a twin names fields of the manifest."""
    for path in ONLY_THE_LOADER:
        assert field_at(path.replace("[]", "").split(".")) is not None, path


NUMBERS = st.integers(0, 70).map(str) | st.sampled_from(["05", "*", *cron.MONTHS, *cron.DAYS, "sat", "L", "LW", "5L"])
ENTRIES = st.one_of(
    NUMBERS,
    st.tuples(NUMBERS, NUMBERS).map("-".join),
    st.tuples(NUMBERS, st.integers(0, 9).map(str)).map("/".join),
    st.tuples(NUMBERS, NUMBERS, st.integers(1, 9).map(str)).map(lambda parts: f"{parts[0]}-{parts[1]}/{parts[2]}"),
    st.tuples(NUMBERS, st.integers(0, 6).map(str)).map("#".join),
)


@given(field=st.sampled_from(list(cron.PATTERNS)), entries=st.lists(ENTRIES, min_size=1, max_size=3))
@example(field="day of month", entries=["LW/2"])
def test_the_patterns_of_schedules_are_the_loaders_rules(field: str, entries: list[str]):
    """A field of a schedule fits its pattern where the loader takes it; or else a range in it ends before it starts."""
    written = ["0", "0", "*", "*", "*"]
    written[list(cron.PATTERNS).index(field)] = ",".join(entries)
    wrong = cron.unless_cron(" ".join(written))
    fits = re.fullmatch(cron.PATTERNS[field], ",".join(entries).upper()) is not None
    assert fits or wrong is not None
    assert wrong is None or not fits or any("-" in entry for entry in entries)


def test_the_keys_of_gpus_tell_all_of_them_apart():
    """No two models come down to the same key, and a key is a spelling that the loader takes for its model."""
    assert len(set(gpus.known_keys())) == len(gpus.NAMES)
    assert {gpus.normalise(key) for key in gpus.known_keys()} == set(gpus.NAMES)
