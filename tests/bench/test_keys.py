import asyncssh
import pytest

from controller.bench.keys import load_or_make_key
from controller.model.faults import Misconfigured


def test_key_is_made_once(tmp_path):
    """The first call makes a key that only its owner reads; the next one finds it."""
    path = tmp_path / "state" / "ssh_key"
    made = load_or_make_key(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert made.public.startswith("ssh-ed25519 ")
    assert load_or_make_key(path).public == made.public
    assert [file.name for file in path.parent.iterdir()] == ["ssh_key"]


def test_key_is_not_shown(tmp_path):
    """The private half is in no representation."""
    made = load_or_make_key(tmp_path / "key")
    assert "PRIVATE" not in repr(made)
    assert repr(made).startswith("KeyPair(public='ssh-ed25519 ")


def test_key_that_others_may_read_is_refused(tmp_path):
    """A key with loose permissions is named with the command that mends it."""
    path = tmp_path / "key"
    load_or_make_key(path)
    path.chmod(0o644)
    with pytest.raises(Misconfigured, match=f"chmod 600 {path}"):
        load_or_make_key(path)


@pytest.mark.parametrize("content", [b"", b"not a key\n", None])
def test_what_is_no_usable_key_is_refused(tmp_path, content):
    """An empty file, something else, or a key under a passphrase is left as it is and named."""
    path = tmp_path / "key"
    if content is None:
        content = asyncssh.generate_private_key("ssh-ed25519").export_private_key("pkcs8-pem", passphrase="p")
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(Misconfigured, match="is no private key without a passphrase"):
        load_or_make_key(path)
    assert path.read_bytes() == content
