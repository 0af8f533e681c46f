"""Instances: list, read, label, start, stop, destroy, reboot, bid, logs, attach keys.

Part of the endpoint table that api serves.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from controller.emulator.contracts import Contract, Key
from controller.emulator.faults import Answer, refusal
from controller.emulator.limits import Limit
from controller.emulator.paging import page_of
from controller.emulator.routes import NO_LIMIT, OK, Endpoint, Incoming, readable
from controller.emulator.rows import instance_row

MAX_LABEL = 1024
MIN_BID, MAX_BID_PER_GPU = 0.001, 32
SECOND, TWO_SECONDS = Limit(1, 1.0), Limit(1, 2.0)


def list_v1(call: Incoming) -> Answer:
    """Return a page of the account's instances."""
    rows = _rows(call)
    page = page_of(rows, call.query)
    return Answer(
        200,
        {
            "success": True,
            "instances_found": len(page.rows),
            "total_instances": page.total,
            "label_counts": dict(Counter(row["label"] or "" for row in rows)),
            "next_token": page.next_token,
            "instances": page.rows,
        },
    )


def list_v0(call: Incoming) -> Answer:
    """Refuse, or return everything at once where the scenario keeps the old list alive."""
    if not call.world.scenario.v0_list:
        raise refusal("deprecated_endpoint")
    return Answer(200, {"success": True, "instances_found": len(rows := _rows(call)), "instances": rows})


def _rows(call: Incoming) -> list[dict[str, Any]]:
    world = call.world
    return [
        instance_row(world, contract, listening=call.listening(contract))
        for contract in world.contracts.values()
        if readable(world, contract) and (contract.destroyed_at is None or world.time < (contract.listed_until or 0))
    ]


def get_one(call: Incoming) -> Answer:
    """Return one instance, or null under the same key if there is none."""
    contract = call.find(call.path["id"])
    row = None if contract is None else instance_row(call.world, contract, listening=call.listening(contract))
    return Answer(200, {"instances": row})


def put_one(call: Incoming) -> Answer:
    """Start, stop or label."""
    contract = call.contract()
    if "label" in call.body:
        label = call.body["label"]
        if label is not None and len(str(label)) > MAX_LABEL:
            raise refusal("label_too_long")
        contract.label = None if label is None else str(label)
    return _set_state(call, contract, call.body.get("state")) if "state" in call.body else OK


def put_many(call: Incoming) -> Answer:
    """Start or stop several."""
    for number in call.body.get("ids") or ():
        contract = call.find(number)
        if contract is not None:
            _set_state(call, contract, call.body.get("state"))
    return OK


def _set_state(call: Incoming, contract: Contract, state: object) -> Answer:
    if state == "stopped":
        call.world.stop(contract)
        return OK
    if state != "running":
        raise refusal("invalid_args", msg="state must be running or stopped")
    if not call.world.start(contract):
        raise refusal("queued")
    return OK


def destroy(call: Incoming) -> Answer:
    """End an instance."""
    call.world.destroy(call.contract())
    return Answer(200, {"success": True, "msg": "Instance destroyed"})


def destroy_many(call: Incoming) -> Answer:
    """End several; ids that are not ours are passed over."""
    for number in call.body.get("instance_ids") or ():
        contract = call.find(number)
        if contract is not None:
            call.world.destroy(contract)
    return OK


def reboot(call: Incoming) -> Answer:
    """Restart the container, keeping its files."""
    call.world.reboot(call.contract(), recycle=False)
    return OK


def recycle(call: Incoming) -> Answer:
    """Make the container anew, losing its files."""
    call.world.reboot(call.contract(), recycle=True)
    return OK


def change_bid(call: Incoming) -> Answer:
    """Set another bid, USD an hour for the whole instance."""
    contract = call.contract()
    price = call.body.get("price")
    if not isinstance(price, int | float) or price < MIN_BID or not contract.is_bid:
        raise refusal("bad_request", msg=f"Please set a bid price >= {MIN_BID}.")
    if price > MAX_BID_PER_GPU * contract.slot.row["num_gpus"]:
        raise refusal("bad_request", msg="Bid price too high.")
    call.world.reprice(contract, float(price))
    return OK


def request_logs(call: Incoming) -> Answer:
    """Say where the log can be fetched, without a key."""
    contract = call.find(call.path["id"])
    if contract is None:
        raise refusal("invalid_id")
    url = f"{call.base_url}/instance_logs/{contract.id}.log?tail={call.body.get('tail') or 1000}"
    return Answer(200, {"success": True, "result_url": url, "msg": "Log file will be available soon."})


def log_file(call: Incoming) -> Answer:
    """Return the container's log."""
    contract = call.world.contracts.get(int(call.path["id"]))
    if contract is None:
        raise refusal("invalid_id")
    lines = [f"+ {contract.order.onstart}"] if contract.order.onstart and contract.boots else []
    lines += ["Server listening on 0.0.0.0 port 22"] * contract.boots
    if contract.status_msg:
        lines.append(contract.status_msg.strip())
    tail = call.query.get("tail", "1000")
    return Answer(200, "\n".join(lines[-int(tail) :] if tail.isdigit() else lines) + "\n", "text/plain")


def attach_key(call: Incoming) -> Answer:
    """Let one more key in, some seconds from now."""
    contract, text = call.contract(), str(call.body.get("ssh_key", "")).strip()
    if not text.startswith(("ssh-", "ecdsa-")):
        raise refusal("invalid_args", msg="Invalid SSH public key")
    if any(key.text == text for key in contract.keys):
        raise refusal("bad_request", msg="SSH key already attached")
    since = call.world.time + call.world.scenario.attach_seconds
    contract.keys.append(Key(max((key.id for key in contract.keys), default=900) + 1, text, since))
    return Answer(200, {"success": True, "msg": "SSH key attached successfully"})


def attached_keys(call: Incoming) -> Answer:
    """Return the instance's keys, as JSON within JSON."""
    rows = [{"id": key.id, "public_key": key.text} for key in call.contract().keys]
    return Answer(200, {"success": True, "ssh_keys": json.dumps(rows)})


def detach_key(call: Incoming) -> Answer:
    """Shut one key out."""
    contract = call.contract()
    contract.keys = [key for key in contract.keys if str(key.id) != call.path["key_id"]]
    return OK


def filters(_call: Incoming) -> Answer:
    """Return what the list can be filtered by."""
    return Answer(200, {"success": True, "filters": []})


def _put_operation(body: Mapping[str, Any]) -> str:
    return {"running": "start", "stopped": "stop"}.get(str(body.get("state")), "label")


ENDPOINTS = (
    Endpoint("GET", "/api/v1/instances/", list_v1, "list", SECOND),
    Endpoint("GET", "/api/v0/instances/", list_v0, "list", SECOND),
    Endpoint("GET", "/api/v0/instances/filters/", filters),
    Endpoint("PUT", "/api/v0/instances/", put_many, _put_operation, TWO_SECONDS),
    Endpoint("DELETE", "/api/v0/instances/", destroy_many, "destroy", Limit(1, 3.0)),
    Endpoint("GET", "/api/v0/instances/{id}/", get_one, "get", TWO_SECONDS),
    Endpoint("PUT", "/api/v0/instances/{id}/", put_one, _put_operation, SECOND),
    Endpoint("DELETE", "/api/v0/instances/{id}/", destroy, "destroy", Limit(1, 3.0)),
    Endpoint("PUT", "/api/v0/instances/reboot/{id}/", reboot, "reboot", SECOND),
    Endpoint("PUT", "/api/v0/instances/recycle/{id}/", recycle, "reboot", SECOND),
    Endpoint("PUT", "/api/v0/instances/bid_price/{id}/", change_bid, "bid", Limit(1, 5.5)),
    Endpoint("PUT", "/api/v0/instances/request_logs/{id}/", request_logs, "logs"),
    Endpoint("GET", "/instance_logs/{id}.log", log_file, "other", public=True),
    Endpoint("GET", "/api/v0/instances/{id}/ssh/", attached_keys, "attach"),
    Endpoint("POST", "/api/v0/instances/{id}/ssh/", attach_key, "attach", NO_LIMIT),
    Endpoint("DELETE", "/api/v0/instances/{id}/ssh/{key_id}/", detach_key, "attach", TWO_SECONDS),
)
