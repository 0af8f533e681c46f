import fcntl
import json

import pytest

from controller.cli.plan import _show, record
from controller.loop.passes import Intended
from controller.model.reasons import Reason
from controller.model.status import Market
from controller.plan.fleet import plan
from tests.cli.conftest import Shell, manifest
from tests.plan.conftest import facts, fleet


def test_changes_are_pending(emulated: Shell):
    """A plan names the offers it would rent and what they cost, exits with 2, and writes nothing."""
    done = emulated.run("plan", emulated.write("fleet.yaml", manifest()), "-o", "json")
    assert done.returncode == 2, done.stderr
    (plan,) = json.loads(done.stdout)["items"]
    assert len(plan["rentals"]) == 2
    assert plan["after"]["spendPerHour"] == round(sum(rental["pricePerHour"] for rental in plan["rentals"]), 6)
    assert plan["after"]["perDay"] == 24 * plan["after"]["spendPerHour"]
    assert [file.name for file in emulated.directory.iterdir() if file.suffix != ".yaml"] == []


def test_it_reads_like_a_bill(emulated: Shell):
    """In a pipe a plan is plain text: a running total, the funnel of the offers, and what it will cost."""
    done = emulated.run("plan", emulated.write("fleet.yaml", manifest(budget=0.45)))
    assert done.returncode == 2
    assert done.stdout.isascii()
    assert "TOTAL $/H" in done.stdout
    assert "FAIL AT" in done.stdout
    assert "first hour $" in done.stdout


def test_it_works_beside_a_controller(emulated: Shell):
    """A plan is made while another process holds the ledger, and leaves the ledger as it is."""
    path = emulated.write("fleet.yaml", manifest(instances=1))
    assert emulated.run("apply", path).returncode == 0
    before = emulated.ledger.read_bytes()
    with (emulated.directory / "ledger.db.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = emulated.run("plan", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Nothing to do" in done.stdout
    assert emulated.ledger.read_bytes() == before


def test_what_is_wrong_exits_with_one(emulated: Shell):
    """A bad manifest, a bad option and a bad key exit with 1: 2 means that changes are pending."""
    path = emulated.write("fleet.yaml", manifest())
    assert emulated.run("plan", "-", stdin="kind: Fleet").returncode == 1
    assert emulated.run("plan", path, "--nonsense").returncode == 1
    refused = emulated.run("plan", path, VAST_API_KEY="SECRET-wrong-key")
    assert refused.returncode == 1
    assert "AuthFailed" in refused.stdout
    assert "Nothing to do" not in refused.stdout
    assert "SECRET-wrong-key" not in refused.stdout + refused.stderr


@pytest.mark.parametrize(
    ("most", "market", "said"),
    [
        (0, Market(at=1.0), "Market: not searched, for no shape may have more instances now"),
        (4, Market(at=1.0), "Market: no offer of such a GPU"),
        (4, Market(at=1.0, rejected={Reason.DISK: 3}), "Market: 0 of 3 offers match"),
    ],
)
def test_a_market_without_offers(most: int, market: Market, said: str, capsys: pytest.CaptureFixture[str]):
    """A market that was not needed is told apart from one that has nothing, and from one of which nothing fits."""
    shape = {"gpu": "RTX 4090", "minRate": 50, "maxInstances": most}
    seen = facts(fleet=fleet(shapes=(shape,)))
    planned = plan(seen)
    one = Intended(facts=seen, plan=planned, actions=planned.actions, market=market, faults=())
    _show(one)
    assert said in capsys.readouterr().out.splitlines()
    assert (record(one)["market"] is None) is (most == 0)
