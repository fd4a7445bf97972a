import { ask, posted, receive, sent } from "./window.js";
import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { App } from "../src/app.js";
import { ErrorCode, ProtocolError, ToolError } from "../src/errors.js";

let app: App;
let errors: string[];

/** Connect with a host that says this of itself. */
async function connect(hostCapabilities: object = {}): Promise<void> {
  const connecting = app.connect();
  const { id } = posted.at(-1)!;
  await receive({ jsonrpc: "2.0", id, result: { hostInfo: {}, hostCapabilities } });
  await connecting;
}

const call = (name: string, more: object = {}): ReturnType<typeof ask> =>
  ask("tools/call", { name, ...more });

const wait = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

afterEach(() => app.close());

beforeEach(() => {
  posted.length = 0;
  errors = [];
  app = new App({ name: "a", version: "1" }, {}, { autoResize: false });
  app.onerror = (error: Error) => errors.push(error.message);
});

test("tools are listed with what was said, and called with what fits", async () => {
  const inputSchema = { type: "object", properties: { x: { type: "number" } }, required: ["x"] };
  app.registerTool("double", { inputSchema, title: "Double" }, ({ x }) => ({ y: 2 * Number(x) }));
  await connect();
  const { result } = await ask("tools/list");
  assert.deepEqual(result.tools, [
    { name: "double", title: "Double", inputSchema, _meta: { "transom/registration": 1 } },
  ]);
  assert.deepEqual((await call("double", { arguments: { x: 2 } })).result.structuredContent, {
    y: 4,
  });
  const wrong = (await call("double", { arguments: {} })).result;
  assert.equal(wrong.isError, true);
  assert.equal(wrong.content[0].text, "Invalid arguments for tool double:\n- x: is required");
  assert.equal((await call("constructor")).error.code, ErrorCode.InvalidParams);
});

test("changes of one turn are one notification", async () => {
  const tool = app.registerTool("t", {}, () => "");
  await connect();
  tool.disable("not now");
  tool.update({ title: "T" });
  app.registerTool("u", {}, () => "");
  await wait();
  assert.equal(sent("notifications/tools/list_changed").length, 1);
  assert.equal((await call("t")).result.content[0].text, "Tool t is disabled: not now");
  const { _meta } = (await ask("tools/list")).result;
  assert.deepEqual(_meta["transom/disabled"], [{ name: "t", reason: "not now", registration: 1 }]);
});

test("what a callback throws stays in the page, unless it was meant for the host", async () => {
  app.registerTool("secret", {}, () => {
    throw new Error("the password is x");
  });
  app.registerTool("tool", {}, () => {
    throw new ToolError("There is none");
  });
  app.registerTool("protocol", {}, () => {
    throw new ProtocolError(-32050, "Mine", { a: 1 });
  });
  await connect();
  const secret = await call("secret");
  assert.deepEqual(secret.error, { code: ErrorCode.Internal, message: "Tool secret failed" });
  assert.deepEqual(errors, ["the password is x"]);
  assert.equal((await call("tool")).result.isError, true);
  assert.deepEqual((await call("protocol")).error, {
    code: -32050,
    message: "Mine",
    data: { a: 1 },
  });
});

test("a schema that throws hides its tool only", async () => {
  app.registerTool(
    "lazy",
    { inputSchema: () => JSON.parse("{") as Record<string, unknown> },
    () => "",
  );
  app.registerTool("other", {}, () => "");
  await connect();
  const { tools, _meta } = (await ask("tools/list")).result;
  assert.deepEqual(
    tools.map(({ name }: { name: string }) => name),
    ["other"],
  );
  assert.equal(_meta["transom/lazy"], true);
  assert.equal(errors.length, 1);
});

test("long lists have pages, and registered tools win over those of a handler", async () => {
  app.registerTool("tool-0", { title: "Ours" }, () => "");
  app.onlisttools = () => Array.from({ length: 150 }, (_, n) => `tool-${n}`);
  await connect();
  const first = (await ask("tools/list")).result;
  assert.deepEqual(
    [first.tools.length, first.nextCursor, first.tools[0].title],
    [100, "100", "Ours"],
  );
  const second = (await ask("tools/list", { cursor: "100" })).result;
  assert.deepEqual([second.tools.length, second.nextCursor], [50, undefined]);
  assert.equal((await ask("tools/list", { cursor: "x" })).error.code, ErrorCode.InvalidParams);
});

test("without tools there are no methods for them", async () => {
  await connect();
  for (const method of ["tools/list", "tools/call", "tasks/get", "toString", "nonsense"]) {
    assert.equal((await ask(method)).error.code, ErrorCode.MethodNotFound);
  }
  assert.deepEqual((await ask("ping")).result, {});
  assert.throws(() => app.registerTool("late", {}, () => ""), /after connect\(\) without/);
});

test("a call that is cancelled is not answered, and its callback knows", async () => {
  let reason: unknown;
  let finish: (() => void) | undefined;
  app.registerTool("slow", {}, async ({ signal }) => {
    await new Promise<void>((resolve) => (finish = resolve));
    reason = signal.reason;
  });
  await connect();
  const running = receive({
    jsonrpc: "2.0",
    id: 9,
    method: "tools/call",
    params: { name: "slow" },
  });
  await wait();
  const params = { requestId: 9, reason: "enough" };
  await receive({ jsonrpc: "2.0", method: "notifications/cancelled", params });
  finish?.();
  await running;
  assert.equal(reason, "enough");
  assert.equal(posted.filter(({ id }) => id === 9).length, 0);
});

test("messages of other windows are not listened to", async () => {
  app.registerTool("t", {}, () => "");
  await connect();
  const before = posted.length;
  await receive({ jsonrpc: "2.0", id: 1, method: "ping" }, {});
  await receive("hello");
  assert.equal(posted.length, before);
  assert.deepEqual(errors, []);
  await receive({ jsonrpc: "2.0", id: 99, result: {} });
  assert.deepEqual(errors, ["Unknown response: 99"]);
});

test("a refusal has one form, whichever the host took", async () => {
  await connect();
  const asking = app.openLink({ url: "https://example.com" });
  const { id } = posted.at(-1)!;
  await receive({ jsonrpc: "2.0", id, error: { code: ErrorCode.Refused, message: "No" } });
  const { isError, message } = await asking;
  assert.deepEqual([isError, message], [true, "No"]);
  await assert.rejects(app.createSamplingMessage({ messages: [], maxTokens: 1 }), /Not offered/);
});

test("a request that nobody answers ends, and the host is told", async () => {
  await connect();
  await assert.rejects(app.listServerTools({}, { timeout: 1 }), /no answer within 1 ms/);
  assert.equal(sent("notifications/cancelled").length, 1);
});

test("closing answers what runs and fails what waits", async () => {
  app.registerTool("slow", {}, () => new Promise(() => undefined));
  await connect();
  void receive({ jsonrpc: "2.0", id: 7, method: "tools/call", params: { name: "slow" } });
  const asking = app.listServerTools();
  await wait();
  await app.close();
  await assert.rejects(asking, /Connection closed/);
  assert.equal(posted.find(({ id }) => id === 7)?.error.message, "The call was cancelled");
  await assert.rejects(app.sendLog({ level: "info", data: 1 }), /Not connected/);
});
