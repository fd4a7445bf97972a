"""Takes the pictures in docs/images, each in light and in dark.

    .venv/bin/python scripts/pictures.py [NAME …] [--into FOLDER]

With names, only those. An example is its View after a few calls of its tools; `stage` is the page
in the user's browser, `chat` the web application in `examples/chat`, and `dev` the page of
`transom dev`.
"""

import argparse
import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from playwright.async_api import Page, async_playwright, expect

from transom import Host, Policy
from transom.dev.session import DevSession, DevTarget
from transom.web import BrowserRenderer, HeadlessRenderer
from transom.web.local.chromium import chromium_arguments, find_chromium

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"


PATIENCE = 60  # seconds, for a machine that is busy
TRIES = 5


class Scene(NamedTuple):
    """What is called before the picture is taken."""

    opens: str
    arguments: dict[str, Any]
    calls: list[tuple[str, dict[str, Any]]]


SCENES = {
    "budget": Scene(
        "show_budget",
        {"stage": "series-a"},
        [("set-allocation", {"category": "marketing", "percent": 22})],
    ),
    "editor": Scene(
        "open_document",
        {"name": "Welcome"},
        [
            ("select-text", {"text": "lazy dog"}),
            ("insert-text", {"text": "sleeping cat"}),
            ("select-text", {"text": "sleeping cat"}),
        ],
    ),
    "lunch": Scene("show_vote", {}, []),
    "music": Scene(
        "show_player",
        {},
        [
            ("add_to_library", {"id": "canon-in-d"}),
            ("play_track", {"id": "fur-elise"}),
            ("add_to_queue", {"id": "canon-in-d"}),
            ("add_to_queue", {"id": "ode-to-joy"}),
        ],
    ),
    "orders": Scene("show_orders", {}, [("select_orders", {"ids": ["A-1042", "A-1044"]})]),
    "tictactoe": Scene(
        "show_board",
        {"opponent": "house", "first": "O"},
        [("play", {"square": square}) for square in (1, 9, 7, 4)],
    ),
}


async def take_view(name: str, *, dark: bool) -> bytes:
    """An example's View."""
    return await _play(name, HeadlessRenderer(size=(840, 900), dark=dark))


async def take_stage(*, dark: bool) -> bytes:
    """The Stage with the music player."""
    async with _window(1000, 720, dark=dark) as page:
        renderer = BrowserRenderer(open_page=page.goto, page_timeout=PATIENCE, ephemeral=True)
        return await _play("music", renderer, page)


async def _play(name: str, renderer: Any, page: Page | None = None) -> bytes:
    """Show an example, make the calls of its scene, and take a picture of the View or the page."""
    scene = SCENES[name]
    async with Host(renderer=renderer, policy=Policy.trusting(), open_timeout=PATIENCE) as host:
        await host.add_server(name, [sys.executable, str(ROOT / "examples" / f"{name}.py")])
        await host.call_tool(scene.opens, scene.arguments)
        (view,) = host.views.values()
        for tool, arguments in scene.calls:
            result = await view.call_tool(tool, arguments)
            if result.is_error:
                raise SystemExit(f"{name}: {tool} said: {result.text}")
        if page is None:
            return await view.screenshot()
        await page.mouse.move(0, 0)
        return await page.screenshot()


async def take_chat() -> tuple[bytes, bytes]:
    """The chat, in light and dark: a View in the conversation, and a question about a call."""
    for _ in range(TRIES):
        if (pictures := await _try_chat()) is not None:
            return pictures
    raise SystemExit("chat: the connection was lost each time; try again on a machine less busy")


async def _try_chat() -> tuple[bytes, bytes] | None:
    async with _chat() as url, _window(1000, 960) as page:
        await page.goto(url)
        await page.get_by_placeholder("Your name").fill("Ada")
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("button", name="Show the open orders").click()
        view = page.frame_locator("iframe").frame_locator("iframe").frame_locator("iframe")
        await view.get_by_text("A-1041").wait_for()
        await page.get_by_text("in all.").last.wait_for()
        await page.get_by_role("button", name="Select A-1041").click()
        asked = expect(page.get_by_role("button", name="Always allow"))
        await asked.to_be_enabled(timeout=PATIENCE * 1000)
        await page.mouse.move(0, 0)
        light = await _still(page)
        await page.emulate_media(color_scheme="dark")
        dark = await _still(page)
        # A machine can be so busy that the page believes the chat to be gone, and says so.
        return None if await page.locator("#state").inner_text() else (light, dark)


async def take_dev() -> tuple[bytes, bytes]:
    """The page of `transom dev` with the orders, a tool of their View, and the traffic."""
    file = ROOT / "examples" / "orders.py"
    server = [sys.executable, "-m", "transom.cli.serve", str(file)]
    async with _window(1280, 720) as page:
        target = DevTarget("orders", "examples/orders.py", server)
        session = DevSession(target, page.goto, checks=False, ephemeral=True)
        running = asyncio.create_task(session.run())
        try:
            await page.get_by_role("button", name="Call", exact=True).click()
            await page.get_by_role("button", name="select_orders").click()
            await page.get_by_role("tab", name="Traffic").click()
            await page.locator(".line", has_text="tools/call").first.click()
            await page.mouse.move(0, 0)
            light = await _still(page)
            await page.emulate_media(color_scheme="dark")
            return light, await _still(page)
        finally:
            running.cancel()
            await asyncio.wait([running])


async def _still(page: Page) -> bytes:
    """A picture of a page on which nothing moves any more."""
    last = b""
    while (picture := await page.screenshot()) != last:
        last = picture
        await asyncio.sleep(0.5)
    return picture


@asynccontextmanager
async def _chat() -> AsyncIterator[str]:
    """The address of a chat that nobody has used."""
    command = [
        sys.executable,
        "-m",
        "uvicorn",
        "examples.chat.app:app",
        "--port",
        "0",
        "--no-access-log",
    ]
    chat = await asyncio.create_subprocess_exec(*command, cwd=ROOT, stderr=subprocess.PIPE)
    assert chat.stderr is not None  # noqa: S101 - for the type checker
    try:
        while b"running on" not in (line := await chat.stderr.readline()):
            if not line:
                raise SystemExit("The chat did not start")
        yield line.split()[-5].decode().replace("127.0.0.1", "localhost")
    finally:
        chat.terminate()
        await chat.communicate()


@asynccontextmanager
async def _window(width: int, height: int, *, dark: bool = False) -> AsyncIterator[Page]:
    """A page of a browser."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=find_chromium(), args=chromium_arguments()
        )
        page = await browser.new_page(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
        )
        page.set_default_timeout(PATIENCE * 1000)
        try:
            yield page
        finally:
            await browser.close()


async def take(name: str) -> tuple[bytes, bytes]:
    """A picture by its name, in light and dark."""
    if name == "chat":
        return await take_chat()
    if name == "dev":
        return await take_dev()
    if name == "stage":
        return await take_stage(dark=False), await take_stage(dark=True)
    return await take_view(name, dark=False), await take_view(name, dark=True)


async def main() -> None:
    """Take them all."""
    known = [*SCENES, "stage", "chat", "dev"]
    parser = argparse.ArgumentParser(description="Take the pictures in docs/images.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(known))
    parser.add_argument("--into", type=Path, default=IMAGES, help="another folder")
    given = parser.parse_args()
    if unknown := set(given.names) - set(known):
        parser.error(f"there is no picture {', '.join(sorted(unknown))}")
    for name in given.names or known:
        for file, picture in zip(
            (f"{name}.png", f"{name}-dark.png"), await take(name), strict=True
        ):
            (given.into / file).write_bytes(picture)
            print(f"{file}: {len(picture) // 1024} KB")


if __name__ == "__main__":
    asyncio.run(main())
