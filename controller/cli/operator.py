"""`vastfleet operator`: hold the Fleets of a Kubernetes cluster."""

import asyncio
import logging
import os
import signal

import click

from controller.cli import options


@click.command("operator")
@click.option(
    "-n",
    "--namespace",
    "namespaces",
    multiple=True,
    metavar="NAME",
    help="Hold the Fleets of this namespace alone; may be repeated. Default: of all.",
)
@click.option(
    "--health-port",
    default=8080,
    show_default=True,
    metavar="PORT",
    help="Where /healthz and /readyz are served; 0: any free port.",
)
@click.option(
    "--lease-seconds",
    type=click.IntRange(min=1),
    default=30,
    show_default=True,
    metavar="N",
    help="Another replica takes over when the one that leads was silent for so long.",
)
@options.owner
@options.verbose
def command(namespaces: tuple[str, ...], *, health_port: int, lease_seconds: int, owner: str | None) -> int:
    """Hold the Fleets of a Kubernetes cluster to what they say.

    Runs in the cluster as deploy/ has it, or anywhere with a kubeconfig. Of
    several, one leads: the one that holds the Lease vastfleet-OWNER in the
    namespace POD_NAMESPACE. What it rents and measures is kept in Instances
    and Machines; `kubectl get fleets,instances,machines` shows how things
    stand.

    SIGTERM stops after the pass under way; what was rented goes on, and is
    taken up again by the next to lead.
    """
    from controller.runtime.cluster import Process, place_of
    from controller.runtime.lease import Term

    if not logging.getLogger().handlers:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    place = place_of(os.environ, namespaces=namespaces, port=health_port, term=Term.lasting(lease_seconds))
    settings = options.settings(None, owner)

    async def run() -> int:
        process = Process(settings, place, say=lambda line: print(line, flush=True))
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, process.stop)
        return await process.run()

    return asyncio.run(run())
