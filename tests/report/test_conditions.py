import pytest

from controller.model.actions import Rent
from controller.model.faults import Misconfigured, Refused, Retry
from controller.model.instance import Decision, Phase
from controller.model.money import micro
from controller.model.reasons import Reason
from controller.model.status import FleetStatus, Market
from controller.plan.fleet import plan
from controller.report.conditions import Found
from controller.report.fleet import status
from tests.plan.conftest import NOW, SHAPE, facts, fleet, instance, later, offer, verdict, young

FOUR = [instance(n) for n in range(1, 5)]
EMPTY = Market(at=NOW, matching=0, rejected={Reason.REGION: 3, Reason.PRICE: 9})
OFFERS = Market(at=NOW, matching=5)
TOO_DEAR = Market(at=NOW, matching=0, rejected={Reason.BUDGET_EXHAUSTED: 2})
SLOW = verdict(Decision.REJECTED, 30.0, next_run_at=None)
ALWAYS = {"Ready", "TargetMet", "BudgetAvailable", "MarketAvailable", "CreditSufficient", "BenchmarksHealthy"}
ALWAYS |= {"RemediationAllowed"}


def found(*instances, faults=(), market=None, before=None, renting=False, **values):
    """A pass over these instances, as the loop would hand it to the report."""
    seen = facts(*instances, **values)
    made = plan(seen)
    rents = (
        (Rent(fleet="provers", shape=SHAPE, offer=offer(), rate=1, reason=Reason.FILLING, why="w"),) if renting else ()
    )
    return Found(facts=seen, plan=made, actions=(*made.actions, *rents), faults=faults, market=market, before=before)


RETRY = Retry(Reason.RATE_LIMITED, "POST bundles: 429")
BAD_KEY = Misconfigured(Reason.AUTH_FAILED, "GET instances: 401")
RETIRED = Misconfigured(Reason.ENDPOINT_RETIRED, "GET instances: 410")
TAKEN = Refused(Reason.OFFER_GONE, "PUT asks: no_such_ask")

SITUATIONS = {
    "all is well": (found(*FOUR), "True", Reason.TARGET_REACHED, None),
    "nothing yet, renting": (found(market=OFFERS, renting=True), "False", None, "Reconciling"),
    "some on their way": (found(*FOUR[:3], young(9)), "False", Reason.FILLING, "Reconciling"),
    "nothing fits": (found(*FOUR[:3], market=EMPTY), "False", Reason.NO_MATCHING_OFFER, "Reconciling"),
    "nothing affordable fits": (found(*FOUR[:3], market=TOO_DEAR), "False", Reason.BUDGET_EXHAUSTED, "Reconciling"),
    "the budget is spent": (
        found(*FOUR[:3], fleet=fleet(budget=0.9)),
        "False",
        Reason.BUDGET_EXHAUSTED,
        "Reconciling",
    ),
    "no credit": (found(*FOUR[:3], credit=0), "False", Reason.CREDIT_EXHAUSTED, "Reconciling"),
    "suspended and short": (found(*FOUR[:3], fleet=fleet(suspend=True)), "False", Reason.SUSPENDED, "Reconciling"),
    "suspended and held": (found(*FOUR, fleet=fleet(suspend=True)), "True", Reason.TARGET_REACHED, None),
    "listing fails": (found(*FOUR, listing=None, faults=(RETRY,)), "Unknown", Reason.RATE_LIMITED, "Reconciling"),
    "listing unknown": (found(*FOUR, listing=None), "Unknown", Reason.LISTING_FAILED, "Reconciling"),
    "bad key": (found(*FOUR, listing=None, faults=(BAD_KEY,)), "False", Reason.AUTH_FAILED, "Stalled"),
    "a retired call": (found(*FOUR, listing=None, faults=(RETIRED,)), "False", Reason.ENDPOINT_RETIRED, "Stalled"),
    "one is missing": (
        found(*FOUR[:3], instance(4, absent_since=NOW), rows={}),
        "Unknown",
        Reason.MISSING,
        "Reconciling",
    ),
    "one is too slow": (
        found(*FOUR, verdicts={i.nonce: SLOW if i is FOUR[0] else verdict() for i in FOUR}),
        "False",
        None,
        "Reconciling",
    ),
    "one is being destroyed": (
        found(*FOUR, young(9, Phase.DESTROYING, destroy_calls=1, not_before=NOW + 60)),
        "False",
        Reason.TEARING_DOWN,
        "Reconciling",
    ),
    "deleting": (found(*FOUR, deleting=True), "False", Reason.TEARING_DOWN, "Reconciling"),
    "not loaded": (found(*FOUR, fleet=None), "Unknown", Reason.UNMANAGED, "Reconciling"),
    "host out of contact": (
        found(*FOUR[:3], instance(4, trouble_since=NOW)),
        "Unknown",
        Reason.DEGRADED,
        "Reconciling",
    ),
    "nothing is wanted": (found(fleet=fleet(target={"instances": 0})), "True", Reason.TARGET_REACHED, None),
}


def said(situation):
    return {c.type: c for c in status(situation).conditions}


@pytest.mark.parametrize(("situation", "ready", "reason", "progress"), SITUATIONS.values(), ids=SITUATIONS)
def test_ready_says_what_is_so(situation, ready, reason, progress):
    """In each situation Ready has its status and reason, and who waits can tell whether waiting helps."""
    conditions = said(situation)
    assert conditions["Ready"].status == ready
    if reason is not None:
        assert conditions["Ready"].reason is reason
    assert {kind for kind in ("Reconciling", "Stalled") if kind in conditions} == ({progress} - {None})


@pytest.mark.parametrize("situation", [row[0] for row in SITUATIONS.values()], ids=SITUATIONS)
def test_the_rules_of_kstatus_hold_everywhere(situation):
    """Ready and its companions are always present; Reconciling and Stalled only while true, and never both."""
    conditions = said(situation)
    assert set(conditions) >= ALWAYS
    for kind in ("Reconciling", "Stalled", "Suspended"):
        assert kind not in conditions or conditions[kind].status == "True"
    assert not {"Reconciling", "Stalled"} <= set(conditions)
    if conditions["Ready"].status != "True":
        assert {"Reconciling", "Stalled"} & set(conditions)
    assert all(isinstance(c.reason, Reason) for c in conditions.values())


@pytest.mark.parametrize("fault", [RETRY, TAKEN])
def test_what_heals_by_itself_is_never_stalled(fault):
    """Too many requests, a taken offer and an empty market are waited for, not given up."""
    conditions = said(found(*FOUR[:3], faults=(fault,), market=EMPTY))
    assert conditions["Reconciling"].reason is Reason.PROGRESSING_WITH_RETRY
    assert "Stalled" not in conditions


def test_the_time_of_a_change_is_kept():
    """A condition's time is when its status last changed: not when its reason did, and not each pass."""
    first = status(found(*FOUR))
    second = status(_later(60, first, *FOUR))
    third = status(_later(120, second, *FOUR[:3]))
    fourth = status(_later(180, third, *FOUR[:3], young(9)))

    def when(of):
        ready = of.condition("Ready")
        return ready.last_transition_time

    reasons = [c.reason for c in (third.condition("Ready"), fourth.condition("Ready")) if c is not None]
    assert len(set(reasons)) == 2
    assert (when(first), when(second), when(third), when(fourth)) == (NOW, NOW, NOW + 120, NOW + 120)


def _later(seconds, before, *instances) -> Found:
    seen = later(facts(*instances), seconds)
    return Found(facts=seen, plan=plan(seen), before=before)


def test_why_offers_fell_is_told():
    """Where nothing matches, the condition names the steps, the most frequent first."""
    message = said(found(*FOUR[:3], market=EMPTY))["MarketAvailable"].message
    assert message == "0 offers match; rejected: Price 9, Region 3"


def test_money_is_told():
    """Spending counts what has an id, what is reserved all that may bill; the credit lasts for some hours."""
    made = status(found(*FOUR, young(9, Phase.UNCLEAR), credit=micro(24), spend=micro(1.2)))
    assert (made.spend_per_hour, made.reserved_per_hour) == (1.2, 1.5)
    assert made.credit_runway_hours == pytest.approx(20)
    assert made.cost_per_unit == pytest.approx(1.2 / 240)
    assert status(found(*FOUR, credit=-micro(5), spend=micro(1.2))).credit_runway_hours == 0


@pytest.mark.parametrize("values", [{"credit": None}, {"credit": 0, "spend": 0}, {"spend": 0}, {"credit": -micro(5)}])
def test_no_sum_is_divided_by_nothing(values):
    """Unknown or exhausted credit, and a fleet that does nothing, give no nonsense and no error."""
    made = status(found(fleet=fleet(target={"instances": 1}), **values))
    assert made.cost_per_unit is None
    assert made.credit_runway_hours is None


def test_two_hundred_failures_do_not_grow_the_status():
    """However often creating fails, a status stays as small as it was."""
    before = None
    sizes = []
    for nth in range(200):
        failing = found(
            *FOUR[:3], faults=(Retry(Reason.SERVER_ERROR, "x" * 200),) * (nth + 1), market=EMPTY, before=before
        )
        before = status(failing)
        sizes.append(len(before.model_dump_json(by_alias=True)))
    assert len(set(sizes[1:])) == 1
    assert sizes[0] < 5000


def test_a_status_survives_its_keeping():
    """What is kept as JSON is read back the same."""
    for situation, *_ in SITUATIONS.values():
        made = status(situation)
        assert FleetStatus.model_validate_json(made.model_dump_json(by_alias=True)) == made
