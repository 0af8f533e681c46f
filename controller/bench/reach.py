"""Opens the way to an instance that may still be coming up: tries again, more and more slowly, until its time is over.

vast.ai hands a key to an instance seconds after it runs, and may take it away after hours: on a denial the key is
attached again, once. Called by `bench`.
"""

from collections.abc import Awaitable, Callable

from controller.bench.remote import Clock, Connect, Remote
from controller.bench.work import Target
from controller.model.faults import Fault, Refused, Retry
from controller.model.reasons import Reason

FIRST_WAIT_S = 2.0
LONGEST_WAIT_S = 30.0

Reattach = Callable[[Target], Awaitable[None]]
"""Hands our public key to the instance again, through vast.ai. Raises Fault: it is called again at the next denial."""


async def reach(
    target: Target,
    *,
    connect: Connect,
    clock: Clock,
    patience_s: float,
    reattach: Reattach | None,
    report: Callable[[str], None],
) -> Remote:
    """Connect, within `patience_s` of the clock; `report` hears of each failure.

    Raises:
        Retry: SSH_UNREACHABLE to the end.
        Refused: SSH_REFUSED to the end, or HOST_KEY_CHANGED at once.
    """
    deadline = clock.now() + patience_s
    wait = FIRST_WAIT_S
    while True:
        try:
            return await connect(target)
        except (Retry, Refused) as fault:
            report(str(fault))
            if fault.reason is Reason.HOST_KEY_CHANGED or clock.now() + wait > deadline:
                raise
            denied = fault.reason is Reason.SSH_REFUSED
        if denied and reattach and await _attached(target, reattach, report):
            reattach = None
        await clock.sleep(wait)
        wait = min(2 * wait, LONGEST_WAIT_S)


async def _attached(target: Target, reattach: Reattach, report: Callable[[str], None]) -> bool:
    try:
        await reattach(target)
    except Fault as fault:
        report(f"attaching the key: {fault}")
        return False
    return True
