"""Manifests with one thing wrong, each with where it is and what the loader says; the API server is asked likewise."""

Change = tuple[str, str]
Row = tuple[Change, int, int, str, str, str]

FLEET = """\
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata:
  name: provers
spec:
  target:
    instances: 2
  budgetPerHour: 1.50
  shapes:
  - gpu: RTX 4090
    minRate: 59
  instance:
    image: example/prover:1.4
  benchmark:
    command: bench
"""


def changed(*changes: Change) -> str:
    """A fleet's text in which each change has replaced a piece that was there once."""
    text = FLEET
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


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


def in_window(line: str) -> tuple[str, str]:
    """A line put first into a window that lacks what it says, as line 8 of the file."""
    rest = {"cron": "0 3 * * *", "durationMinutes": "60"}
    others = "".join(f"      {key}: {value}\n" for key, value in rest.items() if not line.startswith(key))
    return "spec:\n", f"spec:\n  disruption:\n    windows:\n    - {line}\n{others}"


def in_pin(line: str) -> tuple[str, str]:
    """A line put last into a pin, in line 6 of the file."""
    return in_spec(f"machines: {{avoid: [{{id: 7, reason: a, {line}}}]}}")


SHAPES = "  shapes:\n  - gpu: RTX 4090\n    minRate: 59\n"
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
    # how much there may be
    ((GPU, f"gpu: {'x' * 65}"), 10, 10, "spec.shapes[0].gpu", "at most 64 characters", "67 characters"),
    (
        (SHAPES, f"  shapes: [{', '.join(f'{{gpu: L4, gpuCount: {count}, minRate: 1}}' for count in range(1, 52))}]\n"),
        9,
        11,
        "spec.shapes",
        "at most 50 entries",
        "",
    ),
    (
        in_spec(f"machines: {{avoid: [{', '.join(f'{{id: {number}, reason: a}}' for number in range(1, 252))}]}}"),
        6,
        21,
        "spec.machines.avoid",
        "at most 250 entries",
        "",
    ),
    (
        in_spec(f"disruption: {{windows: [{', '.join(['{cron: 0 3 1 * *, durationMinutes: 1}'] * 51)}]}}"),
        6,
        25,
        "spec.disruption.windows",
        "at most 50 entries",
        "",
    ),
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
        (SHAPES, "  shapes: []\n"),
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
    (in_spec("judgement: {acceptAbove: 0.39}"), 6, 28, "spec.judgement.acceptAbove", "must be at least 0.4", "0.39"),
    (
        in_benchmark("memory: {reserveGiB: 64}\n  require: {ramGiB: 64}"),
        16,
        26,
        "spec.benchmark.memory.reserveGiB",
        "must be below require.ramGiB, which is 64",
        "64",
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
    # production and warm-up
    (in_benchmark("production: {format: xml}"), 16, 26, "spec.benchmark.production.format", "'regex'", '"xml"'),
    (
        in_benchmark("production: {everyMinutes: 0.5}"),
        16,
        32,
        "spec.benchmark.production.everyMinutes",
        "at least 1",
        "0.5",
    ),
    (
        in_benchmark("production: {command: rate, format: regex}"),
        16,
        5,
        "spec.benchmark.production.pattern",
        "a group named rate",
        "",
    ),
    (
        in_benchmark("production: {command: rate, pattern: '(?P<rate>.)'}"),
        16,
        42,
        "spec.benchmark.production.pattern",
        "only with format: regex",
        '"(?P<rate>.)"',
    ),
    *(
        (in_benchmark(f"{name}: {{{given}}}"), 16, column, f"spec.benchmark.{name}.command", says, got)
        for name, given, column, says, got in (
            ("production", "everyMinutes: 60", 5, "must be given, or everyMinutes left out", ""),
            ("production", "format: json", 5, "must be given, or format left out", ""),
            ("production", "pattern: '(?P<rate>.)', format: regex", 5, "or format and pattern left out", ""),
            ("production", 'command: " ", everyMinutes: 5', 27, "must be given, or everyMinutes left out", '" "'),
            ("warmUp", "timeoutMinutes: 30", 5, "must be given, or timeoutMinutes left out", ""),
            ("warmUp", 'command: "", timeoutMinutes: 5', 23, "or timeoutMinutes left out", '""'),
        )
    ),
    (in_benchmark("warmUp: {timeoutMinutes: 0}"), 16, 30, "spec.benchmark.warmUp.timeoutMinutes", "above 0", "0"),
    # time
    (in_spec("judgement: {plannedHours: 0}"), 6, 29, "spec.judgement.plannedHours", "must be above 0", "0"),
    (in_spec("judgement: {plannedHours: 8761}"), 6, 29, "spec.judgement.plannedHours", "at most 8760", "8761"),
    *(
        (in_window(f'cron: "{cron}"'), 8, 13, "spec.disruption.windows[0].cron", says, f'"{cron}"')
        for cron, says in (
            (
                "0 3 * *",
                "must have five fields, minute, hour, day of month, month, day of week, such as 0 3 * * *; it has 4",
            ),
            ("0 0 3 * * *", "it has 6"),
            ("@daily", "it has 1"),
            ("", "it has 0"),
            ("60 3 * * *", "has a wrong minute: must be 0 to 59"),
            ("0 24 * * *", "has a wrong hour: must be 0 to 23"),
            ("0 3 0 * *", "has a wrong day of month: must be 1 to 31"),
            ("0 3 * 13 *", "has a wrong month: must be 1 to 12 or JAN to DEC"),
            ("0 3 * * 8", "has a wrong day of week: must be 0 to 7 or SUN to SAT"),
            ("0 5-3 * * *", "has a wrong hour"),
            ("*/0 3 * * *", "has a wrong minute"),
            ("0 3 31 2 *", "never comes"),
            ("0 3 30,31 FEB *", "never comes"),
            ("0 3 31 4,6,9,11 *", "never comes"),
            ("0 3 */31 * MON#5", "never comes"),
        )
    ),
    (in_window("cron: * 3 * * *"), 8, 14, "", "not YAML: put what begins with * or & in quotes", ""),
    *(
        (in_window(f"timeZone: {zone}"), 8, 17, "spec.disruption.windows[0].timeZone", says, f'"{zone}"')
        for zone, says in (
            ("Europe/Berlim", "did you mean Europe/Berlin"),
            ("Oslo", "did you mean Europe/Oslo?"),
            ("New York", "did you mean America/New_York?"),
            ("europe/berlin", "did you mean Europe/Berlin?"),
            ("localtime", "must be the IANA name of a time zone"),
            ("Europe", "must be the IANA name of a time zone"),
            ("/etc/passwd", "must be the IANA name of a time zone such as UTC or Europe/Berlin"),
            ("../UTC", "must be the IANA name of a time zone"),
        )
    ),
    (in_window("durationMinutes: 0"), 8, 24, "spec.disruption.windows[0].durationMinutes", "must be above 0", "0"),
    # machines
    (in_spec("machines: {avoid: [{reason: a}]}"), 6, 22, "spec.machines.avoid[0].id", "is missing: vast.ai's id", ""),
    (in_spec("machines: {avoid: [{id: 7}]}"), 6, 22, "spec.machines.avoid[0].reason", "is missing: Why", ""),
    (in_spec("machines: {avoid: [7]}"), 6, 22, "spec.machines.avoid[0]", "a mapping of keys to values", "7"),
    (in_spec("machines: {avoid: [{id: 0, reason: a}]}"), 6, 27, "spec.machines.avoid[0].id", "must be at least 1", "0"),
    (
        in_spec("machines: {avoid: [{id: 7, reason: ' '}]}"),
        6,
        38,
        "spec.machines.avoid[0].reason",
        "must not be empty",
        '" "',
    ),
    (
        in_spec("machines: {prefer: [{id: 7, reason: a}, {id: 7, reason: b}]}"),
        6,
        48,
        "spec.machines.prefer[1].id",
        "machine 7 is already prefer[0]; give each machine once",
        "7",
    ),
    (
        in_spec('machines: {prefer: [{id: 7, reason: a}], avoid: [{id: 7, reason: b, until: "2020-01-01"}]}'),
        6,
        28,
        "spec.machines.prefer[0].id",
        "machine 7 is already avoid[0]; give each machine once",
        "7",
    ),
    (in_pin("until: 2027-01-31"), 6, 48, "spec.machines.avoid[0].until", "quote it if it is text", "2027-01-31"),
    *(
        (in_pin(f'until: "{until}"'), 6, 48, "spec.machines.avoid[0].until", "must be a day such as", f'"{until}"')
        for until in (
            "2027-02-29",
            "20270131",
            "2027-W04-7",
            "2027-01-31T12:00:00",
            "2027-01-31 12:00:00Z",
            "2027-01-31T24:00:00Z",
            "2027-01-31T12:00:00+24:00",
            "soon",
            "",
        )
    ),
    # what comes later
    (in_spec("require: {rental: interruptible}"), 6, 21, "spec.require.rental", "not yet supported", '"interruptible"'),
    # the environment, and vast.ai's limits
    (in_instance("env: {A: 1}"), 14, 14, "spec.instance.env.A", "put it in quotes", ""),
    (in_instance("env: {A: 010}"), 14, 14, "spec.instance.env.A", "quote it if it is text", ""),
    (in_instance("env: {9A: a}"), 14, 15, "spec.instance.env.9A", "not starting with a digit", ""),
    (in_instance("env: {A-B: a}"), 14, 16, "spec.instance.env.A-B", "letters, digits and _", ""),
    (in_instance(f"env: {{A: {'é' * 129}}}"), 14, 14, "spec.instance.env.A", "at most 256 bytes", ""),
    (in_instance("env: {A: [a]}"), 14, 14, "spec.instance.env.A", "must be text", ""),
    (in_instance("env: A=b"), 14, 10, "spec.instance.env", "a mapping of keys to values", ""),
    (in_instance('env: {A: "\\0"}'), 14, 14, "spec.instance.env.A", "must not hold a NUL character", ""),
    (
        in_instance(f"env: {{{', '.join(f'A{number}: a' for number in range(1001))}}}"),
        14,
        10,
        "spec.instance.env",
        "at most 1000 entries",
        "",
    ),
    (
        in_instance(f"env: {{{', '.join(f'A{number:03}: ' + 'v' * 250 for number in range(130))}}}"),
        14,
        10,
        "spec.instance.env",
        "at most 32768 bytes in all",
        "",
    ),
    *(
        (
            in_instance(f"envFrom: [{given}]"),
            14,
            15,
            "spec.instance.envFrom[0]",
            "exactly one of variable, file and",
            "",
        )
        for given in ("{}", "{variable: A, file: a.env}", "{variable: A, secretRef: {name: a}}")
    ),
    (in_instance("envFrom: [{secretRef: {}}]"), 14, 16, "spec.instance.envFrom[0].secretRef.name", "is missing", ""),
    *(
        (
            in_instance(f"envFrom: [{{secretRef: {{name: {name}}}}}]"),
            14,
            34,
            "spec.instance.envFrom[0].secretRef.name",
            says,
            "",
        )
        for name, says in (("A_B", "does not fit: Name of the Secret"), ("a" * 254, "at most 253 characters"))
    ),
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
