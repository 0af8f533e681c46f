import pytest

from tests.journeys.stage import Stage, converge, fleet, stage

pytestmark = pytest.mark.looptime

FOREIGN = (None, "", "zeb-large-1", "vf", "vf/tests/provers", "vf/tests/provers/0123456789abcdef", "プロバー", "C.123")


async def test_an_empty_ledger_takes_back_what_runs(tmp_path):
    """With four of ours running and the ledger lost, nothing is rented: four are adopted, others' left alone."""
    here = stage(tmp_path)
    foreign = await here.rent_foreign(*FOREIGN)
    async with here.controller() as made:
        await converge(made.loop, fleet())
    ours = set(here.emulator.alive) - set(foreign)
    rented, destroyed = here.creates, here.emulator.calls["DELETE /api/v0/instances/{id}/"]
    lost = Stage(emulator=here.emulator, ledger_path=tmp_path / "new" / "ledger.db", seed=2)
    async with lost.controller() as made:
        await converge(made.loop, fleet())
        assert {i.instance_id for i in made.ledger.instances()} == ours
        assert sum(event.reason == "Adopted" for event in made.ledger.events()) == 4
    assert here.creates == rented
    assert here.emulator.calls["DELETE /api/v0/instances/{id}/"] == destroyed
    assert set(here.emulator.alive) == ours | set(foreign)
    await here.emulator.close()


async def test_a_stranger_with_our_label_of_another_fleet_is_told_of_and_left_alone(tmp_path):
    """What carries our label for a fleet that nobody asked for is told of once, and not touched."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet(name="other", target="instances: 2"))
    theirs = set(here.emulator.alive)
    lost = Stage(emulator=here.emulator, ledger_path=tmp_path / "new" / "ledger.db", seed=2)
    async with lost.controller() as made:
        await converge(made.loop, fleet(target="instances: 1"))
        assert [event.message for event in made.ledger.events() if event.reason == "Stray"]
    assert theirs < set(here.emulator.alive)
    await here.emulator.close()


async def test_a_relabelled_instance_is_let_go(tmp_path):
    """An instance whose label somebody changed is theirs from then on: told of, replaced, and never destroyed."""
    here = stage(tmp_path)
    async with here.controller() as made:
        await converge(made.loop, fleet(target="instances: 2"))
        taken = here.emulator.alive[0]
        await here.call("PUT", f"/api/v0/instances/{taken}/", {"label": "alice-keeps-this"})
        await made.loop.keep(lambda: (fleet(target="instances: 2"),), until=lambda said: not said[0].ready)
        await converge(made.loop, fleet(target="instances: 2"))
        assert any(event.reason == "Relabelled" for event in made.ledger.events())
    assert taken in here.emulator.alive
    assert len(here.emulator.alive) == 3
    await here.emulator.close()
