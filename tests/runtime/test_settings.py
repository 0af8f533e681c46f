from pathlib import Path

import pytest

from controller.model.faults import Misconfigured
from controller.runtime.settings import VAST_URL, read_settings

KEY = {"VAST_API_KEY": "SECRET-key", "HOME": "/home/me"}


def settings(*, needs_key=True, **environ):
    return read_settings(KEY | environ, needs_key=needs_key)


def test_the_defaults_are_vast_ai_and_the_users_state():
    """With a key alone it is vast.ai over https, the wall's time, and a ledger where XDG keeps state."""
    made = settings()
    assert (made.url, made.owner, made.clock.speed) == (VAST_URL, "default", 1.0)
    assert made.ledger == Path("/home/me/.local/state/vastfleet/ledger.db")
    assert made.ssh_key == Path("/home/me/.local/state/vastfleet/id_ed25519")


def test_arguments_win_over_the_environment():
    """What is typed wins over what is exported, and the key for SSH follows the ledger."""
    environ = KEY | {"VASTFLEET_OWNER": "env", "VASTFLEET_LEDGER": "/env/l.db", "XDG_STATE_HOME": "/xdg"}
    made = read_settings(environ, ledger=Path("/arg/l.db"), owner="arg")
    assert (made.ledger, made.owner, made.ssh_key) == (Path("/arg/l.db"), "arg", Path("/arg/id_ed25519"))
    assert read_settings(environ).ledger == Path("/env/l.db")
    assert settings(XDG_STATE_HOME="/xdg").ledger == Path("/xdg/vastfleet/ledger.db")
    assert settings(VASTFLEET_SSH_KEY="/keys/mine").ssh_key == Path("/keys/mine")


LOCAL = ["http://127.0.0.1:8080", "http://localhost", "http://[::1]:80", "http://LOCALHOST:9", " http://127.0.0.1/ "]


@pytest.mark.parametrize("url", [*LOCAL, "https://vast.example", "HTTPS://vast.example/base/"])
def test_a_key_goes_over_https_or_to_this_machine(url):
    """An address with https, or of this machine, is taken, without the slash at its end."""
    assert settings(VAST_URL=url).url == url.strip().rstrip("/")


@pytest.mark.parametrize(
    "url",
    [
        "http://console.vast.ai",
        "http://127.0.0.1.example.com",
        "http://localhost.example.com",
        "http://127.0.0.1@example.com",
        "http://localhost:80@example.com/",
        "http://0.0.0.0:80",
        "http://192.168.0.1",
        "http://example.com/#127.0.0.1",
        "ftp://console.vast.ai",
        "console.vast.ai",
        "https://",
        "https:///api",
        "http://[::1",
        "https://vast.example:99999",
        "javascript:alert(1)",
    ],
)
def test_an_address_that_would_show_the_key_to_others_is_refused(url):
    """A key is not sent in the clear to anybody else, however much the address looks like this machine."""
    with pytest.raises(Misconfigured, match="VAST_URL"):
        settings(VAST_URL=url)


@pytest.mark.parametrize("owner", ["a", "me", "team-1", "0", "a" * 40])
def test_an_owner_that_fits_a_label(owner):
    """Lower-case letters, digits and hyphens, up to 40, are an owner."""
    assert settings(VASTFLEET_OWNER=owner).owner == owner


@pytest.mark.parametrize("owner", ["A", "a/b", "a b", "-a", "a-", "a" * 41, "é", "vf/x/y", "a\nb"])
def test_an_owner_that_would_break_labels_is_refused(owner):
    """An owner with a slash, or anything else that a label could be misread for, is refused."""
    with pytest.raises(Misconfigured, match="owner"):
        settings(VASTFLEET_OWNER=owner)
    with pytest.raises(Misconfigured, match="owner"):
        read_settings(KEY, owner=owner)


@pytest.mark.parametrize("key", ["", "   "])
def test_without_a_key_it_says_where_to_get_one(key):
    """No key is told at once where one is needed, and does not matter where none is."""
    with pytest.raises(Misconfigured, match="VAST_API_KEY is not set"):
        settings(VAST_API_KEY=key)
    assert settings(needs_key=False, VAST_API_KEY=key).api_key == ""


def test_the_key_is_not_shown():
    """Settings can be printed without showing the key."""
    assert "SECRET" not in repr(settings())


def test_a_faster_clock_is_for_an_emulator_here_only():
    """Against real hosts time is the wall's; an emulator on this machine may have its own."""
    assert settings(VAST_URL=LOCAL[0], VASTFLEET_CLOCK="60@1700000000").clock.speed == 60
    with pytest.raises(Misconfigured, match="VASTFLEET_CLOCK"):
        settings(VASTFLEET_CLOCK="60@1700000000")


@pytest.mark.parametrize("text", ["fast", "0@1", "-1@1", "nan@1", "inf@1", "60@nan", "60@inf", "60@x", "@5"])
def test_a_clock_that_is_none_is_refused(text):
    """A speed or an origin that is no number would make every bill and every limit nonsense."""
    with pytest.raises(Misconfigured, match="VASTFLEET_CLOCK"):
        settings(VAST_URL=LOCAL[0], VASTFLEET_CLOCK=text)
