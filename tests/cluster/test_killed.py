"""An operator that is killed without warning, again and again, at calls drawn from a seed.

VASTFLEET_TEST_SEEDS asks for other seeds, VASTFLEET_TEST_KILLS for more kills: `VASTFLEET_TEST_KILLS=50` takes minutes.
"""

import json
import logging
import os
import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from controller.model import labels
from tests.cluster.books import Books
from tests.cluster.manifests import manifest
from tests.cluster.plane import Cluster
from tests.cluster.proxy import Call, Said
from tests.cluster.replicas import Replica, Replicas, replicas

log = logging.getLogger(__name__)

SEEDS = [int(seed) for seed in os.environ.get("VASTFLEET_TEST_SEEDS", "1").split(",")]
SPEED = 40.0
KILLS = int(os.environ.get("VASTFLEET_TEST_KILLS", "12"))
TARGET = 3
BUDGET = 1.05  # USD an hour: three of the market's cheapest, and no fourth
MANY = 50  # kills, among which more is rented than the target: a dozen may all fall before anything is given up
LATE = 60.0  # emulated seconds that a call may be on its way: well within the time that a lost create is looked for
PARTS = ("PUT /api/v0/asks", "DELETE /api/v0/instances", "POST /apis/vastfleet", "no call", "no call")
MOMENTS = ("as it arrives", "and it is lost", "and it arrives late", "when it is done")


@dataclass
class Death:
    """The end of a replica at one of its calls.

    `nth`: of those that change something in the cluster, and of all to vast.ai. `part`: the first that has this in
    method and path, if that comes before. `moment`: when, see MOMENTS.
    """

    replica: Replica
    nth: int
    part: str
    moment: str
    struck: bool = False
    at: str = "never"
    _victim: Call | None = None

    def lurk(self) -> None:
        """Wait for it at both proxies."""
        api, vast = self.replica.api, self.replica.vast
        api.before, vast.before = self._cluster, self._before
        api.after = vast.after = self._after

    async def _cluster(self, call: Call) -> Said | None:
        return None if call.method == "GET" or "/leases/" in call.path else await self._before(call)

    async def _before(self, call: Call) -> Said | None:
        self.nth -= 1
        named = f"{call.method} {call.path}"
        if self._victim is not None or (self.nth > 0 and self.part not in named):
            return None
        self._victim, self.at = call, f"{named.partition('?')[0]} {self.moment}"
        if self.moment != MOMENTS[3]:
            await self._strike()
        if self.moment == MOMENTS[2]:
            await self.replica.stage.emulator.world.clock.sleep(LATE)
        return Said(503) if self.moment == MOMENTS[1] else None

    async def _after(self, call: Call) -> Said | None:
        if call is self._victim and not self.struck:
            await self._strike()
        return None

    async def _strike(self) -> None:
        self.struck = True
        await self.replica.kill()


async def kill_once(here: Replicas, rng: random.Random) -> str:
    """Let a replica live until its death, drawn from chance; what it was doing.

    On a busy machine it may lose so short a lease and end by itself: then another is started.
    """
    nth, part, moment = rng.randint(1, 14), rng.choice(PARTS), rng.choice(MOMENTS)
    while True:
        death = Death(here.start(), nth, part, moment)
        death.lurk()
        await death.replica.ended()
        if death.struck:
            return death.at


@pytest.mark.timeout(60 + 12 * KILLS)
@pytest.mark.parametrize("seed", SEEDS)
async def test_killed_again_and_again_while_a_fleet_converges(
    kinds: Cluster, namespace: str, tmp_path: Path, seed: int
):
    """Killed at any call of its own, before, while or after it is carried out, and the Fleet edited all the while.

    Never is more alive than the target, or what is alive or may be dearer than the budget; nothing is rented twice or
    unwritten; it converges when it is let live, and nothing is left of it when it is deleted.
    """
    rng, deaths = random.Random(seed), list[str]()
    async with replicas(kinds, namespace, tmp_path, speed=SPEED, seed=seed) as here:
        books = Books(here.stage, TARGET, BUDGET, [here.api], [here.vast])
        books.watch()
        for number in range(KILLS):
            if number % 2 == 0:
                count = TARGET if number % 4 == 0 else rng.randint(1, TARGET)
                await here.stage.apply(manifest(count=count, budget=BUDGET))
            deaths.append(await kill_once(here, rng))
            await books.look_at_objects()
        await here.stage.apply(manifest(count=TARGET, budget=BUDGET))
        here.seconds = 15
        here.start()
        await here.stage.ready()
        alive = len(here.stage.alive)
        await here.stage.kubectl("delete", "fleet", "provers", "--timeout=60s")
        log.warning("seed %d: %s", seed, "\n".join(deaths))
        assert not books.wrongs
        assert alive == TARGET
        assert not here.stage.alive
        await here.stage.wait("delete", "instances", "--all")
        assert KILLS < MANY or len(here.stage.rentals) > TARGET


async def test_an_intent_written_too_late_is_let_go(kinds: Cluster, namespace: str, tmp_path: Path):
    """An Instance that a dead leader wrote after the next had read all is looked for, and does not stay for good."""
    async with replicas(kinds, namespace, tmp_path, speed=600, seconds=5) as here:
        here.start()
        await here.stage.apply(manifest(count=1))
        await here.stage.ready()
        (known,) = await here.stage.instances()
        nonce, label = labels.make(owner=here.stage.owner, fleet=f"{namespace}.provers", new_id="00000000aa")
        meta = {
            "name": f"provers-{nonce}",
            **{n: known["metadata"][n] for n in ("labels", "finalizers", "ownerReferences")},
        }
        late = {**known, "metadata": meta, "spec": {**known["spec"], "nonce": nonce, "label": label}, "status": {}}
        await here.stage.kubectl("create", "-f", "-", input=json.dumps(late))
        gone = await here.stage.until("instance", meta["name"], lambda body: not body["metadata"].get("finalizers"))
        assert gone["status"]["phase"] == "Gone"
        assert len(here.stage.rentals) == 1
