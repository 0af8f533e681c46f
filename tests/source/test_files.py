import os
from pathlib import Path

import pytest

from controller.model.manifest import ManifestErrors
from controller.source.files import load_paths

FLEET = """\
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {name: NAME}
spec:
  target: {instances: 1}
  budgetPerHour: 1
  shapes: [{gpu: RTX 4090, minRate: 59}]
  instance: {image: a}
  benchmark: {command: bench}
"""
EXAMPLES = Path(__file__).parents[2] / "examples"


def write(directory: Path, file: str, name: str) -> Path:
    path = directory / file
    path.write_text(FLEET.replace("NAME", name))
    return path


def names(*paths: Path) -> list[str]:
    return [loaded.fleet.name for loaded in load_paths(paths)]


def errors(*paths: Path) -> list[str]:
    with pytest.raises(ManifestErrors) as wrong:
        load_paths(paths)
    return [str(error) for error in wrong.value.errors]


def test_a_directory_is_its_yaml_files_by_name(tmp_path: Path) -> None:
    """A directory gives its *.yaml and *.yml files in order, without hidden, other and deeper ones."""
    (tmp_path / "sub.yaml").mkdir()
    for file in ("b.yml", "a.yaml", ".hidden.yaml", "c.txt", "sub.yaml/d.yaml"):
        write(tmp_path, file, f"from-{file[0]}" if file[0].isalpha() else "hidden")
    assert names(tmp_path) == ["from-a", "from-b"]


def test_a_file_given_twice_is_read_once(tmp_path: Path) -> None:
    """A file that is also in a given directory, or linked, is one file."""
    file = write(tmp_path, "a.yaml", "one")
    (tmp_path / "link.yaml").symlink_to(file)
    assert names(file, tmp_path, file) == ["one"]


def test_errors_of_all_files_come_at_once_and_no_fleet_with_them(tmp_path: Path) -> None:
    """One bad file keeps all fleets back, and every file's errors are told."""
    write(tmp_path, "a.yaml", "fine")
    write(tmp_path, "b.yaml", "Bad")
    (tmp_path / "c.yaml").write_text("")
    told = errors(tmp_path, tmp_path / "gone.yaml")
    assert [line.removeprefix(f"{tmp_path}{os.sep}").split(" ")[0] for line in told] == [
        "b.yaml:3:18:",
        "c.yaml:",
        "gone.yaml:",
    ]
    assert "holds no fleet" in told[1]
    assert "cannot be read: No such file or directory" in told[2]


def test_one_name_in_two_files_is_refused_with_both_places(tmp_path: Path) -> None:
    """Two fleets of one name are refused, across files too."""
    first, second = write(tmp_path, "a.yaml", "same"), write(tmp_path, "b.yaml", "same")
    (told,) = errors(tmp_path)
    assert told.startswith(f"{second}:3:18: metadata.name: ")
    assert f"{first}:3" in told


def test_a_directory_without_manifests_is_an_error(tmp_path: Path) -> None:
    """An empty directory is told of, and never taken for no fleets."""
    (told,) = errors(tmp_path)
    assert "holds no *.yaml file" in told


def test_a_file_is_read_no_further_than_it_can_be_refused(tmp_path: Path) -> None:
    """An endless file is refused."""
    (told,) = errors(Path("/dev/zero"))
    assert "longer than 256 KiB" in told


def test_a_link_to_itself_is_told_of(tmp_path: Path) -> None:
    """A link that leads nowhere but to itself is one line, like any file that cannot be read."""
    (tmp_path / "loop").symlink_to("loop")
    (told,) = errors(tmp_path / "loop")
    assert "loop: cannot be read: " in told


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.yaml")), ids=lambda file: file.name)
def test_every_example_is_a_manifest(file: Path) -> None:
    """Each example loads as it stands."""
    assert load_paths([file])


def test_the_examples_can_be_run_side_by_side() -> None:
    """The examples' directory is itself a set of fleets with names of their own."""
    assert {"provers", "minimal", "by-rate", "own-benchmark", "day", "night", "steady"} <= set(names(EXAMPLES))
