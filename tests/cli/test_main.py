import subprocess
import sys

import pytest

from controller.cli.main import COMMANDS, cli, run
from tests.cli.conftest import ROOT, Shell


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_fits_a_terminal(command: str, capsys: pytest.CaptureFixture[str]):
    """The help of every command fits 80 columns."""
    assert run([*command.split(), "--help"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("Usage: vastfleet")
    assert max(map(len, said.splitlines())) <= 80


def test_exit_codes_are_documented(capsys: pytest.CaptureFixture[str]):
    """The help says what each exit code means."""
    run(["--help"])
    said = capsys.readouterr().out
    assert all(f"\n    {code} " in said for code in (0, 1, 2, 3, 130))


def test_every_command_is_listed_and_found():
    """Each command in the table is there, under its own name."""
    assert {name: cli.get_command(None, name).name for name in COMMANDS} == {name: name for name in COMMANDS}  # type: ignore[arg-type, union-attr]


def test_a_misspelt_command_is_understood(capsys: pytest.CaptureFixture[str]):
    """A misspelt command says which one was meant, and exits with 2."""
    assert run(["aply"]) == 2
    assert "did you mean apply?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("controller.cli.main", "pydantic httpx asyncssh rich ruamel uvicorn"),
        ("controller.cli.run controller.cli.keeping controller.runtime.embedded", "uvicorn starlette"),
    ],
)
def test_only_what_is_needed_is_imported(modules: str, unwanted: str):
    """Help comes quickly, and an idle controller stays small: neither imports what it does not use."""
    script = f"import sys, {', '.join(modules.split())}; print([m for m in {unwanted.split()} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_missing_key_is_one_line(shell: Shell):
    """Without an API key, one line says what to do; there is no traceback."""
    done = shell.run("apply", shell.write("fleet.yaml", (ROOT / "examples/minimal.yaml").read_text()))
    assert done.returncode == 1
    assert done.stderr.startswith("vastfleet: error: VAST_API_KEY is not set")
    assert done.stderr.count("\n") == 1


def test_an_unwritable_place_is_one_line(shell: Shell):
    """A ledger that cannot be made is named, without a traceback."""
    (shell.directory / "file").write_text("")
    path = shell.write("fleet.yaml", (ROOT / "examples/minimal.yaml").read_text())
    done = shell.run("apply", path, "--ledger", "file/ledger.db", VAST_API_KEY="key")
    assert done.returncode == 1
    assert done.stderr.startswith("vastfleet: error: file")
    assert done.stderr.count("\n") == 1


def test_a_closed_pipe_is_no_error(shell: Shell):
    """When nobody reads the output any more, nothing is complained of."""
    script = f"'{sys.executable}' -m controller.cli.main explain 2>err | true"
    subprocess.run(["sh", "-c", script], cwd=shell.directory, env=shell.env, check=False)
    assert (shell.directory / "err").read_text() == ""


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_are_no_error(shell: Shell, closed: str):
    """Without stdin, stdout or stderr, as from some schedulers, a command does its work all the same."""
    path = shell.write("fleet.yaml", (ROOT / "examples/minimal.yaml").read_text())
    script = f"'{sys.executable}' -m controller.cli.main validate {path} {closed}"
    assert subprocess.run(["sh", "-c", script], cwd=shell.directory, env=shell.env, check=False).returncode == 0


@pytest.mark.parametrize("command", ["validate", "plan", "apply", "run", "destroy"])
def test_an_empty_path_is_not_the_current_directory(command: str, capsys: pytest.CaptureFixture[str]):
    """An unset variable in place of a path is refused: it would mean all the fleets of the current directory."""
    assert run([command, ""]) == (1 if command == "plan" else 2)
    assert "is empty" in capsys.readouterr().err


@pytest.mark.parametrize("url", ["http://[::1", "http://127.0.0.1:99999", "http://127.0.0.1:0", "https://:443"])
def test_an_address_that_is_none_is_one_line(shell: Shell, url: str):
    """A VAST_URL that cannot be an address is named, without a traceback."""
    path = shell.write("fleet.yaml", (ROOT / "examples/minimal.yaml").read_text())
    done = shell.run("plan", path, VAST_API_KEY="key", VAST_URL=url)
    assert done.returncode == 1
    assert done.stderr.startswith(f"vastfleet: error: VAST_URL is {url!r}")
