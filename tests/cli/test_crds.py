from pathlib import Path

import pytest
from ruamel.yaml import YAML

from controller.cli.main import run


def test_all_definitions_are_one_stream(capsys: pytest.CaptureFixture[str]):
    """Without a directory every definition is printed, for `kubectl apply -f -`."""
    assert run(["crds"]) == 0
    printed = list(YAML(typ="safe").load_all(capsys.readouterr().out))
    assert [each["spec"]["names"]["kind"] for each in printed] == ["Fleet", "Instance", "Machine"]


def test_definitions_are_written_and_checked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Each goes into a file of its own, written only if it differs; --check says which would be, and writes none."""
    place = tmp_path / "crds"
    assert run(["crds", "--check", str(place)]) == 1
    assert capsys.readouterr().err.count(" is missing: run vastfleet crds ") == 3
    assert run(["crds", str(place)]) == 0
    paths = capsys.readouterr().out.split()
    assert sorted(map(Path, paths)) == sorted(place.iterdir())
    assert run(["crds", "--check", str(place)]) == 0
    fleets = place / "vastfleet.io_fleets.yaml"
    text = fleets.read_text()
    fleets.write_text("")
    assert run(["crds", "--check", str(place)]) == 1
    assert capsys.readouterr().err == f"{fleets} is not up to date: run vastfleet crds {place}\n"
    assert run(["crds", str(place)]) == 0
    assert capsys.readouterr().out == f"{fleets}\n"
    assert fleets.read_text() == text


def test_what_to_check_must_be_said(capsys: pytest.CaptureFixture[str]):
    """--check alone checks nothing, and says what it lacks."""
    assert run(["crds", "--check"]) == 2
    assert "--check needs a DIRECTORY to check" in capsys.readouterr().err
