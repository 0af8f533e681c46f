import asyncio
import contextlib
import os
import random
from pathlib import Path

import looptime
import pytest

from controller.loop.pace import Pace
from controller.model.instance import Phase
from tests.journeys.stage import CUZK, ORIGIN, fleet, stage

DAY = 86400.0
WEEK = 7 * DAY
BUDGET = 2.6
FOREIGN = (
    None,
    "",
    "alice-training",
    "vf",
    "vf/tests",
    "vf/tests/provers/short",
    "vf/other/provers/x",
    "プロバー",
    "C.123",
)
LATER = (95, 2 * WEEK)  # seconds: when everybody else has rented
TROUBLES: list[dict[str, object]] = [
    {"kind": "lost-answer", "on": "create", "between": LATER, "probability": 0.2},
    {"kind": "lost-answer", "on": "create", "between": LATER, "probability": 0.05, "like": "bad_gateway"},
    {"kind": "lost-answer", "on": "destroy", "between": LATER, "probability": 0.1},
    {"kind": "error", "on": "list", "between": LATER, "probability": 0.02, "like": "bad_gateway"},
    {
        "kind": "error",
        "on": "list",
        "between": LATER,
        "probability": 0.01,
        "status": 200,
        "body": {"success": True, "instances": []},
    },
    {"kind": "error", "on": "search", "between": LATER, "probability": 0.05, "like": "html_200"},
    {"kind": "host-lost", "probability": 0.4, "after": 60_000},
    {"kind": "host-lost", "probability": 0.1, "after": 90_000, "seconds": 300},
    {"kind": "slow-machine", "probability": 0.3, "factor": 0.7},
    {"kind": "stuck-loading", "probability": 0.05},
    {"kind": "gpu-fault", "probability": 0.05},
    {"kind": "download-stall", "probability": 0.05},
    {"kind": "ssh-drop", "probability": 0.2, "after": 500},
    {"kind": "slow-machine", "probability": 0.2, "after": 150_000, "factor": 0.7},
    {"kind": "price-rise", "probability": 0.2, "after": 100_000, "factor": 1.2, "pending": False},
    {"kind": "resurrect", "probability": 0.1, "seconds": 400},
    {"kind": "linger", "probability": 0.3, "seconds": 45},
]


async def live_a_week(folder: Path, seed: int, span: float) -> list[str]:
    """Run a controller through troubles and restarts drawn from the seed, and hold it to its promises; its ledger."""
    here = stage(folder, seed=seed, pace=Pace(active=60, steady=600), troubles=TROUBLES, credit=1000)
    foreign = await here.rent_foreign(*FOREIGN)
    theirs = here.emulator.peak_committed_per_hour
    rng = random.Random(seed)
    wanted = fleet(target="instances: 6", budget=BUDGET, min_rate=50, benchmark=CUZK)
    lines: list[str] = []
    for until in [*sorted(rng.uniform(0, span) for _ in range(6)), span]:
        async with here.controller() as made:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ORIGIN + until - here.emulator.world.clock.now()):
                    await made.loop.keep(lambda: (wanted,), until=lambda _: False)
            lines = list(made.ledger.dump())
            records = made.ledger.instances(gone=True)
    ours = {i.instance_id for i in records if i.billable}
    unclear = any(i.phase in {Phase.INTENDED, Phase.UNCLEAR} for i in records)
    resurrected = {r.id for r in here.emulator.rentals() if r.destroyed_at is None}
    assert set(foreign) <= set(here.emulator.alive), "somebody else's instance was touched"
    assert resurrected - set(foreign) <= ours or unclear, "an instance bills that the ledger does not know"
    assert here.emulator.peak_committed_per_hour - theirs <= BUDGET * 1.2 + 1e-6, "the budget was exceeded"
    assert len([i for i in records if i.admitted_at is not None and i.billable]) >= 4, "the fleet was not held"
    await here.emulator.close()
    return lines


@pytest.mark.looptime
@pytest.mark.parametrize("seed", range(int(os.environ.get("VASTFLEET_TEST_SEEDS", "1"))))
async def test_a_week_of_troubles_breaks_no_promise(tmp_path, seed):
    """A week of lost answers, dead hosts and restarts leaks nothing, stays in budget and touches nobody else's."""
    lines = await live_a_week(tmp_path, seed, WEEK)
    text = "\n".join(lines)
    assert "TeardownVerified" in text
    assert "CreateUnclear" in text
    assert b"SECRET-" not in b"".join(file.read_bytes() for file in tmp_path.glob("ledger.db*"))


def test_the_same_seed_writes_the_same_ledger(tmp_path):
    """The clock, chance, ids and wires are arguments: the same seed gives the same ledger, line for line."""
    ledgers = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        with contextlib.closing(looptime.new_event_loop(start=0, _enabled=True)) as loop:
            ledgers.append(loop.run_until_complete(live_a_week(tmp_path / name, 7, 2 * DAY)))
    assert ledgers[0] == ledgers[1]
    assert len(ledgers[0]) > 100
