"""The ledger's file: its lock, whether it is one of ours and sound, and its tables."""

import fcntl
import os
import sqlite3
from pathlib import Path
from typing import IO

from controller.ledger.schema import APPLICATION_ID, STEPS
from controller.model.faults import Misconfigured
from controller.model.reasons import Reason


def lock(path: Path) -> IO[str]:
    """Take the file's lock for this process. Raises Misconfigured with who has it, OSError if it can't be made."""
    held = path.with_name(path.name + ".lock").open("a+")
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held.seek(0)
        holder = held.read().strip() or "unknown"
        held.close()
        raise Misconfigured(
            Reason.LEDGER_UNUSABLE,
            f"{path}: in use by process {holder}; stop it first, or give this one its own --ledger and --owner",
        ) from None
    held.truncate(0)
    held.write(f"{os.getpid()}\n")
    held.flush()
    return held


def connect(path: Path, *, mode: str) -> sqlite3.Connection:
    """Open the file as SQLite's `mode` has it. Raises Misconfigured."""
    # autocommit: each statement is its own transaction, durable when it returns
    try:
        return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None, timeout=10)
    except sqlite3.OperationalError as error:
        raise Misconfigured(Reason.LEDGER_UNUSABLE, f"{path}: cannot be opened ({error})") from error


def check(db: sqlite3.Connection, path: Path) -> None:
    """Raise Misconfigured, and close, unless it is a sound ledger that this version can read."""
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


def is_older(db: sqlite3.Connection) -> bool:
    """Whether the tables are those of an earlier version."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    return int(version) < len(STEPS)


def migrate(db: sqlite3.Connection) -> None:
    """Bring the tables up to the newest step."""
    (version,) = db.execute("PRAGMA user_version").fetchone()
    for number, step in enumerate(STEPS[version:], start=version + 1):
        db.executescript(
            f"BEGIN IMMEDIATE; {step}; "
            f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {number}; COMMIT;"
        )
