"""What is for rent now: slots of machines, which of their GPUs are taken, and under which offer id they are listed.

An offer is a set of GPUs of one machine; renting it takes its siblings that share a GPU out of the list, and when the
GPUs come back the offers return under new ids, as on the real market. Called by world (take, release) and by the
search routes.
"""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.emulator import generate, listing
from controller.emulator.offers import DAY_S, price

RELIST_STEP = 100_000_000  # added to an offer's id each time its GPUs come back to the market


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """One rentable part of a machine: its row as listed, and the GPUs it stands for."""

    row: Mapping[str, Any]
    gpus: frozenset[int]

    @property
    def machine_id(self) -> int:
        """The physical host."""
        return int(self.row["machine_id"])


class Market:
    """All slots of all machines.

    Args:
        slots: what the hosts offer.
        seed: names the machines' hidden traits (see prover), the same as the slots were drawn from.
    """

    def __init__(self, slots: Iterable[Slot], *, seed: int) -> None:
        self.slots = tuple(slots)
        self.seed = seed
        self.offline: set[int] = set()
        self._busy: dict[int, Counter[int]] = {}
        self._relisted: Counter[Slot] = Counter()

    @classmethod
    def generate(cls, spec: "generate.Spec", *, seed: int, now: float) -> "Market":
        """Draw a market from a seed."""
        return cls((Slot(row, gpus) for row, gpus in generate.draw(spec, seed=seed, now=now)), seed=seed)

    @classmethod
    def load(cls, path: Path, *, seed: int, now: float, assume_rentable: bool = False) -> "Market":
        """Read a listing file: {"offers": [...]} or a bare list.

        Raises:
            ValueError: the file is no such listing; the text names the file and the row.
        """
        try:
            rows = listing.read(json.loads(path.read_text("utf-8")), seed=seed, now=now, rentable=assume_rentable)
            return cls((Slot(row, gpus) for row, gpus in rows), seed=seed)
        except (ValueError, TypeError, KeyError) as error:
            raise ValueError(f"{path}: not a listing of offers: {error}") from error

    def offer_id(self, slot: Slot) -> int:
        """Return the id under which a slot is listed at present."""
        return int(slot.row["id"]) + RELIST_STEP * self._relisted[slot]

    def free(self, slot: Slot) -> bool:
        """Tell whether all GPUs of a slot can be taken now."""
        busy = self._busy.get(slot.machine_id)
        return slot.machine_id not in self.offline and not (busy and any(busy[gpu] for gpu in slot.gpus))

    def find(self, offer_id: int) -> Slot | None:
        """Return the slot listed under this id, or None if it is not for rent."""
        wanted = (s for s in self.slots if self.offer_id(s) == offer_id)
        return next((s for s in wanted if s.row["rentable"] and self.free(s)), None)

    def take(self, slot: Slot) -> None:
        """Give a slot's GPUs to a tenant."""
        self._busy.setdefault(slot.machine_id, Counter()).update(slot.gpus)

    def release(self, slot: Slot) -> None:
        """Take a slot's GPUs back; every offer that contains one of them returns under a new id."""
        self._busy[slot.machine_id].subtract(slot.gpus)
        for sibling in self.slots:
            if sibling.machine_id == slot.machine_id and not sibling.gpus.isdisjoint(slot.gpus):
                self._relisted[sibling] += 1

    def rows(self, now: float, *, allocated_gb: float, bid: bool = False) -> Iterator[dict[str, Any]]:
        """Yield the offers listed now, priced for so many GB of disk."""
        for slot in self.slots:
            if self.free(slot):
                end = slot.row["end_date"]
                while end <= now:
                    end += 30 * DAY_S
                offer_id = self.offer_id(slot)
                moving = {"id": offer_id, "ask_contract_id": offer_id, "end_date": end, "duration": end - now}
                yield {**slot.row, **price(slot.row, allocated_gb=allocated_gb, bid=bid), **moving}

    def gpu_names(self) -> list[str]:
        """Return the model names that occur, sorted."""
        return sorted({slot.row["gpu_name"] for slot in self.slots if slot.row["gpu_name"]})
