"""Searching offers and renting one.

Part of the endpoint table that api serves.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from controller.emulator import query
from controller.emulator.contracts import Order
from controller.emulator.faults import Answer, refusal
from controller.emulator.gpus import GPUS
from controller.emulator.limits import Limit
from controller.emulator.market import Slot
from controller.emulator.routes import Endpoint, Incoming

MIN_DISK_GB = 8.0
MAX_LABEL, MAX_SCRIPT, MAX_ENV = 256, 4096, 32768
MIN_BID = 0.001
SEARCH = Limit(10, 60.0)


def gpu_names(call: Incoming) -> Answer:
    """Return every model name on the market."""
    return Answer(200, {"gpu_names": sorted({gpu.name for gpu in GPUS} | set(call.world.market.gpu_names()))})


def gpu_types(_call: Incoming) -> Answer:
    """Return the models with their memory."""
    return Answer(200, {"gpu_types": [{"canonical_name": gpu.name, "gpu_ram_mb": gpu.ram_mb} for gpu in GPUS]})


def search_bundles(call: Incoming) -> Answer:
    """Search with a flat body, or with ?q= in a GET."""
    body: Any = call.body
    if "q" in call.query:
        try:
            body = json.loads(call.query["q"])
        except ValueError:
            raise refusal("bad_request", msg="q: not JSON") from None
    return Answer(200, {"success": True, "offers": _found(call, body, query.DEFAULTS)})


def search_asks(call: Incoming) -> Answer:
    """Search with {"select_cols": [...], "q": {...}}, strictly; no filter is added."""
    extra = [name for name in call.body if name not in ("select_cols", "q")]
    if extra:
        raise refusal("bad_request", msg="; ".join(f"{name}: Extra inputs are not permitted" for name in extra))
    rows = _found(call, call.body.get("q") or {}, {})
    wanted = call.body.get("select_cols") or ["*"]
    if "*" not in wanted:
        rows = [{name: row.get(name) for name in wanted} for row in rows]
    return Answer(200, {"offers": rows})


def _found(call: Incoming, body: Mapping[str, Any], defaults: Mapping[str, Any]) -> list[dict[str, Any]]:
    search = query.parse(body, defaults=defaults)
    world = call.world
    rows = world.market.rows(world.time, allocated_gb=search.storage_gb, bid=search.bid, filters=search.filters)
    return query.run(replace(search, filters={}), rows, cap=world.scenario.limits.search_cap)


def create(call: Incoming) -> Answer:
    """Rent an offer."""
    order = _order(call.body)
    slot = _rentable(call, order)
    if call.world.credit <= 0:
        raise refusal("insufficient_credit")
    contract = call.world.create(slot, order)
    secret = {"instance_api_key": f"SECRET-instance-key-{contract.id}"}
    if order.bid is not None and order.bid < float(slot.row["min_bid"]):
        call.world.stop(contract)
        raise refusal("bid_too_low", new_contract=contract.id)
    return Answer(200, {"success": True, "new_contract": contract.id, **secret})


def _rentable(call: Incoming, order: Order) -> Slot:
    offer_id = int(call.path["id"]) if call.path["id"].isdigit() else -1
    slot = call.world.market.find(offer_id)
    if slot is None:
        listed = call.world.market.knows(offer_id)
        name = "no_such_ask_410" if listed and order.cancel_unavail else "no_such_ask"
        text = f"error {'410/3907' if listed else '404/3603'}: no_such_ask Instance type {offer_id} is not available."
        raise refusal(name, msg=text, ask_id=offer_id)
    if order.disk_gb > float(slot.row["disk_space"]):
        raise refusal("invalid_args", msg=f"error 400/3467: disk {order.disk_gb} exceeds {slot.row['disk_space']} GB")
    base = slot.row["dph_base"]
    if base is None or math.isnan(base):
        raise refusal("no_such_ask_400")
    return slot


def _order(body: Mapping[str, Any]) -> Order:
    image, label, bid = body.get("image"), body.get("label"), body.get("price")
    disk_gb = _number(body.get("disk", MIN_DISK_GB), "disk")
    if not isinstance(image, str) or not image or body.get("client_id", "me") != "me":
        raise refusal("invalid_args", msg="error 400/3467: Invalid args: 'image' is required")
    if disk_gb < MIN_DISK_GB:
        raise refusal("invalid_args", msg=f"error 400/3467: disk must be at least {MIN_DISK_GB:.0f} GB")
    if label is not None and len(str(label)) > MAX_LABEL:
        raise refusal("label_too_long", msg=f"label exceeds the limit {MAX_LABEL}")
    if bid is not None and _number(bid, "price") < MIN_BID:
        raise refusal("invalid_price")
    args, onstart, env = tuple(body.get("args") or ()), body.get("onstart"), _env(body.get("env"))
    if len(onstart or "") + sum(map(len, args)) > MAX_SCRIPT or sum(map(len, [*env, *env.values()])) > MAX_ENV:
        raise refusal("invalid_args", msg="error 400/3467: onstart, args or env too long")
    return Order(
        image=image,
        disk_gb=disk_gb,
        label=None if label is None else str(label),
        bid=None if bid is None else float(bid),
        env=env,
        onstart=onstart,
        runtype=str(body.get("runtype") or "ssh_proxy"),
        args=args,
        stopped=body.get("target_state") == "stopped",
        cancel_unavail=bool(body.get("cancel_unavail")),
    )


def _env(value: Any) -> dict[str, str]:
    if value in (None, ""):
        return {}
    if not isinstance(value, dict):
        raise refusal("invalid_args", msg="error 400/3467: env must be an object")
    return {str(name): str(text) for name, text in value.items()}


def _number(value: Any, name: str) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise refusal("invalid_args", msg=f"error 400/3467: {name} is not a number") from None


ENDPOINTS = (
    Endpoint("GET", "/api/v0/gpu_names/unique/", gpu_names, public=True),
    Endpoint("GET", "/api/v0/gpu_types/", gpu_types, public=True),
    Endpoint("POST", "/api/v0/bundles/", search_bundles, "search", SEARCH, public=True, search=True),
    Endpoint("GET", "/api/v0/bundles/", search_bundles, "search", SEARCH, public=True, search=True),
    Endpoint("PUT", "/api/v0/search/asks/", search_asks, "search", SEARCH, search=True),
    Endpoint("PUT", "/api/v0/asks/{id}/", create, "create", Limit(1, 4.5, penalty_s=12.0)),
)
