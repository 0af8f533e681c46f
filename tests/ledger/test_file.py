import os
import shutil
import signal
import sqlite3
from contextlib import closing

import pytest

from controller.ledger.schema import APPLICATION_ID, STEPS
from controller.ledger.sqlite import Ledger
from controller.model.faults import Misconfigured
from controller.model.instance import RunKind
from controller.model.reasons import Reason
from tests.ledger.conftest import changed
from tests.plan.conftest import instance


def refusal(opening) -> str:
    """What a ledger that can't be used says."""
    with pytest.raises(Misconfigured) as refused:
        opening()
    assert refused.value.reason is Reason.LEDGER_UNUSABLE
    return str(refused.value)


@pytest.mark.parametrize("kills", range(3))
def test_kill_9_loses_nothing_that_was_acknowledged(path, writer, kills):
    """A writer killed at any moment leaves a sound ledger with every write that had returned, and at most one more."""
    process = writer()
    assert process.stdout is not None
    for _ in range(20 + 7 * kills):
        process.stdout.readline()
    os.kill(process.pid, signal.SIGKILL)
    acknowledged = 20 + 7 * kills + len(process.stdout.readlines())
    process.wait()
    ledger = Ledger.open(path)
    found = {record.nonce for record in ledger.instances()}
    ledger.close()
    assert {instance(n).nonce for n in range(1, acknowledged + 1)} <= found
    assert len(found) <= acknowledged + 1


def test_a_write_is_on_the_disk_when_it_returns(ledger):
    """Durable means synced: a power cut loses nothing that a write has returned for."""
    assert ledger._execute("PRAGMA synchronous") == [(2,)]
    assert ledger._execute("PRAGMA journal_mode") == [("wal",)]


def test_a_second_writer_is_refused_by_name_until_the_first_is_dead(path, writer):
    """Two loops on one ledger would both spend its budget: the second is told who has it, until that one is dead."""
    process = writer()
    assert process.stdout is not None
    process.stdout.readline()
    assert f"in use by process {process.pid}" in refusal(lambda: Ledger.open(path))
    process.kill()
    process.wait()
    Ledger.open(path).close()


def test_the_lock_is_let_go_of_with_the_ledger(path, ledger):
    """Within one process too a ledger has one writer, and closing it makes room for the next."""
    assert f"process {os.getpid()}" in refusal(lambda: Ledger.open(path))
    ledger.close()
    Ledger.open(path).close()


def test_reading_goes_on_beside_a_writer(path, ledger):
    """`status` reads what was last written while a loop holds the ledger, and cannot write itself."""
    reader = Ledger.read(path)
    ledger.put(instance(1))
    assert reader.instances() == (instance(1),)
    assert "readonly" in refusal(lambda: reader.put(instance(2)))
    reader.close()


def test_a_ledger_of_the_version_before_can_be_read(path):
    """Who looks before the new version has run, or beside an old one that runs, sees all, and changes nothing."""
    path.parent.mkdir()
    changed(path, f"{STEPS[0]}; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;")
    changed(
        path,
        """
        INSERT INTO runs VALUES ('1', 'n', 'f', 7, 's', 'w', 1.0, 2.0, 'Measured', '', 61.4, 'proofs/h', NULL, 5, NULL,
        75.0, 8, '', 0)
    """,
    )
    before = path.read_bytes()
    reader = Ledger.read(path)
    assert [(run.rate, run.kind, run.neighbours) for run in reader.runs()] == [(61.4, RunKind.BENCHMARK, 0)]
    assert reader.instances() == ()
    reader.close()
    assert path.read_bytes() == before
    ledger = Ledger.open(path)
    assert [run.rate for run in ledger.runs()] == [61.4]
    ledger.close()


def test_a_copy_forgets(path, ledger):
    """What is written to a copy is in the copy alone; a copy of nothing is empty and makes no file."""
    ledger.put(instance(1))
    copy = Ledger.copy(path)
    copy.put(instance(2))
    assert len(copy.instances()) == 2
    assert ledger.instances() == (instance(1),)
    elsewhere = path.with_name("other.db")
    nothing = Ledger.copy(elsewhere)
    assert nothing.instances() == ()
    nothing.close()
    copy.close()
    assert not elsewhere.exists()


def test_reading_nothing_is_refused(path):
    """Asking where there is no ledger says so, and makes none."""
    assert "there is no ledger here" in refusal(lambda: Ledger.read(path))
    assert not path.exists()


def filled(path) -> bytes:
    """A closed ledger with many pages."""
    ledger = Ledger.open(path)
    for number in range(1, 200):
        ledger.put(instance(number))
    ledger.close()
    made: bytes = path.read_bytes()
    return made


def torn(page: bytes) -> bytes:
    return page[:4096] + b"\xa5" * (len(page) - 4096)


def scribbled(page: bytes) -> bytes:
    return b"not a database at all" + page[21:]


@pytest.mark.parametrize("damage", [torn, scribbled, lambda page: page[: len(page) // 2], lambda _: b"hello\n" * 900])
@pytest.mark.parametrize("opening", [Ledger.open, Ledger.read, Ledger.copy])
def test_a_damaged_file_is_named_and_left_as_it_is(path, damage, opening):
    """A ledger that can't be read is not replaced by an empty one, which would rent everything a second time."""
    broken = damage(filled(path))
    path.write_bytes(broken)
    assert str(path) in refusal(lambda: opening(path))
    assert path.read_bytes() == broken


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (f"PRAGMA user_version = {len(STEPS) + 1}", "newer vastfleet"),
        ("PRAGMA application_id = 0", "not a ledger of ours"),
        ("PRAGMA application_id = 1", "not a ledger of ours"),
    ],
)
@pytest.mark.parametrize("opening", [Ledger.open, Ledger.read])
def test_a_newer_or_foreign_database_is_refused(path, opening, sql, says):
    """A ledger of a newer version, or another program's database, is named and not touched."""
    filled(path)
    changed(path, sql)
    before = path.read_bytes()
    assert says in refusal(lambda: opening(path))
    assert path.read_bytes() == before


def test_another_programs_database_gets_no_tables(tmp_path):
    """Pointed at another program's file, nothing is added to it."""
    path = tmp_path / "theirs.db"
    changed(path, "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    assert "not a ledger of ours" in refusal(lambda: Ledger.open(path))
    with closing(sqlite3.connect(path)) as database:
        tables = database.execute("SELECT name FROM sqlite_master").fetchall()
    assert tables == [("theirs",)]


def test_a_refused_ledger_lets_go_of_its_lock(path):
    """After a refusal the file can be mended and opened, in the same process."""
    sound = filled(path)
    path.write_bytes(torn(sound))
    refusal(lambda: Ledger.open(path))
    path.write_bytes(sound)
    Ledger.open(path).close()


def test_a_full_disk_is_a_fault_and_what_was_written_stays(path, ledger):
    """When nothing more can be written the write fails by name: no instance is rented that is not written down."""
    ledger._execute("PRAGMA max_page_count = 1")
    written = []

    def fill() -> None:
        for number in range(1, 5000):
            ledger.put(instance(number))
            written.append(instance(number).nonce)

    said = refusal(fill)
    assert str(path) in said
    assert "full" in said
    assert {record.nonce for record in ledger.instances()} == set(written)


def test_a_place_that_can_not_be_written_is_named(tmp_path):
    """A ledger below a file, or in the place of a directory, is refused by name."""
    (tmp_path / "file").write_text("x")
    assert "cannot be opened" in refusal(lambda: Ledger.open(tmp_path / "file" / "ledger.db"))
    assert "cannot be opened" in refusal(lambda: Ledger.open(tmp_path))


def test_a_ledger_can_be_moved(path, ledger, tmp_path):
    """A closed ledger is one file: copied elsewhere it holds the same."""
    ledger.put(instance(1))
    ledger.close()
    shutil.copy(path, tmp_path / "moved.db")
    moved = Ledger.read(tmp_path / "moved.db")
    assert moved.instances() == (instance(1),)
    moved.close()
