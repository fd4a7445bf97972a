"""Listening sockets, and apps that are served on them."""

import asyncio
import errno
import socket
from typing import Any

import pytest

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
