"""How fast a machine is: a true rate that stays, and sessions that come and go.

Called by host (which keeps the sessions) and prover.
"""

import math

from controller.emulator.chance import lognormal, stream
from controller.emulator.contracts import Contract
from controller.emulator.gpus import gpu_of
from controller.emulator.world import World

MACHINE_CV = SESSION_CV = 0.08
SESSION_S = 5400.0  # mean length
DISTURBED, DISTURBED_SHARE = 0.75, 0.15
SLOWING = ("slow-machine", "disturbed", "hot", "power-capped", "cpu-throttled", "slow-image")
CROWDED = 0.75  # what each further prover leaves to all on its machine


def true_rate(world: World, contract: Contract) -> float:
    """Return what the instance's GPUs make undisturbed, proofs an hour: lognormal around the model's mean."""
    row = contract.slot.row
    rng = stream(world.market.seed, "true-rate", contract.slot.machine_id)
    mean = gpu_of(row["gpu_name"]).proofs_per_hour * row["num_gpus"] * world.scenario.prover.rate_factor
    return lognormal(rng, mean=mean, cv=MACHINE_CV)


class Sessions:
    """One machine's sessions since the emulator started: piecewise constant factors of its rate."""

    def __init__(self, world: World, machine_id: int) -> None:
        self._rng = stream(world.market.seed, "sessions", machine_id)
        self._end = world.started
        self._factor = 1.0

    def factor(self, now: float) -> float:
        """Return the factor in force; time must not go back."""
        while self._end <= now:
            self._end += self._rng.expovariate(1 / SESSION_S)
            disturbed = DISTURBED if self._rng.random() < DISTURBED_SHARE else 1.0
            self._factor = lognormal(self._rng, mean=1.0, cv=SESSION_CV) * disturbed
        return self._factor


def rate_now(world: World, contract: Contract, sessions: Sessions, *, provers: int) -> float:
    """Return what the instance makes now, proofs an hour, before a run's noise.

    Args:
        world: the time and the seed.
        contract: the instance.
        sessions: its machine's.
        provers: how many of our instances prove on its machine, this one included.
    """
    found = [contract.trouble(kind, world.time) for kind in SLOWING]
    slowed = math.prod(trouble.scale for trouble in found if trouble is not None)
    crowd = CROWDED ** max(0, provers - 1)
    return true_rate(world, contract) * sessions.factor(world.time) * crowd * slowed
