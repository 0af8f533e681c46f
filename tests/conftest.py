"""What holds for every test."""

import asyncio

from hypothesis import settings

# looptime asks for the event loop before every test, and asyncio would make one, never to be closed, for those that
# have none; unless it has been told that there is none.
asyncio.set_event_loop(None)

# the same examples each time: a suite that fails for one person fails for all
settings.register_profile("vastfleet", derandomize=True, deadline=None)
settings.load_profile("vastfleet")
