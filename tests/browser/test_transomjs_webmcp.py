"""`document.modelContext` of `transom.js`, without and with the browser's own. In Chromium."""

import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext

from tests.browser.conftest import Launch
from tests.browser.transomjs_host import PAGES, VIEW_URL, View, host_page, mounted, page_with

STRAWMAN = (PAGES / "samples" / "webmcp.js").read_text()

# What the sample takes for granted.
MUSIC = """
  const library = { tracks: ["one", "two"], trackIds: () => [...library.tracks] };
  const player = { played: [], play: (id) => player.played.push(id) };
  const queue = { listeners: [], on: (_, listener) => queue.listeners.push(listener),
    set: (tracks) => queue.listeners.forEach((listener) => listener(tracks)) };
  const stock = (tracks) => { library.tracks = tracks; };
  const enqueue = queue.set, played = () => player.played;
  Object.assign(globalThis, { library, player, queue, stock, enqueue, played });
"""
APP = """
  globalThis.app = new App({ name: "music", version: "1" }, {}, { autoResize: false });
  app.onerror = (error) => console.error(error);
"""


@pytest_asyncio.fixture(loop_scope="session")
async def webmcp(launch: Launch) -> AsyncIterator[BrowserContext]:
    """A context of a Chromium that has WebMCP of its own."""
    browser = await launch("--enable-features=WebMCP")
    made = await browser.new_context()
    yield made
    await made.close()


async def strawman_works(view: View) -> None:
    """What the sample promises, whoever connects it."""
    [play] = await view.tools()
    assert play["name"] == "play_track"
    assert play["description"] == "Play a track from the user's library."
    assert play["inputSchema"]["properties"]["id"]["enum"] == ["one", "two"]
    assert await view.text("play_track", {"id": "two"}) == "Done."
    assert await view.run("player.played") == ["two"]
    refused = await view.call("remove_from_queue", {"position": 0})
    assert refused["isError"]
    assert refused["content"][0]["text"] == "Tool remove_from_queue is disabled"

    await view.run("void (library.tracks = ['three'])")
    assert (await view.tools())[0]["inputSchema"]["properties"]["id"]["enum"] == ["three"]
    assert await view.text("play_track", {"id": "two"}) == (
        'Invalid arguments for tool play_track:\n- id: must be one of ["three"]'
    )

    await view.run("queue.set(['a'])")
    await view.heard("notifications/tools/list_changed")
    assert await view.names() == ["play_track", "remove_from_queue"]
    assert await view.text("remove_from_queue", {"position": 0}) == "Done."
    await view.run("queue.set([])")
    assert await view.names() == ["play_track"]


ATTEMPT = """(call) => {
  try { return `returned ${call()}`; } catch (error) { return error.message; }
}"""


class TestByItself:
    async def test_the_sample_runs_as_written_in_a_page_that_has_an_app(
        self, context: BrowserContext
    ):
        page = page_with(f"{MUSIC}{APP}{STRAWMAN}\nawait app.connect();")
        async with mounted(context, page) as view:
            await strawman_works(view)
            assert view.console == []

    async def test_the_sample_runs_as_written_in_a_page_without_one(self, context: BrowserContext):
        page = page_with(f"{MUSIC}{STRAWMAN}", kind="text/javascript")
        async with mounted(context, page) as view:
            [hello] = await view.seen("ui/initialize")
            assert hello["params"]["appInfo"] == {"name": "A View", "version": "1"}
            assert hello["params"]["appCapabilities"] == {"tools": {"listChanged": True}}
            await strawman_works(view)
            assert view.console == []

    async def test_an_app_that_is_made_later_takes_the_tools_over(self, context: BrowserContext):
        page = page_with(
            f"""{MUSIC}{STRAWMAN}
            addEventListener("load", () => setTimeout(async () => {{
              globalThis.app = new transom.App({{ name: "late", version: "2" }}, {{ other: 1 }});
              app.registerTool("own", {{}}, () => "own");
              await app.connect();
            }}));""",
            kind="text/javascript",
        )
        async with mounted(context, page) as view:
            await view.until("globalThis.app?.getHostVersion()")
            [*_, hello] = await view.heard("ui/initialize", 2)
            assert hello["params"]["appInfo"] == {"name": "late", "version": "2"}
            assert hello["params"]["appCapabilities"] == {
                "other": 1,
                "tools": {"listChanged": True},
            }
            assert await view.names() == ["play_track", "own"]
            await view.run("queue.set(['a'])")
            assert await view.names() == ["play_track", "remove_from_queue", "own"]

    async def test_tools_come_and_go_by_signal_and_by_name_and_every_change_is_an_event(
        self, context: BrowserContext
    ):
        page = page_with(f"""{APP}
          globalThis.events = 0;
          document.modelContext.addEventListener("toolchange", () => events++);
          globalThis.control = new AbortController();
          await document.modelContext.registerTool({{ name: "a", description: "A",
            execute: (given) => given }},
            {{ signal: control.signal }});
          await document.modelContext.registerTool({{ name: "b", description: "B", title: "Bee",
            annotations: {{ readOnlyHint: true }}, inputSchema: {{ type: "object",
              required: ["x"] }},
            async execute({{ x }}, {{ signal }}) {{ return {{ x, signal: signal.aborted }}; }} }});
          app.registerTool("c", {{}}, () => "c");
          await app.connect();
        """)
        async with mounted(context, page) as view:
            assert await view.run("document.modelContext === navigator.modelContext")
            assert await view.run("events") == 3
            assert await view.names() == ["a", "b", "c"]
            assert (await view.call("a", {"y": 1}))["structuredContent"] == {"y": 1}
            assert (await view.call("b", {"x": 1}))["structuredContent"] == {
                "x": 1,
                "signal": False,
            }
            assert (await view.call("b", {}))["isError"]
            await view.run("control.abort()")
            await view.run("document.modelContext.unregisterTool('c')")
            await view.run("document.modelContext.unregisterTool('nobody')")
            assert await view.names() == ["b"]
            assert await view.run("events") == 5
            listed = (await view.tools())[0]
            assert listed == {
                "name": "b", "title": "Bee", "description": "B",
                "annotations": {"readOnlyHint": True},
                "inputSchema": {"type": "object", "properties": {}, "required": ["x"]},
                "_meta": {"transom/registration": 2},
            }  # fmt: skip

    async def test_mistakes_are_rejections_and_change_nothing(self, context: BrowserContext):
        page = page_with(f"""{APP}
          document.modelContext.registerTool({{ name: "a", description: "A", execute() {{}} }});
          await app.connect();
        """)
        async with mounted(context, page) as view:
            say = (
                "(promise) => promise.then(() => '', (error) => `${error.name}: ${error.message}`)"
            )
            for attempt, said in {
                "registerTool({ name: 'a', description: 'A', execute() {} })":
                    "Error: Tool a is already registered",
                "registerTool({ name: 'b c', description: 'B', execute() {} })":
                    "Error: Not a tool name: b c",
                "registerTool({ name: 'b', description: 'B', inputSchema: { type: 'string' }, "
                "execute() {} })": "Error: An inputSchema describes an object",
                "updateTool('b', { disabled: true })": "Error: Tool b is not registered",
                "updateTool('a', { execute: () => 1 })":
                    "TypeError: updateTool cannot change execute: use update() of the handle",
            }.items():  # fmt: skip
                assert await view.run(f"({say})(document.modelContext.{attempt})") == said
            assert await view.names() == ["a"]

    REFUSED: ClassVar = {
        "{ name: 'r', execute() {} }": "TypeError",
        "{ name: 'r', description: 'R' }": "TypeError",
        "{ name: 'r', description: 'R', execute: 5 }": "TypeError",
        "{ name: 'r', description: 'R', execute() {} }, { signal: AbortSignal.abort() }":
            "AbortError",
        "{ name: 'r', description: 'R', execute() {} }, { exposedTo: ['nowhere'] }":
            "SecurityError",
        "{ name: 'r', description: 'R', execute() {} }, { exposedTo: ['http://a.example'] }":
            "SecurityError",
        "{ name: 'r', description: 'R', execute() {} }, "
        "{ exposedTo: ['https://a.example', 'data:,x'] }": "SecurityError",
    }  # fmt: skip
    TAKEN = """{ name: 't', description: 'T', execute() {} },
      { exposedTo: ['https://a.example/path', 'http://localhost:3', 'http://127.0.0.1'] }"""

    @pytest.mark.parametrize("own", [False, True], ids=["ours", "the browser's"])
    async def test_what_chromium_refuses_is_refused(
        self, context: BrowserContext, webmcp: BrowserContext, own: bool
    ):
        """With the same kinds of errors; `own` tries Chromium's, without `transom.js`."""
        script = "globalThis.ready = document.modelContext;"
        page = "<!doctype html><body>" if own else page_with(f"{APP}{script} await app.connect();")
        async with host_page(webmcp if own else context, view=page) as view:
            attributes = {"allow": "tools", "sandbox": "allow-scripts allow-same-origin"}
            await view.page.evaluate("given => mount(...given)", [VIEW_URL, attributes])
            say = "(promise) => promise.then(() => '', (error) => error.name)"
            for attempt, error in self.REFUSED.items():
                call = f"document.modelContext.registerTool({attempt})"
                assert await view.run(f"({say})({call})") == error, attempt
            assert (
                await view.run(f"({say})(document.modelContext.registerTool({self.TAKEN}))") == ""
            )
            aborted = """async () => {
              const control = new AbortController();
              const tool = { name: "u", description: "U", execute() {} };
              const promise = document.modelContext.registerTool(tool, { signal: control.signal });
              control.abort();
              return promise.then(() => "", (error) => error.name);
            }"""
            assert await view.run(aborted) == "AbortError"
            names = "async () => (await document.modelContext.getTools()).map(({ name }) => name)"
            assert await view.run(names) == ["t"]

    async def test_a_developer_sees_every_tool_and_a_model_only_what_it_may_call(
        self, context: BrowserContext
    ):
        page = page_with(f"""{APP}
          const {{ modelContext }} = document;
          modelContext.registerTool({{ name: "on", description: "O", execute: ({{ x }}) => x }});
          modelContext.registerTool({{ name: "off", description: "-", disabled: true,
            execute() {{}} }});
          app.registerTool("save", {{}}, () => "").disable("nothing to save");
          app.registerTool("plumbing", {{ _meta: {{ ui: {{ visibility: ["app"] }} }} }}, () => "");
          await app.connect();
        """)
        async with mounted(context, page) as view:
            for place in ("document", "navigator"):
                tools = f"{place}.modelContext.tools"
                assert await view.run(f"{tools}.map(({{ name }}) => name)") == [
                    "on", "off", "save", "plumbing",
                ]  # fmt: skip
                disabled = f"{tools}.filter((tool) => !tool.enabled)"
                said = await view.run(f"{disabled}.map((tool) => [tool.name, tool.reason ?? ''])")
                assert said == [["off", ""], ["save", "nothing to save"]]
            seen = await view.run("""async () => {
              const tools = await document.modelContext.getTools();
              return tools.map(({ name, window: own, inputSchema }) =>
                [name, own === window, inputSchema.type]);
            }""")
            assert seen == [["on", True, "object"]]
            used = await view.run("""async () => {
              const [tool] = await document.modelContext.getTools();
              return [
                await document.modelContext.executeTool(tool, { x: "object" }),
                await document.modelContext.executeTool(tool, '{"x":"json"}'),
                await document.modelContext.executeTool({ name: "off" }),
                await document.modelContext.executeTool({ name: "no" }).catch((e) => e.message),
              ];
            }""")
            texts = [json.loads(text)["content"][0]["text"] for text in used[:3]]
            assert texts == ["object", "json", "Tool off is disabled"]
            assert used[3] == "Tool no not found"

    async def test_the_event_has_a_handler_of_its_own(self, context: BrowserContext):
        page = page_with(f"""{APP}
          document.modelContext.ontoolchange = ({{ type }}) => {{ globalThis.changed = type; }};
          await document.modelContext.registerTool({{ name: "a", description: "A",
            execute() {{}} }});
          await app.connect();
        """)
        async with mounted(context, page) as view:
            assert await view.run("changed") == "toolchange"

    async def test_what_is_gone_says_what_to_use_now(self, context: BrowserContext):
        page = page_with(f"{APP}\nvoid navigator.modelContext;\nawait app.connect();")
        async with mounted(context, page) as view:
            for call, said in {
                "document.modelContext.provideContext({ tools: [] })":
                    "provideContext() is gone from WebMCP: use registerTool() for each tool, and "
                    "updateTool() when something about it changes",
                "navigator.modelContext.clearContext()":
                    "clearContext() is gone from WebMCP: use the signal given to registerTool()",
                "navigator.modelContextTesting.listTools()": TESTING,
                "navigator.modelContextTesting.executeTool('a', '{}')": TESTING,
                "navigator.modelContextTesting.addEventListener('toolchange', () => 1)": TESTING,
            }.items():  # fmt: skip
                assert await view.run(f"({ATTEMPT})(() => {call})") == said

    async def test_a_page_that_says_nothing_of_webmcp_does_not_carry_it(
        self, context: BrowserContext
    ):
        page = page_with("globalThis.app = new App({ name: 'a', version: '1' }); app.connect();")
        async with mounted(context, page) as view:
            assert await view.run("document['model' + 'Context'] === undefined")

    async def test_it_is_a_module_too_and_finds_the_app_that_was_there_before(
        self, context: BrowserContext
    ):
        page = """<!doctype html><body><script type="module" nonce="x">
          import("./transom.js").then(async ({ App }) => {
            const app = new App({ name: "a", version: "1" });
            app.registerTool("early", {}, () => "early");
            await import("./webmcp.js");
            document.modelContext.registerTool({ name: "late", description: "L",
              execute: () => "late" });
            await app.connect();
          });
        </script>"""
        csp = "default-src 'none'; script-src 'nonce-x' 'strict-dynamic'"
        async with mounted(context, page, csp=csp) as view:
            assert await view.names() == ["early", "late"]
            assert await view.run("document.modelContext.tools.length") == 2


TESTING = (
    "navigator.modelContextTesting is gone from WebMCP: use getTools(), executeTool(), tools and "
    "the event toolchange of document.modelContext"
)

# What browsers had before: on the navigator, without a promise, removed by name ...
ON_THE_NAVIGATOR = """<script>
  globalThis.native = new Map();
  Object.defineProperty(navigator, "modelContext", { configurable: true, value: {
    registerTool(tool) {
      if (native.has(tool.name)) throw new DOMException("taken", "InvalidStateError");
      if (!tool.description) throw new TypeError("no description");
      native.set(tool.name, tool);
    },
    unregisterTool(name) {
      if (!native.delete(name)) throw new DOMException("unknown", "InvalidStateError");
    },
  } });
  globalThis.use = (name, given) =>
    native.get(name).execute(given, { requestUserInteraction() {} });
</script>"""

# ... then on the document, with schemas and arguments as JSON.
WITH_JSON = """<script>
  globalThis.native = new Map();
  Object.defineProperty(document, "modelContext", { configurable: true, value: {
    async registerTool(tool, { signal } = {}) {
      if (native.has(tool.name)) throw new DOMException("taken", "InvalidStateError");
      native.set(tool.name, tool);
      signal?.addEventListener("abort", () => native.delete(tool.name));
    },
    async getTools() {
      return [...native.values()].map(({ name, description, inputSchema }) => ({ name, description,
        inputSchema: inputSchema ? JSON.stringify(inputSchema) : "" }));
    },
    async executeTool({ name }, given) {
      if (typeof given !== "string") throw new TypeError("not JSON");
      const result = await native.get(name).execute(JSON.parse(given));
      return typeof result === "string" ? result : JSON.stringify(result);
    },
    dispatchEvent() {},
  } });
  document.modelContext.registerTool({ name: "early", description: "E",
    inputSchema: { type: "object", properties: { a: { type: "integer" } } },
    execute: ({ a }) => ({ got: a }) });
  globalThis.use = (name, given) => native.get(name).execute(JSON.stringify(given), {});
</script>"""


class TestWhatBrowsersHadBefore:
    PAGE = page_with(f"""{APP}
      document.modelContext.registerTool({{ name: "page", description: "P",
        execute: ({{ x }}) => ({{ got: x }}) }});
      globalThis.own = app.registerTool("own", {{
        inputSchema: {{ type: "object", properties: {{ n: {{ type: "integer" }} }} }} }},
          ({{ n }}) => `own ${{n}}`);
      await app.connect();
    """)

    @pytest.mark.parametrize("version", [ON_THE_NAVIGATOR, WITH_JSON], ids=["navigator", "json"])
    async def test_tools_are_offered_to_it_and_taken_back(
        self, context: BrowserContext, version: str
    ):
        page = self.PAGE.replace("<body>", f"<body>{version}")
        async with mounted(context, page) as view:
            early = ["early"] if version == WITH_JSON else []
            native = "[...native.keys()].sort()"
            assert await view.run("document.modelContext === navigator.modelContext")
            assert await view.run(native) == sorted([*early, "own", "page"])
            assert await view.names() == ["page", "own", *early]
            assert (await view.run("use('page', { x: 1 })"))["structuredContent"] == {"got": 1}
            assert (await view.run("use('own', { n: 'x' })"))["isError"]
            await view.run("own.update({ name: 'renamed', description: 'new' })")
            await view.run("document.modelContext.updateTool('page', { disabled: true })")
            assert await view.run(native) == sorted([*early, "renamed"])
            assert await view.run("native.get('renamed').description") == "new"
            await view.run("own.remove()")
            assert await view.run(native) == early
            assert view.console == []

    async def test_schemas_and_arguments_as_json_are_read_and_written(
        self, context: BrowserContext
    ):
        async with mounted(context, self.PAGE.replace("<body>", f"<body>{WITH_JSON}")) as view:
            early = (await view.tools())[-1]
            assert early["inputSchema"] == {
                "type": "object",
                "properties": {"a": {"type": "integer"}},
            }
            assert (await view.call("early", {"a": 7}))["structuredContent"] == {"got": 7}


class TestBesideTheBrowsersOwn:
    NATIVE = """async () => {
      const tools = await document.modelContext.getTools();
      return tools.filter((tool) => tool.window === window).map(({ name }) => name).sort();
    }"""

    async def open(self, view: View, allow: str) -> None:
        # The browser executes no tools of a page without an origin.
        attributes = {"allow": allow, "sandbox": "allow-scripts allow-same-origin"}
        await view.page.evaluate("given => mount(...given)", [VIEW_URL, attributes])
        await view.heard("ui/notifications/initialized")

    PAGE = page_with(f"""{APP}
      document.modelContext.registerTool({{ name: "page", description: "P",
        execute: ({{ x }}) => ({{ got: x }}) }});
      globalThis.own = app.registerTool("own", {{
        inputSchema: {{ type: "object", properties: {{ n: {{ type: "integer" }} }} }} }},
          ({{ n }}) => `own ${{n}}`);
      app.registerTool("plumbing", {{ _meta: {{ ui: {{ visibility: ["app"] }} }} }}, () => "");
      await app.connect();
    """).replace(
        # Before transom.js is there, with the browser itself: by script and by form.
        "<body>",
        """<body><form toolname="search" tooldescription="Search"><input name="q"></form><script>
          globalThis.early = new AbortController();
          document.modelContext?.registerTool({ name: "early", description: "E",
            inputSchema: { type: "object", properties: { a: {} } },
            execute: ({ a }) => a === "fail" ? Promise.reject(new Error("secret"))
              : a === "object" ? { a } : a === "nothing" ? undefined : `early ${a}` },
            { signal: early.signal });
        </script>""",
    )

    async def test_both_surfaces_show_the_same_tools(self, webmcp: BrowserContext):
        async with host_page(webmcp, view=self.PAGE) as view:
            await self.open(view, "tools")
            assert await view.run("Object.prototype.toString.call(document.modelContext)") == (
                "[object ModelContext]"
            )
            assert await view.names() == ["page", "own", "plumbing", "early", "search"]
            assert await view.run(self.NATIVE) == ["early", "own", "page", "search"]

            # `registerTool` of the browser's own gives a promise, and so does ours.
            assert await view.run(
                "document.modelContext.registerTool({ name: 'n', description: 'N', execute() {} }) "
                "instanceof Promise"
            )
            await view.run("document.modelContext.unregisterTool('n')")

            # The host calls what the page told the browser, and the browser what it told us.
            assert await view.text("early", {"a": 1}) == "early 1"
            structured = await view.call("early", {"a": "object"})
            assert structured["structuredContent"] == {"a": "object"}
            assert await view.text("early", {"a": "nothing"}) == "Done."
            failed = await view.ask("tools/call", {"name": "early", "arguments": {"a": "fail"}})
            assert failed["error"] == {"code": -32603, "message": "Tool early failed"}
            assert (await view.call("page", {"x": 1}))["structuredContent"] == {"got": 1}
            use = """async ([name, given]) => {
              const tools = await document.modelContext.getTools();
              const tool = tools.find((each) => each.name === name);
              return JSON.parse(await document.modelContext.executeTool(tool, given));
            }"""
            text = (await view.run(use, ["own", {"n": 1}]))["content"][0]["text"]
            assert text == "own 1"
            refused = await view.run(use, ["own", {"n": "x"}])
            assert refused["isError"]

    async def test_what_the_browser_has_given_up_says_what_to_use_there_too(
        self, webmcp: BrowserContext
    ):
        async with host_page(webmcp, view=self.PAGE) as view:
            await self.open(view, "tools")
            assert await view.run("document.modelContext === navigator.modelContext")
            for call in ("provideContext({ tools: [] })", "clearContext()"):
                said = await view.run(f"({ATTEMPT})(() => document.modelContext.{call})")
                assert "is gone from WebMCP: use " in said

    async def test_changes_on_either_side_show_on_both(self, webmcp: BrowserContext):
        async with host_page(webmcp, view=self.PAGE) as view:
            await self.open(view, "tools")
            await view.run("void own.disable()")
            assert await view.run(self.NATIVE) == ["early", "page", "search"]
            assert await view.names() == ["page", "plumbing", "early", "search"]
            await view.run("own.enable(), own.update({ name: 'renamed', description: 'new' })")
            await view.run("early.abort()")
            await view.run("document.querySelector('form').remove()")
            await view.run("document.modelContext.updateTool('page', { disabled: true })")
            assert await view.names() == ["renamed", "plumbing"]
            assert await view.run(self.NATIVE) == ["renamed"]
            described = await view.run("""async () => {
              const [tool] = await document.modelContext.getTools();
              return [tool.description, tool.inputSchema];
            }""")
            assert described == [
                "new", {"type": "object", "properties": {"n": {"type": "integer"}}},
            ]  # fmt: skip

    async def test_the_sample_runs_as_written_and_the_browser_has_its_tools_too(
        self, webmcp: BrowserContext
    ):
        page = page_with(f"{MUSIC}{STRAWMAN}", kind="text/javascript")
        async with host_page(webmcp, view=page) as view:
            await self.open(view, "tools")
            await strawman_works(view)
            assert await view.run(self.NATIVE) == ["play_track"]
            await view.run("queue.set(['a'])")
            assert await view.run(self.NATIVE) == ["play_track", "remove_from_queue"]
            assert view.console == []

    @pytest.mark.parametrize("page", [PAGE, page_with(f"{MUSIC}{STRAWMAN}")], ids=["app", "sample"])
    async def test_where_the_browser_refuses_the_host_has_the_tools_all_the_same(
        self, webmcp: BrowserContext, page: Any
    ):
        async with host_page(webmcp, view=page) as view:
            await self.open(view, "")
            names = await view.names()
            assert names in (["page", "own", "plumbing"], ["play_track"])
            assert await view.call(names[0], {"id": "one"})
