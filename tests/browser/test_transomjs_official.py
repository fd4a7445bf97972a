"""A page with `transom.js` inside the official host, `AppBridge` of ext-apps 2.x. In Chromium."""

import subprocess
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

from tests.browser.transomjs_host import PAGES, ROOT, VIEW_URL, View, host_page, page_with

VIEW = page_with(
    """
    globalThis.log = [];
    globalThis.errors = [];
    globalThis.app = new App({ name: "shop", version: "3.1" },
      { availableDisplayModes: ["inline"] });
    app.onerror = (error) => errors.push(error.message);
    for (const event of ["toolinput", "toolinputpartial", "toolresult", "toolcancelled"]) {
      app[`on${event}`] = (params) => { log.push([event, params]); };
    }
    app.onhostcontextchanged = () => { log.push(["context", app.getHostContext()]); };
    app.onteardown = () => { log.push(["teardown"]); return { saved: 1 }; };
    globalThis.pick = app.registerTool("pick", {
      title: "Pick", description: "Pick a product", annotations: { readOnlyHint: true },
      inputSchema: { type: "object", properties: { id: { type: "integer", minimum: 1 } },
        required: ["id"] },
      outputSchema: { type: "object", properties: { picked: { type: "integer" } },
        required: ["picked"] },
    }, ({ id }) => ({ picked: id }));
    app.registerTool("list", { outputSchema: { type: "array", items: { type: "string" } } },
      () => ["a"]);
    app.registerTool("fails", {}, () => { throw new Error("secret"); });
    app.registerTool("refuses", {}, () => { throw new ToolError("sold out"); });
    app.registerTool("nothing", {}, () => {});
    app.registerTool("hidden", { enabled: false }, () => "");
    app.registerTool("slow", {}, async (extra) => {
      await extra.sendProgress(1, 2, "half");
      await new Promise((resolve) => extra.signal.addEventListener("abort", resolve));
      log.push(["aborted", String(extra.signal.reason)]);
    });
    app.registerTool("server", {}, async () => {
      const seen = [];
      const result = await app.callServerTool({ name: "s", arguments: { a: 1 } },
        { onprogress: ({ progress }) => seen.push(progress) });
      return `${result.content[0].text} ${seen}`;
    });
    await app.connect();
    """,
    body="<p>Shop</p>",
)


@pytest.fixture(scope="session")
def official_page() -> str:
    """The host page with the official bridge in it."""
    built = subprocess.run(
        [
            str(ROOT / "node_modules" / ".bin" / "esbuild"),
            str(PAGES / "official_host.mjs"),
            "--bundle",
            "--format=esm",
            "--minify",
        ],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    ).stdout
    script = built.replace("</script", "<\\/script").replace("<!--", "<\\!--")
    frame = '<iframe sandbox="allow-scripts"></iframe>'
    return f'<!doctype html><body>{frame}<script type="module">{script}</script></body>'


@pytest_asyncio.fixture(loop_scope="session")
async def view(context: BrowserContext, official_page: str) -> AsyncIterator[View]:
    """The View, initialised in the official host."""
    async with host_page(context, host=official_page, view=VIEW) as shown:
        await shown.page.evaluate("url => mount(url)", VIEW_URL)
        yield shown


async def bridge(view: View, call: str) -> dict[str, Any]:
    """What a call of the bridge came to: `{"value"}`, or `{"code", "message"}`."""
    return await view.page.evaluate(f"settled(bridge.{call})")


async def value(view: View, call: str) -> Any:
    settled = await bridge(view, call)
    assert "value" in settled, settled
    return settled["value"]


async def test_it_shakes_hands_and_both_know_each_other(view: View):
    assert await view.page.evaluate("bridge.getAppVersion()") == {"name": "shop", "version": "3.1"}
    assert await view.page.evaluate("bridge.getAppCapabilities()") == {
        "tools": {"listChanged": True},
        "availableDisplayModes": ["inline"],
    }
    assert await view.run("app.getHostVersion()") == {"name": "official", "version": "2"}
    assert (await view.run("app.getHostContext()"))["theme"] == "dark"
    assert await view.page.evaluate("settled(bridge.request({ method: 'ping' }))") == {"value": {}}


async def test_its_tools_are_listed_and_called(view: View):
    tools = {tool["name"]: tool for tool in (await value(view, "listTools()"))["tools"]}
    assert list(tools) == ["pick", "list", "fails", "refuses", "nothing", "slow", "server"]
    assert tools["pick"]["annotations"] == {"readOnlyHint": True}
    assert tools["pick"]["inputSchema"]["required"] == ["id"]
    assert tools["list"]["outputSchema"]["properties"]["result"]["type"] == "array"
    picked = await value(view, 'callTool({ name: "pick", arguments: { id: 3 } })')
    assert picked["structuredContent"] == {"picked": 3}
    listed = await value(view, 'callTool({ name: "list" })')
    assert listed["structuredContent"] == {"result": ["a"]}
    nothing = await value(view, 'callTool({ name: "nothing" })')
    assert nothing["content"] == [{"type": "text", "text": "Done."}]


async def test_what_goes_wrong_is_told_in_the_right_form(view: View):
    bad = await value(view, 'callTool({ name: "pick", arguments: { id: 0 } })')
    assert bad["isError"]
    assert bad["content"][0]["text"] == (
        "Invalid arguments for tool pick:\n- id: must have minimum 1"
    )
    refused = await value(view, 'callTool({ name: "refuses" })')
    assert (refused["isError"], refused["content"][0]["text"]) == (True, "sold out")
    disabled = await value(view, 'callTool({ name: "hidden" })')
    assert disabled["content"][0]["text"] == "Tool hidden is disabled"
    unknown = await bridge(view, 'callTool({ name: "nope" })')
    assert (unknown["code"], "Tool nope not found" in unknown["message"]) == (-32602, True)
    failed = await bridge(view, 'callTool({ name: "fails" })')
    assert (failed["code"], "Tool fails failed" in failed["message"]) == (-32603, True)
    assert await view.run("errors") == ["secret"]


async def test_changes_are_told_and_listed(view: View):
    await view.run("pick.disable()")
    await view.page.wait_for_function("events.some(([name]) => name === 'changed')")
    assert (await value(view, "listTools()"))["tools"][0]["name"] == "list"
    await view.run("pick.enable(), pick.update({ description: 'Choose' })")
    assert (await value(view, "listTools()"))["tools"][0]["description"] == "Choose"


async def test_progress_and_cancelling_work_in_both_directions(view: View):
    ended = await view.page.evaluate("""async () => {
      const control = new AbortController();
      const steps = [];
      const call = settled(bridge.callTool({ name: "slow" }, { signal: control.signal,
        onprogress: (step) => { steps.push(step); control.abort("enough"); } }));
      return [await call, steps];
    }""")
    assert ended[1] == [{"progress": 1, "total": 2, "message": "half"}]
    assert "enough" in ended[0]["message"]
    await view.until("log.length")
    assert (await view.run("log"))[0][0] == "aborted"
    text = (await value(view, 'callTool({ name: "server" })'))["content"][0]["text"]
    assert text == "server s 1 1"


async def test_the_tools_data_the_context_and_the_teardown_arrive(view: View):
    await view.page.evaluate("""async () => {
      await bridge.sendToolInputPartial({ arguments: { q: "a" } });
      await bridge.sendToolInput({ arguments: { q: "ab" } });
      await bridge.sendToolResult({ content: [], structuredContent: { n: 1 } });
      await bridge.sendToolCancelled({ reason: "why" });
      bridge.setHostContext({ theme: "light", availableDisplayModes: ["inline"] });
    }""")
    assert await bridge(view, "teardownResource({})") == {"value": {"saved": 1}}
    assert await view.run("log") == [
        ["toolinputpartial", {"arguments": {"q": "a"}}],
        ["toolinput", {"arguments": {"q": "ab"}}],
        ["toolresult", {"content": [], "structuredContent": {"n": 1}}],
        ["toolcancelled", {"reason": "why"}],
        ["context", {"theme": "light", "availableDisplayModes": ["inline"]}],
        ["teardown"],
    ]


async def test_what_the_view_asks_and_tells_is_understood(view: View):
    said = await view.run("""async () => [
      await app.openLink({ url: "https://example.com" }),
      await app.sendMessage({ role: "user", content: [{ type: "text", text: "hi" }] }),
      await app.updateModelContext({ structuredContent: { a: 1 } }),
      await app.requestDisplayMode({ mode: "fullscreen" }),
      await app.requestDisplayMode({ mode: "pip" }).catch((error) => error.message),
      await app.sendLog({ level: "info", data: "x" }),
      await app.requestTeardown(),
    ]""")
    assert said[:5] == [
        {}, {"isError": True}, {}, {"mode": "fullscreen"}, "Not offered",
    ]  # fmt: skip
    await view.page.wait_for_function("events.some(([name]) => name === 'requestteardown')")
    await view.page.wait_for_function("events.some(([name]) => name === 'size')")
    events = dict(
        await view.page.evaluate("events.map(([name, params]) => [name, params ?? null])")
    )
    assert events["openlink"] == {"url": "https://example.com"}
    assert events["context"] == {"structuredContent": {"a": 1}}
    assert events["log"] == {"level": "info", "data": "x"}
    assert events["size"]["height"] > 0
    assert "error" not in events
