"""fetch-params on an emulated instance: a download at the machine's speed, which may crawl, stall or retry for ever.

Called by commands.
"""

from controller.emulator.call import Call, Options

TENTHS, HUNDREDTHS = 10, 100
HELD_UP_AFTER = 0.4  # of the download
RETRY_S = 10.0
FOREVER_S = 30 * 86400.0


async def fetch_params(call: Call) -> int:
    r"""Download once for a container; each tenth is a line, or with --bar each hundredth redraws one after a \r."""
    host, contract = call.host, call.host.contract
    options = Options(prog="fetch-params", add_help=False)
    options.add_argument("--size-gib", type=float, default=host.world.scenario.prover.params_gib)
    options.add_argument("--bar", action="store_true")
    given = options.parse_args(call.words[1:])
    size_gib, steps = given.size_gib, HUNDREDTHS if given.bar else TENTHS
    if size_gib * 1.0737 > contract.order.disk_gb:
        call.err("fetch-params: write error: No space left on device\n")
        return 1
    seconds_a_gib = 8.59 * 1000 / max(1.0, float(contract.slot.row["inet_down"]))
    shown = "params: connecting\n"
    for step in range(1, steps + 1):
        goal = size_gib * step / steps
        if host.downloaded_gib >= goal:
            continue
        if step / steps > HELD_UP_AFTER:
            await _held_up(call, shown)
        slow = contract.trouble("slow-download", host.world.time)
        await host.sleep(call.process, (goal - host.downloaded_gib) * seconds_a_gib / (slow.scale if slow else 1.0))
        host.downloaded_gib = goal
        shown = f"\r{step / steps:4.0%} {goal:.1f}/{size_gib:.1f} GiB"
        shown = shown if given.bar else f"params:{shown.replace(chr(13), ' ')}\n"
        call.out(shown)
    call.out(("\n" if given.bar else "") + "parameters ready\n")
    return 0


async def _held_up(call: Call, shown: str) -> None:
    """Wait while the download stalls, silently, or retries, printing again and again what was shown last."""
    host, contract = call.host, call.host.contract
    while True:
        now = host.world.time
        stall, retries = (contract.trouble(kind, now) for kind in ("download-stall", "download-retries"))
        if stall is not None:
            await host.sleep(call.process, min(FOREVER_S, contract.span(stall)[1] - now))
        elif retries is not None:
            call.out(shown)
            await host.sleep(call.process, RETRY_S)
        else:
            return
