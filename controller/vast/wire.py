"""vast.ai's rows as our records. Tolerant of what is new or missing, strict about what a value means.

Called by `client` alone. A row whose identity cannot be read, or an offer's price, yields None; any other unusable
field is None in its record.

Units. vast.ai's "MB" of memory are MiB (a 64 GiB machine shows some 64400), so GiB are those divided by 1024. Its
`mem_limit` is in decimal GB. A disk is searched, rented and listed in one unit, which we call GiB and do not convert.
"""

import re
from collections.abc import Mapping
from typing import Any, Literal

from controller.model.market import Endpoint, Offer, OfferQuery, PriceIncrease, Sighting
from controller.model.money import MicroUsd
from controller.vast.countries import country_of
from controller.vast.values import fraction, identity, line, nonnegative, positive, price, text, whole

HOURS_PER_MONTH = 720  # vast.ai's month, in which storage is priced
SECONDS_PER_HOUR = 3600
MIB_PER_GIB = 1024
GIB_PER_GB = 10**9 / 2**30
SEARCH_CAP = 64  # vast.ai returns no more rows than these, whatever limit is asked
MAX_PORT = 65535
HOST = re.compile(r"[A-Za-z0-9.:-]+")

Row = dict[str, Any]


def search_body(query: OfferQuery, *, from_usd: float | None) -> Row:
    """What to search for, cheapest first; `from_usd` is where the page before ended, None on the first page."""
    filters: dict[str, Row] = {
        "gpu_name": {"eq": query.gpu},
        "num_gpus": {"eq": query.gpu_count},
        "rentable": {"eq": True},
        "rented": {"eq": False},
        "external": {"eq": False},
        # said outright: left out, it may mean any to one server and verified alone to another
        "verified": {"in": [True, False]} if query.verified is None else {"eq": query.verified},
        "geolocation": {"in": list(query.countries) or None},
        "reliability": {"gte": query.min_reliability},
        "dph_total": {"gte": from_usd},
    }
    asked = {field: {op: v for op, v in ops.items() if v is not None} for field, ops in filters.items()}
    return {field: ops for field, ops in asked.items() if ops} | {
        "type": "on-demand",
        "order": [["dph_total", "asc"]],
        "limit": SEARCH_CAP,
        "allocated_storage": query.disk_gib,
    }


def offer(row: Any, *, disk_gib: float) -> Offer | None:
    """One offer, priced with a disk of `disk_gib`. None when its id, machine, GPUs or price cannot be read."""
    if not isinstance(row, dict):
        return None
    ask, machine, gpu = identity(row.get("id")), identity(row.get("machine_id")), text(row.get("gpu_name"))
    gpus, all_in = whole(row.get("num_gpus")), _offer_price(row, disk_gib)
    if ask is None or machine is None or gpu is None or not gpus or all_in is None:
        return None
    return Offer(
        id=ask,
        machine_id=machine,
        gpu=gpu,
        gpu_count=gpus,
        price=all_in,
        rentable=row.get("rentable") is not False and row.get("rented") is not True,
        host_id=identity(row.get("host_id")),
        gpu_fraction=fraction(row.get("gpu_frac")),
        gpu_ram_mib=identity(row.get("gpu_ram")),
        ram_gib=_ram_share_gib(row),
        cpu_cores=positive(row.get("cpu_cores_effective")),
        disk_gib=nonnegative(row.get("disk_space")),
        down_mbps=nonnegative(row.get("inet_down")),
        up_mbps=nonnegative(row.get("inet_up")),
        down_usd_per_gb=nonnegative(row.get("inet_down_cost")),
        reliability=fraction(row.get("reliability2") or row.get("reliability")),
        verified=_verified(row),
        country=_country(row),
        cuda=positive(row.get("cuda_max_good")),
        direct_ports=whole(row.get("direct_port_count")),
        remaining_seconds=nonnegative(row.get("duration")),
    )


def list_price_usd(row: Any) -> float | None:
    """The price a search is ordered by, as vast.ai wrote it: where the next page starts."""
    return positive(row.get("dph_total")) if isinstance(row, dict) else None


def sighting(row: Any) -> Sighting | None:
    """One instance as listed. None when it has no id."""
    seen = identity(row.get("id")) if isinstance(row, dict) else None
    if seen is None:
        return None
    return Sighting(
        id=seen,
        label=text(row.get("label")),
        machine_id=identity(row.get("machine_id")),
        host_id=identity(row.get("host_id")),
        gpu=text(row.get("gpu_name")),
        gpu_count=identity(row.get("num_gpus")),
        price=price(row.get("dph_total")),
        actual=_state(row.get("actual_status")),
        intended=_state(row.get("intended_status")),
        current=_state(row.get("cur_state")),
        message=line(row.get("status_msg")),
        is_bid=row.get("is_bid") is True,
        country=_country(row),
        started_at=positive(row.get("start_date")),
        ends_at=positive(row.get("end_date")),
        ram_gib=_instance_ram_gib(row),
        cpu_cores=positive(row.get("cpu_cores_effective")),
        disk_gib=positive(row.get("disk_space")),
        image=text(row.get("image_uuid")),
        endpoints=tuple(end for end in (_direct(row), _proxy(row)) if end is not None),
    )


def price_increase(row: Any, listed: Mapping[int, Sighting]) -> PriceIncrease | None:
    """A proposed price for one of `listed`, whose GPUs and disk its rates are for: dollars a GPU and a GB, a second.

    None when it is for another instance or cannot be read. A rate that is null does not change.
    """
    if not isinstance(row, dict):
        return None
    proposal, seen = identity(row.get("pending_price_increase_id")), listed.get(identity(row.get("contract_id")) or 0)
    if proposal is None or seen is None or seen.gpu_count is None or seen.disk_gib is None:
        return None
    old_per_s = new_per_s = 0.0
    for rate, amount in (("gpu_costpersec", seen.gpu_count), ("disk_ram_costpersec", seen.disk_gib)):
        old, new = nonnegative(row.get(f"old_{rate}")), nonnegative(row.get(f"new_{rate}"))
        old_per_s += ((old if old is not None else new) or 0.0) * amount
        new_per_s += ((new if new is not None else old) or 0.0) * amount
    was, becomes = price(old_per_s * SECONDS_PER_HOUR), price(new_per_s * SECONDS_PER_HOUR)
    if was is None or becomes is None:
        return None
    return PriceIncrease(id=proposal, instance_id=seen.id, old_price=was, new_price=becomes)


def _offer_price(row: Row, disk_gib: float) -> MicroUsd | None:
    """The dearer of the price shown and the sum of its parts: a search that ignored the disk shows too little."""
    shown = positive(row.get("dph_total"))
    if shown is None:
        return None
    gpus, disk_month = nonnegative(row.get("dph_base")) or 0.0, nonnegative(row.get("storage_cost")) or 0.0
    return price(max(shown, gpus + disk_month * disk_gib / HOURS_PER_MONTH))


def _ram_share_gib(row: Row) -> float | None:
    """The share of the machine's memory that goes with the share of its cores, else of its GPUs, else all of it."""
    machine_mib = positive(row.get("cpu_ram"))
    if machine_mib is None:
        return None
    cores, own = positive(row.get("cpu_cores")), positive(row.get("cpu_cores_effective"))
    share = min(1.0, own / cores) if cores is not None and own is not None else fraction(row.get("gpu_frac")) or 1.0
    return machine_mib * share / MIB_PER_GIB


def _instance_ram_gib(row: Row) -> float | None:
    """What the container may use, where the host reports it, else its share of the machine."""
    limit_gb = positive(row.get("mem_limit"))
    return limit_gb * GIB_PER_GB if limit_gb is not None else _ram_share_gib(row)


def _verified(row: Row) -> bool | None:
    """Rows say `verification` in words; some captures say `verified`, in words or as a truth value."""
    said = row.get("verification") or row.get("verified")
    if isinstance(said, bool):
        return said
    return None if text(said) is None else text(said) == "verified"


def _country(row: Row) -> str | None:
    return country_of(text(row.get("country_code"))) or country_of(text(row.get("geolocation")))


def _state(value: Any) -> str | None:
    word = text(value)
    return word.lower() if word is not None else None


def _direct(row: Row) -> Endpoint | None:
    """The container's port 22 as mapped on the host: only a running instance has it, and not on every host."""
    ports = row.get("ports")
    mapped = ports.get("22/tcp") if isinstance(ports, dict) else None
    first = mapped[0] if isinstance(mapped, list) and mapped else None
    port = first.get("HostPort") if isinstance(first, dict) else None
    return _endpoint("direct", row.get("public_ipaddr"), whole(port))


def _proxy(row: Row) -> Endpoint | None:
    """vast.ai's own relay; beside Jupyter its SSH is on the next port. Set from creation on, so it proves nothing."""
    port, runtype = whole(row.get("ssh_port")), text(row.get("image_runtype")) or ""
    return _endpoint("proxy", row.get("ssh_host"), port + 1 if port is not None and "jupyter" in runtype else port)


def _endpoint(route: Literal["direct", "proxy"], host: Any, port: int | None) -> Endpoint | None:
    name = text(host)
    if name is None or HOST.fullmatch(name) is None or port is None or not 0 < port <= MAX_PORT:
        return None
    return Endpoint(route=route, host=name, port=port)
