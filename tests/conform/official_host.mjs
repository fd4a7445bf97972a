/**
 * A host in a page: `AppBridge` of @modelcontextprotocol/ext-apps, with the client of the official
 * SDK. It accepts whatever Views ask for, and leaves every decision to those two.
 *
 *   await conform.connect(url, sandbox)     the server, and the page of official_sandbox.html
 *   await conform.call(id, name, args)      call a tool, and show its View
 *   conform.cancel(id)  conform.darken()  conform.close()
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import {
  AppBridge,
  buildAllowAttribute,
  getToolUiResourceUri,
  PostMessageTransport,
} from "@modelcontextprotocol/ext-apps/app-bridge";

const HOST = { name: "official-bridge", version: "1.0.0" };
const UI = { mimeTypes: ["text/html;profile=mcp-app"] };
const CONTEXT = {
  theme: "light",
  platform: "web",
  displayMode: "inline",
  availableDisplayModes: ["inline"],
  containerDimensions: { maxHeight: 6000 },
};
const client = new Client(HOST, {
  capabilities: { extensions: { "io.modelcontextprotocol/ui": UI } },
});
const calls = new Map();
let tools = [];
let sandbox = "";
let last;

async function showView(uri, tool) {
  const { contents } = await client.readResource({ uri });
  const { text, blob, _meta } = contents[0];
  const bytes = () => Uint8Array.from(atob(blob), (each) => each.charCodeAt(0));
  const html = text ?? new TextDecoder().decode(bytes());
  const { csp, permissions } = _meta?.ui ?? {};
  const { tools: serverTools, resources: serverResources } = client.getServerCapabilities();
  const stated = { openLinks: {}, logging: {}, serverTools, serverResources };
  const hostContext = { ...CONTEXT, toolInfo: { tool } };
  const bridge = new AppBridge(
    client,
    HOST,
    { ...stated, sandbox: { csp, permissions } },
    { hostContext },
  );
  bridge.onopenlink = async ({ url }) => {
    if (url.startsWith("http")) window.open(url, "_blank", "noopener");
    return {};
  };
  bridge.onmessage = async () => ({});
  bridge.onupdatemodelcontext = async () => ({});
  const frame = document.createElement("iframe");
  bridge.onsizechange = ({ height }) => (frame.style.height = `${Math.min(height, 6000)}px`);
  const initialized = new Promise((resolve) => (bridge.oninitialized = resolve));
  const ready = new Promise((resolve) => (bridge.onsandboxready = resolve));
  frame.allow = buildAllowAttribute(permissions);
  frame.style.border = "none";
  document.body.append(frame);
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.src = `${sandbox}?csp=${encodeURIComponent(JSON.stringify(csp ?? {}))}`;
  await ready;
  await bridge.sendSandboxResourceReady({ html, csp, permissions });
  last = { bridge, frame, hostContext };
  await initialized;
  return bridge;
}

globalThis.conform = {
  async connect(url, page) {
    sandbox = page;
    await client.connect(new StreamableHTTPClientTransport(new URL(url)));
    ({ tools } = await client.listTools());
  },
  async call(id, name, args) {
    const tool = tools.find((each) => each.name === name);
    const abort = new AbortController();
    calls.set(id, abort);
    const uri = tool && getToolUiResourceUri(tool);
    const running = client.callTool({ name, arguments: args }, { signal: abort.signal });
    running.catch(() => {});
    const bridge = uri && (await showView(uri, tool));
    await bridge?.sendToolInput({ arguments: args });
    try {
      await bridge?.sendToolResult(await running);
    } catch (error) {
      await bridge?.sendToolCancelled({ reason: String(error) });
    }
  },
  cancel: (id) => calls.get(id)?.abort("cancelled"),
  darken: () => last.bridge.setHostContext({ ...last.hostContext, theme: "dark" }),
  async close() {
    await last.bridge.teardownResource({});
    last.frame.remove();
    await last.bridge.close();
  },
};
