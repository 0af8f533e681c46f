from tests.cli.conftest import Shell


def test_the_demo_keeps_its_promises(shell: Shell):
    """The demo fills, loses and replaces, tears down, and finds every promise kept by the emulator's books."""
    done = shell.run("demo", "--speed", "300")
    assert done.returncode == 0, done.stdout + done.stderr
    promises = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "FAILED"))]
    assert len(promises) == 7
    assert all(line.startswith("ok ") for line in promises)
    assert "emulator-key" not in done.stdout + done.stderr
