"""`vastfleet operator` that does not wait for vast.ai's limits: what `fleets` measures is the operator, not those.

python -m bench.unpaced NAMESPACE
"""

import asyncio
import os
import signal
import sys
from functools import partial

from controller.runtime.cluster import Place, Process
from controller.runtime.settings import Settings, read_settings
from controller.vast.calls import Call
from controller.vast.client import VastClient
from controller.vast.pace import Pace


class Unpaced(Pace):
    """Lets every call through at once."""

    async def turn(self, call: Call) -> None:
        """Wait for nothing."""


async def operate(settings: Settings, namespace: str) -> int:
    """Hold the Fleets of a namespace; the exit code."""
    place = Place(namespaces=(namespace,), home=namespace, identity="bench", host="127.0.0.1", port=0)
    client = partial(VastClient, pace=Unpaced(settings.clock))
    process = Process(settings, place, say=lambda line: print(line, flush=True), client=client)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, process.stop)
    return await process.run()


if __name__ == "__main__":
    sys.exit(asyncio.run(operate(read_settings(os.environ), sys.argv[1])))
