"""How long each phase may last and how often it is tried: every number the planner goes by, with its unit.

Passed in, never imported.
"""

from dataclasses import dataclass

from controller.model.money import MICRO, MicroUsd


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds unless another unit is named."""

    unclear: float = 180.0  # a create whose answer was lost is looked for this long
    invisible: float = 180.0  # a new instance may not be listed for this long
    apart: float = 60.0  # two listings that together prove absence are at least this far apart
    launch: float = 1800.0  # from create to running
    fault_persists: float = 60.0  # a host's error message must stand this long to be believed
    stopped: float = 120.0  # an instance stopped by somebody else is borne with this long
    resume: float = 600.0  # from the start call to running
    lost: float = 600.0  # a host out of contact is borne with this long
    destroy_again: float = 90.0  # a destroyed instance still listed after this long is destroyed again
    quiesce: float = 120.0  # beyond the drain time, for the stop command itself
    contract_end: float = 7200.0  # an instance is replaced when its contract has less left than this
    retry: float = 60.0  # first wait after a failed try; doubles with each
    longest_retry: float = 300.0  # the longest wait before a destroy or start that was turned away is sent again
    suspected: float = 21_600.0  # what is spared because of a suspicion is measured again after this long
    tries: int = 3  # failed tries before an instance that never worked is given up
    working_tries: int = 6  # failed tries before one that works is replaced
    same_fault: int = 3  # machines with one and the same fault before the image, not the machine, is blamed
    min_credit: MicroUsd = 1 * MICRO  # below this nothing is rented
    credit_hours: float = 1.0  # nor when the credit lasts less than this long
