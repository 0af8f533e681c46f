"""What is for rent now: slots of machines, which of their GPUs are taken, and under which offer id they are listed.

An offer is a set of GPUs of one machine; renting it takes its siblings that share a GPU out of the list, and when the
GPUs come back the offers return under new ids, as on the real market. Called by world (take, release) and by the
search routes.
"""

import json
from collections import ChainMap, Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from controller.emulator import generate, listing, query
from controller.emulator.offers import DAY_S, PRICED, price

ALL: Mapping[str, Mapping[str, Any]] = {}
MOVING = frozenset(
    {"id", "ask_contract_id", "end_date", "duration"} | set(PRICED)
)  # fields that a row gets at a search
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
        self._listed: defaultdict[int, list[Slot]] = defaultdict(list)  # by offer id, which may be doubled
        for slot in self.slots:
            self._listed[self.offer_id(slot)].append(slot)
        self._priced: dict[tuple[Slot, float, bool], dict[str, Any]] = {}
        self._having: dict[str, tuple[Slot, ...]] = {}

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
        return next((s for s in self._listed.get(offer_id, ()) if s.row["rentable"] and self.free(s)), None)

    def knows(self, offer_id: int) -> bool:
        """Tell whether a slot is listed under this id, for rent or not."""
        return bool(self._listed.get(offer_id))

    def take(self, slot: Slot) -> None:
        """Give a slot's GPUs to a tenant."""
        self._busy.setdefault(slot.machine_id, Counter()).update(slot.gpus)

    def release(self, slot: Slot) -> None:
        """Take a slot's GPUs back; every offer that contains one of them returns under a new id."""
        self._busy[slot.machine_id].subtract(slot.gpus)
        for sibling in self.slots:
            if sibling.machine_id == slot.machine_id and not sibling.gpus.isdisjoint(slot.gpus):
                self._listed[self.offer_id(sibling)].remove(sibling)
                self._relisted[sibling] += 1
                self._listed[self.offer_id(sibling)].append(sibling)

    def rows(
        self, now: float, *, allocated_gb: float, bid: bool = False, filters: Mapping[str, Mapping[str, Any]] = ALL
    ) -> Iterator[Mapping[str, Any]]:
        """Yield the offers listed now, priced for so many GB of disk, that pass the filters.

        What a filter asks of a field that never changes is worked out once: of thousands of offers, few are made up
        for a search.
        """
        changing = {name: tests for name, tests in filters.items() if name in MOVING}
        for slot in self._may_pass(filters):
            if self.free(slot):
                end = slot.row["end_date"]
                while end <= now:
                    end += 30 * DAY_S
                offer_id = self.offer_id(slot)
                moving = {"id": offer_id, "ask_contract_id": offer_id, "end_date": end, "duration": end - now}
                row = ChainMap(moving, self._price(slot, allocated_gb, bid), slot.row)  # type: ignore[arg-type]  # not written
                if query.matches(row, changing):
                    yield row

    def _price(self, slot: Slot, allocated_gb: float, bid: bool) -> dict[str, Any]:  # noqa: FBT001 - as vast.ai asks
        key = slot, allocated_gb, bid
        if key not in self._priced:
            self._priced[key] = price(slot.row, allocated_gb=allocated_gb, bid=bid)
        return self._priced[key]

    def _may_pass(self, filters: Mapping[str, Mapping[str, Any]]) -> tuple[Slot, ...]:
        fixed = {name: tests for name, tests in filters.items() if name not in MOVING}
        key = repr(fixed)
        if key not in self._having:
            self._having[key] = tuple(slot for slot in self.slots if query.matches(slot.row, fixed))
        return self._having[key]

    def gpu_names(self) -> list[str]:
        """Return the model names that occur, sorted."""
        return sorted({slot.row["gpu_name"] for slot in self.slots if slot.row["gpu_name"]})
