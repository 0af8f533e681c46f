from collections.abc import Callable

import pytest

from controller.model.manifest import ManifestError, ManifestErrors, load_text

Build = Callable[..., str]
Row = tuple[tuple[str, str], int, int, str, str, str]


def refused(text: str) -> tuple[ManifestError, ...]:
    with pytest.raises(ManifestErrors) as wrong:
        load_text(text, name="f.yaml")
    return wrong.value.errors


def in_spec(line: str) -> tuple[str, str]:
    """A line put first into spec, as line 6 of the file."""
    return "spec:\n", f"spec:\n  {line}\n"


def in_shape(line: str) -> tuple[str, str]:
    """A line put into the shape, as line 12 of the file."""
    return "    minRate: 59\n", f"    minRate: 59\n    {line}\n"


def in_instance(line: str) -> tuple[str, str]:
    """A line put into the instance, as line 14 of the file."""
    return ":1.4\n", f":1.4\n    {line}\n"


def in_benchmark(line: str) -> tuple[str, str]:
    """A line put into the benchmark, as line 16 of the file."""
    return "command: bench\n", f"command: bench\n    {line}\n"


BUDGET, GPU, RATE = "budgetPerHour: 1.50", "gpu: RTX 4090", "minRate: 59"

# what is replaced by what; line, column, path; what the message says; what it shows of the value
TABLE: list[Row] = [
    # keys
    (in_spec("budget_per_hour: 3"), 6, 3, "spec.budget_per_hour", "did you mean budgetPerHour?", ""),
    (in_spec("require: {ramGib: 3}"), 6, 13, "spec.require.ramGib", "did you mean ramGiB?", ""),
    (in_spec("qqq: 3"), 6, 3, "spec.qqq", "there are target, budgetPerHour", ""),
    (in_spec("status: {}"), 6, 3, "spec.status", "no such key", ""),
    (in_spec("budgetPerHour: 50"), 9, 3, "spec.budgetPerHour", "already given in line 6: keep one", ""),
    (in_spec("on: 3"), 6, 3, "spec.on", "quote it", ""),
    (in_spec("1: 3"), 6, 3, "spec.1", "a key must be a word: quote it", ""),
    (in_spec("? [a]\n  : b"), 6, 5, 'spec."?"', "a key must be a word", ""),
    (in_spec("<<: 3"), 6, 3, 'spec."<<"', "quote it", ""),
    (("  budgetPerHour: 1.50\n", ""), 5, 1, "spec.budgetPerHour", "is missing: Hard cap, USD an hour", ""),
    (("    minRate: 59\n", ""), 10, 5, "spec.shapes[0].minRate", "is missing: Rate that one instance must reach", ""),
    (("    command: bench\n", "    unit: a/h\n"), 14, 3, "spec.benchmark.command", "is missing: Shell command", ""),
    (("    image: example/prover:1.4\n", "    start: a\n"), 12, 3, "spec.instance.image", "is missing", ""),
    # numbers
    ((BUDGET, "budgetPerHour: 1_0"), 8, 18, "spec.budgetPerHour", "plain decimal number", "1_0"),
    ((BUDGET, "budgetPerHour: 010"), 8, 18, "spec.budgetPerHour", "plain decimal number", "010"),
    ((BUDGET, "budgetPerHour: 0x1F"), 8, 18, "spec.budgetPerHour", "plain decimal number", "0x1F"),
    ((BUDGET, "budgetPerHour: 0o7"), 8, 18, "spec.budgetPerHour", "plain decimal number", "0o7"),
    ((BUDGET, "budgetPerHour: 1:30"), 8, 18, "spec.budgetPerHour", "plain decimal number", "1:30"),
    ((BUDGET, "budgetPerHour: +5"), 8, 18, "spec.budgetPerHour", "plain decimal number", "+5"),
    ((BUDGET, "budgetPerHour: .5"), 8, 18, "spec.budgetPerHour", "plain decimal number", ".5"),
    ((BUDGET, "budgetPerHour: 5."), 8, 18, "spec.budgetPerHour", "plain decimal number", "5."),
    ((BUDGET, "budgetPerHour: .inf"), 8, 18, "spec.budgetPerHour", "plain decimal number", ".inf"),
    ((BUDGET, "budgetPerHour: .NaN"), 8, 18, "spec.budgetPerHour", "plain decimal number", ".NaN"),
    ((BUDGET, "budgetPerHour: 2026-11-30"), 8, 18, "spec.budgetPerHour", "plain decimal number", "2026-11-30"),
    ((BUDGET, 'budgetPerHour: "3"'), 8, 18, "spec.budgetPerHour", "a number, without quotes", '"3"'),
    ((BUDGET, "budgetPerHour: 4,5"), 8, 18, "spec.budgetPerHour", "a number with a point", '"4,5"'),
    ((BUDGET, "budgetPerHour: $3"), 8, 18, "spec.budgetPerHour", "a number such as 10 or 0.5", '"$3"'),
    ((BUDGET, "budgetPerHour: true"), 8, 18, "spec.budgetPerHour", "must be a number", "true"),
    ((BUDGET, "budgetPerHour: [3]"), 8, 18, "spec.budgetPerHour", "must be a number", ""),
    ((BUDGET, "budgetPerHour: -3"), 8, 18, "spec.budgetPerHour", "must be above 0", "-3"),
    ((BUDGET, "budgetPerHour: 0"), 8, 18, "spec.budgetPerHour", "must be above 0", "0"),
    ((BUDGET, "budgetPerHour: 1e999"), 8, 18, "spec.budgetPerHour", "too large a number", "1e999"),
    ((BUDGET, "budgetPerHour: 1e7"), 8, 18, "spec.budgetPerHour", "must be at most 1000000", "10000000.0"),
    ((BUDGET, "budgetPerHour:"), 8, 3, "spec.budgetPerHour", "has no value: write one, or leave the key out", ""),
    ((BUDGET, "budgetPerHour: null"), 8, 3, "spec.budgetPerHour", "has no value", ""),
    (("instances: 2", "instances: -1"), 7, 16, "spec.target.instances", "must be at least 0", "-1"),
    (("instances: 2", "instances: 2.0"), 7, 16, "spec.target.instances", "must be a whole number", "2.0"),
    (("instances: 2", 'instances: "2"'), 7, 16, "spec.target.instances", "a whole number, without quotes", '"2"'),
    (("instances: 2", "instances: 1001"), 7, 16, "spec.target.instances", "must be at most 1000", "1001"),
    ((RATE, "minRate: 0"), 11, 14, "spec.shapes[0].minRate", "must be above 0", "0"),
    (in_shape("maxPricePerHour: -0.6"), 12, 22, "spec.shapes[0].maxPricePerHour", "must be above 0", "-0.6"),
    (in_spec("require: {diskGiB: 4}"), 6, 22, "spec.require.diskGiB", "must be at least 8", "4"),
    (in_spec("require: {reliability: 97}"), 6, 26, "spec.require.reliability", "must be at most 1", "97"),
    # words
    ((GPU, "gpu: 4090"), 10, 10, "spec.shapes[0].gpu", "must be text: GPU model", "4090"),
    ((GPU, "gpu: RTX 4900"), 10, 10, "spec.shapes[0].gpu", "did you mean RTX 4090", '"RTX 4900"'),
    ((GPU, "gpu: abacus"), 10, 10, "spec.shapes[0].gpu", "write it as vast.ai does", '"abacus"'),
    (in_spec("regions: [SE, Norway]"), 6, 17, "spec.regions[1]", "did you mean NO?", '"Norway"'),
    (in_spec("regions: [UK]"), 6, 13, "spec.regions[0]", "did you mean GB?", '"UK"'),
    (in_spec("regions: [on]"), 6, 13, "spec.regions[0]", "two-letter country code", '"on"'),
    (in_spec(f"regions: [{', '.join(['SE'] * 251)}]"), 6, 12, "spec.regions", "leave it out for anywhere", ""),
    (in_spec("regions: NO"), 6, 12, "spec.regions", "must be a list", '"NO"'),
    (in_spec("suspend: yes"), 6, 12, "spec.suspend", "write true or false", "yes"),
    (in_spec("suspend: 'true'"), 6, 12, "spec.suspend", "must be true or false", '"true"'),
    (in_spec("suspend: True"), 6, 12, "spec.suspend", "write true or false", "True"),
    (in_spec("suspend: 1"), 6, 12, "spec.suspend", "must be true or false", "1"),
    (in_spec("deletionPolicy: destroy"), 6, 19, "spec.deletionPolicy", "'Destroy' or 'Orphan'", '"destroy"'),
    (in_spec("require: {cuda: new}"), 6, 19, "spec.require.cuda", 'a version such as "12.4"', '"new"'),
    (in_spec("require: 3"), 6, 12, "spec.require", "a mapping of keys to values", "3"),
    (("name: provers", "name: Provers"), 4, 9, "metadata.name", "lower-case letters", '"Provers"'),
    (("name: provers", "name: a.b"), 4, 9, "metadata.name", "lower-case letters", '"a.b"'),
    (("name: provers", f"name: {'a' * 41}"), 4, 9, "metadata.name", "at most 40 characters", f'"{"a" * 41}"'),
    (("name: provers", "name: no"), 4, 9, "metadata.name", "quote it", "no"),
    ((": example/prover:1.4", ": 1.4"), 13, 12, "spec.instance.image", "must be text", "1.4"),
    ((": example/prover:1.4", ": a b"), 13, 12, "spec.instance.image", "does not fit: Container image", '"a b"'),
    ((": bench\n", ': ""\n'), 15, 14, "spec.benchmark.command", "must not be empty", '""'),
    (in_benchmark("unit: proofs"), 16, 11, "spec.benchmark.unit", "work per s, min or h", '"proofs"'),
    (in_benchmark("format: xml"), 16, 13, "spec.benchmark.format", "'cuzk', 'json' or 'regex'", '"xml"'),
    (in_benchmark("prepare: {doneWhen: '('}"), 16, 25, "spec.benchmark.prepare.doneWhen", "regular expression", '"("'),
    (in_benchmark("memory: {perProofGiB: 0}"), 16, 27, "spec.benchmark.memory.perProofGiB", "above 0", "0"),
    # fields against each other
    (("instances: 2", "rate: 5\n    instances: 2"), 7, 5, "spec.target", "exactly one of rate and instances", ""),
    (("    instances: 2\n", "    {}\n"), 7, 5, "spec.target", "exactly one of rate and instances", ""),
    (in_shape("minInstances: 3"), 7, 16, "spec.target.instances", "at least 3, the sum of", "2"),
    (
        in_shape("minInstances: 2\n    maxInstances: 1"),
        12,
        19,
        "spec.shapes[0].minInstances",
        "not be above maxInstances, which is 1",
        "2",
    ),
    (
        in_shape("gpuCount: 1\n  - {gpu: rtx4090, minRate: 3}"),
        13,
        11,
        "spec.shapes[1].gpu",
        "is already shapes[0]",
        '"rtx4090"',
    ),
    (
        ("  shapes:\n  - gpu: RTX 4090\n    minRate: 59\n", "  shapes: []\n"),
        9,
        11,
        "spec.shapes",
        "at least one shape",
        "",
    ),
    (
        in_spec("judgement: {replaceBelow: 0.9, acceptAbove: 0.9}"),
        6,
        29,
        "spec.judgement.replaceBelow",
        "must be below acceptAbove, which is 0.9",
        "0.9",
    ),
    (in_spec("disruption: {maxSurge: 0, maxUnavailable: 0}"), 6, 15, "spec.disruption", "allow one of them", ""),
    (in_benchmark("format: regex"), 14, 3, "spec.benchmark.pattern", "a group named rate", ""),
    (
        in_benchmark("pattern: (.*)\n    format: regex"),
        16,
        14,
        "spec.benchmark.pattern",
        "a group named rate",
        '"(.*)"',
    ),
    (
        in_benchmark("pattern: '(?P<rate>.)'"),
        16,
        14,
        "spec.benchmark.pattern",
        "only with format: regex",
        '"(?P<rate>.)"',
    ),
    # what comes later
    (in_spec("require: {rental: interruptible}"), 6, 21, "spec.require.rental", "not yet supported", '"interruptible"'),
    (in_spec("judgement: {plannedHours: 24}"), 6, 29, "spec.judgement.plannedHours", "not yet supported", "24"),
    (
        in_spec("disruption: {windows: [{cron: 0 3 * * *, durationMinutes: 60}]}"),
        6,
        25,
        "spec.disruption.windows",
        "not yet supported",
        "",
    ),
    (in_benchmark("production: {command: rate}"), 16, 17, "spec.benchmark.production", "not yet supported", ""),
    (
        in_instance("envFrom: [{secretRef: {name: a}}]"),
        14,
        27,
        "spec.instance.envFrom[0].secretRef",
        "not yet supported",
        "",
    ),
    # the environment, and vast.ai's limits
    (in_instance("env: {A: 1}"), 14, 14, "spec.instance.env.A", "put it in quotes", ""),
    (in_instance("env: {A: 010}"), 14, 14, "spec.instance.env.A", "quote it if it is text", ""),
    (in_instance("env: {9A: a}"), 14, 15, "spec.instance.env.9A", "not starting with a digit", ""),
    (in_instance("env: {A-B: a}"), 14, 16, "spec.instance.env.A-B", "letters, digits and _", ""),
    (in_instance(f"env: {{A: {'é' * 129}}}"), 14, 14, "spec.instance.env.A", "at most 256 bytes", ""),
    (in_instance("env: {A: [a]}"), 14, 14, "spec.instance.env.A", "must be text", ""),
    (in_instance("env: A=b"), 14, 10, "spec.instance.env", "a mapping of keys to values", ""),
    (in_instance("envFrom: [{}]"), 14, 15, "spec.instance.envFrom[0]", "exactly one of variable and file", ""),
    (
        in_instance("envFrom: [{variable: a b}]"),
        14,
        26,
        "spec.instance.envFrom[0].variable",
        "letters, digits and _",
        "",
    ),
    (
        in_instance(f"onStart: {'é' * 2001}"),
        14,
        14,
        "spec.instance.onStart",
        "at most 4000 bytes, it is 4002",
        "2003 characters",
    ),
    # YAML's cleverness
    (in_spec("require: &a {}"), 6, 12, "spec.require", "anchors are refused", ""),
    (in_spec("require: *a"), 6, 12, "spec.require", "aliases are refused: write the value out", ""),
    (in_spec("suspend: !!bool 'true'"), 6, 12, "spec.suspend", "tags are refused", ""),
    (in_spec("suspend: ! true"), 6, 12, "spec.suspend", "tags are refused", ""),
    (("name: provers", 'name: "\\ud800"'), 4, 9, "metadata.name", "half a surrogate pair", ""),
]


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


def test_an_environment_beyond_vasts_limit_is_refused(manifest: Build) -> None:
    """All names and values of env together must fit vast.ai's limit."""
    env = ", ".join(f"A{number:03}: {'v' * 250}" for number in range(130))
    (error,) = refused(manifest(in_instance(f"env: {{{env}}}")))
    assert (error.line, error.path) == (14, "spec.instance.env")
    assert "at most 32768 bytes in all" in error.message
