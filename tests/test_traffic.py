"""Traffic: what a listener sees of both legs of a host, and what a record keeps of it."""

import asyncio
import json
import logging
import os
import re
import time
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.memory import gateway
from tests.host.page import Page, PageRenderer
from tests.host.shop import URI, editor, shop
from tests.server.clients import serving
from transom import Host, InProcessRenderer, Policy
from transom.channel import memory_pair
from transom.connections import RemoteServer
from transom.errors import UsageError
from transom.session import Session
from transom.traffic import (
    Dropped,
    RecordedMessage,
    Recorder,
    TrafficMessage,
    observe,
    read_record,
)


class Seen(list[TrafficMessage]):
    """What a listener got."""

    def on_message(self, message: TrafficMessage) -> None:
        self.append(message)

    def of(self, leg: str) -> list[tuple[str, Any]]:
        return [
            (each.sender, each.message.get("method", "answer")) for each in self if each.leg == leg
        ]


def seen(data: bytes = b"{}", *, name: str = "orders", from_host: bool = True) -> TrafficMessage:
    return TrafficMessage("server", name, from_host, data, time.time(), time.monotonic())


def messages(path: Path) -> list[RecordedMessage]:
    return [each for each in read_record(path) if isinstance(each, RecordedMessage)]


async def use(host: Host) -> None:
    await host.add_server("orders", shop())
    await host.call_tool("show_orders", {"status": "open"})
    await host.call_tool("orders-1__write", {"words": "hello"})


def open_host(listener: Any) -> Host:
    return Host(
        renderer=InProcessRenderer({URI: editor()}),
        policy=Policy.trusting(),
        traffic=listener,
    )


async def test_a_listener_sees_every_message_of_both_legs_in_order():
    listener = Seen()
    async with open_host(listener) as host:
        await use(host)
    assert {each.name for each in listener if each.leg == "server"} == {"orders"}
    assert {each.name for each in listener if each.leg == "view"} == {"orders-1"}
    server = [entry for entry in listener.of("server") if entry[0] == "host"]
    assert server[0] == ("host", "server/discover")
    assert {("host", "tools/list"), ("host", "tools/call"), ("host", "resources/read")} < {*server}
    view = listener.of("view")
    assert view[:3] == [
        ("view", "ui/initialize"),
        ("host", "answer"),
        ("view", "ui/notifications/initialized"),
    ]
    call = view.index(("host", "tools/call"))
    assert view[call + 1] == ("view", "answer")
    [sent] = [each for each in listener if each.leg == "view" and b"tools/call" in each.data]
    assert sent.message["params"] == {"name": "write", "arguments": {"words": "hello"}}
    assert [each.monotonic for each in listener] == sorted(each.monotonic for each in listener)


def test_a_channel_without_a_listener_is_used_as_it_is():
    channel, _ = memory_pair()
    assert observe(channel, "view", "orders-1", None) is channel


async def test_a_listener_that_raises_breaks_nothing_and_is_not_called_again(
    caplog: pytest.LogCaptureFixture,
):
    class Broken:
        calls = 0

        def on_message(self, message: TrafficMessage) -> None:
            self.calls += 1
            raise RuntimeError("full")

    listener = Broken()
    with caplog.at_level(logging.ERROR, "transom.traffic"):
        async with open_host(listener) as host:
            await use(host)
    assert listener.calls == 2  # once for each leg
    assert "gets no more traffic of orders-1" in caplog.text


async def test_a_message_that_has_to_wait_is_seen_once():
    ours, theirs = memory_pair(capacity=1)
    listener = Seen()
    channel: Any = observe(ours, "view", "orders-1", listener)
    first, second = b'{"n":1}', b'{"n":2}'
    assert channel.send_nowait(first)
    assert not channel.send_nowait(second)
    sending = asyncio.ensure_future(channel.send(second))
    assert [await theirs.receive(), await theirs.receive()] == [first, second]
    await sending
    assert [each.data for each in listener] == [first, second]


async def test_a_record_has_a_line_for_each_message(tmp_path: Path):
    path = tmp_path / "orders.jsonl"
    with Recorder(path) as recorder:
        async with open_host(recorder) as host:
            await use(host)
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    [call] = [
        each
        for each in lines
        if each["leg"] == "view" and each["message"].get("method") == "tools/call"
    ]
    assert call.keys() == {"time", "at", "leg", "name", "from", "message"}
    assert (call["name"], call["from"]) == ("orders-1", "host")
    assert lines[0]["at"] == 0
    read = messages(path)
    assert [each.value for each in read] == [each["message"] for each in lines]
    assert [each.sender for each in read] == [each["from"] for each in lines]


async def test_a_record_has_no_headers_and_nothing_that_is_typed_for_a_model(tmp_path: Path):
    path = tmp_path / "orders.jsonl"
    renderer = PageRenderer()
    server_headers: list[str] = []
    app = shop().streamable_http_app()

    async def served(scope: Any, receive: Any, send: Any) -> None:
        server_headers.append(str(scope.get("headers")))
        await app(scope, receive, send)

    with Recorder(path) as recorder:
        async with (
            serving(served) as url,
            Host(renderer=renderer, policy=Policy.trusting(), traffic=recorder) as host,
        ):
            headers = {"Authorization": "Bearer t0ken"}
            await host.add_server("orders", RemoteServer(url, headers=headers))
            await host.call_tool("show_orders", {"status": "open"})
            page = renderer.pages_of.setdefault("orders-1", Page())
            page.secret = True
            await host.call_tool("look_at_view", {"view_id": "orders-1"})
            typed = {"view_id": "orders-1", "ref": "f3", "action": "type", "value": "hunter2"}
            await host.call_tool("act_on_view", typed)
    assert page.text == "hunter2"
    assert "Bearer t0ken" in str(server_headers)
    written = path.read_text()
    assert "show_orders" in written
    assert "ui/initialize" in written
    assert not re.search("t0ken|authorization|hunter2", written, re.IGNORECASE)


def test_only_this_user_can_read_a_record(tmp_path: Path):
    path = tmp_path / "orders.jsonl"
    path.write_text("old")
    path.chmod(0o644)
    with path.open() as opened_before, Recorder(path) as recorder:
        recorder.on_message(seen())
        assert opened_before.read() == "old"
    assert path.stat().st_mode & 0o777 == 0o600
    assert len(messages(path)) == 1
    Recorder(tmp_path / "new.jsonl").close()
    assert (tmp_path / "new.jsonl").stat().st_mode & 0o777 == 0o600
    assert {each.name for each in tmp_path.iterdir()} == {"orders.jsonl", "new.jsonl"}


def test_only_a_regular_file_is_replaced_by_a_record(tmp_path: Path):
    target = tmp_path / "precious"
    target.write_text("precious")
    (tmp_path / "link").symlink_to(target)
    (tmp_path / "dangling").symlink_to(tmp_path / "none")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = {each.name for each in tmp_path.iterdir()}
    for name in ("link", "dangling", "pipe", "folder"):
        with pytest.raises(UsageError, match=f"{name} cannot be written: it is no regular file"):
            Recorder(tmp_path / name)
    assert target.read_text() == "precious"
    assert {each.name for each in tmp_path.iterdir()} == before


def test_a_file_that_cannot_be_replaced_is_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = tmp_path / "orders.jsonl"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(1, "Not permitted")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(UsageError, match="cannot be written: Not permitted"):
        Recorder(path)
    assert [each.read_text() for each in tmp_path.iterdir()] == ["old"]


def test_what_is_no_json_is_recorded_as_text_on_one_line(tmp_path: Path):
    path = tmp_path / "odd.jsonl"
    odd = [b'{"a":\n 1}', b"nonsense\n{}", b'"\xff"', b"[" * 5000]
    with Recorder(path) as recorder:
        for data in odd:
            recorder.on_message(seen(data))
    assert len(path.read_bytes().splitlines()) == len(odd)
    spaced, *others = messages(path)
    assert spaced.value == {"a": 1}
    assert [each.value for each in others] == [each.decode(errors="replace") for each in odd[1:]]


def test_a_record_is_bounded_and_says_what_it_does_not_have(tmp_path: Path):
    path = tmp_path / "full.jsonl"
    with Recorder(path, max_messages=2, max_message_bytes=100) as recorder:
        for data in (b'{"n":1}', b'"%b"' % (b"x" * 200), b'{"n":3}', b'{"n":4}'):
            recorder.on_message(seen(data))
        assert recorder.dropped == Dropped(2, 14)
    first, large, *dropped = read_record(path)
    assert isinstance(first, RecordedMessage)
    assert isinstance(large, RecordedMessage)
    assert (first.value, large.value, large.left_out) == ({"n": 1}, None, 202)
    assert dropped == [Dropped(1, 7), Dropped(2, 14)]

    small = tmp_path / "small.jsonl"
    with Recorder(small, max_bytes=1000) as recorder:
        for number in range(100):
            recorder.on_message(seen(b'{"n":%d}' % number))
    assert small.stat().st_size < 1000 + 100  # and what it says about those that are missing
    kept = len(messages(small))
    assert recorder.dropped.messages == 100 - kept


def test_a_file_that_is_no_record_is_refused_with_its_line(tmp_path: Path):
    path = tmp_path / "other.jsonl"
    path.write_text('{"some": "other file"}\n')
    with pytest.raises(UsageError, match=r"other\.jsonl, line 1: not a line of a record"):
        list(read_record(path))
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        list(read_record(tmp_path / "none.jsonl"))
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        Recorder(tmp_path / "no" / "folder.jsonl")


async def test_an_answer_of_a_view_that_leaves_at_once_arrives_as_if_nobody_watched():
    ours, theirs = memory_pair()
    async with Session(
        observe(ours, "view", "orders-1", Seen()),
        on_request=lambda _: b"{}",
        on_notification=lambda _: None,
    ) as session:
        call = asyncio.ensure_future(session.request("tools/call"))
        id = json.loads(await theirs.receive())["id"]
        session.notify_soon("ui/notifications/host-context-changed")
        await theirs.send(json.dumps({"jsonrpc": "2.0", "id": id, "result": {}}).encode())
        await theirs.aclose()
        assert bytes(await call) == b"{}"
        assert await session.wait_closed() == "the other side closed the channel"


async def test_a_gateway_has_the_traffic_of_its_servers_and_views():
    listener = Seen()
    async with gateway(traffic=listener) as at:
        await at.open()
    assert ("view", "ui/initialize") in listener.of("view")
    assert ("host", "initialize") in listener.of("server")
