"""The scenario file: which market, how fast the clock, how strict the service, and what goes wrong.

Read by `vastfleet emulator` and the demo; tests build Scenario objects in place.
"""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Discriminator, Field, NonNegativeFloat, PositiveFloat, PositiveInt, Tag, ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from controller.emulator.generate import Spec
from controller.emulator.market import Market
from controller.emulator.trouble import CallTrouble, CreditOut, HostTrouble, Model

MAX_BYTES = 256 * 1024


class ScenarioError(ValueError):
    """A scenario file that cannot be used; the text lists every fault with its place."""


class MarketSpec(Spec):
    """A generated market, or a listing file (`listing`, relative to the scenario file)."""

    listing: Path | None = None
    assume_rentable: bool = False

    def open(self, *, seed: int, now: float) -> Market:
        """Build the market.

        Raises:
            ValueError: an unknown model, or a listing that is none.
            OSError: the listing cannot be read.
        """
        if self.listing is None:
            return Market.generate(self, seed=seed, now=now)
        return Market.load(self.listing, seed=seed, now=now, assume_rentable=self.assume_rentable)


class Limits(Model):
    """How strict the service is.

    `enabled`: rate limits at all; `retryAfter`: send the header; `body`: the spelling of a 429; `searchQuota`: searches
    a day (None: no quota); `searchCap`: rows a search, whatever limit is asked.
    """

    enabled: bool = True
    retry_after: bool = False
    body: Literal["text", "threshold", "detail", "json"] = "text"
    search_quota: PositiveInt | None = None
    search_cap: PositiveInt = 64


class Prover(Model):
    """The workload's needs in GiB, and what a machine's rate is multiplied by.

    Memory: for itself, for each proof in flight, and for each partition worker while its cache of circuits is cold,
    which it is until a batch or a warm-up has ended well in the container.
    """

    base_gib: NonNegativeFloat = 100.0
    per_proof_gib: NonNegativeFloat = 6.0
    cold_per_worker_gib: NonNegativeFloat = 0.0
    rate_factor: PositiveFloat = 1.0
    params_gib: PositiveFloat = 20.0


def _family(trouble: object) -> str:
    kind = trouble.get("kind") if isinstance(trouble, dict) else getattr(trouble, "kind", None)
    if kind in ("lost-answer", "error", "hold"):
        return "call"
    return "credit" if kind == "credit-out" else "host"


Trouble = Annotated[
    Annotated[CallTrouble, Tag("call")] | Annotated[CreditOut, Tag("credit")] | Annotated[HostTrouble, Tag("host")],
    Discriminator(_family),
]


class Scenario(Model):
    """Everything about an emulated vast.ai that a file can say; the defaults are a service in good health.

    `bootSeconds`: median from create to running; `attachSeconds`: until an attached key works; `v0List`: answer the old
    list instead of 410; `badKey`: the spelling of a refused API key; `graceHours`: from credit gone to rows deleted;
    `kernelLog`: instances may read dmesg, which few containers may.
    """

    seed: int = 7
    speed: PositiveFloat = 1.0
    credit: float = 100.0
    market: MarketSpec = MarketSpec()
    limits: Limits = Limits()
    prover: Prover = Prover()
    boot_seconds: PositiveFloat = 90.0
    attach_seconds: NonNegativeFloat = 2.0
    unreadable_seconds: NonNegativeFloat = 0.0
    grace_hours: PositiveFloat = 48.0
    kernel_log: bool = False
    v0_list: bool = Field(False, alias="v0List")
    bad_key: Literal["auth_error", "auth_error_401", "forbidden_html"] = "auth_error"
    troubles: tuple[Trouble, ...] = ()

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a scenario file.

        Raises:
            ScenarioError: not YAML, not a mapping, or fields that are unknown or wrong: all of them, with their places.
            OSError: the file cannot be read.
        """
        if path.stat().st_size > MAX_BYTES:
            raise ScenarioError(f"{path}: larger than {MAX_BYTES // 1024} KiB")
        try:
            document = YAML(typ="safe").load(path.read_text("utf-8"))
        except (YAMLError, UnicodeDecodeError) as error:
            raise ScenarioError(f"{path}: {error}") from error
        try:
            scenario = cls.model_validate({} if document is None else document)
        except ValidationError as error:
            raise ScenarioError("\n".join(f"{path}: {_line(fault)}" for fault in error.errors())) from error
        listing = scenario.market.listing
        if listing is None or listing.is_absolute():
            return scenario
        market = scenario.market.model_copy(update={"listing": path.parent / listing})
        return scenario.model_copy(update={"market": market})

    @property
    def calls(self) -> tuple[CallTrouble, ...]:
        """The troubles of calls."""
        return tuple(t for t in self.troubles if isinstance(t, CallTrouble))

    @property
    def hosts(self) -> tuple[HostTrouble, ...]:
        """The troubles of instances."""
        return tuple(t for t in self.troubles if isinstance(t, HostTrouble))

    @property
    def credit_out_after(self) -> float | None:
        """Seconds from the start at which the credit is gone, if a trouble says so."""
        return min((t.after for t in self.troubles if isinstance(t, CreditOut)), default=None)


def _line(fault: object) -> str:
    assert isinstance(fault, dict)  # noqa: S101  pydantic's own record
    place = ".".join(str(part) for part in fault["loc"] if part not in ("call", "host", "credit")) or "(top)"
    return f"{place}: {fault['msg']} (got {fault['input']!r})"
