"""An open session on one instance: scripts with their variables, and answers. Called by `bench`, for one job.

Values of `env` go to the instance in the script's text and nowhere else; they are cut out of all that comes back.
"""

import asyncio
import contextlib
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from controller.bench import conditions
from controller.bench.command import Command
from controller.bench.conditions import Conditions
from controller.bench.lines import Lines, redact
from controller.bench.log import Log
from controller.bench.progress import Limits, Pace
from controller.bench.readers import MATCHED
from controller.bench.remote import Clock, Connect, Remote
from controller.bench.work import Target, Work
from controller.model.faults import Fault, Refused, Retry
from controller.model.reasons import Reason

ANSWER_S = 60.0  # of the wall, for a question such as nproc; a broken GPU's driver may never answer
SWEEP_S = 60.0  # of the wall
ANSWER_LINES = 200
FILE = "vastfleet-file"
SHORTEST_SECRET = 4  # characters; shorter values of env are settings, and occur everywhere


@dataclass(frozen=True, slots=True)
class Ended:
    """How a script ended. `status`: its exit status, None if it said `until` and went on."""

    status: int | None
    log: Log
    said: bool  # whether a line matched `until`


class Session:
    """One job's session.

    Args:
        target: the instance.
        work: whose variables scripts see, and whose secrets nobody does.
        connect: opens another Remote when this one is lost with a command under way.
        clock: the controller's time.
        progress: gets each line the instance prints, after how far it is.
    """

    def __init__(
        self, target: Target, work: Work, *, connect: Connect, clock: Clock, progress: Callable[[str], None]
    ) -> None:
        self._target = target
        self._work = work
        self._connect = connect
        self._clock = clock
        self._progress = progress
        self._secrets = secrets(work.env)
        self.remote: Remote | None = None

    @property
    def host_key(self) -> str | None:
        """What the instance showed; None: it was not reached."""
        return self.remote.host_key if self.remote else None

    def redact(self, text: str) -> str:
        """`text` without the secrets."""
        return redact(text, self._secrets)

    def report(self, text: str) -> None:
        """Tell of progress that no instance printed."""
        self._progress(self.redact(text))

    async def run(
        self,
        command: str,
        *,
        limits: Limits,
        variables: Mapping[str, object],
        read: Callable[[str], None] | None = None,
        said: re.Pattern[str] | None = None,
    ) -> Ended:
        """Run a command with `env` and `variables` set. `read` gets its stdout's lines; a line with `said` ends it.

        Raises:
            Refused: it was over its limits; what it last printed is in the text.
            Retry: CONNECTION_LOST.
        """
        pace = Pace(limits, now=self._clock.now())

        def tell(line: str) -> None:
            far = pace.said(self._clock.now())
            self._progress(f"{far} | {line}" if far else line)

        log = Log(progress=tell, redact=self.redact)
        found = False

        def hear(line: str, is_error: bool) -> bool:  # noqa: FBT001 - called by position, by Command alone
            nonlocal found
            log.hear(line)
            if read and not is_error:
                read(line)
            found = found or bool(said and said.search(line[:MATCHED]))
            return found

        script = f"{exports(self._work.env)}{exports(variables)}{command}"
        try:
            status = await self._carry_out(script, pace, hear)
        except Fault as fault:
            raise type(fault)(fault.reason, f"{fault}; last: {log.tail}") from fault
        return Ended(status, log, found)

    async def ask(self, question: str, *, only: re.Pattern[str] | None = None) -> tuple[int, list[str]]:
        """Run a short command without variables; its exit status and what it printed, or the lines with `only`.

        Its time is the wall's: an answer takes what the network takes, however fast the clock runs.

        Raises:
            Refused: HOST_FAULT, it did not answer.
            Retry: CONNECTION_LOST.
        """
        answer: list[str] = []

        def keep(line: str) -> None:
            if len(answer) < ANSWER_LINES and (only is None or only.search(line[:MATCHED])):
                answer.append(line)

        lines = Lines(keep)
        try:
            async with asyncio.timeout(ANSWER_S):
                status = await self._open().run(question, out=lines.feed, err=lambda _text: None)
        except TimeoutError as error:
            raise Refused(Reason.HOST_FAULT, f"no answer in {ANSWER_S:.0f} s: {question}") from error
        lines.close()
        return status, answer

    async def attempt(self, question: str, *, only: re.Pattern[str] | None = None) -> tuple[int | None, list[str]]:
        """Ask what need not be known. Status None: there was no answer."""
        try:
            return await self.ask(question, only=only)
        except Fault:
            return None, []

    async def files(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """The lines of some short files, in one question; of one that cannot be read, none. Raises as `ask` does."""
        question = "\n".join(f'echo\necho {FILE} {place}\ncat "{path}"' for place, path in enumerate(paths))
        found: dict[str, list[str]] = {path: [] for path in paths}
        path = ""
        for line in (await self.ask(question))[1]:
            name, _, place = line.partition(" ")
            if name == FILE and place.isdecimal() and int(place) < len(paths):
                path = paths[int(place)]
            elif path:
                found[path].append(line)
        return found

    async def attempt_files(self, paths: Sequence[str]) -> dict[str, list[str]]:
        """The same, of what need not be known: of all, none, if there was no answer."""
        try:
            return await self.files(paths)
        except Fault:
            return {}

    async def conditions(self) -> Conditions:
        """What the instance has.

        Raises:
            Refused: HOST_FAULT, GPUs are missing or do not answer.
            Retry: CONNECTION_LOST.
        """
        files = await self.files(conditions.FILES)
        boot = conditions.boot(files)
        return Conditions(
            ram_gib=conditions.ram_gib(files),
            cpu_cores=conditions.cpu_cores((await self.ask(conditions.CORES))[1], files),
            gpus=conditions.gpus(*await self.ask(conditions.GPUS), expected=self._work.gpu_count),
            driver=conditions.driver(*await self.ask(conditions.DRIVER)),
            boot=boot,
            warm=bool(boot) and files[conditions.WARM] == [boot],
        )

    async def warmed(self, boot: str) -> None:
        """Leave word in the container that it is warm, for as long as it is not started anew."""
        if boot:
            await self.attempt(f'echo {boot} > "{conditions.WARM}"')

    async def _carry_out(self, script: str, pace: Pace, hear: Callable[[str, bool], bool]) -> int | None:
        command = Command(self._open(), clock=self._clock, pace=pace, hear=hear, tell=self._progress)
        try:
            return await command.run(script)
        except Retry:
            await self._sweep(command)
            raise

    def _open(self) -> Remote:
        if self.remote is None:
            raise Retry(Reason.CONNECTION_LOST, "not connected")
        return self.remote

    async def _sweep(self, command: Command) -> None:
        """End, over another connection, a command whose own was lost: it must not disturb the next try. Tries once."""
        with contextlib.suppress(Fault, TimeoutError):
            async with asyncio.timeout(SWEEP_S):
                remote = await self._connect(self._target)
                await command.end(remote)
                await remote.close()


def exports(variables: Mapping[str, object]) -> str:
    """A line that sets and exports the variables; empty if there are none."""
    assignments = " ".join(f"{name}={shlex.quote(str(value))}" for name, value in variables.items())
    return f"export {assignments}\n" if assignments else ""


def secrets(env: Mapping[str, str]) -> frozenset[str]:
    """What must not be shown of `env`: its values, line by line, for output comes in lines."""
    return frozenset(
        line for value in env.values() for line in value.splitlines() if len(line.strip()) >= SHORTEST_SECRET
    )
