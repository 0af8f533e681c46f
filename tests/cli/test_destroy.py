import json
import signal

from tests.cli.conftest import Shell, manifest


def test_nobody_is_asked_in_a_pipe(shell: Shell):
    """Where nobody can confirm, nothing is destroyed without --yes."""
    done = shell.run("destroy", "provers", VAST_API_KEY="key")
    assert done.returncode == 2
    assert "say --yes" in done.stderr


def test_by_label_without_manifest_or_ledger(emulated: Shell):
    """A fleet is destroyed by its name alone, though manifest and ledger are lost, and each instance proven gone."""
    assert emulated.run("apply", emulated.write("fleet.yaml", manifest())).returncode == 0
    for lost in emulated.directory.glob("ledger.db*"):
        lost.unlink()
    done = emulated.run("destroy", "provers", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("TeardownVerified") == 2
    assert "provers: 2 instances proven gone, 0 left" in done.stdout
    assert json.loads(emulated.run("get", "fleets", "-o", "json").stdout) == {"items": []}
    code, closing = emulated.started[0].stop(signal.SIGINT)
    assert code == 0
    assert "2 rented, 0 alive" in closing


def test_a_misspelt_fleet_is_an_error(emulated: Shell):
    """A name of which neither the ledger nor vast.ai knows anything exits with 1, and says what was meant."""
    path = emulated.write("fleet.yaml", manifest(instances=1))
    assert emulated.run("apply", path).returncode == 0
    done = emulated.run("destroy", "provrs", "--yes")
    assert done.returncode == 1
    assert "did you mean provers?" in done.stderr
    assert emulated.run("get", "instances", "-o", "json").stdout.count("Admitted") == 1


def test_what_was_not_destroyed_in_time_says_why(shell: Shell):
    """When vast.ai cannot be reached, the end of the time is told with what kept it, and what to do."""
    url = "http://127.0.0.1:9"
    done = shell.run("destroy", "provers", "--yes", "--timeout", "0.02", VAST_API_KEY="key", VAST_URL=url)
    assert done.returncode == 3
    assert done.stderr.startswith("provers is not finished: what exists is not known")
    assert "not sent" in done.stderr


def test_orphans_are_left(shell: Shell):
    """A manifest that says Orphan is not destroyed by; how to do it all the same is said."""
    done = shell.run("destroy", shell.write("fleet.yaml", manifest(policy="Orphan")), "--yes", VAST_API_KEY="key")
    assert done.returncode == 1
    assert "vastfleet destroy provers" in done.stderr
