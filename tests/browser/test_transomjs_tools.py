"""Tools of a View that uses `transom.js`: registered, listed, called, changed. In Node."""

from typing import Any

import pytest

from tests.browser.transomjs_host import Node, View, mounted, page_with

NUMBER = '{ type: "object", properties: { n: { type: "integer" } }, required: ["n"] }'


def app_with(setup: str, *, capabilities: str = "undefined", after: str = "") -> str:
    return page_with(f"""
      globalThis.errors = [];
      globalThis.app = new App({{ name: "a", version: "1" }}, {capabilities},
        {{ autoResize: false }});
      app.onerror = (error) => errors.push(String(error.message ?? error));
      globalThis.handles = {{}};
      {setup}
      await app.connect();
      {after}
    """)


async def errors(view: View) -> list[str]:
    return await view.run("errors")


async def changes(view: View) -> int:
    return len(await view.seen("notifications/tools/list_changed"))


class TestListing:
    async def test_tools_are_listed_in_the_order_of_registration_with_what_was_said(
        self, node: Node
    ):
        page = app_with("""
          app.registerTool("2", { title: "Two", description: "Second",
            outputSchema: { type: "object" },
            annotations: { readOnlyHint: true }, _meta: { ui: { visibility: ["app"] } } },
              () => "");
          app.registerTool("1", { inputSchema: { type: "object",
            properties: { a: { type: "string" } } } },
            () => "");
          app.registerTool("constructor", { description: undefined, icons: [1] }, () => "ran");
        """)
        async with mounted(node, page) as view:
            empty = {"type": "object", "properties": {}}
            assert await view.tools() == [
                {
                    "name": "2",
                    "title": "Two",
                    "description": "Second",
                    "inputSchema": empty,
                    "outputSchema": empty,
                    "annotations": {"readOnlyHint": True},
                    "_meta": {"ui": {"visibility": ["app"]}, "transom/registration": 1},
                },
                {
                    "name": "1",
                    "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
                    "_meta": {"transom/registration": 2},
                },
                {
                    "name": "constructor",
                    "inputSchema": empty,
                    "_meta": {"transom/registration": 3},
                },
            ]
            assert await view.text("constructor") == "ran"

    async def test_pages_hold_a_hundred_tools_and_miss_none(self, node: Node):
        page = app_with("""
          for (let i = 0; i < 120; i++) app.registerTool(`t${i}`, {}, () => "");
          app.onlisttools = ({ cursor }) => cursor
            ? { tools: [{ name: "u1" }, { name: "t5" }] }
            : { tools: Array.from({ length: 99 }, (_, i) => ({ name: `v${i}`,
              inputSchema: { type: "object" } })),
                nextCursor: "more" };
        """)
        async with mounted(node, page) as view:
            names: list[str] = []
            sizes: list[int] = []
            cursor: dict[str, str] = {}
            while True:
                result = (await view.ask("tools/list", cursor))["result"]
                names += [tool["name"] for tool in result["tools"]]
                sizes.append(len(result["tools"]))
                if "nextCursor" not in result:
                    break
                cursor = {"cursor": result["nextCursor"]}
            assert sizes == [100, 100, 20]
            expected = [f"t{i}" for i in range(120)] + [f"v{i}" for i in range(99)] + ["u1"]
            assert names == expected

    async def test_onlisttools_gets_the_params_and_what_belongs_to_the_request(self, node: Node):
        page = app_with("""
          globalThis.given = [];
          app.onlisttools = async (params, extra) => {
            given.push([params.cursor ?? null, extra.signal.aborted]);
            return params.cursor ? { tools: ["b"] } : { tools: ["a"], nextCursor: "more" };
          };
        """)
        async with mounted(node, page) as view:
            assert await view.names() == ["a", "b"]
            assert await view.run("given") == [[None, False], ["more", False]]

    async def test_a_cursor_that_is_not_ours_is_invalid_params(self, node: Node):
        async with mounted(node, app_with('app.registerTool("t", {}, () => "");')) as view:
            for cursor in ("nonsense", "-1", "1.5", ""):
                answer = await view.ask("tools/list", {"cursor": cursor})
                assert answer["error"] == {"code": -32602, "message": "Invalid cursor"}

    async def test_declared_but_empty_answers_an_empty_list(self, node: Node):
        async with mounted(node, app_with("", capabilities="{ tools: {} }")) as view:
            assert await view.tools() == []
            answer = await view.ask("tools/call", {"name": "x"})
            assert answer["error"] == {"code": -32602, "message": "Tool x not found"}

    async def test_a_view_without_tools_knows_no_tool_methods(self, node: Node):
        async with mounted(node, app_with("")) as view:
            sent = (await view.seen("ui/initialize"))[0]["params"]["appCapabilities"]
            assert sent == {}
            for method in ("tools/list", "tools/call", "tasks/list", "constructor"):
                answer = await view.ask(method, {"name": "x"})
                assert answer["error"] == {"code": -32601, "message": "Method not found"}

    async def test_onlisttools_that_fails_fails_the_listing_without_telling_why(self, node: Node):
        page = app_with('app.onlisttools = async () => { throw new Error("secret"); };')
        async with mounted(node, page) as view:
            answer = await view.ask("tools/list")
            assert answer["error"] == {"code": -32603, "message": "Internal error"}
            assert await errors(view) == ["secret"]

    async def test_calls_go_to_the_registry_first_and_then_to_oncalltool(self, node: Node):
        page = app_with("""
          app.oncalltool = async ({ name, arguments: given }) => `${name} ${JSON.stringify(given)}`;
          app.onlisttools = async () => ({ tools: [
            { name: "both", inputSchema: { type: "object" } }, { name: "theirs",
              inputSchema: { type: "object" } },
          ] });
          app.registerTool("both", { description: "registered" }, () => "registered");
        """)
        async with mounted(node, page) as view:
            assert await view.names() == ["both", "theirs"]
            assert await view.text("both") == "registered"
            assert await view.text("theirs", {"a": 1}) == 'theirs {"a":1}'
            assert await view.text("unlisted") == "unlisted {}"


class TestRegistering:
    async def test_the_first_tool_declares_the_capability_and_leaves_the_callers_object(
        self, node: Node
    ):
        page = app_with(
            'app.registerTool("t", {}, () => ""); handles.given = given;',
            capabilities="(globalThis.given = { availableDisplayModes: ['inline'], other: 1 })",
        )
        async with mounted(node, page) as view:
            [sent] = await view.seen("ui/initialize")
            assert sent["params"]["appCapabilities"] == {
                "tools": {"listChanged": True},
                "availableDisplayModes": ["inline"],
                "other": 1,
            }
            assert await view.run("given.tools === undefined")

    @pytest.mark.parametrize("tools", ["{}", "{ listChanged: false }"])
    async def test_an_explicit_capability_is_kept_and_then_nothing_is_told(
        self, node: Node, tools: str
    ):
        page = app_with(
            'app.registerTool("t", {}, () => "");', capabilities=f"{{ tools: {tools} }}"
        )
        async with mounted(node, page) as view:
            await view.run('void app.registerTool("late", {}, () => "")')
            assert await view.names() == ["t", "late"]
            assert await changes(view) == 0
            refused = await view.run("app.sendToolListChanged().catch((error) => error.message)")
            assert "not declared" in refused

    async def test_registering_after_connect_without_the_capability_throws_every_time(
        self, node: Node
    ):
        async with mounted(node, app_with("")) as view:
            attempt = """() => {
              try { app.registerTool("t", {}, () => ""); return "registered"; }
              catch (error) { return `${error.message} ${app.tools.length}`; }
            }"""
            for _ in range(2):
                assert await view.run(attempt) == (
                    "Tool t was registered after connect() without the capability tools: do so "
                    "before, or declare it 0"
                )

    async def test_names_are_checked(self, node: Node):
        async with mounted(node, app_with("", capabilities="{ tools: {} }")) as view:
            attempt = """(name) => {
              try { app.registerTool(name, {}, () => ""); return ""; }
              catch (error) { return error.message; }
            }"""
            for name in ("", "a b", "ä", "x" * 129, "a/b", "1\n", None, 5):
                assert (await view.run(attempt, name)).startswith("Not a tool name")
            assert await view.run("app.tools.length") == 0
            await view.run('void app.registerTool("x".repeat(128), {}, () => "")')
            assert await view.run(attempt, "x" * 128) == f"Tool {'x' * 128} is already registered"

    async def test_a_definition_that_cannot_be_used_is_refused_and_leaves_no_trace(
        self, node: Node
    ):
        cases = [
            ("{ inputSchema: { type: 'string' } }", "An inputSchema describes an object"),
            ("{ inputSchema: { text: { type: 'string' } } }", "An inputSchema describes an object"),
            ("{ inputSchema: 'object' }", "A schema is an object"),
            ("{ inputSchema: async () => ({}) }", "A lazy inputSchema is sync"),
            ("{ outputSchema: [] }", "A schema is an object"),
        ]
        async with mounted(node, app_with("", capabilities="{ tools: {} }")) as view:
            for config, message in cases:
                attempt = f"""() => {{
                  try {{ app.registerTool("t", {config}, () => ""); return ""; }}
                  catch (error) {{ return error.message; }}
                }}"""
                assert await view.run(attempt) == message
            assert await view.run("app.tools.length") == 0

    async def test_two_apps_do_not_see_each_others_tools(self, node: Node):
        page = app_with("""
          app.registerTool("mine", {}, () => "");
          globalThis.other = new App({ name: "b", version: "1" });
          other.registerTool("theirs", {}, () => "");
        """)
        async with mounted(node, page) as view:
            assert await view.names() == ["mine"]
            assert await view.run("other.tools.map((tool) => tool.name)") == ["theirs"]


class TestChanging:
    async def test_a_disabled_tool_stays_registered_is_not_listed_and_refused_with_its_reason(
        self, node: Node
    ):
        page = app_with("""
          handles.save = app.registerTool("save", {}, () => "saved");
          handles.off = app.registerTool("off", { enabled: false }, () => "");
          handles.save.disable("nothing to save");
        """)
        async with mounted(node, page) as view:
            assert await view.names() == []
            assert await view.run(
                "app.tools.map((t) => [t.name, t.enabled, t.reason ?? null])"
            ) == [
                ["save", False, "nothing to save"],
                ["off", False, None],
            ]
            refused = await view.call("save")
            assert refused["isError"]
            assert refused["content"][0]["text"] == "Tool save is disabled: nothing to save"
            await view.run("handles.save.enable()")
            await view.heard("notifications/tools/list_changed")
            assert await view.names() == ["save"]
            assert await view.text("save") == "saved"
            assert await view.run("handles.save.reason") is None

    async def test_changes_of_one_turn_are_told_once_and_an_explicit_notice_is_that_one(
        self, node: Node
    ):
        page = app_with(
            'for (const n of ["a", "b", "c"]) handles[n] = app.registerTool(n, {}, () => "");'
        )
        async with mounted(node, page) as view:
            assert await changes(view) == 0
            await view.run("""() => {
              handles.a.disable(); handles.b.disable(); handles.a.enable(); handles.c.remove();
              app.registerTool("d", {}, () => "");
            }""")
            [notice] = await view.seen("notifications/tools/list_changed")
            assert notice == {
                "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {},
            }  # fmt: skip
            await view.run("async () => { handles.b.enable(); await app.sendToolListChanged(); }")
            assert await changes(view) == 2
            await view.run("""() => { app.registerTool("alone", {}, () => ""); }""")
            assert await changes(view) == 3

    async def test_only_real_changes_are_told(self, node: Node):
        page = app_with(f"""
          handles.t = app.registerTool("t", {{ description: "d", inputSchema: {NUMBER} }},
            () => "");
          handles.off = app.registerTool("off", {{ enabled: false }}, () => "");
        """)
        async with mounted(node, page) as view:
            for quiet in (
                "handles.t.enable()",
                "handles.t.update({})",
                "handles.t.update({ description: 'd' })",
                f"handles.t.update({{ inputSchema: {NUMBER} }})",
                "handles.t.description = 'd'",
                "handles.off.update({ description: 'new' })",
                "handles.off.disable('why')",
                "app.updateTool('t', { disabled: false })",
                "handles.off.remove()",
            ):
                await view.run(f"void ({quiet})")
                assert await changes(view) == 0, quiet
            for count, told in enumerate(
                (
                    "handles.t.update({ description: 'e' })",
                    "handles.t.title = 'T'",
                    "handles.t.update({ inputSchema: undefined })",
                    "handles.t.update({ inputSchema: () => ({}) })",
                    "handles.t.update({ enabled: false })",
                    "app.updateTool('t', { disabled: false })",
                    "handles.t.remove()",
                ),
                start=1,
            ):
                await view.run(f"void ({told})")
                assert await changes(view) == count, told

    async def test_nothing_is_told_before_the_handshake_or_after_the_close(self, node: Node):
        page = app_with("""
          handles.t = app.registerTool("t", {}, () => "");
          handles.t.disable(); handles.t.enable();
        """)
        async with mounted(node, page) as view:
            assert await changes(view) == 0
            before = len(await view.seen())
            await view.run(
                "async () => { handles.t.disable(); await app.close(); handles.t.enable(); }"
            )
            await view.run("app.registerTool('u', {}, () => '').disable()")
            messages = await view.page.evaluate("seen")
            assert [m.get("method") for m in messages[before:] if "method" in m] == []
            assert view.console == []

    async def test_a_handle_changes_names_schemas_and_the_rest(self, node: Node):
        page = app_with("""
          handles.a = app.registerTool("a", {}, (extra) => JSON.stringify(extra.arguments));
          handles.b = app.registerTool("b", {}, () => "b");
        """)
        async with mounted(node, page) as view:
            await view.run(f"""handles.a.update({{
              name: "first", title: "First", description: "d", inputSchema: {NUMBER},
              annotations: {{ readOnlyHint: true }}, _meta: {{ x: 1 }},
            }})""")
            first, second = await view.tools()
            assert second["name"] == "b"
            assert first == {
                "name": "first", "title": "First", "description": "d",
                "inputSchema": {
                    "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"],
                },
                "annotations": {"readOnlyHint": True},
                "_meta": {"x": 1, "transom/registration": 1},
            }  # fmt: skip
            assert await view.text("first", {"n": 1}) == '{"n":1}'
            assert (await view.call("first", {"n": "x"}))["isError"]
            assert (await view.ask("tools/call", {"name": "a"}))["error"]["code"] == -32602
            taken = (
                "(() => { try { handles.a.name = 'b' } catch (error) { return error.message } })()"
            )
            assert await view.run(taken) == "Tool b is already registered"
            bad = """() => {
              try { handles.a.update({ description: "new", inputSchema: { type: "array" } }); }
              catch (error) { return error.message; }
            }"""
            assert await view.run(bad) == "An inputSchema describes an object"
            assert (await view.tools())[0] == first

    async def test_a_stale_handle_does_nothing_and_tells_nobody(self, node: Node):
        page = app_with("""
          handles.old = app.registerTool("t", { description: "old" }, () => "old");
          handles.old.remove();
          app.registerTool("t", { description: "new" }, () => "new");
        """)
        async with mounted(node, page) as view:
            await view.run("""() => {
              const { old } = handles;
              old.disable("x"); old.enable(); old.update({ name: "u",
                description: "x" }); old.remove();
              old.description = "y";
            }""")
            assert [tool["description"] for tool in await view.tools()] == ["new"]
            assert await view.text("t") == "new"
            assert await changes(view) == 0

    async def test_update_tool_changes_three_things_by_name_and_says_how_to_do_the_rest(
        self, node: Node
    ):
        page = app_with('app.registerTool("t", { description: "d" }, () => "ran");')
        async with mounted(node, page) as view:
            await view.run("app.updateTool('t', { disabled: true })")
            assert await view.names() == []
            await view.run(
                "app.updateTool('t', { disabled: false, description: 'e',"
                f" inputSchema: {NUMBER} }})"
            )
            [tool] = await view.tools()
            assert (tool["description"], tool["inputSchema"]["required"]) == ("e", ["n"])
            attempt = """(changes) => {
              try { app.updateTool("t",
                changes); } catch (error) { return `${error.name}: ${error.message}`; }
            }"""
            for key in ("name", "annotations", "execute", "enabled"):
                said = await view.run(attempt, {key: "x", "description": "f"})
                assert (
                    said == f"TypeError: updateTool cannot change {key}: use update() of the handle"
                )
            assert (await view.tools()) == [tool]
            unknown = """() => {
              try { app.updateTool("u", {}); } catch (error) { return error.message; }
            }"""
            assert await view.run(unknown) == "Tool u is not registered"

    async def test_what_a_call_changes_is_told_before_its_result(self, node: Node):
        page = app_with("""
          handles.t = app.registerTool("t", {}, () => "");
          app.registerTool("sync", {}, () => { handles.t.disable(); return "done"; });
          app.registerTool("async", {},
            async () => { await null; handles.t.enable(); return "done"; });
        """)
        async with mounted(node, page) as view:
            for count, name in enumerate(("sync", "async"), start=1):
                await view.call(name)
                messages = await view.page.evaluate("seen")
                told = [i for i, m in enumerate(messages) if "list_changed" in m.get("method", "")]
                assert len(told) == count
                assert told[-1] == len(messages) - 2  # the result is the last


class TestLazySchemas:
    PAGE = app_with("""
      globalThis.tracks = ["a", "b"];
      globalThis.asked = 0;
      handles.play = app.registerTool("play", { inputSchema: () => {
        asked++;
        if (!tracks) throw new Error("no library");
        if (tracks === "promise") return Promise.resolve({});
        if (!tracks.length) return { type: "string" };
        return { type: "object", properties: { id: { type: "string", enum: tracks } },
          required: ["id"] };
      } }, ({ id }) => `playing ${id}`);
      app.registerTool("other", {}, () => "fine");
    """)

    async def test_it_is_asked_at_every_listing_and_call(self, node: Node):
        async with mounted(node, self.PAGE) as view:
            assert (await view.tools())[0]["inputSchema"]["properties"]["id"]["enum"] == ["a", "b"]
            assert await view.text("play", {"id": "a"}) == "playing a"
            await view.run("void (tracks = ['c'])")
            assert await view.text("play", {"id": "a"}) == (
                'Invalid arguments for tool play:\n- id: must be one of ["c"]'
            )
            assert (await view.tools())[0]["inputSchema"]["properties"]["id"]["enum"] == ["c"]
            assert await view.run("asked") == 4

    @pytest.mark.parametrize(
        ("state", "why"),
        [
            ("null", "no library"),
            ("[]", "An inputSchema describes an object"),
            ("'promise'", "A schema is an object"),
        ],
    )
    async def test_one_that_cannot_be_made_hides_its_tool_only_and_says_why(
        self, node: Node, state: str, why: str
    ):
        async with mounted(node, self.PAGE) as view:
            await view.run(f"void (tracks = {state})")
            assert await view.names() == ["other"]
            assert await view.names() == ["other"]
            assert await view.run("handles.play.error.message") == why
            assert await errors(view) == [why]
            refused = await view.call("play", {"id": "a"})
            assert refused["isError"]
            assert refused["content"][0]["text"] == "Tool play is unavailable right now"
            await view.run("void (tracks = ['a'])")
            assert await view.names() == ["play", "other"]
            assert await view.run("handles.play.error") is None


RETURNED: list[tuple[str, Any]] = [
    ("undefined", {"content": [{"type": "text", "text": "Done."}]}),
    ("null", {"content": [{"type": "text", "text": "Done."}]}),
    ("'words'", {"content": [{"type": "text", "text": "words"}]}),
    ("({ type: 'text', text: 'x' })", {"content": [{"type": "text", "text": "x"}]}),
    (
        "[{ type: 'text', text: 'x' }, { type: 'image', data: 'AA==', mimeType: 'image/png' }]",
        {"content": [
            {"type": "text", "text": "x"},
            {"type": "image", "data": "AA==", "mimeType": "image/png"},
        ]},
    ),
    (
        "({ a: 1, content: 'words' })",
        {"content": [{"type": "text", "text": '{"a":1,"content":"words"}'}],
         "structuredContent": {"a": 1, "content": "words"}},
    ),
    ("[1, 2]", {"content": [{"type": "text", "text": "[1,2]"}], "structuredContent": {"result": [1,
      2]}}),
    ("[]", {"content": [{"type": "text", "text": "[]"}], "structuredContent": {"result": []}}),
    ("false", {"content": [{"type": "text", "text": "false"}],
      "structuredContent": {"result": False}}),
    (
        "({ type: 'text', value: 'a form field' })",
        {"content": [{"type": "text", "text": '{"type":"text","value":"a form field"}'}],
         "structuredContent": {"type": "text", "value": "a form field"}},
    ),
    ("NaN", {"content": [{"type": "text", "text": "null"}], "structuredContent": {"result": None}}),
    ("Object.freeze({ content: [] })", {"content": []}),
    (
        "({ content: [{ type: 'text', text: 'x' }], isError: true, _meta: { m: 1 } })",
        {"content": [{"type": "text", "text": "x"}], "isError": True, "_meta": {"m": 1}},
    ),
    (
        "({ structuredContent: { a: 1 } })",
        {"content": [{"type": "text", "text": '{"a":1}'}], "structuredContent": {"a": 1}},
    ),
]  # fmt: skip


class TestCalling:
    async def test_arguments_reach_the_callback_with_defaults_and_missing_ones_are_an_object(
        self, node: Node
    ):
        page = app_with("""
          const inputSchema = { type: "object", properties: {
            a: { type: "string" }, b: { type: "array", default: [1] }, c: { default: null } } };
          app.registerTool("t", { inputSchema }, (given, extra) => {
            given.b.push(2);
            return { given, same: extra.arguments === given };
          });
          app.registerTool("plain", {}, (extra) => ({ given: extra.arguments, count: 1 }));
        """)
        async with mounted(node, page) as view:
            for _ in range(2):
                result = await view.call("t", {"a": "x"})
                assert result["structuredContent"] == {
                    "given": {"a": "x", "b": [1, 2], "c": None},
                    "same": True,
                }
            for params in ({"name": "plain"}, {"name": "plain", "arguments": None}):
                answer = await view.ask("tools/call", params)
                assert answer["result"]["structuredContent"] == {"given": {}, "count": 1}
            assert (await view.call("plain", {"x": 1}))["structuredContent"]["given"] == {"x": 1}

    async def test_bad_arguments_are_a_result_that_lists_the_problems_with_their_places(
        self, node: Node
    ):
        page = app_with("""
          app.registerTool("t", { inputSchema: { type: "object", additionalProperties: false,
            properties: {
            items: { type: "array", items: { type: "object",
              properties: { id: { type: "string" } }, required: ["id"] } },
            n: { type: "integer", minimum: 1 },
          }, required: ["n"] } }, () => "never");
        """)
        async with mounted(node, page) as view:
            result = await view.call("t", {"items": [{"id": "a"}, {"id": 1}, {}], "zz": 1})
            assert result == {
                "isError": True,
                "content": [
                    {
                        "type": "text",
                        "text": "Invalid arguments for tool t:"
                        "\n- n: is required"
                        "\n- items[1].id: expected string, got integer"
                        "\n- items[2].id: is required"
                        "\n- zz: is not expected",
                    }
                ],
            }
            many = await view.text("t", {"n": 0, "items": [{}] * 5000})
            assert many.count("\n") == 10

    async def test_params_that_make_no_sense_are_invalid_params(self, node: Node):
        async with mounted(node, app_with('app.registerTool("t", {}, () => "");')) as view:
            for params in ({}, {"name": 5}, {"name": "t", "arguments": [1]}):
                answer = await view.ask("tools/call", params)
                assert answer["error"] == {"code": -32602, "message": "Invalid params"}

    async def test_a_call_as_a_task_is_refused(self, node: Node):
        async with mounted(node, app_with('app.registerTool("t", {}, () => "");')) as view:
            answer = await view.ask("tools/call", {"name": "t", "task": {}})
            assert answer["error"] == {"code": -32601, "message": "Tool t cannot run as a task"}

    async def test_what_a_callback_throws_stays_in_the_page_unless_it_was_meant(self, node: Node):
        page = app_with("""
          const tools = {
            tool: () => { throw new ToolError("cannot do that"); },
            protocol: async () => { throw new ProtocolError(-32042, "no", { why: 1 }); },
            secret: async () => { throw new TypeError("secret"); },
            string: () => { throw "secret"; },
            code: () => { throw Object.assign(new Error("secret"), { code: 5 }); },
          };
          for (const name in tools) app.registerTool(name, {}, tools[name]);
          app.oncalltool = () => { throw new Error("secret"); };
        """)
        async with mounted(node, page) as view:
            assert await view.call("tool") == {
                "isError": True,
                "content": [{"type": "text", "text": "cannot do that"}],
            }
            answer = await view.ask("tools/call", {"name": "protocol"})
            assert answer["error"] == {"code": -32042, "message": "no", "data": {"why": 1}}
            for name in ("secret", "string", "code", "unregistered"):
                answer = await view.ask("tools/call", {"name": name})
                assert answer["error"] == {"code": -32603, "message": f"Tool {name} failed"}
            assert await errors(view) == ["secret"] * 4

    async def test_whatever_a_callback_returns_becomes_a_result(self, node: Node):
        setup = "\n".join(
            f'app.registerTool("t{i}", {{}}, async () => {returned});'
            for i, (returned, _) in enumerate(RETURNED)
        )
        async with mounted(node, app_with(setup)) as view:
            for i, (returned, expected) in enumerate(RETURNED):
                assert await view.call(f"t{i}") == expected, returned

    async def test_a_result_that_cannot_be_sent_fails_the_call_and_the_app_goes_on(
        self, node: Node
    ):
        page = app_with("""
          const round = {}; round.round = round;
          app.registerTool("round", {}, () => round);
          app.registerTool("big", {}, () => 10n);
          app.registerTool("function", {}, () => () => 1);
        """)
        async with mounted(node, page) as view:
            for name in ("round", "big", "function"):
                answer = await view.ask("tools/call", {"name": name})
                assert answer["error"] == {"code": -32603, "message": f"Tool {name} failed"}
            assert len(await errors(view)) == 3
            assert len(await view.names()) == 3

    async def test_output_is_held_to_its_schema_and_wrapped_if_it_is_no_object(self, node: Node):
        page = app_with("""
          const o = { type: "object", properties: { n: { type: "integer" }, d: { default: 7 } },
            required: ["n"] };
          const tools = {
            data: [o, () => Object.freeze({ n: 1 })],
            result: [o, () => ({ content: [], structuredContent: { n: 1 } })],
            wrong: [o, () => ({ n: "x" })],
            missing: [o, () => ({ content: [{ type: "text", text: "x" }] })],
            text: [o, () => "x"],
            error: [o, () => ({ isError: true, content: [{ type: "text", text: "no" }] })],
            refused: [o, () => { throw new ToolError("no"); }],
            list: [{ type: "array", items: { type: "integer" } }, () => [1, 2]],
            nothing: [{ type: ["string", "null"] }, () => undefined],
            words: [{ type: "string" }, () => "words"],
            badlist: [{ type: "array", items: { $ref: "#/$defs/N" },
              $defs: { N: { type: "integer" } } }, () => ["x"]],
          };
          for (const [name, [outputSchema, run]] of Object.entries(tools)) app.registerTool(name,
            { outputSchema }, run);
        """)
        async with mounted(node, page) as view:
            assert await view.call("data") == {
                "content": [{"type": "text", "text": '{"n":1}'}],
                "structuredContent": {"d": 7, "n": 1},
            }  # fmt: skip
            assert (await view.call("result"))["structuredContent"] == {"n": 1, "d": 7}
            for name in ("error", "refused"):
                assert await view.call(name) == {
                    "isError": True, "content": [{"type": "text", "text": "no"}],
                }  # fmt: skip
            for name in ("wrong", "missing", "text", "badlist"):
                answer = await view.ask("tools/call", {"name": name})
                assert answer["error"] == {"code": -32603, "message": f"Tool {name} failed"}
            assert (await errors(view))[0] == "Invalid output:\n- n: expected integer, got string"
            assert (await errors(view))[
                -1
            ] == "Invalid output:\n- result[0]: expected integer, got string"
            assert (await view.call("list"))["structuredContent"] == {"result": [1, 2]}
            assert (await view.call("nothing"))["structuredContent"] == {"result": None}
            assert await view.call("words") == {
                "content": [{"type": "text", "text": "words"}],
                "structuredContent": {"result": "words"},
            }  # fmt: skip
            listed = {tool["name"]: tool["outputSchema"] for tool in await view.tools()}
            assert listed["list"] == {
                "type": "object",
                "properties": {"result": {"type": "array", "items": {"type": "integer"}}},
                "required": ["result"],
            }

    async def test_calls_run_side_by_side_and_a_tool_removed_meanwhile_completes(self, node: Node):
        page = app_with("""
          globalThis.gate = Promise.withResolvers?.() ?? (() => {
            let resolve;
            const promise = new Promise((done) => { resolve = done; });
            return { promise, resolve };
          })();
          handles.slow = app.registerTool("slow", {},
            async () => { await gate.promise; return "slow"; });
          app.registerTool("fast", {}, () => "fast");
        """)
        async with mounted(node, page) as view:
            await view.page.evaluate("void (window.slow = ask('tools/call', { name: 'slow' }))")
            assert await view.text("fast") == "fast"
            await view.run("() => { handles.slow.remove(); gate.resolve(); }")
            answer = await view.page.evaluate("slow")
            assert answer["result"]["content"][0]["text"] == "slow"

    async def test_a_standard_schema_validates_describes_and_transforms(self, node: Node):
        page = app_with("""
          const schema = { "~standard": { version: 1, vendor: "test",
            validate: async (value) => typeof value.text === "string"
              ? { value: { text: value.text.toUpperCase() } }
              : { issues: [{ message: "must be words", path: ["text", { key: 0 }] },
                { message: "all wrong" }] },
            jsonSchema: {
              input: ({ target }) => ({ type: "object",
                properties: { text: { description: target } } }),
              output: () => ({ type: "array" }),
            } } };
          const callable = Object.assign(() => { throw new Error("not lazy"); }, schema);
          app.registerTool("t", { inputSchema: schema }, ({ text }) => text);
          app.registerTool("u", { inputSchema: callable }, ({ text }) => text);
          app.registerTool("lazy", { inputSchema: () => schema }, ({ text }) => text);
          app.registerTool("out", { outputSchema: { "~standard": { ...schema["~standard"],
            validate: (value) => ({ value: [...value, "checked"] }) } } }, () => ["x"]);
          app.registerTool("broken",
            { inputSchema: { "~standard": { validate() { throw new Error("secret"); } } },
              jsonSchema: { type: "object" } },
            () => "");
        """)
        async with mounted(node, page) as view:
            t, u, lazy, out, _ = await view.tools()
            described = {"type": "object", "properties": {"text": {"description": "draft-2020-12"}}}
            assert t["inputSchema"] == u["inputSchema"] == lazy["inputSchema"] == described
            assert out["outputSchema"]["properties"] == {"result": {"type": "array"}}
            for name in ("t", "u", "lazy"):
                assert await view.text(name, {"text": "x"}) == "X"
                assert await view.text(name, {"text": 1}) == (
                    f"Invalid arguments for tool {name}:\n- text[0]: must be words\n- all wrong"
                )
            assert (await view.call("out"))["structuredContent"] == {"result": ["x", "checked"]}
            answer = await view.ask("tools/call", {"name": "broken"})
            assert answer["error"] == {"code": -32603, "message": "Tool broken failed"}
            assert await errors(view) == ["secret"]
