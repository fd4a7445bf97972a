"""Tools of `transom.js` with schemas of zod, Valibot and ArkType, as npm has them. In Chromium."""

import pytest
from playwright.async_api import BrowserContext

from tests.browser.bundling import bundled_page
from tests.browser.transomjs_host import LIBRARY, View, mounted

ALIAS = (f"transom={LIBRARY}",)
IMPORTS = """
  import { App } from "transom";
  import { z } from "zod";
  import { z as z3 } from "zod-3";
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
  const schemas = {
    zod: z.object({ text: z.string(), times: z.number().int().default(2) }),
    zod3: z3.object({ text: z3.string(), times: z3.number().int().default(2) }),
    zod41: z41.object({ text: z41.string(), times: z41.number().int().default(2) }),
    valibot: v.object({ text: v.string(), times: v.optional(v.pipe(v.number(), v.integer()), 2) }),
    arktype: type({ text: "string", times: "number.integer = 2" }),
    handmade: { "~standard": { version: 1, vendor: "by hand", validate: (value) =>
      typeof value.text === "string" ? { value: { times: 2, ...value } }
        : { issues: [{ message: "text is text", path: ["text"] }] } } },
  };
  const repeat = ({ text, times }) => text.repeat(times);
  Object.assign(globalThis, { errors, make, schemas, repeat, z, z41, v, toJsonSchema,
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


async def test_others_are_refused_with_the_vendor_and_the_way_out(context: BrowserContext):
    script = """
      const app = make();
      globalThis.said = {};
      for (const name of ["zod3", "zod41", "valibot", "handmade"]) {
        for (const field of ["inputSchema", "outputSchema"]) {
          try { app.registerTool(name, { [field]: schemas[name] }, repeat); }
          catch (error) { said[`${name} ${field}`] = error.message; }
        }
      }
      const handle = app.registerTool("kept", { inputSchema: schemas.zod }, repeat);
      try { handle.update({ inputSchema: schemas.zod41 }); }
      catch (error) { said.update = error.message; }
      await document.fonts.ready;
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        said = await view.run("said")
        vendors = {"zod3": "zod", "zod41": "zod", "valibot": "valibot", "handmade": "by hand"}
        assert len(said) == 2 * len(vendors) + 1
        for name, text in said.items():
            vendor = vendors.get(name.split()[0], "zod")
            assert text == (
                f"A {vendor} schema that does not say its JSON Schema: give toJSONSchema (as "
                f"z.toJSONSchema) or jsonSchema beside it, or take a newer {vendor}"
            )
        assert await view.names() == ["kept"]
        await repeats(view, "kept")


CONVERTED = {
    "zod3": "{ toJSONSchema: zodToJsonSchema }",
    "zod41": "{ toJSONSchema: z41.toJSONSchema }",
    "valibot": "{ toJSONSchema: toJsonSchema }",
    "handmade": """{ jsonSchema: { type: "object", properties:
        { text: { type: "string" }, times: { type: "integer" } }, required: ["text"] } }""",
}


@pytest.mark.parametrize("name", CONVERTED)
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


async def test_a_lazy_one_that_cannot_be_listed_hides_its_tool_and_says_why(
    context: BrowserContext,
):
    script = """
      const app = make();
      globalThis.handle = app.registerTool("lazy", { inputSchema: () => schemas.zod41 }, repeat);
      app.registerTool("other", {}, () => "other");
      await app.connect();
    """
    async with mounted(context, page(script)) as view:
        assert await view.names() == ["other"]
        [said] = await view.run("errors")
        assert said.startswith("A zod schema that does not say its JSON Schema")
        assert await view.run("handle.error.message") == said


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
