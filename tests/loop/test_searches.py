import asyncio

import pytest

from controller.loop.searches import SHARED, Searches
from controller.model.faults import Retry
from controller.model.market import Offer, OfferQuery
from controller.model.reasons import Reason
from tests.plan.conftest import NOW, offer


class Market:
    """A provider that counts its searches, and a clock that stands still."""

    def __init__(self) -> None:
        self.searches = 0
        self.at = NOW
        self.broken = False

    def now(self) -> float:
        return self.at

    async def search(self, query: OfferQuery) -> tuple[Offer, ...]:
        self.searches += 1
        await asyncio.sleep(0)  # noqa: TID251 - the others get their turn
        if self.broken:
            raise Retry(Reason.RATE_LIMITED, "too many")
        return tuple(offer(number, gpu=query.gpu) for number in (1, 2, 3))


@pytest.fixture
def market() -> Market:
    return Market()


@pytest.fixture
def searches(market: Market) -> Searches:
    return Searches(provider=market, clock=market)  # type: ignore[arg-type]  # the parts of the ports that it needs


ASKED = OfferQuery(gpu="RTX 4090", gpu_count=1, disk_gib=50)


async def test_fleets_that_ask_alike_share_an_answer(market: Market, searches: Searches):
    """A hundred fleets that ask the same at once cause one search; another question is another search."""
    answers = await asyncio.gather(*(searches.ask(ASKED) for _ in range(100)))
    assert set(answers) == {answers[0]}
    await searches.ask(OfferQuery(gpu="RTX 5090", gpu_count=1, disk_gib=50))
    assert market.searches == 2


async def test_an_answer_is_not_believed_for_long(market: Market, searches: Searches):
    """After some seconds the market is asked anew."""
    await searches.ask(ASKED)
    market.at += SHARED
    await searches.ask(ASKED)
    assert market.searches == 2


async def test_what_was_tried_is_for_rent_no_more(searches: Searches):
    """An offer that one fleet rented, or could not, is not shown to the next."""
    (first, *rest) = await searches.ask(ASKED)
    searches.drop(first)
    assert await searches.ask(ASKED) == tuple(rest)


async def test_a_failed_search_is_nobodys_answer(market: Market, searches: Searches):
    """A fault is raised to whom asked, and the next asks again."""
    market.broken = True
    with pytest.raises(Retry):
        await searches.ask(ASKED)
    market.broken = False
    assert len(await searches.ask(ASKED)) == 3
