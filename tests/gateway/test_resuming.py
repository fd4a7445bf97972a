"""Streams of a session that break off, and go on where they did: `Last-Event-ID`."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import pytest

from tests.gateway.in_memory import Fake, text
from tests.gateway.test_http import BOTH, INITIALIZE, gateway, nothing_open
from transom.gateway.http import HttpGateway
from transom.gateway.http_session import _MAX_KEPT, _MAX_UNSENT, _MAX_UNSENT_BYTES, HttpSession

PROGRESS = "notifications/progress"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream begins at once, before there is anything to send on it."""
    monkeypatch.setattr("transom.gateway.http_session._KEEP_ALIVE", 0.01)
    monkeypatch.setattr("transom.gateway.http_session._WATCH_AFTER", 0.0)


class SentEvent(NamedTuple):
    id: str
    data: str
    retry: str


async def events(stream: httpx2.Response) -> AsyncIterator[SentEvent]:
    """The events of a stream."""
    fields: dict[str, str] = {}
    async for line in stream.aiter_lines():
        name, _, value = line.partition(":")
        if line and name:
            fields[name] = value.strip()
        elif fields:
            yield SentEvent(*(fields.get(each, "") for each in SentEvent._fields))
            fields = {}


def said(event: SentEvent) -> Any:
    """What a message is about: a number of a notification, or the text of an answer."""
    message = json.loads(event.data)
    if "result" in message:
        return message["result"]["content"][0]["text"]
    params = message.get("params", {})
    return params.get("progress", params.get("number", message.get("error", {}).get("message")))


class Session:
    """A client with a session at a gateway before a server that waits to be told what to do."""

    def __init__(self, http: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> None:
        self.http, self.url, self.headers = http, url, headers

    @asynccontextmanager
    async def calling(self, id: int = 5) -> AsyncIterator[AsyncIterator[SentEvent]]:
        """The events of a call; leaving the block breaks its stream off."""
        params = {"name": "work", "arguments": {}, "_meta": {"progressToken": id}}
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        async with self.http.stream("POST", self.url, json=message, headers=self.headers) as stream:
            yield events(stream)

    @asynccontextmanager
    async def getting(self, last: str | None = None) -> AsyncIterator[AsyncIterator[SentEvent]]:
        """The events of a GET, after the last that it knows."""
        more = {} if last is None else {"last-event-id": last}
        async with self.http.stream("GET", self.url, headers=self.headers | more) as stream:
            assert stream.status_code == 200, (await stream.aread(), stream.status_code)
            yield events(stream)

    async def refused(self, last: str) -> int:
        """The status of a GET that gets no stream."""
        async with self.http.stream(
            "GET", self.url, headers=self.headers | {"last-event-id": last}
        ) as stream:
            return stream.status_code


@asynccontextmanager
async def session(
    served: tuple[str, HttpGateway], version: str = "2025-11-25"
) -> AsyncIterator[Session]:
    url, _ = served
    async with httpx2.AsyncClient(timeout=None) as http:
        hello = {**INITIALIZE, "params": {**INITIALIZE["params"], "protocolVersion": version}}
        answer = await http.post(url, json=hello, headers=BOTH)
        given = {"mcp-session-id": answer.headers["mcp-session-id"]}
        yield Session(http, url, BOTH | given | {"mcp-protocol-version": version})


def working(version: str = "2025-11-25") -> Fake:
    server = Fake("one", ["work"], version=version)
    del server.answers["tools/call"]
    return server


async def progress(server: Fake, number: int, call: int = 1) -> None:
    asked = await server.hears("tools/call", times=call)
    token = asked["params"]["_meta"]["progressToken"]
    await server.tell(PROGRESS, {"progressToken": token, "progress": number})


async def finish(server: Fake, words: str = "done", call: int = 1) -> None:
    asked = await server.hears("tools/call", times=call)
    await server.reply(asked["id"], {"content": [text(words)]})


async def left(gateway: HttpGateway) -> HttpSession:
    """The only session, once it has noticed that nothing is read any more."""
    (found,) = gateway._clients.values()
    await nothing_open(found)
    return found


async def answered(session: HttpSession, id: int) -> None:
    """Wait until the answer to a call has come."""
    while id in session._in_flight:  # noqa: ASYNC110 - nobody but a test wants to know
        await asyncio.sleep(0)


@pytest.mark.parametrize(("version", "primed"), [("2025-11-25", True), ("2025-06-18", False)])
async def test_events_have_ids_and_the_first_says_when_to_come_back(
    version: str, primed: bool
) -> None:
    server = working(version)
    async with gateway(server.connect) as served, session(served, version) as client:
        async with client.calling() as stream:
            await progress(server, 1)
            first = await anext(stream)
            if primed:
                assert (first.data, first.retry) == ("", "1000")
                first, begun = await anext(stream), first.id
                assert begun != first.id
            assert said(first) == 1
            await finish(server)
            rest = [each async for each in stream]
        assert len({first.id, *(each.id for each in rest)} - {""}) == 2
        assert [said(each) for each in rest] == ["done"]


async def test_an_answer_that_comes_while_nobody_reads_is_kept_for_its_client() -> None:
    server = working()
    async with gateway(server.connect) as served, session(served) as client:
        async with client.calling() as stream:
            await progress(server, 1)
            begun, seen = await anext(stream), await anext(stream)
        away = await left(served[1])
        await progress(server, 2)
        await finish(server)
        await answered(away, 5)
        async with client.getting(seen.id) as stream:
            rest = [each async for each in stream]
        assert [said(each) for each in rest] == [2, "done"]
        # A client that lost more than it knew gets that as well, and every event once.
        async with client.getting(begun.id) as stream:
            assert [each async for each in stream] == [seen, *rest]


async def test_a_stream_goes_on_while_the_call_runs_and_only_its_last_reader_gets_it() -> None:
    server = working()
    async with (
        gateway(server.connect) as served,
        session(served) as client,
        client.calling() as first,
    ):
        await progress(server, 1)
        begun = await anext(first)
        assert said(await anext(first)) == 1
        async with client.getting(begun.id) as second:  # the first connection hangs somewhere
            assert said(await anext(second)) == 1
            assert [each async for each in first] == []
            await progress(server, 2)
            await finish(server)
            assert [said(each) async for each in second] == [2, "done"]


async def test_the_stream_for_everything_else_goes_on_as_well() -> None:
    server = working()
    async with gateway(server.connect) as served, session(served) as client:
        async with client.getting() as stream:
            begun = await anext(stream)
            await server.tell("notifications/news", {"number": 1})
            assert said(await anext(stream)) == 1
        await left(served[1])
        await server.tell("notifications/news", {"number": 2})
        async with client.getting(begun.id) as stream:
            assert [said(await anext(stream)) for _ in range(2)] == [1, 2]
            await server.tell("notifications/news", {"number": 3})
            assert said(await anext(stream)) == 3


async def test_an_id_is_worth_nothing_in_another_session_and_neither_is_a_strange_one() -> None:
    server, other = working(), working()
    connects = iter([server.connect, other.connect])
    async with (
        gateway(lambda: next(connects)()) as served,
        session(served) as client,
        session(served) as stranger,
        client.calling() as stream,
    ):
        await progress(server, 1)
        begun = await anext(stream)
        for id in (begun.id, "", "x", "1", "1.x", "-1.0", "1.0.0", "9" * 50 + ".1"):
            assert await stranger.refused(id) == 400
        await finish(server)
        assert [said(each) async for each in stream] == [1, "done"]


async def test_what_is_kept_for_a_client_that_stays_away_is_bounded() -> None:
    server = working()
    async with gateway(server.connect) as served, session(served) as client:
        begun: list[str] = []
        for number in range(1, _MAX_KEPT + 3):
            async with client.calling(number) as stream:
                await progress(server, 0, number)
                begun.append((await anext(stream)).id)
            away = await left(served[1])
        assert await client.refused(begun[0]) == 400
        for number in range(_MAX_UNSENT * 2):
            await progress(server, number, _MAX_KEPT + 1)
        await finish(server, "x" * _MAX_UNSENT_BYTES, _MAX_KEPT + 1)
        await answered(away, _MAX_KEPT + 1)
        async with client.getting(begun[_MAX_KEPT]) as stream:
            rest = [said(each) async for each in stream]
        assert len(rest) <= _MAX_UNSENT + 1
        assert rest[-2] == _MAX_UNSENT * 2 - 1
        assert "too large to be kept" in rest[-1]
