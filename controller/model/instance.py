"""What we rent, from the intent to rent it until it is proven gone, and what was measured on it. Kept by `ledger/`."""

from dataclasses import dataclass
from enum import StrEnum

from controller.model.money import MicroUsd
from controller.model.reasons import Reason


class Phase(StrEnum):
    """Where an instance is in its life. All but GONE bill, or may bill, and count against the budget."""

    INTENDED = "Intended"  # written down; the create call may be on its way
    UNCLEAR = "Unclear"  # the create call's answer was lost; its label will tell
    LAUNCHING = "Launching"  # has an id; its container is being made
    PREPARING = "Preparing"  # running; being reached, and its parameters and caches made
    MEASURING = "Measuring"  # its first benchmark is running
    ADMITTED = "Admitted"  # counts towards the target
    RELEASING = "Releasing"  # its production is being quiesced before it is destroyed
    DESTROYING = "Destroying"  # being destroyed, until absent from two complete listings
    GONE = "Gone"  # proven absent, or never rented


@dataclass(frozen=True, slots=True, kw_only=True)
class Instance:
    """One rental, written before it is rented. Times are unix seconds, money micro-dollars."""

    nonce: str
    fleet: str
    label: str
    shape: str  # the shape's key, e.g. "RTX 4090 x1"
    gpu: str
    gpu_count: int
    machine_id: int
    price: MicroUsd  # per hour: the most it may cost, the offer's until seen, then the dearest seen
    disk_gib: float
    workload: str  # fingerprint of what runs on it
    phase: Phase
    phase_since: float
    reason: Reason
    detail: str = ""
    created_at: float = 0.0
    offer_id: int | None = None
    host_id: int | None = None
    country: str | None = None
    gpu_fraction: float | None = None  # of its machine's GPUs, 0 to 1; None: not known
    instance_id: int | None = None
    launched_at: float | None = None  # first seen running
    prepared_at: float | None = None
    admitted_at: float | None = None
    checked_at: float | None = None  # last benchmark's end, good or bad
    read_at: float | None = None  # last reading of production's rate, good or bad
    read_fault: str = ""  # why that reading gave no rate; empty: it did
    ends_at: float | None = None  # the contract's end
    absent_since: float | None = None  # first complete listing without it
    trouble_since: float | None = None  # first sight of the state that is being borne with (offline, stopped, ...)
    failures: int = 0  # failed tries within this phase
    not_before: float = 0.0  # the next try in this phase waits until then
    host_key: str | None = None  # the SSH host key pinned at first contact, OpenSSH format
    destroy_calls: int = 0
    cost: MicroUsd = 0  # billed so far by our own clock and the live price
    cost_until: float | None = None
    ended_at: float | None = None

    @property
    def billable(self) -> bool:
        """Whether it bills or may bill: everything not proven gone."""
        return self.phase is not Phase.GONE


class RunKind(StrEnum):
    """How a rate was come by."""

    BENCHMARK = "Benchmark"  # production stood still for it
    PRODUCTION = "Production"  # read off ordinary work


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One measurement of one instance, with the conditions it was made under.

    A run without a rate says only that it failed.
    """

    id: str
    nonce: str
    fleet: str
    machine_id: int
    shape: str
    workload: str
    started_at: float
    ended_at: float
    reason: Reason  # MEASURED, or why there is no rate
    kind: RunKind = RunKind.BENCHMARK
    detail: str = ""
    rate: float | None = None  # in `unit`
    unit: str = ""
    error: float | None = None  # relative standard error of the rate
    concurrency: int | None = None
    count: int | None = None  # pieces of work in the run
    ram_gib: float | None = None
    cpu_cores: int | None = None  # that may be used: those seen, or the cgroup's quota
    gpu_uuid: str = ""  # of all its GPUs, sorted, with commas
    gpu_fraction: float | None = None  # of its machine's GPUs, 0 to 1
    neighbours: int = 0  # other instances of ours at work on its machine meanwhile
    power_limit_w: float | None = None  # of the GPU whose limit is lowest against its default
    power_default_w: float | None = None
    throttled: str = ""  # what slowed its GPUs during the run, in nvidia-smi's words, sorted, with commas
    temperature_c: float | None = None  # the hottest GPU's, of all that was seen during the run
    cpu_throttled: float | None = None  # share of the run's time in which the quota held its cores back
    driver: str = ""
    image: str = ""  # as the manifest names it; with a digest only if that does
    disturbed: bool = False  # something in the run's own log or telemetry says so

    def __hash__(self) -> int:
        """By its id: thousands are hashed at each pass."""
        return hash(self.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backoff:
    """Something not to be tried again before `until`."""

    scope: str  # offer, machine, shape, fleet, account
    key: str
    until: float
    failures: int
    reason: Reason
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Something changed. `about`: the fleet's or the instance's name."""

    at: float
    fleet: str
    about: str
    kind: str  # Normal or Warning, as Kubernetes has them
    reason: Reason
    message: str


class Decision(StrEnum):
    """What the runs say about an instance."""

    UNKNOWN = "Unknown"  # no usable run yet
    ACCEPTED = "Accepted"  # fast enough, re-checked now and then
    PROBATION = "Probation"  # works and counts; measured again soon
    CHALLENGED = "Challenged"  # works, but a successor is tried
    REJECTED = "Rejected"  # too slow; replaced at once


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """What each way to go on is expected to cost, in hours of the instance's rent."""

    keep: float  # its rent for as long as it is planned to work, times P(too slow)
    measure: float  # what a run takes, and the best of the other two afterwards
    replace: float  # finding a machine that is fast enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the runs say, with the evidence in one line."""

    decision: Decision
    p_good: float | None = None  # P(rate >= floor)
    rate: float | None = None  # the posterior median, in the benchmark's unit
    low: float | None = None  # the rate is above it with a probability of 95 %
    high: float | None = None  # and below this, likewise
    runs: int = 0
    independent: float = 0.0  # what the runs are worth, counting close ones less
    disturbed: float | None = None  # probability that the last run was disturbed
    costs: Costs | None = None  # None: decided by thresholds alone
    next_run_at: float | None = None  # unix seconds
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """What finding one more instance of a shape takes that is fast enough, as far as its machines are known."""

    shape: str
    hours: float  # of rent, failed tries included
    cost: MicroUsd | None  # the same in money, at what such instances cost now; None: none is priced
    mean: float  # rate of a typical machine, in the benchmark's unit
    sd: float  # between machines, relative
    machines: int  # measured ones behind this
    run_hours: float  # what a run takes
    provision_hours: float  # from the rental to the first run, failed rentals included


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Work under way on an instance in this process. `progress`: how far it is, and the last line printed."""

    kind: str  # prepare, measure, read, start, quiesce
    nonce: str
    since: float
    progress: str = ""
    progress_at: float = 0.0
