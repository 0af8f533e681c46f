"""vast.ai as only the leader may use it: what rents, ends or starts an instance asks the fence right before it goes."""

from collections.abc import Callable

from controller.loop.ports import Provider
from controller.model.market import Account, CreateRequest, Listing, Offer, OfferQuery, PriceIncrease, Sighting


class Fenced:
    """The loop's `Provider` behind a fence.

    Args:
        provider: what is fenced.
        check: raises Refused while nothing may be done.
    """

    def __init__(self, provider: Provider, check: Callable[[], None]) -> None:
        self._provider = provider
        self._check = check

    async def list(self) -> Listing:
        """See Provider."""
        return await self._provider.list()

    async def search(self, query: OfferQuery) -> tuple[Offer, ...]:
        """See Provider."""
        return await self._provider.search(query)

    async def get(self, instance_id: int) -> Sighting | None:
        """See Provider."""
        return await self._provider.get(instance_id)

    async def create(self, request: CreateRequest) -> int:
        """See Provider. Raises Refused while nothing may be done."""
        self._check()
        return await self._provider.create(request)

    async def destroy(self, instance_id: int) -> None:
        """See Provider. Raises Refused while nothing may be done."""
        self._check()
        await self._provider.destroy(instance_id)

    async def price_increases(self, listing: Listing) -> tuple[PriceIncrease, ...]:
        """See Provider."""
        return await self._provider.price_increases(listing)

    async def start(self, instance_id: int) -> None:
        """See Provider. Raises Refused while nothing may be done."""
        self._check()
        await self._provider.start(instance_id)

    async def account(self) -> Account:
        """See Provider."""
        return await self._provider.account()
