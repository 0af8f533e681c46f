"""What each answer of vast.ai means we should do next."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from controller.model.faults import Fault, Gone, Misconfigured, Refused, Retry, Unclear
from controller.model.market import CreateRequest, Listing, OfferQuery
from controller.model.reasons import Reason
from controller.vast.client import VastClient

ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text(encoding="utf-8"))
RENT = CreateRequest(
    offer_id=7100001, image="example/prover:1.4", disk_gib=250, label="vf/a/b/c", env={"TOKEN": "s3cret"}
)
FAULTS = {kind.__name__: kind for kind in (Retry, Refused, Gone, Unclear, Misconfigured)}
LOST = [
    httpx.ReadTimeout("t"),
    httpx.ReadError("r"),
    httpx.WriteError("w"),
    httpx.RemoteProtocolError("closed"),
    TimeoutError(),
]
UNSENT = [httpx.ConnectError("refused"), httpx.ConnectTimeout("t"), httpx.PoolTimeout("p"), httpx.ProxyError("407")]

pytestmark = pytest.mark.looptime


async def call(client: VastClient, name: str) -> Any:
    """Make the call of this name, with arguments that do not matter."""
    arguments: dict[str, tuple[Any, ...]] = {
        "search": (OfferQuery(gpu="RTX 4090", gpu_count=1, disk_gib=250),),
        "create": (RENT,),
        "label": (5000, "vf/a/b/c"),
        "attach_key": (5000, "ssh-ed25519 AAAA"),
        "add_account_key": ("ssh-ed25519 AAAA",),
        "price_increases": (Listing(at=0, sightings=()),),
    }
    targeted = ("get", "destroy", "start", "stop", "logs")
    return await getattr(client, name)(*arguments.get(name, (5000,) if name in targeted else ()))


@pytest.mark.parametrize("row", ANSWERS, ids=lambda row: row["case"])
async def test_answer_means(row, play):
    """Each answer is read as what to do next, with its reason, and with when to come back if it says so."""
    body = row["text"] if "text" in row else json.dumps(row["body"])
    played = play((row["status"], body, row.get("headers")))
    with pytest.raises(Fault) as caught:
        await call(played.client, row["call"])
    fault = caught.value
    assert (type(fault), fault.reason.value) == (FAULTS[row["fault"]], row["reason"])
    assert str(fault).startswith(row["call"])
    if "after" in row:
        assert isinstance(fault, Retry)
        assert fault.after == pytest.approx(row["after"], abs=60 if row["reason"] == "QuotaExceeded" else 0)
    if isinstance(fault, Refused):
        assert fault.instance_id == row.get("instance_id")


async def test_env_does_not_hide_the_cause(play):
    """An env value that is a word of vast.ai's own is not in the text, and the answer means what it meant."""
    rent = replace(RENT, env={"A": "no_such", "B": "no_such_ask", "C": "1"})
    with pytest.raises(Refused) as caught:
        await play((400, {"success": False, "error": "no_such_ask"})).client.create(rent)
    assert caught.value.reason is Reason.OFFER_GONE
    assert str(caught.value) == "create: vast.ai answered 400: ***"


async def test_no_instance_is_no_fault(play):
    """An instance that vast.ai does not show is None, whether it says so by null or by 404."""
    played = play(
        (200, {"instances": None}), (404, {"success": False, "error": "not_found", "msg": "Instance not found"})
    )
    assert await played.client.get(5000) is None
    assert await played.client.get(5000) is None


async def test_no_keys_is_no_fault(play):
    """An account without SSH keys has none: the 404 that says so is told from the one of a wrong key."""
    assert await play((404, {"msg": "No SSH keys found for the user."})).client.account_keys() == ()


@pytest.mark.parametrize("status", [400, 409, 200])
@pytest.mark.parametrize("name", ["attach_key", "add_account_key"])
async def test_already_there_is_no_fault(status, name, play):
    """A key that is there already is as good as one just added."""
    played = play((status, {"success": False, "error": "ssh_key_error", "msg": "SSH key already exists."}))
    await call(played.client, name)
    assert len(played.requests) == 1


@pytest.mark.parametrize("error", LOST, ids=lambda error: type(error).__name__)
async def test_lost_answer(error, play):
    """A create whose answer was lost is Unclear and never sent twice; a destroy is sent thrice, then Retry."""
    played = play(error)
    with pytest.raises(Unclear, match="create: no answer"):
        await call(played.client, "create")
    assert played.client.calls == {"create": 1}
    with pytest.raises(Retry, match="destroy: no answer"):
        await call(played.client, "destroy")
    assert played.client.calls["destroy"] == 3


@pytest.mark.parametrize("error", UNSENT, ids=lambda error: type(error).__name__)
async def test_unsent(error, play):
    """A create that never reached vast.ai is sent again, and rents once."""
    played = play(error, (200, {"success": True, "new_contract": 9000001}))
    assert await call(played.client, "create") == 9000001
    assert len(played.requests) == 2


async def test_rate_limited_create_waits_and_is_sent_again(play):
    """A create that was turned away for its pace is sent again after the wait that was asked."""
    played = play((429, "slow", {"Retry-After": "20"}), (200, {"success": True, "new_contract": 9000001}))
    assert await call(played.client, "create") == 9000001
    assert played.waits() == [0.0, 20.0]


async def test_long_waits_are_the_callers(play):
    """A wait beyond a minute is not slept through here: the caller is told of it at once."""
    played = play((429, "slow", {"Retry-After": "61"}))
    with pytest.raises(Retry) as caught:
        await call(played.client, "list")
    assert (caught.value.after, len(played.requests)) == (61, 1)


@pytest.mark.parametrize(
    "name", ["list", "search", "get", "destroy", "label", "stop", "attach_key", "account", "gpu_names"]
)
async def test_three_tries(name, play):
    """What may be repeated is tried three times against a failing server, further apart each time."""
    played = play((503, "busy"))
    with pytest.raises(Retry):
        await call(played.client, name)
    first, second, third = played.waits()
    assert third - second >= second - first > 0


@pytest.mark.parametrize("name", ["create", "start", "add_account_key"])
async def test_one_try(name, play):
    """What may not be repeated is sent once to a failing server."""
    played = play((503, "busy"))
    with pytest.raises(Unclear):
        await call(played.client, name)
    assert len(played.requests) == 1
