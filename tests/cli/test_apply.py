import json
import signal

from tests.cli.conftest import SECRET, Shell, manifest


def test_a_fleet_comes_up_and_is_seen(emulated: Shell):
    """The command apply ends when the fleet is ready, then does nothing; all other commands tell the same story."""
    path = emulated.write("fleet.yaml", manifest())
    done = emulated.run("apply", "-vv", path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "provers is ready: 2 instances" in done.stdout
    again = emulated.run("apply", path)
    assert (again.returncode, again.stdout.count("Rented")) == (0, 0)
    status = json.loads(emulated.run("status", "-o", "json").stdout)["items"][0]
    assert (status["held"], len(status["instances"])) == (2, 2)
    name = status["instances"][0]["name"]
    told = [
        emulated.run(*command.split()).stdout
        for command in (
            f"describe instance {name}",
            "describe fleet provers",
            "events provers",
            f"explain {name}",
            "get runs -o wide",
            "get machines -o wide",
            "get instances -o yaml",
        )
    ]
    assert all(told)
    assert all("Measured" in text for text in told[:5])
    following = emulated.start("events", "--follow")
    following.until("TargetReached")
    code, events = following.stop(signal.SIGINT)
    assert code == 130
    said = "".join(
        [events, done.stdout, done.stderr, *told, (emulated.directory / "ledger.db").read_bytes().decode("latin-1")]
    )
    assert all(secret not in said for secret in (SECRET, "SECRET-instance-key", "SECRET-jupyter-token"))
    assert emulated.env["VAST_API_KEY"] not in said


def test_interrupted_it_says_what_bills(emulated: Shell):
    """Ctrl-C ends apply between two passes, says what bills and how to end it; the next apply takes it up."""
    path = emulated.write("fleet.yaml", manifest())
    applying = emulated.start("apply", path)
    applying.until("Rented")
    code, said = applying.stop(signal.SIGINT)
    assert code == 130
    assert "still billing: " in said
    assert "to end them: vastfleet destroy provers" in said
    rented = len(json.loads(emulated.run("get", "instances", "-o", "json").stdout)["items"])
    assert f"still billing: {rented} instance" in said
    done = emulated.run("apply", path)
    assert done.returncode == 0
    assert done.stdout.count("Rented") == 2 - rented


def test_time_runs_out(emulated: Shell):
    """A fleet that is not ready in time exits with 3, and says what bills."""
    done = emulated.run("apply", emulated.write("fleet.yaml", manifest()), "--timeout", "1")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "provers is not ready" in done.stdout
    assert "still billing: " in done.stderr


def test_a_bad_key_stalls(emulated: Shell):
    """A key that is refused ends apply at once with 1, and the reason."""
    done = emulated.run("apply", emulated.write("fleet.yaml", manifest()), VAST_API_KEY="SECRET-wrong-key")
    assert done.returncode == 1
    assert "provers is not ready: AuthFailed" in done.stdout
    assert "SECRET-wrong-key" not in done.stdout + done.stderr
