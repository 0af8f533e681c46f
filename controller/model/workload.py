"""What runs on each instance, and how it is measured. Part of the manifest."""

import re
from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, field_validator, model_validator

from controller.model.section import Minutes, Number, Problem, Section, refuse, unless_compiles

ENV_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
ENV_VALUE_BYTES = 256  # of one value, vast.ai's limit
ENV_BYTES = 32_768  # of all names and values together, vast.ai's limit
ON_START_BYTES = 4000  # vast.ai takes 4048, and adds a little of its own

_Text = Annotated[str, Field(max_length=32_768)]
_Format = Literal["cuzk", "json", "regex"]
_Pattern = Annotated[str, Field(max_length=1000)]


class SecretRef(Section):
    """A Secret in the cluster."""

    name: Annotated[str, Field(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", max_length=253)] = Field(
        description="Name of the Secret, in the fleet's namespace. Required."
    )


class EnvSource(Section):
    """One place to take environment variables from; exactly one of the fields is set."""

    variable: str | None = Field(
        None,
        description="Name of a variable in the controller's own environment; not in a cluster. Left out: none.",
    )
    file: str | None = Field(
        None,
        description="File of NAME=value lines, by its path from the working directory; not in a cluster. "
        "Left out: none.",
    )
    secret_ref: SecretRef | None = Field(
        None, description="A Secret in the fleet's namespace, all its keys; only in a cluster. Left out: none."
    )

    @field_validator("variable")
    @classmethod
    def _posix(cls, variable: str | None) -> str | None:
        if variable is not None and not ENV_NAME.match(variable):
            raise ValueError("must be a variable's name: letters, digits and _, not starting with a digit")
        return variable

    @model_validator(mode="after")
    def _one(self) -> Self:
        if [self.variable, self.file, self.secret_ref].count(None) != 2:  # noqa: PLR2004 - all but one
            raise ValueError("must have exactly one of variable, file and secretRef")
        return self


def env_problems(env: dict[str, str]) -> list[Problem]:
    """What vast.ai would not take of these variables; names are told, values never."""
    problems: list[Problem] = []
    for name, value in env.items():
        if not ENV_NAME.match(name):
            problems.append(((name,), "must be named by letters, digits and _, not starting with a digit"))
        if len(value.encode()) > ENV_VALUE_BYTES:
            problems.append(((name,), f"must be at most {ENV_VALUE_BYTES} bytes, which is vast.ai's limit"))
        if "\0" in value:
            problems.append(((name,), "must not hold a NUL character"))
    if sum(len(name.encode()) + len(value.encode()) for name, value in env.items()) > ENV_BYTES:
        problems.append(((), f"must be at most {ENV_BYTES} bytes in all, which is vast.ai's limit"))
    return problems


class InstanceSpec(Section):
    """What runs on each instance."""

    image: Annotated[str, Field(pattern=r"^[A-Za-z0-9][^\s]*$", max_length=1024)] = Field(
        description="Container image, such as example/prover:1.4. Required."
    )
    env: Annotated[dict[str, SecretStr], Field(max_length=1000)] = Field(
        default_factory=dict,
        description="Environment variables, name to text; values are shown nowhere. Wins over envFrom. Default: none.",
    )
    env_from: Annotated[tuple[EnvSource, ...], Field(max_length=100)] = Field(
        (),
        description="More variables, each from one place; in a cluster from its Secrets, elsewhere from the "
        "controller's own environment and files. Later ones win. Default: none.",
    )
    on_start: str = Field(
        "", description="Shell lines run as root at each start of the container, at most 4000 bytes. Default: nothing."
    )
    start: _Text = Field(
        "", description="Shell command that starts production on an admitted instance. Default: nothing to start."
    )
    stop: _Text = Field(
        "",
        description="Shell command that quiesces production before a benchmark or a release. Default: nothing.",
    )
    drain_seconds: Annotated[Number, Field(le=86_400)] = Field(
        60, description="Time that the stop command gets before it is given up, in seconds. Default 60."
    )

    @field_validator("env")
    @classmethod
    def _fits(cls, env: dict[str, SecretStr]) -> dict[str, SecretStr]:
        refuse(env_problems({name: value.get_secret_value() for name, value in env.items()}))
        return env

    @field_validator("on_start")
    @classmethod
    def _short(cls, on_start: str) -> str:
        size = len(on_start.encode())
        if size > ON_START_BYTES:
            raise ValueError(f"must be at most {ON_START_BYTES} bytes, it is {size}; put the rest in the image")
        return on_start


class Prepare(Section):
    """What must be on an instance before it can be measured: parameters, caches."""

    command: _Text = Field("", description="Shell command that prepares the instance. Default: nothing to prepare.")
    timeout_minutes: Minutes = Field(90, description="Time it may take, in minutes. Default 90.")
    done_when: _Text = Field(
        "",
        description="Regular expression; a line it is found in ends the preparation. Default: the command's end does.",
    )

    @field_validator("done_when")
    @classmethod
    def _compiles(cls, done_when: str) -> str:
        if wrong := unless_compiles(done_when):
            raise ValueError(wrong)
        return done_when


class Memory(Section):
    """How much memory the benchmark needs; sizes CONCURRENCY."""

    reserve_gib: Number = Field(0, description="Memory that is used before the first piece of work, in GiB. Default 0.")
    per_proof_gib: Annotated[Number, Field(gt=0)] = Field(
        1, description="Memory of each piece of work in flight, in GiB, above 0. Default 1."
    )


def _pattern_problems(form: str, pattern: str) -> list[Problem]:
    """What is wrong with a pattern beside its format."""
    if wrong := unless_compiles(pattern):
        return [(("pattern",), wrong)]
    if form == "regex" and "rate" not in re.compile(pattern).groupindex:
        return [(("pattern",), "format regex needs a pattern with a group named rate, such as (?P<rate>[0-9.]+)")]
    if pattern and form != "regex":
        return [(("pattern",), "is read only with format: regex")]
    return []


def _idle(section: "WarmUp | Production") -> list[Problem]:
    """That there is no command, though something is said of it. A fleet's own dump says all, the defaults too."""
    fields, given = type(section).model_fields, section.model_fields_set - {"command"}
    if "command" in section.model_fields_set:
        given = {name for name in given if getattr(section, name) != fields[name].default}
    names = " and ".join(str(fields[name].alias) for name in fields if name in given)
    idle = bool(names) and not section.command.strip()
    return [(("command",), f"must be given, or {names} left out")] if idle else []


class WarmUp(Section):
    """What fills an instance's caches with little memory, before it is measured with all of it."""

    command: _Text = Field(
        "",
        description="Shell command run once a container, before its first benchmark; it sees what benchmark.command "
        "sees, with CONCURRENCY=1 and PARTITION_WORKERS=2. Default: none.",
    )
    timeout_minutes: Minutes = Field(30, description="Time it may take, in minutes. Default 30.")

    @model_validator(mode="after")
    def _has_a_command(self) -> Self:
        refuse(_idle(self))
        return self


class Production(Section):
    """Reading the rate of ordinary production, without disturbing it."""

    command: _Text = Field(
        "",
        description="Shell command that prints the rate of ordinary production, and does not disturb it; it sees what "
        "benchmark.command sees. Default: none, the rate is not read.",
    )
    every_minutes: Annotated[Minutes, Field(ge=1)] = Field(
        60, description="How often it is read, in minutes, at least 1. Default 60."
    )
    format: _Format = Field("json", description="How its output is read, as benchmark.format says. Default json.")
    pattern: _Pattern = Field("", description="For format regex, as benchmark.pattern. Default: none.")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        refuse(_idle(self) or _pattern_problems(self.format, self.pattern))
        return self


class Benchmark(Section):
    """How an instance is measured."""

    unit: Annotated[str, Field(pattern=r"^[^/\s]+/(s|min|h)$", max_length=40)] = Field(
        "proofs/h", description="Unit of every rate of this fleet: work per s, min or h. Default proofs/h."
    )
    prepare: Prepare = Field(Prepare(), description="What to do once before the first benchmark.")
    warm_up: WarmUp = Field(WarmUp(), description="What to run with little memory before the first benchmark.")
    command: Annotated[_Text, Field(pattern=r"\S")] = Field(
        description="Shell command that prints the log to read the rate from; it sees GPU_COUNT, RAM_GIB, CPU_CORES, "
        "CONCURRENCY, WARMUP, and PARTITION_WORKERS, which is empty but in a warm-up. Required."
    )
    format: _Format = Field(
        "cuzk",
        description="How the log is read: cuzk, json (its last object with a rate) or regex. Default cuzk.",
    )
    pattern: _Pattern = Field(
        "",
        description="For format regex: one with a group (?P<rate>...), perhaps (?P<unit>...). Default: none.",
    )
    timeout_minutes: Minutes = Field(45, description="Time one benchmark may take, in minutes. Default 45.")
    memory: Memory = Field(Memory(), description="The benchmark's need of memory, which sizes CONCURRENCY.")
    recheck_hours: Annotated[Number, Field(gt=0)] = Field(
        24, description="How old a rate may get before it is measured again, in hours. Default 24."
    )
    production: Production = Field(Production(), description="Reading the rate of ordinary production.")

    @model_validator(mode="after")
    def _pattern_fits_format(self) -> Self:
        refuse(_pattern_problems(self.format, self.pattern))
        return self
