"""Records that are replayed: against a server, and against a View."""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import msgspec
import pytest
from mcp.server.mcpserver import MCPServer

from tests.cli.running import transom
from tests.idle_clock import run_at_once
from transom import App, Host, InProcessRenderer, Policy
from transom.channel import Channel
from transom.connections.targets import way_to
from transom.errors import UsageError
from transom.server import Views
from transom.testing import replay as replay_module
from transom.testing.replay import Difference, Replay, differences
from transom.testing.replay_view import open_page
from transom.traffic import Recorder, TrafficMessage

URI = "ui://shop/list.html"


def shop(total: int = 3, extra: str = "") -> MCPServer:
    views = Views()
    page = views.add(URI, html="<!doctype html><html><body>Shop</body></html>")

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show(status: str = "open") -> dict[str, Any]:
        """Show the shop."""
        return {"total": total, "status": status, **({"extra": extra} if extra else {})}

    @views.helper
    def fetch(id: str) -> str:
        """Fetch one."""
        return f"{id} costs {total}"

    return MCPServer("shop", extensions=[views])


def view(
    answer: str = "picked", argument: str = "A-1", announces: bool = False, fetches: bool = True
) -> Callable[[], App]:
    def make() -> App:
        app = App("shop", "1.0.0")

        @app.tool(annotations={"readOnlyHint": True})
        async def pick() -> str:
            """Pick one."""
            if fetches:
                await app.call_server_tool("fetch", {"id": argument})
            if announces:
                await app.send_log("info", "not compared")
                await app.send_tool_list_changed()
            return answer

        return app

    return make


@pytest.fixture
async def record(tmp_path: Path) -> Path:
    """A View is opened, and its tool is called, which calls the server."""
    path = tmp_path / "record.jsonl"
    renderer = InProcessRenderer({URI: view()})
    with Recorder(path) as recorder:
        async with Host(renderer=renderer, policy=Policy.trusting(), traffic=recorder) as host:
            await host.add_server("shop", shop())
            await host.call_tool("show", {"status": "open"})
            await host.call_tool("shop-1__pick")
    return path


async def replayed_server(record: Path, server: MCPServer, *ignore: str) -> list[Difference]:
    return await Replay(record, ignore=ignore).run(await way_to(server)(), timeout=5)


def replayed_view(record: Path, make: Callable[[], App]) -> list[Difference]:
    replay = Replay(record, "view")

    async def replayed() -> list[Difference]:
        async with (
            InProcessRenderer({URI: make}) as renderer,
            open_page(replay, shop(), renderer) as channel,
        ):
            return await replay.run(channel, timeout=30)

    return run_at_once(replayed())


async def test_a_server_that_did_not_change_does_not_differ(record: Path):
    assert await replayed_server(record, shop()) == []


async def test_what_a_server_answers_otherwise_is_shown_with_its_place(record: Path):
    found = await replayed_server(record, shop(total=4, extra="new"))
    places = {(each.what, each.path, each.recorded, each.now) for each in found}
    assert ("the answer to tools/call show", "result.structuredContent.total", 3, 4) in places
    assert {each.path for each in found} > {"result.structuredContent.extra"}
    fetched = next(each for each in found if each.what == "the answer to tools/call fetch")
    assert str(fetched) == (
        f"message {fetched.number}, the answer to tools/call fetch, result.content[0].text\n"
        '  recorded: "A-1 costs 3"\n'
        '  now:      "A-1 costs 4"'
    )
    ignored = "result.structuredContent.*", "result.content*"
    assert await replayed_server(record, shop(total=4, extra="new"), *ignored) == []


def test_a_view_that_did_not_change_does_not_differ(record: Path):
    assert replayed_view(record, view()) == []


@pytest.mark.parametrize(
    ("make", "what", "path"),
    [
        (view(answer="chosen"), "the answer to tools/call pick", "result.content[0].text"),
        (view(argument="A-2"), "tools/call fetch", "params.arguments.id"),
        (view(announces=True), "notifications/tools/list_changed that is not in the record", ""),
    ],
    ids=["answer", "argument", "more"],
)
def test_what_a_view_does_otherwise_is_shown(
    record: Path, make: Callable[[], App], what: str, path: str
):
    [found] = replayed_view(record, make)
    assert (found.what, found.path) == (what, path)


def test_what_a_view_does_not_do_any_more_is_shown(record: Path):
    [found] = replayed_view(record, view(fetches=False))
    assert (found.what, found.now) == ("tools/call fetch", msgspec.UNSET)
    assert str(found).endswith("now:      nothing")


async def test_a_server_that_dies_is_shown(record: Path):
    class Dead:
        async def receive(self) -> bytes:
            from transom.errors import ChannelClosed

            raise ChannelClosed("it crashed")

        async def send(self, data: bytes) -> None: ...
        async def aclose(self) -> None: ...

    dead: Channel = Dead()
    [found] = await Replay(record).run(dead, timeout=1)
    assert found.now == "closed: it crashed"


QUESTION = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'
ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}'
EXTRA = b'{"jsonrpc":"2.0","method":"notifications/x","params":{}}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'


class Scripted:
    """The other side of a channel: it sends this, whatever it is sent, and then nothing more."""

    def __init__(self, sends: Iterable[bytes], *, takes: bool = True) -> None:
        self.sends: Iterator[bytes] = iter(sends)
        self.takes = takes

    async def receive(self) -> bytes:
        await asyncio.sleep(0)
        for data in self.sends:
            return data
        return await asyncio.Future()

    async def send(self, data: bytes) -> None:
        if not self.takes:
            await asyncio.Future()

    async def aclose(self) -> None: ...


def replayed(record: Path, channel: Channel) -> list[Difference]:
    return run_at_once(Replay(record).run(channel, timeout=30))


def recording(path: Path, *messages: tuple[bool, bytes], name: str = "shop") -> Path:
    with Recorder(path) as recorder:
        for from_host, data in messages:
            recorder.on_message(
                TrafficMessage("server", name, from_host, data, time.time(), time.monotonic())
            )
    return path


async def test_a_server_that_never_stops_sending_is_replayed_and_only_so_much_is_kept(
    tmp_path: Path,
):
    path = recording(tmp_path / "r.jsonl", (True, QUESTION), (False, ANSWER))
    large = b'{"jsonrpc":"2.0","method":"notifications/y","params":"%b"}' % (b"x" * 5_000_000)
    noise = Scripted(chain([large], repeat(EXTRA, 1000), [ANSWER], repeat(PROGRESS)))
    *extras, left_out = await Replay(path).run(noise, timeout=30)
    assert {each.what for each in extras} == {"notifications/x that is not in the record"}
    assert len(extras) == 200
    size = len(large) + 800 * len(EXTRA)
    assert left_out.what == "messages that are not in the record"
    assert left_out.now == f"801 more, {size} bytes, that are left out here"


def test_a_server_has_only_so_long_to_become_quiet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(replay_module, "_QUIET", 3600.0)
    path = recording(tmp_path / "r.jsonl", (True, EXTRA))
    assert replayed(path, Scripted([])) == []


def test_a_server_that_takes_nothing_is_shown(tmp_path: Path):
    path = recording(tmp_path / "r.jsonl", (True, QUESTION), (False, ANSWER))
    [found] = replayed(path, Scripted([], takes=False))
    assert found.now == "does not take what it is sent, for 30 s"


@pytest.mark.parametrize("line", [b"this is no JSON", b'"\xff"', b"[" * 5000, b"[1]"])
def test_what_is_no_message_is_shown_and_the_rest_is_compared(tmp_path: Path, line: bytes):
    path = recording(tmp_path / "r.jsonl", (True, QUESTION), (False, ANSWER))
    [found] = replayed(path, Scripted([line, ANSWER]))
    assert found.what == "a line that is no message that is not in the record"
    before = recording(tmp_path / "b.jsonl", (True, QUESTION), (False, line), (False, ANSWER))
    assert replayed(before, Scripted([line, ANSWER])) == []


def test_a_message_of_no_known_form_is_shown(tmp_path: Path):
    odd = b'{"method":{},"id":{}}'
    path = recording(tmp_path / "r.jsonl", (True, odd), (False, odd))
    assert replayed(path, Scripted([odd])) == []
    assert len(replayed(path, Scripted([odd, odd]))) == 1


ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"


def test_what_is_shown_has_nothing_that_a_terminal_obeys(tmp_path: Path):
    shown = str(Difference(1, f"x {ESCAPES}", f"result.{ESCAPES}", {ESCAPES: 1}, ESCAPES))
    assert all(line.isprintable() for line in shown.split("\n"))
    assert shown.split("\n", maxsplit=1)[0].startswith("message 1, x \\u001b]0;owned")
    path = recording(tmp_path / "r.jsonl", (True, EXTRA), name=ESCAPES)
    other = recording(tmp_path / "o.jsonl", (True, EXTRA), name="other")
    path.write_bytes(path.read_bytes() + other.read_bytes())
    ran = transom("replay", str(path), "examples/orders.py")
    assert ran.returncode == 2
    assert "name one:" in ran.stderr
    assert ran.stderr.removesuffix("\n").isprintable()


def test_long_texts_are_shown_where_they_differ():
    [_, recorded, now] = str(Difference(1, "x", "y", "a" * 999 + "b" * 999, "a" * 999)).split("\n")
    assert recorded == f"  recorded: …{'a' * 40}{'b' * 160}… (2000 characters)"
    assert now == f'  now:      …{"a" * 40}" (1001 characters)'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("2026-01-12T10:00:00Z", "2026-11-17T09:30:00.123Z"),
        ("2026-01-12", "2026-11-17"),
        ("0b6de2a4-5d53-4f0b-8a0c-2f3b4c5d6e7f", "9b6de2a4-5d53-4f0b-8a0c-2f3b4c5d6e70"),
        ("tok_5f2c1d9e8b7a6c5d4e3f", "tok_0a1b2c3d4e5f6a7b8c9d"),
        (1768212000, 1794907800.5),
        (1768212000000, 1794907800000),
    ],
)
def test_ids_and_times_that_look_alike_are_equal(before: Any, after: Any):
    assert list(differences({"x": [before]}, {"x": [after]}, "result")) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [("A-1", "A-2"), (3, 4), ("2026-01-12", "soon"), (True, False), (None, 0), ([1], [1, 2])],
)
def test_other_values_are_compared(before: Any, after: Any):
    assert len(list(differences({"x": before}, {"x": after}, "result"))) == 1


def test_a_record_without_such_messages_is_refused(tmp_path: Path):
    path = tmp_path / "empty.jsonl"
    Recorder(path).close()
    with pytest.raises(UsageError, match=r"empty\.jsonl has no messages of a view"):
        Replay(path, "view")
    ran = transom("replay", str(path), "examples/orders.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "has no messages of a server" in ran.stderr


def test_a_record_that_is_not_utf8_is_refused_with_its_line(tmp_path: Path):
    path = recording(tmp_path / "r.jsonl", (True, QUESTION), (False, ANSWER))
    path.write_bytes(path.read_bytes().replace(b'"tools":[]', b'"tools":"\xff"'))
    ran = transom("replay", str(path), "examples/orders.py")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert ran.stderr == f"transom replay: {path}, line 2: not UTF-8\n"


def test_a_server_or_view_is_named_if_there_are_several(record: Path):
    lines = record.read_text().splitlines(keepends=True)
    record.write_text("".join(lines) + "".join(lines).replace('"name":"shop"', '"name":"other"'))
    with pytest.raises(UsageError, match="several of a server, name one: shop, other"):
        Replay(record)
    with pytest.raises(UsageError, match="has no server none; it has: shop, other"):
        Replay(record, name="none")
    assert Replay(record, name="other").name == "other"
