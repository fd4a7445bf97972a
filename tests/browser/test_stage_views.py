"""What the Stage itself says and shows of Views, whatever they do."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer
from playwright.async_api import Route, expect

from tests.browser.hosting import SEEN, Chromium, Told, User, hosted, show, text_of
from tests.browser.views import BUSY, html, page
from transom import Host, Policy
from transom.host.views.view import View
from transom.server import Csp, Views
from transom.types import ViewProblem
from transom.web.cards import GoneView
from transom.web.local.headless import HeadlessRenderer

MANY = """
for (let n = 0; n < 60; n += 1) tools[`tool${n}`] = () => "ran";
tools.fewer = () => {
  for (let n = 10; n < 60; n += 1) delete tools[`tool${n}`];
  say({ method: "notifications/tools/list_changed" });
  return "fewer";
};
"""


async def test_the_user_reads_which_tools_are_left_out_and_how_to_change_that(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(user.renderer(), MANY) as host:
        view = await show(host)
        note = user.page.locator("details.left-out")
        await expect(note).to_have_count(1)
        await note.locator("summary").click()
        await expect(note).to_contain_text("more than 50 tools (max_tools)")
        await expect(note).to_contain_text("--limit NAME=NUMBER of the gateway, raises a limit")
        assert view.bridge is not None
        await view.bridge.call_tool("fewer")
        await expect(note).to_be_hidden()
        assert view.left_out == ""


# --- forms -----------------------------------------------------------------------------------

PAY = """<!doctype html><html><head><title>Pay</title><script src="transom.js"></script></head>
<body><form toolname="pay" tooldescription="Pay a sum">
  <input name="sum" required><button>Pay now</button></form>
<script>
  document.forms[0].addEventListener("submit", (event) => {
    event.preventDefault();
    event.respondWith(Promise.resolve(`Paid ${event.target.elements.sum.value}.`));
  });
</script></body></html>"""


async def test_the_model_fills_in_a_form_and_the_user_submits_it(browser: Chromium) -> None:
    views = Views()

    @views.tool(opens=views.add("ui://shop/pay.html", html=PAY))
    def show() -> str:
        """Show the form."""
        return "shown"

    async with (
        browser.user() as user,
        Host(renderer=user.renderer(), policy=Policy.trusting(), audit=None) as host,
    ):
        await host.add_server("shop", MCPServer("shop", extensions=[views]))
        await host.call_tool("show")
        [tool] = host.view_tools("shop-1")
        assert tool.input_schema["required"] == ["sum"]
        paying = asyncio.create_task(text_of(host.call_tool(tool.name, {"sum": "9"})))
        await expect(user.in_view("shop-1").locator("input")).to_have_value("9")
        assert not paying.done()
        await user.in_view("shop-1").get_by_role("button", name="Pay now").click()
        assert await paying == "Paid 9."


# --- whose it is -----------------------------------------------------------------------------


def calling_itself(name: str) -> str:
    """A View's script: it says that this is its name."""
    return f"""
    const post = parent.postMessage.bind(parent);
    parent.postMessage = (message, target) => {{
      if (message.method === "ui/initialize") message.params.appInfo.name = {json.dumps(name)};
      post(message, target);
    }};
    """


CLOSED_QUOTE = """(own) => {
  const mark = document.createRange();
  mark.selectNode(own.lastChild);
  const { left, right, top, bottom, width } = mark.getBoundingClientRect();
  const there = own.getRootNode().elementsFromPoint((left + right) / 2, (top + bottom) / 2);
  return mark.toString() === "”" && width > 0 && right <= innerWidth && there.includes(own);
}"""


@pytest.mark.parametrize("width", [320, 1000])
async def test_whose_a_view_is_is_seen_in_every_mode_whatever_it_calls_itself(
    browser: Chromium, width: int
) -> None:
    name = "Bank” from bank „" + "\u202e\u2800x" * 100
    window = {"viewport": {"width": width, "height": 700}}
    async with (
        browser.user(**window) as user,
        user.renderer() as renderer,
        hosted(renderer.seat("a client with a long name"), calling_itself(name)) as host,
    ):
        await show(host)
        caption = user.page.locator("transom-view .caption")
        await caption.get_by_text("Bank' from bank '").wait_for()
        for mode in ("inline", "fullscreen", "pip"):
            renderer._stage.set_mode(renderer._stage.views[0], mode)
            await user.page.locator(f"transom-view[data-mode={mode}]").wait_for()
            whose = caption.locator(".whose")
            assert await whose.inner_text() == "from tests for a client with a long name", mode
            assert await whose.evaluate(SEEN), mode
            own = "".join((await caption.locator(".own").inner_text()).split("\n"))
            assert own.count("“") == own.count("”") == 1, own
            assert (own[0], own[-1], len(own)) == ("“", "”", 62), own
            assert "\u202e" not in own
            # Its quotation marks are seen, wherever its words are cut: what follows is not its own.
            assert await caption.locator(".own").evaluate(CLOSED_QUOTE), mode
        assert (await user.page.title()).startswith("tests: Bank”")


# --- presses ---------------------------------------------------------------------------------

GROW = """
const size = (height) => say({ method: "ui/notifications/size-changed", params: { height } });
size(300);
onmessage = ({ data }) => Number(data.method) && size(Number(data.method));
"""
THERE = """([x, y]) => {
  const there = document.elementFromPoint(x, y);
  return (there.shadowRoot?.elementFromPoint(x, y) ?? there).tagName;
}"""


async def test_a_press_for_one_view_does_not_reach_another_that_has_just_moved_there(
    browser: Chromium,
) -> None:
    async with browser.user() as user, user.renderer() as renderer:
        await user.context.clock.install(time=0)
        await renderer.show_page()
        hostile = renderer._stage.mount(page("hostile-1", GROW))
        renderer._stage.mount(page("good-1"))
        await user.page.locator("#view-hostile-1 iframe[style*='300px']").wait_for()
        await user.in_view("good-1").locator("body").wait_for()
        await user.page.clock.pause_at(60_000)

        async def there(view: str) -> str:
            """What a press in the middle of that View would reach."""
            box = await user.page.locator(f"#view-{view} iframe").bounding_box()
            assert box is not None
            at = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
            return await user.page.evaluate(THERE, at)

        for height in (40, 300):
            await hostile.send(b'{"jsonrpc":"2.0","method":"%d"}' % height)
            await user.page.locator(f"#view-hostile-1 iframe[style*='{height}px']").wait_for()
            assert (await there("hostile-1"), await there("good-1")) == ("IFRAME", "DIV")
            await user.page.clock.run_for(500)
            assert (await there("hostile-1"), await there("good-1")) == ("IFRAME", "IFRAME")
        renderer._stage.set_mode("hostile-1", "pip")
        await user.page.locator("#view-hostile-1[data-mode=pip]").wait_for()
        assert await there("good-1") == "DIV"
        await user.page.clock.run_for(500)
        assert await there("good-1") == "IFRAME"
        renderer._stage.set_mode("hostile-1", "inline")
        await user.page.locator("#view-hostile-1[data-mode=inline]").wait_for()
        await user.page.clock.run_for(500)
        await hostile.aclose()
        await user.page.locator("#view-hostile-1").wait_for(state="detached")
        assert await there("good-1") == "DIV"
        await user.page.clock.run_for(500)
        assert await there("good-1") == "IFRAME"


# --- Views that fail -------------------------------------------------------------------------

COUNT = "let calls = 0; tools.count = () => { calls += 1; return calls; };"
SILENT = "parent.postMessage = () => {};"


def failure(user: User, view_id: str) -> Any:
    return user.page.locator(f"#view-{view_id}[data-state=failed]")


async def test_a_view_that_a_busy_browser_takes_long_to_load_is_shown(browser: Chromium) -> None:
    loading = asyncio.Event()

    async def load(route: Route) -> None:
        await loading.wait()
        await route.continue_()

    async with browser.user() as user, hosted(renderer := user.renderer(), COUNT) as host:
        await user.context.clock.install()
        await user.context.route("**/transom-view?*", load)
        opening = asyncio.create_task(host.call_tool("show"))
        await renderer._stage.wait_for_page()
        await user.page.locator("[id=view-tests-1]").wait_for()
        await user.page.clock.run_for(40_000)
        loading.set()
        assert (await opening).meta["transom/view"]["state"] == "live"


async def test_a_view_that_does_not_load_leaves_a_card_that_says_why_and_can_be_tried_again(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(renderer := user.renderer(), COUNT) as host:
        await user.context.clock.install()
        await user.context.route("**/transom-view?*", lambda route: route.abort())
        opening = asyncio.create_task(host.call_tool("show"))
        await renderer._stage.wait_for_page()
        await user.page.locator("[id=view-tests-1]").wait_for()
        await user.page.clock.run_for(12_000)
        await expect(failure(user, "tests-1")).to_contain_text("did not load in the browser.")
        assert (await opening).meta["transom/view"]["state"] == "failed"
        assert await user.page.locator("transom-view iframe").count() == 0
        assert await user.page.get_by_text("Nothing is open").is_hidden()
        await user.context.unroute("**/transom-view?*")
        told = Told(host)
        await user.page.get_by_role("button", name="Try again: tests-1").click()
        view = await told.opened.get()
        assert view.id == "tests-1"
        assert await text_of(view.call_tool("count")) == "1"
        assert await failure(user, "tests-1").count() == 0


async def test_a_sandbox_that_cannot_be_had_for_a_moment_is_loaded_again(
    browser: Chromium,
) -> None:
    asked, back = 0, asyncio.Event()

    async def serve(route: Route) -> None:
        nonlocal asked
        asked += 1
        if asked == 1:
            await route.abort()
        elif asked == 2 or not back.is_set():
            policy = {"Content-Security-Policy": "frame-ancestors 'none'"}
            await route.fulfill(status=503, body="No Redis", headers=policy)
        else:
            await route.continue_()

    async with browser.user() as user, hosted(renderer := user.renderer(), COUNT) as host:
        await user.context.route("**/transom-view?*", serve)
        opening = asyncio.create_task(host.call_tool("show"))
        await renderer._stage.wait_for_page()
        frame = user.page.locator("#view-tests-1 iframe")
        await expect(frame).to_have_css("visibility", "hidden")  # not the browser's error page
        back.set()
        assert (await opening).meta["transom/view"]["state"] == "live"
        await expect(frame).to_have_css("visibility", "visible")
        assert await text_of(host.call_tool("tests-1__count")) == "1"


@pytest.mark.nightly
async def test_the_card_of_a_view_that_failed_outlasts_its_page_until_it_is_closed(
    browser: Chromium,
) -> None:
    async with (
        browser.user() as user,
        hosted(renderer := user.renderer(), SILENT, open_timeout=2) as host,
    ):
        await renderer.show_page()  # for which 2 s may be too little
        for _ in range(2):
            await host.call_tool("show")
        for number in (1, 2):
            card = failure(user, f"tests-{number}")
            why = card.get_by_text(
                "it was not initialised within 2 s: its page has to load and call"
            )
            await card.get_by_text("If it happens again, tell the author of tests.").wait_for()
            assert await why.is_hidden()
            await card.get_by_text("Details for its author").click()
            await why.wait_for()
            assert "`" not in await card.inner_text()
        await user.page.reload()
        for _ in range(2):
            await failure(user, "tests-2").wait_for()
            assert await failure(user, "tests-1").count() == 1
            await user.page.get_by_role("button", name="Try again: tests-2").click()
            await user.page.locator("transom-view[id=view-tests-2]").wait_for()
        await user.page.get_by_role("button", name="Close: tests-1").click()
        await failure(user, "tests-1").wait_for(state="detached")
        await user.page.reload()
        await failure(user, "tests-2").wait_for()
        assert await failure(user, "tests-1").count() == 0


async def test_a_page_that_fails_before_it_connects_says_so_and_leaves_a_card(
    browser: Chromium,
) -> None:
    async with (
        browser.user() as user,
        hosted(user.renderer(), "const wrong = ;", open_timeout=15) as host,
    ):
        failed = asyncio.Event()
        host.on_view_failed(lambda *_: failed.set())
        note = (await host.call_tool("show")).meta["transom/view"]
        assert note["state"] == "waiting"
        assert not failed.is_set()  # it may still connect
        shown = user.page.locator("#view-tests-1")
        for words in ("This page has not started.", "This page could not be shown."):
            await shown.get_by_text(f"{words} If it happens again, tell the author").wait_for()
            await shown.get_by_text("Details for its author").click()
            why = "its page failed before connect(): SyntaxError: Unexpected token ';' (the page, "
            await expect(shown).to_contain_text(f"{why}line 31, column 89)")
            await failed.wait()
        await failure(user, "tests-1").wait_for()


LATE = """
  const post = parent.postMessage.bind(parent);
  const button = document.createElement("button");
  button.append("Connect");
  document.body.append(button);
  parent.postMessage = (...given) => button.addEventListener("click", () => {
    parent.postMessage = post;
    post(...given);
  });
"""


async def test_a_page_that_fails_and_connects_when_nobody_waits_any_more_is_live(
    browser: Chromium,
) -> None:
    script = LATE + 'setTimeout(() => { throw new Error("harmless"); }); tools.count = () => 1;'
    async with (
        browser.user() as user,
        hosted(user.renderer(), script, open_timeout=60) as host,
    ):
        live = asyncio.Event()
        host.on_view_responsive(lambda _: live.set())
        assert (await host.call_tool("show")).meta["transom/view"]["state"] == "waiting"
        bar = user.page.locator("#view-tests-1 .trouble")
        await bar.wait_for()
        await user.in_view("tests-1").get_by_role("button", name="Connect").click()
        await live.wait()
        await bar.wait_for(state="detached")
        assert await text_of(host.call_tool("tests-1__count")) == "1"


@pytest.mark.nightly
@pytest.mark.processes
async def test_a_page_that_fails_and_computes_before_it_connects_is_not_lost() -> None:
    async with hosted(HeadlessRenderer(), BUSY) as host:
        live = asyncio.Event()
        host.on_view_opened(lambda _: live.set())
        note = (await host.call_tool("show")).meta["transom/view"]
        assert note["state"] in ("waiting", "live"), note
        await live.wait()
        assert await text_of(host.call_tool("tests-1__count")) == "1"


async def test_a_script_that_does_not_load_is_a_problem_once(browser: Chromium) -> None:
    with socket.socket() as reserved:  # and nobody listens
        reserved.bind(("127.0.0.1", 0))
        gone, blocked = f"http://127.0.0.1:{reserved.getsockname()[1]}", "https://cdn.example.com"
        scripts = f"""
          <script src="{gone}/classic.js?a#b"></script><script src="{blocked}/classic.js"></script>
          <script type="module">import "{blocked}/module.js";</script>
          <script type="module">import "{gone}/module.js";</script>
          <script type="module">import "{gone}/module.js";</script>"""
        views = Views()
        page = views.add("ui://tests/page.html", html=html(body=scripts), csp=Csp(resource=[gone]))

        @views.tool(opens=page)
        def show() -> str:
            """Show it."""
            return "shown"

        problems: list[str] = []
        found, expected = (
            asyncio.Event(),
            {
                f"A script did not load: {gone}/classic.js?a",
                f"A script did not load: {gone}/module.js",
                f"script-src-elem blocked {blocked}/classic.js",
                f"script-src-elem blocked {blocked}/module.js",
            },
        )

        def note(_: View, problem: ViewProblem) -> None:
            problems.append(problem.message)
            if expected <= {*problems}:
                found.set()

        async with (
            browser.user() as user,
            Host(renderer=user.renderer(), policy=Policy.trusting(), open_timeout=40) as host,
        ):
            host.on_view_problem = note
            await host.add_server("tests", MCPServer("tests", extensions=[views]))
            result = await host.call_tool("show")
            await asyncio.wait_for(found.wait(), 60)
            assert result.meta["transom/view"]["state"] == "live"
            await host.views["tests-1"].close()
    assert sorted(problems) == sorted(expected)


@pytest.mark.parametrize(
    "handled",
    [
        """addEventListener("error", (event) => event.preventDefault());
           setTimeout(() => { throw new Error("x"); });""",
        "window.onerror = () => true; setTimeout(() => { throw new Error('x'); });",
        """addEventListener("unhandledrejection", (event) => event.preventDefault());
           Promise.reject(new Error("x"));""",
        """const late = Promise.reject(new Error("x"));
           setTimeout(() => late.catch(() => {}), 500);""",
    ],
    ids=["error", "onerror", "rejection", "rejectionhandled"],
)
@pytest.mark.nightly
async def test_a_page_that_handles_its_errors_itself_is_waited_for(
    handled: str, browser: Chromium
) -> None:
    slow = """
      const post = parent.postMessage.bind(parent);
      parent.postMessage = (...given) => addEventListener("load", () => setTimeout(() => {
        parent.postMessage = post;
        post(...given);
      }, 5000));
    """
    async with browser.user() as user, hosted(user.renderer(), handled + slow) as host:
        assert (await host.call_tool("show")).meta["transom/view"]["state"] == "live"


async def test_a_view_that_the_user_closes_while_it_opens_leaves_no_card(browser: Chromium) -> None:
    async with browser.user() as user, hosted(renderer := user.renderer(), SILENT) as host:
        opening = asyncio.create_task(host.call_tool("show"))
        await renderer._stage.wait_for_page()
        await user.page.get_by_role("button", name="Close: tests-1").click()
        assert (await opening).meta["transom/view"]["error"] == "the user closed it"
        await user.page.get_by_text("Nothing is open").wait_for()
        assert await failure(user, "tests-1").count() == 0


# --- what is said around them ----------------------------------------------------------------

AXE = (Path(__file__).parents[2] / "node_modules/axe-core/axe.min.js").read_text()
SERIOUS = """async () => {
  const found = await axe.run({ exclude: [["iframe"]] }, { iframes: false });
  return found.violations.filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(" ").slice(0, 400)}`);
}"""


OFFERING = """
tools.count = () => 1;
tools.count.description = "Count <b>up</b>";
const post = parent.postMessage.bind(parent);
parent.postMessage = (message, target) => {
  const save = { name: "save", reason: "nothing to save" };
  if (message.result?.tools) message.result._meta = { "transom/disabled": [save] };
  post(message, target);
};
"""


@pytest.mark.nightly
async def test_the_view_that_asks_is_first_and_failed_ones_are_last_and_all_can_use_it(
    browser: Chromium,
) -> None:
    async with browser.user() as user, hosted(renderer := user.renderer(), OFFERING) as host:
        for _ in range(3):
            await show(host)
        stage = renderer._stage
        await stage.mounted("tests-2").channel.aclose()

        async def order() -> list[str]:
            cards = await user.page.locator("main > transom-view").all()
            places = [
                ((await each.bounding_box())["y"], await each.get_attribute("id")) for each in cards
            ]
            return [each for _, each in sorted(places)]

        stage.gone.show(GoneView("x", "x", "tests", "", "no `connect()`", title="X"), None)
        await user.page.locator("#view-x").wait_for()
        await user.page.locator("#view-tests-2[data-state=closed]").wait_for()
        assert await order() == ["view-tests-3", "view-tests-1", "view-x", "view-tests-2"]
        asked = asyncio.ensure_future(stage.ask("pin", "tests-1", server="tests", reason="Why"))
        await user.page.get_by_role("alertdialog").wait_for()
        assert await order() == ["view-tests-1", "view-tests-3", "view-x", "view-tests-2"]
        assert await user.page.title() == "(1) tests: test-view"
        # Who does not use a mouse gets at all that is folded.
        first = user.page.locator("#view-tests-1")
        about = first.get_by_role("button", name="About this View")
        assert await about.get_attribute("aria-expanded") == "false"
        await about.focus()
        await user.page.keyboard.press("Enter")
        assert await about.get_attribute("aria-expanded") == "true"
        facts = await first.get_by_role("region", name="About").inner_text()
        for fact in ("tests-1", "test-view 1.0", "ui://tests/page.html", "2 tools for the model"):
            assert fact in facts
        tools = await first.locator(".facts li").all_text_contents()
        assert tools == ["told", "countCount <b>up</b>", "savedisablednothing to save"]
        await user.page.get_by_text("Details for its author").click()
        await user.page.evaluate(AXE)
        for scheme in ("light", "dark"):
            await user.page.emulate_media(color_scheme=scheme)
            assert await user.page.evaluate(SERIOUS) == []
        asked.cancel()


# --- used again ------------------------------------------------------------------------------

LOG = """<!doctype html><html><head><title>log</title><script type="module">
import { App } from "transom";
const app = new App({ name: "log", version: "1" });
const add = (line) => document.body.append(line, document.createElement("br"));
app.ontoolinput = ({ arguments: { status } }) => add(`input ${status}`);
app.ontoolresult = ({ content }) => add(`result ${content[0].text}`);
await app.connect();
</script></head><body></body></html>"""


async def test_the_user_is_asked_and_the_page_takes_another_call_and_has_it_after_a_reload(
    browser: Chromium,
) -> None:
    views = Views()

    @views.tool(opens=views.add("ui://log/page.html", html=LOG), reuse="always")
    def show(status: str) -> str:
        """Show what there is."""
        return status

    async with (
        browser.user() as user,
        user.renderer() as renderer,
        Host(
            renderer=(seat := renderer.seat()), policy=Policy(seat.approve), open_timeout=40
        ) as host,
    ):
        await host.add_server("log", MCPServer("log", extensions=[views]), open_views="ask")
        told = Told(host)
        first = asyncio.ensure_future(host.call_tool("show", {"status": "one"}))
        await renderer._stage.wait_for_page()
        asked = user.page.locator("#questions")
        await asked.get_by_text("Let show open a View?").wait_for()
        for words in ("A new View from log", "The server says what it does", "Show what there is."):
            await asked.get_by_text(words).wait_for()
        await asked.get_by_role("button", name="Allow", exact=True).click()
        assert (await first).meta["transom/view"] == {"id": "log-1", "state": "live"}
        await told.opened.get()
        again = await host.call_tool("show", {"status": "two"})
        assert again.meta["transom/view"] == {"id": "log-1", "state": "live", "reused": True}
        shown = user.in_view(seat.key_of("log-1")).locator("body")
        lines = ["input one", "result one", "input two", "result two"]
        await expect(shown).to_have_text("".join(lines))
        await user.page.reload()
        await told.opened.get()
        await expect(shown).to_have_text("".join(lines[2:]))
