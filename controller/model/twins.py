"""What the API server is to refuse beyond what the models' types say: the loader's rules in CEL. Used by `crd.py`.

Each rule here is the twin of a validator of the manifest's models, in its words. `ONLY_THE_LOADER` has the rules that
have no twin; an object that breaks one of them is stored, and the operator says so in a condition. How a file was
written, and how long it is, an API server does not see.

A rule names the field below the place where it stands, as far as CEL lets it: of a list it cannot name the entry. What
a rule may cost is reckoned from the sizes that the schema allows; they are bounded in the models, or beside the rule
where it implies the bound.
"""

from collections.abc import Iterator

from controller.model import cron, gpus, regions
from controller.model.structural import RULES, Schema
from controller.model.workload import ENV_BYTES, ENV_VALUE_BYTES, ON_START_BYTES, Production, WarmUp

ONLY_THE_LOADER = {
    "spec.benchmark.pattern": "whether it compiles: CEL knows RE2's regular expressions, which are not Python's",
    "spec.benchmark.production.pattern": "likewise",
    "spec.benchmark.prepare.doneWhen": "likewise",
    "spec.disruption.windows[].cron": "whether a range ends before it starts, and whether such a day ever comes: CEL "
    "may not reckon that much",
}
"""By field, what a file is refused for and an object is not."""

ONLY_IN_A_CLUSTER = {"EnvSource": ("secretRef",)}
"""The fields that a source of environment variables has there: the others read the controller's own environment and
disk, which are not for the author of a fleet to read."""

_Rule = tuple[str, str] | tuple[str, str, str]
"""CEL, what is wrong where it is not true, and the field below that this is said of."""


def _rules(*rules: _Rule) -> Schema:
    return {
        RULES: [
            {"rule": rule, "message": message, **({"fieldPath": place[0]} if place else {})}
            for rule, message, *place in rules
        ]
    }


def _all(*terms: str) -> str:
    return " && ".join(terms)


def _any(*terms: str) -> str:
    return " || ".join(terms)


def _one_of(words: tuple[str, ...]) -> str:
    return str(list(words))  # Python's spelling of such a list is CEL's too


def _model_of(name: str) -> str:
    """CEL for what tells GPU models apart in a name, as `gpus` has it. Of marks, only spaces, - and _ may be in it."""
    plain = f"{name}.lowerAscii()"
    for word in (" ", "_", "-", "nvidia", "geforce", "generation", "amd", "tesla"):
        plain += f".replace('{word}', '')"
    return f"{plain}.replace('tisuper', 'sti').replace('super', 's').replace('quadrortx', 'qrtx')"


def _same_shape(one: str, other: str) -> str:
    counts = [f"(has({shape}.gpuCount) ? {shape}.gpuCount : 1)" for shape in (one, other)]
    return f"{' == '.join(counts)} && {_model_of(f'{one}.gpu')} == {_model_of(f'{other}.gpu')}"


def _each_variable(good: str, message: str) -> dict[str, str]:
    """A rule for every variable of an environment, that names the variable.

    It stands at the map: of a text that breaks a rule of its own the API server shows what it is.
    """
    named = f"self.filter(name, !({good}))[0] + ' {message}'"
    return {"rule": f"self.all(name, {good})", "message": message, "messageExpression": named}


def _cron() -> Iterator[_Rule]:
    """A rule for the number of fields, and one for each of them."""
    five = r"self.matches(r'^\s*\S+(\s+\S+){4}\s*$')"
    yield five, f"must have five fields, {', '.join(cron.FIELDS)}, such as 0 3 * * *"
    for before, (name, bounds) in enumerate(cron.FIELDS.items()):
        fits = rf"self.matches(r'(?i)^\s*(\S+\s+){{{before}}}{cron.PATTERNS[name]}(\s|$)')"
        yield _any(f"!{five}", fits), f"has a wrong {name}: must be {bounds}, written as *, 3, 1-5, 1,5 or */2"


def _pattern() -> Iterator[_Rule]:
    """How a pattern goes with its format."""
    regex = "(has(self.format) && self.format == 'regex')"
    yield (
        _any(f"!{regex}", "(has(self.pattern) && self.pattern.contains('(?P<rate>'))"),
        "format regex needs a pattern with a group named rate, such as (?P<rate>[0-9.]+)",
        ".pattern",
    )
    yield (
        _any("!has(self.pattern)", "self.pattern == ''", regex),
        "is read only with format: regex",
        ".pattern",
    )


def _command(section: type[WarmUp | Production]) -> Iterator[_Rule]:
    """That there is a command where something else is said of it: beside an empty one, other than the default."""
    others = {str(field.alias): field.default for name, field in section.model_fields.items() if name != "command"}
    told = [f"(has(self.{name}) && (!has(self.command) || self.{name} != {_cel(at)}))" for name, at in others.items()]
    given = r"(has(self.command) && self.command.matches(r'\S'))"
    yield _any(given, f"!({_any(*told)})"), f"must be given, or {' and '.join(others)} left out", ".command"


def _cel(value: str | float) -> str:
    return repr(value if isinstance(value, str) else float(value))


_BY_ID = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id"]}
_REGIONS = tuple(sorted({*regions.COUNTRIES, *regions.GROUPS}))
_CLOCK = r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]{1,6})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])"
_ONCE = _rules(("self == oldSelf", "does not change once it is written"))

EXTRAS: dict[str, dict[str, Schema]] = {
    "FleetSpec": {
        "": _rules(
            (
                _any(
                    "!has(self.target.instances)",
                    "self.shapes.map(s, has(s.minInstances) ? s.minInstances : 0).sum() <= self.target.instances",
                ),
                "must be at least the sum of the shapes' minInstances",
                ".target.instances",
            ),
            (
                _any(
                    "!has(self.require) || !has(self.require.ramGiB) || self.require.ramGiB == 0.0",
                    "!has(self.benchmark.memory) || !has(self.benchmark.memory.reserveGiB)",
                    "self.benchmark.memory.reserveGiB < self.require.ramGiB",
                ),
                "must be below require.ramGiB: else no memory is left for the work",
                ".benchmark.memory.reserveGiB",
            ),
        ),
        "shapes": {"minItems": 1}
        | _rules(
            (
                f"self.all(s, self.exists_one(t, {_same_shape('s', 't')}))",
                "must have each GPU model with each gpuCount once",
            )
        ),
        "regions": {"maxItems": len(regions.COUNTRIES)},
        "regions[]": {"maxLength": 16}
        | _rules(
            (
                f"self.trim().upperAscii() in {_one_of(_REGIONS)}",
                f"must be one of the groups {', '.join(regions.GROUPS)} or a two-letter country code such as NO",
            )
        ),
    },
    "Target": {"": _rules(("has(self.rate) != has(self.instances)", "must have exactly one of rate and instances"))},
    "Judgement": {
        "": _rules(
            (
                _any("!has(self.replaceBelow)", "!has(self.acceptAbove)", "self.replaceBelow < self.acceptAbove"),
                "must be below acceptAbove",
                ".replaceBelow",
            )
        )
    },
    "Shape": {
        "": _rules(
            (
                _any("!has(self.minInstances)", "!has(self.maxInstances)", "self.minInstances <= self.maxInstances"),
                "must not be above maxInstances",
                ".minInstances",
            )
        ),
        "gpu": _rules(
            (
                f"{_model_of('self')} in {_one_of(gpus.known_keys())}",
                "no GPU on vast.ai has this name; write it as vast.ai does, such as RTX 4090",
            )
        ),
    },
    "Require": {
        "cuda": {"maxLength": 5}
        | _rules((r"self.matches(r'^[0-9]{1,2}(\.[0-9]{1,2})?$')", 'must be a version such as "12.4"')),
        "rental": _rules(
            ("self == 'on-demand'", "interruptible is not yet supported; leave it out or write on-demand")
        ),
    },
    "EnvSource": {
        "": {"description": "One Secret to take environment variables from."},
        "secretRef": {"description": "A Secret in the fleet's namespace, all its keys. Required."},
    },
    "InstanceSpec": {
        "env": {
            RULES: [
                _each_variable(
                    "name.matches('^[A-Za-z_][A-Za-z0-9_]*$')",
                    "must be named by letters, digits and _, not starting with a digit",
                ),
                _each_variable(
                    f"size(bytes(self[name])) <= {ENV_VALUE_BYTES}", f"must be at most {ENV_VALUE_BYTES} bytes"
                ),
                _each_variable(r"!self[name].contains('\u0000')", "must not hold a NUL character"),
                {
                    "rule": f"self.map(name, size(bytes(name)) + size(bytes(self[name]))).sum() <= {ENV_BYTES}",
                    "message": f"must be at most {ENV_BYTES} bytes in all, which is vast.ai's limit",
                },
            ]
        },
        "env{}": {"maxLength": ENV_VALUE_BYTES},
        "onStart": {"maxLength": ON_START_BYTES}
        | _rules(
            (
                f"size(bytes(self)) <= {ON_START_BYTES}",
                f"must be at most {ON_START_BYTES} bytes; put the rest in the image",
            )
        ),
    },
    "Benchmark": {"": _rules(*_pattern())},
    "Production": {"": _rules(*_pattern(), *_command(Production))},
    "WarmUp": {"": _rules(*_command(WarmUp))},
    "Disruption": {
        "": _rules(
            (
                _any("!has(self.maxSurge)", "!has(self.maxUnavailable)", "self.maxSurge + self.maxUnavailable > 0"),
                "nothing can ever be replaced with maxSurge and maxUnavailable both 0; allow one of them",
            )
        )
    },
    "Window": {
        "cron": _rules(*_cron()),
        "timeZone": _rules(
            (
                _all(
                    "self.matches('^[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*$')",
                    "!(self in ['Local', 'localtime', 'Factory'])",
                    "timestamp('2026-01-01T00:00:00Z').getFullYear(self) > 0",  # an error, where there is no such zone
                ),
                "must be the IANA name of a time zone such as UTC or Europe/Berlin",
            )
        ),
    },
    "Machines": {
        "avoid": _BY_ID,
        "prefer": _BY_ID,
        "": _rules(
            (
                _any(
                    "!has(self.avoid)",
                    "!has(self.prefer)",
                    "!self.avoid.exists(a, self.prefer.exists(p, p.id == a.id))",
                ),
                "must not name a machine that avoid names",
                ".prefer",
            )
        ),
    },
    "Pin": {
        "until": {"maxLength": 40}
        | _rules(
            (
                _all(
                    f"self.matches(r'^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}(T{_CLOCK})?$')",
                    "!self.startsWith('0000')",
                    "!format.date().validate(self.substring(0, 10)).hasValue()",
                ),
                'must be a day such as "2027-01-31", or a time "2027-01-31T12:00:00Z"',
            )
        )
    },
    "InstanceSpecView": {"": _ONCE},
    "MachineSpecView": {"": _ONCE},
}
"""What the schemas say beside the models."""
