from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from controller.ledger.memory import Memory
from controller.ledger.runs import MOST, READING_EVERY, kept
from controller.ledger.sqlite import Ledger
from controller.model.instance import Instance, Phase, Run, RunKind
from tests.plan.conftest import NOW, instance, run

instances = st.builds(
    lambda number, phase, machine, price, born, with_id: instance(
        number,
        fleet=("a.one", "a.two")[number % 2],
        phase=phase,
        machine_id=machine,
        price=price,
        created_at=NOW - born,
        instance_id=1000 + number if with_id else None,
    ),
    number=st.integers(1, 6),
    phase=st.sampled_from([Phase.INTENDED, Phase.ADMITTED, Phase.DESTROYING, Phase.GONE]),
    machine=st.integers(1, 3),
    price=st.integers(0, 900_000),
    born=st.integers(0, 1000),
    with_id=st.booleans(),
)


@given(st.lists(instances, max_size=20))
def test_memory_answers_as_the_file_does(written: list[Instance]):
    """What is asked of instances gets the same answer from memory and from SQLite, whatever was written."""
    memory, file = Memory(), Ledger.copy(Path("/nowhere"))
    alike: dict[str, Instance] = {}
    for one in written:
        first = alike.get(one.nonce)
        same = one if first is None else replace(one, created_at=first.created_at)
        if first is not None and first.instance_id is not None:
            same = replace(same, instance_id=first.instance_id)
        alike[one.nonce] = same
        memory.put(same)
        file.put(same)
    for ledger in (memory, file):
        assert ledger.instances() == file.instances()
    for fleet in ("a.one", "a.two", "none"):
        for gone in (False, True):
            assert memory.instances(fleet, gone=gone, since=NOW - 500) == file.instances(
                fleet, gone=gone, since=NOW - 500
            )
    assert set(memory.machines_in_use()) == file.machines_in_use()
    assert memory.spend() == file.spend()
    for machine in range(5):
        assert memory.on_machine(machine) == file.on_machine(machine)
    for number in range(8):
        assert memory.holder(1000 + number) == file.holder(1000 + number)
    file.close()


@given(st.lists(instances, max_size=12))
def test_what_is_forgotten_leaves_nothing_behind(written: list[Instance]):
    """After every record is dropped, nothing is in use, spent, or found."""
    memory = Memory()
    for one in written:
        memory.put(one)
    for one in written:
        memory.forget(one.nonce)
    assert (memory.instances(gone=True, since=-1.0), set(memory.machines_in_use()), memory.spend()) == ((), set(), 0)
    assert [memory.instance(one.nonce) or memory.holder(one.instance_id or 0) for one in written] == [None] * len(
        written
    )


def test_all_runs_are_in_order_and_the_same_until_there_is_another():
    """The runs of all machines are one tuple, oldest first; it is the very same while nothing is added."""
    memory = Memory()
    runs = [run(instance(n), ended_at=NOW - 100 * n, id=f"r{n}") for n in (3, 1, 2)]
    for one in runs:
        memory.add_run(one)
    found = memory.runs()
    assert [one.id for one in found] == ["r3", "r2", "r1"]
    assert memory.runs() is found
    memory.load_runs(runs[0].machine_id, [replace(runs[0], id="other")])
    assert [one.id for one in memory.runs()] == ["other", "r2", "r1"]


def reading(number: int, at: float) -> Run:
    return run(instance(1), ended_at=at, id=f"p{number}", kind=RunKind.PRODUCTION)


def test_of_an_hours_readings_the_last_is_kept():
    """A machine keeps one reading of production an hour, all benchmarks, and no more than so many runs at all."""
    hour = NOW // READING_EVERY * READING_EVERY
    runs: tuple[Run, ...] = (run(instance(1), ended_at=hour + 1, id="b"),)
    for number, at in enumerate((hour + 10, hour + 20, hour + 20 + READING_EVERY)):
        runs = kept(runs, reading(number, at))
    assert [one.id for one in runs] == ["b", "p1", "p2"]
    for number in range(MOST + 5):
        runs = kept(runs, run(instance(1), ended_at=hour + 9000 + number, id=f"b{number}"))
    assert (len(runs), runs[-1].id) == (MOST, f"b{MOST + 4}")


def test_a_reading_is_dropped_after_a_week():
    """Readings fade; benchmarks do not."""
    old = (run(instance(1), ended_at=NOW - 30 * 86_400, id="b"), reading(1, NOW - 9 * 86_400))
    assert [one.id for one in kept(old, reading(2, NOW))] == ["b", "p2"]
