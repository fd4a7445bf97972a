"""The code in docs/transom-js.md runs, in Chromium."""

import re

from playwright.async_api import BrowserContext

from tests.browser.transomjs_host import ROOT, STRICT, mounted, page_with

PAGE = (ROOT / "docs" / "transom-js.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


async def test_the_first_page_works_as_it_stands(context: BrowserContext):
    page, _ = blocks("html")
    async with mounted(context, page) as view:
        assert await view.names() == ["read", "replace"]
        assert await view.text("read") == "Some words."
        assert await view.text("replace", {"words": "words", "by": "text"}) == "Done."
        assert await view.text("read") == "Some text."
        assert await view.text("replace", {"words": "Some "}) == "Done."
        refused = await view.call("replace", {"words": "nowhere"})
        assert refused["isError"]
        assert refused["content"][0]["text"] == 'There is no "nowhere" in the text.'
        assert await view.text("replace", {"words": ""}) == (
            "Invalid arguments for tool replace:\n- words: must have minLength 1"
        )
        await view.tell("ui/notifications/tool-result", {"structuredContent": {"text": "New"}})
        assert await view.text("read") == "New"


async def test_the_form_is_a_tool(context: BrowserContext):
    _, form = blocks("html")
    async with mounted(context, f'<script src="transom.js"></script>{form}') as view:
        assert await view.names() == ["book_table"]
        assert await view.text("book_table", {"who": "Ann", "seats": 2}) == "Booked."


async def test_the_other_code_runs_in_order(context: BrowserContext):
    code = blocks("js")
    assert len(code) == 6
    page = page_with(f"""
      globalThis.app = new App({{ name: "docs", version: "1" }});
      {"".join(code)}
      Object.assign(globalThis, {{ unavailable, sent: {{ requests, notifications }} }});
      await app.connect();
    """)
    async with mounted(context, page, csp=STRICT) as view:
        assert await view.names() == [
            "yearly_report", "render_chart", "play", "remove_from_queue",
        ]  # fmt: skip
        assert await view.text("play", {"id": "two"}) == "Playing two."
        assert await view.text("remove_from_queue", {"position": 1}) == "Removed 1."
        assert await view.run("unavailable.map(({ name }) => name)") == []
        task = (await view.ask("tools/call", {"name": "render_chart", "task": {}}))["result"][
            "task"
        ]
        drawn = await view.ask("tasks/result", {"taskId": task["taskId"]})
        assert drawn["result"]["content"][0]["text"] == "Drawn."
        handle = {"taskId": "report-1", "status": "working"}
        await view.page.evaluate("task => { answers['tools/call'] = { task } }", handle)
        made = {"name": "yearly_report", "arguments": {"year": 2026}, "task": {}}
        assert (await view.ask("tools/call", made))["result"] == {"task": handle}
        await view.page.evaluate("answers = new Proxy({}, { has: () => true, get: () => ({}) })")
        await view.run("void (app.getHostCapabilities().sampling = {})")
        await view.run("Promise.all([...sent.requests, ...sent.notifications].map((ask) => ask()))")
        sent = {message["method"] for message in await view.seen() if "method" in message}
        assert len(sent) == 2 + 13  # with the handshake
        assert view.console == []
