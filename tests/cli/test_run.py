import json
import signal

from tests.cli.conftest import Shell, manifest


def test_it_follows_its_manifests(emulated: Shell):
    """The command run keeps the last good manifest when it is broken, and leaves alone what is taken out."""
    emulated.write("fleet.yaml", manifest(instances=1))
    emulated.write("other.yaml", manifest("others", instances=0))
    running = emulated.start("run", ".")
    (emulated.directory / "scenario.yaml").unlink()
    running.until("provers TargetReached")
    emulated.write("fleet.yaml", "spec: {")
    running.until("stays in force")
    emulated.write("fleet.yaml", "")
    running.until("holds no fleet")
    (emulated.directory / "fleet.yaml").unlink()
    running.until("provers is unmanaged: no manifest here has it; 1 instance left running")
    busy = emulated.run("apply", emulated.write("third.txt", manifest(instances=1)))
    assert busy.returncode == 1
    assert "in use by process" in busy.stderr
    code, said = running.stop(signal.SIGTERM)
    assert code == 143
    assert "still billing: 1 instance" in said
    assert said.count("provers is unmanaged") == 1
    assert len(json.loads(emulated.run("get", "instances", "-o", "json").stdout)["items"]) == 1
