"""A vast.ai on loopback: offers, instances that live and bill, SSH to each of them, and troubles on demand.

It knows vast.ai and nothing of the rest of this project, so that the two can be wrong about vast.ai only in different
ways. Used by the command line (`vastfleet emulator`, `vastfleet demo`) and by tests.
"""

from controller.emulator.clock import Clock, LoopClock, ScaledClock
from controller.emulator.host import ConnectionLost
from controller.emulator.market import Market
from controller.emulator.scenario import Scenario, ScenarioError
from controller.emulator.server import Emulator, Rental

__all__ = [
    "Clock",
    "ConnectionLost",
    "Emulator",
    "LoopClock",
    "Market",
    "Rental",
    "ScaledClock",
    "Scenario",
    "ScenarioError",
]  # fmt: skip
