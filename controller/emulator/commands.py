"""The programs of an emulated instance, each a function of its call.

Called by shell, which has expanded the words and opened the redirections.
"""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from controller.emulator import prover
from controller.emulator.chance import stream
from controller.emulator.gpus import gpu_of
from controller.emulator.host import Host, Process, Write

SIGNALS = {"TERM": 15, "KILL": 9, "INT": 2, "HUP": 1}
USAGE = 2
TENTHS, STALLS_AFTER = 10, 4


@dataclass(slots=True)
class Call:
    """One program about to run: where, as which process, with which words and variables, printing to whom."""

    host: Host
    process: Process
    words: list[str]
    variables: Mapping[str, str]
    out: Write
    err: Write


Program = Callable[[Call], Awaitable[int]]


class UsageFault(Exception):  # noqa: N818  printed, not raised to the caller
    """Words that a program does not take."""


class _Options(argparse.ArgumentParser):
    """Options of a program whose faults go to the emulated stderr."""

    def error(self, message: str) -> NoReturn:
        raise UsageFault(message)


async def _echo(call: Call) -> int:
    words = call.words[1:]
    end = "" if words[:1] == ["-n"] else "\n"
    call.out(" ".join(words if end else words[1:]) + end)
    return 0


async def _sleep(call: Call) -> int:
    if len(call.words) < 2:  # noqa: PLR2004  the program and its time
        raise UsageFault("missing operand")
    await call.host.sleep(call.process, float(call.words[1]))
    return 0


async def _true(_call: Call) -> int:
    return 0


async def _false(_call: Call) -> int:
    return 1


async def _cat(call: Call) -> int:
    code = 0
    for path in call.words[1:]:
        text = call.host.read(path)
        if text is None:
            call.err(f"cat: {path}: No such file or directory\n")
            code = 1
        else:
            call.out(text)
    return code


async def _tail(call: Call) -> int:
    path = call.words[-1]
    text = call.host.read(path)
    if text is None:
        call.err(f"{call.words[0]}: cannot open '{path}' for reading: No such file or directory\n")
        return 1
    count = next((int(word.lstrip("-n")) for word in call.words[1:-1] if word.lstrip("-n").isdigit()), 10)
    lines = text.splitlines(keepends=True)
    call.out("".join(lines[-count:] if call.words[0] == "tail" else lines[:count]))
    return 0


async def _touch(call: Call) -> int:
    for path in call.words[1:]:
        call.host.files.setdefault(path, "")
    return 0


async def _rm(call: Call) -> int:
    code = 0
    for path in call.words[1:]:
        if not path.startswith("-") and call.host.files.pop(path, None) is None and "-f" not in call.words:
            call.err(f"rm: cannot remove '{path}': No such file or directory\n")
            code = 1
    return code


async def _test(call: Call) -> int:
    words = call.words[1:]
    if call.words[0] == "[":
        words = words[:-1]
    match words:
        case ["-f" | "-e", path]:
            return 0 if call.host.read(path) is not None else 1
        case ["-n", text] | [text]:
            return 0 if text else 1
        case ["-z", text]:
            return 1 if text else 0
        case [left, "=", right]:
            return 0 if left == right else 1
        case [left, "!=", right]:
            return 0 if left != right else 1
    raise UsageFault("unsupported expression")


async def _nproc(call: Call) -> int:
    call.out(f"{int(float(call.host.contract.slot.row['cpu_cores_effective']))}\n")
    return 0


async def _kill(call: Call) -> int:
    words = call.words[1:]
    signal, code = SIGNALS["TERM"], 0
    if words and words[0].startswith("-") and words[0] != "--":
        name = words.pop(0).removeprefix("-").removeprefix("SIG")
        signal = SIGNALS[name] if name in SIGNALS else int(name)
    for word in words:
        if word != "--" and not call.host.kill(int(word), signal):
            call.err(f"kill: ({word}) - No such process\n")
            code = 1
    return code


async def _pkill(call: Call) -> int:
    pattern = call.words[-1]
    found = [p for p in call.host.processes.values() if p is not call.process and p.program and pattern in p.program]
    if call.words[0] == "pkill":
        for process in found:
            call.host.kill(process.pid, SIGNALS["TERM"])
    else:
        call.out("".join(f"{process.pid}\n" for process in found))
    return 0 if found else 1


async def _nvidia_smi(call: Call) -> int:
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
    row = host.contract.slot.row
    gpu = gpu_of(row["gpu_name"])
    bits = f"{stream(host.world.market.seed, 'gpu', host.contract.slot.machine_id, index).getrandbits(128):032x}"
    limit = gpu.watts * (0.7 if host.contract.trouble("slow-machine", host.world.time) else 1.0)
    busy = any(process.proving for process in host.processes.values())
    return {
        "index": (str(index), ""),
        "name": (f"NVIDIA GeForce {gpu.name}" if gpu.name.startswith("RTX") else f"NVIDIA {gpu.name}", ""),
        "uuid": (f"GPU-{bits[:8]}-{bits[8:12]}-{bits[12:16]}-{bits[16:20]}-{bits[20:]}", ""),
        "driver_version": (str(row["driver_version"]), ""),
        "memory.total": (str(int(row["gpu_ram"])), "MiB"),
        "memory.used": (str(18000 if busy else 2), "MiB"),
        "power.limit": (f"{limit:.2f}", "W"),
        "power.default_limit": (f"{gpu.watts:.2f}", "W"),
        "power.draw": (f"{limit * 0.93 if busy else 22:.2f}", "W"),
        "temperature.gpu": ("71" if busy else "38", ""),
        "utilization.gpu": ("99" if busy else "0", "%"),
        "clocks_throttle_reasons.active": ("0x0000000000000004" if busy else "0x0000000000000001", ""),
        "clocks_event_reasons.active": ("0x0000000000000004" if busy else "0x0000000000000001", ""),
    }


async def _fetch_params(call: Call) -> int:
    """Download at the machine's speed, once for a container; each tenth is a line."""
    host = call.host
    options = _Options(prog="fetch-params", add_help=False)
    options.add_argument("--size-gib", type=float, default=host.world.scenario.prover.params_gib)
    size_gib = options.parse_args(call.words[1:]).size_gib
    if size_gib * 1.0737 > host.contract.order.disk_gb:
        call.err("fetch-params: write error: No space left on device\n")
        return 1
    seconds_a_gib = 8.59 * 1000 / max(1.0, float(host.contract.slot.row["inet_down"]))
    for tenth in range(1, TENTHS + 1):
        goal = size_gib * tenth / TENTHS
        if host.downloaded_gib >= goal:
            continue
        if tenth > STALLS_AFTER and host.contract.trouble("download-stall", host.world.time):
            await host.sleep(call.process, prover.FOREVER_S)
        await host.sleep(call.process, (goal - host.downloaded_gib) * seconds_a_gib)
        host.downloaded_gib = goal
        call.out(f"params: {tenth / TENTHS:4.0%} {goal:.1f}/{size_gib:.1f} GiB\n")
    call.out("parameters ready\n")
    return 0


async def _cuzk_bench(call: Call) -> int:
    options = _Options(prog="cuzk-bench", add_help=False)
    options.add_argument("mode", choices=("batch",))
    options.add_argument("--count", "-n", type=int, default=1)
    options.add_argument("-c", "--concurrency", type=int, default=int(call.variables.get("CONCURRENCY") or 1))
    options.add_argument("-j", type=int, default=1)
    options.add_argument("--warmup", type=int, default=int(call.variables.get("WARMUP") or 0))
    given = options.parse_args(call.words[1:])
    if given.count < 1:
        raise UsageFault("--count must be at least 1")
    batch = prover.Batch(given.count, max(1, given.concurrency), max(0, given.warmup))
    return await prover.bench(call.host, call.process, batch, call.out)


async def _cuzk_daemon(call: Call) -> int:
    if call.words[1:] == ["status"]:
        return prover.status(call.host, call.out)
    options = _Options(prog="cuzk-daemon", add_help=False)
    options.add_argument("-c", "--concurrency", type=int, default=int(call.variables.get("CONCURRENCY") or 4))
    concurrency = options.parse_args(call.words[1:]).concurrency
    return await prover.daemon(call.host, call.process, concurrency, call.out)


async def _json_bench(call: Call) -> int:
    options = _Options(prog="json-bench", add_help=False)
    options.add_argument("--seconds", type=float, default=300.0)
    return await prover.measure(call.host, call.process, options.parse_args(call.words[1:]).seconds, call.out)


COMMANDS: dict[str, Program] = {
    "echo": _echo, "sleep": _sleep, "true": _true, ":": _true, "mkdir": _true, "chmod": _true, "sync": _true,
    "false": _false, "cat": _cat, "tail": _tail, "head": _tail, "touch": _touch, "rm": _rm, "test": _test, "[": _test,
    "nproc": _nproc, "kill": _kill, "pkill": _pkill, "pgrep": _pkill, "nvidia-smi": _nvidia_smi,
    "fetch-params": _fetch_params, "cuzk-bench": _cuzk_bench,
    "cuzk-daemon": _cuzk_daemon, "json-bench": _json_bench,
}  # fmt: skip
