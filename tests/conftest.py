"""What all tests share."""

import asyncio

from hypothesis import settings

# the same examples each time: a suite that fails for one person fails for all
settings.register_profile("vastfleet", derandomize=True, deadline=None)
settings.load_profile("vastfleet")

# or pytest-asyncio asks for a loop before there is one, is given a new one, and nobody closes it
asyncio.set_event_loop(None)
