"""The official client, version 1.9.1, against the emulator: its command as a subprocess, and its SDK."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from vastai import VastAI

from controller.emulator import Emulator, ScaledClock, Scenario

SPEED = 600
PUBLIC_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ8f0cJ0mJtN0h8n0bWv0m1m3T5c7wC2m8n9oXq1rZ0A test"


class Served:
    """An emulator served from a thread of its own, as another program would find it."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        fields = {"limits": {"enabled": False}, "market": {"offers": 200}, "attachSeconds": 0}
        self.emulator = Emulator(seed=5, clock=ScaledClock(SPEED), scenario=Scenario.model_validate(fields))
        self.url: str = self.do(self.emulator.serve())

    def do(self, work: Any) -> Any:
        """Run something in the emulator's loop and return its result."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def close(self) -> None:
        """Stop serving."""
        self.do(self.emulator.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def running(self, number: int) -> None:
        """Wait until an instance runs and its SSH is up."""
        contract = self.emulator.world.contracts[number]
        self.do(self.emulator.wait_for(lambda: contract.actual == "running" and self.emulator._listening(contract)))


Command = Callable[..., str]


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


@pytest.fixture(scope="module")
def vastai(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """Run the official command with a home of its own and return what it prints."""
    home = tmp_path_factory.mktemp("home")
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(home), "XDG_CONFIG_HOME": str(home), "XDG_CACHE_HOME": str(home),
        "VAST_URL": served.url, "VAST_API_KEY": "emulator-key", "VASTAI_NO_UPDATE_CHECK": "1",
    }  # fmt: skip
    program = Path(sys.executable).with_name("vastai")

    def run(*words: object) -> str:
        command = [str(program), *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert '"error": true' not in done.stderr, done.stderr
        assert "failed" not in done.stderr.lower(), done.stderr
        return done.stdout

    return run


@pytest.fixture
def sdk(served: Served) -> VastAI:
    return VastAI("emulator-key", server_url=served.url)


def order_one(vastai: Command) -> int:
    """Rent the cheapest small offer by command and return the instance's id."""
    offers = json.loads(vastai("search", "offers", "num_gpus=1", "--order", "dph_total", "--limit", 1, "--raw"))
    order = ("--image", "example/prover:1", "--disk", 20, "--ssh", "--direct", "--label", "mine", "--raw")
    made: int = json.loads(vastai("create", "instance", offers[0]["id"], *order))["new_contract"]
    return made


@pytest.fixture(scope="module")
def number(served: Served, vastai: Command) -> int:
    """Return the id of a running instance that tests look at and change, but do not destroy."""
    number = order_one(vastai)
    served.running(number)
    return number


def test_search_offers(vastai):
    """The command finds offers by its query language, the old way and the new."""
    query = "gpu_name=RTX_4090 num_gpus=1 dph<2 geolocation in [US,CA,SE,NO,DE,FR,TW,JP,KR]"
    offers = json.loads(vastai("search", "offers", query, "--limit", 3, "--raw"))
    assert {offer["gpu_name"] for offer in offers} == {"RTX 4090"}
    assert json.loads(vastai("search", "offers", query, "--new", "--raw"))[0]["id"] in [o["id"] for o in offers]


def test_create_and_destroy(served, vastai):
    """The command rents an offer with a label, and ends the instance."""
    number = order_one(vastai)
    assert served.emulator.world.contracts[number].label == "mine"
    vastai("destroy", "instance", number, "-y")
    assert number not in served.emulator.alive


def test_show_instance(vastai, number):
    """The command reads one instance by id."""
    assert json.loads(vastai("show", "instance", number, "--raw"))["id"] == number


def test_label(served, vastai, number):
    """The command changes a label."""
    vastai("label", "instance", number, "yours")
    assert served.emulator.world.contracts[number].label == "yours"


def test_stop_and_start(served, vastai, number):
    """The command stops an instance and starts it again."""
    contract = served.emulator.world.contracts[number]
    vastai("stop", "instance", number)
    assert contract.intended == "stopped"
    vastai("start", "instance", number)
    assert contract.intended == "running"
    served.running(number)


def test_logs(vastai, number):
    """The command fetches the log through the address it was given."""
    assert "Server listening" in vastai("logs", number, "--tail", 10)


def test_attach_ssh(vastai, number):
    """The command attaches a key to one instance."""
    assert "attached" in vastai("attach", "ssh", number, PUBLIC_KEY)


def test_ssh_url(served, vastai, number):
    """The command prints the address that the instance's SSH server listens on."""
    contract = served.emulator.world.contracts[number]
    assert vastai("ssh-url", number).strip() == f"ssh://root@127.0.0.1:{contract.direct_port}"


def test_show_user(vastai):
    """The command shows the account with its credit."""
    assert json.loads(vastai("show", "user", "--raw"))["credit"] > 0


def test_keys_proposals_and_reports(vastai):
    """Account keys can be added and shown; there are no price increases and no reports."""
    vastai("create", "ssh-key", PUBLIC_KEY)
    assert PUBLIC_KEY in [key["public_key"] for key in json.loads(vastai("show", "ssh-keys", "--raw"))]
    assert json.loads(vastai("show", "pending-price-increases", "--raw"))["count"] == 0
    assert "[]" in vastai("reports", 10_000, "--raw")


def test_show_instances_reads_every_page(vastai, sdk):
    """With sixty instances more the official list shows all of them, and the SDK sees the same."""
    before = [row["id"] for row in sdk.show_instances()]
    numbers = []
    for _ in range(60):
        offer = sdk.search_offers(query="num_gpus>=1", limit=1, order="dph_total")[0]
        numbers.append(sdk.create_instance(id=offer["id"], image="i", disk=10, label="page")["new_contract"])
    listed = json.loads(vastai("show", "instances", "--raw"))
    assert [row["id"] for row in listed] == before + numbers
    assert [row["id"] for row in sdk.show_instances()] == before + numbers
    vastai("destroy", "instances", *numbers, "-y")
    assert [row["id"] for row in sdk.show_instances()] == before


def test_the_sdk_rents_looks_changes_and_destroys(served, sdk):
    """The same life through the SDK, with the instance's row read back at each step."""
    offer = sdk.search_offers(query="num_gpus=1 verified=true", limit=1)[0]
    made = sdk.create_instance(id=offer["id"], image="i", disk=12, label="a", ssh=True, direct=True)
    number = made["new_contract"]
    served.running(number)
    row = sdk.show_instance(id=number)
    assert (row["machine_id"], row["label"], row["actual_status"]) == (offer["machine_id"], "a", "running")
    sdk.label_instance(id=number, label="b")
    sdk.stop_instance(id=number)
    assert sdk.show_instance(id=number)["intended_status"] == "stopped"
    sdk.start_instance(id=number)
    assert sdk.show_instance(id=number)["label"] == "b"
    assert "success" in str(sdk.attach_ssh(instance_id=number, ssh_key=PUBLIC_KEY.replace("J8f0", "K9g1")))
    assert isinstance(sdk.logs(instance_id=number), str)
    assert sdk.show_user()["credit"] > 0
    sdk.destroy_instance(id=number)
    assert sdk.show_instance(id=number) is None
