import sqlite3
from contextlib import closing
from dataclasses import fields, replace

import pytest

from controller.ledger.runs import DROPPED_EVERY, PRODUCTION_KEPT, READING_EVERY
from controller.ledger.sqlite import BACKOFFS_KEPT, EVENTS_KEPT, Ledger
from controller.model.instance import Backoff, Event, Instance, Phase, Run, RunKind
from controller.model.reasons import Reason
from tests.plan.conftest import NOW, instance, run, young

TABLES = {"instances": Instance, "runs": Run, "backoffs": Backoff, "events": Event}
DAY = 86400.0


def backoff(key="7", until=NOW, failures=1):
    return Backoff(scope="machine", key=key, until=until, failures=failures, reason=Reason.HOST_LOST, detail="d")


def event(number, fleet="provers"):
    return Event(at=NOW + number, fleet=fleet, about="1", kind="Normal", reason=Reason.RENTED, message=str(number))


@pytest.mark.parametrize(("table", "kind"), TABLES.items())
def test_the_columns_are_the_records_fields(ledger, path, table, kind):
    """A field that is added to a record without a column of its own is noticed here, not in production."""
    with closing(sqlite3.connect(path)) as database:
        columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
    assert sorted(set(columns) - {"number"}) == sorted(field.name for field in fields(kind))


FULL = instance(
    1,
    detail="ünïcode 'quoted'; --",
    offer_id=5,
    host_id=6,
    country="NO",
    ends_at=NOW + 1.5,
    absent_since=NOW + 2,
    trouble_since=NOW + 3,
    failures=4,
    not_before=NOW + 5,
    host_key="ssh-ed25519 A",
    destroy_calls=6,
    cost=2**53 + 1,
    ended_at=NOW + 7,
)


@pytest.mark.parametrize("record", [FULL, instance(2), *(young(n, phase) for n, phase in enumerate(Phase, start=3))])
def test_an_instance_is_read_back_as_it_was_written(ledger, record):
    """Every field survives, set or not, in every phase, and types are the same again."""
    ledger.put(record)
    assert ledger.instance(record.nonce) == record
    assert repr(ledger.instance(record.nonce)) == repr(record)


def test_a_changed_instance_replaces_itself_alone(ledger):
    """Writing a record again changes it and no other."""
    one, two = instance(1), instance(2)
    ledger.put(one)
    ledger.put(two)
    ledger.put(replace(one, phase=Phase.DESTROYING, instance_id=None))
    assert ledger.instance(one.nonce) == replace(one, phase=Phase.DESTROYING, instance_id=None)
    assert ledger.instance(two.nonce) == two


def test_two_records_of_one_instance_are_refused(ledger):
    """vast.ai's id belongs to one record: a second one with it is an error, and nothing is lost."""
    one, two = instance(1), instance(2)
    ledger.put(one)
    with pytest.raises(sqlite3.IntegrityError, match="instance_id"):
        ledger.put(replace(two, instance_id=one.instance_id))
    assert ledger.instances() == (one,)
    ledger.put(replace(two, instance_id=None))
    ledger.put(young(3, Phase.UNCLEAR))
    with pytest.raises(sqlite3.IntegrityError, match="instance_id"):
        ledger.put(replace(two, instance_id=one.instance_id))
    assert ledger.instance(two.nonce) == replace(two, instance_id=None)


def test_only_the_proven_gone_are_left_out(ledger):
    """All that bills or may bill is listed, oldest first, by fleet or all; what is gone only when asked for."""
    records = [young(n, phase, created_at=NOW - n) for n, phase in enumerate(Phase, start=1)]
    other = young(99, fleet="other")
    for record in (*records, other):
        ledger.put(record)
    alive = [record for record in reversed(records) if record.phase is not Phase.GONE]
    assert ledger.instances("provers") == tuple(alive)
    assert set(ledger.instances()) == {*alive, other}
    assert set(ledger.instances(gone=True)) == {*records, other}


@pytest.mark.parametrize(
    "made",
    [run(instance(1)), run(instance(1), None, detail="oom", error=0.01, concurrency=4, count=12, disturbed=True)],
)
def test_a_run_is_kept_for_ever(ledger, path, made):
    """A run is read back as it was, by its machine or among all, also after a restart."""
    ledger.add_run(made)
    assert ledger.runs() == ledger.runs(made.machine_id) == (made,)
    assert ledger.runs(made.machine_id + 1) == ()
    assert type(ledger.runs()[0].disturbed) is bool
    ledger.close()
    again = Ledger.read(path)
    assert again.runs() == (made,)
    again.close()


def reading(number, at, nonce="a"):
    """One of production's readings."""
    return replace(run(instance(1)), id=str(number), nonce=nonce, kind=RunKind.PRODUCTION, started_at=at, ended_at=at)


def test_of_an_hours_readings_the_last_is_kept(ledger):
    """However often production is read, an hour leaves one run of each instance: they saw one session."""
    hour = NOW // READING_EVERY * READING_EVERY
    for minute in range(150):
        ledger.add_run(reading(minute, hour + 60 * minute))
    ledger.add_run(reading("b", hour + 60 * 149, "b"))
    assert [made.id for made in ledger.runs()] == ["59", "119", "149", "b"]


def test_readings_are_kept_for_a_week_and_benchmarks_for_ever(ledger):
    """The oldest readings go some at a time, and what is known in memory is what is in the file."""
    ledger.add_run(run(instance(1)))
    for hour in range(1, 24 * 9):
        ledger.add_run(reading(hour, NOW + hour * 3600))
        assert ledger.runs()[0].kind is RunKind.BENCHMARK
    kept = ledger.runs()
    assert PRODUCTION_KEPT <= NOW + (24 * 9 - 1) * 3600 - kept[1].ended_at < PRODUCTION_KEPT + DROPPED_EVERY
    ledger._known_runs = None
    assert ledger.runs() == kept


def test_a_run_is_held_in_memory_once(ledger):
    """One more run leaves those before it the same objects, so that what is cached about them holds no copies."""
    for number in range(3):
        ledger.add_run(reading(number, NOW + 7200 * (3 - number)))
    before = ledger.runs()
    assert [made.id for made in before] == ["2", "1", "0"]
    ledger.add_run(reading(9, NOW + 7200 * 9))
    ledger.add_run(before[0])
    assert [made.id for made in ledger.runs()] == ["2", "1", "0", "9"]
    assert all(one is other for one, other in zip(before, ledger.runs(), strict=False))


def test_a_backoff_is_written_over_and_forgotten(ledger):
    """One back-off a scope and key, the newest; forgetting one leaves the others."""
    ledger.put_backoff(backoff())
    ledger.put_backoff(backoff(failures=2))
    ledger.put_backoff(backoff("8"))
    assert ledger.backoffs() == (backoff(failures=2), backoff("8"))
    ledger.drop_backoff("machine", "7")
    ledger.drop_backoff("machine", "unheard of")
    assert ledger.backoffs() == (backoff("8"),)


def test_backoffs_do_not_pile_up(ledger):
    """A back-off that has been over for more than a week is dropped; one that is over counts towards the next."""
    for day in range(30):
        ledger.put_backoff(backoff(str(day), until=NOW + day * DAY))
    assert {int(kept.key) for kept in ledger.backoffs()} == {
        day for day in range(30) if (29 - day) * DAY <= BACKOFFS_KEPT
    }


def test_events_are_kept_in_order_and_bounded(ledger):
    """The newest events are read in the order they happened; the oldest go, so that the file does not grow for ever."""
    for number in range(1, 6):
        ledger.add_event(event(number, "other" if number == 3 else "provers"))
    assert ledger.events(newest=2) == (event(4), event(5))
    assert ledger.events("other") == (event(3, "other"),)
    assert [number for number, _ in ledger.news(after=3)] == [4, 5]
    assert ledger.newest_event() == 5
    ledger._execute("UPDATE events SET number = ? WHERE number = 5", (EVENTS_KEPT + 3,))
    ledger.add_event(event(6))
    assert [said.message for said in ledger.events()] == ["5", "6"]


def test_fleets_and_facts(ledger):
    """A status does not undo a deletion's mark, nor the other way round; facts are written over."""
    ledger.set_deleting("a", deleting=True)
    ledger.put_status("a", '{"fleet": "a"}')
    ledger.put_status("b", "{}")
    assert ledger.deleting() == {"a"}
    ledger.set_deleting("a", deleting=False)
    assert ledger.deleting() == frozenset()
    assert ledger.statuses() == {"a": '{"fleet": "a"}', "b": "{}"}
    ledger.forget_fleet("a")
    assert ledger.statuses() == {"b": "{}"}
    assert ledger.fact("account") is None
    ledger.put_fact("account", "1")
    ledger.put_fact("account", "2")
    assert ledger.fact("account") == "2"


def test_a_dump_tells_ledgers_apart_and_alike(ledger):
    """Two ledgers are alike if their dumps are: every record is in it, in a fixed order."""
    for record in (instance(2), instance(1)):
        ledger.put(record)
    ledger.add_run(run(instance(1)))
    ledger.put_backoff(backoff())
    ledger.add_event(event(1))
    ledger.put_status("a", "{}")
    ledger.put_fact("account", "1")
    lines = list(ledger.dump())
    assert [line.partition(":")[0] for line in lines] == [
        "facts", "instances", "instances", "runs", "backoffs", "events", "fleets",
    ]  # fmt: skip
    ledger.put(replace(instance(1), cost=1))
    assert list(ledger.dump()) != lines
