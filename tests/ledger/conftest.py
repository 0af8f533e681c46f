import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from controller.ledger.sqlite import Ledger

ROOT = Path(__file__).parents[2]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "ledger.db"


@pytest.fixture
def ledger(path: Path) -> Iterator[Ledger]:
    made = Ledger.open(path)
    yield made
    made.close()


@pytest.fixture
def writer(path: Path) -> Iterator[Callable[[], "subprocess.Popen[str]"]]:
    """Starts a process that writes to the ledger and prints what is written; it is dead at the end of the test."""
    started: list[subprocess.Popen[str]] = []

    def start() -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "tests.ledger.writer", str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def changed(path: Path, sql: str) -> None:
    """Somebody else's hand in a database."""
    database = sqlite3.connect(path)
    database.executescript(sql)
    database.close()
