"""Troubles on demand: what can go wrong with a call, with an instance or its host, and when.

A call trouble meets the calls it names (`on`), at the nth, every nth, with a probability or within a span of time. A
host trouble meets the instances it names (the nth created, all on one machine or of one image, created after a time,
or a share of them) and says when it starts and how long it lasts. Built by scenario, asked by api (calls) and fates
(hosts).
"""

from collections import Counter
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, NonNegativeFloat, PositiveInt, model_validator
from pydantic.alias_generators import to_camel

from controller.emulator.chance import stream
from controller.emulator.faults import CATALOGUE, Answer

Operation = Literal[
    "any", "search", "create", "list", "get", "destroy", "start", "stop", "label", "attach", "logs", "user", "ssh-keys",
    "reboot", "bid", "prices", "reports", "other",
]  # fmt: skip


class Model(BaseModel):
    """A part of a scenario: camelCase in files, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)


class CallTrouble(Model):
    """What happens to some calls of the API.

    `lost-answer`: the effect happens and the answer never comes (`answer: hang`), breaks off after its head (`drop`,
    over a real socket only), or is another one (`status`, `body` or `like`). `error`: no effect, another answer.
    `hold`: a delay before or after the effect. Conditions add up; with none given every call is met.
    """

    kind: Literal["lost-answer", "error", "hold"]
    on: Operation = "any"
    nth: PositiveInt | None = None
    every: PositiveInt | None = None
    probability: float | None = Field(None, ge=0, le=1)
    between: tuple[NonNegativeFloat, NonNegativeFloat] | None = None  # seconds since the emulator started
    times: PositiveInt | None = None  # at most so often
    answer: Literal["hang", "drop"] = "hang"
    when: Literal["before", "after"] = "before"
    seconds: NonNegativeFloat = 30.0
    like: str | None = None  # a name from faults.CATALOGUE
    status: int | None = Field(None, ge=100, le=599)
    body: Any = None
    content_type: str = "application/json"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.like is not None and self.like not in CATALOGUE:
            raise ValueError(f"like: {self.like!r} is not one of {', '.join(sorted(CATALOGUE))}")
        if self.kind == "error" and self.like is None and self.status is None:
            raise ValueError("error: needs `like` or `status`")
        return self

    @property
    def substitute(self) -> Answer | None:
        """The answer sent in place of the real one, if the trouble names one."""
        if self.like is not None:
            return CATALOGUE[self.like]
        return None if self.status is None else Answer(self.status, self.body, self.content_type)


USUAL_FACTOR = {
    "slow-host": 10.0, "price-rise": 1.5, "slow-machine": 0.6, "disturbed": 0.75, "hot": 0.85, "power-capped": 0.85,
    "cpu-throttled": 0.8, "slow-image": 0.7, "slow-download": 0.1,
}  # fmt: skip
OF_MACHINES = ("power-capped", "old-driver")  # whose probability is drawn once for a machine, not for each instance


class HostTrouble(Model):
    """What happens to some instances.

    Boot kinds, decided at creation: `slow-host` (boots `factor` times slower), `stuck-loading`, `bad-image`,
    `gpu-fault`, `oci-fault`. From `after` seconds of running on: `host-lost` (back after `seconds`, or never),
    `price-rise` (by `factor`; `pending: false` raises it without asking), `outbid`, `ssh-drop` (every connection once),
    `host-key-changed`, and, for `seconds` or for ever: `slow-machine` (rate times `factor`), `direct-refused`,
    `proxy-refused`, `key-refused`; `download-stall` (silent), `download-retries` (repeats itself), `slow-download`
    (speed times `factor`); the rate times `factor`, and its sign: `disturbed` (none), `hot` (temperature, clocks'
    reasons), `power-capped` (power limit), `cpu-throttled` (cpu.stat), `slow-image` (none); `old-driver` (does not know
    clocks_event_reasons), `quiet-oom` (a parent outlives its killed child, and exits with 0), `broken-image` (the
    workload's programs fail alike). Around destroy: `linger` (listed for `seconds` more), `resurrect`
    (alive again `seconds` later, once). `unreadable`: not yet listed for `seconds` after creation. `gpu-taken`: others
    hold its GPUs for `seconds` after a stop.
    """

    kind: Literal[
        "slow-host", "stuck-loading", "bad-image", "gpu-fault", "oci-fault", "host-lost", "price-rise", "outbid",
        "ssh-drop", "host-key-changed", "slow-machine", "direct-refused", "proxy-refused", "key-refused",
        "download-stall", "linger", "resurrect", "unreadable", "gpu-taken", "download-retries", "slow-download",
        "disturbed", "hot", "power-capped", "cpu-throttled", "slow-image", "broken-image", "old-driver", "quiet-oom",
    ]  # fmt: skip
    instance: PositiveInt | None = None  # the nth created
    machine: int | None = None
    image: str | None = None  # a part of the image's name
    created_after: NonNegativeFloat | None = None  # seconds since the emulator started
    probability: float | None = Field(None, ge=0, le=1)
    since: Literal["running", "start"] = "running"  # what `after` counts from: its first running, the emulator's start
    after: NonNegativeFloat = 0.0
    seconds: NonNegativeFloat | None = None
    factor: float | None = Field(None, gt=0)  # None: see `scale`
    pending: bool = True

    @property
    def scale(self) -> float:
        """The factor, or what its kind does when none is given."""
        return self.factor or USUAL_FACTOR.get(self.kind, 1.0)


class CreditOut(Model):
    """The account's credit is gone `after` seconds from the start."""

    kind: Literal["credit-out"]
    after: NonNegativeFloat = 0.0


class CallTroubles:
    """Counts the calls each call trouble could meet, and says which it meets."""

    def __init__(self, troubles: tuple[CallTrouble, ...], *, seed: int, started: float) -> None:
        self._troubles = troubles
        self._seed = seed
        self._started = started
        self._seen: Counter[int] = Counter()
        self._met: Counter[int] = Counter()

    def meet(self, operation: str, now: float) -> list[CallTrouble]:
        """Return the troubles that meet this call, in the scenario's order."""
        met = []
        for index, trouble in enumerate(self._troubles):
            if trouble.on not in ("any", operation):
                continue
            self._seen[index] += 1
            if self._applies(index, trouble, now):
                self._met[index] += 1
                met.append(trouble)
        return met

    def _applies(self, index: int, trouble: CallTrouble, now: float) -> bool:
        n = self._seen[index]
        since = now - self._started
        if trouble.times is not None and self._met[index] >= trouble.times:
            return False
        if trouble.between is not None and not trouble.between[0] <= since < trouble.between[1]:
            return False
        if (trouble.nth is not None and n != trouble.nth) or (trouble.every is not None and n % trouble.every):
            return False
        chance = trouble.probability
        return chance is None or stream(self._seed, "call-trouble", index, n).random() < chance


class Birth(NamedTuple):
    """What a trouble is aimed by: the nth instance, its machine and image, and how long after the start it was made."""

    nth: int
    machine_id: int
    image: str
    age_s: float


def fates_of(troubles: tuple[HostTrouble, ...], birth: Birth, *, seed: int) -> tuple[HostTrouble, ...]:
    """Return the host troubles that a new instance will meet."""
    return tuple(
        trouble
        for index, trouble in enumerate(troubles)
        if trouble.instance in (None, birth.nth)
        and trouble.machine in (None, birth.machine_id)
        and (trouble.image is None or trouble.image in birth.image)
        and (trouble.created_after is None or birth.age_s >= trouble.created_after)
        and (trouble.probability is None or _drawn(trouble, index, birth, seed) < trouble.probability)
    )


def _drawn(trouble: HostTrouble, index: int, birth: Birth, seed: int) -> float:
    if trouble.kind in OF_MACHINES:
        return stream(seed, "machine-trouble", index, birth.machine_id).random()
    return stream(seed, "host-trouble", index, birth.nth).random()
