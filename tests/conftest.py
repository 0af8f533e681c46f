"""What holds for every test."""

import asyncio

# looptime asks for the event loop before every test, and asyncio would make one, never to be closed, for those that
# have none; unless it has been told that there is none.
asyncio.set_event_loop(None)
