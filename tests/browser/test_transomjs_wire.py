"""What `transom.js` adds to the wire, and what it leaves out where a host did not ask.

Everything of ours is named `transom/...`; a host that does not know it loses nothing. What
goes wrong in a page, and its style, is tried in Chromium, the rest in Node.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import pytest
from playwright.async_api import BrowserContext

from tests.browser.transomjs_host import STRICT, VIEW_URL, Node, View, host_page, page_with

PROBLEM = "transom/notifications/problem"


def app_with(setup: str, *, capabilities: str = "undefined", after: str = "") -> str:
    return page_with(f"""
      globalThis.errors = [];
      globalThis.app = new App({{ name: "a", version: "1" }}, {capabilities},
        {{ autoResize: false }});
      app.onerror = (error) => errors.push(String(error.message ?? error));
      {setup}
      await app.connect();
      {after}
    """)


@asynccontextmanager
async def hosted(
    context: BrowserContext | Node,
    page: str,
    *,
    capabilities: dict[str, Any] | None = None,
    host_context: dict[str, Any] | None = None,
    csp: str = STRICT,
) -> AsyncIterator[View]:
    """A View, initialised by a host that says this of itself."""
    async with host_page(context, view=page, csp=csp) as view:
        await view.page.evaluate(
            """([capabilities, context]) => {
              const answer = answers["ui/initialize"];
              Object.assign(answer.hostCapabilities, capabilities);
              Object.assign(answer.hostContext, context);
            }""",
            [capabilities or {}, host_context or {}],
        )
        await view.page.evaluate("url => mount(url)", VIEW_URL)
        await view.heard("ui/notifications/initialized")
        yield view


def meta(tool: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in tool["_meta"].items() if key.startswith("transom/")}


class TestListing:
    async def test_a_lazy_schema_is_marked_and_only_that(self, node: Node):
        page = app_with("""
          globalThis.lazy = app.registerTool("lazy", { inputSchema: () => ({ type: "object" }),
            _meta: { mine: 1 } }, () => "");
          app.registerTool("fixed", { inputSchema: { type: "object" } }, () => "");
          app.registerTool("none", {}, () => "");
        """)
        async with hosted(node, page) as view:
            lazy, fixed, none = await view.tools()
            assert lazy["_meta"] == {
                "mine": 1, "transom/lazy": True, "transom/registration": 1,
            }  # fmt: skip
            assert "transom/lazy" not in fixed["_meta"] | none["_meta"]
            await view.run("lazy.update({ inputSchema: { type: 'object' } })")
            assert "transom/lazy" not in (await view.tools())[0]["_meta"]
            assert await view.run("lazy._meta") == {"mine": 1}

    async def test_a_registration_has_a_number_of_its_own_that_no_change_takes_away(
        self, node: Node
    ):
        page = app_with("""
          globalThis.a = app.registerTool("a", {}, () => "");
          globalThis.b = app.registerTool("b", {}, () => "");
          app.onlisttools = () => ["listed"];
        """)
        async with hosted(node, page) as view:
            tools = await view.tools()
            assert [meta(tool)["transom/registration"] for tool in tools[:2]] == [1, 2]
            assert "_meta" not in tools[2]
            await view.run("a.disable('why'), a.enable(), a.update({ description: 'new' })")
            assert meta((await view.tools())[0]) == {"transom/registration": 1}
            await view.run("""() => {
              b.remove();
              globalThis.b = app.registerTool("b", {}, () => "");
            }""")
            assert meta((await view.tools())[1]) == {"transom/registration": 3}
            assert await view.run("[a.registration, b.registration]") == [1, 3]

    async def test_disabled_tools_are_told_beside_the_first_page(self, node: Node):
        page = app_with("""
          app.registerTool("on", {}, () => "");
          globalThis.save = app.registerTool("save", {}, () => "");
          save.disable("nothing to save");
          app.registerTool("off", { enabled: false }, () => "");
          app.registerTool("long", { enabled: false, reason: "x".repeat(600) }, () => "");
          app.registerTool("broken", { inputSchema: () => { throw new Error("no"); } }, () => "");
          globalThis.many = (count) => Array.from({ length: count }, (_, i) =>
            app.registerTool(`many${i}`, { enabled: false }, () => ""));
        """)
        async with hosted(node, page) as view:
            listed = (await view.ask("tools/list"))["result"]
            assert [tool["name"] for tool in listed["tools"]] == ["on"]
            assert listed["_meta"] == {
                "transom/lazy": True,  # the one that is broken may not be so the next time
                "transom/disabled": [
                    {"name": "save", "reason": "nothing to save", "registration": 2},
                    {"name": "off", "registration": 3},
                    {"name": "long", "reason": "x" * 500, "registration": 4},
                ],
            }
            await view.run("void many(200)")
            listed = (await view.ask("tools/list"))["result"]
            assert len(listed["_meta"]["transom/disabled"]) == 100
            later = (await view.ask("tools/list", {"cursor": "100"}))["result"]
            assert later == {"tools": []}
            await view.run(
                "app.tools.filter(({ name }) => name !== 'broken').forEach((tool) => tool.enable())"
            )
            told = (await view.ask("tools/list"))["result"]["_meta"]
            assert told == {"transom/lazy": True, "transom/disabled": []}
            await view.run("app.tools.find((tool) => tool.name === 'broken').remove()")
            assert "_meta" not in (await view.ask("tools/list"))["result"]

    async def test_bare_names_are_tools_and_what_is_none_is_left_out_and_told(self, node: Node):
        page = app_with("""
          globalThis.given = ["get-selection", { name: "described", description: "D" }, "kept"];
          app.registerTool("kept", { description: "registered" }, () => "");
          app.onlisttools = async () => ({ tools: given });
          app.oncalltool = async ({ name }) => name;
        """)
        async with hosted(node, page) as view:
            kept, selection, described = await view.tools()
            assert kept["description"] == "registered"
            assert selection == {"name": "get-selection", "inputSchema": {"type": "object"}}
            assert described["inputSchema"] == {"type": "object"}
            assert await view.text("get-selection") == "get-selection"
            assert await view.run("errors") == []
            await view.run("""() => {
              given = [null, 5, {}, { name: 1 }, { name: "x", inputSchema: { type: "string" } },
                { name: "x", inputSchema: "no" }, ["y"], "fine"];
            }""")
            assert await view.names() == ["kept", "fine"]
            said = await view.run("errors")
            assert len(said) == 7
            assert said[3] == 'Not a tool: {"name":1}'
            await view.run("void (app.onlisttools = () => ['alone'])")
            assert await view.names() == ["kept", "alone"]


class TestTooLate:
    @pytest.mark.parametrize("name", ["onlisttools", "oncalltool"])
    async def test_a_handler_of_tools_after_connect_without_the_capability_throws(
        self, node: Node, name: str
    ):
        async with hosted(node, app_with("")) as view:
            attempt = f"""() => {{
              try {{ app.{name} = () => []; return "set"; }}
              catch (error) {{ return error.message; }}
            }}"""
            for _ in range(2):
                assert await view.run(attempt) == (
                    f"{name} was set after connect() without the capability tools: do so before, "
                    "or declare it"
                )
            assert await view.run(f"app.{name} === undefined")
            await view.run(f"void (app.{name} = undefined)")

    async def test_with_the_capability_it_is_in_time_and_before_connect_it_declares_it(
        self, node: Node
    ):
        async with hosted(node, app_with("", capabilities="{ tools: {} }")) as view:
            await view.run("""() => {
              app.onlisttools = () => ["late"];
              app.oncalltool = ({ name }) => `called ${name}`;
            }""")
            assert await view.names() == ["late"]
            assert await view.text("late") == "called late"
        async with hosted(node, app_with("app.oncalltool = () => 'x';")) as view:
            [hello] = await view.seen("ui/initialize")
            assert hello["params"]["appCapabilities"] == {"tools": {"listChanged": True}}

    async def test_after_a_close_it_is_in_time_again(self, node: Node):
        async with hosted(node, app_with("")) as view:
            await view.run("""async () => {
              await app.close();
              app.onlisttools = () => ["again"];
              await app.connect();
            }""")
            assert await view.names() == ["again"]


class TestListChanged:
    @pytest.mark.parametrize(
        ("capabilities", "count"),
        [
            ({}, 2),
            ({"tools": {"listChanged": True}}, 2),
            ({"tools": {}}, 0),
            ({"tools": {"listChanged": False}}, 0),
            ({"appTools": {}}, 0),
            ({"appTools": {"listChanged": True}}, 2),
        ],
    )
    async def test_a_host_that_has_tools_and_takes_no_notices_gets_none(
        self, node: Node, capabilities: dict[str, Any], count: int
    ):
        page = app_with('globalThis.t = app.registerTool("t", {}, () => "");')
        async with hosted(node, page, capabilities=capabilities) as view:
            await view.run("async () => { t.disable(); await null; }")
            await view.run("app.sendToolListChanged()")
            assert len(await view.seen("notifications/tools/list_changed")) == count
            assert await view.names() == []


class TestPin:
    PAGE = app_with("")
    OFFERED: ClassVar = {"experimental": {"transom/pin": {}}}

    async def test_a_host_that_does_not_offer_it_is_not_asked(self, node: Node):
        for capabilities in ({}, {"experimental": {}}, {"experimental": {"other/pin": {}}}):
            async with hosted(node, self.PAGE, capabilities=capabilities) as view:
                assert await view.run("app.requestPin('playing')") is False
                assert await view.seen("transom/request-pin") == []

    async def test_yes_and_no_are_the_answers(self, node: Node):
        async with hosted(node, self.PAGE, capabilities=self.OFFERED) as view:
            for answer, expected in (
                ({}, True),
                ({"isError": True, "message": "no"}, False),
                ({"error": {"code": -32000, "message": "The user said no"}}, False),
                ({"error": {"code": -32601, "message": "Method not found"}}, False),
            ):
                await view.page.evaluate("a => { answers['transom/request-pin'] = a }", answer)
                assert await view.run("app.requestPin('playing')") is expected
            await view.run("app.requestPin()")
            asked = await view.seen("transom/request-pin")
            assert [message["params"] for message in asked] == [{"reason": "playing"}] * 4 + [{}]

    async def test_before_the_handshake_the_answer_is_no(self, node: Node):
        page = page_with("""
          globalThis.app = new App({ name: "a", version: "1" });
          globalThis.pinned = await app.requestPin("early");
          await app.connect();
        """)
        async with hosted(node, page, capabilities=self.OFFERED) as view:
            assert await view.run("pinned") is False


class TestProblems:
    WANTED: ClassVar = {"experimental": {"transom/problems": {}}}
    PAGE = app_with("""
      globalThis.broken = true;
      app.registerTool("lazy", { inputSchema: () => {
        if (broken) throw new TypeError("no library yet");
        return { type: "object" };
      } }, () => "");
      app.registerTool("throws", {}, () => { throw new Error("out of tape"); });
      app.registerTool("refuses", {}, () => { throw new ToolError("not now"); });
      app.ontoolinput = () => { throw new Error("cannot draw"); };
    """)

    async def problems(self, view: View) -> list[dict[str, Any]]:
        """What was told, without where it happened."""
        told = [message["params"] for message in await view.seen(PROBLEM)]
        return [{key: value for key, value in each.items() if key != "stack"} for each in told]

    async def test_what_goes_wrong_in_a_page_is_told_once(self, context: BrowserContext):
        async with hosted(context, self.PAGE, capabilities=self.WANTED) as view:
            await view.tools()
            await view.tools()
            await view.ask("tools/call", {"name": "throws"})
            await view.call("refuses")
            await view.tell("ui/notifications/tool-input", {"arguments": {}})
            assert await self.problems(view) == [
                {"kind": "schema", "message": "TypeError: no library yet", "tool": "lazy"},
                {"kind": "tool", "message": "Error: out of tape", "tool": "throws"},
                {"kind": "error", "message": "Error: cannot draw"},
            ]
            assert await view.run("errors") == ["no library yet", "out of tape", "cannot draw"]

    async def test_errors_rejections_the_console_and_blocked_requests_are_told(
        self, context: BrowserContext
    ):
        async with hosted(context, self.PAGE, capabilities=self.WANTED) as view:
            await view.run("void setTimeout(() => { throw new RangeError('too far'); })")
            [thrown] = await view.heard(PROBLEM)
            assert thrown["params"]["kind"] == "error"
            assert thrown["params"]["message"] == "RangeError: too far"
            assert isinstance(thrown["params"]["line"], int)
            assert isinstance(thrown["params"]["column"], int)
            await view.run("void Promise.reject(new Error('broken promise'))")
            [_, rejected] = await view.heard(PROBLEM, 2)
            assert rejected["params"].pop("stack").startswith("Error: broken promise\n    at ")
            assert rejected["params"] == {
                "kind": "rejection", "message": "Error: broken promise",
            }  # fmt: skip
            await view.run("console.error('cannot load', { id: 7 }, new Error('why'), null)")
            [*_, said] = await view.heard(PROBLEM, 3)
            assert said["params"] == {
                "kind": "console", "message": 'cannot load {"id":7} Error: why null',
            }  # fmt: skip
            await view.run("void fetch('https://elsewhere.invalid/data').catch(() => {})")
            [*_, blocked] = await view.heard(PROBLEM, 4)
            assert blocked["params"]["kind"] == "blocked"
            assert blocked["params"]["message"] == (
                "connect-src blocked https://elsewhere.invalid/data"
            )
            assert "error: cannot load {id: 7} Error: why" in "\n".join(view.console)

    async def test_onerror_that_writes_to_the_console_does_not_tell_it_twice(
        self, context: BrowserContext
    ):
        page = app_with("""
          app.onerror = (error) => console.error("oh", error.message);
          app.registerTool("throws", {}, () => { throw new Error("once"); });
        """)
        async with hosted(context, page, capabilities=self.WANTED) as view:
            await view.ask("tools/call", {"name": "throws"})
            await view.run("console.error('by itself')")
            told = await self.problems(view)
            assert [problem["kind"] for problem in told] == ["tool", "console"]
            assert "error: oh once" in view.console

    async def test_without_onerror_it_is_written_to_the_console_and_told_once(
        self, context: BrowserContext
    ):
        page = app_with("""
          app.onerror = undefined;
          app.registerTool("throws", {}, () => { throw new Error("once"); });
        """)
        async with hosted(context, page, capabilities=self.WANTED) as view:
            await view.ask("tools/call", {"name": "throws"})
            assert [problem["kind"] for problem in await self.problems(view)] == ["tool"]
            assert "Error: once" in view.console[0]

    async def test_what_a_page_around_the_view_has_told_is_left_to_it(
        self, context: BrowserContext
    ):
        around = """<script>
          const TOLD = Symbol.for("transom/problem");
          addEventListener("error", (event) => {
            if (event.message.includes("theirs")) event[TOLD] = true;
          });
          const { error } = console;
          console.error = (...given) => error("theirs", ...given);
          console.error[TOLD] = error;
        </script>"""
        page = app_with("""
          addEventListener("error", (event) => {
            (globalThis.marked ??= []).push(event[Symbol.for("transom/problem")] ?? false);
          });
        """).replace("<body>", f"<body>{around}")
        async with hosted(context, page, capabilities=self.WANTED) as view:
            await view.run("void setTimeout(() => { throw new Error('theirs'); })")
            await view.run("void setTimeout(() => { throw new Error('ours'); })")
            [told] = await view.heard(PROBLEM)
            assert told["params"]["message"] == "Error: ours"
            await view.run("console.error('x')")
            assert len(await self.problems(view)) == 1
            assert "error: theirs x" in view.console
            assert await view.run("marked") == [True, True]  # so the page around leaves ours

    async def test_a_hundred_are_told_and_none_at_length(self, context: BrowserContext):
        async with hosted(context, self.PAGE, capabilities=self.WANTED) as view:
            await view.run("console.error('x'.repeat(5000))")
            await view.run("() => { for (let i = 0; i < 200; i++) console.error(i); }")
            told = await self.problems(view)
            assert len(told) == 101
            assert told[0]["message"] == "x" * 2000
            assert told[99]["message"] == "98"
            assert told[100]["message"] == "More than 100 problems"

    async def test_anything_can_be_thrown_and_written(self, context: BrowserContext):
        async with hosted(context, self.PAGE, capabilities=self.WANTED) as view:
            await view.run("""() => {
              const round = {}; round.round = round;
              const hostile = { toJSON() { throw new Error("no"); }, toString() { throw 1; } };
              class Bad extends Error { toString() { throw new Error("no"); } }
              console.error(round, hostile, undefined, Symbol("s"), 10n, () => 1, new Bad());
            }""")
            [told] = await self.problems(view)
            assert told["kind"] == "console"

    async def test_a_host_that_did_not_ask_is_told_nothing_and_the_console_is_left_alone(
        self, context: BrowserContext
    ):
        page = app_with(
            "globalThis.original = console.error;"
            "app.registerTool('throws', {}, () => { throw new Error('x'); });"
        )
        async with hosted(context, page) as view:
            await view.run("void setTimeout(() => { throw new Error('mine'); })")
            await view.ask("tools/call", {"name": "throws"})
            await view.run("console.error('mine')")
            assert await self.problems(view) == []
            assert await view.run("console.error === original")

    async def test_after_the_close_nothing_is_told(self, context: BrowserContext):
        async with hosted(context, self.PAGE, capabilities=self.WANTED) as view:
            await view.run("app.close()")
            await view.run("console.error('later')")
            await view.run("void Promise.reject(new Error('later'))")
            await view.run("app.connect()")
            assert await self.problems(view) == []
            await view.run("console.error('again')")
            [told] = await self.problems(view)
            assert told["message"] == "again"


class TestStyle:
    STYLES: ClassVar = {
        "variables": {"--color-text-primary": "rgb(1, 2, 3)", "--gone": "1px", "display": "none"}
    }
    LOOK = """() => {
      const { style, dataset } = document.documentElement;
      return [style.colorScheme, dataset.theme ?? null,
        style.getPropertyValue("--color-text-primary"), style.getPropertyValue("--gone"),
        getComputedStyle(document.documentElement).display];
    }"""

    @pytest.mark.parametrize("when", ["setup", "after"])
    async def test_the_page_follows_the_hosts_theme_and_variables(
        self, context: BrowserContext, when: str
    ):
        page = app_with(**{"setup": "", when: "app.followHostStyle();"})
        look = {"theme": "dark", "styles": self.STYLES}
        async with hosted(context, page, host_context=look) as view:
            assert await view.run(self.LOOK) == ["dark", "dark", "rgb(1, 2, 3)", "1px", "block"]
            changed = "ui/notifications/host-context-changed"
            await view.tell(changed, {"theme": "light"})
            assert await view.run(self.LOOK) == ["light", "light", "rgb(1, 2, 3)", "1px", "block"]
            await view.tell(changed, {"styles": {"variables": {"--color-text-primary": "red"}}})
            assert await view.run(self.LOOK) == ["light", "light", "red", "", "block"]
            await view.tell(changed, {"styles": None})
            assert await view.run(self.LOOK) == ["light", "light", "", "", "block"]

    async def test_the_page_has_the_new_look_before_its_own_handler_runs(
        self, context: BrowserContext
    ):
        page = app_with("""
          app.followHostStyle();
          app.onhostcontextchanged = () => {
            globalThis.seen = document.documentElement.style.colorScheme;
          };
        """)
        async with hosted(context, page) as view:
            await view.tell("ui/notifications/host-context-changed", {"theme": "light"})
            assert await view.run("seen") == "light"

    async def test_a_page_that_does_not_ask_keeps_its_own_look(self, context: BrowserContext):
        look = {"theme": "dark", "styles": self.STYLES}
        async with hosted(context, app_with(""), host_context=look) as view:
            assert await view.run(self.LOOK) == ["", None, "", "", "block"]

    async def test_styles_that_make_no_sense_do_no_harm(self, context: BrowserContext):
        page = app_with("app.followHostStyle();")
        async with hosted(context, page) as view:
            for styles in ({"variables": None}, {"variables": {"--a": None, "--b": 5}}, {}, 5):
                await view.tell("ui/notifications/host-context-changed", {"styles": styles})
            assert await view.run("errors") == []
