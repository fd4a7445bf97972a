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

const views = new Map();

function open(view, html) {
  const listeners = { message: [], pagehide: [] };
  const parent = {
    postMessage: (message) => process.stdout.write(`${JSON.stringify({ view, message })}\n`),
  };
  const window = {
    parent,
    addEventListener: (type, listener) => listeners[type]?.push(listener),
  };
  const context = vm.createContext({ window, setTimeout, clearTimeout, fetch, console, Intl });
  const fire = (type, event) => listeners[type].forEach((listener) => listener(event));
  views.set(view, {
    message: (data) => fire("message", { source: parent, data }),
    close: () => fire("pagehide", {}),
  });
  for (const [, code] of html.matchAll(/<script>([\s\S]*?)<\/script>/g))
    vm.runInContext(code, context);
}

createInterface({ input: process.stdin }).on("line", (line) => {
  const { view, html, message } = JSON.parse(line);
  if (html !== undefined) open(view, html);
  else if (message !== undefined) views.get(view)?.message(message);
  else {
    views.get(view)?.close();
    views.delete(view);
  }
});
