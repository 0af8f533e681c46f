"""A Machine in a cluster: one physical host, what was measured on it, and what that says. Shared by all fleets."""

from pydantic import Field

from controller.model.instance import Decision, RunKind
from controller.model.views import SHORT, Generation, Moment, Tally, View, Word

MAX_RUNS = 256


class MachineSpecView(View):
    """Which machine it is; it does not change."""

    machine_id: Tally = Field(description="vast.ai's id of it.")
    owner: str = Field(max_length=SHORT, description="Name of the controller that measured it.")


class StandingView(View):
    """What the runs of one shape say of the machine."""

    shape: str = Field(description="The shape: GPU model and count, such as RTX 4090 x1.")
    decision: Decision | None = Field(None, description="What they say.")
    rate: float | None = Field(None, description="Rate as believed, in the benchmark's unit.")
    p_good: float | None = Field(None, description="Probability that it is at least minRate.")
    runs: Tally | None = Field(None, description="Runs that this rests on.")


class RunView(View):
    """One measurement, and the conditions it was made under. Without a rate it says only that it failed."""

    id: str = Field(description="What tells it from all others.")
    nonce: str = Field(description="The rental that was measured.")
    fleet: str = Field(description="The fleet that it was measured for.")
    machine_id: Tally = Field(description="The machine that it was measured on.")
    shape: str = Field(description="The shape: GPU model and count, such as RTX 4090 x1.")
    workload: str = Field(description="Fingerprint of what ran, and how it was measured.")
    started_at: Moment = Field(description="When it began.")
    ended_at: Moment = Field(description="When it ended.")
    reason: Word = Field(description="Measured, or why there is no rate.")
    kind: RunKind | None = Field(None, description="Benchmark, or Production: read off ordinary work.")
    detail: str | None = Field(None, description="More of it, for people.")
    rate: float | None = Field(None, description="The rate, in unit.")
    unit: str | None = Field(None, description="Its unit.")
    error: float | None = Field(None, description="Relative standard error of the rate.")
    concurrency: int | None = Field(None, description="Pieces of work in flight.")
    count: int | None = Field(None, description="Pieces of work done.")
    ram_gib: float | None = Field(None, description="Memory of the instance, in GiB.")
    cpu_cores: int | None = Field(None, description="Cores that might be used.")
    gpu_uuid: str | None = Field(None, description="Of all its GPUs, with commas.")
    gpu_fraction: float | None = Field(None, description="Its share of the machine's GPUs, 0 to 1.")
    neighbours: int | None = Field(None, description="Other instances of ours at work on the machine meanwhile.")
    power_limit_w: float | None = Field(None, description="Power limit of the most limited GPU, in W.")
    power_default_w: float | None = Field(None, description="That GPU's ordinary limit, in W.")
    throttled: str | None = Field(None, description="What slowed its GPUs, in nvidia-smi's words.")
    temperature_c: float | None = Field(None, description="Of the hottest GPU, in degrees Celsius.")
    cpu_throttled: float | None = Field(None, description="Share of the time in which a quota held its cores back.")
    driver: str | None = Field(None, description="The GPUs' driver.")
    image: str | None = Field(None, description="The container image.")
    disturbed: bool | None = Field(None, description="Whether its own log or telemetry says that it was disturbed.")


class RestView(View):
    """Why nothing is rented there for a while."""

    until: Moment = Field(description="Until when.")
    failures: Tally = Field(description="Failures in a row.")
    reason: Word = Field(description="The last one, in one word.")
    detail: str | None = Field(None, description="The last one, for people.")


class MachineStatusView(View):
    """What is known of the machine; written by the controller alone."""

    observed_generation: Generation = None
    gpu: str | None = Field(None, description="GPU model, in vast.ai's spelling.")
    shapes: tuple[StandingView, ...] = Field((), max_length=100, description="What its runs say, by shape.")
    rate: float | None = Field(None, description="Rate of the shape that stands best.")
    p_good: float | None = Field(None, description="Probability that this rate is at least minRate.")
    run_count: Tally | None = Field(None, description="Runs of it that are kept.")
    last_run_at: Moment | None = Field(None, description="When the last run ended.")
    quarantined_until: Moment | None = Field(None, description="Until when nothing is rented there, if so.")
    backoff: RestView | None = Field(None, description="Why nothing is rented there for a while, if so.")
    runs: tuple[RunView, ...] = Field(
        (), max_length=MAX_RUNS, description="What was measured; of more than fit, the last."
    )
