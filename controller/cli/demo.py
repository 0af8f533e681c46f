"""`vastfleet demo`: the real controller against an emulated vast.ai, over HTTP and SSH on loopback, through trouble.

Nothing is special to it but its scenario, demo.yaml, and the speed of the clock. What it claims in the end is checked
against the emulator's own books, in `outcome`.
"""

import asyncio
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from controller.cli import options
from controller.cli.words import count, price, span

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.cli.keeping import News, Statuses, Stop
    from controller.cli.live import View
    from controller.emulator import Emulator
    from controller.model.fleet import Fleet
    from controller.model.instance import Event
    from controller.runtime.embedded import Running
    from controller.runtime.settings import Settings

HERE = Path(__file__).parent
SCENARIO = HERE / "demo.yaml"
MANIFESTS = (HERE / "fleet.yaml", HERE.parents[1] / "examples" / "fleet.yaml")  # in a wheel; in a checkout
SPEED = 200.0
STORY_MIN, TEARDOWN_MIN = 2.5, 0.4  # of the wall, at most


@click.command("demo")
@click.option(
    "--speed", type=click.FloatRange(1, 600), default=SPEED, show_default=True, help="Emulated seconds in a real one."
)
@options.verbose
def command(speed: float) -> int:
    """Watch a fleet live through trouble, without an account or money.

    Emulates vast.ai on this machine and holds examples/fleet.yaml on it: the
    fleet fills although the answer to a rental is lost, drops a machine that
    is too slow, replaces a dead one, and is torn down. Then says what it
    cost, and checks that nothing leaked. Takes about two minutes.

    Exit code 1 if anything leaked, or the budget was ever exceeded.
    """
    return asyncio.run(_demo(speed))


@dataclass(frozen=True, slots=True)
class Stage:
    """What the story is played with."""

    settings: "Settings"
    emulator: "Emulator"
    fleet: "Fleet"
    started: float  # unix seconds
    told: "list[Event]" = field(default_factory=list)

    def line(self, said: "Event") -> str:
        """An event, with the time since the start; and what its reason means, if it is the first such warning."""
        from controller.model.reasons import EXPLANATIONS

        about = "" if said.about == said.fleet else f"{said.about} "
        text = f"+{span(said.at - self.started):<6} {about}{said.reason}: {said.message}"
        new = said.kind == "Warning" and said.reason not in {before.reason for before in self.told}
        self.told.append(said)
        return f"{text}\n{'':8}({EXPLANATIONS[said.reason]})" if new else text


async def _demo(speed: float) -> int:
    from controller.emulator import Emulator, ScaledClock, Scenario
    from controller.loop.pace import Pace
    from controller.runtime.clock import Clock
    from controller.runtime.settings import Settings
    from controller.source.files import load_paths

    fleet = load_paths([next(path for path in MANIFESTS if path.exists())])[0].fleet
    clock = ScaledClock(speed)
    emulator = Emulator(clock=clock, scenario=Scenario.load(SCENARIO))
    url = await emulator.serve()
    try:
        with tempfile.TemporaryDirectory(prefix="vastfleet-demo-") as directory:
            settings = Settings(
                api_key=emulator.api_key,
                url=url,
                owner="demo",
                ledger=Path(directory, "ledger.db"),
                ssh_key=Path(directory, "id_ed25519"),
                clock=Clock(speed=speed, origin=clock.origin),
                pace=Pace(active=30, steady=120),  # fewer passes than usual: its minutes are short
            )
            return await _play(Stage(settings, emulator, fleet, clock.now()))
    finally:
        await emulator.close()


async def _play(stage: Stage) -> int:
    from controller.cli.destroy import teardown
    from controller.cli.keeping import INTERRUPTED, TERMINATED, News, deadline, stopping
    from controller.cli.live import View, live
    from controller.cli.outcome import outcome
    from controller.runtime.clock import Clock
    from controller.runtime.embedded import running

    wall, spec = Clock(), stage.fleet.spec
    wanted = count(spec.target.instances or 0, "instance")
    print(f"{stage.fleet.name}: {wanted} for at most ${price(spec.budget_per_hour)}/h, ", end="")
    print(f"on an emulated vast.ai whose clock runs {stage.settings.clock.speed:g} times as fast\n", flush=True)
    async with running(stage.settings, environ={}) as made:
        view = View(made, stage.settings.clock, [stage.fleet.name])
        async with live(view) as say:
            news = News(made.ledger, say=say, line=stage.line)
            with stopping(made) as stop, deadline(stop, wall, STORY_MIN):
                await _live_through(stage, made, told(view, news), stop)
            if stop.code not in {INTERRUPTED, TERMINATED}:
                say("\nEnough seen: the fleet is torn down.\n")
                with stopping(made) as stop, deadline(stop, wall, TEARDOWN_MIN):
                    await teardown(made, [stage.fleet.name], [stage.fleet], stop=stop, passed=told(view, news))
        if stop.code in {INTERRUPTED, TERMINATED}:
            print("interrupted; it was all emulated, and nothing bills", file=sys.stderr)
            return stop.code or INTERRUPTED
        return outcome(stage.emulator, made.ledger, stage.fleet)


def told(view: "View", news: "News") -> "Callable[[Statuses], None]":
    """What is to be done with each pass."""

    def passed(statuses: "Statuses") -> None:
        view.passed(statuses)
        news.tell()

    return passed


async def _live_through(stage: Stage, made: "Running", passed: "Callable[[Statuses], None]", stop: "Stop") -> None:
    """Until the fleet is ready again after the slow machine and the dead one were given up."""
    from controller.cli.keeping import keep
    from controller.cli.outcome import FITTING, given_up

    def until(statuses: "Statuses") -> bool:
        seen = all(given_up(stage.emulator, stage.told, trouble) for trouble in FITTING)
        return seen and all(said.ready for said in statuses)

    await keep(made, lambda: [stage.fleet], until=until, stop=stop, passed=passed)
