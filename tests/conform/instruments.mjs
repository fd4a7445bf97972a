/**
 * Runs instruments of `transom conform host` without a browser: each in a context of its own, with
 * a stand-in for a window whose parent is the host. Lines of JSON on stdin and stdout:
 *
 *   {view, html}     open an instrument
 *   {view, message}  a message to it, or from it
 *   {view}           close it
 */
import { createInterface } from "node:readline";
import vm from "node:vm";

/** Runs an instrument in a context of its own, with a stand-in for a window whose parent is the host. */
function openInstrument(html, toHost) {
  const listeners = { message: [], pagehide: [] };
  const parent = { postMessage: (message) => toHost(structuredClone(message)) };
  const window = {
    parent,
    addEventListener: (type, listener) => listeners[type]?.push(listener),
  };
  const context = vm.createContext({ window, setTimeout, clearTimeout, fetch, console, Intl });
  const fire = (type, event) => listeners[type].forEach((listener) => listener(event));
  for (const [, code] of html.matchAll(/<script>([\s\S]*?)<\/script>/g))
    vm.runInContext(code, context);
  return {
    message: (data) => fire("message", { source: parent, data }),
    close: () => fire("pagehide", {}),
  };
}

const views = new Map();
const write = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

createInterface({ input: process.stdin }).on("line", (line) => {
  const { view, html, message } = JSON.parse(line);
  if (html !== undefined)
    views.set(view, openInstrument(html, (sent) => write({ view, message: sent })));
  else if (message !== undefined) views.get(view)?.message(message);
  else {
    views.get(view)?.close();
    views.delete(view);
  }
});
