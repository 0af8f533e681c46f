"""vast.ai as the loop uses it: one method an endpoint, records out, Faults raised.

Built by `runtime/` from the user's key; called by `loop/` to observe and to act, and by `cli/` to show.
"""

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from controller.model.faults import Fault, Gone, Retry
from controller.model.market import Account, CreateRequest, Listing, Offer, OfferQuery, PriceIncrease, Sighting
from controller.model.money import usd
from controller.model.reasons import Reason
from controller.vast import calls, values, wire
from controller.vast.calls import Call
from controller.vast.faults import lost
from controller.vast.http import Http
from controller.vast.pace import Clock, Pace

CONSOLE = "https://console.vast.ai"
PAGE_ROWS = 25  # the most a page of a listing holds
MOST_LIST_PAGES = 400
MOST_SEARCH_PAGES = 5  # the cheapest 320 offers of one shape are choice enough, at six seconds a page
LOG_WAIT_S = 30.0
SSH_AND_PROXY = "ssh_direc ssh_proxy"  # spelled so: a direct port where the host has one, and the relay always


class VastClient:
    """A client of one account.

    Args:
        api_key: sent in the Authorization header and nowhere else.
        url: where vast.ai is.
        clock: paces the calls and dates listings.
        transport: what carries HTTP; None is the network.
        deadline: seconds of the event loop that one call may take in all, waiting for its turn excluded.
        pace: shared between clients of one key and address; None makes one of this client's own.
        fence: asked right before anything is sent that changes something; what it raises is raised, and nothing sent.

    Every method raises Retry, Misconfigured or, where the endpoint can say so, Refused and Gone. Only `create`,
    `start` and `add_account_key` raise Unclear: all others may be asked again, and are, up to three times.
    """

    def __init__(
        self,
        *,
        api_key: str,
        url: str = CONSOLE,
        clock: Clock,
        transport: httpx.AsyncBaseTransport | None = None,
        deadline: float = 30.0,
        pace: Pace | None = None,
        fence: Callable[[], None] = lambda: None,
    ) -> None:
        self._clock = clock
        self._http = Http(
            api_key=api_key,
            url=url,
            clock=clock,
            transport=transport,
            deadline=deadline,
            pace=pace or Pace(clock),
            fence=fence,
        )

    @property
    def calls(self) -> Counter[str]:
        """How many calls of each name have been sent."""
        return self._http.calls

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    async def search(self, query: OfferQuery) -> tuple[Offer, ...]:
        """On-demand offers, cheapest first, each id once; rows without a readable machine, GPU or price left out.

        Pages are asked for until their prices pass `query.max_price`; what is dearer on the last of them is told too.
        """
        found: dict[int, Offer] = {}
        from_usd: float | None = None
        most_usd = math.inf if query.max_price is None else usd(query.max_price)
        for _ in range(MOST_SEARCH_PAGES):
            body = wire.search_body(query, from_usd=from_usd)
            rows = _array(await self._http.ask(calls.SEARCH, body=body), "offers", calls.SEARCH)
            page = {seen.id: seen for row in rows if (seen := wire.offer(row, disk_gib=query.disk_gib)) is not None}
            found |= page
            dearest = max((price for row in rows if (price := wire.list_price_usd(row)) is not None), default=None)
            if len(rows) != wire.SEARCH_CAP or dearest in (None, from_usd) or dearest > most_usd:
                break
            from_usd = dearest
        return tuple(sorted(found.values(), key=lambda seen: (seen.price, seen.id)))

    async def list(self) -> Listing:
        """Every instance of the account, each id once.

        Complete, or not at all: raises what failed a page, or Retry(LISTING_INCOMPLETE) when they do not add up.
        """
        at = self._clock.now()
        found: dict[int, Sighting] = {}
        total: int | None = None
        for page in await self._pages():
            total = values.whole(page.get("total_instances"))
            for row in _array(page, "instances", calls.LIST):
                seen = wire.sighting(row)
                if seen is None:
                    raise _incomplete("a row has no id")
                found[seen.id] = seen
        if total != len(found):
            raise _incomplete(f"{len(found)} instances seen of {'an untold number' if total is None else total}")
        return Listing(at=at, sightings=tuple(found.values()))

    async def _pages(self) -> tuple[dict[str, Any], ...]:
        """The pages of a listing, by the token that each gives for the next."""
        pages: tuple[dict[str, Any], ...] = ()
        params = {"limit": str(PAGE_ROWS), "order_by": json.dumps([{"col": "id", "dir": "asc"}])}
        for _ in range(MOST_LIST_PAGES):
            page = await self._http.ask(calls.LIST, params=params)
            if not isinstance(page, dict):
                raise _senseless(calls.LIST)
            pages += (page,)
            token = values.text(page.get("next_token"))
            if token is None:
                return pages
            if token == params.get("after_token"):
                raise _incomplete("a page names itself as the next")
            params = params | {"after_token": token}
        raise _incomplete(f"more than {MOST_LIST_PAGES} pages")

    async def get(self, instance_id: int) -> Sighting | None:
        """One instance; None when vast.ai does not show it, which proves nothing: a new one may be hidden at first."""
        try:
            said = await self._http.ask(calls.GET, target=instance_id, params={"owner": "me"})
        except Gone:
            return None
        if not isinstance(said, dict) or "instances" not in said:
            raise _senseless(calls.GET)
        if said["instances"] is None:
            return None
        seen = wire.sighting(said["instances"])
        if seen is None or seen.id != instance_id:
            raise _senseless(calls.GET)
        return seen

    async def create(self, request: CreateRequest) -> int:
        """Rent an offer and return the new instance's id.

        Sent again only when it certainly was not carried out. Raises Unclear when it may have been: then its label
        decides. Raises Refused with `instance_id` when the refusal left an instance behind, which must be destroyed.
        """
        body = {
            "client_id": "me",
            "image": request.image,
            "env": request.env,
            "disk": request.disk_gib,
            "label": request.label,
            "onstart": request.on_start,
            "runtype": SSH_AND_PROXY,
            "cancel_unavail": True,  # else a host that cannot start it leaves a stopped instance that bills its disk
        }
        secrets = tuple(request.env.values())
        said = await self._http.ask(calls.CREATE, target=request.offer_id, body=body, secrets=secrets)
        new = values.identity(said.get("new_contract")) if isinstance(said, dict) else None
        if new is None:
            raise _senseless(calls.CREATE)
        return new

    async def destroy(self, instance_id: int) -> None:
        """Ask for an instance's end; only later listings prove it. Raises Gone when vast.ai knows no such instance."""
        await self._http.ask(calls.DESTROY, target=instance_id, body={})

    async def start(self, instance_id: int) -> None:
        """Start a stopped instance. Raises Refused(GPU_TAKEN) when queued: it may start, and bill, at any time."""
        await self._http.ask(calls.START, target=instance_id, body={"state": "running"})

    async def stop(self, instance_id: int) -> None:
        """Stop an instance; its disk goes on billing."""
        await self._http.ask(calls.STOP, target=instance_id, body={"state": "stopped"})

    async def label(self, instance_id: int, text: str) -> None:
        """Give an instance another label, of at most 1024 characters."""
        await self._http.ask(calls.LABEL, target=instance_id, body={"label": text})

    async def logs(self, instance_id: int, *, tail: int = 100) -> str:
        """The last `tail` lines of a container's log. Raises Retry when they are not written out in half a minute."""
        said = await self._http.ask(calls.LOGS, target=instance_id, body={"tail": str(tail)})
        url = values.text(said.get("result_url")) if isinstance(said, dict) else None
        if url is None:
            raise _senseless(calls.LOGS)
        until = self._clock.now() + LOG_WAIT_S
        while self._clock.now() < until:
            answer = await self._http.fetch(calls.LOGS_RESULT, url)
            if answer.status == httpx.codes.OK:
                return answer.body.decode(errors="replace")
        raise Retry(Reason.BAD_ANSWER, f"logs: not written out within {LOG_WAIT_S:g} s")

    async def attach_key(self, instance_id: int, public_key: str) -> None:
        """Let a public key, in OpenSSH's one-line form, log in to an instance some seconds from now."""
        with _already_is_fine():
            await self._http.ask(calls.ATTACH_KEY, target=instance_id, body={"ssh_key": public_key})

    async def account_keys(self) -> tuple[str, ...]:
        """The account's public SSH keys: what new instances let in."""
        try:
            said = await self._http.ask(calls.ACCOUNT_KEYS)
        except Gone:
            return ()
        if not isinstance(said, list):
            raise _senseless(calls.ACCOUNT_KEYS)
        keys = (values.text(row.get("public_key")) for row in said if isinstance(row, dict))
        return tuple(key for key in keys if key is not None)

    async def add_account_key(self, public_key: str) -> None:
        """Add a public SSH key to the account, for instances yet to be rented."""
        with _already_is_fine():
            await self._http.ask(calls.ADD_ACCOUNT_KEY, body={"ssh_key": public_key})

    async def account(self) -> Account:
        """Whose key this is and the prepaid credit left; `balance` is another thing, about zero when prepaid."""
        said = await self._http.ask(calls.ACCOUNT)
        user = values.identity(said.get("id")) if isinstance(said, dict) else None
        if user is None:
            raise _senseless(calls.ACCOUNT)
        return Account(id=user, credit=values.balance(said.get("credit")))

    async def price_increases(self, listing: Listing) -> tuple[PriceIncrease, ...]:
        """What hosts propose to charge for the instances of `listing`, which tells their GPUs and disks."""
        listed = listing.by_id()
        rows = _array(await self._http.ask(calls.PRICE_INCREASES), "pending_price_increases", calls.PRICE_INCREASES)
        return tuple(read for row in rows if (read := wire.price_increase(row, listed)) is not None)

    async def gpu_names(self) -> tuple[str, ...]:
        """Every GPU model there is, in vast.ai's spelling."""
        names = _array(await self._http.ask(calls.GPU_NAMES), "gpu_names", calls.GPU_NAMES)
        return tuple(name for name in map(values.text, names) if name is not None)


def _array(said: Any, field: str, call: Call) -> list[Any]:
    """The array that an answer exists for; without it the answer says nothing at all."""
    rows = said.get(field) if isinstance(said, dict) else None
    if not isinstance(rows, list):
        raise lost(call, Reason.BAD_ANSWER, f"{call.name}: vast.ai's answer has no array of {field}")
    return rows


def _senseless(call: Call) -> Fault:
    """A success that does not hold what it is for."""
    return lost(call, Reason.BAD_ANSWER, f"{call.name}: vast.ai answered success without what was asked for")


def _incomplete(why: str) -> Fault:
    return Retry(Reason.LISTING_INCOMPLETE, f"list: {why}")


@contextmanager
def _already_is_fine() -> Iterator[None]:
    """Pass over a refusal because it has been done: attaching a key twice answers 400, 409 or success false."""
    try:
        yield
    except Fault as fault:
        if "already" not in str(fault):
            raise
