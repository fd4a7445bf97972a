"""The page of `transom dev` with the official servers, FastMCP's and our examples."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from playwright.async_api import ConsoleMessage, WebError, expect

import transom.cli.dev as dev_command
from tests.browser.hosting import Chromium, User, expect_shown
from tests.browser.test_dev import SHOWN, view_in
from tests.dev.test_files import save
from transom.cli.author_options import Template
from transom.cli.new import write_project
from transom.cli.options import COMMANDS

ROOT = Path(__file__).parents[2]
OFFICIAL = ROOT / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"
EXAMPLES = ("budget", "editor", "lunch", "music", "orders", "tictactoe")

# Without the internet: one waits for it before it connects, one answers with an error, and the page
# of one reports one. Another page calls a tool 100 ms after it has loaded, connected or not: on a
# busy machine it is not, and reports that.
UNCONNECTED = {  # as the network fails: no answer, or one at once
    "map": re.compile(
        r"from https://cesium\.com could not be reached|https://cesium\.com/\S+ did not load"
    )
}
FAILING = {"pdf"}
REPORTING = {"customer-segmentation", "video-resource"}


def servers() -> dict[str, str]:
    """What an author types after `transom dev`, by the name of the server."""
    found = {name: str(ROOT / "examples" / f"{name}.py") for name in EXAMPLES}
    found["prefab"] = str(ROOT / "tests" / "servers" / "prefab.py")
    for script in sorted(OFFICIAL.glob("server-*/dist/index.js")):
        name = script.parents[1].name.removeprefix("server-")
        if name != "everything":  # it has no Views
            found[name] = f"node {script} --stdio"
    return found


@asynccontextmanager
async def developed(
    target: str, browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[User, list[str]]]:
    """The command's own session for a server, an author at its page, and the page's own errors."""
    given = COMMANDS["dev"]().read([target, "--timeout", "120", "--no-check", "--ephemeral"])
    wrong: list[str] = []
    async with browser.user(viewport={"width": 1280, "height": 720}) as user:
        opened: asyncio.Future[str] = asyncio.get_running_loop().create_future()

        def note(text: str, where: str) -> None:  # a View has another origin
            if opened.done() and where.startswith(opened.result()):
                wrong.append(text)

        def said(message: ConsoleMessage) -> None:
            if message.type == "error":
                note(message.text, message.location["url"])

        def threw(error: WebError) -> None:
            note(str(error.error), str(error.error.stack).partition("at ")[2])

        async def open_page(url: str) -> None:
            user.context.on("console", said)
            user.context.on("weberror", threw)
            await user.open_page(url)
            opened.set_result(url.partition("#")[0])

        monkeypatch.setattr(dev_command, "open_in_browser", open_page)
        running = asyncio.create_task(dev_command.make_session(given).run())
        try:
            await opened
            yield user, wrong
        finally:
            running.cancel()
            await asyncio.wait([running])


async def check_server(name: str, browser: Chromium, monkeypatch: pytest.MonkeyPatch) -> None:
    """Call the tool that the page has chosen, and see its View and nothing wrong."""
    long = 120_000
    async with developed(servers()[name], browser, monkeypatch) as (user, wrong):
        page = user.page
        state = page.locator("#server")
        await expect(state).to_have_attribute("data-state", "running", timeout=long)
        await page.get_by_role("button", name="Call", exact=True).click()
        diagnosis, view = page.locator("#diagnosis"), page.locator(SHOWN)
        if name in UNCONNECTED:
            await expect(diagnosis).to_contain_text(UNCONNECTED[name], timeout=long)
        else:
            outcome = page.locator("#result .badge").first
            await expect(outcome).to_have_text("error" if name in FAILING else "done", timeout=long)
            badge = page.locator("#view-panel .badge").first
            await expect(badge).to_have_text("live", timeout=long)
            await expect(diagnosis).not_to_be_visible()
            if name not in REPORTING:
                await expect(page.locator("#tab-findings .count")).to_have_text("")
            await expect(page.locator("#failure")).not_to_be_visible()
        assert (await view.bounding_box() or {"height": 0})["height"] > 100
        assert wrong == [], name


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("name", sorted(servers()))
async def test_the_page_works_with_a_server(
    name: str, browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    await check_server(name, browser, monkeypatch)


@pytest.mark.nightly
@pytest.mark.processes
@pytest.mark.parametrize("template", ["plain", "react", "fastmcp"])
async def test_a_new_project_is_up_to_date_after_a_save(
    template: Template, tmp_path: Path, browser: Chromium, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "shopping"
    write_project(project, template)
    server = project / "server.py"
    async with developed(str(server), browser, monkeypatch) as (user, wrong):
        page = user.page
        await expect(page.locator("#server")).to_have_attribute("data-state", "running")
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect_shown(view_in(page).locator("body")).to_contain_text("Bread")
        save(server, server.read_text().replace('"Bread"', '"Rolls"'))
        await expect_shown(view_in(page).locator("body")).to_contain_text("Rolls")
        assert wrong == []


def test_they_are_all_there() -> None:
    assert len(servers()) == len(EXAMPLES) + 1 + 20
