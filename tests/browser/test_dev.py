"""`transom dev` in Chromium: the page that an author keeps open."""

import asyncio
import json
import os
import re
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page as BrowserPage
from playwright.async_api import expect

import transom.cli.dev as dev_command
from tests.browser.hosting import User, expect_shown, inside, lasting_browser, processes
from tests.browser.test_stage_views import AXE, SERIOUS
from tests.dev.test_files import save
from transom.cli.options import COMMANDS

pytestmark = pytest.mark.processes

SERVER = '''
from pathlib import Path
from mcp.server.mcpserver import MCPServer
from transom.server import Views

views = Views()
page = views.add("ui://shop/page.html", html=Path(__file__).with_name("page.html"),
                 permissions=["clipboardWrite"])


@views.tool(opens=page, annotations={"readOnlyHint": True})
def show(title: str, size: int = 3, kind: str | None = None, tags: list[str] | None = None) -> str:
    """Show <b>the shop</b>."""
    return f"shown {title} {size} {kind} {tags}"


@views.helper
def stock() -> str:
    """For its page."""
    return "7 left"


server = MCPServer("shop", extensions=[views])
'''
PAGE = """<!doctype html><title>Shop</title><h1>One</h1><p id="kept"></p><p id="input"></p>
<script src="transom.js"></script>
<script>
kept.textContent = `kept ${localStorage.kept ?? "nothing"}`;
localStorage.kept ??= "this";
const app = new transom.App({ name: "Shop", version: "1" });
app.registerTool("count", { description: "Count <i>up</i>", inputSchema: { type: "object",
  properties: { by: { type: "integer" } }, required: ["by"] } }, ({ by }) => `counted ${by}`);
const sell = app.registerTool("sell", { description: "Sell" }, () => "sold");
sell.disable("nothing is left");
app.registerTool("trouble", {}, async () => {
  console.error("something is wrong");
  await fetch("https://blocked.example/x").catch(() => 0);
  await app.updateModelContext({ content: [{ type: "text", text: "the shop is open" }] });
  await app.sendMessage({ role: "user", content: [{ type: "text", text: "<b>hello</b>" }] });
  sell.enable();
  return "done";
});
app.registerTool("host", {}, async () => {
  const { availableDisplayModes: modes, containerDimensions: room } = app.getHostContext();
  const text = [{ type: "text", text: "hello" }];
  const sent = await app.sendMessage({ role: "user", content: text }).catch((error) => error.code);
  const mode = await app.requestDisplayMode({ mode: "fullscreen" }).catch(({ message }) => message);
  const offers = Object.keys(app.getHostCapabilities()).sort();
  return JSON.stringify({ offers, modes, room, sent, mode });
});
app.onhostcontextchanged = ({ theme }) => { if (theme) document.body.title = theme; };
app.ontoolinputpartial = () => { document.body.title = "partial"; };
app.ontoolinput = ({ arguments: given }) => { input.textContent = JSON.stringify(given); };
app.connect();
</script>"""


@asynccontextmanager
async def developed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, **options: Any
) -> AsyncIterator[tuple[User, Any]]:
    """The command's own session for a server in this folder, and an author at its page.

    In a browser with a profile: without one, the whole Chromium lets no framed page store anything.
    """
    (folder / "shop.py").write_text(SERVER)
    (folder / "page.html").write_text(PAGE)
    given = COMMANDS["dev"]().read([str(folder / "shop.py"), "--timeout", "60", "--no-check"])
    profile = folder.with_name(f"{folder.name}-profile")  # not in it: its files are watched
    size = {"width": 1280, "height": 720}
    async with lasting_browser(profile, viewport=size, **options) as user:
        opened = asyncio.Event()

        async def open_page(url: str) -> None:
            await user.open_page(url)
            opened.set()

        monkeypatch.setattr(dev_command, "open_in_browser", open_page)
        session = dev_command.make_session(given)
        running = asyncio.create_task(session.run())
        try:
            await opened.wait()
            await expect(user.page.locator("#server")).to_have_attribute("data-state", "running")
            yield user, session
        finally:
            running.cancel()
            await asyncio.wait([running])


# Not one whose frames are there before there is a View in them, nor what the first one covers.
SHOWN = "#views > transom-view:not([hidden]):not(:not([hidden]) ~ *)"


def view_in(page: BrowserPage) -> Any:
    return inside(page, SHOWN)


async def call_show(page: BrowserPage, title: str) -> None:
    await page.get_by_role("textbox", name="Title").fill(title)
    await page.get_by_role("button", name="Call", exact=True).click()
    await expect_shown(view_in(page).locator("#input")).to_contain_text(title)


async def test_an_author_calls_a_tool_edits_and_breaks_the_server_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    problems: list[str] = []
    async with developed(tmp_path, monkeypatch) as (user, _):
        page = user.page
        page.on("pageerror", lambda error: problems.append(str(error)))
        tools = page.locator("#tool-list")
        assert await tools.locator("h3").all_inner_texts() == [
            "Opens a View (1)",
            "For Views only (1)",
        ]
        await expect(page.locator("#tool-form .note").first).to_have_text("Show <b>the shop</b>.")
        await page.get_by_role("button", name="Add item").click()
        await page.get_by_role("textbox", name="Item 1").fill("new")
        await call_show(page, "First")
        await expect(page.locator("#result")).to_contain_text("shown First 3 None ['new']")
        await expect_shown(view_in(page).locator("#kept")).to_have_text("kept nothing")

        # A saved page is there by itself, with the last call, and what the View stored.
        save(tmp_path / "page.html", PAGE.replace("<h1>One", "<h1>Two"))
        await expect_shown(view_in(page).locator("h1")).to_have_text("Two")
        await expect_shown(view_in(page).locator("#kept")).to_have_text("kept this")
        await expect_shown(view_in(page).locator("#input")).to_contain_text("First")

        # Its frames were there before. If what is in them is gone, they are loaded again.
        prepared = page.locator("#views > transom-view[hidden] iframe")
        await prepared.evaluate("frame => (frame.dataset.was = 'prepared')")
        save(tmp_path / "page.html", PAGE.replace("<h1>One", "<h1>Three"))
        await expect_shown(view_in(page).locator("h1")).to_have_text("Three")
        await expect(page.locator(f"{SHOWN} iframe")).to_have_attribute("data-was", "prepared")
        await prepared.evaluate("frame => (frame.src = 'about:blank')")
        save(tmp_path / "page.html", PAGE.replace("<h1>One", "<h1>Four"))
        await expect_shown(view_in(page).locator("h1")).to_have_text("Four")

        # A broken server is shown in its place, and a mended one goes on.
        save(tmp_path / "shop.py", SERVER + "\ndef broken(:\n")
        await expect(page.locator("#failure pre")).to_contain_text("def broken(:")
        await expect(page.locator("#views")).not_to_be_visible()
        save(tmp_path / "shop.py", SERVER.replace("shown {title}", "seen {title}"))
        await expect(page.locator("#result")).to_contain_text("seen First")
        await expect_shown(view_in(page).locator("#input")).to_contain_text("First")
        await expect(page.locator("#failure")).not_to_be_visible()

        # One that is killed is there again by itself, and the page says what happened meanwhile.
        await page.evaluate("""() => {
          const note = () => { document.title = document.getElementById("failure").textContent; };
          new MutationObserver(note).observe(document.getElementById("failure"),
            { childList: true });
        }""")
        os.kill(processes(str(tmp_path / "shop.py"))[0], signal.SIGKILL)
        await expect(page).to_have_title(re.compile("The server ended.*It was ended by SIGKILL"))
        await expect(page.locator("#failure")).not_to_be_visible()
        await expect(page.locator("#server")).to_have_attribute("data-state", "running")

        # Its input is streamed, as a model writes it.
        await page.get_by_label("Input").select_option("streamed")
        await page.get_by_role("button", name="Call", exact=True).click()
        await expect_shown(view_in(page).locator("body")).to_have_attribute("title", "partial")
        await expect_shown(view_in(page).locator("#input")).to_contain_text("First")

        # The address has what is on screen; a page that is loaded again shows it.
        assert re.search(r"#tool=show&.*args=%7B%22title%22%3A%22First%22", page.url)
        await page.reload()
        await expect_shown(view_in(page).locator("#input")).to_contain_text("First")
        await expect(page.get_by_role("textbox", name="Title")).to_have_value("First")

        await page.evaluate(AXE)
        assert await page.evaluate(SERIOUS) == []
    assert problems == []


LOOP = 'console.log("loops"); for (;;);'
LOOPS = [f"{LOOP} app.connect();", f"app.connect().then(() => {{ {LOOP} }});"]


@pytest.mark.nightly  # beside an endless loop, all takes long
async def test_a_view_in_an_endless_loop_comes_back_when_the_author_saves_the_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with developed(tmp_path, monkeypatch) as (user, session):
        page, stage = user.page, session.page.stage
        await call_show(page, "First")
        host = stage.mounted(stage.views[0]).host
        for number, loop in enumerate(LOOPS):
            async with page.expect_console_message(lambda message: message.text == "loops"):
                save(tmp_path / "page.html", PAGE.replace("app.connect();", loop))
            save(tmp_path / "page.html", PAGE.replace("<h1>One", f"<h1>Mended {number}"))
            await expect_shown(view_in(page).locator("h1")).to_have_text(f"Mended {number}")
            await expect_shown(view_in(page).locator("#input")).to_contain_text("First")

        # What it has stored is there again, once the page in the loop is gone for a while.
        while stage.sandboxes.is_stuck(host):  # noqa: ASYNC110 - there is no event for that
            await asyncio.sleep(0.05)
        save(tmp_path / "page.html", PAGE.replace("<h1>One", "<h1>Next"))
        await expect_shown(view_in(page).locator("h1")).to_have_text("Next")
        await expect_shown(view_in(page).locator("#kept")).to_have_text("kept this")


@pytest.mark.nightly
async def test_views_tools_traffic_findings_context_and_the_host_can_be_seen_and_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with developed(tmp_path, monkeypatch, accept_downloads=True) as (user, session):
        page = user.page
        await page.get_by_role("tab", name="Traffic").click()
        await call_show(page, "First")
        await page.get_by_role("button", name="done show: shown First").click()
        panel, result = page.locator("#view-panel"), page.locator("#result")

        # The View's tools: as they are, called by a model and by the page.
        rows = panel.locator("ul.tools > li")
        await expect(rows.filter(has_text="count")).to_contain_text("enabled")
        await expect(rows.filter(has_text="sell")).to_contain_text("nothing is left")
        await rows.get_by_role("button", name="count").click()
        await expect(panel.locator("form .note").first).to_have_text("Count <i>up</i>")
        await panel.get_by_role("spinbutton", name="by").fill("4")
        for way in ("Call as the page", "Call as the model"):
            await panel.get_by_role("button", name=way).click()
            await expect(result.locator("pre").first).to_have_text("counted 4")
        await panel.get_by_text("What the model is given").click()
        await panel.get_by_role("button", name="Measure").click()
        await expect(panel.get_by_text(re.compile(r"\d+ bytes, about \d+ tokens"))).to_have_count(3)
        await panel.get_by_text("What a model would read").click()
        await panel.get_by_role("button", name="Read").click()
        await expect(panel.get_by_label("Snapshot")).to_contain_text("One")

        # What goes wrong in the View, what it tells the model, and how its tools change.
        await rows.get_by_role("button", name="trouble").click()
        await panel.get_by_role("button", name="Call as the page").click()
        await expect(panel).to_contain_text("Changed since the last list")
        await expect(panel).to_contain_text("+ sell")
        await page.get_by_role("tab", name="Findings").click()
        findings = page.locator("#findings")
        await expect(findings).to_contain_text("something is wrong")
        blocked = findings.locator("li", has_text="connect-src: https://blocked.example")
        await expect(blocked).to_contain_text(re.compile(r"page\.html:\d+:1"))
        await findings.get_by_role("button", name="Message before: something is wrong").click()
        under_way = page.locator("#traffic .line[aria-selected=true]")
        await expect(under_way).to_contain_text(re.compile(r"host → View shop-1.*tools/call"))
        await expect(page.locator("#traffic .detail")).to_contain_text('"name": "trouble"')
        await page.get_by_role("tab", name="Findings").click()
        await findings.get_by_role("button", name="Find out").click()
        await expect(findings.get_by_role("status").first).to_contain_text("Nothing wrong found.")
        await expect(page.locator("#diagnosis")).not_to_be_visible()
        cause = {"text": "It never calls connect().", "fix": "Call it.", "place": {"line": 3}}
        known = {"blank": "shop-1", "state": "done", "causes": [cause, cause], "notes": []}
        session.page.set("diagnosis", known)
        await expect(page.locator("#diagnosis")).to_contain_text("It never calls connect().")
        await expect(page.locator("#diagnosis")).to_contain_text("the page, line 3")
        await expect(page.get_by_role("button", name="1 more cause")).to_be_visible()
        session.page.set("diagnosis", None)
        await expect(page.locator("#diagnosis")).not_to_be_visible()
        await page.get_by_role("tab", name="Context").click()
        await expect(page.locator("#context")).to_contain_text("the shop is open")
        await expect(page.locator("#context")).to_contain_text("<b>hello</b>")

        # The traffic: paired, searched, exported, and opened again.
        await page.get_by_role("tab", name="Traffic").click()
        traffic = page.locator("#traffic")
        await traffic.get_by_role("searchbox").fill("ui/initialize")
        await traffic.get_by_label("Which messages").select_option("View")
        lines = traffic.locator(".line")
        await expect(lines).to_have_count(2)
        await expect(lines.nth(1)).to_contain_text(re.compile(r"host → View shop-1.*ms"))
        await lines.nth(0).click()
        await expect(traffic.locator(".detail")).to_contain_text("Its answer")
        async with page.expect_download() as saved:
            await traffic.get_by_role("button", name="Export").click()
        record = Path(await (await saved.value).path())
        async with page.expect_file_chooser() as chooser:
            await traffic.get_by_role("button", name="Open a record…").click()
        await (await chooser.value).set_files(record)
        await expect(traffic.get_by_role("button", name="Back to live")).to_be_visible()
        await traffic.get_by_role("searchbox").fill("")
        await page.keyboard.press("Tab")
        await traffic.get_by_role("listbox").press("Home")
        await traffic.get_by_role("listbox").press("ArrowDown")
        await expect(lines.nth(1)).to_have_attribute("aria-selected", "true")

        # The host: theme, width, approvals, the policy of pages; and the end of the View.
        await page.get_by_label("Theme").select_option("dark")
        await expect_shown(view_in(page).locator("body")).to_have_attribute("title", "dark")
        await page.get_by_label("Width").select_option("phone (390)")
        assert (await page.locator("#views").bounding_box() or {})["width"] == 390
        await page.get_by_text("More", exact=True).click()
        await page.get_by_label("Approvals").select_option("ask me")
        await rows.get_by_role("button", name="sell").click()
        await panel.get_by_role("button", name="Call as the model").click()
        card = page.get_by_role("alertdialog")
        await expect(card).to_contain_text("sell")
        await page.evaluate(AXE)
        assert await page.evaluate(SERIOUS) == []
        await card.get_by_role("button", name="Refuse").click()
        await expect(result).to_contain_text("The user refused")
        await page.get_by_label("Page policy").select_option("strict")
        await expect(panel).to_contain_text("liveshop-2")
        frame = page.locator(f"{SHOWN} iframe")
        await expect(frame).to_have_attribute("allow", re.compile("clipboard-write"))
        await page.get_by_label("clipboard").uncheck()
        await expect(panel).to_contain_text("liveshop-3")
        assert "clipboard" not in (await frame.get_attribute("allow") or "")

        # As a known host: what it does not offer is neither declared nor done.
        await page.get_by_label("Width").select_option("as it is")
        await page.locator("#profile").select_option("Visual Studio Code")
        await expect(page.locator("#profile-facts")).to_contain_text("What is known of Visual")
        await expect(panel).to_contain_text("liveshop-4")
        await rows.get_by_role("button", name="host").click()
        await panel.get_by_role("button", name="Call as the page").click()
        await expect(result.locator("pre").first).to_contain_text("offers")
        assert json.loads(await result.locator("pre").first.inner_text()) == {
            "offers": [
                *("downloadFile", "experimental", "logging", "openLinks", "serverResources"),
                *("serverTools", "updateModelContext"),
            ],
            "modes": ["inline"],
            "room": {"width": 494, "maxHeight": 720},
            "sent": -32601,
            "mode": "Not offered",
        }
        await page.get_by_label("Width").select_option("tablet (768)")
        await panel.get_by_role("button", name="Call as the page").click()
        await expect(result.locator("pre").first).to_contain_text('"width":766')
        await page.get_by_role("button", name="Tear down").click()
        await expect(panel).to_contain_text("the author closed it")
        await expect(page.locator("#empty")).to_be_visible()


NO_PAGE = "the page is not an HTML document"
BROKEN = {  # what is said of it; nothing: the browser makes a page of it that works
    "unclosed tags, no html element": (PAGE.replace("</p>", "").replace("</h1>", ""), ""),
    "no doctype": (PAGE.removeprefix("<!doctype html>"), NO_PAGE),
    "empty": ("", NO_PAGE),
    "binary": ("\0\xff\xfe" * 500, NO_PAGE),
}


@pytest.mark.nightly
async def test_a_page_of_broken_html_is_shown_or_explained_and_recovers_when_it_is_saved_right(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with developed(tmp_path, monkeypatch) as (user, _):
        page, failure = user.page, user.page.locator("#failure")
        await call_show(page, "First")
        for name, (broken, said) in BROKEN.items():
            (tmp_path / "page.html").write_bytes(broken.replace("One", name).encode("latin-1"))
            if said:
                await expect(failure, name).to_contain_text(said)
            else:
                await expect_shown(view_in(page).locator("h1"), name).to_contain_text(name)
                await expect_shown(view_in(page).locator("#input"), name).to_contain_text("First")
            save(tmp_path / "page.html", PAGE.replace("One", f"Right after {name}"))
            await expect_shown(view_in(page).locator("h1")).to_have_text(f"Right after {name}")
            await expect(failure).not_to_be_visible()


@pytest.mark.nightly
async def test_a_page_that_does_not_connect_is_explained_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with developed(tmp_path, monkeypatch, accept_downloads=True) as (user, _):
        page, blank = user.page, user.page.locator("#diagnosis")
        await call_show(page, "First")
        silent = PAGE.replace("app.connect();", "")
        save(tmp_path / "page.html", silent)
        await expect(blank).to_contain_text("The page never calls connect()", timeout=60_000)
        await expect(blank).to_contain_text("page.html:6:1")
        save(tmp_path / "page.html", PAGE.replace("const app", "const app = = 1; const app"))
        await expect(blank).to_contain_text("has a syntax error", timeout=60_000)
        await expect(page.locator("#middle")).not_to_contain_text("tell the author")
        save(tmp_path / "page.html", '{"this": "is no page"}')
        failure = page.locator("#failure")
        await expect(failure).to_contain_text("the page is not an HTML document", timeout=60_000)
        await expect(blank).not_to_be_visible()
        save(tmp_path / "page.html", PAGE)
        await expect_shown(view_in(page).locator("#input")).to_contain_text("First")
        await expect(blank).not_to_be_visible()
        await page.get_by_text("More", exact=True).click()
        async with page.expect_download(timeout=60_000) as saved:
            await page.get_by_role("button", name="Screenshot").click()
        assert (await (await saved.value).path()).read_bytes().startswith(b"\x89PNG")
