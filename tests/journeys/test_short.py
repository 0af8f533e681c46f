from typing import Any

import pytest

from controller.model.fleet import Fleet
from controller.model.manifest import load_text
from controller.model.reasons import Reason
from tests.journeys.stage import fleet, stage

pytestmark = pytest.mark.looptime

MINIMUM = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {name: provers}
spec:
  target: {rate: 60}
  budgetPerHour: 4
  shapes: [{gpu: RTX 4090, minRate: 30}, {gpu: H200, minRate: 30, minInstances: 1}]
  require: {reliability: 0, verified: false, ramGiB: 0, diskGiB: 50, remainingHours: 0}
  instance: {image: "example/prover:1.4"}
  benchmark: {command: json-bench, format: json}
"""


async def verdict(tmp_path, wanted: Fleet, **scenario: Any) -> tuple[Reason, str]:
    """What Ready says once nothing is on its way any more."""
    here = stage(tmp_path, **scenario)
    async with here.controller() as made:
        (said,) = await made.loop.keep(
            lambda: (wanted,), until=lambda said: not said[0].pending and not said[0].measuring and said[0].held > 0
        )
    await here.emulator.close()
    ready = said.condition("Ready")
    assert ready is not None
    return ready.reason, ready.message


async def test_a_shape_short_of_its_minimum_is_named(tmp_path):
    """A fleet at its target that lacks a shape's minimum says which, not that offers of another shape match."""
    wanted = load_text(MINIMUM, name="test.yaml")[0].fleet
    reason, message = await verdict(tmp_path, wanted)
    assert reason is Reason.NO_MATCHING_OFFER
    assert "H200 x1 is 1 short of minInstances" in message


async def test_a_budget_too_small_for_any_offer_is_what_is_told(tmp_path):
    """Where offers fit but for what is left of the budget, the budget is the reason and not the market."""
    reason, message = await verdict(tmp_path, fleet(target="instances: 20", budget=1.0))
    assert reason is Reason.BUDGET_EXHAUSTED
    assert "no offer costs as little as is left" in message
