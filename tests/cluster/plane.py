"""A Kubernetes control plane, as the tests have it: started, asked, and ended.

It is the project's own, from tests/controlplane, or else what KUBEBUILDER_ASSETS names (see assets.py).
"""

import asyncio
import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE
from typing import NamedTuple

PATIENCE = 15  # seconds that a server has to end by itself


class KubectlError(Exception):
    """What kubectl said on standard error when it failed."""


class Standing(NamedTuple):
    """What kstatus says of an object: Current, InProgress, Failed, Terminating, NotFound or Unknown, and why."""

    status: str
    message: str


@dataclass(frozen=True)
class Cluster:
    """A running control plane.

    `kubeconfig` is a file, with the rights of system:masters; `server` a URL; `ca` a file that the server's certificate
    is checked against; `programs` the directory with kubectl.
    """

    server: str
    ca: Path
    kubeconfig: Path
    programs: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment for a process that is to find this cluster, and nothing of the user's own."""
        own = {
            "KUBECONFIG": str(self.kubeconfig),
            "KUBECACHEDIR": str(self.kubeconfig.parent / "cache"),
            "KUBERC": "off",
        }
        return {**os.environ, **own}

    def kubectl(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """What `kubectl ARGUMENT...` prints, given the input. Raises KubectlError."""
        command = [str(self.programs / "kubectl"), *arguments]
        done = subprocess.run(command, env=self.env, input=input or "", capture_output=True, text=True, check=False)
        if done.returncode:
            raise KubectlError(done.stderr.strip() or done.stdout.strip())
        return done.stdout

    async def kubectl_async(self, *arguments: str, input: str | None = None) -> str:  # noqa: A002
        """The same without blocking the loop; it is killed where the waiting is cancelled. Raises KubectlError."""
        command = [str(self.programs / "kubectl"), *arguments]
        process = await asyncio.create_subprocess_exec(*command, env=self.env, stdin=PIPE, stdout=PIPE, stderr=PIPE)
        try:
            out, error = await process.communicate((input or "").encode())
        except asyncio.CancelledError:
            process.kill()
            await process.wait()
            raise
        if process.returncode:
            raise KubectlError((error or out).decode().strip())
        return out.decode()

    def token_for(self, namespace: str, account: str) -> str:
        """A bearer token of a service account that exists, good for an hour. Raises KubectlError."""
        return self.kubectl("create", "token", account, "--namespace", namespace).strip()

    def kstatus(self, objects: str) -> dict[str, Standing]:
        """What kstatus says of objects, in JSON as `kubectl get -o json` prints them; by KIND/NAME.

        Only where `whole_cluster` was asked for: KUBEBUILDER_ASSETS has no kstatus.
        """
        command = [str(self.programs / "controlplane"), "kstatus"]
        done = subprocess.run(command, input=objects, capture_output=True, text=True, check=False)
        if done.returncode:
            raise ValueError(done.stderr.strip())
        return {name: Standing(**said) for name, said in json.loads(done.stdout).items()}


class Server:
    """A process that serves until it is told to end, in a session of its own: Ctrl-C is for pytest alone.

    What it logs goes to a file that has no name, so that nothing of it can be left behind.
    """

    def __init__(self, *command: str | Path) -> None:
        self._log = tempfile.TemporaryFile()  # noqa: SIM115
        self.process = subprocess.Popen(
            command, stdin=PIPE, stdout=PIPE, stderr=self._log, text=True, start_new_session=True
        )

    def line(self) -> str:
        """The next line that it prints, waited for; empty if it ended without."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def log(self) -> str:
        """The end of what it has logged."""
        self._log.seek(0)
        return self._log.read().decode(errors="replace")[-3000:]

    def ended(self, within: float) -> bool:
        """Wait for so many seconds; whether it has ended."""
        try:
            self.process.wait(within)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Send SIGTERM, and wait for the end; its input ends only then, for a second hint to end would cut it short."""
        self.process.terminate()
        if not self.ended(within=PATIENCE):
            self.process.kill()
        self.process.communicate()
        self._log.close()


@contextmanager
def serving(*command: str | Path) -> Iterator[Server]:
    """Run a server for as long as the context lasts."""
    server = Server(*command)
    try:
        yield server
    finally:
        server.stop()


@contextmanager
def directory() -> Iterator[Path]:
    """A directory for a control plane; its server may remove it first."""
    with tempfile.TemporaryDirectory(prefix="vastfleet-cluster-", ignore_cleanup_errors=True) as place:
        yield Path(place)


@contextmanager
def running(programs: Path) -> Iterator[Cluster]:
    """Run the project's own control plane, built in `programs`.

    It ends, and removes all that it wrote, when this process dies too. Raises RuntimeError with what it logged where it
    does not start.
    """
    with directory() as place, serving(programs / "controlplane", "serve", "-temporary", "-dir", place) as server:
        line = server.line()
        if not line:
            raise RuntimeError(f"the control plane did not start: {server.log()}")
        said = json.loads(line)
        yield Cluster(said["server"], Path(said["ca"]), Path(said["kubeconfig"]), programs)
