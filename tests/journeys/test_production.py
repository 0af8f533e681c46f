import pytest

from controller.model.fleet import Fleet
from controller.model.manifest import load_text
from tests.journeys.stage import Stage, converge, stage

pytestmark = pytest.mark.looptime

FLEET = """
apiVersion: vastfleet.io/v1alpha1
kind: Fleet
metadata: {name: provers}
spec:
  target: {instances: 2}
  budgetPerHour: 2
  shapes: [{gpu: RTX 4090, minRate: 30}]
  require: {reliability: 0, verified: false, ramGiB: 128, diskGiB: 50, remainingHours: 0}
  instance:
    image: example/prover:1.4
    start: nohup cuzk-daemon > /root/daemon.log 2>&1 &
    stop: %s
    drainSeconds: 30
  benchmark: {command: json-bench, format: json, recheckHours: 3}
"""


def producing(stop: str = "pkill cuzk-daemon || true") -> Fleet:
    return load_text(FLEET % stop, name="test.yaml")[0].fleet


async def daemons(here: Stage) -> int:
    """How many instances produce."""
    said: list[str] = []
    for instance in here.emulator.alive:
        await here.emulator.run(
            instance, "pgrep cuzk-daemon > /dev/null && echo yes || echo no", said.append, said.append
        )
    return "".join(said).count("yes")


async def test_production_is_started_once_admitted_and_pauses_for_the_next_benchmark(tmp_path):
    """Production runs on every admitted instance, stops while it is measured again, and runs afterwards."""
    here = stage(tmp_path)
    wanted = producing()
    async with here.controller() as made:
        await converge(made.loop, wanted)
        assert await daemons(here) == 2
        runs = len(made.ledger.runs())
        await made.loop.keep(
            lambda: (wanted,), until=lambda _: any(j.kind == "measure" for j in made.loop.jobs.running().values())
        )
        await here.emulator.world.clock.sleep(30)
        assert await daemons(here) == 1
        await made.loop.keep(
            lambda: (wanted,), until=lambda _: len(made.ledger.runs()) >= runs + 2 and not made.loop.jobs.running()
        )
        await converge(made.loop, wanted)
        assert await daemons(here) == 2
    await here.emulator.close()


@pytest.mark.parametrize("stop", ["pkill cuzk-daemon || true", "sleep 100000"], ids=["well", "hanging"])
async def test_production_is_quiesced_before_an_instance_goes(tmp_path, stop):
    """Before an instance is destroyed its stop command has run, and one that hangs does not keep it alive."""
    here = stage(tmp_path)
    wanted = producing(stop)
    async with here.controller() as made:
        await converge(made.loop, wanted)
        made.ledger.set_deleting("provers", deleting=True)
        await made.loop.keep(lambda: (wanted,), until=lambda _: not made.ledger.deleting())
        reasons = [event.message for event in made.ledger.events()]
        assert sum(message.startswith("released:") for message in reasons) == 2
        assert sum(message.startswith("quiesce:") for message in reasons) == 2
    assert not here.emulator.alive
    await here.emulator.close()


async def test_a_crash_in_the_middle_of_a_recheck_does_not_leave_production_off(tmp_path):
    """A controller that ends while an instance is measured leaves a record from which the next starts production."""
    here = stage(tmp_path)
    wanted = producing()
    async with here.controller() as made:
        await converge(made.loop, wanted)
        await made.loop.keep(
            lambda: (wanted,), until=lambda _: any(j.kind == "measure" for j in made.loop.jobs.running().values())
        )
        await here.emulator.world.clock.sleep(30)
    assert await daemons(here) == 1
    async with here.controller() as made:
        await made.loop.keep(
            lambda: (wanted,),
            until=lambda _: (
                not made.loop.jobs.running() and all(i.phase == "Admitted" for i in made.ledger.instances())
            ),
        )
        assert await daemons(here) == 2
    await here.emulator.close()
