"""What a View with `transom.js` and its host say to each other, besides tools.

In Node; what a stranger posts, and where it runs, in Chromium.
"""

from typing import Any

from playwright.async_api import BrowserContext

from tests.browser.transomjs_host import HOST_URL, Node, View, mounted, page_with

OPTIONS = "undefined, { autoResize: false }"


def view_with(setup: str = "", *, options: str = OPTIONS, connect: str = "app.connect()") -> str:
    return page_with(f"""
      globalThis.errors = [];
      globalThis.log = [];
      globalThis.app = new App({{ name: "a", version: "1", title: "T" }}, {options});
      app.onerror = (error) => errors.push(String(error.message ?? error));
      {setup}
      globalThis.connecting = {connect};
    """)


async def errors(view: View) -> list[str]:
    return await view.run("errors")


async def outcome(view: View, promise: str) -> Any:
    """What a promise in the View came to: its value, or the error it was rejected with."""
    return await view.run(
        f"({promise}).then((value) => value ?? null,"
        " (error) => ({ thrown: error.message, code: error.code ?? null }))"
    )


class TestHandshake:
    async def test_it_is_initialize_then_initialized_and_nothing_else(self, node: Node):
        async with mounted(node, view_with()) as view:
            assert await view.run("connecting.then(() => 'connected')") == "connected"
            first, second, ping = await view.seen()
            assert first == {
                "jsonrpc": "2.0",
                "id": 0,
                "method": "ui/initialize",
                "params": {
                    "appInfo": {"name": "a", "version": "1", "title": "T"},
                    "appCapabilities": {},
                    "protocolVersion": "2026-01-26",
                },
            }
            assert second == {"jsonrpc": "2.0", "method": "ui/notifications/initialized"}
            assert ping["result"] == {}

    async def test_the_hosts_state_is_known_after_it_and_unknown_before_and_after(self, node: Node):
        state = "[app.getHostVersion(), app.getHostCapabilities(), app.getHostContext()]"
        page = view_with(f"globalThis.before = {state};")
        async with mounted(node, page) as view:
            assert await view.run("before") == [None, None, None]
            assert await view.run(state) == [
                {"name": "test-host", "version": "1.2.3"},
                {"serverTools": {}},
                {"theme": "dark", "displayMode": "inline"},
            ]
            await view.run("app.close()")
            assert await view.run(state) == [None, None, None]

    async def test_a_host_may_leave_out_its_context_and_answer_any_version(self, node: Node):
        answer = {"protocolVersion": "1999", "hostInfo": {}, "hostCapabilities": {}, "more": 1}
        async with mounted(node, view_with(connect="0"), ready=False) as view:
            await view.page.evaluate("answer => { answers['ui/initialize'] = answer }", answer)
            await view.until("globalThis.app")
            await view.run("app.connect()")
            assert await view.run("app.getHostContext()") == {}

    async def test_an_answer_that_is_none_and_an_error_fail_it_and_close(self, node: Node):
        page = view_with("app.onclose = () => log.push('closed');", connect="0")
        async with mounted(node, page, ready=False) as view:
            await view.until("globalThis.app")
            refused = {"error": {"code": -32000, "message": "no", "data": 1}}
            for answer, expected in (
                (refused, {"thrown": "no", "code": -32000}),
                ({"hostInfo": {}}, {"thrown": "Invalid ui/initialize", "code": None}),
            ):
                await view.page.evaluate("answer => { answers['ui/initialize'] = answer }", answer)
                assert await outcome(view, "app.connect()") == expected
            assert await view.run("log") == ["closed", "closed"]
            sent = await view.page.evaluate("seen.map((message) => message.method)")
            assert sent == ["ui/initialize", "ui/initialize"]

    async def test_silence_fails_it_after_the_timeout_and_the_host_is_told(
        self, context: BrowserContext
    ):
        page = view_with(connect="app.connect(undefined, { timeout: 20 })")
        async with mounted(context, page, ready=False) as view:
            await view.page.evaluate("delete answers['ui/initialize']")
            await view.until("globalThis.app")
            failed = await outcome(
                view, "app.close().then(() => app.connect(undefined, { timeout: 20 }))"
            )
            assert failed == {"thrown": "ui/initialize: no answer within 20 ms", "code": None}
            sent = await view.page.evaluate("seen.filter((m) => m.method === 'ui/initialize')")
            cancelled = "m.method === 'notifications/cancelled' && m.params.requestId === id"
            await view.page.wait_for_function(
                f"(id) => seen.some((m) => {cancelled})", arg=sent[-1]["id"]
            )

    async def test_connecting_twice_is_refused_and_reconnecting_keeps_tools_and_counts_on(
        self, node: Node
    ):
        page = view_with('app.registerTool("t", {}, () => "");')
        async with mounted(node, page) as view:
            refused = await outcome(view, "app.connect()")
            assert refused == {"thrown": "App is already connected", "code": None}
            assert await view.names() == ["t"]
            await view.run("app.close().then(() => app.connect())")
            assert await view.names() == ["t"]
            assert [message["id"] for message in await view.seen("ui/initialize")] == [0, 1]

    async def test_what_the_host_asks_before_it_answers_is_answered(self, node: Node):
        page = view_with("""
          app.registerTool("t", {}, () => "");
          app.ontoolinput = (params) => log.push(params);
        """)
        async with mounted(node, page, ready=False) as view:
            await view.heard("ui/initialize")
            # The answer to ui/initialize is on its way or there: both orders must do.
            await view.tell("ui/notifications/tool-input")
            assert await view.names() == ["t"]
            assert await view.run("log") == [{}]


class TestEvents:
    async def test_the_tools_data_reaches_the_handler_then_the_listeners_in_order(self, node: Node):
        page = view_with("""
          for (const event of ["toolinput", "toolinputpartial", "toolresult", "toolcancelled"]) {
            app[`on${event}`] = (params) => { log.push([`on${event}`, params]); };
          }
          globalThis.listener = (params) => { log.push(["listener", params]); };
          app.addEventListener("toolinput", () => { throw new Error("broken"); });
          app.addEventListener("toolinput", async () => { throw new Error("broken later"); });
          app.addEventListener("toolinput", listener);
        """)
        async with mounted(node, page) as view:
            await view.tell("ui/notifications/tool-input-partial", {"arguments": {"a": 1}})
            await view.tell("ui/notifications/tool-input", {"arguments": {"a": 12}})
            await view.tell("ui/notifications/tool-result", {"structuredContent": {}, "_meta": {}})
            await view.tell("ui/notifications/tool-cancelled", {"reason": "why"})
            await view.tell("ui/notifications/unknown", {"reason": "why"})
            await view.ask("ping")
            assert await view.run("log") == [
                ["ontoolinputpartial", {"arguments": {"a": 1}}],
                ["ontoolinput", {"arguments": {"a": 12}}],
                ["listener", {"arguments": {"a": 12}}],
                ["ontoolresult", {"structuredContent": {}, "_meta": {}, "content": []}],
                ["ontoolcancelled", {"reason": "why"}],
            ]
            assert await errors(view) == ["broken", "broken later"]
            await view.run("""() => {
              log.length = 0;
              app.ontoolinput = undefined;
              app.removeEventListener("toolinput", listener);
            }""")
            await view.tell("ui/notifications/tool-input", {})
            await view.ask("ping")
            assert await view.run("log") == []
            unknown = """() => {
              try { app.addEventListener("x", listener); } catch (error) { return error.message; }
            }"""
            assert await view.run(unknown) == "Unknown event: x"

    async def test_context_changes_are_merged_before_handlers_run_and_null_removes(
        self, node: Node
    ):
        page = view_with("""
          app.onhostcontextchanged = (params) => log.push([params, app.getHostContext()]);
        """)
        async with mounted(node, page) as view:
            await view.tell("ui/notifications/host-context-changed", {"theme": "light", "x": 1})
            await view.tell("ui/notifications/host-context-changed", {"displayMode": None})
            await view.ask("ping")
            assert await view.run("log") == [
                [{"theme": "light", "x": 1}, {"theme": "light", "displayMode": "inline", "x": 1}],
                [{"displayMode": None}, {"theme": "light", "x": 1}],
            ]

    async def test_teardown_answers_an_object_whatever_its_handler_does(self, node: Node):
        async with mounted(node, view_with()) as view:
            teardown = {"reason": "user closed it"}
            assert await view.ask("ui/resource-teardown", teardown) == {"result": {}}
            for handler, answer in (
                (
                    "async (params) => { log.push(params); return { saved: true }; }",
                    {"saved": True},
                ),
                ("() => undefined", {}),
                ("() => { throw new Error('broken'); }", {}),
            ):
                await view.run(f"void (app.onteardown = {handler})")
                assert await view.ask("ui/resource-teardown", teardown) == {"result": answer}
            assert await view.run("log") == [teardown]
            assert await errors(view) == ["broken"]
            assert await view.ask("ping") == {"result": {}}  # answering does not close

    async def test_without_an_error_handler_problems_go_to_the_console_and_a_broken_one_is_survived(
        self, node: Node
    ):
        page = view_with("""
          app.registerTool("t", {}, () => { throw new Error("broken"); });
          app.onerror = undefined;
        """)
        async with mounted(node, page) as view:
            await view.ask("tools/call", {"name": "t"})
            assert "broken" in view.console[0]
            await view.run("void (app.onerror = () => { throw new Error('worse'); })")
            answer = await view.ask("tools/call", {"name": "t"})
            assert answer["error"] == {"code": -32603, "message": "Tool t failed"}


class TestCancellingAndProgress:
    PAGE = view_with("""
      app.registerTool("wait", { inputSchema: { type: "object" } }, async (given, extra) => {
        log.push(extra.signal === extra.mcpReq.signal && extra.mcpReq.method);
        await extra.sendProgress(1, 3, "a third");
        await extra.mcpReq.notify({ method: "notifications/progress", params: {
          progressToken: extra.mcpReq._meta.progressToken, progress: 2 } });
        await new Promise((resolve) => extra.signal.addEventListener("abort", resolve));
        log.push(extra.signal.reason);
        await extra.sendProgress(3);
        return "too late";
      });
      app.registerTool("quiet", {},
        async (extra) => { await extra.sendProgress(1); return "done"; });
    """)

    async def test_progress_goes_to_a_host_that_asked_and_cancelling_aborts_without_an_answer(
        self, node: Node
    ):
        async with mounted(node, self.PAGE) as view:
            call = {"name": "wait", "_meta": {"progressToken": "p"}}
            await view.page.evaluate("call => void ask('tools/call', call, 'c1')", call)
            one, two = await view.heard("notifications/progress", 2)
            assert one["params"] == {
                "progressToken": "p", "progress": 1, "total": 3, "message": "a third",
            }  # fmt: skip
            assert two["params"] == {"progressToken": "p", "progress": 2}
            await view.tell("notifications/cancelled", {"requestId": "other"})
            await view.tell(
                "notifications/cancelled", {"requestId": "c1", "reason": "changed my mind"}
            )
            assert await view.text("quiet") == "done"
            assert await view.run("log") == ["tools/call", "changed my mind"]
            assert len(await view.seen("notifications/progress")) == 2
            assert [m for m in await view.seen() if m.get("id") == "c1"] == []

    async def test_closing_cancels_calls_that_run_and_answers_them(self, node: Node):
        async with mounted(node, self.PAGE) as view:
            call = {"name": "wait", "_meta": {"progressToken": 1}}
            await view.page.evaluate("call => void (window.call = ask('tools/call', call))", call)
            await view.heard("notifications/progress", 2)
            await view.run("app.close()")
            answer = await view.page.evaluate("call")
            assert answer == {"error": {"code": -32000, "message": "The call was cancelled"}}
            await view.until("log.length === 2")
            assert await errors(view) == []

    async def test_a_request_id_in_use_is_refused_and_too_many_at_once_are_told(self, node: Node):
        page = view_with("""
          globalThis.started = 0;
          app.registerTool("hang", {}, () => { started++; return new Promise(() => {}); });
        """)
        async with mounted(node, page) as view:
            await view.page.evaluate("""() => {
              for (let i = 0; i < 1024; i++) ask("tools/call", { name: "hang" }, `h${i}`);
              window.one = ask("tools/call", { name: "hang" });
              post({ jsonrpc: "2.0", id: "h1", method: "ping" });
            }""")
            refused = await view.page.evaluate("one")
            assert refused == {"error": {"code": -32000, "message": "Too many requests"}}
            assert await view.run("started") == 1024
            assert await errors(view) == ["Id h1 is in use"]


class TestRequests:
    async def test_each_has_its_method_and_params(self, node: Node):
        calls = {
            "callServerTool({ name: 't', arguments: { a: 1 } })": (
                "tools/call", {"name": "t", "arguments": {"a": 1}, "_meta": {"progressToken": 1}}),
            "listServerTools()": ("tools/list", {}),
            "readServerResource({ uri: 'x://y' })": ("resources/read", {"uri": "x://y"}),
            "listServerResources({ cursor: 'c' })": ("resources/list", {"cursor": "c"}),
            "createSamplingMessage({ messages: [], maxTokens: 5 })": (
                "sampling/createMessage", {"messages": [], "maxTokens": 5}),
            "sendMessage({ role: 'user', content: [] })": (
                "ui/message", {"role": "user", "content": []}),
            "updateModelContext({ content: [] })": ("ui/update-model-context", {"content": []}),
            "openLink({ url: 'https://x.test' })": ("ui/open-link", {"url": "https://x.test"}),
            "downloadFile({ contents: [] })": ("ui/download-file", {"contents": []}),
            "requestDisplayMode({ mode: 'pip' })": ("ui/request-display-mode", {"mode": "pip"}),
        }  # fmt: skip
        async with mounted(node, view_with()) as view:
            await view.run("void (app.getHostCapabilities().sampling = {})")
            for call, (method, params) in calls.items():
                await view.page.evaluate("m => { answers[m] = { of: m } }", method)
                assert await outcome(view, f"app.{call}") == {"of": method}
                sent = (
                    await view.page.evaluate("m => seen.filter((s) => s.method === m)", method)
                )[-1]
                assert sent["params"] == params

    async def test_notifications_have_their_wire_form(self, node: Node):
        async with mounted(node, view_with()) as view:
            await view.run("""async () => {
              await app.sendLog({ level: "info", data: { a: 1 } });
              await app.sendSizeChanged({ height: 5 });
              await app.requestTeardown();
            }""")
            said = {
                "notifications/message": {"level": "info", "data": {"a": 1}},
                "ui/notifications/size-changed": {"height": 5},
                "ui/notifications/request-teardown": {},
            }
            for method, params in said.items():
                assert await view.seen(method) == [
                    {"jsonrpc": "2.0", "method": method, "params": params}
                ]

    async def test_both_forms_of_a_refusal_are_one_and_other_errors_are_thrown(
        self, context: BrowserContext
    ):
        async with mounted(context, view_with()) as view:
            refused = {"error": {"code": -32000, "message": "the user said no"}}
            await view.page.evaluate(
                """refused => { Object.assign(answers, {
                  "ui/open-link": refused, "ui/message": { isError: true }, "tools/call": refused,
                  "ui/download-file": { error: { code: -32601, message: "Method not found" } },
                }) }""",
                refused,
            )
            said = await outcome(view, "app.openLink({ url: 'x:y' })")
            assert said == {
                "isError": True,
                "code": -32000,
                "message": "the user said no",
                "data": None,
            }
            assert await outcome(view, "app.sendMessage({})") == {"isError": True}
            thrown = await outcome(view, "app.callServerTool({ name: 't' })")
            assert thrown == {"thrown": "the user said no", "code": -32000}
            thrown = await outcome(view, "app.downloadFile({})")
            assert thrown == {"thrown": "Method not found", "code": -32601}

    async def test_sampling_and_display_modes_are_asked_for_only_where_the_host_has_them(
        self, node: Node
    ):
        async with mounted(node, view_with()) as view:
            no = {"thrown": "Not offered", "code": None}
            await view.page.evaluate("""() => Object.assign(answers, {
              "sampling/createMessage": { ok: 1 },
                "ui/request-display-mode": { mode: "inline" } })""")
            sampling = "app.createSamplingMessage({ messages: [], maxTokens: 1%s })"
            assert await outcome(view, sampling % "") == no
            await view.run("void (app.getHostCapabilities().sampling = {})")
            assert await outcome(view, sampling % "") == {"ok": 1}
            assert await outcome(view, sampling % ", tools: []") == no
            await view.run("void (app.getHostCapabilities().sampling.tools = {})")
            assert await outcome(view, sampling % ", tools: []") == {"ok": 1}
            fullscreen = "app.requestDisplayMode({ mode: 'fullscreen' })"
            assert await outcome(view, fullscreen) == {"mode": "inline"}
            modes = {"availableDisplayModes": ["inline", "pip"]}
            await view.tell("ui/notifications/host-context-changed", modes)
            assert await outcome(view, fullscreen) == no
            assert await outcome(view, "app.requestDisplayMode({ mode: 'pip' })") == {
                "mode": "inline"
            }

    async def test_a_request_ends_by_timeout_abort_or_close_and_progress_keeps_it_alive(
        self, node: Node
    ):
        async with mounted(node, view_with()) as view:
            failed = await outcome(view, "app.callServerTool({ name: 't' }, { timeout: 20 })")
            assert failed["thrown"] == "tools/call: no answer within 20 ms"
            aborted = """(() => {
              const control = new AbortController();
              const call = app.callServerTool({ name: "t" }, { signal: control.signal });
              control.abort(new Error("changed my mind"));
              return call;
            })()"""
            assert (await outcome(view, aborted))["thrown"] == "changed my mind"
            never = """app.callServerTool({ name: "t" },
              { signal: AbortSignal.abort(new Error("before")) })"""
            assert (await outcome(view, never))["thrown"] == "before"
            notices = await view.heard("notifications/cancelled", 2)
            calls = await view.seen("tools/call")
            assert [n["params"]["requestId"] for n in notices] == [c["id"] for c in calls]
            assert notices[1]["params"]["reason"] == "Error: changed my mind"

            await view.run("""() => {
              globalThis.call = app.callServerTool({ name: "t" },
                { onprogress: (p) => log.push(p.progress) });
            }""")
            [*_, last] = await view.heard("tools/call", 3)
            assert last["params"]["_meta"] == {"progressToken": last["id"]}
            await view.tell("notifications/progress", {"progressToken": last["id"], "progress": 1})
            await view.post({"jsonrpc": "2.0", "id": last["id"], "result": {"content": []}})
            assert await outcome(view, "call") == {"content": []}
            assert await view.run("log") == [1]
            await view.run("""() => {
              globalThis.call = app.openLink({ url: "x" });
              call.catch(() => {});
              app.close();
            }""")
            assert (await outcome(view, "call"))["thrown"] == "Connection closed"
            assert (await outcome(view, "app.openLink({ url: 'x' })"))["thrown"] == "Not connected"


class TestHostileMessages:
    async def test_messages_of_other_windows_are_not_heard(self, context: BrowserContext):
        page = view_with("""
          app.registerTool("t", {}, () => "");
          app.ontoolinput = () => log.push("heard");
        """)
        async with mounted(context, page) as view:
            before = len(await view.seen())
            await view.run("""async () => {
              const forged = [
                { jsonrpc: "2.0", method: "ui/notifications/tool-input", params: {} },
                { jsonrpc: "2.0", id: 1, method: "tools/list" },
              ];
              const all = new Promise((resolve) => {
                let left = 6;
                addEventListener("message", () => --left || resolve());
              });
              const frame = document.createElement("iframe"); // a stranger inside the View
              frame.srcdoc = `<script>
                for (const message of ${JSON.stringify(forged)}) parent.postMessage(message, "*");
              <\\/script>`;
              document.body.append(frame);
              for (const message of forged) {
                postMessage(message, "*"); // the View itself
                dispatchEvent(new MessageEvent("message", { data: message })); // nobody
              }
              await all;
            }""")
            assert await view.run("log") == []
            assert len(await view.seen()) == before + 1  # a ping

    async def test_what_is_no_message_is_ignored_and_what_claims_to_be_one_is_reported(
        self, context: BrowserContext
    ):
        async with mounted(context, view_with('app.registerTool("t", {}, () => "");')) as view:
            before = len(await view.seen())
            strangers: list[Any] = [
                "text", 5, None, [], {}, {"method": "ping", "id": 1},
                [{"jsonrpc": "2.0", "id": 1, "method": "ping"}], {"jsonrpc": "1.0", "id": 1,
                  "method": "ping"},
            ]  # fmt: skip
            for message in strangers:
                await view.post(message)
            await view.ask("ping")
            assert await errors(view) == []
            malformed: list[dict[str, Any]] = [
                {"id": 1}, {"id": 1, "result": 5}, {"method": "ping", "id": None},
                {"method": "ping", "id": 1.5}, {"method": "ping", "id": {}},
                {"method": "ping", "id": 1, "params": [1]}, {"method": "tools/call",
                  "params": {"name": "t"}},
                {"method": "notifications/cancelled", "id": 3, "params": {}}, {"result": {}},
            ]  # fmt: skip
            for message in malformed:
                await view.post({"jsonrpc": "2.0", **message})
            await view.post({"jsonrpc": "2.0", "id": 99, "result": {}})
            await view.page.evaluate(
                "post({ jsonrpc: '2.0', id: 1, method: 'ping', params: { big: 1n } })"
            )
            assert len(await view.seen()) == before + 2  # two pings
            found = await errors(view)
            assert len(found) == len(malformed) + 2
            assert found[-2] == "Unknown response: 99"

    async def test_a_message_of_more_than_sixteen_million_characters_is_refused(
        self, context: BrowserContext
    ):
        async with mounted(context, view_with()) as view:
            size = 2**24
            await view.page.evaluate(
                """size => post({ jsonrpc: "2.0", id: "big", method: "ping",
                  params: { x: "x".repeat(size) } })""",
                size,
            )
            await view.ask("ping")
            assert await errors(view) == ["Invalid message"]

    async def test_deep_and_odd_arguments_do_no_harm(self, context: BrowserContext):
        page = view_with("""
          const node = { type: "array", items: { $ref: "#/$defs/node" } };
          app.registerTool("tree", { inputSchema: { type: "object", $defs: { node },
            properties: { tree: { $ref: "#/$defs/node" } },
              additionalProperties: { type: "integer" } } },
            (given) => Object.keys(given).sort());
        """)
        async with mounted(context, page) as view:
            odd = await view.page.evaluate(
                """ask("tools/call", { name: "tree", arguments: JSON.parse(
                  '{"__proto__": 1, "constructor": 2, "tree": [[]]}') })"""
            )
            assert odd["result"]["structuredContent"] == {
                "result": ["__proto__", "constructor", "tree"]
            }
            deep = await view.page.evaluate("""() => {
              let tree = [];
              for (let i = 0; i < 1000; i++) tree = [tree];
              return ask("tools/call", { name: "tree", arguments: { tree } });
            }""")
            assert "result" in deep or deep["error"]["message"] == "Tool tree failed"
            assert await view.names() == ["tree"]


class TestSize:
    async def test_the_content_is_measured_first_at_once_and_then_when_it_changes_until_the_close(
        self, context: BrowserContext
    ):
        page = page_with(
            """
            globalThis.app = new App({ name: "a", version: "1" }, {}, { strict: true });
            await app.connect();
            """,
            body="<style>body { margin: 0 } html { height: 100% }</style>"
            '<div id="box" style="height: 50px"></div>',
        )
        csp = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'"
        async with mounted(context, page, csp=csp) as view:
            [first] = await view.heard("ui/notifications/size-changed")
            assert first["params"] == {"width": 600, "height": 50}
            await view.run("void (box.style.height = '120.4px')")
            [_, second] = await view.heard("ui/notifications/size-changed", 2)
            assert second["params"] == {"width": 600, "height": 121}
            assert await view.run("document.documentElement.style.height") == ""
            await view.run("""async () => {
              await app.close();
              box.style.height = "300px";
              for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
            }""")
            assert len(await view.page.evaluate("seen.filter((m) => /size/.test(m.method))")) == 2
            assert view.console == []


class TestWhereItRuns:
    async def test_it_is_a_module_too(self, context: BrowserContext):
        page = """<!doctype html><body><script type="module" nonce="x">
          import("./transom.js").then(async (transom) => {
            globalThis.names = Object.keys(transom).sort();
            const app = new transom.App({ name: "a", version: "1" });
            app.registerTool("t", {}, () => "from a module");
            await app.connect();
          });
        </script>"""
        csp = "default-src 'none'; script-src 'nonce-x' 'strict-dynamic'"
        async with mounted(context, page, csp=csp) as view:
            assert await view.run("names") == ["App", "ProtocolError", "ToolError"]
            assert await view.text("t") == "from a module"

    async def test_a_classic_script_finds_it_under_the_strictest_policy_that_lets_it_run(
        self, context: BrowserContext
    ):
        page = page_with(
            """
            addEventListener("securitypolicyviolation",
              (event) => console.error(event.violatedDirective));
            const { App } = transom;
            const app = new App({ name: "a", version: "1" });
            app.registerTool("t", { inputSchema: { type: "object",
              properties: { a: { pattern: "^x+$" } } } },
              ({ a }) => a);
            app.registerTool("eval", {},
              () => { try { return eval("1"); } catch { return "blocked"; } });
            app.connect();
            """,
            kind="text/javascript",
        )
        async with mounted(context, page) as view:
            assert await view.run("Object.keys(transom).sort()") == [
                "App",
                "ProtocolError",
                "ToolError",
            ]
            assert await view.text("t", {"a": "xx"}) == "xx"
            await view.heard("ui/notifications/size-changed")
            assert view.console == []
            assert await view.text("eval") == "blocked"

    async def test_outside_a_frame_connecting_fails(self, context: BrowserContext):
        async with mounted(context, view_with(connect="0"), ready=False) as view:
            page = await context.new_page()
            await page.goto(HOST_URL.replace("host", "view"))
            said = await page.evaluate("app.connect().catch((error) => error.message)")
            assert said == "Method not found"
            assert view.console == []
            await page.close()
