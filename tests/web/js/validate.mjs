/**
 * Holds values to schemas with `transom.js`, outside a browser. It gets what little of a page the
 * library touches, and a host that calls one tool.
 *
 *   node validate.mjs transom.js
 *
 * Each line of stdin is {"schema": ..., "values": [...]}; each line of stdout an array of what was
 * wrong with the values, "" for one that fits, or {"refused": why} for a schema that cannot be used.
 */
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

let receive;
const waiting = new Map();
globalThis.document = {};
globalThis.navigator ??= {};
globalThis.addEventListener = (_, listener) => { receive = listener; };
globalThis.removeEventListener = () => {};
globalThis.parent = { postMessage: (message) => waiting.get(message.id)?.(message) };

const { App } = await import(pathToFileURL(process.argv[2]));
const app = new App({ name: "validator", version: "1" }, { tools: {} }, { autoResize: false });
app.onerror = () => {};
let nextId = 1;
const post = (message) => receive({ source: parent, data: { jsonrpc: "2.0", ...message } });
const ask = (method, params) => new Promise((resolve) => {
  const id = nextId++;
  waiting.set(id, (answer) => { waiting.delete(id); resolve(answer); });
  post({ id, method, params });
});

waiting.set(0, () => queueMicrotask(() => post({ id: 0, result: { hostInfo: {}, hostCapabilities: {} } })));
await app.connect();
waiting.clear();

async function problems(value) {
  const { result, error } = await ask("tools/call", { name: "t", arguments: { v: value } });
  if (error) return error.message;
  return result.isError ? result.content[0].text.replace(/^.*:\n/, "") : "";
}

for await (const line of createInterface({ input: process.stdin })) {
  const { schema, values } = JSON.parse(line);
  const { $defs } = Object(schema);
  const inputSchema = { type: "object", properties: { v: schema }, required: ["v"], $defs };
  let tool;
  let said = [];
  try {
    tool = app.registerTool("t", { inputSchema }, () => "");
    for (const value of values) said.push(await problems(value));
  } catch (error) {
    said = { refused: error.message };
  }
  tool?.remove();
  process.stdout.write(`${JSON.stringify(said)}\n`);
}
