"""How often each endpoint may be called: a window of calls per endpoint and key, and a daily quota of searches.

Called by api before every handler. The thresholds are those the vendor's OpenAPI files state; real ones are not public.
"""

from collections import deque
from dataclasses import dataclass

from controller.emulator.faults import CATALOGUE, Answer, Refusal
from controller.emulator.scenario import Limits

DAY_S = 86400.0


@dataclass(frozen=True, slots=True)
class Limit:
    """So many calls in so many seconds; a refused call bars the endpoint for the penalty."""

    calls: int
    period_s: float
    penalty_s: float = 0.0


class Gate:
    """Remembers accepted calls and refuses the ones that come too soon."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._accepted: dict[tuple[str, str], deque[float]] = {}
        self._barred: dict[tuple[str, str], float] = {}
        self._quota_day = -1
        self._searches = 0

    def admit(self, endpoint: str, key: str, limit: Limit, now: float) -> None:
        """Count a call.

        Raises:
            Refusal: 429, in the scenario's spelling.
        """
        if not self._limits.enabled:
            return
        place = (endpoint, key)
        calls = self._accepted.setdefault(place, deque(maxlen=limit.calls))
        free_at = self._barred.get(place, 0.0)
        if len(calls) == limit.calls:
            free_at = max(free_at, calls[0] + limit.period_s)
        if now < free_at:
            if limit.penalty_s:
                self._barred[place] = free_at = now + limit.penalty_s
            raise Refusal(self._refusal(endpoint, limit, free_at - now))
        calls.append(now)

    def count_search(self, now: float) -> None:
        """Count a search against the daily quota, which starts anew at 00:00 UTC.

        Raises:
            Refusal: 429 search_quota_exceeded, with the time of the reset.
        """
        quota = self._limits.search_quota
        if quota is None:
            return
        day = int(now // DAY_S)
        if day != self._quota_day:
            self._quota_day, self._searches = day, 0
        if self._searches >= quota:
            answer = CATALOGUE["search_quota_exceeded"]
            raise Refusal(
                Answer(answer.status, answer.body, headers={"X-RateLimit-Reset": str(int((day + 1) * DAY_S))})
            )
        self._searches += 1

    def _refusal(self, endpoint: str, limit: Limit, wait_s: float) -> Answer:
        headers = {"Retry-After": str(max(1, round(wait_s + 0.5)))} if self._limits.retry_after else {}
        text = "API requests too frequent"
        body: object = text
        if endpoint.startswith("DELETE ") or self._limits.body == "json":
            text = f"{text} endpoint threshold={limit.period_s}"
            body = {"success": False, "error": "rate_limit_exceeded", "msg": text}
        elif self._limits.body == "detail":
            body = {"detail": f"{text} endpoint threshold={limit.period_s}"}
        elif self._limits.body == "threshold":
            body = f"{text}: endpoint threshold={limit.period_s}"
        return Answer(429, body, "text/plain" if isinstance(body, str) else "application/json", headers)
