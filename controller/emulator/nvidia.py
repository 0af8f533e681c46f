"""nvidia-smi on an emulated instance: the GPUs it has, how hot they are, and what holds their clocks down.

Called by commands.
"""

from controller.emulator.call import USAGE, Call
from controller.emulator.chance import stream
from controller.emulator.gpus import gpu_of
from controller.emulator.host import Host

LOWERED = 0.7  # of the default power limit, where a host has lowered it
IDLE, POWER_CAP, THERMAL = 0x1, 0x4, 0x20 | 0x40  # NVML's reasons for a clock: the last is software's and hardware's
BUSY_C, IDLE_C, HOT_C, HOT_IDLE_C = 71, 38, 92, 61
NEW_NAME, OLD_NAME = "clocks_event_reasons.active", "clocks_throttle_reasons.active"


async def nvidia_smi(call: Call) -> int:
    """Answer a query of GPUs in CSV; the rest of nvidia-smi is not emulated."""
    query = next((word.split("=", 1)[1] for word in call.words if word.startswith("--query-gpu=")), None)
    if query is None:
        call.err("nvidia-smi: only --query-gpu=... --format=csv is emulated\n")
        return 6
    fields = [name.strip() for name in query.split(",")]
    style = next((word.split("=", 1)[1] for word in call.words if word.startswith("--format=")), "csv").split(",")
    rows = [_gpu_fields(call.host, index) for index in sorted(call.host.contract.slot.gpus)]
    unknown = [name for name in fields if name not in rows[0]]
    if unknown:
        call.out(f'Field "{unknown[0]}" is not a valid field to query.\n')
        return USAGE
    if "noheader" not in style:
        call.out(", ".join(fields) + "\n")
    for row in rows:
        values = [(value, unit) for value, unit in (row[name] for name in fields)]
        call.out(", ".join(v if "nounits" in style or not u else f"{v} {u}" for v, u in values) + "\n")
    return 0


def _gpu_fields(host: Host, index: int) -> dict[str, tuple[str, str]]:
    row, contract, now = host.contract.slot.row, host.contract, host.world.time
    gpu = gpu_of(row["gpu_name"])
    bits = f"{stream(host.world.market.seed, 'gpu', contract.slot.machine_id, index).getrandbits(128):032x}"
    lowered = contract.trouble("slow-machine", now) or contract.trouble("power-capped", now)
    limit = gpu.watts * (LOWERED if lowered else 1.0)
    busy = any(process.proving for process in host.processes.values())
    fields = {
        "index": (str(index), ""),
        "name": (f"NVIDIA GeForce {gpu.name}" if gpu.name.startswith("RTX") else f"NVIDIA {gpu.name}", ""),
        "uuid": (f"GPU-{bits[:8]}-{bits[8:12]}-{bits[12:16]}-{bits[16:20]}-{bits[20:]}", ""),
        "driver_version": (str(row["driver_version"]), ""),
        "memory.total": (str(int(row["gpu_ram"])), "MiB"),
        "memory.used": (str(18000 if busy else 2), "MiB"),
        "power.limit": (f"{limit:.2f}", "W"),
        "power.default_limit": (f"{gpu.watts:.2f}", "W"),
        "power.draw": (f"{limit * 0.93 if busy else 22:.2f}", "W"),
        "utilization.gpu": ("99" if busy else "0", "%"),
        **_clocks(busy=busy, hot=contract.trouble("hot", now) is not None),
    }
    if contract.trouble("old-driver", now):
        del fields[NEW_NAME]
    return fields


def _clocks(*, busy: bool, hot: bool) -> dict[str, tuple[str, str]]:
    """Return the temperature, and what holds the clocks down under both of its names."""
    reasons = IDLE if not busy else THERMAL if hot else POWER_CAP
    warm, cold = (HOT_C, HOT_IDLE_C) if hot else (BUSY_C, IDLE_C)
    mask = (f"0x{reasons:016x}", "")
    return {"temperature.gpu": (str(warm if busy else cold), ""), NEW_NAME: mask, OLD_NAME: mask}
