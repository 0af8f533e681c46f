"""Every setting of the embedded controller, read from the environment and the command line, and passed on from here."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from controller.loop.pace import Pace
from controller.model.faults import Misconfigured
from controller.model.labels import OWNER
from controller.model.reasons import Reason
from controller.plan.limits import Limits
from controller.runtime.clock import Clock

VAST_URL = "https://console.vast.ai"
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the controller goes by.

    api_key: VAST_API_KEY; goes into the header of each call and nowhere else.
    url: VAST_URL; default vast.ai's console.
    owner: VASTFLEET_OWNER; in every label, default "default". Two controllers of one account need two.
    ledger: VASTFLEET_LEDGER; default $XDG_STATE_HOME/vastfleet/ledger.db.
    ssh_key: VASTFLEET_SSH_KEY; made beside the ledger if it is not there.
    clock: VASTFLEET_CLOCK, SPEED@ORIGIN; only against an emulator on this machine, default the wall's time.
    """

    api_key: str = field(repr=False)
    url: str
    owner: str
    ledger: Path
    ssh_key: Path
    clock: Clock = field(default_factory=Clock)
    pace: Pace = field(default_factory=Pace)
    limits: Limits = field(default_factory=Limits)


def read_settings(
    environ: Mapping[str, str], *, ledger: Path | None = None, owner: str | None = None, needs_key: bool = True
) -> Settings:
    """Settings from the environment; arguments win. Raises Misconfigured naming the setting and what would be right."""
    key = environ.get("VAST_API_KEY", "").strip()
    if needs_key and not key:
        raise _wrong("VAST_API_KEY is not set; make a key at vast.ai under Keys and export it")
    url = environ.get("VAST_URL", "").strip().rstrip("/") or VAST_URL
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # brackets that do not close, a port that is none
        usable = False
    if not usable:
        raise _wrong(f"VAST_URL is {url!r}; it must be an http(s) address such as {VAST_URL}")
    local = parts.hostname in LOOPBACK
    if parts.scheme == "http" and not local:
        raise _wrong(f"VAST_URL is {url!r}; a key is only sent over https, or to this machine")
    who = owner or environ.get("VASTFLEET_OWNER", "").strip() or "default"
    if not re.fullmatch(OWNER, who):
        raise _wrong(f"the owner is {who!r}; it must be 1 to 40 lower-case letters, digits and hyphens")
    state = (
        Path(environ.get("XDG_STATE_HOME") or Path(environ.get("HOME", "~")).expanduser() / ".local/state")
        / "vastfleet"
    )
    path = ledger or Path(environ.get("VASTFLEET_LEDGER") or state / "ledger.db")
    return Settings(
        api_key=key,
        url=url,
        owner=who,
        ledger=path,
        ssh_key=Path(environ.get("VASTFLEET_SSH_KEY") or path.with_name("id_ed25519")),
        clock=_clock(environ.get("VASTFLEET_CLOCK", "").strip(), local=local),
    )


def _clock(text: str, *, local: bool) -> Clock:
    if not text:
        return Clock()
    if not local:
        raise _wrong("VASTFLEET_CLOCK is only for an emulator on this machine: real hosts bill by the wall's time")
    try:
        return Clock.parse(text)
    except ValueError as error:
        raise _wrong(f"VASTFLEET_CLOCK: {error}") from error


def _wrong(text: str) -> Misconfigured:
    return Misconfigured(Reason.BAD_REQUEST, text)
