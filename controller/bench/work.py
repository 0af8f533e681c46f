"""What Bench is asked to do, and what it answers. The loop builds a Target and a Work, and keeps the Result."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from controller.model.instance import Run
from controller.model.market import Endpoint
from controller.model.reasons import Reason

Format = Literal["cuzk", "json", "regex"]

RanOut = tuple[tuple[float | None, int], ...]
"""Memory, GiB (None: not known), and the width of a run of this work that ran out of it, on any machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One instance and the ways to it. `host_key` is what it must show, OpenSSH format; None: pin what it shows now."""

    nonce: str
    instance_id: int
    machine_id: int
    endpoints: tuple[Endpoint, ...]  # in the order to try: direct first, then proxy
    host_key: str | None = None
    gpu_fraction: float | None = None  # of its machine's GPUs, 0 to 1; None: not known
    neighbours: int = 0  # other instances of ours at work on its machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What runs on an instance of a fleet, and how it is measured. `env` values are secrets, and never shown."""

    fleet: str
    shape: str
    workload: str  # fingerprint
    gpu_count: int
    image: str = ""  # as the manifest names it
    unit: str  # of the rate: work per s, min or h, such as proofs/h
    command: str
    format: Format
    pattern: str = ""  # for regex: has a group `rate`, perhaps a group `unit`
    timeout_s: float = 45 * 60.0
    reserve_gib: float = 0.0  # memory used before the first piece of work
    per_proof_gib: float = 1.0  # of each piece of work in flight
    prepare_command: str = ""  # empty: nothing to prepare
    prepare_timeout_s: float = 90 * 60.0
    done_when: str = ""  # a regular expression; empty: the command's end
    warmup_command: str = ""  # run once a container, before its first benchmark; empty: the benchmark warms up itself
    warmup_timeout_s: float = 30 * 60.0
    production_command: str = ""  # prints the rate of what works; empty: it cannot be read
    production_format: Format = "json"
    production_pattern: str = ""
    start: str = ""
    stop: str = ""
    drain_seconds: float = 60.0  # what `stop` may take
    env: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a job ended. Its texts hold no value of `env`."""

    ok: bool
    reason: Reason
    detail: str = ""  # one line for a person
    host_key: str | None = None  # what the instance showed, to be pinned; None: it was never reached
    run: Run | None = None  # of measure: always; of read: if it is ok; of other jobs: never
