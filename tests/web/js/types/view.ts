/** Uses everything that `transom.js` and `webmcp.js` declare. Compiled by a test, not run. */
import {
  App,
  ProtocolError,
  ToolError,
  type AppToolCallback,
  type AppToolResult,
  type RegisteredAppTool,
  type Task,
} from "transom";
import "transom/webmcp";
import { z } from "zod";
import { z as z3 } from "zod-3";
import { z as z41 } from "zod-4.1";
import * as v from "valibot";
import { toJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";

const app = new App(
  { name: "editor", version: "1.0.0", title: "Editor" },
  { tools: { listChanged: true } },
  { autoResize: false, toJSONSchema: toJsonSchema },
);

// --- handlers

app.ontoolinput = ({ arguments: given }) => given?.anything;
app.ontoolinputpartial = ({ arguments: given }) => given;
app.ontoolresult = ({ content, structuredContent, isError }) => {
  const text: string = content[0].type === "text" ? content[0].text : "";
  return [text, structuredContent.count, isError];
};
app.ontoolcancelled = ({ reason }) => reason?.length;
app.onhostcontextchanged = ({ theme, styles }) => [theme === "dark", styles?.variables];
app.onteardown = async ({ reason }) => ({ saved: reason });
app.onerror = (error) => console.error(error.message);
app.onclose = () => {};
app.onerror = undefined;
app.onlisttools = async ({ cursor }, { signal }) => ({
  tools: ["by name", { name: "described", inputSchema: { type: "object" } }],
  nextCursor: cursor && signal.aborted ? undefined : "more",
});
app.onlisttools = () => ["by name"];
app.oncalltool = async (params, extra) => {
  await extra.sendProgress(1, 2, params.name);
  return { content: [{ type: "text", text: String(params.arguments.text) }] };
};
app.addEventListener("toolresult", ({ content }) => content.length);
app.removeEventListener("toolresult", ({ content }) => content.length);
// @ts-expect-error: there is no such event
app.addEventListener("toolresults", () => {});

// --- tools

const save: RegisteredAppTool = app.registerTool("save", { enabled: false, reason: "later" }, (extra) => {
  extra.signal.throwIfAborted();
  return extra.arguments.path;
});
save.enable();
save.disable("nothing to save");
save.update({ name: "store", title: "Store", annotations: { destructiveHint: true } });
save.description = "Save what has changed";
const facts: [number, unknown, boolean, string | undefined] = [
  save.registration,
  save.error,
  save.enabled,
  save.reason,
];
app.updateTool("store", { disabled: false, inputSchema: () => ({ type: "object" }) });
// @ts-expect-error: a name is changed by the handle
app.updateTool("store", { name: "other" });
// @ts-expect-error: there are two that may call a tool
app.registerTool("t", { _meta: { ui: { visibility: ["everyone"] } } }, () => "");

app.registerTool("zod", { inputSchema: z.object({ n: z.number().default(1) }) }, ({ n }, extra) => {
  const number: number = n;
  // @ts-expect-error: it is a number
  const text: string = n;
  return [number, text, extra.mcpReq.id];
});
app.registerTool(
  "zod 3",
  { inputSchema: z3.object({ n: z3.number() }), jsonSchema: { type: "object" } },
  ({ n }) => n.toFixed(),
);
app.registerTool(
  "zod 4.1",
  { inputSchema: z41.object({ n: z41.number() }), toJSONSchema: z41.toJSONSchema },
  ({ n }) => n.toFixed(),
);
app.registerTool(
  "valibot",
  { inputSchema: v.object({ n: v.number() }), toJSONSchema: toJsonSchema },
  ({ n }) => n.toFixed(),
);
app.registerTool("arktype", { inputSchema: type({ n: "number" }) }, ({ n }) => n.toFixed());
app.registerTool("lazy", { inputSchema: () => z.object({ n: z.number() }) }, ({ n }) => n.toFixed());
const outputSchema = z.object({ count: z.number() });
app.registerTool("alone", { outputSchema }, () => ({ count: 1 }));
app.registerTool("whole", { outputSchema }, async () => ({
  content: [],
  structuredContent: { count: 1 },
}));
app.registerTool("error", { outputSchema }, () => ({ isError: true, content: [] }));
// @ts-expect-error: the output has a count
app.registerTool("missing", { outputSchema }, () => ({ content: [] }));
// @ts-expect-error: a number
app.registerTool("wrong", { outputSchema }, () => ({ structuredContent: { count: "1" } }));

// A JSON Schema says what the arguments are, as a schema of zod does.
app.registerTool(
  "json",
  {
    inputSchema: {
      type: "object",
      properties: {
        id: { type: "string" },
        count: { type: "integer", default: 1 },
        status: { enum: ["open", "paid"] },
        at: { type: ["number", "null"] },
        tags: { type: "array", items: { type: "string" } },
        place: {
          type: "object",
          properties: { x: { type: "number" }, y: { type: "number", default: 0 } },
          required: ["x"],
        },
        either: { anyOf: [{ type: "boolean" }, { const: "no" }] },
        other: { $ref: "#/$defs/other" },
      },
      required: ["id", "tags", "place", "status"],
    },
  },
  ({ id, count, status, at, tags, place, either, other }) => {
    const numbers: number[] = [count, place.x];
    const known: "open" | "paid" = status;
    const maybe: number | null | undefined = at;
    const said: boolean | "no" | undefined = either;
    // @ts-expect-error it need not be there: defaults are filled in on the outside only
    const y: number = place.y;
    // @ts-expect-error it is a string
    const wrong: number = id;
    return [numbers, known, maybe, said, y, wrong, tags.map((tag) => tag.trim()), other.anything];
  },
);
const given = { type: "object", properties: { n: { type: "number" } }, required: ["n"] } as const;
app.registerTool("as const", { inputSchema: given }, ({ n }) => n.toFixed());
const unknownSchema: Record<string, unknown> = given;
app.registerTool("not known", { inputSchema: unknownSchema }, ({ whatever }) => whatever.toFixed());
// @ts-expect-error there is no such argument
app.registerTool("mistaken", { inputSchema: given }, ({ m }) => m);

const inputSchema = z.object({ text: z.string() });
const insert: AppToolCallback<typeof inputSchema> = ({ text }) => text.trim();
const count: AppToolCallback<undefined, typeof outputSchema> = () => ({ count: 1 });
const made: AppToolResult<typeof outputSchema> = { count: 2 };
app.registerTool("insert", { inputSchema }, insert);

app.registerTool(
  "report",
  { execution: { taskSupport: "optional" }, returnsTask: true, outputSchema },
  (): Promise<Task> => app.startServerTask({ name: "make_report" }, { ttl: 1000 }),
);
// @ts-expect-error: maybe is no answer
app.registerTool("t", { execution: { taskSupport: "maybe" } }, () => "");
for (const tool of app.tools) if (!tool.enabled) tool.remove();

// --- the host

await app.connect();
await app.sendToolListChanged();
app.followHostStyle();
const pinned: boolean = await app.requestPin("music is playing");
const theme: "light" | "dark" | undefined = app.getHostContext()?.theme;
const hostName: string | undefined = app.getHostVersion()?.name;
const samples: boolean = app.getHostCapabilities()?.sampling !== undefined;
const { content, structuredContent } = await app.callServerTool(
  { name: "search", arguments: { q: "x" } },
  { timeout: 1000, signal: new AbortController().signal, onprogress: ({ progress }) => progress },
);
const [tool] = (await app.listServerTools()).tools;
const { contents } = await app.readServerResource({ uri: "orders://1" });
const { resources } = await app.listServerResources({ cursor: "x" });
await app.createSamplingMessage({ messages: [], maxTokens: 100 });
const { isError } = await app.sendMessage({ role: "user", content: [{ type: "text", text: "Hi" }] });
await app.updateModelContext({ structuredContent: { selected: 3 } });
await app.openLink({ url: "https://example.com" });
await app.downloadFile({ contents: [{ type: "resource_link", uri: "file:///a", name: "a" }] });
const { mode } = await app.requestDisplayMode({ mode: "fullscreen" });
await app.sendLog({ level: "info", data: { saved: true } });
await app.sendSizeChanged({ height: 300 });
await app.requestTeardown();
await app.close();
try {
  throw new ProtocolError(-32000, "no", { why: 1 });
} catch (error) {
  if (error instanceof ProtocolError) console.error(error.code, error.message, error.data);
  throw new ToolError("Not now");
}

// --- WebMCP

await document.modelContext.registerTool(
  {
    name: "remove_from_queue",
    description: "Remove a track from the queue.",
    disabled: true,
    inputSchema: () => ({ type: "object" }),
    execute: async ({ position }) => `Removed ${position}.`,
  },
  { signal: new AbortController().signal },
);
await navigator.modelContext.updateTool("remove_from_queue", { disabled: false });
await navigator.modelContext.unregisterTool("remove_from_queue");
document.modelContext.addEventListener("toolchange", () => {});
document.modelContext.ontoolchange = ({ type: name }) => name;
const unavailable = document.modelContext.tools.filter(({ enabled }) => !enabled);
const [listed] = await document.modelContext.getTools();
const result: string | null = await document.modelContext.executeTool(listed, { position: 1 });

export { contents, content, count, facts, hostName, isError, made, mode, pinned, resources, result };
export { samples, structuredContent, theme, tool, unavailable };
