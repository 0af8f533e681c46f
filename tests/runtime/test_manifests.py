import pytest

from controller.model.manifest import ManifestErrors
from controller.runtime.manifests import Manifests

TEXT = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {{name: {name}}}
spec:
  target: {{instances: {count}}}
  budgetPerHour: 1
  shapes: [{{gpu: RTX 4090, minRate: 50}}]
  instance: {{image: i}}
  benchmark: {{command: b}}
"""


class Files:
    """A directory of manifests, and what was told of them."""

    def __init__(self, folder):
        self.folder = folder
        self.refusals = []
        self.changes = []

    def write(self, name="provers", count=1, text=None):
        (self.folder / f"{name}.yaml").write_text(text or TEXT.format(name=name, count=count))

    def read(self):
        return Manifests(
            [self.folder], refused=self.refusals.append, changed=lambda *change: self.changes.append(change)
        )


@pytest.fixture
def files(tmp_path):
    made = Files(tmp_path)
    made.write()
    return made


def counts(fleets):
    return [one.spec.target.instances for one in fleets]


def test_an_edit_is_seen_and_told_once(files):
    """A changed file is read at the next look, and the change is told once."""
    manifests = files.read()
    assert counts(manifests.current()) == [1]
    files.write(count=22)
    assert counts(manifests.current()) == counts(manifests.current()) == [22]
    assert [(counts(before), counts(after)) for before, after in files.changes] == [([1], [22])]


def test_a_broken_edit_changes_nothing_and_is_told_once(files):
    """While a file is wrong the fleets last read go on; the mended file is taken at once."""
    manifests = files.read()
    files.write(text="budgetPerHour: [")
    assert counts(manifests.current()) == counts(manifests.current()) == [1]
    assert len(files.refusals) == 1
    files.write(count=3)
    assert counts(manifests.current()) == [3]


def test_a_missing_or_empty_file_destroys_nothing(files, tmp_path):
    """A file that is gone, or emptied, leaves the fleets as they were."""
    manifests = files.read()
    (tmp_path / "provers.yaml").write_text("\n")
    assert counts(manifests.current()) == [1]
    (tmp_path / "provers.yaml").unlink()
    assert counts(manifests.current()) == [1]
    tmp_path.rmdir()
    assert counts(manifests.current()) == [1]
    assert files.changes == []


def test_one_of_several_files_may_be_taken_away(files):
    """Where others remain, a file that is taken away takes its fleet with it: what runs of it is left to run."""
    files.write("second", 2)
    manifests = files.read()
    assert len(manifests.current()) == 2
    (files.folder / "second.yaml").unlink()
    assert [one.name for one in manifests.current()] == ["provers"]


def test_rereading_reads_an_unchanged_file(files):
    """A file whose stamp is the same is read again when it is asked for, and told of only if it changed."""
    manifests = files.read()
    manifests.reread()
    assert counts(manifests.current()) == [1]
    assert files.changes == []


def test_at_the_start_everything_must_be_right(files):
    """A controller does not start on a broken manifest."""
    files.write(text="kind: Nothing")
    with pytest.raises(ManifestErrors):
        files.read()
