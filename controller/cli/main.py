"""The `vastfleet` command: finds the subcommand, runs it, and turns what went wrong into one line and an exit code.

A subcommand is imported when it is run: `vastfleet --help` must be quick, and `vastfleet run` small.
"""

import difflib
import importlib
import os
import sys
from collections.abc import Sequence

import click

from controller.cli.options import verbose

FAILED, BAD_INPUT, INTERRUPTED = 1, 2, 130

COMMANDS: dict[str, tuple[str, str]] = {
    "validate": ("validate", "Check manifests: all that is wrong, by line and column."),
    "plan": ("plan", "Show what would be done, and do none of it."),
    "apply": ("apply", "Rent, measure and replace until every fleet is ready."),
    "run": ("run", "Keep fleets as their manifests say, for as long as it runs."),
    "status": ("status", "Show how fleets stand."),
    "get": ("get", "List fleets, instances, machines or runs."),
    "describe": ("describe", "Tell the whole story of one fleet or instance."),
    "events": ("events", "Show what happened, or follow it as it happens."),
    "explain": ("explain", "Say what a reason or a field means, or why something is as it is."),
    "calibration": ("calibration", "Say whether P(good) may be trusted, by what came of it."),
    "destroy": ("destroy", "Destroy a fleet's instances, until each is proven gone."),
    "operator": ("operator", "Hold the Fleets of a Kubernetes cluster."),
    "crds": ("crds", "Print or write the definitions that a cluster needs."),
    "demo": ("demo", "Watch a fleet live through trouble, without an account or money."),
    "emulator": ("emulator", "Serve an emulated vast.ai on this machine."),
}

EPILOG = """
\b
Exit codes:
  0    done; for plan: nothing to do
  1    failed, and said why; for plan: also bad input
  2    bad input, nothing was changed; for plan: changes are pending
  3    apply, destroy: not finished within --timeout
  130  interrupted by Ctrl-C; 143 by SIGTERM

\b
Environment:
  VAST_API_KEY       key of the vast.ai account
  VAST_URL           where vast.ai is, if not at its console
  VASTFLEET_OWNER    name in the labels of what is rented (default: default)
  VASTFLEET_LEDGER   file in which is kept what is owned and was measured
  VASTFLEET_SSH_KEY  private key for the instances; made beside the ledger
  VASTFLEET_CLOCK    SPEED@ORIGIN, as `vastfleet emulator` prints it
  NO_COLOR           when set, nothing is coloured
"""


class Commands(click.Group):
    """The subcommands, each imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Their names, in the order in which one meets them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        """Import one."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(f"controller.cli.{COMMANDS[cmd_name][0]}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - click's
        """List them without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find it, or say which one was meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-"):
            close = difflib.get_close_matches(name, COMMANDS, n=1)
            hint = f"did you mean {close[0]}?" if close else "see vastfleet --help"
            raise click.UsageError(f"there is no command {name!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)


def _version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:  # noqa: FBT001 - click's
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            print(f"vastfleet {version('vastfleet')}")
        except PackageNotFoundError:
            print("vastfleet, not installed as a package")
        context.exit()


@click.command(
    cls=Commands,
    epilog=EPILOG,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80},
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version.")
@verbose
def cli() -> None:
    """Hold fleets of rented GPUs on vast.ai to what their manifests say.

    A manifest states how much is wanted, of what, and for how much money;
    instances are rented, benchmarked, kept and replaced until it is so.
    """


def main(args: Sequence[str] | None = None) -> None:
    """Run the command line and exit with its code."""
    _open_streams()
    sys.exit(run(list(sys.argv[1:] if args is None else args)))


def run(args: list[str]) -> int:
    """Run the command line; its exit code. What is foreseeable becomes a line or more on stderr, never a traceback."""
    try:
        result = cli.main(args, prog_name="vastfleet", standalone_mode=False)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        code = _told(error, bad_input=FAILED if "plan" in args[:1] else BAD_INPUT)
        if code is None:
            raise
        return code
    return result if isinstance(result, int) else 0


def _open_streams() -> None:
    """Put the null device where stdin, stdout or stderr is closed, or the next file opened would take its place."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115, PTH123 - until the process ends


def _told(error: BaseException, *, bad_input: int) -> int | None:  # noqa: PLR0911 - a table
    """Say what went wrong, and return the exit code; None if it was not foreseen."""
    from controller.model.faults import Fault
    from controller.model.manifest import ManifestErrors

    match error:
        case click.UsageError():
            error.show()
            return bad_input
        case ManifestErrors():
            print(error, file=sys.stderr)
            return bad_input
        case click.Abort() | KeyboardInterrupt():
            return _say("interrupted", INTERRUPTED)
        case BrokenPipeError():  # nobody reads on: not worth a word
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return FAILED
        case click.ClickException():
            return _say(error.format_message())
        case Fault():
            return _say(str(error))
        case OSError():
            place = f"{error.filename}: " if error.filename else ""
            return _say(f"{place}{error.strerror or error}")
    return None


def _say(text: str, code: int = FAILED) -> int:
    print(f"vastfleet: error: {text}", file=sys.stderr)
    return code


if __name__ == "__main__":
    main()
