import vm from "node:vm";

/** Runs an instrument in a context of its own, with a stand-in for a window whose parent is the host. */
export function openInstrument(html, toHost) {
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
