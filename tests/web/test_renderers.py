"""A page that is opened when it is needed, by whoever can."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.web.browser import PythonBrowser
from transom.errors import TransomError
from transom.host.views.ui_resource import UIResource
from transom.web.local.renderers import BrowserRenderer, open_in_browser


def view(view_id: str = "orders-1") -> UIResource:
    return UIResource(view_id=view_id, server="orders", uri="ui://orders/list", html="<p>")


async def no_browser(_: str) -> None:
    raise TransomError("No browser could be opened")


class ByHand:
    """A renderer whose page somebody has to open, and that somebody."""

    def __init__(self, **options: Any) -> None:
        self.told: asyncio.Queue[str] = asyncio.Queue()
        self.renderer = BrowserRenderer(on_unopened=self.told.put_nowait, **options)
        self.user = PythonBrowser(lambda: self.renderer._stage)


async def test_without_anybody_to_tell_a_view_fails_at_once() -> None:
    async with BrowserRenderer(open_page=no_browser, page_timeout=1000) as renderer:
        with pytest.raises(TransomError, match="No browser could be opened"):
            await renderer.open(view())
    assert renderer._stage.views == []


@pytest.mark.parametrize("open_page", [no_browser, None])
async def test_a_view_waits_for_a_page_that_somebody_opens_by_hand(open_page: Any) -> None:
    case = ByHand(open_page=open_page)
    async with case.renderer, case.user:
        opening = asyncio.create_task(case.renderer.open(view()))
        assert await case.told.get() == case.renderer.url
        assert not opening.done()
        await case.user.open_page()
        await opening
        await case.user.page.view("orders-1")


async def test_the_address_is_told_once_until_a_page_was_there() -> None:
    case = ByHand(open_page=no_browser, page_timeout=0.01)
    async with case.renderer, case.user:
        for _ in range(3):
            with pytest.raises(TransomError, match="No page showed up at .* within 0.01 s"):
                await case.renderer.open(view())
        assert case.told.qsize() == 1
        case.told.get_nowait()
        await case.user.open_page()
        await case.renderer.open(view())
        assert case.told.empty()
        case.renderer._stage.page_lost("the user closed it")
        with pytest.raises(TransomError, match="No page showed up"):
            await case.renderer.open(view("orders-2"))
        assert case.told.qsize() == 1


async def test_a_page_that_was_opened_is_nothing_to_tell() -> None:
    told: list[str] = []
    user = PythonBrowser(lambda: renderer._stage)
    renderer = BrowserRenderer(open_page=user.open_page, on_unopened=told.append)
    async with renderer, user:
        await renderer.open(view())
    assert told == []


async def test_a_browser_slower_than_a_view_may_wait_is_there_for_the_next_view() -> None:
    begun, may_end = asyncio.Event(), asyncio.Event()
    starts = 0

    async def slow(url: str) -> None:
        nonlocal starts
        starts += 1
        begun.set()
        await may_end.wait()
        await user.open_page(url)

    user = PythonBrowser(lambda: renderer._stage)
    renderer = BrowserRenderer(open_page=slow)
    async with renderer, user:
        for number in range(3):
            opening = asyncio.create_task(renderer.open(view(f"orders-{number}")))
            await begun.wait()
            opening.cancel()
            with pytest.raises(asyncio.CancelledError):
                await opening
        opening = asyncio.create_task(renderer.open(view("orders-4")))
        may_end.set()
        await opening
        assert starts == 1
        renderer._stage.page_lost("the browser was killed")
        await renderer.open(view("orders-5"))
        assert starts == 2


async def test_a_browser_that_is_being_started_ends_with_the_renderer() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def hanging(_: str) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with BrowserRenderer(open_page=hanging) as renderer:
        opening = asyncio.create_task(renderer.open(view()))
        await begun.wait()
        opening.cancel()
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_browser_that_never_starts_is_given_up_and_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("transom.web.local.local_stage._PAGE_OPENED_WITHIN", 0.01)
    starts = 0

    async def hanging(_: str) -> None:
        nonlocal starts
        starts += 1
        await asyncio.Event().wait()

    async with BrowserRenderer(open_page=hanging) as renderer:
        for _ in range(2):
            with pytest.raises(TransomError, match="No page could be opened within 0.01 s"):
                await renderer.open(view())
    assert starts == 2


# --- the user's browser -------------------------------------------------------------------


URL = "http://127.0.0.1:9/#token=a-secret-that-nobody-sees"


def browser(folder: Path, script: str) -> str:
    """A browser of our own, for the environment's BROWSER."""
    made = folder / "browser"
    made.write_text(f"#!/bin/sh\n{script}\n")
    made.chmod(0o755)
    return str(made)


@pytest.mark.processes
async def test_the_browser_gets_the_address_and_its_opener_has_it_on_no_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, opener = tmp_path / "told", tmp_path / "opener"
    script = f'tr "\\0" " " </proc/$PPID/cmdline >{opener}; printf %s "$1" >{told}'
    monkeypatch.setenv("BROWSER", browser(tmp_path, script))
    monkeypatch.setattr("transom.web.local.renderers._LOOKS", 3000)
    await open_in_browser(URL)
    assert await asyncio.to_thread(told.read_text) == URL
    command = await asyncio.to_thread(opener.read_text)
    assert "webbrowser" in command
    assert "token" not in command


@pytest.mark.processes
async def test_a_browser_that_fails_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BROWSER", browser(tmp_path, "exit 1"))
    monkeypatch.setattr("transom.web.local.renderers._LOOKS", 3000)
    monkeypatch.setenv("DISPLAY", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(TransomError, match="No browser could be opened"):
        await open_in_browser(URL)
