"""Tools of `transom.js` with schemas of zod, Valibot and ArkType, as npm has them. In Chromium."""

import pytest
from playwright.async_api import BrowserContext

from tests.browser.bundling import bundle, bundled_page
from tests.browser.transomjs_host import (
    LIBRARY,
    VIEW_URL,
    View,
    host_page,
    mounted,
    page_with,
)

PROBLEM = "transom/notifications/problem"
ALIAS = (f"transom={LIBRARY}",)
IMPORTS = """
  import { App } from "transom";
  import { z } from "zod";
  import { z as z3 } from "zod-3";
  import { z as z3v4 } from "zod-3/v4";
  import { z as z40 } from "zod-4.0";
  import { z as z41 } from "zod-4.1";
  import * as v from "valibot";
  import { toJsonSchema, toStandardJsonSchema } from "@valibot/to-json-schema";
  import { type } from "arktype";
  import { zodToJsonSchema } from "zod-to-json-schema";

  const errors = [];
  const make = (options) => {
    const app = (globalThis.app = new App({ name: "a", version: "1" }, { tools: {} }, options));
    app.onerror = (error) => errors.push(error.message);
    return app;
  };
  const ofZod = (z) => z.object({ text: z.string(), times: z.number().int().default(2) });
  const schemas = {
    zod: ofZod(z),
    zod3: ofZod(z3),
    zod3v4: ofZod(z3v4),
    zod40: ofZod(z40),
    zod41: ofZod(z41),
    valibot: v.object({ text: v.string(), times: v.optional(v.pipe(v.number(), v.integer()), 2) }),
    arktype: type({ text: "string", times: "number.integer = 2" }),
    handmade: { "~standard": { version: 1, vendor: "by hand", validate: (value) =>
      typeof value.text === "string" ? { value: { times: 2, ...value } }
        : { issues: [{ message: "text is text", path: ["text"] }] } } },
  };
  const repeat = ({ text, times }) => text.repeat(times);
  Object.assign(globalThis, { errors, make, schemas, repeat, z, z3, z41, v, toJsonSchema,
    toStandardJsonSchema, zodToJsonSchema });
"""


def page(script: str) -> str:
    """A page with all of them, bundled once, and a script that uses some."""
    libraries = bundled_page(IMPORTS, alias=ALIAS)
    return libraries.replace("</body>", f'<script type="module">{script}</script></body>')


async def repeats(view: View, name: str) -> None:
    """The tool is listed with its parameters, and held to them."""
    [tool] = [tool for tool in await view.tools() if tool["name"] == name]
    assert tool["inputSchema"]["properties"]["text"]["type"] == "string"
    assert "times" in tool["inputSchema"]["properties"]
    assert tool["inputSchema"]["required"] == ["text"]
    assert await view.text(name, {"text": "ab"}) == "abab"
    assert await view.text(name, {"text": "ab", "times": 1}) == "ab"
    refused = await view.call(name, {"text": 5})
    assert refused["isError"]
    assert refused["content"][0]["text"].startswith(f"Invalid arguments for tool {name}:\n- text")


async def test_schemas_that_say_what_they_are_need_nothing(context: BrowserContext):
    script = """
      const app = make();
      app.registerTool("zod", { inputSchema: schemas.zod }, repeat);
      app.registerTool("arktype", { inputSchema: schemas.arktype }, repeat);
      app.registerTool("valibot", { inputSchema: toStandardJsonSchema(schemas.valibot) }, repeat);
      const old = Object.assign((given) => given, schemas.arktype, { "~standard":
        { ...schemas.arktype["~standard"], jsonSchema: undefined },
        toJsonSchema: (options) => schemas.arktype.toJsonSchema(options) });
      app.registerTool("arktype-2.1", { inputSchema: old }, repeat);
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        for name in ("zod", "arktype", "valibot", "arktype-2.1"):
            await repeats(view, name)
        assert await view.run("errors") == []


OLDER_ZOD = ("zod3", "zod3v4", "zod40", "zod41")


async def test_zod_of_every_version_needs_nothing(context: BrowserContext):
    script = f"""
      const app = make();
      for (const name of {[*OLDER_ZOD]}) {{
        app.registerTool(name, {{ inputSchema: schemas[name] }}, repeat);
        app.registerTool(`lazy-${{name}}`, {{ inputSchema: () => schemas[name] }}, repeat);
      }}
      app.registerTool("out", {{ outputSchema: z3.array(z3.string()) }}, () => ["x"]);
      globalThis.text = app.registerTool("text", {{ inputSchema: z3.string() }}, repeat);
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        tools = {tool["name"]: tool for tool in await view.tools()}
        for name in OLDER_ZOD:
            await repeats(view, name)
            await repeats(view, f"lazy-{name}")
            assert "description" not in tools[name]
        assert tools["out"]["outputSchema"]["properties"]["result"]["items"] == {"type": "string"}
        assert (await view.call("out"))["structuredContent"] == {"result": ["x"]}
        # Only a converted schema shows that it is not for an object.
        assert "text" not in tools
        assert await view.run("errors") == ["An inputSchema describes an object"]
        assert await view.run("text.error.message") == "An inputSchema describes an object"


async def test_a_page_that_has_transom_js_inline_converts_zod_too(context: BrowserContext):
    zod = bundle('import { z } from "zod-3"; globalThis.z = z;').replace("</script", "<\\/script")
    script = """
      const inputSchema = z.object({ text: z.string(), times: z.number().int().default(2) });
      const app = new App({ name: "a", version: "1" });
      app.registerTool("zod3", { inputSchema }, ({ text, times }) => text.repeat(times));
      await app.connect();
    """
    body = f'<script type="module">{zod}</script>'
    async with mounted(context, page_with(script, body=body)) as view:
        await repeats(view, "zod3")


async def test_where_nothing_can_be_loaded_the_tool_is_there_all_the_same(context: BrowserContext):
    zod = bundle('import { z } from "zod-3"; globalThis.z = z;').replace("</script", "<\\/script")
    html = f"""<!doctype html><body><script type="module" nonce="x">{zod}</script>
      <script type="module" nonce="x">
      import("./transom.js").then(async ({{ App }}) => {{
        globalThis.errors = [];
        const app = new App({{ name: "a", version: "1" }});
        app.onerror = (error) => errors.push(error.message);
        app.registerTool("t", {{ inputSchema: z.object({{ text: z.string() }}) }}, () => "ran");
        await app.connect();
      }});
    </script>"""
    csp = "default-src 'none'; script-src 'nonce-x' 'strict-dynamic'"
    async with mounted(context, html, csp=csp) as view:
        [tool] = await view.tools()
        assert tool["description"] == NOT_LISTED
        assert await view.text("t", {"text": "x"}) == "ran"
        assert (await view.call("t", {"text": 1}))["isError"]
        [said] = await view.run("errors")
        assert said.startswith("A zod schema that does not say its JSON Schema")


NOT_LISTED = "Its parameters are not listed; they are checked when it is called."


async def test_schemas_of_others_are_open_and_hold_arguments_to_themselves(
    context: BrowserContext,
):
    script = """
      const app = make();
      for (const name of ["valibot", "handmade"]) {
        app.registerTool(name, { description: "Repeat.", inputSchema: schemas[name] }, repeat);
        app.registerTool(`lazy-${name}`, { inputSchema: () => schemas[name] }, repeat);
        app.registerTool(`out-${name}`, { outputSchema: schemas[name] },
          ({ arguments: given }) => given);
      }
      app.registerTool("list", { outputSchema: v.array(v.string()) }, () => ["x"]);
      const kept = app.registerTool("kept", { inputSchema: schemas.zod }, repeat);
      kept.update({ inputSchema: schemas.valibot });
      await app.connect();
    """
    async with host_page(context, view=page(script)) as view:
        capabilities = {"experimental": {"transom/problems": {}}}
        await view.page.evaluate(
            "offered => { answers['ui/initialize'].hostCapabilities = offered }",
            capabilities,
        )
        await view.page.evaluate("url => mount(url)", VIEW_URL)
        await view.heard("ui/notifications/initialized")
        await view.tools()
        tools = {tool["name"]: tool for tool in await view.tools()}
        problems = [message["params"] for message in await view.seen(PROBLEM)]
        assert [problem["tool"] for problem in problems] == list(tools)  # once each
        assert {problem["kind"] for problem in problems} == {"schema"}
        vendors = {"handmade": "by hand"}
        for name in ("valibot", "handmade"):
            described = {"type": "object", "properties": {}}
            assert tools[name]["inputSchema"] == described
            assert tools[name]["description"] == f"Repeat. {NOT_LISTED}"
            assert tools[f"lazy-{name}"]["description"] == NOT_LISTED
            [problem] = [each for each in problems if each["tool"] == name]
            assert problem["message"] == (
                f"Error: A {vendors.get(name, name)} schema that does not say its JSON Schema, so "
                "that models do not see its members: give toJSONSchema (as z.toJSONSchema) or "
                "jsonSchema beside it"
            )
            for each in (name, f"lazy-{name}"):
                assert await view.text(each, {"text": "ab"}) == "abab"  # with its default
                refused = await view.text(each, {"text": 5})
                assert refused.startswith(f"Invalid arguments for tool {each}:\n- text")
            out = f"out-{name}"
            assert "outputSchema" not in tools[out]
            made = {"text": "a", "times": 2}
            assert (await view.call(out, {"text": "a"}))["structuredContent"] == made
            failed = await view.ask("tools/call", {"name": out, "arguments": {"text": 1}})
            assert failed["error"]["code"] == -32603
        assert (await view.call("list"))["structuredContent"] == {"result": ["x"]}
        assert tools["kept"]["description"] == NOT_LISTED


CONVERTED = {
    "zod3": "{ toJSONSchema: zodToJsonSchema }",
    "zod41": "{ toJSONSchema: z41.toJSONSchema }",
    "valibot": "{ toJSONSchema: toJsonSchema }",
    "handmade": """{ jsonSchema: { type: "object", properties:
        { text: { type: "string" }, times: { type: "integer" } }, required: ["text"] } }""",
}


@pytest.mark.parametrize(
    "name",
    ["zod3", *(pytest.param(name, marks=pytest.mark.nightly) for name in [*CONVERTED][1:])],
)
async def test_what_is_given_beside_them_is_the_way_out(context: BrowserContext, name: str):
    script = f"""
      const app = make();
      const inputSchema = schemas.{name};
      const beside = {CONVERTED[name]};
      app.registerTool("{name}", {{ inputSchema, ...beside }}, repeat);
      app.registerTool("lazy", {{ inputSchema: () => inputSchema, ...beside }}, repeat);
      document.title = "registered";
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        await repeats(view, name)
        await repeats(view, "lazy")
        listed = (await view.tools())[0]
        assert "jsonSchema" not in listed
        assert "toJSONSchema" not in listed


@pytest.mark.nightly
async def test_a_converter_for_all_tools_of_an_app_is_for_schemas_that_need_one(
    context: BrowserContext,
):
    script = """
      const app = make({ toJSONSchema: toJsonSchema });
      app.registerTool("valibot", { inputSchema: schemas.valibot }, repeat);
      app.registerTool("arktype", { inputSchema: schemas.arktype }, repeat);
      app.registerTool("zod41", { inputSchema: schemas.zod41, toJSONSchema: z.toJSONSchema },
        repeat);
      app.registerTool("out", { outputSchema: v.array(v.string()) }, () => ["x"]);
      const changed = app.registerTool("changed", { inputSchema: schemas.zod }, repeat);
      changed.update({ inputSchema: schemas.valibot });
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        for name in ("valibot", "arktype", "zod41", "changed"):
            await repeats(view, name)
        [out] = [tool for tool in await view.tools() if tool["name"] == "out"]
        assert out["outputSchema"]["properties"]["result"]["items"] == {"type": "string"}
        assert (await view.call("out"))["structuredContent"] == {"result": ["x"]}


@pytest.mark.nightly
@pytest.mark.parametrize("config", ["{ jsonSchema: j }", "{ inputSchema: j, jsonSchema: j }"])
async def test_a_json_schema_beside_nothing_is_a_mistake_that_is_told(
    context: BrowserContext, config: str
):
    script = f"""
      const app = make();
      const j = {{ type: "object", properties: {{ text: {{ type: "string" }} }} }};
      try {{ app.registerTool("t", {config}, repeat); }}
      catch (error) {{ errors.push(error.message); }}
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        assert await view.run("errors") == ["jsonSchema goes with a Standard Schema"]
        assert await view.names() == []


async def test_an_update_forgets_the_json_schema_of_the_schema_it_replaces(
    context: BrowserContext,
):
    script = """
      const app = make();
      const handle = app.registerTool("t", { inputSchema: schemas.handmade,
        jsonSchema: { type: "object", properties: { text: { type: "string" } } } }, repeat);
      handle.update({ description: "still there" });
      handle.update({ inputSchema: schemas.zod });
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        await repeats(view, "t")
