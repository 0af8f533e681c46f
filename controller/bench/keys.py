"""The controller's own SSH key: made at first use, readable by its owner alone. Called when the loop is wired."""

import contextlib
import os
from dataclasses import dataclass, field
from pathlib import Path

import asyncssh

from controller.model.faults import Misconfigured
from controller.model.reasons import Reason

OWNER_ONLY = 0o600
OTHERS = 0o077


@dataclass(frozen=True, slots=True)
class KeyPair:
    """`public`: one line in OpenSSH format, to be attached to instances."""

    private: asyncssh.SSHKey = field(repr=False)
    public: str


def load_or_make_key(path: Path) -> KeyPair:
    """Read the private key at `path`; make an Ed25519 one there, mode 0600, if there is none.

    Raises:
        Misconfigured: AUTH_FAILED, others may read the file, or it is no private key without a passphrase.
    """
    if not path.exists():
        _make(path)
    if path.stat().st_mode & OTHERS:
        raise Misconfigured(Reason.AUTH_FAILED, f"{path} can be read by others; run: chmod 600 {path}")
    try:
        key = asyncssh.read_private_key(path)
    except (asyncssh.KeyImportError, asyncssh.KeyEncryptionError) as error:
        raise Misconfigured(Reason.AUTH_FAILED, f"{path} is no private key without a passphrase: {error}") from error
    return KeyPair(key, key.export_public_key("openssh").decode().strip())


def _make(path: Path) -> None:
    """Put a key in place as a whole, or keep the one that another process put there meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    key = asyncssh.generate_private_key("ssh-ed25519", comment="vastfleet")
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OWNER_ONLY), "wb") as file:
        file.write(key.export_private_key("openssh"))
        file.flush()
        os.fsync(file.fileno())
    try:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(beside)
    finally:
        beside.unlink()
