"""What a handler is given and what the table of endpoints is made of.

Shared by market_routes, account_routes and instance_routes; read by api.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from controller.emulator.contracts import Contract
from controller.emulator.faults import Answer, refusal
from controller.emulator.limits import Limit
from controller.emulator.world import World

OK = Answer(200, {"success": True})
NO_LIMIT = Limit(1000, 1.0)


@dataclass(frozen=True, slots=True)
class Incoming:
    """One request, its world advanced to now: path and query parameters, JSON body, and where we are reached."""

    world: World
    path: Mapping[str, str]
    query: Mapping[str, str]
    body: Mapping[str, Any]
    base_url: str
    listening: Callable[[Contract], bool] = field(default=lambda _contract: True)

    def contract(self, name: str = "id") -> Contract:
        """Return the living instance that the path names.

        Raises:
            Refusal: 404 not_found.
        """
        contract = self.find(self.path[name])
        if contract is None:
            raise refusal("not_found")
        return contract

    def find(self, instance_id: object) -> Contract | None:
        """Return a living, readable instance, or None."""
        text = str(instance_id)
        contract = self.world.contracts.get(int(text)) if text.isdigit() else None
        if contract is None or contract.destroyed_at is not None or not readable(self.world, contract):
            return None
        return contract


Handler = Callable[[Incoming], Answer]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method and path: what it does, which troubles meet it, how often it may be called, and by whom."""

    method: str
    path: str
    handler: Handler
    operation: str | Callable[[Mapping[str, Any]], str] = "other"
    limit: Limit = NO_LIMIT
    public: bool = False
    search: bool = False

    @property
    def name(self) -> str:
        """The key under which calls are counted."""
        return f"{self.method} {self.path}"

    def operation_of(self, body: Mapping[str, Any]) -> str:
        """Return the trouble operation of a call with this body."""
        return self.operation if isinstance(self.operation, str) else self.operation(body)


def readable(world: World, contract: Contract) -> bool:
    """Tell whether an instance shows in answers yet."""
    fate = contract.fate("unreadable")
    hidden_s = (fate.seconds or 0.0) if fate else world.scenario.unreadable_seconds
    return world.time >= contract.created_at + hidden_s
