"""Listening sockets, and apps that are served on them."""

import asyncio
import errno
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest

from transom import serving
from transom.errors import TransomError
from transom.serving import listen, serve


async def hello(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"hello"})


async def get(port: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()
    return answer


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_small_answers_are_sent_at_once_on_connections_that_were_accepted(host: str):
    try:
        sock = listen(host, 0)
    except OSError:
        pytest.skip(f"this machine has no {host}")
    option: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    def accepted(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("socket")
        option.set_result(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
        writer.close()

    async with await asyncio.start_server(accepted, sock=sock):
        _, writer = await asyncio.open_connection(*sock.getsockname()[:2])
        assert await option
        writer.close()


async def test_an_app_is_served_while_the_block_runs():
    first, second = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    ports = [sock.getsockname()[1] for sock in (first, second)]
    async with serve(hello, [first, second], ws="none"):
        answers = [await get(port) for port in ports]
    assert all(b"hello" in answer for answer in answers)
    assert not any(b"server:" in answer.lower() for answer in answers)
    for port in ports:
        with pytest.raises(ConnectionRefusedError):
            await get(port)


async def test_an_app_that_cannot_be_served_is_an_error_and_its_socket_is_closed():
    sock = listen("127.0.0.1", 0)
    with pytest.raises(TransomError, match="could not be started"):
        async with serve(hello, [sock], http="no.such.module:Protocol", ws="none"):
            pytest.fail("it is not served")
    assert sock.fileno() == -1


def test_an_address_that_is_taken_is_refused():
    with listen("127.0.0.1", 0) as taken, pytest.raises(OSError, match="in use") as refused:
        listen("127.0.0.1", taken.getsockname()[1])
    assert refused.value.errno == errno.EADDRINUSE


# --- half-open connections -------------------------------------------------------------------


@asynccontextmanager
async def served(app: Any = hello) -> AsyncIterator[int]:
    sock = listen("127.0.0.1", 0)
    async with serve(app, [sock], ws="none"):
        yield sock.getsockname()[1]


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nAccept",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HTTP/1.1\r\nHo",
    ],
    ids=["nothing", "half a line", "half the headers", "half of the second"],
)
async def test_a_connection_without_a_whole_request_is_closed(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
):
    assert 2 * serving._HEADERS_WITHIN == 20  # as docs/security.md says
    monkeypatch.setattr(serving, "_HEADERS_WITHIN", 0.05)
    async with served() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        with suppress(ConnectionResetError):
            await reader.read()  # ends when the other side closes
        writer.close()
        monkeypatch.undo()
        assert b"hello" in await get(port)


async def test_a_request_may_be_answered_slowly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "_HEADERS_WITHIN", 0.5)
    may_answer = asyncio.Event()

    async def slow(scope: Any, receive: Any, send: Any) -> None:
        asyncio.get_running_loop().call_later(1.2, may_answer.set)
        await may_answer.wait()
        await hello(scope, receive, send)

    async with served(slow) as port:
        assert b"hello" in await get(port)


async def test_a_crowd_of_half_open_connections_keeps_nobody_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(serving, "_MAX_CONNECTIONS", 3)
    async with served() as port:
        crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
        assert b"hello" in await get(port)
        open_ones = {asyncio.create_task(reader.read()) for reader, _ in crowd}
        while len(open_ones) > 3:
            _, open_ones = await asyncio.wait(open_ones, return_when=asyncio.FIRST_COMPLETED)
        for _, writer in crowd:
            writer.close()
