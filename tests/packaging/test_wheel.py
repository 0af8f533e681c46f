"""The wheel as it is installed elsewhere: built from the tree, unpacked, and run without the tree."""

import os
import subprocess
import sys
import tomllib
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = place.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(place / "site")
    return place / "site"


def python(installed: Path, code: str) -> str:
    """What a program prints that sees the wheel and nothing of the tree."""
    env = {**os.environ, "PYTHONPATH": str(installed)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=installed.parent, env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_the_demo_finds_its_fleet(installed: Path):
    """The demo's manifest and scenario come with the wheel, and are those of the tree."""
    said = python(
        installed, "from controller.cli.demo import *; print(SCENARIO); print(next(filter(Path.exists, MANIFESTS)))"
    )
    scenario, manifest = map(Path, said.splitlines())
    assert scenario.is_relative_to(installed)
    assert scenario.read_bytes() == (ROOT / "controller/cli/demo.yaml").read_bytes()
    assert manifest.is_relative_to(installed)
    assert manifest.read_bytes() == (ROOT / "examples/fleet.yaml").read_bytes()


def test_the_command_is_the_wheels(installed: Path):
    """The wheel names its command and its licence, and every module of the tree is in it."""
    (info,) = installed.glob("*.dist-info")
    (command,) = Distribution.at(info).entry_points
    assert (command.name, command.value) == ("vastfleet", "controller.cli.main:main")
    assert (info / "licenses/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()
    modules = {path.relative_to(ROOT) for path in (ROOT / "controller").rglob("*.py")}
    assert modules == {path.relative_to(installed) for path in installed.rglob("*.py")}
    assert {path.name for path in installed.iterdir()} == {"controller", info.name}


def test_it_starts(installed: Path):
    """The command starts from the wheel and says its version."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert python(installed, "from controller.cli.main import main; main(['--version'])") == f"vastfleet {version}"
