/**
 * Views with `transom.js` and the host around them, in Node: for what needs no page. Each View and
 * its host have a realm of their own, and messages between them are cloned, as in a browser.
 *
 * Reads lines of JSON, `[id, view, where, script, argument]`, and answers each with `[id, result]`:
 * what a script comes to `where` it runs, in the `host` or the `view`, as `evaluate` of Playwright has
 * it; with the error if it throws, and with what was written to the console meanwhile. Where it is
 * `mount`, the script is the page that `mount()` of that host shows; null ends the View.
 */
import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";
import vm from "node:vm";

const [, HOST_SCRIPT] = readFileSync(new URL("host.html", import.meta.url), "utf8").match(
  /<script>(.*)<\/script>/s,
);
const SCRIPTS = /<script(?: type="(\w+)")?>(.*?)<\/script>/gs;
const GLOBALS = {
  AbortController, AbortSignal, clearTimeout, crypto, DOMException, Event, EventTarget, queueMicrotask,
  setTimeout, structuredClone, URL,
};

/** A window: its global object, and what others may do with it. */
function makeWindow(more) {
  const listeners = new Set();
  const page = vm.createContext({
    ...GLOBALS,
    addEventListener: (name, listener) => name === "message" && listeners.add(listener),
    removeEventListener: (name, listener) => listeners.delete(listener),
    ...more,
  });
  vm.runInContext("globalThis.window = globalThis", page);
  /** Post to it as the window `source`. */
  const post = (source, message) => {
    const data = structuredClone(message);
    setImmediate(() => {
      for (const listener of [...listeners]) listener({ source, data });
    });
  };
  return { page, post };
}

class MountedView {
  console = [];
  #frame = { contentWindow: { postMessage: (message) => this.#view?.post(this.#parent, message) } };
  #parent = { postMessage: (message) => this.#host.post(this.#frame.contentWindow, message) };
  #host = makeWindow({ document: { querySelector: () => this.#frame } });
  #view;

  constructor(html) {
    vm.runInContext(HOST_SCRIPT, this.#host.page);
    this.#host.page.mount = () => this.#mount(html);
  }

  #mount(html) {
    const write = (kind) => (...given) => this.console.push(`${kind}: ${given.map(String).join(" ")}`);
    const console = { error: write("error"), log: write("log"), warn: write("warning") };
    this.#view = makeWindow({ parent: this.#parent, console });
    for (const [, kind, script] of html.matchAll(SCRIPTS)) {
      // What a module declares is its own; it may wait.
      const code = kind === "module" ? `(async () => {"use strict";${script}\n})()` : script;
      Promise.resolve(vm.runInContext(code, this.#view.page)).catch((error) => {
        this.console.push(`uncaught: ${error.message}`);
      });
    }
  }

  async evaluate(where, script, argument) {
    const { page } = where === "view" ? this.#view : this.#host;
    const value = vm.runInContext(`(${script})`, page);
    return typeof value === "function" ? value(argument ?? undefined) : value;
  }
}

const views = new Map();

async function answer([id, number, where, script, argument]) {
  let said;
  try {
    if (where !== "mount") said = { value: await views.get(number).evaluate(where, script, argument) };
    else if (script === null) views.delete(number);
    else views.set(number, new MountedView(script));
  } catch (error) {
    said = { error: String(error?.stack ?? error) };
  }
  const written = views.get(number)?.console.splice(0) ?? [];
  process.stdout.write(`${JSON.stringify([id, { ...said, console: written }])}\n`);
}

// A promise that nobody waits for is the page's own affair.
process.on("unhandledRejection", () => undefined);
createInterface({ input: process.stdin })
  .on("line", (line) => void answer(JSON.parse(line)))
  .on("close", () => process.exit());
