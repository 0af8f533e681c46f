"""`vastfleet emulator`: a vast.ai on loopback, for as long as it is wanted."""

import asyncio
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.output import table
from controller.cli.words import NOTHING, iso, money

if TYPE_CHECKING:
    from controller.emulator import Emulator

FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.command("emulator")
@click.option("--scenario", type=FILE, metavar="FILE", help="YAML: market, limits, and the troubles that strike.")
@click.option("--listing", type=FILE, metavar="FILE", help="JSON: offers as vast.ai lists them, to be the market.")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to serve on. Default: a free one.")
@click.option("--speed", type=click.FloatRange(min=0, min_open=True), help="Its seconds in one of the wall. Default 1.")
@click.option("--seed", type=int, help="Same seed, same market and luck. Default: the scenario's.")
@options.verbose
def command(*, scenario: Path | None, listing: Path | None, port: int, speed: float | None, seed: int | None) -> None:
    """Serve an emulated vast.ai on this machine until Ctrl-C.

    It has offers, instances that boot, bill and can be reached over SSH, rate
    limits, and troubles on demand. Prints the environment in which vastfleet,
    with a ledger apart from yours, and vast.ai's own client use it: each shell
    needs it. Costs nothing and rents nothing.
    """
    from controller.emulator import Emulator, ScaledClock, Scenario, ScenarioError

    try:
        made = Scenario.load(scenario) if scenario else Scenario()
        if listing:
            made = made.model_copy(update={"market": made.market.model_copy(update={"listing": listing})})
        clock = ScaledClock(speed or made.speed)
        emulator = Emulator(clock=clock, seed=seed, scenario=made)
    except (ScenarioError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    asyncio.run(_serve(emulator, f"{clock.speed:g}@{clock.origin!r}", port))


async def _serve(emulator: "Emulator", clock: str, port: int) -> None:
    url = await emulator.serve(port=port)
    ledger = Path(tempfile.mkdtemp(prefix="vastfleet-emulator-")) / "ledger.db"  # what is rehearsed is kept apart
    lines = {
        "VAST_URL": url,
        "VAST_API_KEY": emulator.api_key,
        "VASTFLEET_CLOCK": clock,
        "VASTFLEET_LEDGER": str(ledger),
    }
    for name, value in lines.items():
        print(f"export {name}={value}", flush=True)
    print("serving; Ctrl-C ends it", file=sys.stderr, flush=True)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, ended.set)
    await ended.wait()
    await emulator.close()
    closing(emulator)


def closing(emulator: "Emulator") -> None:
    """Print every instance there was, and what it cost."""
    rows = [
        {
            "INSTANCE": str(rental.id),
            "MACHINE": str(rental.machine_id),
            "GPU": rental.gpu_name,
            "LABEL": rental.label or NOTHING,
            "CREATED": iso(rental.created_at) or NOTHING,
            "DESTROYED": iso(rental.destroyed_at) or "still bills",
            "BILLED": money(rental.billed_usd),
        }
        for rental in emulator.rentals()
    ]
    table(rows)
    alive = len(emulator.alive)
    print(f"{len(rows)} rented, {alive} alive, ${money(emulator.total_billed)} billed")
