"""The emulated instance's shell: runs a command text as root would over SSH, in emulated time.

Called by ssh for each exec request and by Emulator.run in process; the same code serves both.
"""

from dataclasses import dataclass
from itertools import zip_longest

from controller.emulator.call import USAGE, Call, UsageFault
from controller.emulator.commands import COMMANDS
from controller.emulator.host import ConnectionLost, Host, Killed, Process, Write
from controller.emulator.prover import OOM_CODE
from controller.emulator.syntax import Command, SyntaxFault, expand, is_assignment, parse

NOT_FOUND = 127
WRAPPERS = ("nohup", "setsid", "exec", "command")


class _Exit(Exception):  # noqa: N818  ends the shell, no fault
    def __init__(self, code: int) -> None:
        self.code = code


@dataclass(slots=True)
class _Streams:
    out: Write
    err: Write


class Shell:
    """One shell process on a host.

    Args:
        host: the instance.
        out: takes what is printed.
        err: takes what is printed on stderr.
    """

    def __init__(self, host: Host, out: Write, err: Write) -> None:
        self._host, self._streams = host, _Streams(out, err)
        self._variables = {"HOME": "/root", "USER": "root", "CONTAINER_ID": str(host.contract.id)}
        self._variables |= host.contract.order.env
        self._code = 0
        self._errexit = False

    async def run(self, text: str) -> int:
        """Run a text to its end and return the exit code.

        Raises:
            ConnectionLost: the instance stopped, or the connection was cut.
        """
        process = self._host.spawn()
        self._variables["$"] = str(process.pid)
        try:
            commands = parse(text)
            for command, after in zip_longest(commands, commands[1:], fillvalue=Command()):
                if (command.joined_by == "&&" and self._code) or (command.joined_by == "||" and not self._code):
                    continue
                self._code = await self._simple(process, command)
                if self._errexit and self._code and after.joined_by == ";":
                    return self._code
        except SyntaxFault as fault:
            self._streams.err(f"sh: 1: {fault}\n")
            return USAGE
        except _Exit as end:
            return end.code
        except Killed as end:
            return end.code
        finally:
            self._host.end(process)
        return self._code

    async def _simple(self, process: Process, command: Command) -> int:
        self._variables["?"] = str(self._code)
        assigned: dict[str, str] = {}
        raw = list(command.words)
        while raw and is_assignment(raw[0]):
            name, _, value = raw.pop(0).partition("=")
            assigned[name] = expand(value, self._variables | assigned, split=False)[0] if value else ""
        words = [word for one in raw for word in expand(one, self._variables)]
        while words and words[0] in WRAPPERS:
            words.pop(0)
        if not words:
            self._variables |= assigned
            return 0
        call = Call(self._host, process, words, self._variables | assigned, *self._redirected(command))
        if command.background:
            return self._fork(call)
        return await self._execute(call)

    def _fork(self, call: Call) -> int:
        call.process = self._host.spawn(call.process)
        self._variables["!"] = str(call.process.pid)
        self._host.background(_to_the_end(call))
        return 0

    async def _execute(self, call: Call) -> int:
        match call.words:
            case ["export", *assignments]:
                self._variables |= dict(one.partition("=")[::2] for one in assignments if "=" in one)
                return 0
            case ["set", *options]:
                self._errexit = self._errexit or "-e" in options
                return 0
            case ["cd" | "umask" | "ulimit", *_]:
                return 0
            case ["exit", *code]:
                raise _Exit(self._code if not code else int(code[0]) if code[0].isdigit() else USAGE)
        return await execute(call)

    def _redirected(self, command: Command) -> tuple[Write, Write]:
        out, err = self._streams.out, self._streams.err
        for operator, raw in command.redirects:
            if operator == "2>&1":
                err = out
            elif operator in ("1>&2", ">&2"):
                out = err
            elif operator != "<":
                path = expand(raw, self._variables, split=False)[0]
                write = self._host.writer(path, append=operator.endswith(">>"))
                out, err = (out, write) if operator.startswith("2") else (write, err)
        return out, err


async def execute(call: Call) -> int:
    """Run one command that is not the shell's own."""
    name = call.words[0].rsplit("/", 1)[-1]
    command = COMMANDS.get(name)
    if command is None:
        call.err(f"sh: 1: {call.words[0]}: not found\n")
        return NOT_FOUND
    call.process.program = name
    try:
        return await command(call)
    except (UsageFault, ValueError) as fault:
        call.err(f"{name}: {fault}\n")
        return USAGE
    except Killed as end:
        if end.code == OOM_CODE:
            call.err("Killed\n")
        raise


async def _to_the_end(call: Call) -> None:
    """Run a command in the background, whose end nobody waits for."""
    try:
        await execute(call)
    except (Killed, ConnectionLost, OSError):
        return
    finally:
        call.host.end(call.process)
