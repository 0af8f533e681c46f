"""What must hold at every moment that something is rented, whatever is done to the operator."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from controller.emulator.contracts import Contract, Order
from controller.emulator.market import Slot
from tests.cluster.proxy import Proxy
from tests.cluster.stage import Stage


@dataclass
class Books:
    """The emulator's own books, looked at as it carries out each create.

    `most`: instances that there may be at once. `budget`: USD an hour that they may cost together. `apis`, `vasts`: the
    proxies through which operators write and rent.
    """

    here: Stage
    most: int
    budget: float
    apis: list[Proxy]
    vasts: list[Proxy]
    wrongs: list[str] = field(default_factory=list)

    def watch(self) -> None:
        """Look at every create from now on."""
        create: Callable[[Slot, Order], Contract] = self.here.emulator.world.create

        def created(slot: Slot, order: Order) -> Contract:
            made = create(slot, order)
            self._look(made)
            return made

        self.here.emulator.world.create = created  # type: ignore[method-assign]

    async def look_at_objects(self) -> None:
        """What was asked to be rented and is not told gone never costs more than the budget, as the objects have it."""
        asked = {json.loads(call.body)["label"] for vast in self.vasts for call in vast.sent("PUT", "/asks/")}
        held = [
            each
            for each in await self.here.instances()
            if each["spec"]["label"] in asked and each.get("status", {}).get("phase") != "Gone"
        ]
        price = sum({**each["spec"], **each.get("status", {})}["pricePerHour"] for each in held)
        if price > self.budget + 1e-6:
            self.wrongs.append(f"{len(held)} Instances for {price:.3f} USD an hour")

    def _look(self, made: Contract) -> None:
        alive = list(self.here.emulator.world.alive())
        price = sum(contract.price_per_hour for contract in alive)
        labels = [contract.label or "" for contract in alive]
        mark = f"vf/{self.here.owner}/{self.here.namespace}.provers/"
        for wrong, what in (
            (len(alive) > self.most, f"{len(alive)} instances"),
            (price > self.budget, f"{price:.3f} USD an hour"),
            (not all(label.startswith(mark) for label in labels), f"labels {labels}"),
            (len(set(labels)) < len(labels), f"one label twice: {labels}"),
            (made.label not in self._written(), f"rented before it was written down: {made.label}"),
        ):
            if wrong:
                self.wrongs.append(f"at the rental of {made.id}: {what}")

    def _written(self) -> set[str]:
        """The labels of the Instances that the API server has taken."""
        posted = [call for api in self.apis for call in api.sent("POST", "/instances") if call.status in {201, 409}]
        return {json.loads(call.body)["spec"]["label"] for call in posted}
