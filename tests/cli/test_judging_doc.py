"""What docs/judging.md says is what the code does."""

import json
import math
import re
from pathlib import Path

import pytest

from controller.cli.words import DECISIONS
from controller.judge.assumptions import DEFAULTS, Effort, Prior
from controller.judge.search import search
from controller.ledger.sqlite import Ledger
from controller.model.fleet import GIVEN_UP_BELOW, Disruption, Judgement
from tests.cli.test_explain import ledger as ledger  # noqa: PLC0414 - a fixture
from tests.cli.test_explain import measured, put, rented, told

DOC = (Path(__file__).parents[2] / "docs" / "judging.md").read_text()


NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def documented(line: str) -> bool:
    """Whether the document has a line of these words, with numbers that differ by two per cent at most."""
    words, numbers = NUMBER.split(line.strip()), NUMBER.findall(line)
    return any(
        NUMBER.split(there.strip()) == words
        and [float(number) for number in NUMBER.findall(there)] == pytest.approx([*map(float, numbers)], rel=0.02)
        for there in DOC.splitlines()
    )


def test_the_two_runs(ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """What the document shows of 61.4 and 46.2 is what `explain` prints, line by line."""
    one = put(ledger, rented(1), measured(rented(1), 61.4, 1.1))
    items = json.loads(told(capsys, "4101", "-o", "json"))["items"]
    assert documented(items[0]["verdict"].partition("; next")[0])
    put(ledger, one, measured(one, 46.2, 1.0))
    shown = told(capsys, "4101")
    belief, _, rest = shown[shown.index("Belief:") :].partition("Machines of its kind:")
    costs = rest[rest.index("Expected to cost") :]
    assert [line for line in (belief + costs).splitlines() if not documented(line)] == []


def test_the_table_of_searches():
    """What finding one more takes is what the judge works out."""
    for planned in (12, 48, 336):
        effort = Effort(planned_hours=planned)
        priors = [Prior(round(math.log(typical / 59), 2), 0.08, 20) for typical in (56, 59, 61, 66)]
        hours = " | ".join(f"{search(prior, effort, DEFAULTS):.1f}" for prior in priors)
        assert documented(f"| {planned} | {hours} |"), hours


@pytest.mark.parametrize(
    "said",
    [
        f"machines of a kind differ by | {DEFAULTS.sd:.0%}".replace("%", " %"),
        f"worth {DEFAULTS.mean_weight:g} machines",
        f"worth {DEFAULTS.sd_weight:g} machines",
        f"sessions differ by | {DEFAULTS.session_sd:.0%}".replace("%", " %"),
        f"a session is forgotten within | {DEFAULTS.session_seconds / 3600:g} h",
        f"| {DEFAULTS.disturbed:.0%}, at {DEFAULTS.drop:.0%} of the rate".replace("%", " %"),
        f"no run is more exact than | {DEFAULTS.least_error:.0%}".replace("%", " %"),
        f"machines unlike all others | {DEFAULTS.odd:.0%}".replace("%", " %"),
        f"a machine's rate changes every | {DEFAULTS.drift_seconds / 3600:g} h",
        f"a run takes, until some were made | {DEFAULTS.run_hours:g} h",
        f"from rental to first run, likewise | {DEFAULTS.provision_hours:g} h",
        f"P is under {DEFAULTS.stop_below:.2f}, on {DEFAULTS.confirm:g} independent runs",
        f"`acceptAbove` is then {DEFAULTS.accept_above:.2f}",
        f"`judgement.plannedHours` ({Judgement().planned_hours:g})",
        f"`disruption.maxSurge` ({Disruption().max_surge})",
        f"`minLifetimeMinutes` ({Disruption().min_lifetime_minutes:g})",
    ],
)
def test_values(said: str):
    """The values that the document names are those in force."""
    assert said in DOC


def test_nothing_is_accepted_that_is_given_up():
    """The least that acceptAbove may be is the P under which an instance is given up."""
    assert DEFAULTS.stop_below == GIVEN_UP_BELOW
    assert f"under {GIVEN_UP_BELOW:.2f}," in DECISIONS["Rejected"]
    assert f"at least {GIVEN_UP_BELOW:g}," in str(Judgement.model_fields["accept_above"].description)
