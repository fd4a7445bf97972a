/**
 * The official host side: `AppBridge` of @modelcontextprotocol/ext-apps, with the client of the
 * official SDK, wired as its reference host wires it. Its Views are instruments without a browser.
 * The first argument is the server's URL. Lines of JSON on stdin and stdout:
 *
 *   {id, do: "call", name, arguments}   call a tool, and show its View -> {id}
 *   {id, do: "cancel", call}            cancel that call
 *   {id, do: "theme"}                   change the theme
 *   {id, do: "close"}                   close the View that was opened last
 */
import { createInterface } from "node:readline";

import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";

import { openInstrument } from "./instrument_window.mjs";

const MIME = "text/html;profile=mcp-app";
const HOST = { name: "official-bridge", version: "1.0.0" };
const CONTEXT = {
  theme: "light",
  platform: "web",
  displayMode: "inline",
  availableDisplayModes: ["inline"],
  containerDimensions: { maxHeight: 6000 },
};

const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: [MIME] } };
const client = new Client(HOST, { capabilities: { extensions } });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));
const { tools } = await client.listTools();
const calls = new Map();
let last = null;

async function openView(uri, tool) {
  const { contents } = await client.readResource({ uri });
  const { text, blob } = contents[0];
  const html = text ?? Buffer.from(blob, "base64").toString("utf8");
  const { tools: serverTools, resources: serverResources } = client.getServerCapabilities();
  const capabilities = { openLinks: {}, logging: {}, serverTools, serverResources };
  const hostContext = { ...CONTEXT, toolInfo: { tool } };
  const bridge = new AppBridge(client, HOST, capabilities, { hostContext });
  bridge.onopenlink = async ({ url }) => {
    if (url.startsWith("http://127.0.0.1:")) await fetch(url);
    return {};
  };
  bridge.onmessage = async () => ({});
  bridge.onupdatemodelcontext = async () => ({});
  const ready = new Promise((resolve) => (bridge.oninitialized = resolve));
  let instrument;
  const transport = {
    start: async () => {},
    send: async (message) => instrument?.message(structuredClone(message)),
    close: async () => transport.onclose?.(),
  };
  await bridge.connect(transport);
  instrument = openInstrument(html, (message) => setImmediate(() => transport.onmessage?.(message)));
  last = { bridge, instrument, hostContext };
  await ready;
  return bridge;
}

async function call(id, name, args) {
  const tool = tools.find((each) => each.name === name);
  const abort = new AbortController();
  calls.set(id, abort);
  const uri = tool && getToolUiResourceUri(tool);
  const running = client.callTool({ name, arguments: args }, { signal: abort.signal });
  running.catch(() => {});
  const bridge = uri ? await openView(uri, tool) : null;
  await bridge?.sendToolInput({ arguments: args });
  try {
    const result = await running;
    await bridge?.sendToolResult(result);
  } catch (error) {
    await bridge?.sendToolCancelled({ reason: String(error) });
  }
}

const orders = {
  call: ({ id, name, arguments: args }) => call(id, name, args),
  cancel: async ({ call: id }) => calls.get(id)?.abort("cancelled"),
  theme: async () => last.bridge.setHostContext({ ...last.hostContext, theme: "dark" }),
  close: async () => {
    await last.bridge.teardownResource({});
    last.instrument.close();
    await last.bridge.close();
  },
};

createInterface({ input: process.stdin }).on("line", async (line) => {
  const order = JSON.parse(line);
  let error;
  try {
    await orders[order.do](order);
  } catch (thrown) {
    error = String(thrown);
  }
  process.stdout.write(`${JSON.stringify({ id: order.id, error })}\n`);
});
process.stdout.write(`${JSON.stringify({ id: 0 })}\n`);
