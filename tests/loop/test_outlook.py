from dataclasses import replace
from itertools import pairwise

import pytest

from controller.loop.case import Case
from controller.loop.outlook import Band, bands, outlook
from controller.model.instance import Decision, Instance, Run, RunKind
from controller.model.reasons import Reason
from tests.plan.conftest import NOW, SHAPE, fleet, instance

HOUR_S = 3600.0
ONE = instance(1)


def measured(rate: float, hours_ago: float, **values: object) -> Run:
    made: dict[str, object] = {
        "id": f"{rate}-{hours_ago}-{len(values)}", "nonce": ONE.nonce, "fleet": "provers", "machine_id": ONE.machine_id,
        "shape": SHAPE, "workload": ONE.workload, "started_at": NOW - hours_ago * HOUR_S - 900,
        "ended_at": NOW - hours_ago * HOUR_S, "reason": Reason.MEASURED, "rate": rate, "unit": "proofs/h", "count": 12,
        "concurrency": 4, "gpu_uuid": "GPU-1",
    }  # fmt: skip
    return Run(**(made | values))  # type: ignore[arg-type]


def case(*runs: Run) -> Case:
    wanted = fleet(shapes=({"gpu": "RTX 4090", "minRate": 59},))
    return Case(wanted, wanted.spec.shapes[0], (ONE,), runs, NOW)


def looked(made: Case, of: Instance = ONE, *, neighbours: int = 0) -> tuple[Band, ...]:
    return outlook(made, of, neighbours=neighbours, at=NOW + 2 * HOUR_S)


def test_borders_are_found():
    """A border lies where the decision changes, to within a thousandth, and the bands leave nothing out."""

    def decided(rate: float) -> Decision:
        return Decision.ACCEPTED if rate >= 63.5 else Decision.PROBATION if rate >= 49.0 else Decision.REJECTED

    found = bands(decided, low=20.0, high=100.0)
    assert [band.decision for band in found] == [Decision.REJECTED, Decision.PROBATION, Decision.ACCEPTED]
    assert found[0].low is None
    assert found[-1].high is None
    assert [band.high for band in found[:-1]] == pytest.approx([49.0, 63.5], rel=1e-3)
    assert all(slower.high == faster.low for slower, faster in pairwise(found))


def test_decisions_need_not_be_in_order():
    """Where a faster run is worse, both sides of it are told."""

    def decided(rate: float) -> Decision:
        return Decision.PROBATION if 40.0 <= rate < 50.0 else Decision.CHALLENGED

    assert [b.decision for b in bands(decided, low=20.0, high=100.0)] == ["Challenged", "Probation", "Challenged"]


def test_what_is_foretold_happens():
    """A run that shows a rate within a band leads to the decision that was foretold for it."""
    others = [measured(55.0 + n, 20.0, nonce=f"n{n}", machine_id=n, gpu_uuid=f"GPU-{n}") for n in range(10, 20)]
    made = case(*others, measured(61.4, 2.1), measured(46.2, 2.0))
    found = looked(made)
    decisions = [band.decision for band in found]
    assert decisions[-4:] == ["Rejected", "Challenged", "Probation", "Accepted"]
    assert decisions[:-4] in ([], ["Challenged"])  # one absurdly slow run is more likely an accident
    for band in found:
        rate = ((band.low or 20.0) + (band.high or 90.0)) / 2
        after = replace(made, runs=(*made.runs, measured(rate, -2.0)), now=NOW + 2 * HOUR_S)
        assert after.verdict(ONE, neighbours=0).decision is band.decision


def test_a_fast_first_run_may_do():
    """Before any run, what the first one would decide is told: never a rejection, on one run's word."""
    decisions = {band.decision for band in looked(case())}
    assert Decision.ACCEPTED in decisions
    assert Decision.REJECTED not in decisions


def test_the_next_run_is_made_in_company():
    """Slow runs made alone do not count beside the next one, if that is made in company."""
    alone = case(*(measured(40.0, hours) for hours in (30.0, 20.0, 10.0)))
    as_alone, in_company = looked(alone)[-1], looked(alone, neighbours=1)[-1]
    assert as_alone.decision is in_company.decision is Decision.ACCEPTED
    assert (as_alone.low or 0.0) > 1.05 * (in_company.low or 0.0)


def test_production_does_not_part_machines():
    """A machine whose newest run is production's rate is of the same kind as one that was only benchmarked."""
    others = [
        measured(70.0, 5.0 + n, nonce=f"n{n}", machine_id=n, gpu_uuid=f"GPU-{n}", kind=kind, count=count)
        for n in range(10, 16)
        for kind, count in ((RunKind.BENCHMARK, 12), (RunKind.PRODUCTION, None))
    ]
    made = case(*others, measured(60.0, 1.0))
    assert made.learned.prior_of((measured(60.0, 1.0),)).machines == 7
