"""The client on real sockets: servers that drip, hang, flood, hang up and are not there, under virtual time."""

import asyncio
import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from controller.model.faults import Fault, Misconfigured, Retry, Unclear
from controller.model.market import CreateRequest
from controller.model.reasons import Reason
from controller.vast import http
from controller.vast.client import VastClient

KEY = "key-that-must-not-leak-71c0ffee"
ENV = "env-that-must-not-leak-\N{SNOWMAN}"
INSTANCE_KEY = "instance-key-that-must-not-leak"
RENT = CreateRequest(offer_id=7, image="i", disk_gib=50, label="vf/a/b/c", env={"TOKEN": ENV, "N": "1"})

Reply = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]

pytestmark = pytest.mark.looptime


@pytest.fixture
async def served(clock) -> AsyncIterator[Callable[[Reply], Awaitable[VastClient]]]:
    """Start a server that treats every connection so; a client of it with a deadline of 30 seconds."""
    closing: list[Any] = []

    async def start(reply: Reply) -> VastClient:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await reader.readuntil(b"\r\n\r\n")
                await reply(reader, writer)
            except (ConnectionError, asyncio.IncompleteReadError):
                pass
            finally:
                writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = VastClient(api_key=KEY, url=f"http://127.0.0.1:{port}", clock=clock, deadline=30.0)
        closing.extend((client, server))
        return client

    yield start
    for one in closing:
        if isinstance(one, VastClient):
            await one.close()
        else:
            one.close()


def answer(status: str, body: str) -> bytes:
    data = body.encode()
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\nConnection: close\r\n\r\n".encode() + data


def say(status: str, body: str) -> Reply:
    async def reply(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(status, body))
        await writer.drain()

    return reply


async def drip(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One byte every two seconds, for ever: no single read takes long."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while not writer.is_closing():
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(2)  # noqa: TID251 - the server's own pace, in virtual time


async def hang(reader: asyncio.StreamReader, _writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def half(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(answer("200 OK", '{"success": true, "new_contract": 5}')[:-10])
    await writer.drain()


@pytest.mark.parametrize("reply", [drip, hang])
async def test_deadline(reply, served):
    """A server that drips or hangs holds a call for its deadline and no longer."""
    client = await served(reply)
    began = asyncio.get_running_loop().time()
    with pytest.raises(Unclear) as caught:
        await client.create(RENT)
    assert caught.value.reason is Reason.CREATE_UNCLEAR
    assert asyncio.get_running_loop().time() - began == pytest.approx(30, abs=0.5)


@pytest.mark.parametrize("reply", [hang_up, half])
async def test_cut_answer(reply, served):
    """A create whose connection is cut before or within the answer is Unclear, and not sent again."""
    client = await served(reply)
    with pytest.raises(Unclear):
        await client.create(RENT)
    assert client.calls == {"create": 1}


async def test_nobody_there(clock):
    """A create that cannot connect was not sent: it is tried again, then left to the caller as Retry."""
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    client = VastClient(api_key=KEY, url=f"http://127.0.0.1:{port}", clock=clock)
    with pytest.raises(Retry, match="not sent") as caught:
        await client.create(RENT)
    assert (caught.value.reason, client.calls["create"]) == (Reason.UNREACHABLE, 3)
    await client.close()


async def test_flood(served, monkeypatch):
    """An answer beyond the bound is dropped while it is read."""
    monkeypatch.setattr(http, "MOST_BYTES", 100_000)

    async def flood(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while not writer.is_closing():
            writer.write(b" " * 10_000)
            await writer.drain()

    with pytest.raises(Retry, match="beyond 100000 bytes"):
        await (await served(flood)).list()


async def test_redirect_is_not_followed(served):
    """The key does not go where an answer points."""
    client = await served(say("308 Permanent Redirect\r\nLocation: http://127.0.0.1:1/", ""))
    with pytest.raises(Misconfigured, match="console"):
        await client.list()
    assert client.calls == {"list": 1}


ECHOES = [
    say("404 Not Found", f'{{"error": "auth_error", "msg": "Invalid user key {KEY}"}}'),
    say("400 Bad Request", f'{{"error": "bad", "msg": "env.TOKEN: {ENV} will not do"}}'),
    say("400 Bad Request", f"env.TOKEN: no string [type=string_type, input_value='{ENV[:20]}', input_type=str]"),
    say("400 Bad Request", f'{{"detail": [{{"loc": ["env"], "input": "{ENV}"}}]}}'),
    say("400 Bad Request", "x" * 190 + ENV),
    say("200 OK", f'{{"success": true, "instance_api_key": "{INSTANCE_KEY}"}}'),
    say("200 OK", f'{{"success": true, "instance_api_key": "{INSTANCE_KEY}'),
    say("200 OK", f'{{"success": false, "error": "x", "instance_api_key": "{INSTANCE_KEY}", "new_contract": 5}}'),
    say("200 OK", f"instance_api_key={INSTANCE_KEY}"),
    say("500 Oops", f'{{"instance_api_key": "{INSTANCE_KEY}", "trace'),
    say("200 OK", f'{{"success": true, "new_contract": 5, "instance_api_key": "{INSTANCE_KEY}"}}'),
    hang_up,
    half,
]


@pytest.mark.parametrize("reply", ECHOES)
async def test_secrets_stay(reply, served, caplog):
    """No key or env value is in a log line, an exception, its chain or a repr, whatever vast.ai repeats."""
    caplog.set_level(logging.DEBUG)
    client = await served(reply)
    texts = []
    try:
        texts.append(repr(await client.create(RENT)))
    except Fault as fault:
        texts.append("".join(traceback.format_exception(fault)))
        chain: BaseException | None = fault
        while chain is not None:
            texts += [repr(chain), str(chain.args)]
            chain = chain.__cause__ or chain.__context__
    texts += [repr(client), repr(vars(client)), caplog.text]
    assert "create" in texts[0] or texts[0] == "5"
    for secret in (KEY, ENV[:16], INSTANCE_KEY):
        assert not any(secret in text for text in texts)
