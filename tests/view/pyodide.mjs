/**
 * Python in WebAssembly, as a browser has it, and the official AppBridge as its host.
 *
 *   node pyodide.mjs WHEEL SOURCE SMALL_APP
 *
 * Prints one line of JSON: {platform, small, bridge}: what SMALL_APP's main() returned, and what the
 * bridge saw of an App that connected to `window.parent`.
 */
import { readFileSync } from "node:fs";

import { AppBridge } from "@modelcontextprotocol/ext-apps/app-bridge";
import { loadPyodide } from "pyodide";

const [wheel, source, smallApp] = process.argv.slice(2);

const python = await loadPyodide();
const site = python.runPython("import site; site.getsitepackages()[0]");
python.unpackArchive(new Uint8Array(readFileSync(wheel)), "wheel", { extractDir: site });
python.mountNodeFS("/transom", source);
python.runPython(`import sys; sys.path.insert(0, "/transom")`);

/** The page that the View is in: what the View posts goes to the bridge, and back. */
class PageTransport {
  async start() {
    globalThis.window = new EventTarget();
    window.parent = { postMessage: (data, origin) => this.#posted(structuredClone(data), origin) };
  }
  #posted(data, origin) {
    if (origin !== "*") throw new Error(`posted to ${origin}`);
    setImmediate(() => this.onmessage?.(data));
  }
  async send(message) {
    const event = new Event("message");
    window.dispatchEvent(Object.assign(event, { data: message, source: window.parent }));
  }
  async close() {
    this.onclose?.();
  }
}

async function withBridge() {
  const context = { theme: "dark" };
  const bridge = new AppBridge(null, { name: "page", version: "1" }, {}, { hostContext: context });
  const initialized = new Promise((done) => bridge.addEventListener("initialized", done));
  const transport = new PageTransport();
  await bridge.connect(transport);
  const noise = new Event("message");
  python.runPython(`
from transom import App
app = App("in-a-page", "1")

@app.tool
async def shout(text: str) -> str:
    "Say it loudly."
    return text.upper() + "!"
`);
  const connecting = python.runPythonAsync("await app.connect(); app.host_context.theme");
  await initialized;
  const theme = await connecting;
  window.dispatchEvent(Object.assign(noise, { data: { type: "noise" }, source: window.parent }));
  const { tools } = await bridge.listTools();
  const good = await bridge.callTool({ name: "shout", arguments: { text: "h\u00e9 \u{1f600}" } });
  const bad = await bridge.callTool({ name: "shout", arguments: { text: 3 } });
  await python.runPythonAsync("await app.close()");
  return { theme, info: bridge.getAppVersion(), tools, good, bad };
}

const bridge = await withBridge();
delete globalThis.window;
python.runPython(readFileSync(smallApp, "utf8").split("if __name__")[0]);
const small = JSON.parse(await python.runPythonAsync("json.dumps(await main())"));
console.log(JSON.stringify({ platform: python.runPython("sys.platform"), small, bridge }));
process.exit(0);
