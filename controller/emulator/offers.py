"""An offer as vast.ai writes it: the traits of its machine, its share of them, and its price with a disk.

generate and listing bring a few fields each and this module fills in the other hundred, so that both kinds of market
answer every filter. market prices the rows at each search.
"""

from collections.abc import Mapping
from random import Random
from typing import Any

from controller.emulator.chance import stream
from controller.emulator.gpus import Gpu, gpu_of

HOURS_A_MONTH = 720  # what storage_cost, in USD per GB and month, is divided by
DAY_S = 86400.0

PLACES = (
    ("Texas, US", 14), ("California, US", 12), ("Washington, US", 6), ("Virginia, US", 5), ("New York, US", 4),
    ("Quebec, CA", 5), ("Ontario, CA", 4), ("Alberta, CA", 2), ("Norway, NO", 6), ("Sweden, SE", 6), ("Finland, FI", 3),
    ("Germany, DE", 5), ("France, FR", 4), ("Netherlands, NL", 4), ("Czechia, CZ", 4), ("Poland, PL", 3),
    ("Bulgaria, BG", 4), ("Iceland, IS", 2), ("Spain, ES", 2), ("Hungary, HU", 2), ("Slovenia, SI", 2),
    ("United Kingdom, GB", 3), ("Taiwan, TW", 4), ("Japan, JP", 4), ("South Korea, KR", 4), ("Vietnam, VN", 2),
    ("Thailand, TH", 2), ("Guangdong, CN", 3), ("Australia, AU", 2), ("Brazil, BR", 1), ("Israel, IL", 1),
)  # fmt: skip
CPUS = (
    ("AMD EPYC 7763 64-Core Processor", 128, 2.4), ("AMD EPYC 7542 32-Core Processor", 64, 2.9),
    ("AMD EPYC 9554 64-Core Processor", 128, 3.1), ("Xeon® Gold 6226", 48, 2.7), ("AMD Ryzen 9 7950X", 32, 4.5),
    ("Xeon® Platinum 8358", 64, 2.6), ("AMD EPYC 7402 24-Core Processor", 48, 2.8),
)  # fmt: skip
DRIVERS = (("550.127.08", 12.4), ("560.35.03", 12.6), ("570.124.04", 12.8), ("580.82.07", 13.0), ("535.183.01", 12.2))


def traits(seed: int, machine_id: int, gpu: Gpu, gpus: int) -> dict[str, Any]:
    """Draw what is true of a whole machine; the same for every offer of it.

    Args:
        seed: the market's seed.
        machine_id: whose traits.
        gpu: the model it carries.
        gpus: how many of them.
    """
    rng = stream(seed, "machine", machine_id)
    cpu_name, cores, ghz = rng.choice(CPUS)
    driver, cuda = rng.choice(DRIVERS)
    verification = rng.choices(("verified", "unverified", "deverified"), (88, 10, 2))[0]
    ram_gib_per_gpu = rng.choices((32, 64, 128, 192, 256), (8, 22, 40, 15, 15))[0]
    reliability = round(1 - min(0.35, rng.expovariate(1 / 0.012)), 7)
    return {
        "host_id": 50_000 + machine_id // 3,
        "geolocation": rng.choices([p for p, _ in PLACES], [w for _, w in PLACES])[0],
        "verification": verification,
        "vericode": int(verification == "verified"),
        "reliability": reliability,
        "reliability2": reliability,
        "cpu_name": cpu_name,
        "cpu_cores": cores * min(2, (gpus + 1) // 2),
        "cpu_ghz": ghz,
        "cpu_ram": min(2048, ram_gib_per_gpu * gpus) * 1007,  # MB: the kernel keeps a little of each GiB
        "disk_space": round(min(22700.0, rng.lognormvariate(7.15, 0.9)) + 60, 1),
        "disk_bw": round(rng.uniform(1300, 9200), 1),
        "storage_cost": rng.choice((0.1, 0.13, 0.15, 0.2, 0.2, 0.25, 0.29, 0.4)),
        "driver_version": driver,
        "cuda_max_good": max(cuda, 12.8) if gpu.compute_cap >= 1000 else cuda,  # noqa: PLR2004  Blackwell
        "listed_days": rng.uniform(4, 180),
        "bid_ratio": rng.uniform(0.5, 0.8),
        "pcie_bw": round(rng.uniform(10, 55), 1),
        "gpu_lanes": rng.choice((8, 16, 16, 16)),
        **_network(rng, machine_id),
    }


def _network(rng: Random, machine_id: int) -> dict[str, Any]:
    down_mbps = round(min(14800.0, rng.lognormvariate(6.9, 0.9)), 1)
    hosting = rng.choices((0, 1), (65, 35))[0]
    return {
        "inet_down": down_mbps,
        "inet_up": round(down_mbps * rng.uniform(0.3, 1.0), 1),
        "inet_down_cost": (cost := rng.choice((0.0, 0.0, 0.001953125, 0.0026, 0.013, 0.039))),
        "inet_up_cost": cost,
        "direct_port_count": rng.choice((24, 98, 249, 499, 999)),
        "hosting_type": hosting,
        "static_ip": bool(hosting or rng.getrandbits(1)),
        "public_ipaddr": f"203.0.113.{machine_id % 250 + 1}",
    }


def complete(known: Mapping[str, Any], *, seed: int, gpus: int, started: float) -> dict[str, Any]:
    """Fill a row that has at least id, machine_id, gpu_name, num_gpus and dph_base.

    Args:
        known: fields that are given; null counts as absent.
        seed: the market's seed.
        gpus: GPUs of the whole machine.
        started: unix time at which the market opened.
    """
    gpu = gpu_of(known["gpu_name"])
    row = traits(seed, known["machine_id"], gpu, gpus) | {k: v for k, v in known.items() if v is not None}
    share = row["num_gpus"] / gpus
    defaults = {
        "ask_contract_id": row["id"],
        "gpu_frac": round(share, 6),
        "cpu_cores_effective": round(row["cpu_cores"] * share, 2),
        "gpu_ram": gpu.ram_mb,
        "gpu_total_ram": row.get("gpu_ram", gpu.ram_mb) * row["num_gpus"],
        "min_bid": round(row["dph_base"] * row["bid_ratio"], 6),
        "end_date": started + row["listed_days"] * DAY_S,
        "start_date": started - 30 * DAY_S,
        "bundle_id": row["machine_id"] * 100 + row["num_gpus"],
        "total_flops": gpu.tflops * row["num_gpus"],
        "dlperf": round(gpu.dlperf * row["num_gpus"], 4),
        "compute_cap": gpu.compute_cap,
        "gpu_max_power": float(gpu.watts),
        "driver_vers": driver_number(row["driver_version"]),
        "rentable": True,
        "rented": False,
        "verified": row["verification"] == "verified",
    }
    row = {**CONSTANT, **defaults, **row}
    row["score"] = round(row["dlperf"] / max(row["dph_base"], 0.001) * row["reliability"], 6)
    del row["listed_days"], row["bid_ratio"]
    return row


def driver_number(version: str) -> int:
    """Turn a driver's "535.183.01" into vast.ai's 535183001."""
    return int("".join(part.zfill(3) for part in version.split(".")))


PRICED = (
    "dph_base", "dph_total", "dph_total_adj", "discounted_dph_total", "storage_total_cost", "is_bid",
    "dlperf_per_dphtotal", "flops_per_dphtotal", "internet_down_cost_per_tb", "internet_up_cost_per_tb", "search",
    "instance",
)  # fmt: skip


def price(row: Mapping[str, Any], *, allocated_gb: float, bid: bool) -> dict[str, Any]:
    """Return the price fields of an offer row for so many GB of disk, in USD an hour."""
    base = row["min_bid"] if bid else row["dph_base"]
    disk = row["storage_cost"] * allocated_gb / HOURS_A_MONTH
    whole = None if base is None else base + disk
    traffic = row["inet_down_cost"] + row["inet_up_cost"]
    return {
        "dph_base": base,
        "dph_total": whole,
        "dph_total_adj": None if whole is None else whole + traffic,
        "discounted_dph_total": whole,
        "storage_total_cost": disk,
        "is_bid": bid,
        "dlperf_per_dphtotal": row["dlperf"] / whole if whole else None,
        "flops_per_dphtotal": row["total_flops"] / whole if whole else None,
        "internet_down_cost_per_tb": row["inet_down_cost"] * 1024,
        "internet_up_cost_per_tb": row["inet_up_cost"] * 1024,
        "search": split(base, disk),
        "instance": split(0, disk),
    }


def split(gpu: float | None, disk: float) -> dict[str, Any]:
    """Return vast.ai's breakdown of an hourly price."""
    whole = None if gpu is None else gpu + disk
    return {
        "gpuCostPerHour": gpu,
        "diskHour": disk,
        "totalHour": whole,
        "discountTotalHour": 0,
        "discountedTotalPerHour": whole,
    }


def ram_share_mb(row: Mapping[str, Any]) -> float:
    """Return the part of the machine's memory that this offer's container may use."""
    return float(row["cpu_ram"]) * float(row["cpu_cores_effective"]) / float(row["cpu_cores"])


CONSTANT: dict[str, Any] = {
    "bundled_results": None, "bw_nvlink": 0.0, "cluster_id": None, "cpu_arch": "amd64", "credit_discount_max": 0.0,
    "discount_rate": 0.0, "discounted_hourly": 0.0, "disk_name": "Samsung SSD 990 PRO", "expected_reliability": 0.0,
    "external": None, "geolocode": 921675020, "gpu_arch": "nvidia", "gpu_display_active": False, "gpu_ids": [],
    "gpu_max_temp": 64.0, "gpu_mem_bw": 1008.0, "has_avx": 1, "hostname": None, "is_vm_deverified": False,
    "logo": "/static/logos/vastai_small2.png", "mobo_name": "ROMED8-2T", "nw_disk_avg_bw": None,
    "nw_disk_max_bw": None, "nw_disk_min_bw": None, "os_version": "22.04", "pci_gen": 4.0, "reliability_mult": 0.95,
    "resource_type": "gpu", "rn": 1, "time_remaining": "", "time_remaining_isbid": "", "vms_enabled": False,
    "vram_costperhour": 0.0, "webpage": None, "avail_vol_ask_id": None, "avail_vol_dph": None, "avail_vol_size": None,
}  # fmt: skip
