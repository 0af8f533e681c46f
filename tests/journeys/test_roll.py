import pytest

from tests.journeys.stage import converge, fleet, stage

pytestmark = pytest.mark.looptime


async def test_a_new_image_rolls_through_the_fleet(tmp_path):
    """A changed image replaces every instance, never with more than one missing or one above the target."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet())
        old = set(here.emulator.alive)
        await here.emulator.world.clock.sleep(4000)  # past minLifetimeMinutes
        changed = fleet(image="example/prover:1.5")
        held, billed = [], []

        def seen(said):
            held.append(said[0].held)
            billed.append(len(here.emulator.alive))
            return said[0].ready

        await made.loop.keep(lambda: (changed,), until=seen)
        assert min(held) >= 3
        assert max(billed) <= 6  # one above the target, and one that is already being destroyed
        assert not old & set(here.emulator.alive)
        assert len(here.emulator.alive) == 4
    await here.emulator.close()


async def test_a_smaller_target_gives_up_the_least_valuable(tmp_path):
    """A smaller target destroys what does least for its money, and only as many as it must."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet())
        value = {
            i.instance_id: next(r.rate or 0 for r in made.ledger.runs() if r.nonce == i.nonce) / i.price
            for i in made.ledger.instances()
        }
        await converge(made.loop, fleet(target="instances: 3"))
        await made.loop.keep(lambda: (fleet(target="instances: 3"),), until=lambda said: not said[0].leaving)
    assert set(value) - set(here.emulator.alive) == {min(value, key=lambda i: value[i])}
    await here.emulator.close()
