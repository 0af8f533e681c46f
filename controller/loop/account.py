"""The vast.ai account: whose it is, what credit is left, and what its hosts propose to charge.

Whose it is decides whether the ledger may speak of it at all: an instance missing from another account's listing is not
gone. It is asked once a process before any listing is believed, and now and then from then on.
"""

import json

from controller.loop.ports import Clock, Ledger, Provider
from controller.model.faults import Fault, Misconfigured
from controller.model.instance import Event, Instance
from controller.model.market import Listing, PriceIncrease
from controller.model.money import MicroUsd, dollars
from controller.model.reasons import Reason
from controller.plan.track import event

EVERY = 3600.0  # seconds between looks while nothing calls for one
FRESH = 60.0  # seconds that the credit may be old when it decides something


class AccountWatch:
    """Looks at the account when it matters, and remembers in the ledger what was seen."""

    def __init__(self, *, provider: Provider, ledger: Ledger, clock: Clock) -> None:
        self._provider = provider
        self._ledger = ledger
        self._clock = clock
        self._known = False

    async def look(self, max_age: float = EVERY) -> bool:
        """Look, unless the last look is younger than `max_age` seconds; whether one was taken.

        Raises Misconfigured if the ledger belongs to another account, and any fault while this process does not know.
        """
        now = self._clock.now()
        if self._known and now - self._remembered().get("at", float("-inf")) < max_age:
            return False
        try:
            account = await self._provider.account()
        except Misconfigured:
            raise
        except Fault:
            if not self._known:
                raise
            return False
        bound = self._ledger.fact("account")
        if bound is not None and bound != str(account.id):
            raise Misconfigured(
                Reason.ACCOUNT_CHANGED,
                f"this ledger belongs to vast.ai account {bound}, the key to account {account.id}; "
                "use that account's key, or another --ledger",
            )
        if bound is None:
            self._ledger.put_fact("account", str(account.id))
        self._known = True
        self._ledger.put_fact("credit", json.dumps({"at": now, "credit": account.credit}))
        return True

    async def proposals(self, listing: Listing) -> None:
        """Tell of price increases that hosts propose for our instances, once each: ignored, they change nothing yet."""
        ours = {i.instance_id: i for i in self._ledger.instances() if i.instance_id is not None}
        told = set(json.loads(self._ledger.fact("proposals") or "[]"))
        try:
            proposals = await self._provider.price_increases(listing)
        except Fault:
            return  # news, not a fact that anything rests on
        for proposal in proposals:
            instance = ours.get(proposal.instance_id)
            if instance is not None and proposal.id not in told:
                self._ledger.add_event(_proposed(instance, proposal, now=self._clock.now()))
        self._ledger.put_fact("proposals", json.dumps(sorted(proposal.id for proposal in proposals)))

    @property
    def credit(self) -> MicroUsd | None:
        """The credit when it was last looked at; None if it was not readable."""
        credit = self._remembered().get("credit")
        return None if credit is None else int(credit)

    def _remembered(self) -> dict[str, float]:
        known: dict[str, float] = json.loads(self._ledger.fact("credit") or "{}")
        return known


def _proposed(instance: Instance, proposal: PriceIncrease, *, now: float) -> Event:
    text = (
        f"its host proposes {dollars(proposal.new_price)}/h, {dollars(proposal.old_price)}/h now; "
        "not answered, so the old price holds until the contract ends"
    )
    return event(instance, Reason.PRICE_INCREASED, text, now=now, kind="Warning")
