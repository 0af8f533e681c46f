"""The programs of an emulated instance, each a function of its call.

Called by shell, which has expanded the words and opened the redirections.
"""

from controller.emulator import prover
from controller.emulator.call import Call, Options, Program, UsageFault
from controller.emulator.download import fetch_params
from controller.emulator.nvidia import nvidia_smi

SIGNALS = {"TERM": 15, "KILL": 9, "INT": 2, "HUP": 1}
WORKERS = 10  # partition workers of a prover that is not told
BROKEN = "Error: CUDA error 209: no kernel image is available for execution on the device\n"


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


async def _dmesg(call: Call) -> int:
    if not call.host.world.scenario.kernel_log:
        call.err("dmesg: read kernel buffer failed: Operation not permitted\n")
        return 1
    call.out("".join(call.host.kernel.log))
    return 0


def _broken(call: Call) -> bool:
    """Tell whether the image's programs fail, and let them say so."""
    broken = call.host.contract.trouble("broken-image", call.host.world.time) is not None
    if broken:
        call.err(BROKEN)
    return broken


def _prover_options(call: Call, *, concurrency: int) -> Options:
    """Return the options that all of the prover's programs take; the environment says what no option does."""
    options = Options(prog=call.words[0], add_help=False)
    options.add_argument("-c", "--concurrency", type=int, default=int(call.variables.get("CONCURRENCY") or concurrency))
    workers = int(call.variables.get("PARTITION_WORKERS") or WORKERS)
    options.add_argument("--partition-workers", type=int, default=workers)
    return options


async def _cuzk_bench(call: Call) -> int:
    options = _prover_options(call, concurrency=1)
    options.add_argument("mode", choices=("batch", "warm-up"))
    options.add_argument("--count", "-n", type=int, default=1)
    options.add_argument("-j", type=int, default=1)
    options.add_argument("--warmup", type=int, default=int(call.variables.get("WARMUP") or 0))
    given = options.parse_args(call.words[1:])
    if given.count < 1:
        raise UsageFault("--count must be at least 1")
    if _broken(call):
        return 1
    width = prover.Width(max(1, given.concurrency), max(1, given.partition_workers))
    if given.mode == "warm-up":
        return await prover.warm_up(call.host, call.process, prover.Width(1, width.workers), call.out)
    batch = prover.Batch(given.count, width, max(0, given.warmup))
    return await prover.bench(call.host, call.process, batch, call.out)


async def _cuzk_daemon(call: Call) -> int:
    if call.words[1:] == ["status"]:
        return prover.status(call.host, call.out)
    given = _prover_options(call, concurrency=4).parse_args(call.words[1:])
    if _broken(call):
        return 1
    width = prover.Width(given.concurrency, max(1, given.partition_workers))
    return await prover.daemon(call.host, call.process, width, call.out)


async def _json_bench(call: Call) -> int:
    options = Options(prog="json-bench", add_help=False)
    options.add_argument("--seconds", type=float, default=300.0)
    seconds = options.parse_args(call.words[1:]).seconds
    return 1 if _broken(call) else await prover.measure(call.host, call.process, seconds, call.out)


COMMANDS: dict[str, Program] = {
    "echo": _echo, "sleep": _sleep, "true": _true, ":": _true, "mkdir": _true, "chmod": _true, "sync": _true,
    "false": _false, "cat": _cat, "tail": _tail, "head": _tail, "touch": _touch, "rm": _rm, "test": _test, "[": _test,
    "nproc": _nproc, "kill": _kill, "pkill": _pkill, "pgrep": _pkill, "dmesg": _dmesg, "nvidia-smi": nvidia_smi,
    "fetch-params": fetch_params, "cuzk-bench": _cuzk_bench,
    "cuzk-daemon": _cuzk_daemon, "json-bench": _json_bench,
}  # fmt: skip
