"""The browser without a window: pictures, and what if it dies, hangs or is not there."""

import asyncio
import gc
import os
import shutil
import signal
import struct
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from playwright.async_api import Playwright, async_playwright

from tests.browser.hosting import (
    Told,
    descendants,
    hosted,
    processes,
    show,
    signal_all,
    text_of,
    until_gone,
)
from transom import Host
from transom.errors import RequestTimeout, TransomError, ViewClosed
from transom.web.local import chromium
from transom.web.local import headless as headless_module
from transom.web.local.chromium import ChromiumProcess, Profile, find_chromium
from transom.web.local.headless import HeadlessRenderer

pytestmark = pytest.mark.processes

COUNT = """
let made = 0;
tools.count = () => { made += 1; return made; };
tools.forever = () => new Promise(() => {});
tools.paint = ({ colour }) => { document.body.style.background = colour; return "painted"; };
let asked = 0;
const ask = (method, params) => new Promise((resolve) => {
  asked += 1;
  const id = `ask-${asked}`;
  addEventListener("message", ({ data }) => { if (data.id === id) resolve(data); });
  say({ id, method, params });
});
tools.open = ({ url }) => ask("ui/open-link", { url });
tools.host = () => globalThis.host.hostCapabilities;
"""


@asynccontextmanager
async def headless(
    script: str = COUNT, **options: Any
) -> AsyncIterator[tuple[HeadlessRenderer, Host]]:
    renderer = HeadlessRenderer(**options)
    async with hosted(renderer, script) as host:
        yield renderer, host


def browser_of(renderer: HeadlessRenderer) -> str:
    """What the processes of its browser have in their command lines."""
    process = renderer._browser.options.process
    profile = renderer._browser._profile if process is None else process._profile
    assert profile is not None
    return str(profile.path)


def size_of(png: bytes) -> tuple[int, int]:
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    return struct.unpack(">II", png[16:24])


# --- at work ---------------------------------------------------------------------------------


async def test_a_view_is_shown_called_and_pictured() -> None:
    async with headless(size=(700, 500)) as (renderer, host):
        view = await show(host)
        white = await view.screenshot()
        width, height = size_of(white)
        assert 500 < width <= 700
        assert height >= 300
        assert await text_of(view.call_tool("paint", {"colour": "rgb(200, 30, 30)"})) == "painted"
        assert await view.screenshot() != white
        await view.close()
        with pytest.raises(ViewClosed):
            await renderer.screenshot(view.id)
        with pytest.raises(ViewClosed):
            await view.screenshot()


RESIZING = (
    COUNT
    + """
const size = (height) => say({ method: "ui/notifications/size-changed", params: { height } });
tools.resize = ({ height }) => size(height);
tools.dance = async () => {
  for (let step = 0; step < 35; step += 1) {
    size(200 + (step % 2) * 100);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
};
"""
)


async def test_a_picture_has_the_size_that_a_view_told_last_although_others_have_moved_a_lot() -> (
    None
):
    async with headless(RESIZING) as (_, host):
        restless, view = await show(host), await show(host)
        await restless.call_tool("dance")
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(restless.call_tool("dance"))
            for height in (150, 170, 190):
                await view.call_tool("resize", {"height": height})
                assert height <= size_of(await view.screenshot())[1] < height + 10


async def test_a_browser_is_gone_with_its_files_when_its_renderer_is() -> None:
    async with headless() as (renderer, host):
        await show(host)
        mark = browser_of(renderer)
    await until_gone(mark)
    assert not Path(mark).exists()  # noqa: ASYNC240


TALK = "console.warn('mind the gap'); setTimeout(() => { throw new Error('oh no'); });"


@pytest.mark.nightly
async def test_links_are_refused_since_nobody_is_there_and_the_console_is_read() -> None:
    written: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
    renderer = HeadlessRenderer(on_console=lambda kind, text: written.put_nowait((kind, text)))
    async with hosted(renderer, COUNT + TALK) as host:
        view = await show(host)
        seen = {await written.get(), await written.get()}
        assert ("warning", "mind the gap") in seen
        assert any(kind == "uncaught" and "oh no" in text for kind, text in seen)
        answer = await text_of(view.call_tool("open", {"url": "https://example.com"}))
        assert '"isError":true' in answer


# --- files -----------------------------------------------------------------------------------

FILES = """
let sent = 0;
tools.save = ({ names, bytes }) => new Promise((resolve) => {
  sent += 1;
  const id = `save-${sent}`;
  addEventListener("message", ({ data }) => {
    if (data.id === id) resolve(data.result ?? { error: data.error });
  });
  const text = "x".repeat(bytes);
  const contents = names.map((name) =>
    ({ type: "resource", resource: { uri: `file:///${name}`, mimeType: "text/plain", text } }));
  say({ id, method: "ui/download-file", params: { contents } });
});
tools.click = () => {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(["x".repeat(1000)]));
  link.download = "clicked.txt";
  link.click();
  return "clicked";
};
"""


@pytest.mark.nightly
@pytest.mark.timeout(180)  # 36 MB take their time when other work has the machine
async def test_no_files_are_saved_unasked_and_offering_many_large_ones_ends_no_other_view(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tempfile.mkdtemp()  # one with a long name, such as pytest's, is none to Chromium
    monkeypatch.setenv("TMPDIR", folder)
    monkeypatch.setattr(tempfile, "tempdir", folder)
    async with headless(FILES) as (_, host):
        view, other = await show(host), await show(host)
        offer = {"names": ["a.txt"], "bytes": 12_000_000}
        saves = (view.call_tool("save", offer, timeout=150) for _ in range(3))
        answers = await asyncio.gather(*map(text_of, saves))
        assert all('"isError":true' in answer for answer in answers)
        assert await text_of(view.call_tool("click")) == "clicked"
        assert await text_of(other.call_tool("click")) == "clicked"
        assert list(host.views) == [view.id, other.id]
        written = [path for path in Path(folder).rglob("*") if path.is_file()]  # noqa: ASYNC240
        assert not [path for path in written if "artifacts" in str(path) or path.suffix == ".txt"]
    shutil.rmtree(folder)


async def test_files_are_saved_where_they_are_wanted_up_to_a_quota(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    async with headless(FILES, downloads=folder, max_download_bytes=2500) as (_, host):
        view = await show(host)
        for names in (["a.txt"], ["../../a.txt"]):
            answer = await text_of(view.call_tool("save", {"names": names, "bytes": 1000}))
            assert "isError" not in answer
        full = await text_of(view.call_tool("save", {"names": ["b.txt"], "bytes": 1000}))
        assert '"isError":true' in full
        first, second = sorted(path.name for path in folder.iterdir())
        assert first.startswith("a-")
        assert second == "a.txt"
        assert (folder / first).read_text() == "x" * 1000


def long_ago(*folders: Path) -> None:
    for folder in folders:
        os.utime(folder, (0, 0))


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A temporary folder of the test's own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


async def test_what_a_killed_process_left_is_removed_by_the_next(temporary: Path) -> None:
    kept = temporary / "transom-profile-kept"  # by its name like a temporary one
    profiles = [Profile(), Profile(), Profile(kept)]
    used, left, _ = (profile.path for profile in profiles)
    chromium._release(profiles[1]._locks, None, os.getpid())  # as when its process is killed
    shutil.rmtree(used / "Default")  # as what tidies old files away does
    late = temporary / "transom-profile-late"  # removed, and written to by a browser's last process
    (late / "Default").mkdir(parents=True)
    long_ago(used, left, kept, late)
    (temporary / "transom-profile-new").mkdir()  # somebody else's, and not locked yet
    profiles.append(Profile())
    there = {path.name for path in temporary.iterdir()}  # noqa: ASYNC240
    assert there == {used.name, kept.name, profiles[-1].path.name, "transom-profile-new"}
    for profile in profiles:
        await profile.remove()
    there = {path.name for path in temporary.iterdir()}  # noqa: ASYNC240
    assert there == {kept.name, "transom-profile-new"}
    long_ago(kept)
    await Profile().remove()
    assert kept.exists()


@pytest.mark.timeout(20)
async def test_what_is_no_profile_of_this_user_is_left_alone(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    precious = temporary / "precious"
    precious.mkdir()
    (temporary / "transom-profile-link").symlink_to(precious)
    (temporary / "transom-profile-file").touch()
    os.mkfifo(temporary / "transom-profile-pipe")  # to open it for reading would wait for a writer
    long_ago(precious, temporary / "transom-profile-file", temporary / "transom-profile-pipe")
    before = set(temporary.iterdir())  # noqa: ASYNC240
    await Profile().remove()
    assert set(temporary.iterdir()) == before  # noqa: ASYNC240
    others = temporary / "transom-profile-others"
    others.mkdir()
    long_ago(others)
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: 4711)
        await Profile().remove()
    assert others.exists()
    await Profile().remove()
    assert not others.exists()


async def test_a_kept_profile_is_used_by_one_program_at_a_time(tmp_path: Path) -> None:
    first = Profile(tmp_path / "kept")
    with pytest.raises(TransomError, match="kept is used by another program"):
        Profile(tmp_path / "kept")
    await first.remove()
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "kept")
    await Profile(link).remove()
    assert (tmp_path / "kept" / "Default" / "Preferences").exists()


@pytest.mark.parametrize("name", ["kept", None])
async def test_a_profile_that_cannot_be_made_or_is_given_up_leaves_nothing_locked(
    name: str | None, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = temporary / name if name else None

    def there() -> list[str]:
        gc.collect()
        return [path.name for path in temporary.iterdir()]

    with monkeypatch.context() as patch:
        patch.setattr(chromium, "write_private", Mock(side_effect=OSError(28, "No space left")))
        with pytest.raises(OSError, match="No space left"):
            Profile(kept)
        assert there() == [name] * bool(name)
    Profile(kept)  # and nobody has it
    assert there() == [name] * bool(name)
    await Profile(kept).remove()


@contextmanager
def forked(doing: Callable[[], object]) -> Iterator[None]:
    """A child that has done something, and goes on with a copy of what its parent has."""
    done, tell = os.pipe()
    if (child := os.fork()) == 0:
        doing()
        os.write(tell, b"x")
        signal.pause()
    os.read(done, 1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(done)
        os.close(tell)


def test_a_profile_belongs_to_its_process_and_not_to_a_child_with_a_copy_of_it(
    temporary: Path,
) -> None:
    kept = temporary / "kept"
    profile, used = Profile(), Profile(kept)

    def end() -> None:
        for each in (profile, used):
            each._end()

    with forked(end):
        assert profile.path.exists()
        with pytest.raises(TransomError, match="used by another program"):
            Profile(kept)
    with forked(lambda: None):
        end()
        assert not profile.path.exists()
        Profile(kept)


async def test_a_profile_that_is_written_to_while_it_is_removed_is_removed_all_the_same(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, deleted = Profile(), 0

    def write() -> None:
        profile.path.joinpath("Default").mkdir(parents=True)

    def delete_while_a_process_writes(folder: Path, **options: Any) -> None:
        nonlocal deleted
        rmtree(folder, **options)
        deleted += 1
        if deleted == 1:
            write()
        if deleted == 2:  # a moment after it was gone
            asyncio.get_running_loop().call_soon(write)

    rmtree = shutil.rmtree
    monkeypatch.setattr(chromium, "_DELETED_AGAIN_AFTER", (0.0, 0.0, 0.0, 0.0))
    monkeypatch.setattr(shutil, "rmtree", delete_while_a_process_writes)
    await profile.remove()
    assert deleted > 2
    assert not list(temporary.iterdir())  # noqa: ASYNC240


async def test_what_another_user_gives_the_name_of_a_removed_profile_is_left_alone(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    profile, deleted = Profile(), 0

    def delete_and_replace(folder: Path, **options: Any) -> None:
        nonlocal deleted
        rmtree(folder, **options)
        deleted += 1
        folder.mkdir()
        monkeypatch.setattr(os, "geteuid", lambda: 4711)

    rmtree = shutil.rmtree
    monkeypatch.setattr(shutil, "rmtree", delete_and_replace)
    await profile.remove()
    assert deleted == 1


# --- a browser that goes away ----------------------------------------------------------------


async def check_that_it_is_survived(host: Host, lost: str, reason: str) -> None:
    """Every call ends, the View is reported closed, and the next one has a fresh browser."""
    told = Told(host)
    closed = await told.closed.get() if lost in host.views else None
    if closed is not None:
        assert closed.id == lost
        assert reason in closed.reason
    with pytest.raises(ViewClosed, match=f"{lost} is closed"):
        await host.call_tool(f"{lost}__count")
    fresh = await show(host)
    assert fresh.id != lost
    assert await text_of(fresh.call_tool("count")) == "1"
    assert await fresh.screenshot()


@pytest.mark.nightly
@pytest.mark.usefixtures("whole_chromium")
@pytest.mark.parametrize("process", [None, ChromiumProcess()], ids=["own", "shared"])
async def test_a_browser_that_is_killed_is_survived(process: ChromiumProcess | None) -> None:
    async with headless(process=process) as (renderer, host):
        view = await show(host)
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "1"
        mark = browser_of(renderer)
        signal_all(processes(mark)[: 1 if process is None else 2], signal.SIGKILL)
        with pytest.raises(ViewClosed, match="the browser is gone"):
            await running
        await check_that_it_is_survived(host, view.id, "the browser is gone")
        assert browser_of(renderer) != mark
        await until_gone(mark)
    if process is not None:
        await asyncio.to_thread(process.close)


@pytest.mark.usefixtures("whole_chromium")
@pytest.mark.nightly
async def test_a_browser_that_cannot_start_processes_for_its_views_is_replaced() -> None:
    async with headless() as (renderer, host):
        view = await show(host)
        mark, page = browser_of(renderer), renderer.page
        assert page is not None
        await page.clock.install()
        zygotes = set(processes(mark)) & set(processes("--type=zygote"))
        assert zygotes
        signal_all(list(zygotes), signal.SIGKILL)
        await show(host)  # in a process that Chromium had ready
        failing = asyncio.create_task(failure_of(host))
        await page.locator("iframe >> nth=2").wait_for(state="attached")
        await page.clock.fast_forward(60_000)
        assert "did not load in the browser" in await failing
        await check_that_it_is_survived(host, view.id, "the browser loads no more pages")
        assert browser_of(renderer) != mark
        await until_gone(mark)


@pytest.mark.usefixtures("whole_chromium")
@pytest.mark.nightly
async def test_a_browser_that_neither_loads_a_view_nor_fails_to_is_replaced() -> None:
    renderer = HeadlessRenderer()
    async with hosted(renderer, COUNT, open_timeout=15) as host:
        await renderer.show_page()
        view = await show(host)
        mark = browser_of(renderer)
        signal_all(list(set(processes(mark)) & set(processes("--type=zygote"))), signal.SIGSTOP)
        await show(host)  # in a process that Chromium had ready
        assert "it was not initialised within 15 s" in await failure_of(host)
        await check_that_it_is_survived(host, view.id, "the browser loads no more pages")
        assert browser_of(renderer) != mark
        await until_gone(mark)


def drivers() -> set[int]:
    """Playwright's processes of this one."""
    return set(descendants(os.getpid())) & set(processes("run-driver"))


async def test_a_page_that_outlives_playwright_is_replaced_when_it_is_asked_for() -> None:
    process, before = ChromiumProcess(), drivers()
    async with headless(process=process) as (renderer, host):
        view = await show(host)
        signal_all(list(drivers() - before), signal.SIGKILL)
        await renderer.show_page()
        with pytest.raises(ViewClosed, match="the browser is gone"):
            await view.call_tool("count")
        assert await (await show(host)).screenshot()
    await asyncio.to_thread(process.close)


async def test_a_call_does_not_wait_for_a_view_whose_browser_went_away_while_it_loaded() -> None:
    loading = asyncio.Event()

    async def load(_: object) -> None:
        loading.set()
        await asyncio.Event().wait()

    renderer = HeadlessRenderer()
    async with hosted(renderer, COUNT) as host, asyncio.timeout(50):
        await renderer.show_page()
        assert renderer.page is not None
        await renderer.page.route("**/transom-view?*", load)
        failing = asyncio.create_task(failure_of(host))
        await loading.wait()
        await renderer.page.context.close()
        assert await failing == "The View is gone: the browser is gone"
        await show(host)


@pytest.mark.nightly
async def test_a_page_that_crashes_is_survived() -> None:
    async with headless() as (renderer, host):
        view = await show(host)
        running = asyncio.create_task(view.call_tool("forever"))
        assert await text_of(view.call_tool("count")) == "1"
        assert renderer.page is not None
        session = await renderer.page.context.new_cdp_session(renderer.page)
        crash = asyncio.ensure_future(session.send("Page.crash"))
        with pytest.raises(ViewClosed, match="the page crashed"):
            await running
        crash.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await crash
        await check_that_it_is_survived(host, view.id, "the page crashed")


async def test_a_view_whose_process_dies_is_survived() -> None:
    async with headless() as (renderer, host):
        view = await show(host)
        assert renderer.page is not None
        while not (frames := [f for f in renderer.page.frames if f"//{view.id}-" in f.url]):
            await renderer.page.wait_for_event("framenavigated")  # Playwright hears of it later
        session = await renderer.page.context.new_cdp_session(frames[0])
        crash = asyncio.ensure_future(session.send("Page.crash"))
        # Playwright's driver dies of it, and the browser with the driver; a View that was alone
        # in dying would not answer any more.
        with pytest.raises((ViewClosed, RequestTimeout)):
            await view.call_tool("forever", timeout=20)
        crash.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await crash
        await view.close()
        await check_that_it_is_survived(host, view.id, "")


@pytest.mark.usefixtures("whole_chromium")
@pytest.mark.nightly
async def test_a_browser_that_hangs_is_given_up_and_killed() -> None:
    async with headless() as (renderer, host):
        renderer._stage.patience = 0.5
        view = await show(host)
        mark = browser_of(renderer)
        signal_all(processes(mark), signal.SIGSTOP)
        with pytest.raises(ViewClosed, match="the page read nothing for 0.5 s"):
            await view.call_tool("count")
        renderer._stage.patience = 30
        await check_that_it_is_survived(host, view.id, "read nothing")
        await until_gone(mark)


@pytest.mark.nightly
@pytest.mark.usefixtures("whole_chromium")
async def test_a_browser_that_hangs_does_not_keep_a_host_from_ending() -> None:
    async with headless() as (renderer, host):
        await show(host)
        mark = browser_of(renderer)
        signal_all(processes(mark), signal.SIGSTOP)
    await until_gone(mark)


# --- no browser ------------------------------------------------------------------------------


async def failure_of(host: Host) -> str:
    result = await host.call_tool("show")
    assert result.text == "shown "  # the call has its result all the same
    note = (result.meta or {})["transom/view"]
    assert note["state"] == "failed"
    return note["error"]


async def new_driver(before: set[int]) -> int:
    """The next one: there is no event for its start."""
    while not (fresh := drivers() - before):  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    return fresh.pop()


async def test_a_renderer_that_is_left_while_playwright_starts_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, ends = asyncio.Event(), asyncio.Event()

    class Starting:
        async def start(self) -> Playwright:
            started = await async_playwright().start()
            begun.set()
            await ends.wait()
            return started

    monkeypatch.setattr("playwright.async_api.async_playwright", Starting)
    before = drivers()
    async with HeadlessRenderer() as renderer:
        showing = asyncio.create_task(renderer.show_page())
        await begun.wait()
        showing.cancel()
        asyncio.get_running_loop().call_later(0.1, ends.set)
    assert drivers() <= before


async def test_playwright_that_ends_as_it_starts_is_an_error_that_says_so() -> None:
    before = drivers()
    async with headless() as (_, host):
        failing = asyncio.create_task(failure_of(host))
        signal_all([await new_driver(before)], signal.SIGKILL)
        assert (await failing).startswith("Playwright could not be started: ")
        await show(host)


async def test_without_playwright_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "playwright.async_api", None)
    async with headless() as (_, host):
        assert await failure_of(host) == (
            "Views without a window need Playwright: pip install 'transom[headless]'"
        )


@pytest.mark.nightly
async def test_without_chromium_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRANSOM_CHROMIUM", str(tmp_path / "nothing"))
    assert find_chromium() == str(tmp_path / "nothing")
    async with headless() as (_, host):
        error = await failure_of(host)
        assert error.startswith("Chromium could not be started: ")
        assert "playwright install chromium" in error
        monkeypatch.delenv("TRANSOM_CHROMIUM")
        view = await show(host)  # it was installed meanwhile
        assert await text_of(view.call_tool("count")) == "1"


async def test_a_browser_that_ends_at_once_is_an_error_and_leaves_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "chromium"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    async with headless(executable=str(broken)) as (renderer, host):
        assert "Chromium could not be started" in await failure_of(host)
    assert renderer._browser._profile is None


async def test_there_is_no_picture_of_a_view_that_is_nowhere() -> None:
    with pytest.raises(ViewClosed, match="nobody is not on the Stage"):
        await HeadlessRenderer().screenshot("nobody")


@pytest.mark.nightly
async def test_a_page_that_had_many_views_is_replaced_while_none_is_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(headless_module, "_VIEWS_OF_A_PAGE", 3)
    async with headless() as (renderer, host):
        first, second, third = [await show(host) for _ in range(3)]
        page, mark = renderer.page, browser_of(renderer)
        await first.close()
        await second.close()
        fourth = await show(host)  # the third one is open
        assert renderer.page is page
        assert await text_of(third.call_tool("count")) == "1"
        await third.close()
        await fourth.close()
        views = await asyncio.gather(show(host), show(host))
        assert renderer.page is not page
        assert browser_of(renderer) == mark
        assert page is not None
        assert page.is_closed()
        assert [await text_of(view.call_tool("count")) for view in views] == ["1", "1"]
        assert await views[0].screenshot()
        for view in views:
            await view.close()
        await (await show(host)).close()
        signal_all(processes(mark)[:1], signal.SIGKILL)  # nobody needs it at the moment
        assert await text_of((await show(host)).call_tool("count")) == "1"
