"""One page for several processes: who is found, who is asked, and what if it goes wrong."""

import asyncio
import json
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from tests.web.page import StagePage
from transom.errors import TransomError
from transom.host.views.ui_resource import UIResource
from transom.web.local import stage_server as sharing
from transom.web.local.renderers import BrowserRenderer
from transom.web.local.stage_server import RunningStages, StageServer, private_folder
from transom.web.stage import Stage


@pytest.fixture
def runtime(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The user's runtime folder, with a name that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="t-") as made:
        monkeypatch.setenv("XDG_RUNTIME_DIR", made)
        yield Path(made)


@asynccontextmanager
async def sharing_stage(**options: Any) -> AsyncIterator[tuple[Stage, RunningStages]]:
    stage = Stage(**options)
    async with StageServer(stage, shared=True), RunningStages(stage) as running:
        yield stage, running


@asynccontextmanager
async def page_of(stage: Stage) -> AsyncIterator[StagePage]:
    """A page that has told all it has to."""
    async with StagePage(stage) as page:
        await page.tell(do="surroundings", value={"theme": "light"})
        await stage.wait_for_page()
        yield page


@asynccontextmanager
async def joined(page: StagePage, stage: Stage) -> AsyncIterator[StagePage]:
    """That page, when it was told to join that Stage: what it is for the Stage."""
    told = await page.heard("join")
    assert told["origin"] == stage.origin
    guest = StagePage(stage, token=told["token"])
    guest.origin = page.origin
    async with guest:
        await guest.tell(do="surroundings", value={"theme": "light"})
        yield guest


def view(view_id: str = "orders-1") -> UIResource:
    return UIResource(view_id=view_id, server="orders", uri="ui://orders/list", html="<p>")


def listen(path: Path) -> socket.socket:
    """Somebody else's socket."""
    made = socket.socket(socket.AF_UNIX)
    made.bind(str(path))
    made.listen()
    return made


# --- joining ---------------------------------------------------------------------------------


@pytest.mark.usefixtures("runtime")
async def test_a_page_of_another_stage_shows_the_views() -> None:
    async with (
        sharing_stage() as (first, _),
        sharing_stage() as (second, running),
        page_of(first) as page,
    ):
        joining = asyncio.create_task(running.join())
        async with joined(page, second) as guest:
            assert await joining is True
            assert second.page_origin == first.origin
            channel = second.mount(view())
            assert (await guest.heard("mount"))["view"] == "orders-1"
            await guest.views["orders-1"].send(b'{"here":1}')
            assert await channel.receive() == b'{"here":1}'
        assert page.views == {}


@pytest.mark.usefixtures("runtime")
async def test_the_sandbox_of_a_guest_page_lets_that_page_frame_it() -> None:
    async with (
        sharing_stage() as (first, _),
        sharing_stage() as (second, running),
        page_of(first) as page,
    ):
        early = second.mount(view("early"))
        joining = asyncio.create_task(running.join())
        async with joined(page, second) as guest:
            await joining
            await guest.view("early")
            assert early.reason is None
            for key in second.views:
                mounted = second.mounted(key)
                assert mounted is not None
                host = mounted.host
                assert f"frame-ancestors {first.origin}" in mounted.csp
                url = f"http://127.0.0.1:{host.rpartition(':')[2]}/transom-view"
                async with httpx2.AsyncClient(verify=False) as client:
                    answer = await client.get(url, headers={"Host": host})
                assert f'content="{first.origin}"' in answer.text


@pytest.mark.usefixtures("runtime")
async def test_a_third_finds_the_page_when_the_first_is_gone() -> None:
    async with (
        sharing_stage() as (second, running),
        sharing_stage() as (third, later),
        AsyncExitStack() as stack,
    ):
        async with sharing_stage() as (first, _), page_of(first) as page:
            joining = asyncio.create_task(running.join())
            guest = await stack.enter_async_context(joined(page, second))
            await joining
        assert second.has_page
        joining = asyncio.create_task(later.join())
        async with joined(guest, third):
            assert await joining is True
            assert third.page_origin == first.origin


@pytest.mark.usefixtures("runtime")
async def test_without_anybody_else_there_is_nothing_to_join() -> None:
    async with sharing_stage() as (_, running):
        assert await running.join() is False


@pytest.mark.usefixtures("runtime")
async def test_a_stage_without_a_page_has_none_to_share() -> None:
    async with sharing_stage(), sharing_stage() as (_, running):
        assert await running.join() is False


async def test_a_page_of_another_version_is_not_asked(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        sharing_stage() as (first, _),
        sharing_stage() as (_, running),
        page_of(first) as page,
    ):
        answers: list[Any] = []
        send = sharing._send

        async def sending(writer: Any, message: Any) -> None:
            answers.append(message)
            if isinstance(message, sharing._PageQuery):
                message.version = "0.0.1"
            await send(writer, message)

        monkeypatch.setattr(sharing, "_send", sending)
        assert await running.join() is False
        assert answers[-1] == sharing._PageOffer(None)
        assert [m["do"] for m in page.told] == []


@pytest.mark.usefixtures("runtime")
async def test_a_page_that_does_not_come_is_not_waited_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sharing, "_SHOWN_WITHIN", 0.05)
    async with (
        sharing_stage() as (first, _),
        sharing_stage() as (_, running),
        page_of(first) as page,
    ):
        assert await running.join() is False
        await page.heard("join")


# --- who is let in ---------------------------------------------------------------------------


async def refused(stage: Stage, origin: str, token: str) -> bool:
    """Whether a page of that origin with that token is turned away."""
    page = StagePage(stage, token=token)
    page.origin = origin
    try:
        await page.connect()
    except InvalidStatus:
        return True
    return (await page.closed_with())[0] == 4401


async def test_an_invitation_is_for_one_origin_and_not_the_stages_own_token() -> None:
    guest, other = "http://127.0.0.1:4001", "http://127.0.0.1:4002"
    stage = Stage()
    async with StageServer(stage):
        token = stage.access.invite(guest)
        assert await refused(stage, other, token)
        assert await refused(stage, other, stage.token)
        assert await refused(stage, guest, stage.token)
        assert await refused(stage, stage.origin, token)
        assert await refused(stage, guest, "")
        assert not stage.has_page
        page = StagePage(stage, token=token)
        page.origin = guest
        async with page:
            assert stage.page_origin == guest
            newer = stage.access.invite(other)
            assert await refused(stage, guest, token)
            assert newer != token


async def test_a_page_of_its_own_ends_the_invitation() -> None:
    guest = "http://127.0.0.1:4001"
    stage = Stage()
    async with StageServer(stage):
        token = stage.access.invite(guest)
        invited = StagePage(stage, token=token)
        invited.origin = guest
        async with invited, StagePage(stage):
            assert await invited.over() == (4410, "another page took over")
            assert stage.page_origin == stage.origin
            assert await refused(stage, guest, token)


async def test_only_a_shared_page_may_reach_other_stages_and_only_at_their_paths() -> None:
    for shared in (False, True):
        stage = Stage()
        async with StageServer(stage, shared=shared), httpx2.AsyncClient(verify=False) as client:
            policy = (await client.get(stage.origin)).headers["content-security-policy"]
        assert ("ws://127.0.0.1:*/socket;" in policy) is shared
        assert ("http://*.localhost:*/transom-view;" in policy) is shared
        assert policy.count("*:*") == 0
        assert policy.count(":*/") == (2 if shared else 0)


async def test_there_is_nothing_of_it_for_web_pages() -> None:
    async with sharing_stage_at_home() as stage, httpx2.AsyncClient(verify=False) as client:
        for path in ("/join", "/joining", "/page"):
            assert (await client.get(stage.origin + path)).status_code == 404
        with pytest.raises(InvalidStatus):
            await connect(stage.origin.replace("http", "ws") + "/socket", origin="http://x.example")


@asynccontextmanager
async def sharing_stage_at_home() -> AsyncIterator[Stage]:
    stage = Stage()
    async with StageServer(stage, shared=True):
        yield stage


# --- where they are found --------------------------------------------------------------------


async def test_the_place_is_the_users_alone_and_left_clean(runtime: Path) -> None:
    async with sharing_stage():
        folder = runtime / "transom"
        assert folder.stat().st_mode & 0o777 == 0o700
        (entry,) = folder.iterdir()
        assert entry.name.startswith(f"{os.getpid()}-")
        assert entry.stat().st_mode & 0o777 == 0o600
    assert list(folder.iterdir()) == []


def test_without_a_runtime_folder_it_is_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "not/absolute"):
        monkeypatch.setenv("XDG_RUNTIME_DIR", value)
        assert private_folder() == tmp_path / ".cache" / "transom"


@pytest.mark.parametrize("mode", [0o755, 0o770, 0o701, 0o777])
async def test_a_folder_that_others_can_reach_is_not_used(runtime: Path, mode: int) -> None:
    (runtime / "transom").mkdir()
    (runtime / "transom").chmod(mode)
    with pytest.raises(TransomError, match="not this user's alone"):
        await RunningStages(Stage()).__aenter__()
    assert list((runtime / "transom").iterdir()) == []


async def test_a_folder_of_somebody_else_is_not_used(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(TransomError, match="not this user's alone"):
        await RunningStages(Stage()).__aenter__()


async def test_a_link_to_a_folder_is_not_used(runtime: Path) -> None:
    (runtime / "there").mkdir(mode=0o700)
    (runtime / "transom").symlink_to(runtime / "there")
    with pytest.raises(TransomError, match="not this user's alone"):
        await RunningStages(Stage()).__aenter__()


async def test_a_file_in_the_way_is_said_so(runtime: Path) -> None:
    (runtime / "transom").write_text("")
    with pytest.raises(TransomError, match="Pages are not shared: .*/transom: File exists"):
        await RunningStages(Stage()).__aenter__()


async def test_a_folder_with_too_long_a_name_is_said_so(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / ("x" * 100)))
    with pytest.raises(TransomError, match="too long a name"):
        await RunningStages(Stage()).__aenter__()


async def test_what_a_dead_process_left_is_removed(runtime: Path) -> None:
    async with sharing_stage() as (_, running):
        left = runtime / "transom" / "1-dead.sock"
        listen(left).close()
        fresh = runtime / "transom" / "1-fresh.sock"
        listen(fresh).close()
        os.utime(left, (1, 1))
        assert await running.join() is False
        assert not left.exists()
        assert fresh.exists()  # its process may be about to listen


async def test_what_is_no_socket_is_neither_used_nor_removed(runtime: Path) -> None:
    async with sharing_stage() as (_, running):
        folder = runtime / "transom"
        (folder / "note.sock").write_text('{"page": "http://127.0.0.1:1"}')
        (folder / "link.sock").symlink_to("/dev/null")
        os.utime(folder / "note.sock", (1, 1))
        assert await running.join() is False
        assert (folder / "note.sock").exists()


# --- what others say -------------------------------------------------------------------------


@asynccontextmanager
async def stranger(runtime: Path, *lines: bytes) -> AsyncIterator[list[bytes]]:
    """Somebody who listens where Stages do, and says this, a line for a line."""
    heard: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for line in lines:
            heard.append(await reader.readline())
            writer.write(line)
        await writer.drain()
        heard.append(await reader.readline())
        writer.close()

    path = runtime / "transom" / "0-stranger.sock"
    server = await asyncio.start_unix_server(answer, path)
    os.utime(path, (1, 1))
    yield heard
    server.close()


@pytest.mark.parametrize(
    "said",
    [
        b"\n",
        b"{}\n",
        b"[]\n",
        b'{"page": 7}\n',
        b'{"page": null}\n',
        b'{"page": ""}\n',
        b'{"page": "https://evil.example"}\n',
        b'{"page": "http://127.0.0.1:80.evil.example"}\n',
        b'{"page": "http://127.0.0.1:80/x"}\n',
        b'{"page": "http://127.0.0.1:80\\n"}\n',
        b'{"page": "http://localhost:80"}\n',
        b'{"page": "null"}\n',
        b'{"page": "*"}\n',
        b"\xff\xfe\n",
        b"x" * 100_000 + b"\n",
        b'{"page": ',
        b"",
    ],
)
async def test_a_stranger_is_not_invited(
    runtime: Path, monkeypatch: pytest.MonkeyPatch, said: bytes
) -> None:
    monkeypatch.setattr(sharing, "_ANSWER_WITHIN", 0.5)
    async with sharing_stage() as (stage, running), stranger(runtime, said) as heard:
        assert await running.join() is False
        assert stage.access.guest == ""
        assert len(heard) <= 2
        assert stage.token not in str(heard)


async def test_after_one_that_fails_the_next_is_asked(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sharing, "_ANSWER_WITHIN", 2)
    async with (
        sharing_stage() as (first, _),
        sharing_stage() as (second, running),
        page_of(first) as page,
        stranger(runtime) as heard,
    ):
        joining = asyncio.create_task(running.join())
        async with joined(page, second):
            assert await joining is True
        assert len(heard) == 1


@pytest.mark.parametrize(
    "said",
    [
        [b"x" * 100_000 + b"\n"],
        [b"{}\n"],
        [b"nonsense\n"],
        [b'{"version": "\xff"}\n'],
        [b'{"other":' + b"[" * 10_000 + b"\n"],
        [b'{"version": "?"}\n', b'{"origin": "http://127.0.0.1:1", "token": "t"}\n'],
        [b"ASK", b'{"origin": "https://evil.example", "token": "t"}\n'],
        [b"ASK", b'{"origin": "http://127.0.0.1:1", "token": 7}\n'],
        [b"ASK", json.dumps({"origin": "http://127.0.0.1:1", "token": "t" * 300}).encode() + b"\n"],
        [b"ASK", b"\n"],
    ],
)
async def test_what_makes_no_sense_does_not_reach_the_page(
    runtime: Path, said: list[bytes]
) -> None:
    ask = json.dumps({"version": sharing.__version__}).encode() + b"\n"
    async with sharing_stage() as (stage, _), page_of(stage) as page:
        (path,) = (runtime / "transom").iterdir()
        reader, writer = await asyncio.open_unix_connection(path)
        for line in said:
            writer.write(ask if line == b"ASK" else line)
        answers = await reader.read()
        assert b"{}" not in answers
        writer.close()
        stage.mount(view())
        await page.view("orders-1")
        assert [m["do"] for m in page.told] == ["mount"]


async def test_who_asks_and_then_says_nothing_is_not_waited_for_at_the_end(runtime: Path) -> None:
    ask = json.dumps({"version": sharing.__version__}).encode() + b"\n"
    async with sharing_stage() as (stage, _), page_of(stage):
        (path,) = (runtime / "transom").iterdir()
        reader, writer = await asyncio.open_unix_connection(path)
        writer.write(ask)
        assert json.loads(await reader.readline()) == {"page": stage.origin}
    assert await reader.read() == b""
    writer.close()


# --- the renderer ----------------------------------------------------------------------------


@pytest.mark.usefixtures("runtime")
async def test_a_renderer_uses_the_page_that_is_there_and_opens_none() -> None:
    opened: list[str] = []

    async def never(url: str) -> None:
        opened.append(url)

    first = BrowserRenderer(share=True, open_page=never)
    second = BrowserRenderer(share=True, open_page=never)
    async with first, second, page_of(first._stage) as page:
        opening = asyncio.create_task(second.open(view()))
        async with joined(page, second._stage) as guest:
            await opening
            await guest.view("orders-1")
    assert opened == []


async def test_a_renderer_that_cannot_share_opens_a_page(runtime: Path) -> None:
    (runtime / "transom").mkdir(mode=0o755)
    pages: list[StagePage] = []

    async def open_page(_: str) -> None:
        page = StagePage(renderer._stage)
        pages.append(page)
        await page.__aenter__()
        await page.tell(do="surroundings", value={})

    renderer = BrowserRenderer(share=True, open_page=open_page)
    async with renderer:
        await renderer.open(view())
        await pages[0].view("orders-1")
        await pages[0].__aexit__(None, None, None)


async def test_a_renderer_shares_nothing_unless_told_to(runtime: Path) -> None:
    async with BrowserRenderer():
        assert not (runtime / "transom").exists()
