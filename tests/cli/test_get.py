import json
import os
import pty
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from controller.cli.main import run
from controller.ledger.sqlite import Ledger
from controller.model.instance import Backoff, Decision, Event, Instance, Phase, Run
from controller.model.reasons import Reason
from controller.model.status import Condition, FleetStatus, InstanceStatus, ShapeStatus
from tests.cli.conftest import COMMAND, Shell

NOW = 1_800_000_000.0
COLUMNS = {
    "fleets": "NAME READY TARGET HELD RATE $/H BUDGET $/UNIT REASON AGE",
    "instances": "NAME PHASE GPU REGION RATE P(GOOD) RUNS $/H NEXT AGE",
    "machines": "NAME GPU RATE P(GOOD) RUNS LAST QUARANTINED",
    "runs": "NAME MACHINE GPU KIND RATE UNIT REASON TOOK AGE",
}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A ledger with a fleet of one instance, measured once, on a machine left alone; the clock stands at NOW."""
    path = tmp_path / "ledger.db"
    monkeypatch.setenv("VASTFLEET_LEDGER", str(path))
    monkeypatch.setattr("controller.runtime.clock.Clock.now", lambda _: NOW)
    made = Ledger.open(path)
    instance = Instance(
        nonce="abc", fleet="provers", label="vf/default/provers/abc", shape="RTX 4090 x1", gpu="RTX 4090", gpu_count=1,
        machine_id=77, price=300_000, disk_gib=50, workload="w", phase=Phase.ADMITTED, phase_since=NOW - 3600,
        reason=Reason.MEETS_MIN_RATE, created_at=NOW - 7200, instance_id=4100, country="NO", cost=300_000,
        cost_until=NOW - 3600, admitted_at=NOW - 3600, read_at=NOW - 600, read_fault="no line with a rate",
    )  # fmt: skip
    made.put(instance)
    made.add_run(
        Run(id="run1", nonce="abc", fleet="provers", machine_id=77, shape="RTX 4090 x1", workload="w",
            started_at=NOW - 4200, ended_at=NOW - 3600, reason=Reason.MEASURED, rate=70.0, unit="proofs/h", count=12,
            concurrency=4, gpu_fraction=0.25, power_limit_w=350, power_default_w=450, throttled="sw_power_cap",
            temperature_c=81, driver="550.1")
    )  # fmt: skip
    made.put_backoff(
        Backoff(scope="machine", key="77", until=NOW + 7200, failures=1, reason=Reason.HOST_LOST, detail="once")
    )
    made.add_event(
        Event(at=NOW - 60, fleet="provers", about="4100", kind="Normal", reason=Reason.MEASURED, message="12 proofs")
    )
    ready = Condition(type="Ready", status="True", reason=Reason.TARGET_REACHED, last_transition_time=NOW - 60)
    status = FleetStatus(
        fleet="provers", unit="proofs/h", target=1, held=1, rate=70, spend_per_hour=0.3, budget_per_hour=0.9,
        conditions=(ready,), workload="w", created_at=NOW - 7200, last_pass=NOW - 5,
        shapes=(
            ShapeStatus(key="RTX 4090 x1", min_rate=59, typical_rate=61.4, spread=0.08, machines=12, search_hours=7.3,
                        search_cost=1.84, out_of_reach="none is so fast"),
        ),
        instances=(
            InstanceStatus(nonce="abc", decision=Decision.ACCEPTED, p_good=0.97, rate=70, runs=1,
                           low=64, high=76, independent=1, disturbed=0.02, keep_hours=1.4, measure_hours=1.7,
                           replace_hours=7.5, next_run_at=NOW + 5400, line="good"),
        ),
    )  # fmt: skip
    made.put_status("provers", status.model_dump_json(by_alias=True))
    made.close()
    return path


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns(kind: str, ledger: Path, capsys: pytest.CaptureFixture[str]):
    """Each kind has its settled columns, in plain text when nobody looks."""
    assert run(["get", kind]) == 0
    title, row = capsys.readouterr().out.splitlines()
    assert title.split() == COLUMNS[kind].split()
    assert row.isascii()


@pytest.mark.parametrize("kind", COLUMNS)
def test_items(kind: str, ledger: Path, capsys: pytest.CaptureFixture[str]):
    """For programs each kind is a list of items with camelCase keys and a name."""
    assert run(["get", kind, "-o", "json"]) == 0
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["name"] in {"provers", "4100", "77", "run1"}
    assert not any("_" in key for key in item)


def test_an_instance_in_a_row(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """An instance's row says what it does, what is thought of it, what it costs and what comes next."""
    run(["get", "instances", "4100"])
    row = capsys.readouterr().out.splitlines()[1]
    assert row.split() == [
        "4100",
        "Admitted",
        "RTX",
        "4090",
        "NO",
        "70.0",
        "0.97",
        "1",
        "0.300",
        "check",
        "1h30m",
        "2h00m",
    ]


def test_an_instance_for_programs(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """Its cost goes on with the clock, and its times are ISO 8601."""
    run(["get", "instances", "-o", "json"])
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["cost"] == 0.6
    assert item["createdAt"] == "2027-01-15T06:00:00Z"
    assert item["nextRunAt"] == "2027-01-15T09:30:00Z"


def test_what_is_thought_of_an_instance_for_programs(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """The interval, the costs in hours and dollars, the company and the readings of production are there."""
    run(["get", "instances", "-o", "json"])
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["low"], item["high"], item["independent"], item["disturbed"]) == (64.0, 76.0, 1.0, 0.02)
    assert item["costs"]["replace"] == {"hours": 7.5, "usd": 2.25}
    assert item["neighbours"] == 0
    assert (item["readAt"], item["readFault"]) == ("2027-01-15T07:50:00Z", "no line with a rate")


def test_an_instance_that_is_gone(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """Of an instance that is gone the runs that gave a rate are counted, and nothing is decided any more."""
    made = Ledger.open(ledger)
    (alive,), (run1,) = made.instances(), made.runs()
    made.put(replace(alive, nonce="old", instance_id=4099, phase=Phase.GONE, ended_at=NOW - 60))
    for number, rate in ((2, 61.0), (3, None), (4, 46.0)):
        made.add_run(replace(run1, id=f"run{number}", nonce="old", rate=rate))
    made.close()
    assert run(["get", "instances", "--all", "-o", "wide"]) == 0
    titles, *rows = capsys.readouterr().out.splitlines()
    cells = {row.split()[0]: row for row in rows}
    assert cells["4099"][titles.index("RUNS") :].split()[0] == "2"
    assert cells["4099"][titles.index("DECISION") :].split()[0] == "-"
    assert cells["4100"][titles.index("RUNS") :].split()[0] == "1"
    run(["get", "instances", "4099", "-o", "json"])
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert (item["runs"], item["decision"]) == (2, None)


def test_what_finding_one_more_costs(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """A fleet's story says what its shapes are held to, what machines are like, and what finding one more costs."""
    run(["describe", "fleet", "provers"])
    said = capsys.readouterr().out
    assert "RTX 4090 x1  59     61.4     8%      12 machines" in said
    assert "Finding one more RTX 4090 x1 that is fast enough costs about $1.84 (7.3 h of rent)." in said
    assert "RTX 4090 x1 is out of reach: none is so fast." in said
    run(["get", "fleets", "-o", "wide"])
    assert "$1.84 (7.3 h)" in capsys.readouterr().out


def test_an_instance_s_story(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """An instance's story gives the interval, what each way to go on costs, the decision, and production's reading."""
    run(["describe", "instance", "4100"])
    said = capsys.readouterr().out
    assert "70.0 proofs/h, with 90 % between 64.0 and 76.0" in said
    assert "keep it 1.4 h ($0.42); measure it again 1.7 h ($0.51); replace it 7.5 h ($2.25) of rent" in said
    assert "Accepted: it works, and is only checked now and then" in said
    assert "read 10m ago, and no rate: no line with a rate" in said


def test_the_conditions_of_a_run(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """A run's wide row tells in what company it was made, with what power, and what slowed it."""
    run(["get", "runs", "-o", "wide"])
    title, row = capsys.readouterr().out.splitlines()
    assert {"ERROR", "BESIDE", "SHARE", "POWER", "THROTTLED", "TEMP", "DRIVER"} <= set(title.split())
    assert all(part in row for part in ("350/450W", "sw_power_cap", "81C", "0.25", "550.1"))


def test_a_machine_that_is_left_alone(ledger: Path, capsys: pytest.CaptureFixture[str]):
    """A machine's row gives the verdict on its runs, and why and for how long it is left alone."""
    run(["get", "machines"])
    row = capsys.readouterr().out.splitlines()[1].split()
    assert row[-2:] == ["HostLost", "2h00m"]
    assert float(row[4]) > 0.8


@pytest.mark.parametrize(
    ("command", "hint"),
    [
        ("status provrs", "there is no fleet 'provrs'; did you mean provers?"),
        ("get instances 4101", "did you mean 4100?"),
        ("get machines 1", "there is no machine '1'"),
        ("describe fleet x", "the ledger has provers"),
        ("events nobody", "the ledger has provers"),
        ("explain MeetsMinRat", "did you mean MeetsMinRate"),
        ("explain spec.require.ramGB", "did you mean ramGiB?"),
    ],
)
def test_what_is_unknown(command: str, hint: str, ledger: Path, capsys: pytest.CaptureFixture[str]):
    """A name that is not known exits with 1 and says what was meant, or what there is."""
    assert run(command.split()) == 1
    assert hint in capsys.readouterr().err


@pytest.mark.parametrize(
    ("term", "answer"),
    [
        ("belowminrate", "slower than minRate"),
        ("spec.require.ramGiB", "Least memory of the instance, in GiB."),
        ("spec.shapes", "minRate"),
        ("4100", "has been Admitted for 1h00m, for the reason MeetsMinRate"),
        ("provers", "provers is ready"),
    ],
)
def test_explain(term: str, answer: str, ledger: Path, capsys: pytest.CaptureFixture[str]):
    """A reason, a field, an instance and a fleet are each explained."""
    assert run(["explain", term]) == 0
    assert answer in capsys.readouterr().out.replace("\n  ", " ")


def test_without_a_ledger(shell: Shell):
    """Where there is no ledger, one line says so, and none is made."""
    done = shell.run("status")
    assert done.returncode == 1
    assert "there is no ledger here" in done.stderr
    assert not shell.ledger.exists()


@pytest.mark.parametrize(("no_color", "coloured"), [("", True), ("1", False)])
def test_on_a_terminal(no_color: str, coloured: bool, ledger: Path, shell: Shell):  # noqa: FBT001
    """On a terminal states are coloured, unless NO_COLOR is set."""
    ours, theirs = pty.openpty()
    env = shell.env | {"NO_COLOR": no_color, "TERM": "xterm-256color"}
    subprocess.run([*COMMAND, "get", "fleets"], env=env, stdin=theirs, stdout=theirs, stderr=theirs, check=True)
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "provers" in said
    assert ("\x1b[" in said) is coloured


@pytest.mark.parametrize("command", ["describe fleet provers", "describe instance 4100", "calibration", "events"])
def test_on_a_narrow_terminal(
    command: str, ledger: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    """On a terminal long lines go on below and lose no word; in a pipe each is one line."""
    made = Ledger.open(ledger)
    long = "P(rate >= 59) = 0.05 after 2 runs (1.7 independent); cost in h of rent: keep 16.9, measure 6.9, replace 6.9"
    made.add_event(Event(at=NOW, fleet="provers", about="4100", kind="Normal", reason=Reason.RENTED, message=long))
    made.close()
    assert run(command.split()) == 0
    whole = capsys.readouterr().out
    assert max(map(len, whole.splitlines())) > 80
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert run(command.split()) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= 80
    assert sorted(shown.split()) == sorted(whole.split())
