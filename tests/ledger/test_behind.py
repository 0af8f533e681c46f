import asyncio

from controller.ledger.behind import Behind
from controller.model.faults import Retry
from controller.model.reasons import Reason


async def test_the_same_thing_is_written_once():
    """However often a thing is noted between two flushes, it is written once, and kinds go in their order."""
    written: list[str] = []

    async def write(name: str) -> None:
        written.append(name)

    behind = Behind({"first": write, "second": write})
    for name in ("b", "a", "b"):
        behind.mark("second", name)
    behind.mark("first", "x")
    assert await behind.flush() == []
    assert written == ["x", "b", "a"]
    assert not behind.waiting.is_set()
    assert await behind.flush() == []
    assert len(written) == 3


async def test_what_could_not_be_written_is_owed_still():
    """A fault leaves a thing owed, and the others are written."""
    broken = {"a"}
    written: list[str] = []

    async def write(name: str) -> None:
        if name in broken:
            raise Retry(Reason.CLUSTER_UNAVAILABLE, name)
        written.append(name)

    behind = Behind({"thing": write})
    behind.mark("thing", "a")
    behind.mark("thing", "b")
    assert [str(fault) for fault in await behind.flush()] == ["a"]
    assert (written, behind.owes("thing", "a"), behind.waiting.is_set()) == (["b"], True, True)
    broken.clear()
    assert await behind.flush() == []
    assert written == ["b", "a"]


async def test_what_changes_while_it_is_written_is_written_again():
    """A thing noted during its own write is owed again: what was written may be older."""
    entered, leave = asyncio.Event(), asyncio.Event()
    written: list[str] = []

    async def write(name: str) -> None:
        written.append(name)
        entered.set()
        await leave.wait()

    behind = Behind({"thing": write})
    behind.mark("thing", "a")
    flush = asyncio.create_task(behind.flush())
    await entered.wait()
    behind.mark("thing", "a")
    leave.set()
    await flush
    assert behind.owes("thing", "a")
    await behind.flush()
    assert written == ["a", "a"]


async def test_a_thing_waits_for_what_it_speaks_of():
    """A writer may have others written first, those that came to be owed since their turn too; each is written once."""
    written: list[str] = []

    async def part(name: str) -> None:
        written.append(name)

    async def between(name: str) -> None:
        behind.mark("part", "late")
        written.append(name)

    async def whole(name: str) -> None:
        await behind.now("part", ["late", "never owed"])
        written.append(name)

    behind = Behind({"part": part, "between": between, "whole": whole})
    for kind in ("part", "between", "whole"):
        behind.mark(kind, kind)
    assert await behind.flush() == []
    assert written == ["part", "between", "late", "whole"]
    assert await behind.flush() == []
    assert len(written) == 4
