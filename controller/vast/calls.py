"""The calls we make of vast.ai: one row an endpoint, with what must be known before it is sent or sent again.

`client` names them, `http` sends them, `pace` spaces them, `faults` reads their answers by them.
"""

from dataclasses import dataclass
from enum import IntEnum


class Rank(IntEnum):
    """Who goes first when several calls wait: what stops the bill, then what shows it, and last what adds to it."""

    DESTROY = 0
    LIST = 1
    OTHER = 2
    CREATE = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One endpoint.

    `interval`: the least seconds between two of these calls, as vast.ai's documentation states them; its servers' real
    thresholds are not public. `burst`: how many may follow each other at once, if as many intervals pass before the
    next.
    `repeatable`: doing it twice is doing it once, so a lost answer may be asked for again.
    """

    name: str
    method: str
    path: str  # `{id}` stands for the offer's or the instance's id
    interval: float = 1.0
    burst: int = 1
    repeatable: bool = True
    rank: Rank = Rank.OTHER

    @property
    def changes(self) -> bool:
        """Whether more than a look: searches are posted."""
        return self.method != "GET" and self.name != "search"


SEARCH = Call(name="search", method="POST", path="/api/v0/bundles/", interval=6.0, burst=8)  # 10 a minute
CREATE = Call(name="create", method="PUT", path="/api/v0/asks/{id}/", interval=4.5, repeatable=False, rank=Rank.CREATE)
LIST = Call(name="list", method="GET", path="/api/v1/instances/", rank=Rank.LIST)
GET = Call(name="get", method="GET", path="/api/v0/instances/{id}/", interval=2.0)
DESTROY = Call(name="destroy", method="DELETE", path="/api/v0/instances/{id}/", interval=3.0, rank=Rank.DESTROY)
START = Call(name="start", method="PUT", path="/api/v0/instances/{id}/", repeatable=False)  # what it starts, bills
STOP = Call(name="stop", method="PUT", path="/api/v0/instances/{id}/")
LABEL = Call(name="label", method="PUT", path="/api/v0/instances/{id}/")
LOGS = Call(name="logs", method="PUT", path="/api/v0/instances/request_logs/{id}/")
LOGS_RESULT = Call(name="logs_result", method="GET", path="the address that logs gave")
ATTACH_KEY = Call(name="attach_key", method="POST", path="/api/v0/instances/{id}/ssh/")
ACCOUNT_KEYS = Call(name="account_keys", method="GET", path="/api/v0/ssh/")
ADD_ACCOUNT_KEY = Call(name="add_account_key", method="POST", path="/api/v0/ssh/", repeatable=False)
ACCOUNT = Call(name="account", method="GET", path="/api/v0/users/current/")
PRICE_INCREASES = Call(name="price_increases", method="GET", path="/api/v0/instances/pending-price-increases/")
GPU_NAMES = Call(name="gpu_names", method="GET", path="/api/v0/gpu_names/unique/")
