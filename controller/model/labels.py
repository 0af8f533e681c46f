"""The label every instance carries on vast.ai: who owns it, for which fleet, and a mark of its own.

    vf/<owner>/<fleet>/<nonce>

The nonce ends in a check over owner, fleet and id, so that a label typed by hand, copied to another fleet or cut
short is not ours. Labels are the only trace of a create whose answer was lost, and of a fleet whose ledger was lost.
"""

import hashlib
import re
from dataclasses import dataclass

PREFIX = "vf"
CHECK_LENGTH = 6
OWNER = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Mark:
    """What a label of ours says."""

    fleet: str
    nonce: str


def make(*, owner: str, fleet: str, new_id: str) -> tuple[str, str]:
    """Return the nonce and the label of a new instance."""
    nonce = f"{new_id}{_check(owner, fleet, new_id)}"
    return nonce, f"{PREFIX}/{owner}/{fleet}/{nonce}"


def read(label: str | None, *, owner: str) -> Mark | None:
    """What the label says, or None if it is not ours to the letter."""
    parts = (label or "").split("/")
    if len(parts) != 4 or parts[0] != PREFIX or parts[1] != owner:  # noqa: PLR2004 - the four parts of a label
        return None
    fleet, nonce = parts[2], parts[3]
    new_id, check = nonce[:-CHECK_LENGTH], nonce[-CHECK_LENGTH:]
    return Mark(fleet, nonce) if new_id and check == _check(owner, fleet, new_id) else None


def _check(owner: str, fleet: str, new_id: str) -> str:
    return hashlib.sha256(f"{owner}/{fleet}/{new_id}".encode()).hexdigest()[:CHECK_LENGTH]
