"""Strict YAML: text in, plain values and the place of each out, with every trouble. Used by `manifest.py` alone.

It reads the parser's events and not its objects, because a fleet's manifest is no place for YAML's cleverness: aliases,
tags, directives, duplicate keys and scalars that readers differ about are refused, and nothing is built from them.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from controller.model.scalars import Ambiguous, is_truth_word, read_plain

MAX_DEPTH = 64

Steps = tuple[str | int, ...]
"""A path below a document's top: keys and indices."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Line and column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not strict YAML. `got` is the scalar there, empty when there is nothing to show."""

    place: Place
    path: Steps
    message: str
    got: str = ""


@dataclass(slots=True)
class Document:
    """One document: its dicts, lists and scalars, where each path's value and key stand, and what was wrong."""

    place: Place
    value: object = None
    values: dict[Steps, Place] = field(default_factory=dict)
    keys: dict[Steps, Place] = field(default_factory=dict)
    troubles: list[Trouble] = field(default_factory=list)


class Unreadable(Exception):  # noqa: N818 - says what the text is
    """The text is not YAML from here on."""

    def __init__(self, trouble: Trouble) -> None:
        super().__init__(trouble.message)
        self.trouble = trouble


def documents(text: str) -> Iterator[Document]:
    """The documents of a text, empty ones too. Raises Unreadable where the text stops being YAML."""
    for number, line in enumerate(text.split("\n"), start=1):
        if line.startswith("%"):
            raise Unreadable(Trouble(Place(number, 1), (), "YAML directives are refused: remove the line"))
    try:
        events = YAML(typ="safe", pure=True).parse(text)
        for event in events:
            if type(event).__name__ == "DocumentStartEvent":
                yield _Builder(events, Document(_place(event))).build()
    except YAMLError as error:
        raise Unreadable(_syntax(error, text)) from None  # the parser's own text quotes the file, secrets and all


def _syntax(error: YAMLError, text: str) -> Trouble:
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
        if error.context in {"while scanning an alias", "while scanning an anchor"}:
            return Trouble(place, (), "not YAML: put what begins with * or & in quotes")
        context = f" {error.context}" if error.context else ""
        return Trouble(place, (), f"not YAML: {error.problem}{context}")
    before = text[: error.position] if isinstance(error, ReaderError) else ""
    place = Place(before.count("\n") + 1, len(before) - before.rfind("\n"))
    return Trouble(place, (), "not YAML: a control character; remove it, or escape it within double quotes")


def _place(event: Any) -> Place:
    return Place(event.start_mark.line + 1, event.start_mark.column + 1)


class _Builder:
    """Builds one document from the events that follow its start."""

    def __init__(self, events: Iterator[Any], document: Document) -> None:
        self._events = events
        self._document = document

    def build(self) -> Document:
        self._document.value = self._node(next(self._events), ())
        return self._document

    def _trouble(self, event: Any, path: Steps, message: str, got: str = "") -> None:
        self._document.troubles.append(Trouble(_place(event), path, message, got))

    def _node(self, event: Any, path: Steps) -> object:
        if len(path) > MAX_DEPTH:
            raise Unreadable(Trouble(_place(event), path[:3], f"nested more than {MAX_DEPTH} deep"))
        self._document.values.setdefault(path, _place(event))
        kind = type(event).__name__
        if kind == "AliasEvent":
            self._trouble(event, path, "aliases are refused: write the value out")
            return None
        if event.anchor is not None:
            self._trouble(
                event, path, "anchors are refused: remove it, and write the value out where it is wanted again"
            )
        if event.ctag is not None:
            self._trouble(event, path, "tags are refused: remove it")
        if kind == "MappingStartEvent":
            return self._mapping(path)
        if kind == "SequenceStartEvent":
            return self._sequence(path)
        return self._scalar(event, path)

    def _mapping(self, path: Steps) -> dict[str, object]:
        built: dict[str, object] = {}
        while type(event := next(self._events)).__name__ != "MappingEndEvent":
            key = self._key(event, path)
            here = (*path, key)
            if key in built:
                first = self._document.keys[here]
                self._trouble(event, here, f"is already given in line {first.line}: keep one of them")
            self._document.keys.setdefault(here, _place(event))
            value = self._node(next(self._events), here)
            built.setdefault(key, value)
        return built

    def _key(self, event: Any, path: Steps) -> str:
        if type(event).__name__ != "ScalarEvent":
            self._trouble(event, (*path, "?"), "a key must be a word")
            self._node(event, (*path, "?"))
            return "?"
        if event.anchor is not None or event.ctag is not None:
            self._trouble(event, (*path, event.value), "anchors and tags are refused: remove it")
        if event.style is None:
            try:
                if not isinstance(read_plain(event.value), str):
                    self._trouble(event, (*path, event.value), "a key must be a word: quote it")
            except Ambiguous:
                self._trouble(event, (*path, event.value), "some readers take this key for another value: quote it")
        return str(event.value)

    def _sequence(self, path: Steps) -> list[object]:
        built: list[object] = []
        while type(event := next(self._events)).__name__ != "SequenceEndEvent":
            built.append(self._node(event, (*path, len(built))))
        return built

    def _scalar(self, event: Any, path: Steps) -> object:
        text: str = event.value
        if any("\ud800" <= character <= "\udfff" for character in text):
            self._trouble(event, path, "half a surrogate pair is no character: remove it")
            return None
        if event.style is not None:
            return text
        if path[:2] == ("spec", "regions") and is_truth_word(text):
            return text  # NO is Norway
        try:
            value = read_plain(text)
        except Ambiguous as error:
            self._trouble(event, path, str(error), text)
            return None
        if value is None and path:
            place = self._document.keys.get(path) or _place(event)
            text = "has no value: write one, or leave the key out"
            self._document.troubles.append(Trouble(place, path, text))
        return value
