"""An instance as vast.ai's API shows it.

Called by the instance routes. `ports` appear only when the container runs and the host listens; strings carry the
stray blanks that the real service leaves in them.
"""

from collections.abc import Mapping
from typing import Any

from controller.emulator.contracts import Contract
from controller.emulator.offers import split
from controller.emulator.world import World

SHARED = (
    "bundle_id", "bw_nvlink", "compute_cap", "cpu_arch", "cpu_cores", "cpu_cores_effective", "cpu_name", "cpu_ram",
    "credit_discount_max", "cuda_max_good", "direct_port_count", "disk_bw", "disk_name", "dlperf", "driver_version",
    "external", "geolocation", "gpu_arch", "gpu_frac", "gpu_lanes", "gpu_mem_bw", "gpu_name", "gpu_ram", "has_avx",
    "host_id", "hosting_type", "inet_down", "inet_down_cost", "inet_up", "inet_up_cost", "logo", "machine_id",
    "min_bid", "mobo_name", "num_gpus", "os_version", "pci_gen", "pcie_bw", "reliability2", "rentable", "score",
    "static_ip", "storage_cost", "total_flops", "verification", "vram_costperhour", "webpage",
)  # fmt: skip


def instance_row(world: World, contract: Contract, *, listening: bool) -> dict[str, Any]:
    """Return the JSON object of one instance.

    Args:
        world: its service.
        contract: the instance.
        listening: whether its SSH server accepts connections.
    """
    slot, order, now = contract.slot.row, contract.order, world.time
    running = contract.actual == "running"
    return {
        **{name: slot[name] for name in SHARED},
        **_state(contract, now),
        **_access(contract, ports=running and listening),
        **_load(contract, running=running),
        **_money(contract, running=running),
        "id": contract.id,
        "label": contract.label,
        "template_id": None,
        "template_hash_id": None,
        "template_name": None,
        "image_uuid": order.image,
        "image_args": list(order.args),
        "image_runtype": order.runtype,
        "extra_env": [[name, value] for name, value in order.env.items()],
        "onstart": order.onstart,
        "jupyter_token": f"SECRET-jupyter-token-{contract.id}",
        "is_bid": contract.is_bid,
        "country_code": _country(slot),
        "gpu_totalram": slot["gpu_total_ram"],
        "disk_space": order.disk_gb,
        "volume_info": [],
        "time_remaining": "",
        "time_remaining_isbid": "",
    }


def _state(contract: Contract, now: float) -> dict[str, Any]:
    return {
        "actual_status": contract.actual,
        "intended_status": contract.intended,
        "cur_state": contract.cur,
        "next_state": contract.cur,
        "status_msg": contract.status_msg,
        "start_date": contract.created_at,
        "end_date": contract.end_date,
        "duration": max(0.0, contract.end_date - now),
        "uptime_mins": None if contract.running_since is None else (now - contract.running_since) / 60,
        "client_run_time": now - contract.created_at,
        "host_run_time": 2592000.0,
    }


def _access(contract: Contract, *, ports: bool) -> dict[str, Any]:
    mapped = {"22/tcp": [{"HostIp": "0.0.0.0", "HostPort": str(contract.direct_port)}]}  # noqa: S104  as Docker says
    jupyter = "jupyter" in contract.order.runtype  # whose row shows the port before the one that SSH has
    direct = "ssh_direc" in contract.order.runtype
    return {
        "public_ipaddr": "127.0.0.1\n",
        "local_ipaddrs": "10.2.202.31 172.17.0.1 \n",
        "ssh_host": "127.0.0.1",
        "ssh_idx": "1",
        "ssh_port": contract.proxy_port - jupyter,
        "machine_dir_ssh_port": 51199,
        "ports": (mapped if direct else {}) if ports else None,
        "direct_port_start": contract.direct_port if ports and direct else -1,
        "direct_port_end": contract.direct_port if ports and direct else -1,
    }


def _load(contract: Contract, *, running: bool) -> dict[str, Any]:
    slot = contract.slot.row
    return {
        "cpu_util": 0.0,
        "gpu_util": 0.0 if running else None,
        "gpu_temp": 42.0 if running else None,
        "mem_limit": contract.ram_bytes / 1e9 if running else None,
        "mem_usage": 1.2 if running else None,
        "vmem_usage": 0.5 if running else None,
        "disk_usage": min(contract.order.disk_gb, 3.1) if running else -1,
        "disk_util": min(1.0, 3.1 / contract.order.disk_gb) if running else -1,
        "reliability": slot["reliability2"],
    }


def _money(contract: Contract, *, running: bool) -> dict[str, Any]:
    slot, disk, whole = contract.slot.row, contract.storage_per_hour, contract.price_per_hour
    return {
        "dph_base": contract.dph_base,
        "dph_total": whole,
        "storage_total_cost": disk,
        "dlperf_per_dphtotal": slot["dlperf"] / whole,
        "flops_per_dphtotal": slot["total_flops"] / whole,
        "search": split(contract.dph_base, disk),
        "instance": split(contract.dph_base if running else 0, disk),
        "credit_balance": None,
        "credit_discount": None,
    }


def _country(slot: Mapping[str, Any]) -> str | None:
    place = slot["geolocation"]
    return place.rsplit(",", 1)[-1].strip() if place else None
