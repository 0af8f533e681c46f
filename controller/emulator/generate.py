"""A market drawn from a seed: machines whose models, prices and sizes follow the real quantiles.

Called by Market.generate. Some rows can be made as nasty as the real listing's worst, for clients that must cope.
"""

import math
from collections.abc import Iterator
from random import Random
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

from controller.emulator.chance import jitter, stream
from controller.emulator.gpus import BY_NAME, GPUS, Gpu
from controller.emulator.offers import complete

FIRST_MACHINE = 10_000
FIRST_OFFER = 30_000_000
FIRST_STATED = 501  # id of the first stated machine that has none
SOUND = {"verification": "verified", "vericode": 1, "reliability": 0.998, "reliability2": 0.998}
MACHINE_SIZES = ((1, 50), (2, 16), (4, 20), (8, 14))  # GPUs, weight
OFFERS_A_SIZE = 2  # at most, of the parts of one machine

Row = tuple[dict[str, Any], frozenset[int]]


class Stated(BaseModel):
    """A machine that is stated, not drawn: verified, at its model's median price, the rest as drawn, unless it says.

    `parts`: equal ones in which it is offered; `ramGib`: of all of it; `perHour`: USD for all its GPUs; `row`: further
    fields of its offers, as vast.ai names them.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    model: str
    gpus: int = Field(1, ge=1, le=16)
    parts: int = Field(1, ge=1, le=16)
    ram_gib: float | None = Field(None, gt=0)
    per_hour: float | None = Field(None, gt=0)
    id: int | None = Field(None, ge=1)
    row: dict[str, Any] = {}

    @model_validator(mode="after")
    def _whole(self) -> Self:
        if self.gpus % self.parts:
            raise ValueError(f"{self.gpus} GPUs cannot be offered in {self.parts} equal parts")
        return self


class Spec(BaseModel):
    """What the generated market looks like.

    `offers`: how many at least; `models`: only these GPU names (empty: all); `nasty`: share of rows, 0 to 1, with a
    price of NaN, null, 0 or 99, a doubled id, no location or a blank GPU name; `machines`: stated ones, besides.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, alias_generator=to_camel, populate_by_name=True)

    offers: int = Field(300, ge=0, le=20_000)
    models: tuple[str, ...] = ()
    nasty: float = Field(0.0, ge=0, le=1)
    machines: tuple[Stated, ...] = ()

    @model_validator(mode="after")
    def _some(self) -> Self:
        if not self.offers and not self.machines:
            raise ValueError("offers: 0 needs machines")
        return self

    def chosen(self) -> tuple[Gpu, ...]:
        """Return the models to draw from.

        Raises:
            ValueError: a name that is not in the table.
        """
        unknown = [name for name in (*self.models, *(one.model for one in self.machines)) if name not in BY_NAME]
        if unknown:
            raise ValueError(f"no such GPU model in the emulator's table: {', '.join(unknown)}")
        return tuple(BY_NAME[name] for name in self.models) or GPUS


def draw(spec: Spec, *, seed: int, now: float) -> Iterator[Row]:
    """Yield at least `spec.offers` rows, each with its GPUs; a machine is never cut short."""
    models, count, number = spec.chosen(), 0, 0
    while count < spec.offers:
        rng = stream(seed, "host", number)
        gpu = rng.choices(models, [m.weight for m in models])[0]
        for known, gpus, size in _machine(rng, gpu, FIRST_MACHINE + 7 * number):
            row = complete({"id": FIRST_OFFER + 11 * count, **known}, seed=seed, gpus=size, started=now)
            count += 1
            yield (_spoil(rng, row) if rng.random() < spec.nasty else row), gpus
        number += 1
    for place, machine in enumerate(spec.machines):
        for known, gpus in _stated(machine, FIRST_STATED + place):
            yield complete({"id": FIRST_OFFER + 11 * count, **known}, seed=seed, gpus=machine.gpus, started=now), gpus
            count += 1


def _stated(machine: Stated, machine_id: int) -> Iterator[Row]:
    """Yield what the offers of a stated machine have by its statement."""
    part, price = machine.gpus // machine.parts, machine.per_hour
    known = {
        "machine_id": machine_id if machine.id is None else machine.id,
        "gpu_name": machine.model,
        "num_gpus": part,
    }
    known |= {"dph_base": BY_NAME[machine.model].price.median * part if price is None else price / machine.parts}
    known |= {} if machine.ram_gib is None else {"cpu_ram": round(machine.ram_gib * 1024)}
    for first in range(0, machine.gpus, part):
        yield {**known, **SOUND, **machine.row}, frozenset(range(first, first + part))


def _machine(rng: Random, gpu: Gpu, machine_id: int) -> Iterator[tuple[dict[str, Any], frozenset[int], int]]:
    size = rng.choices([n for n, _ in MACHINE_SIZES], [w for _, w in MACHINE_SIZES])[0]
    per_gpu = _price(rng, gpu)
    part = size if rng.random() < 0.35 else rng.choice([n for n, _ in MACHINE_SIZES if n <= size])  # noqa: PLR2004
    while part <= size:
        for first in range(0, size, part)[:OFFERS_A_SIZE]:
            price = round(per_gpu * part * jitter(rng, 0.02), 6)
            known = {"machine_id": machine_id, "gpu_name": gpu.name, "num_gpus": part, "dph_base": price}
            yield known, frozenset(range(first, first + part)), size
        part *= 2


def _price(rng: Random, gpu: Gpu) -> float:
    """Draw from the lognormal halves that meet at the median and pass through the 10th and 90th percentile."""
    z = rng.gauss(0, 1)
    tail = gpu.price.low if z < 0 else gpu.price.high
    per_sigma = abs(math.log(tail / gpu.price.median)) / 1.2816
    return gpu.price.median * math.exp(max(-2.5, min(2.5, z)) * per_sigma)


def _spoil(rng: Random, row: dict[str, Any]) -> dict[str, Any]:
    damage: dict[str, Any] = rng.choice((
        {"dph_base": math.nan}, {"dph_base": None}, {"dph_base": 0.0}, {"dph_base": 99.0}, {"geolocation": None},
        {"gpu_name": ""}, {"id": FIRST_OFFER}, {"cuda_max_good": None}, {"geolocation": ", US"},
    ))  # fmt: skip
    return {**row, **damage}
