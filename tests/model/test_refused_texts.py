from collections.abc import Callable

import pytest

from controller.model.manifest import ManifestError, ManifestErrors, load_bytes, load_text

Build = Callable[..., str]


def refused(text: str) -> tuple[ManifestError, ...]:
    with pytest.raises(ManifestErrors) as wrong:
        load_text(text, name="f.yaml")
    return wrong.value.errors


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 0, "holds no fleet"),
        ("# nothing\n---\n---\n", 0, "holds no fleet"),
        ("%YAML 1.1\n---\na: NO\n", 1, "directives are refused"),
        ("a: b: c\n", 1, "not YAML: mapping values are not allowed here"),
        ("a: [1\n", 2, "not YAML: expected ',' or ']'"),
        ("\ta: 1\n", 1, "not YAML: found character"),
        ("a: 1\nb: \x07\n", 2, "a control character"),
        ("[" * 100, 1, "nested more than 64 deep"),
        ("a: " + "x" * 256 * 1024, 0, "longer than 256 KiB"),
        ("kind: Pod\nspec: 3\n", 1, "must be Fleet"),
        ("apiVersion: v1\nkind: Fleet\n", 1, "must be vastfleet.io/v1alpha1"),
        ("- a\n", 1, "must be a mapping with apiVersion, kind, metadata and spec"),
    ],
)
def test_what_is_no_manifest_is_refused_whole(text: str, line: int, says: str) -> None:
    """A text that is no YAML, too much of it, or nothing of ours gets one error that says so."""
    (error,) = refused(text)
    assert error.line == line
    assert says in error.message


@pytest.mark.parametrize(
    ("data", "line", "column", "says"),
    [
        ("a: 1".encode("utf-16"), 0, 0, "save it as UTF-8"),
        ("a: 1".encode("utf-16-be"), 0, 0, "save it as UTF-8"),
        ("a: 1".encode("utf-32"), 0, 0, "save it as UTF-8"),
        (b"a: 1\nb: \xe9\n", 2, 4, "not UTF-8 from here"),
        (b"#" * (256 * 1024 + 1), 0, 0, "longer than 256 KiB"),
    ],
)
def test_bytes_that_are_not_a_short_utf8_text_are_refused(data: bytes, line: int, column: int, says: str) -> None:
    """Only UTF-8 of at most 256 KiB is read; the first bad byte is pointed at."""
    with pytest.raises(ManifestErrors) as wrong:
        load_bytes(data, name="f.yaml")
    (error,) = wrong.value.errors
    assert (error.line, error.column) == (line, column)
    assert says in error.message


def test_two_fleets_of_one_name_are_refused_with_both_places(manifest: Build) -> None:
    """The second fleet of a name is refused, and the first one's place is told."""
    (error,) = refused(f"{manifest()}---\n{manifest()}")
    assert (error.line, error.column, error.path) == (20, 9, "metadata.name")
    assert "f.yaml:4 already" in error.message


@pytest.mark.parametrize(
    "line",
    [
        "env: {A: [MARKER]}",
        "env: {A: {key: MARKER}}",
        "env: MARKER",
        "env: {9A: MARKER}",
        "env: {A: &MARKER MARKER}",
        "env: {A: !MARKER MARKER}",
        f"env: {{A: MARKER{'x' * 300}}}",
        "envFrom: [MARKER]",
        "envFrom: [{variable: A=MARKER}]",
        "A: MARKER",
        "image2: MARKER",
        "environment: {A: MARKER}",
        "env: {A: 'MARKER}",
        "env: {A: MARKER: MARKER}",
        'env: {A: "MARKER\\q"}',
    ],
)
def test_a_value_of_env_is_in_no_error(manifest: Build, line: str) -> None:
    """However an environment variable is got wrong, its value is not printed back."""
    with pytest.raises(ManifestErrors) as wrong:
        load_text(manifest((":1.4\n", f":1.4\n    {line}\n")), name="f.yaml")
    assert "MARKER" not in f"{wrong.value} {wrong.value!r} {wrong.value.__cause__!r} {wrong.value.errors!r}"


def test_hostile_text_cannot_reach_the_terminal(manifest: Build) -> None:
    """Control characters in a key or a value are printed escaped, and long ones by their length."""
    text = manifest(
        ("gpu: RTX 4090", 'gpu: "\\e[2J\\x9b31m\\u202e"'),
        ("minRate: 59", f"minRate: {'x' * 999}"),
        ("spec:\n", 'spec:\n  "\\e[31m": 1\n'),
    )
    printed = " ".join(map(str, refused(text)))
    assert printed.isprintable()
    assert "got 1001 characters" in printed
