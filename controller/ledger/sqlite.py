"""The ledger: what we own, what we measured, and what we said of it, in one SQLite file that survives kill -9.

Written by the loop, one process at a time (a lock file says whose); read by any number of `status` and `get` commands.
Writes are durable when a call returns: WAL with full sync. A damaged, foreign or newer file is named and left as it is.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO, Any, TypeVar

from controller.ledger.schema import APPLICATION_ID, STEPS
from controller.model.faults import Misconfigured
from controller.model.instance import Backoff, Event, Instance, Phase, Run, RunKind
from controller.model.reasons import Reason

EVENTS_KEPT = 20_000
BACKOFFS_KEPT = 9 * 86400.0  # seconds; a back-off lasts two days at most, so that these have been over for a week
KEYS = {"instances": "nonce", "runs": "id", "backoffs": "scope, key"}

Record = TypeVar("Record", Instance, Run, Backoff, Event)


class Ledger:
    """All that is remembered between passes."""

    def __init__(self, connection: sqlite3.Connection, path: Path, lock: IO[str] | None = None) -> None:
        self._db = connection
        self._path = path
        self._lock = lock

    @classmethod
    def open(cls, path: Path) -> "Ledger":
        """Open for writing, or make it. Raises Misconfigured if it is in use, damaged, foreign or newer."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = _lock(path)
        except OSError as error:
            raise Misconfigured(Reason.LEDGER_UNUSABLE, f"{path}: cannot be opened ({error})") from error
        try:
            db = _connect(path, mode="rwc")
            _check(db, path)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            _migrate(db)
        except sqlite3.Error as error:
            lock.close()
            raise Misconfigured(Reason.LEDGER_UNUSABLE, f"{path}: cannot be written ({error})") from error
        except BaseException:
            lock.close()
            raise
        return cls(db, path, lock)

    @classmethod
    def read(cls, path: Path) -> "Ledger":
        """Open for reading beside a writer. Raises Misconfigured if there is no ledger or it can't be read."""
        if not path.exists():
            raise Misconfigured(Reason.LEDGER_UNUSABLE, f"{path}: there is no ledger here; `apply` or `run` makes one")
        db = _connect(path, mode="ro")
        _check(db, path)
        return cls(db, path)

    @classmethod
    def copy(cls, path: Path) -> "Ledger":
        """A copy in memory, empty if there is no file: what is written to it is forgotten. Raises Misconfigured."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        if path.exists():
            source = cls.read(path)
            source._db.backup(db)  # noqa: SLF001 - our own
            source.close()
        _migrate(db)
        return cls(db, path)

    def close(self) -> None:
        """Close the file and let go of its lock."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    # instances

    def put(self, instance: Instance) -> None:
        """Write one instance, new or changed; durable on return."""
        self._put("instances", instance)

    def instance(self, nonce: str) -> Instance | None:
        """One instance by its nonce."""
        return next(self._select(Instance, "instances WHERE nonce = ?", nonce), None)

    def holder(self, instance_id: int) -> Instance | None:
        """The record that has vast.ai's id, gone or not."""
        return next(self._select(Instance, "instances WHERE instance_id = ?", instance_id), None)

    def instances(self, fleet: str | None = None, *, gone: bool = False) -> tuple[Instance, ...]:
        """Instances, oldest first; those proven gone only if asked for."""
        where = "(?1 IS NULL OR fleet = ?1)" + ("" if gone else " AND phase <> 'Gone'")
        return tuple(self._select(Instance, f"instances WHERE {where} ORDER BY created_at, nonce", fleet))

    # runs

    def add_run(self, run: Run) -> None:
        """Keep one benchmark run for ever."""
        self._put("runs", run)

    def runs(self, machine_id: int | None = None) -> tuple[Run, ...]:
        """Runs, oldest first, of one machine or of all."""
        return tuple(self._select(Run, "runs WHERE ?1 IS NULL OR machine_id = ?1 ORDER BY ended_at, id", machine_id))

    # back-offs

    def put_backoff(self, backoff: Backoff) -> None:
        """Write one back-off, new or changed. Those that ended long before it would end are dropped."""
        self._put("backoffs", backoff)
        self._execute("DELETE FROM backoffs WHERE until < ?", (backoff.until - BACKOFFS_KEPT,))

    def drop_backoff(self, scope: str, key: str) -> None:
        """Forget one back-off; nothing happens if there is none."""
        self._execute("DELETE FROM backoffs WHERE scope = ? AND key = ?", (scope, key))

    def backoffs(self) -> tuple[Backoff, ...]:
        """All back-offs, ended ones too: their failures count towards the next."""
        return tuple(self._select(Backoff, "backoffs ORDER BY scope, key"))

    # events

    def add_event(self, event: Event) -> None:
        """Append one event; the oldest beyond the newest 20,000 are dropped."""
        names = ", ".join(field.name for field in fields(Event))
        sql = f"INSERT INTO events ({names}) VALUES (?, ?, ?, ?, ?, ?)"  # noqa: S608 - our own names
        self._execute(sql, astuple(event))
        self._execute("DELETE FROM events WHERE number <= (SELECT max(number) FROM events) - ?", (EVENTS_KEPT,))

    def events(self, fleet: str | None = None, *, newest: int = 100) -> tuple[Event, ...]:
        """The newest events, in the order they happened."""
        tail = "events WHERE ?1 IS NULL OR fleet = ?1 ORDER BY number DESC LIMIT ?2"
        return tuple(self._select(Event, tail, fleet, newest))[::-1]

    def news(self, *, after: int) -> tuple[tuple[int, Event], ...]:
        """Events with their numbers, in the order they happened, from the one behind `after` on."""
        names = ", ".join(field.name for field in fields(Event))
        sql = f"SELECT number, {names} FROM events WHERE number > ? ORDER BY number"  # noqa: S608 - our own names
        keys = names.split(", ")
        return tuple(
            (number, _record(Event, dict(zip(keys, row, strict=True)))) for number, *row in self._execute(sql, (after,))
        )

    def newest_event(self) -> int:
        """The number of the newest event, 0 if there is none."""
        ((number,),) = self._execute("SELECT coalesce(max(number), 0) FROM events")
        return int(number)

    # fleets

    def put_status(self, fleet: str, status: str) -> None:
        """Keep a fleet's status, as JSON text."""
        sql = (
            "INSERT INTO fleets (name, status) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET status = excluded.status"
        )
        self._execute(sql, (fleet, status))

    def statuses(self) -> dict[str, str]:
        """Each known fleet's status, as JSON text."""
        return dict(self._execute("SELECT name, status FROM fleets ORDER BY name"))

    def set_deleting(self, fleet: str, *, deleting: bool) -> None:
        """Note that a fleet is to be torn down, or no longer."""
        sql = (
            "INSERT INTO fleets (name, deleting, status) VALUES (?, ?, '{}') "
            "ON CONFLICT (name) DO UPDATE SET deleting = excluded.deleting"
        )
        self._execute(sql, (fleet, deleting))

    def deleting(self) -> frozenset[str]:
        """The fleets that are to be torn down."""
        return frozenset(name for (name,) in self._execute("SELECT name FROM fleets WHERE deleting"))

    def forget_fleet(self, fleet: str) -> None:
        """Drop a fleet's status and its mark, once nothing of it is left; its runs and events stay."""
        self._execute("DELETE FROM fleets WHERE name = ?", (fleet,))

    # facts

    def fact(self, name: str) -> str | None:
        """A single remembered value, such as the account this ledger belongs to."""
        rows = self._execute("SELECT value FROM facts WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    def put_fact(self, name: str, value: str) -> None:
        """Remember a single value."""
        sql = "INSERT INTO facts VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
        self._execute(sql, (name, value))

    def dump(self) -> Iterator[str]:
        """Every row as a line of text, in a fixed order: two ledgers are alike if their dumps are."""
        for table in ("facts", "instances", "runs", "backoffs", "events", "fleets"):
            for row in self._execute(f"SELECT * FROM {table} ORDER BY 1, 2"):  # noqa: S608 - our own table names
                yield f"{table}: {row!r}"

    def _execute(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """One statement, a transaction of its own. What SQLite can't do, such as on a full disk, is Misconfigured."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.IntegrityError:  # two records that exclude each other are a mistake of ours
            raise
        except sqlite3.Error as error:
            raise Misconfigured(
                Reason.LEDGER_UNUSABLE,
                f"{self._path}: {error}; what was written before is safe: mend the disk and start again",
            ) from error

    def _put(self, table: str, record: Record) -> None:
        names = [field.name for field in fields(record)]
        key = KEYS[table]
        changes = ", ".join(f"{name} = excluded.{name}" for name in names)
        self._execute(
            f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join('?' * len(names))}) "  # noqa: S608 - our own names
            f"ON CONFLICT ({key}) DO UPDATE SET {changes}",
            astuple(record),
        )

    def _select(self, kind: type[Record], tail: str, *values: object) -> Iterator[Record]:
        names = [field.name for field in fields(kind)]
        for row in self._execute(f"SELECT {', '.join(names)} FROM {tail}", values):  # noqa: S608 - our own names
            yield _record(kind, dict(zip(names, row, strict=True)))


def _record(kind: type[Record], values: dict[str, object]) -> Record:
    values["reason"] = Reason(str(values["reason"]))
    if "phase" in values:
        values["phase"] = Phase(str(values["phase"]))
    if kind is Run:
        values |= {"disturbed": bool(values["disturbed"]), "kind": RunKind(str(values["kind"]))}
    return kind(**values)  # type: ignore[arg-type]  # the schema's columns are the record's fields; a test holds them together


def _lock(path: Path) -> IO[str]:
    lock = path.with_name(path.name + ".lock").open("a+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.seek(0)
        holder = lock.read().strip() or "unknown"
        lock.close()
        raise Misconfigured(
            Reason.LEDGER_UNUSABLE,
            f"{path}: in use by process {holder}; stop it first, or give this one its own --ledger and --owner",
        ) from None
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n")
    lock.flush()
    return lock


def _connect(path: Path, *, mode: str) -> sqlite3.Connection:
    # autocommit: each statement is its own transaction, durable when it returns
    try:
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10)
    except sqlite3.OperationalError as error:
        raise Misconfigured(Reason.LEDGER_UNUSABLE, f"{path}: cannot be opened ({error})") from error


def _check(db: sqlite3.Connection, path: Path) -> None:
    try:
        (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
        (application,) = db.execute("PRAGMA application_id").fetchone()
        (version,) = db.execute("PRAGMA user_version").fetchone()
        (tables,) = db.execute("SELECT count(*) FROM sqlite_master").fetchone()
    except sqlite3.DatabaseError as error:
        db.close()
        raise _unusable(path, f"damaged or not a ledger ({error})") from error
    problem = ""
    if verdict != "ok":
        problem = f"damaged ({verdict})"
    elif tables and application != APPLICATION_ID:
        problem = "a database, but not a ledger of ours"
    elif version > len(STEPS):
        problem = f"written by a newer vastfleet (format {version}, this one knows {len(STEPS)})"
    if problem:
        db.close()
        raise _unusable(path, problem)


def _unusable(path: Path, problem: str) -> Misconfigured:
    return Misconfigured(
        Reason.LEDGER_UNUSABLE,
        f"{path}: {problem}; it was left as it is. Restore a copy or move it away: "
        "instances that still run are adopted again by their labels",
    )


def _migrate(db: sqlite3.Connection) -> None:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, step in enumerate(STEPS[version:], start=version + 1):
        db.executescript(
            f"BEGIN IMMEDIATE; {step}; "
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT;"
        )
