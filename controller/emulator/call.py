"""A program about to run on an emulated instance: what every command is given, and how it reads its options.

Called by shell, which builds calls, and by commands, download and nvidia, which serve them.
"""

import argparse
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

from controller.emulator.host import Host, Process, Write

USAGE = 2


@dataclass(slots=True)
class Call:
    """One program about to run: where, as which process, with which words and variables, printing to whom."""

    host: Host
    process: Process
    words: list[str]
    variables: Mapping[str, str]
    out: Write
    err: Write


Program = Callable[[Call], Awaitable[int]]


class UsageFault(Exception):  # noqa: N818  printed, not raised to the caller
    """Words that a program does not take."""


class Options(argparse.ArgumentParser):
    """Options of a program whose faults go to the emulated stderr."""

    def error(self, message: str) -> NoReturn:
        """Refuse the words.

        Raises:
            UsageFault: always.
        """
        raise UsageFault(message)
