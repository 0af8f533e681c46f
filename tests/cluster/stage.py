"""A stage for the operator's journeys: the real process on the real API server, with an emulated vast.ai behind it.

The emulator runs in the test's own loop and serves over loopback, so that a test may ask it what is rented and wait for
what happens there. Whoever waits, waits for an event: the emulator's, a watch's, or a line that a process prints.
"""

import asyncio
import itertools
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE
from typing import Any

from controller.emulator import Emulator, ScaledClock, Scenario
from controller.emulator.server import Rental
from tests.cluster.plane import Cluster, KubectlError, Standing
from tests.cluster.process import Operator

KEY = "emulator-key"
SPEED = 600.0
NUMBERS = itertools.count(1)
FINALIZER = "vastfleet.io/teardown"
KINDS = "fleets,instances"
PATIENCE = "60s"
CREATE, LIST, DESTROY = "PUT /api/v0/asks/{id}/", "GET /api/v1/instances/", "DELETE /api/v0/instances/{id}/"


@dataclass
class Stage:
    """A control plane, a namespace, and an account at an emulated vast.ai."""

    cluster: Cluster
    namespace: str
    emulator: Emulator
    url: str
    owner: str
    place: Path
    operators: list[Operator] = field(default_factory=list)

    # the operator

    async def start(self, *arguments: str, namespaces: tuple[str, ...] | None = None, **environ: str) -> Operator:
        """Start an operator for the stage's namespace, or for those given (none: all), and wait until it leads."""
        clock = self.emulator.world.clock
        assert isinstance(clock, ScaledClock)
        own = {
            "VAST_URL": self.url,
            "VAST_API_KEY": KEY,
            "VASTFLEET_CLOCK": f"{clock.speed:g}@{clock.origin!r}",
            "VASTFLEET_OWNER": self.owner,
            "VASTFLEET_SSH_KEY": str(self.place / "key"),
            "POD_NAMESPACE": "default",
            "PYTHONUNBUFFERED": "1",
            **environ,
        }
        where = (self.namespace,) if namespaces is None else namespaces
        options = [part for name in where for part in ("--namespace", name)]
        command = (sys.executable, "-m", "controller.cli.main", "operator", "--health-port=0", *options, *arguments)
        process = await asyncio.create_subprocess_exec(
            *command, env={**self.cluster.env, **own}, stdin=PIPE, stdout=PIPE, stderr=asyncio.subprocess.STDOUT
        )
        operator = Operator(process)
        self.operators.append(operator)
        operator.reading = asyncio.create_task(operator.read())
        await operator.says("leading;")
        return operator

    @asynccontextmanager
    async def operator(
        self, *arguments: str, namespaces: tuple[str, ...] | None = None, **environ: str
    ) -> AsyncIterator[Operator]:
        """Run an operator, see `start`, until the block ends; it must then end by itself when it is told to.

        Nor may it have met an error of its own, or have written what the definitions do not know: that is dropped.
        """
        operator = await self.start(*arguments, namespaces=namespaces, **environ)
        yield operator
        assert await operator.stop() == 0, operator.lines[-20:]
        amiss = ("Traceback", "error of our own", "the API server warns")
        assert not [line for line in operator.lines if any(word in line for word in amiss)], operator.lines

    # the cluster

    async def kubectl(self, *arguments: str, input: str | None = None, namespace: str = "") -> str:  # noqa: A002
        """What kubectl prints, asked in the stage's namespace or another. Raises KubectlError."""
        return await self.cluster.kubectl_async("-n", namespace or self.namespace, *arguments, input=input)

    async def apply(self, *manifests: str, namespace: str = "") -> None:
        """Apply manifests."""
        await self.kubectl("apply", "-f", "-", input="\n---\n".join(manifests), namespace=namespace)

    async def wait(self, condition: str, *what: str, namespace: str = "") -> None:
        """Return when `kubectl wait --for=CONDITION` does."""
        arguments = ("wait", f"--for={condition}", *what, f"--timeout={PATIENCE}")
        try:
            await self.kubectl(*arguments, namespace=namespace)
        except KubectlError as error:
            raise AssertionError(await self._how_it_stands(error)) from error

    async def get(self, what: str, name: str = "", namespace: str = "") -> dict[str, Any]:
        """One object, or without a name a list of them."""
        names = (name,) if name else ()
        found: dict[str, Any] = json.loads(await self.kubectl("get", what, *names, "-o", "json", namespace=namespace))
        return found

    async def instances(self, *phases: str, namespace: str = "") -> list[dict[str, Any]]:
        """The Instance objects, or those in the phases named."""
        items = (await self.get("instances", namespace=namespace))["items"]
        return [each for each in items if not phases or each.get("status", {}).get("phase") in phases]

    async def machines(self) -> list[dict[str, Any]]:
        """The Machine objects of the stage's owner."""
        found = json.loads(
            await self.kubectl("get", "machines", "-l", f"vastfleet.io/owner={self.owner}", "-o", "json")
        )
        return list(found["items"])

    async def ready(self, *fleets: str, namespace: str = "") -> None:
        """Return when Fleets are Ready for the specs that they have now."""
        for name in fleets or ("provers",):
            await self.until(
                "fleet", name, lambda body: current(body) and condition(body, "Ready") == "True", namespace=namespace
            )

    async def until(
        self, what: str, name: str, holds: Callable[[dict[str, Any]], bool], namespace: str = ""
    ) -> dict[str, Any]:
        """The object as soon as something holds of it, by a watch."""
        try:
            async with asyncio.timeout(60):
                async for body in self.watch(what, name, namespace=namespace):
                    if holds(body):
                        return body
        except TimeoutError as error:
            raise AssertionError(await self._how_it_stands(error)) from error
        raise AssertionError(f"the watch of {what}/{name} ended")

    async def watch(self, what: str, *names: str, namespace: str = "") -> AsyncIterator[dict[str, Any]]:
        """The objects as they are, and each time that they change."""
        named = [name for name in names if name]
        command = ("-n", namespace or self.namespace, "get", what, *named, "--watch", "-o", "json")
        process = await asyncio.create_subprocess_exec(
            str(self.cluster.programs / "kubectl"),
            *command,
            env=self.cluster.env,
            stdout=PIPE,
            stderr=PIPE,
            limit=2**24,
        )
        assert process.stdout is not None
        try:
            text = ""
            async for line in process.stdout:
                text += line.decode()
                if line == b"}\n":
                    yield json.loads(text)
                    text = ""
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()

    def kstatus(self, *bodies: dict[str, Any]) -> list[Standing]:
        """What kstatus says of objects, one after the other."""
        told = [body | {"metadata": body["metadata"] | {"name": f"at-{n}"}} for n, body in enumerate(bodies)]
        said = self.cluster.kstatus(json.dumps({"apiVersion": "v1", "kind": "List", "items": told}))
        return [said[f"{body['kind']}/at-{n}"] for n, body in enumerate(bodies)]

    # vast.ai

    @property
    def alive(self) -> tuple[int, ...]:
        """The ids of what bills."""
        return self.emulator.alive

    @property
    def rentals(self) -> tuple[Rental, ...]:
        """All that was ever rented."""
        return self.emulator.rentals()

    def env(self, instance_id: int) -> dict[str, str]:
        """The environment that an instance was made with."""
        return dict(self.emulator.world.contracts[instance_id].order.env)

    def label(self, instance_id: int) -> str | None:
        """The label that an instance carries."""
        return self.emulator.world.contracts[instance_id].label

    async def passes(self, count: int) -> None:
        """Return after so many more listings; a pass that is under way may have made the first."""
        wanted = self.emulator.calls[LIST] + count
        await self.happens(lambda: self.emulator.calls[LIST] >= wanted)

    async def happens(self, predicate: Callable[[], bool]) -> None:
        """Return when something holds at vast.ai."""
        try:
            async with asyncio.timeout(60):
                await self.emulator.wait_for(predicate)
        except TimeoutError as error:
            raise AssertionError(await self._how_it_stands(error)) from error

    # the end

    async def close(self) -> None:
        """End the operators and the emulator, and free what they leave: nobody is there to do it any more.

        Nor may a Fleet be left, in whatever namespace: the next operator of all namespaces would rent for it.
        """
        for operator in self.operators:
            await operator.stop(signal.SIGKILL)
        await self.emulator.close()
        try:
            left = await self.cluster.kubectl_async("get", KINDS, "-A", "-o", "json")
        except KubectlError:  # the kinds themselves are gone
            return
        for body in json.loads(left)["items"]:
            meta = body["metadata"]
            if FINALIZER in meta.get("finalizers", ()):
                await self.free(body)
        await self.cluster.kubectl_async("delete", "fleets", "-A", "--all", "--wait=false")

    async def free(self, body: dict[str, Any]) -> None:
        """Take all finalizers off an object, as a person would by hand."""
        meta, patch = body["metadata"], '{"metadata":{"finalizers":null}}'
        with suppress(KubectlError):
            await self.kubectl(
                "patch", body["kind"], meta["name"], "--type=merge", "-p", patch, namespace=meta["namespace"]
            )

    async def _how_it_stands(self, error: Exception) -> str:
        table = await self.kubectl("get", KINDS, "-A", "-o", "wide")
        log = "\n".join(line for operator in self.operators for line in operator.lines[-30:])
        return f"{error}\n{table}\n{self.emulator.calls}\n{log}"


def condition(body: dict[str, Any], kind: str) -> str:
    """The status of an object's condition, empty if it has none such."""
    return next((each["status"] for each in conditions(body) if each["type"] == kind), "")


def reason(body: dict[str, Any], kind: str) -> str:
    """The reason of an object's condition, empty if it has none such."""
    return next((each["reason"] for each in conditions(body) if each["type"] == kind), "")


def conditions(body: dict[str, Any]) -> list[dict[str, Any]]:
    """An object's conditions."""
    found: list[dict[str, Any]] = body.get("status", {}).get("conditions", [])
    return found


def current(body: dict[str, Any]) -> bool:
    """Whether an object's status speaks of its spec as it is now."""
    return bool(body.get("status", {}).get("observedGeneration") == body["metadata"]["generation"])


@asynccontextmanager
async def stage(
    cluster: Cluster, namespace: str, place: Path, *, speed: float = SPEED, seed: int = 3, **scenario: object
) -> AsyncIterator[Stage]:
    """A stage with a market of RTX 4090s, unless the scenario says otherwise."""
    market = {"offers": 100, "models": ["RTX 4090"]}
    spec = Scenario.model_validate({"seed": seed, "market": market, "bootSeconds": 20, **scenario})
    emulator = Emulator(clock=ScaledClock(speed), scenario=spec, api_key=KEY)
    owner = f"stage-{os.getpid()}-{next(NUMBERS)}"
    url = await emulator.serve()
    made = Stage(cluster, namespace, emulator, url, owner, place)
    try:
        yield made
    finally:
        await made.close()
