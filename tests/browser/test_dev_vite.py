"""A page from Vite's dev server in `transom dev`, as docs/dev.md shows it."""

import asyncio
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from playwright.async_api import expect
from starlette.responses import HTMLResponse, PlainTextResponse
from starlette.types import ASGIApp

from tests.browser.hosting import Chromium, expect_shown
from tests.browser.test_dev import view_in
from tests.browser.test_dev_servers import developed
from tests.dev.test_files import save
from tests.ports import reserved_port
from tests.processes import ended
from transom.serving import listen, serve

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docs" / "samples" / "vite_page.py"
PAGE = """<!doctype html><html><head><title>Editor</title></head><body>
<h1 id="said"></h1><script src="transom.js"></script>
<script type="module" src="/src/main.js"></script></body></html>"""
MAIN = """
import { said } from "./said.js";

const app = new transom.App({ name: "Editor", version: "1" });
app.registerTool("read", {}, () => document.querySelector("#said").textContent);
const show = (text) => { document.querySelector("#said").textContent = text; };
show(said);
document.body.title = "loaded once";
await app.connect();
import.meta.hot.accept("./said.js", (changed) => show(changed.said));
"""


@pytest.mark.nightly
@pytest.mark.processes
async def test_a_page_of_vites_dev_server_is_shown_and_changes_in_place(
    browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site, server = tmp_path / "site", tmp_path / "server" / "editor.py"
    (site / "src").mkdir(parents=True)
    server.parent.mkdir()
    (site / "index.html").write_text(PAGE)
    (site / "src" / "main.js").write_text(MAIN)
    (site / "src" / "said.js").write_text('export const said = "One";')
    vite = await asyncio.create_subprocess_exec(
        *(ROOT / "node_modules" / ".bin" / "vite", site, "--port", "0", "--clearScreen", "false"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert vite.stdout is not None
        line = ""
        while "Local:" not in line:
            line = (await vite.stdout.readline()).decode()
            assert line, "Vite ended"
        address = line.split()[-1].rstrip("/")
        server.write_text(SAMPLE.read_text().replace("http://localhost:5173", address))
        async with developed(str(server), browser, monkeypatch) as (user, wrong):
            page = user.page
            await page.get_by_role("button", name="Call", exact=True).click()
            said = view_in(page).locator("#said")
            await expect(said).to_have_text("One", timeout=60_000)
            await view_in(page).locator("body").evaluate("body => (body.title = 'the same')")
            save(site / "src" / "said.js", 'export const said = "Two";')
            await expect(said).to_have_text("Two", timeout=60_000)
            body = view_in(page).locator("body")
            await expect(body).to_have_attribute("title", "the same")
            assert wrong == []
    finally:
        vite.terminate()
        await ended(vite)


CONNECTED = """<!doctype html><html><head><title>Editor</title></head><body><h1 id="said">Vite</h1>
<script src="transom.js"></script>
<script>new transom.App({ name: "Editor", version: "1" }).connect();</script></body></html>"""


@pytest.mark.nightly
@pytest.mark.processes
async def test_another_program_at_the_address_of_vite_is_explained_until_vite_is_there(
    browser: Chromium, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    port, server = reserved_port(), tmp_path / "editor.py"
    server.write_text(
        SAMPLE.read_text().replace("http://localhost:5173", f"http://127.0.0.1:{port}")
    )

    def at_port(app: ASGIApp) -> AbstractAsyncContextManager[None]:
        return serve(app, [listen("127.0.0.1", port)])

    async with developed(str(server), browser, monkeypatch) as (user, wrong):
        page, diagnosis = user.page, user.page.locator("#diagnosis")
        call = page.get_by_role("button", name="Call", exact=True)
        async with at_port(PlainTextResponse("another program", 404)):
            await call.click()
            await expect(diagnosis).to_contain_text("and fails to return it")
            await expect(diagnosis).to_contain_text("no other program may be there")
            await expect(page.locator("#output")).to_contain_text("HTTP Error 404")
        async with at_port(HTMLResponse("<!doctype html><head></head><h1>Another program</h1>")):
            await call.click()
            await expect(diagnosis).to_contain_text("The page has no script", timeout=60_000)
            await expect_shown(view_in(page).locator("h1")).to_have_text("Another program")
        async with at_port(HTMLResponse(CONNECTED)):
            await call.click()
            await expect_shown(view_in(page).locator("#said")).to_have_text("Vite")
            await expect(diagnosis).not_to_be_visible()
        assert wrong == []
