"""An Instance in a cluster: one rental, written before it is rented, and owned by its Fleet.

Its spec is what was agreed to, and does not change; its status is what became of it, and what is thought of it.
"""

from pydantic import Field

from controller.model.instance import Decision, Phase
from controller.model.views import SHORT, Conditions, Generation, Moment, Tally, View, Word


class InstanceSpecView(View):
    """What was agreed to when it was rented; it does not change."""

    fleet: str = Field(max_length=SHORT, description="Name of the Fleet that it was rented for.")
    owner: str = Field(max_length=SHORT, description="Name of the controller, as the label on vast.ai has it.")
    label: str = Field(max_length=4 * SHORT, description="Its label on vast.ai, by which it is found again.")
    nonce: str = Field(max_length=SHORT, description="What tells this rental from all others.")
    shape: str = Field(max_length=SHORT, description="The shape: GPU model and count, such as RTX 4090 x1.")
    gpu: str = Field(max_length=SHORT, description="GPU model, in vast.ai's spelling.")
    gpu_count: Tally = Field(description="Number of its GPUs.")
    machine_id: Tally = Field(description="vast.ai's id of its machine.")
    host_id: Tally | None = Field(None, description="vast.ai's id of the machine's owner.")
    country: str | None = Field(None, max_length=SHORT, description="ISO code of its country.")
    gpu_fraction: float | None = Field(None, description="Its share of its machine's GPUs, 0 to 1.")
    disk_gib: float = Field(description="Its disk, in GiB.")
    workload: str = Field(max_length=SHORT, description="Fingerprint of what runs on it, and how it is measured.")
    offer_id: Tally | None = Field(None, description="The offer that was taken; none where it was adopted.")
    created_at: Moment = Field(description="When it was written down, just before it was rented.")
    price_per_hour: float = Field(ge=0, description="USD an hour: the most that it was agreed to cost, with its disk.")


class InstanceStatusView(View):
    """What became of the rental, and what is thought of it; written by the controller alone."""

    observed_generation: Generation = None
    conditions: Conditions = ()
    phase: Phase | None = Field(
        None, description="Where it is in its life. All but Gone bill, or may bill, and count against the budget."
    )
    phase_since: Moment | None = Field(None, description="Since when it is there.")
    reason: Word | None = Field(None, description="Why, in one word; `vastfleet explain REASON` says what to do.")
    detail: str | None = Field(None, description="Why, for people.")
    instance_id: Tally | None = Field(None, description="vast.ai's id of it, once known.")
    price_per_hour: float | None = Field(None, ge=0, description="USD an hour with its disk: the dearest seen.")
    launched_at: Moment | None = Field(None, description="When it was first seen running.")
    prepared_at: Moment | None = Field(None, description="When it was prepared.")
    admitted_at: Moment | None = Field(None, description="When it was first found fast enough.")
    checked_at: Moment | None = Field(None, description="When its last benchmark ended, well or not.")
    read_at: Moment | None = Field(None, description="When its production's rate was last read, well or not.")
    read_fault: str | None = Field(None, description="Why that reading gave no rate, if so.")
    ends_at: Moment | None = Field(None, description="When its contract ends.")
    absent_since: Moment | None = Field(None, description="Since when complete listings lack it, if so.")
    trouble_since: Moment | None = Field(None, description="Since when it does not run as it should, if so.")
    failures: Tally | None = Field(None, description="Failed tries in this phase.")
    not_before: Moment | None = Field(None, description="When it may be tried again.")
    host_key: str | None = Field(None, description="Its SSH host key, as at the first contact.")
    destroy_calls: Tally | None = Field(None, description="How often vast.ai was asked to destroy it.")
    cost: float | None = Field(None, description="USD billed so far, by the controller's own clock.")
    cost_until: Moment | None = Field(None, description="Until when that is counted.")
    ended_at: Moment | None = Field(None, description="When it was proven gone.")
    decision: Decision | None = Field(None, description="What its runs say of it.")
    p_good: float | None = Field(None, description="Probability that its rate is at least minRate.")
    rate: float | None = Field(None, description="Its rate as believed, in the benchmark's unit.")
    low: float | None = Field(None, description="What its rate is above with a probability of 95 %.")
    high: float | None = Field(None, description="What its rate is below with a probability of 95 %.")
    runs: Tally | None = Field(None, description="Runs that this rests on.")
    independent: float | None = Field(None, description="What these are worth, counting close ones less.")
    disturbed: float | None = Field(None, description="Probability that the last run was disturbed.")
    keep_hours: float | None = Field(None, description="What keeping it is expected to cost, in hours of its rent.")
    measure_hours: float | None = Field(None, description="What measuring it again is, likewise.")
    replace_hours: float | None = Field(None, description="What replacing it is, likewise.")
    next_run_at: Moment | None = Field(None, description="When it is to be measured next.")
    line: str | None = Field(None, description="Evidence and decision in one line.")
    job: Word | None = Field(None, description="What is being done on it: prepare, measure, read, start or quiesce.")
    job_since: Moment | None = Field(None, description="Since when.")
