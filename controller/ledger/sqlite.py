"""The ledger: what we own, what we measured, and what we said of it, in one SQLite file that survives kill -9.

Written by the loop, one process at a time (a lock file says whose); read by any number of `status` and `get` commands.
Writes are durable when a call returns: WAL with full sync. A damaged, foreign or newer file is named and left as it is.
"""

import sqlite3
from bisect import insort
from collections.abc import Iterator, Sequence
from dataclasses import astuple, fields
from pathlib import Path
from typing import IO, Any, TypeVar

from controller.ledger import file
from controller.ledger.runs import DROPPED_EVERY, PRODUCTION_KEPT, READING_EVERY
from controller.model.faults import Misconfigured
from controller.model.instance import Backoff, Event, Instance, Phase, Run, RunKind
from controller.model.money import MicroUsd
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
        self._known_runs: tuple[Run, ...] | None = None

    @classmethod
    def open(cls, path: Path) -> "Ledger":
        """Open for writing, or make it. Raises Misconfigured if it is in use, damaged, foreign or newer."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = file.lock(path)
        except OSError as error:
            raise Misconfigured(Reason.LEDGER_UNUSABLE, f"{path}: cannot be opened ({error})") from error
        try:
            db = file.connect(path, mode="rwc")
            file.check(db, path)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            file.migrate(db)
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
        db = file.connect(path, mode="ro")
        file.check(db, path)
        if file.is_older(db):  # it stays as it is until a writer opens it
            older, db = db, sqlite3.connect(":memory:", isolation_level=None)
            older.backup(db)
            older.close()
            file.migrate(db)
        return cls(db, path)

    @classmethod
    def copy(cls, path: Path) -> "Ledger":
        """A copy in memory, empty if there is no file: what is written to it is forgotten. Raises Misconfigured."""
        db = sqlite3.connect(":memory:", isolation_level=None)
        if path.exists():
            source = cls.read(path)
            source._db.backup(db)  # noqa: SLF001 - our own
            source.close()
        file.migrate(db)
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

    async def secure(self, nonce: str) -> None:
        """Nothing is left to be done: what is written is durable."""

    def instance(self, nonce: str) -> Instance | None:
        """One instance by its nonce."""
        return next(self._select(Instance, "instances WHERE nonce = ?", nonce), None)

    def holder(self, instance_id: int) -> Instance | None:
        """The record that has vast.ai's id, gone or not."""
        return next(self._select(Instance, "instances WHERE instance_id = ?", instance_id), None)

    def instances(self, fleet: str | None = None, *, gone: bool = False, since: float = 0.0) -> tuple[Instance, ...]:
        """Instances, oldest first; those proven gone only if asked for, and rented after `since`, unix seconds."""
        alive = "(phase <> 'Gone' OR (?2 AND created_at > ?3))"
        where = f"(?1 IS NULL OR fleet = ?1) AND {alive}"
        return tuple(self._select(Instance, f"instances WHERE {where} ORDER BY created_at, nonce", fleet, gone, since))

    def on_machine(self, machine_id: int) -> tuple[Instance, ...]:
        """The instances on a machine that bill or may bill, oldest first."""
        tail = "instances WHERE phase <> 'Gone' AND machine_id = ? ORDER BY created_at, nonce"
        return tuple(self._select(Instance, tail, machine_id))

    def machines_in_use(self) -> frozenset[int]:
        """The machines of all that bills or may bill."""
        sql = "SELECT DISTINCT machine_id FROM instances WHERE phase <> 'Gone'"
        return frozenset(machine for (machine,) in self._execute(sql))

    def spend(self) -> MicroUsd:
        """What all instances with an id cost an hour."""
        sql = "SELECT coalesce(sum(price), 0) FROM instances WHERE phase <> 'Gone' AND instance_id IS NOT NULL"
        return int(self._execute(sql)[0][0])

    # runs

    def add_run(self, run: Run) -> None:
        """Keep one run: a benchmark for ever; of production's rate each hour's last reading, for about a week."""
        self._put("runs", run)
        gone: set[str] = set()
        if run.kind is RunKind.PRODUCTION:
            past = (run.ended_at - PRODUCTION_KEPT) // DROPPED_EVERY * DROPPED_EVERY
            this = run.ended_at // READING_EVERY * READING_EVERY
            sql = (
                "DELETE FROM runs WHERE kind = ?1 AND "
                "(ended_at < ?2 OR (nonce = ?3 AND ended_at >= ?4 AND ended_at < ?5)) RETURNING id"
            )
            gone = {key for (key,) in self._execute(sql, (run.kind, past, run.nonce, this, run.ended_at))}
        if self._known_runs is not None:  # the others stay the very same: what is kept of them is held but once
            known = [each for each in self._known_runs if each.id not in gone and each.id != run.id]
            insort(known, run, key=lambda each: (each.ended_at, each.id))
            self._known_runs = tuple(known)

    def runs(self, machine_id: int | None = None) -> tuple[Run, ...]:
        """Runs, oldest first, of one machine or of all. A writer, who alone adds any, reads all of them but once."""
        if machine_id is not None:
            return tuple(run for run in self.runs() if run.machine_id == machine_id)
        if self._known_runs is not None:
            return self._known_runs
        found = tuple(self._select(Run, "runs ORDER BY ended_at, id"))
        if self._lock is not None:
            self._known_runs = found
        return found

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

    def status(self, fleet: str) -> str | None:
        """A fleet's status, as JSON text, None before the first."""
        rows = self._execute("SELECT status FROM fleets WHERE name = ?", (fleet,))
        return str(rows[0][0]) if rows else None

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

    def discarded(self) -> frozenset[str]:
        """None: records are not to be taken away one by one."""
        return frozenset()

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
