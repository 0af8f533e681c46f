"""What the documents say, held against the code."""

import re
from pathlib import Path
from typing import get_args

from ruamel.yaml import YAML

from controller.emulator.scenario import Scenario
from controller.emulator.trouble import CallTrouble, HostTrouble, Operation
from controller.model.reasons import Reason

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
EMULATOR = (ROOT / "docs/emulator.md").read_text()


def scenarios() -> list[dict[str, object]]:
    """The YAML that docs/emulator.md shows."""
    return [YAML(typ="safe").load(block) for block in re.findall(r"```yaml\n(.*?)```", EMULATOR, re.DOTALL)]


def test_the_scenarios_defaults_are_those_shown():
    """The scenario file that is said to hold the defaults holds them, each of them, and nothing else."""
    shown = scenarios()[0]
    assert Scenario.model_validate(shown) == Scenario()
    optional = {"listing", "searchQuota"}
    for part, value in Scenario().model_dump(mode="json", by_alias=True).items():
        named = shown[part]
        if isinstance(value, dict):
            assert isinstance(named, dict)
            assert set(value) - set(named) <= optional, part


def test_the_troubles_shown_are_troubles():
    """The example of troubles can be used, and every kind and every call is mentioned."""
    assert len(Scenario.model_validate(scenarios()[1]).troubles) == 5
    for model in (CallTrouble, HostTrouble):
        for kind in get_args(model.model_fields["kind"].annotation):
            assert kind in EMULATOR, kind
    for operation in get_args(Operation):
        assert operation in EMULATOR, operation


def test_reasons_in_the_documents_exist():
    """A reason that a document names is one that the controller gives."""
    known = {str(reason) for reason in Reason}
    for document in DOCUMENTS:
        named = set(re.findall(r"`([A-Z][a-z]+(?:[A-Z][a-z]+)+)`", document.read_text()))
        assert named <= known, document.name


def test_every_setting_is_in_the_readme():
    """Each variable that the settings read is in the README's table."""
    source = (ROOT / "controller/runtime/settings.py").read_text()
    readme = (ROOT / "README.md").read_text()
    for name in re.findall(r'"(VAST[A-Z_]+)"', source):
        assert f"| `{name}` |" in readme, name


def test_links_lead_somewhere():
    """Every link to a file of the project leads to one."""
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:)([^)#]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
