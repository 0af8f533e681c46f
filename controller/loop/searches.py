"""Searches of the market, shared: fleets that ask the same within some seconds get one answer.

vast.ai allows but few searches a minute. What was rented since an answer was given, or
could not be, is taken out of it.
"""

import asyncio

from controller.loop.ports import Clock, Provider
from controller.model.market import Offer, OfferQuery

SHARED = 10.0  # seconds; the market moves, and what is gone costs a call to find out


class Searches:
    """The market as last searched.

    Args:
        provider: whom to ask.
        clock: the controller's time.
    """

    def __init__(self, *, provider: Provider, clock: Clock) -> None:
        self._provider = provider
        self._clock = clock
        self._known: dict[OfferQuery, tuple[float, tuple[Offer, ...]]] = {}
        self._asking: dict[OfferQuery, asyncio.Lock] = {}

    async def ask(self, query: OfferQuery) -> tuple[Offer, ...]:
        """Offers of one GPU model, at most some seconds old. Raises the provider's faults."""
        async with self._asking.setdefault(query, asyncio.Lock()):
            known = self._known.get(query)
            if known is None or self._clock.now() - known[0] >= SHARED:
                now = self._clock.now()
                self._known = {asked: each for asked, each in self._known.items() if now - each[0] < SHARED}
                self._asking = {
                    asked: lock for asked, lock in self._asking.items() if asked in self._known or lock.locked()
                }
                known = self._known[query] = now, await self._provider.search(query)
            return known[1]

    def drop(self, offer: Offer) -> None:
        """Take an offer out of all that is known."""
        for query, (at, offers) in self._known.items():
            self._known[query] = at, tuple(each for each in offers if each.id != offer.id)
