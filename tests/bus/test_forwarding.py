import asyncio
from typing import Any

import httpx2
import pytest
import websockets

from transom.bus import Bus, forward, serve_forwarded
from transom.errors import BusError, NoOwner
from transom.serving import listen, serve


def ignore(_: object) -> None:
    pass


class Front:
    """The ASGI application of a worker that forwards all it gets, with what became of it."""

    def __init__(self, bus: Bus) -> None:
        self.errors: list[BusError] = []
        self._bus = bus

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await forward(self._bus, "x", scope, receive, send, context={"user": "ada"})
        except BusError as error:
            self.errors.append(error)
            if scope["type"] == "http":
                await send({"type": "http.response.start", "status": 503, "headers": []})
                await send({"type": "http.response.body", "body": str(error).encode()})
            else:
                await send({"type": "websocket.close", "code": 1013})


class Back:
    """The ASGI application of the worker that has the name."""

    def __init__(self) -> None:
        self.scopes: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self.events: asyncio.Queue[str] = asyncio.Queue()
        self.go_on = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.scopes.put_nowait(scope)
        if scope["type"] == "websocket":
            await self.talk(receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        start = {"type": "http.response.start", "status": 201, "headers": [(b"x-a", b"\xff")]}
        await send(start)
        if scope["path"] == "/stream":
            await send({"type": "http.response.body", "body": b"first,", "more_body": True})
            waiting = asyncio.create_task(self.go_on.wait())
            gone = asyncio.create_task(receive())
            await asyncio.wait([waiting, gone], return_when="FIRST_COMPLETED")
            if gone.done():
                self.events.put_nowait(gone.result()["type"])
            for task in (waiting, gone):
                task.cancel()
        await send({"type": "http.response.body", "body": body})

    async def talk(self, receive: Any, send: Any) -> None:
        assert (await receive())["type"] == "websocket.connect"
        await send({"type": "websocket.accept", "subprotocol": "chat", "headers": []})
        while True:
            message = await receive()
            if message["type"] == "websocket.disconnect":
                self.events.put_nowait(f"disconnect {message['code']}")
                return
            if message.get("text") == "bye":
                await send({"type": "websocket.close", "code": 4001, "reason": "bye"})
                return
            await send(
                {"type": "websocket.send", **{k: message[k] for k in message if k != "type"}}
            )


class Pair:
    """Two workers: `front` listens at `port`, `back` has the name."""

    def __init__(self, front: Front, back: Back, port: int, owner: Bus) -> None:
        self.front, self.back, self.owner = front, back, owner
        self.http = f"http://127.0.0.1:{port}"
        self.ws = f"ws://127.0.0.1:{port}"


@pytest.fixture
async def pair(here: Bus, there: Bus):
    front, back = Front(here), Back()
    there.on_open("asgi", serve_forwarded(back))
    assert await there.claim("x", ignore) is not None
    sock = listen("127.0.0.1", 0)
    async with serve(front, [sock]):
        yield Pair(front, back, sock.getsockname()[1], there)


async def next_of(queue: asyncio.Queue[Any]) -> Any:
    async with asyncio.timeout(20):
        return await queue.get()


async def test_a_request_is_answered_by_the_worker_that_has_the_name(pair: Pair):
    async with httpx2.AsyncClient() as client:
        body = bytes(range(256)) * 20_000
        response = await client.post(f"{pair.http}/a%20b?c=d", content=body, headers={"x-b": "e"})
    assert (response.status_code, response.content) == (201, body)
    assert (b"x-a", b"\xff") in response.headers.raw
    scope = await next_of(pair.back.scopes)
    assert (scope["method"], scope["path"], scope["raw_path"]) == ("POST", "/a b", b"/a%20b")
    assert scope["query_string"] == b"c=d"
    assert (b"x-b", b"e") in scope["headers"]
    assert scope["client"][0] == "127.0.0.1"
    assert scope["extensions"]["transom"] == {"name": "x", "context": {"user": "ada"}}


async def test_a_client_cannot_bring_a_context_of_its_own(pair: Pair):
    async with httpx2.AsyncClient() as client:
        await client.get(pair.http, headers={"transom": "x", "extensions": "{}"})
    scope = await next_of(pair.back.scopes)
    assert scope["extensions"]["transom"]["context"] == {"user": "ada"}


async def test_a_response_comes_as_it_is_made(pair: Pair):
    async with httpx2.AsyncClient() as client, client.stream("GET", f"{pair.http}/stream") as got:
        chunks = got.aiter_bytes()
        assert await anext(chunks) == b"first,"
        pair.back.go_on.set()
        assert [chunk async for chunk in chunks] == []


async def test_a_client_that_goes_away_is_gone_for_the_other_worker(pair: Pair):
    async with httpx2.AsyncClient() as client, client.stream("GET", f"{pair.http}/stream") as got:
        assert await anext(got.aiter_bytes()) == b"first,"
    assert await next_of(pair.back.events) == "http.disconnect"
    assert pair.front.errors == []


async def test_a_name_that_nobody_has_is_an_error_of_the_request(pair: Pair):
    lease = await pair.owner.claim("x", ignore)
    assert lease is not None
    await lease.release()
    async with httpx2.AsyncClient() as client:
        response = await client.get(pair.http)
    assert (response.status_code, response.text) == (503, "No worker has it")
    assert isinstance(pair.front.errors[0], NoOwner)


async def test_a_socket_goes_through_both_ways(pair: Pair):
    async with websockets.connect(pair.ws, subprotocols=["chat"], max_size=None) as socket:
        assert socket.subprotocol == "chat"
        for message in ("text", b"\xff\x00", "x" * 3_000_000):
            await socket.send(message)
            assert await socket.recv() == message
        await socket.send("bye")
        await socket.wait_closed()
        assert (socket.close_code, socket.close_reason) == (4001, "bye")
    assert (await next_of(pair.back.scopes))["subprotocols"] == ["chat"]


async def test_a_page_that_closes_its_socket_is_gone_for_the_other_worker(pair: Pair):
    async with websockets.connect(pair.ws, subprotocols=["chat"]) as socket:
        await socket.close(4000)
    assert await next_of(pair.back.events) == "disconnect 4000"


async def test_a_socket_whose_worker_gives_it_up_may_be_opened_again(pair: Pair):
    async with websockets.connect(pair.ws, subprotocols=["chat"]) as socket:
        lease = await pair.owner.claim("x", ignore)
        assert lease is not None
        await lease.release()
        await socket.wait_closed()
        assert socket.close_code == 1012
    assert await next_of(pair.back.events) == "disconnect 1006"
    assert pair.front.errors == []


async def test_a_socket_to_nobody_is_refused(here: Bus):
    front = Front(here)
    sock = listen("127.0.0.1", 0)
    async with serve(front, [sock]):
        with pytest.raises(websockets.InvalidStatus):
            await websockets.connect(f"ws://127.0.0.1:{sock.getsockname()[1]}")
    assert isinstance(front.errors[0], NoOwner)
