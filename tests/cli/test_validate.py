import json

import pytest

from controller.cli.main import run
from tests.cli.conftest import SECRET, Shell, manifest

WRONG = manifest().replace("budgetPerHour: 2.0", "budgetPerHour: -1").replace("RTX 4090", "RTX 4091")


def test_all_errors_are_told(tmp_path, capsys: pytest.CaptureFixture[str]):
    """All errors are told at once, with file, line and column, and the exit code is 2."""
    path = tmp_path / "fleet.yaml"
    path.write_text(WRONG)
    assert run(["validate", str(path)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{path}:7:18: spec.budgetPerHour: must be above 0 (got -1)" in said.err
    assert f"{path}:8:18: spec.shapes[0].gpu:" in said.err
    assert SECRET not in said.err


def test_a_good_manifest_is_named(tmp_path, capsys: pytest.CaptureFixture[str]):
    """Good manifests are listed, for people and for programs."""
    path = tmp_path / "fleet.yaml"
    path.write_text(manifest())
    assert run(["validate", str(path)]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[:3] == ["provers", "2", "2.00"]
    assert run(["validate", str(path), "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["name"] == "provers"


def test_stdin_is_read(shell: Shell):
    """`-` is stdin, and errors in it are told by line too."""
    assert shell.run("validate", "-", stdin=manifest()).returncode == 0
    done = shell.run("validate", "-", stdin=WRONG)
    assert done.returncode == 2
    assert done.stderr.startswith("<stdin>:7:18: ")


def test_a_name_is_given_twice(shell: Shell):
    """Two fleets of one name, one from a file and one from stdin, are an error."""
    done = shell.run("validate", "-", shell.write("fleet.yaml", manifest()), stdin=manifest())
    assert done.returncode == 2
    assert "is the name of the fleet in fleet.yaml:4 already" in done.stderr
