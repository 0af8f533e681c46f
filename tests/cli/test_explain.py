import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.cli.main import run
from controller.ledger.sqlite import Ledger
from controller.model.instance import Decision, Instance, Phase, Run, RunKind
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, ShapeStatus

NOW = 1_800_000_000.0
HOUR_S = 3600.0
SHAPE = "RTX 4090 x1"


def rented(number: int, **values: object) -> Instance:
    made: dict[str, object] = {
        "nonce": f"n{number}", "fleet": "provers", "label": f"vf/default/provers/n{number}", "shape": SHAPE,
        "gpu": "RTX 4090", "gpu_count": 1, "machine_id": 70 + number, "price": 400_000, "disk_gib": 50.0,
        "workload": "w", "phase": Phase.ADMITTED, "phase_since": NOW - HOUR_S, "reason": Reason.INCONCLUSIVE,
        "created_at": NOW - 2 * HOUR_S, "instance_id": 4100 + number, "prepared_at": NOW - 1.6 * HOUR_S,
        "admitted_at": NOW - HOUR_S,
    }  # fmt: skip
    return Instance(**(made | values))  # type: ignore[arg-type]


def measured(of: Instance, rate: float | None, hours_ago: float, **values: object) -> Run:
    made: dict[str, object] = {
        "id": f"{of.nonce}-{hours_ago}", "nonce": of.nonce, "fleet": "provers", "machine_id": of.machine_id,
        "shape": SHAPE, "workload": "w", "started_at": NOW - hours_ago * HOUR_S - 900,
        "ended_at": NOW - hours_ago * HOUR_S, "reason": Reason.MEASURED if rate else Reason.NO_RATE, "rate": rate,
        "unit": "proofs/h", "count": 12, "concurrency": 4, "gpu_uuid": f"GPU-{of.nonce}", "error": 0.02,
        "gpu_fraction": 0.25,
    }  # fmt: skip
    return Run(**(made | values))  # type: ignore[arg-type]


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ledger]:
    """A ledger with a fleet whose floor is 59 proofs/h; the clock stands at NOW."""
    monkeypatch.setenv("VASTFLEET_LEDGER", str(tmp_path / "ledger.db"))
    monkeypatch.setattr("controller.runtime.clock.Clock.now", lambda _: NOW)
    made = Ledger.open(tmp_path / "ledger.db")
    put_status(made)
    yield made
    made.close()


def put_status(ledger: Ledger, *conditions: Condition, **floor: object) -> None:
    shape = ShapeStatus(key=SHAPE, min_rate=59.0).model_copy(update=floor)
    status = FleetStatus(
        fleet="provers", unit="proofs/h", workload="w", created_at=NOW, last_pass=NOW, shapes=(shape,),
        conditions=conditions,
    )  # fmt: skip
    ledger.put_status("provers", status.model_dump_json(by_alias=True))


def put(ledger: Ledger, instance: Instance, *runs: Run) -> Instance:
    ledger.put(instance)
    for made in runs:
        ledger.add_run(made)
    return instance


@pytest.fixture
def pair(ledger: Ledger) -> Instance:
    """A machine that showed 61.4 and, five minutes later, 46.2."""
    one = rented(1)
    return put(
        ledger,
        one,
        measured(one, 61.4, 1.1),
        measured(one, 46.2, 1.0, throttled="sw_power_cap,sw_thermal_slowdown", power_limit_w=350, power_default_w=450),
    )


def told(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert run(["explain", *args]) == 0
    return capsys.readouterr().out


def record(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, object]:
    items = json.loads(told(capsys, *args, "-o", "json"))["items"]
    assert len(items) == 1
    assert isinstance(items[0], dict)
    return items[0]


@pytest.mark.parametrize("word", [*map(str, Decision), *map(str, Phase), "challenged", "Inconclusive"])
def test_a_word_of_what_is_printed(word: str, capsys: pytest.CaptureFixture[str]):
    """Every decision and every phase is explained by its word, in plain sentences, without a ledger."""
    text = " ".join(told(capsys, word).split())
    assert text.lower().startswith(f"{word.lower()}: ")
    assert text.endswith(".")
    (item,) = json.loads(told(capsys, word, "-o", "json"))["items"]
    assert text.endswith(item["meaning"])


def test_all_words(capsys: pytest.CaptureFixture[str]):
    """Without a term each reason, decision and phase is told once."""
    items = json.loads(told(capsys, "-o", "json"))["items"]
    names = [item.get("reason") or item["word"] for item in items]
    assert set(names) == {*map(str, Reason), *map(str, Decision), *map(str, Phase)}
    assert len(set(names)) == len(names)


def test_a_doubtful_instance(pair: Instance, capsys: pytest.CaptureFixture[str]):
    """Of 61.4 and 46.2 all is told: runs and what slowed them, belief, costs, decision, and what would change it."""
    text = told(capsys, "4101")
    for part in (
        "benchmark  61.4",
        "sw_power_cap",
        "limited to 350/450W",
        "P(rate >= 59)  0.4",
        "2 runs, worth 1.1 independent ones",
        "learned from 1 machine",
        "measure it again",
        "least",
        "Decided: Challenged: it works until a better one is found.",
        "The next run, due in 1h00m, would decide:",
        "or more  Accepted",
    ):
        assert part in text, text
    assert max(map(len, text.splitlines())) <= 80


def test_the_same_for_programs(pair: Instance, capsys: pytest.CaptureFixture[str]):
    """Costs are in hours and in dollars, the next run's bands leave nothing out, and runs say whether they count."""
    found = record(capsys, "4101")
    costs, shown, runs = found["costs"], found["ifNextRunShows"], found["runs"]
    assert isinstance(costs, dict)
    assert isinstance(shown, list)
    assert isinstance(runs, list)
    assert costs["keep"]["usd"] == pytest.approx(0.4 * costs["keep"]["hours"], abs=1e-4)
    assert shown[0]["from"] is None
    assert shown[-1]["below"] is None
    assert {band["decision"] for band in shown} >= {"Rejected", "Challenged", "Accepted"}
    assert [each["weighed"] for each in runs] == [True, True]
    assert found["decision"] == "Challenged"
    assert found["nextRunAt"] == "2027-01-15T09:00:00Z"


def test_runs_that_do_not_count(ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """Runs of another width, in other company or without a rate are shown, and are said not to be weighed."""
    one = rented(1)
    put(
        ledger,
        one,
        measured(one, 40.0, 9.0, concurrency=8),
        measured(one, 41.0, 7.0, neighbours=1),
        measured(one, None, 5.0),
        measured(one, 66.0, 4.0),
        measured(one, 65.0, 1.0, kind=RunKind.PRODUCTION, count=None),
    )
    runs = record(capsys, "4101")["runs"]
    assert isinstance(runs, list)
    assert [each["weighed"] for each in runs] == [False, False, False, True, True]
    text = told(capsys, "4101")
    assert text.count("not weighed") == 2
    assert "NoRate" in text
    assert "production" in text


def test_a_machine(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """A machine is explained by the last rental of each of its cards, working or gone."""
    gone = put(
        ledger,
        rented(2, machine_id=71, phase=Phase.GONE, ended_at=NOW - HOUR_S),
        measured(rented(2, machine_id=71), 48.0, 30.0),
        measured(rented(2, machine_id=71), 47.0, 20.0),
    )
    text = told(capsys, "machine", "71")
    assert "last rented as 4101, now Admitted" in text
    assert f"last rented as {gone.instance_id}, gone for 1h00m" in text
    assert "Rejected" in text
    assert max(map(len, text.splitlines())) <= 80, text


def test_a_machine_and_what_works_on_it(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """A machine is worth to rent anew what its best card is, had it to itself: said apart from what is rented there."""
    slow = rented(2, machine_id=71)
    put(ledger, slow, measured(slow, 48.0, 30.0), measured(slow, 47.0, 20.0))
    text = told(capsys, "machine", "71")
    assert "Rented anew, its best RTX 4090 x1 would be Challenged" in text
    assert "KnownSlow" not in text
    run(["get", "machines", "71", "-o", "wide"])
    titles, row = capsys.readouterr().out.splitlines()
    assert row[titles.index("RENTED ANEW") :].split()[0] == "Challenged"


def test_a_machine_that_nothing_is_on(ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """Of a machine that is not rented no next run is told, which nobody will make; a slow one is said to be left."""
    gone = rented(2, phase=Phase.GONE, ended_at=NOW - HOUR_S)
    put(ledger, gone, *(measured(gone, rate, ago) for rate, ago in ((48.0, 30.0), (47.0, 20.0), (47.5, 10.0))))
    text = told(capsys, "machine", "72")
    assert "next run" not in text
    assert "KnownSlow means" in text
    assert max(map(len, text.splitlines())) <= 80, text
    found = record(capsys, "machine", "72")
    assert (found["nextRunAt"], found["ifNextRunShows"]) == (None, [])
    assert "next:" not in str(found["verdict"])


def test_while_nothing_is_replaced(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """While something else is suspected, an instance's explanation says that nothing is replaced, and why."""
    held = Condition(
        type="RemediationAllowed", status="False", reason=Reason.FLEET_SHIFT, last_transition_time=NOW,
        message="nothing is replaced: 9 machines are slower",
    )  # fmt: skip
    put_status(ledger, held)
    assert "In its fleet: nothing is replaced: 9 machines are slower. FleetShift means" in " ".join(
        told(capsys, "4101").split()
    )


def test_in_other_company(ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """An instance measured alone, and no longer alone on its machine, is said to be measured next as it works now."""
    put(ledger, rented(1), *(measured(rented(1), 80.0, hours) for hours in (9.0, 5.0, 1.0)))
    put(ledger, rented(2, machine_id=71))
    text = told(capsys, "4101")
    assert "Decided: Probation" in text
    assert "Not measured yet as it works now, beside 1 other of ours:" in text


def test_a_number_of_two_things(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """Where an instance and a machine have one number, it says which was meant, and how to ask for the other."""
    put(ledger, rented(3, machine_id=4101))
    assert run(["explain", "4101"]) == 0
    assert "is taken for the instance of that name; else: vastfleet explain machine 4101" in capsys.readouterr().err
    assert "Machine 4101: 4103 of ours is on it now." in told(capsys, "machine", "4101")
    assert not capsys.readouterr().err


def test_by_thresholds(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """Where the manifest gives thresholds, those are told instead of costs."""
    put_status(ledger, replace_below=0.3, accept_above=0.8)
    text = told(capsys, "4101")
    assert "Decided by thresholds of P: challenged below 0.3, accepted from 0.8 on." in text
    assert "HOURS OF RENT" not in text
    assert record(capsys, "4101")["costs"] is None


def test_thresholds_of_an_older_version(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """A threshold that an older version took, and that is refused today, keeps nothing from being explained."""
    put_status(ledger, replace_below=0.2, accept_above=0.3)
    assert "accepted from 0.4 on" in told(capsys, "4101")


def test_before_the_first_run(ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """Of an instance without a run it is told what its first one would decide."""
    put(ledger, rented(1, phase=Phase.MEASURING, admitted_at=None))
    text = told(capsys, "4101")
    assert "Nothing was measured on it yet." in text
    assert "The next run, if it were made now, would decide:" in text


def test_after_the_fleet_is_gone(pair: Instance, ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """Once a fleet is deleted its runs are still shown, and it is said that no floor is known."""
    ledger.forget_fleet("provers")
    assert "holds no floor to judge them by" in told(capsys, "4101")
    assert record(capsys, "machine", "71")["floor"] is None


@pytest.mark.parametrize(
    ("args", "code", "hint"),
    [
        (["machine", "72"], 1, "there is no machine '72'; the ledger has 71"),
        (["fleet", "4101"], 1, "there is no fleet '4101'"),
        (["Chalenged"], 1, "did you mean Challenged or"),
        (["nothing"], 1, "is no reason, decision, phase, field, fleet, instance or machine"),
        (["planet", "4101"], 2, "perhaps with fleet, instance, machine before it"),
    ],
)
def test_what_is_not_there(args: list[str], code: int, hint: str, pair: Instance, capsys: pytest.CaptureFixture[str]):
    """A name of nothing of that kind, or a kind that there is not, is an error that says what was meant."""
    assert run(["explain", *args]) == code
    assert hint in " ".join(capsys.readouterr().err.split())


def test_calibration(ledger: Ledger, capsys: pytest.CaptureFixture[str]):
    """The table counts machines by the P they were given, and says in words whether P may be trusted."""
    for number in range(1, 9):
        one = rented(number)
        put(ledger, one, *(measured(one, 66.0 + number / 4, hours) for hours in (100.0, 75.0, 50.0, 25.0, 1.0)))
    put(ledger, rented(9), measured(rented(9), 62.0, 1.0))
    assert run(["calibration", "provers"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["P", "MACHINES", "GOOD", "EXPECTED"]
    assert "0.9 to 1.0  8" in text
    assert "P is about right" in text
    assert run(["calibration", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["items"][-1]["machines"] == 8
    assert found["leftOut"] == 1
    assert run(["calibration", "nobody"]) == 1
