"""Replicas of the gateway behind a balancer: real processes, a real Redis, official clients."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Self

import httpx2
import mcp
import pytest
from mcp.client.streamable_http import streamable_http_client
from redis.asyncio import Redis

from tests.browser.views import html
from tests.cli.running import transom
from tests.gateway.stateless import call
from tests.gateway.test_http import BOTH, INITIALIZE, text_of
from tests.gateway.test_stateless import events, post
from tests.redis_server import RedisServer

SERVER = Path(__file__).parent / "replica_server.py"
TOKEN = "correct-horse-battery"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


class Balancer:
    """Passes each connection on to the next of its `ports`."""

    def __init__(self) -> None:
        self.ports: list[int] = []
        self.url = ""
        self._next = 0

    async def connected(self, reader: Any, writer: Any) -> None:
        port = self.ports[self._next % len(self.ports)]
        self._next += 1
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def balancer() -> AsyncGenerator[Balancer]:
    made = Balancer()
    server = await asyncio.start_server(made.connected, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"
    try:
        yield made
    finally:
        server.close()


class Replica:
    def __init__(self, process: asyncio.subprocess.Process, port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}/mcp"


class Fleet:
    """Gateways on one Redis, with a server that writes down its calls."""

    def __init__(self, bus: str, folder: Path) -> None:
        self.calls = folder / "calls"
        self.calls.touch()
        self._page = folder / "page.html"
        self._page.write_text(html("let n = 0; tools.add = ({ by }) => `now ${n += by}`;"))
        self._bus = bus
        self._processes: list[asyncio.subprocess.Process] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for process in self._processes:
            if process.returncode is None:
                process.terminate()
        await asyncio.gather(*(process.communicate() for process in self._processes))

    async def start(self, count: int, *options: str) -> list[Replica]:
        return await asyncio.gather(*(self._start(options) for _ in range(count)))

    async def _start(self, options: tuple[str, ...]) -> Replica:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "transom", "gateway", "--http", "0.0.0.0:0", *options),
            *("--", sys.executable, str(SERVER), str(self.calls), str(self._page)),
            env=os.environ | {"TRANSOM_TOKEN": TOKEN, "TRANSOM_BUS": self._bus},
            stderr=asyncio.subprocess.PIPE,
        )
        self._processes.append(process)
        assert process.stderr is not None
        told = (await process.stderr.readline()).decode()
        port = re.search(r":(\d+)/mcp$", told.strip())
        assert port is not None, told
        return Replica(process, int(port[1]))

    def count(self, tool: str) -> int:
        return self.calls.read_text().count(f" {tool}\n")


@asynccontextmanager
async def client(url: str, mode: Any) -> AsyncGenerator[mcp.Client]:
    """An official client that uses each connection once, as behind a balancer of requests."""
    limits = httpx2.Limits(max_keepalive_connections=0)
    async with (
        httpx2.AsyncClient(headers=HEADERS, limits=limits, timeout=30) as http,
        mcp.Client(streamable_http_client(url, http_client=http), mode=mode) as made,
    ):
        yield made


@pytest.mark.nightly
async def test_any_of_three_replicas_answers_any_request(redis_url: str, tmp_path: Path):
    async with Fleet(redis_url, tmp_path) as fleet, balancer() as front:
        replicas = await fleet.start(3)
        front.ports = [each.port for each in replicas]

        # Sessions: each client has a server of its own, whichever replica is asked.
        async with client(front.url, "legacy") as one, client(front.url, "legacy") as two:
            for n in range(1, 7):
                first, second = (
                    text_of(await one.call_tool("count")),
                    text_of(await two.call_tool("count")),
                )
                assert (first.split()[0], second.split()[0]) == (str(n), str(n))
                assert first != second
        # Without sessions, whoever bears the token is one principal.
        async with client(front.url, "auto") as one, client(front.url, "auto") as two:
            assert one.protocol_version == "2026-07-28"
            results = await asyncio.gather(
                *(each.call_tool("count") for each in (one, two) for _ in range(6))
            )
            texts = sorted(text_of(each).split() for each in results)
            assert len({pid for _, _, pid in texts}) == 1
            assert {int(n) for n, _, _ in texts} == set(range(1, 13))
        assert fleet.count("count") == 24

        async with httpx2.AsyncClient(headers=HEADERS) as http:
            # A session that has ended has ended everywhere, and one that never was is nowhere.
            began = await http.post(replicas[0].url, json=INITIALIZE, headers=BOTH)
            session = {"mcp-session-id": began.headers["mcp-session-id"], **BOTH}
            assert (await http.delete(replicas[1].url, headers=session)).status_code == 200
            for each in replicas:
                request = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
                for headers in (session, {**BOTH, "mcp-session-id": "no such session"}):
                    answer = await http.post(each.url, json=request, headers=headers)
                    assert (answer.status_code, "Session not found" in answer.text) == (404, True)
        async with httpx2.AsyncClient() as http:
            for each in replicas:  # each of them asks for the token
                assert (await post(http, each.url, "tools/list")).status_code == 401


async def test_a_killed_replica_ends_its_calls_once_and_another_goes_on(
    redis_url: str, tmp_path: Path
):
    async with Fleet(redis_url, tmp_path) as fleet, balancer() as front, AsyncExitStack() as stack:
        [owner] = await fleet.start(1, "--headless")
        front.ports = [owner.port]
        old = await stack.enter_async_context(client(front.url, "legacy"))
        new = await stack.enter_async_context(client(front.url, "auto"))
        opened = text_of(await new.call_tool("show"))
        assert "is open" in opened
        [handle] = set(re.findall(r'view_id "([^"]+)"', opened))
        await old.call_tool("count")

        # Another replica, which reaches the View by its handle.
        [other] = await fleet.start(1, "--headless")
        front.ports = [owner.port, other.port]
        add = {"view_id": handle, "name": "add", "arguments": {"by": 1}}
        for n in range(1, 5):
            assert text_of(await new.call_tool("call_view_tool", add)) == f"now {n}"

        # Calls are under way at the first one, by way of the second, when the first is killed.
        front.ports = [other.port]
        http = await stack.enter_async_context(httpx2.AsyncClient(headers=HEADERS, timeout=60))
        began = await http.post(owner.url, json=INITIALIZE, headers=BOTH)
        session = {"mcp-session-id": began.headers["mcp-session-id"], **BOTH}
        request = {"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": call("hang")}
        waiting = [
            asyncio.create_task(http.post(other.url, json=request, headers=session)),
            asyncio.create_task(
                post(http, other.url, "tools/call", call("hang"), id=9, token=TOKEN)
            ),
        ]
        while fleet.count("hang") < 2:  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.05)
        owner.process.kill()
        async with asyncio.timeout(30):
            for ended in await asyncio.gather(*waiting):
                [answer] = (
                    [ended.json()]
                    if ended.headers["content-type"] == "application/json"
                    else events(ended.text.splitlines())
                )
                assert (answer["id"], answer["error"]["code"]) == (9, -32000)
                assert "whether it was carried out is not known" in answer["error"]["message"]
        assert fleet.count("hang") == 2

        # The session is over; the principal is at the other replica now, which knows its View.
        gone = await http.post(other.url, json=request, headers=session)
        assert gone.status_code == 404
        closed = await new.call_tool("call_view_tool", add)
        assert closed.is_error
        assert "the replica of the gateway that had it is gone. Call show to open" in text_of(
            closed
        )
        [again] = set(re.findall(r'view_id "([^"]+)"', text_of(await new.call_tool("show"))))
        assert again != handle
        assert "-2." in again
        assert text_of(await new.call_tool("call_view_tool", {**add, "view_id": again})) == "now 1"
        async with client(front.url, "legacy") as after:
            assert text_of(await after.call_tool("count")).startswith("1 in")
        assert (fleet.count("hang"), fleet.count("show")) == (2, 2)


@pytest.mark.processes
async def test_a_replica_that_was_stopped_executes_nothing_that_was_tried_again_elsewhere(
    redis_url: str, tmp_path: Path
):
    async with Fleet(redis_url, tmp_path) as fleet, Redis.from_url(redis_url) as redis:
        [owner] = await fleet.start(1)
        async with httpx2.AsyncClient(headers=HEADERS, timeout=60) as http:

            async def count(replica: Replica) -> dict[str, Any]:
                answer = await post(http, replica.url, "tools/call", call("count"), token=TOKEN)
                return answer.json()

            assert "result" in await count(owner)
            [alive] = await redis.keys("transom:*:alive:*")
            [other] = await fleet.start(1)
            owner.process.send_signal(signal.SIGSTOP)
            queued = await asyncio.gather(*(count(other) for _ in range(5)))
            for each in queued:
                assert "whether it was carried out is not known" in each["error"]["message"]
            again = await asyncio.gather(*(count(other) for _ in range(5)))
            assert all("result" in each for each in again)
            owner.process.send_signal(signal.SIGCONT)
            inbox = alive.replace(b"alive", b"inbox")
            async with asyncio.timeout(20):
                while not await redis.exists(alive) or await redis.xlen(inbox):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            assert "result" in await count(owner)  # at the other one
        assert fleet.count("count") == 1 + 5 + 1


@pytest.mark.processes
async def test_without_redis_a_replica_serves_its_own_clients_and_says_why_not_others(
    tmp_path: Path,
):
    with RedisServer() as server:
        async with Fleet(server.url, tmp_path) as fleet:
            one, two = await fleet.start(2)
            async with httpx2.AsyncClient(headers=HEADERS, timeout=30) as http:

                async def count(replica: Replica) -> httpx2.Response:
                    return await post(http, replica.url, "tools/call", call("count"), token=TOKEN)

                assert (await count(one)).status_code == 200
                assert (await count(two)).status_code == 200
                server.kill()
                assert (await count(one)).status_code == 200
                refused = await count(two)
                assert refused.status_code == 503
                assert "cannot be reached" in refused.json()["error"]["message"]
                began = await http.post(one.url, json=INITIALIZE, headers=BOTH)
                assert began.status_code == 503
                assert (await count(one)).status_code == 200
                server.start()
                async with asyncio.timeout(30):
                    while (answer := await count(two)).status_code != 200:  # noqa: ASYNC110
                        await asyncio.sleep(0.1)
                last = await count(one)
                pids = {
                    r.json()["result"]["content"][0]["text"].split()[-1] for r in (answer, last)
                }
                assert len(pids) == 1


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--bus", "redis://127.0.0.1:1"], "--bus goes with --http"),
        (["--http", "0", "--bus", "http://x"], "The URL of a bus is redis://HOST:PORT"),
        (["--http", "0", "--bus", "redis://:secret@127.0.0.1:1"], "127.0.0.1:1 cannot be reached"),
    ],
)
def test_a_bus_that_cannot_be_used_is_said_at_the_start(options: list[str], says: str):
    ran = transom("gateway", *options, "--", "true")
    assert (ran.returncode, says in ran.stderr) == (2, True), ran.stderr
    assert "secret" not in ran.stderr
    assert "Traceback" not in ran.stderr
