"""A pydantic model as the structural schema of a custom resource. Used by `crd.py`.

Kubernetes takes less than JSON Schema: no references, no nulls, no titles, booleans for exclusive bounds. What is not
known here to mean the same to both is an error and never left out, so that a new way to declare a field is noticed.

Defaults of a spec are left to the controller, all of them. One that the API server wrote would stay in the object when
a later version has a better one; nobody could tell it from what the author wrote; and rules that ask what was written,
as for a warm-up without a command, would no longer know.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

Schema = dict[str, Any]

Extras = Mapping[str, Mapping[str, Schema]]
"""What a schema says beside the models: by a model's name, then by its field's, empty for the model itself. `name[]`
is an item of the list in a field, `name{}` a value of the map in it."""

Only = Mapping[str, tuple[str, ...]]
"""By a model's name, the only fields that it has here, each of them required."""

RULES = "x-kubernetes-validations"

_SAME = frozenset(
    {"description", "type", "enum", "required", "x-kubernetes-list-type", "x-kubernetes-list-map-keys"}
) | {f"{side}{what}" for side in ("min", "max") for what in ("Length", "Items", "Properties")}
_BOUNDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_ELSEWHERE = frozenset({"$ref", "items", "additionalProperties", "properties"})
_LEFT_OUT = frozenset({"title", "default", "writeOnly"})
_FORMATS: dict[str, Schema] = {"date-time": {"format": "date-time"}, "password": {}}
_FIRST = ("description", "type", "format")
_ITEMS, _VALUES = "[]", "{}"


def structural(model: type[BaseModel], extras: Extras, only: Only) -> Schema:
    """The schema of a model, by its aliases. Raises ValueError on what Kubernetes has no words for."""
    whole = model.model_json_schema(by_alias=True)
    parts = whole.pop("$defs", {})
    for name in parts.keys() & only.keys():
        kept = {field: parts[name]["properties"][field] for field in only[name]}
        parts[name] |= {"properties": kept, "required": list(kept)}
    found: Schema = _readable(_Converter(parts, extras).model(model.__name__, whole))
    return found


class _Converter:
    """Converts the parts of one model. `parts`: its nested models, by their names."""

    def __init__(self, parts: Mapping[str, Schema], extras: Extras) -> None:
        self._parts = parts
        self._extras = extras

    def model(self, name: str, schema: Schema) -> Schema:
        """A model or an enumeration, with what is said of it and of its fields beside."""
        found = self._value(schema)
        for place, extra in self._extras.get(name, {}).items():
            part = _at(found, place)
            part.update({**extra, RULES: [*part.get(RULES, ()), *extra.get(RULES, ())]})
        return found

    def _value(self, schema: Schema) -> Schema:
        found: Schema = {}
        if "$ref" in schema:
            name = schema["$ref"].removeprefix("#/$defs/")
            found = self.model(name, self._parts[name])
        elif "anyOf" in schema:
            (inner,) = [each for each in schema["anyOf"] if each != {"type": "null"}]
            return self._value({**inner, **{key: said for key, said in schema.items() if key != "anyOf"}})
        for key in ("items", "additionalProperties"):
            if schema.get(key):
                found[key] = self._value(schema[key])
        if "properties" in schema:
            found["properties"] = {name: self._value(inner) for name, inner in schema["properties"].items()}
        return found | _said_of(schema)


def _said_of(schema: Schema) -> Schema:
    """What is said of a value itself."""
    found = _bounds(schema)
    for key, value in schema.items():
        if key in _SAME:
            found[key] = value
        elif key == "const":
            found["enum"] = [value]
        elif key == "pattern":
            found[RULES] = [_fits(value, schema["description"])]
        elif key == "format":
            found |= _FORMATS[value]
        elif key not in _LEFT_OUT | _BOUNDS | _ELSEWHERE:
            raise ValueError(f"{key} has no place in a structural schema")
    if schema.get("type") == "integer":
        found["format"] = "int64"
    return found


def _bounds(schema: Schema) -> Schema:
    """The narrower bound of either side, and whether the value may lie on it."""
    found: Schema = {}
    for name, exclusive, sign in (("minimum", "exclusiveMinimum", 1), ("maximum", "exclusiveMaximum", -1)):
        given = [(sign * schema[key], key == exclusive) for key in (name, exclusive) if key in schema]
        if given:
            bound, excluded = max(given)
            number = sign * bound
            found[name] = int(number) if number == int(number) else number
            if excluded:
                found[exclusive] = True
    return found


def _fits(pattern: str, description: str) -> Schema:
    """A pattern as a rule: of a pattern as such, Kubernetes shows nothing else to whoever breaks it."""
    meaning = description.partition(". ")[0].removesuffix(".")
    return {"rule": f"self.matches(r'{pattern}')", "message": f"does not fit: {meaning}"}


def _at(schema: Schema, place: str) -> Schema:
    """The schema of a field, of its items or its values; of the model itself where the place is empty."""
    field = place.removesuffix(_ITEMS).removesuffix(_VALUES)
    found: Schema = schema["properties"][field] if field else schema
    if part := {_ITEMS: "items", _VALUES: "additionalProperties"}.get(place.removeprefix(field)):
        found = found[part]
    return found


def _readable(schema: Any) -> Any:
    """The same without what is empty, and with what people read first at the top."""
    if isinstance(schema, list):
        return [_readable(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    first = {key: schema[key] for key in _FIRST if isinstance(schema.get(key), str)}
    return first | {key: _readable(value) for key, value in schema.items() if key not in first and value != []}
