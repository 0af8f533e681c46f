"""The account: its user and credit, SSH keys, price increases, charges; and reports on machines.

Part of the endpoint table that api serves.
"""

from typing import Any

from controller.emulator.contracts import Increase, Key
from controller.emulator.faults import Answer, refusal
from controller.emulator.limits import Limit
from controller.emulator.offers import HOURS_A_MONTH
from controller.emulator.routes import OK, Endpoint, Incoming, readable

KEY_TYPES = ("ssh-ed25519", "ssh-rsa", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521")
SECOND = Limit(1, 1.0)
USER_ID = 1001


def user(call: Incoming) -> Answer:
    """Return the account; prepaid money is `credit`."""
    keys = call.world.account_keys
    return Answer(200, {
        "id": USER_ID, "username": "emulated", "email": "emulated@example.com", "credit": call.world.credit,
        "balance": 0.0, "balance_threshold": 0.0, "balance_threshold_enabled": False, "autobill_threshold": None,
        "ssh_key": next((key.text for key in keys.values()), None), "sid": "SECRET-session",
        "api_key": "SECRET-user-key",
    })  # fmt: skip


def _key_row(key: Key) -> dict[str, Any]:
    return {"id": key.id, "user_id": USER_ID, "public_key": key.text, "created_at": key.since, "deleted_at": None}


def _key_text(call: Incoming) -> str:
    text = call.body.get("ssh_key")
    if not isinstance(text, str) or text.split()[:1] == [] or text.split()[0] not in KEY_TYPES:
        raise refusal("invalid_args", msg="Invalid SSH public key")
    return text.strip()


def list_keys(call: Incoming) -> Answer:
    """Return the account's keys; having none is a 404."""
    if not call.world.account_keys:
        raise refusal("no_ssh_keys")
    return Answer(200, [_key_row(key) for key in call.world.account_keys.values()])


def add_key(call: Incoming) -> Answer:
    """Register a key with the account; it works on instances created from now on."""
    text = _key_text(call)
    known = call.world.account_keys
    key = next((k for k in known.values() if k.text == text), None)
    if key is None:
        key = Key(max(known, default=500) + 1, text, call.world.time)
        known[key.id] = key
    return Answer(200, {"success": True, "key": _key_row(key)})


def update_key(call: Incoming) -> Answer:
    """Replace a key's text."""
    key = _known_key(call)
    call.world.account_keys[key.id] = Key(key.id, _key_text(call), call.world.time)
    return Answer(200, {"success": True, "key": _key_row(call.world.account_keys[key.id])})


def remove_key(call: Incoming) -> Answer:
    """Forget a key."""
    del call.world.account_keys[_known_key(call).id]
    return OK


def _known_key(call: Incoming) -> Key:
    number = call.path["id"]
    key = call.world.account_keys.get(int(number)) if number.isdigit() else None
    if key is None:
        raise refusal("invalid_id")
    return key


def price_increases(call: Incoming) -> Answer:
    """Return the proposals of hosts to raise a price, rates per second."""
    rows = [
        _increase_row(number, increase)
        for number, increase in call.world.increases.items()
        if increase.contract.destroyed_at is None
    ]
    return Answer(200, {"success": True, "count": len(rows), "truncated": False, "pending_price_increases": rows})


def _increase_row(number: int, increase: Increase) -> dict[str, Any]:
    contract = increase.contract
    slot = contract.slot.row
    disk = slot["storage_cost"] / HOURS_A_MONTH / 3600
    rates: dict[str, Any] = {}
    for age, base in (("new", increase.dph_base), ("old", contract.dph_base)):
        rates |= {
            f"{age}_gpu_costpersec": base / 3600, f"{age}_disk_ram_costpersec": disk,
            f"{age}_bwu_cost": slot["inet_up_cost"], f"{age}_bwd_cost": slot["inet_down_cost"],
            f"{age}_platform_fee": 0.25,
        }  # fmt: skip
    return {
        "pending_price_increase_id": number, "contract_id": contract.id, "host_id": slot["host_id"], **rates,
        "contract_end_date": contract.end_date, "ask_end_date": contract.end_date, "created_at": increase.proposed_at,
    }  # fmt: skip


def accept_increase(call: Incoming) -> Answer:
    """Take a proposal: the new rate holds at once."""
    increase = _proposal(call)
    call.world.reprice(increase.contract, increase.dph_base)
    return _settled(call, increase)


def reject_increase(call: Incoming) -> Answer:
    """Turn a proposal down: the old rate holds to the end of the contract."""
    return _settled(call, _proposal(call))


def _proposal(call: Incoming) -> Increase:
    extra = [name for name in call.body if name != "pending_price_increase_id"]
    if extra:
        raise refusal("bad_request", msg=f"{extra[0]}: Extra inputs are not permitted")
    known = call.world.increases.get(call.body.get("pending_price_increase_id", -1))
    if known is None or known.contract.destroyed_at is not None:
        raise refusal("no_pending_price_increase")
    return known


def _settled(call: Incoming, increase: Increase) -> Answer:
    number = call.body["pending_price_increase_id"]
    del call.world.increases[number]
    return Answer(200, {"success": True, "pending_price_increase_id": number, "contract_id": increase.contract.id})


def charges(call: Incoming) -> Answer:
    """Return what each instance was billed, in one page."""
    rows = [
        {
            "instance_id": contract.id,
            "label": contract.label,
            "amount": contract.billed_usd,
            "start": contract.created_at,
        }
        for contract in call.world.contracts.values()
        if readable(call.world, contract)
    ]
    return Answer(200, {"success": True, "results": rows, "count": len(rows), "total": len(rows), "next_token": None})


def reports(_call: Incoming) -> Answer:
    """Return what other renters reported of a machine: nothing."""
    return Answer(200, [])


ENDPOINTS = (
    Endpoint("GET", "/api/v0/users/current/", user, "user"),
    Endpoint("GET", "/api/v0/ssh/", list_keys, "ssh-keys"),
    Endpoint("POST", "/api/v0/ssh/", add_key, "ssh-keys", SECOND),
    Endpoint("PUT", "/api/v0/ssh/{id}/", update_key, "ssh-keys", SECOND),
    Endpoint("DELETE", "/api/v0/ssh/{id}/", remove_key, "ssh-keys", Limit(1, 2.0)),
    Endpoint("GET", "/api/v0/instances/pending-price-increases/", price_increases, "prices"),
    Endpoint("PUT", "/api/v0/instances/accept-price-increase/", accept_increase, "prices"),
    Endpoint("PUT", "/api/v0/instances/reject-price-increase/", reject_increase, "prices"),
    Endpoint("GET", "/api/v0/charges/", charges, "other", SECOND),
    Endpoint("GET", "/api/v0/machines/{id}/reports/", reports, "reports", Limit(1, 1.2)),
)
