/**
 * webmcp.js: WebMCP for pages that use `transom.js`. What is registered with
 * `document.modelContext` is a tool of the page's App, and the other way round.
 *
 * 1. `document.modelContext` is where browsers have it; `navigator.modelContext`, where they had it
 *    first, is the same object here.
 * 2. Where the browser has WebMCP of its own, its object is used: what the page registered with it
 *    before we came, by script or by form, is listed and called by the host, and the App's tools
 *    are offered to it. If the browser refuses, the host still has the page's tools.
 * 3. A page that makes no App gets one, connected once the page has loaded. An App made later takes
 *    its place and its tools.
 * 4. Browsers have had schemas and arguments as objects and as JSON, `registerTool` with and without
 *    a promise, tools removed by signal and by name. All of these are understood.
 */
import { App } from "./transom.js";

const { hooks } = App;
const { document: page, navigator: agent } = globalThis;
const native = page?.modelContext ?? agent?.modelContext;
const modelContext = native ?? new EventTarget();

/** A method of the browser's own, before ours takes its place. */
const nativeMethod = (name) => native?.[name]?.bind(native);
const registerNative = nativeMethod("registerTool");
const unregisterNative = nativeMethod("unregisterTool");
const listNative = nativeMethod("getTools");
const executeNative = nativeMethod("executeTool");

/** The App of the page; one is made if it has none. */
const speaker = () => {
  if (!hooks.current) {
    hooks.automatic = new App({ name: page.title || "page", version: "1" });
    const connect = () => hooks.automatic?.connect().catch(() => {});
    if (page.readyState === "complete") setTimeout(connect);
    else addEventListener("load", connect);
  }
  return hooks.current;
};

const registered = () => hooks.current?.tools ?? [];

/** What may have come as JSON: the value itself; anything else stays as it is. */
const parsed = (value) => {
  if (typeof value !== "string" || !/^\s*[{[]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
};

/** A tool as a model may see it now; undefined if it may not. */
const offered = (tool) => {
  const entry = tool.definition();
  return entry && entry._meta.ui?.visibility?.includes("model") !== false ? entry : undefined;
};

/** Call a tool of ours for the browser. */
const run = (tool, given, signal = new AbortController().signal) =>
  tool.call(parsed(given) ?? {}, signal);

const toolChanged = () => {
  const event = new Event("toolchange");
  modelContext.dispatchEvent(event);
  if (!native) modelContext.ontoolchange?.(event);
};

// --- beside the browser's own -------------------------------------------------------------------

const removers = new WeakMap(); // of a tool: takes it from the browser again

/** Offer a tool to the browser as it is now; undefined if the browser is not to have it. */
const offerToBrowser = (tool) => {
  const entry = offered(tool);
  if (!entry) return undefined;
  const control = new AbortController();
  const register = async () =>
    registerNative(
      {
        ...entry,
        description: entry.description ?? entry.name,
        execute: (given, { signal } = {}) => run(tool, given, signal),
      },
      { signal: control.signal },
    );
  register().catch(toolChanged); // it refuses; who listens learns of the tool from us
  return () => {
    control.abort();
    try {
      unregisterNative?.(entry.name); // a browser from before there was a signal
    } catch {
      // the signal was enough
    }
  };
};

const listBrowserTools = async () => {
  const found = (await listNative?.().catch(() => {})) ?? [];
  return found.filter((tool) => (tool.window ?? window) === window); // other frames have theirs
};

Object.assign(hooks, {
  native,
  toolChanged(tool) {
    if (!native) return toolChanged();
    removers.get(tool)?.();
    removers.set(tool, offerToBrowser(tool));
  },
  browserTools: async () =>
    (await listBrowserTools()).map(({ name, title, description, annotations, inputSchema }) => ({
      name,
      title: title || undefined,
      description,
      annotations,
      inputSchema: parsed(inputSchema) || undefined,
    })),
  async browserTool(name) {
    const tool = (await listBrowserTools()).find((each) => each.name === name);
    return (
      tool &&
      (async (params, { signal }) => {
        const asText = typeof tool.inputSchema === "string";
        const given = asText ? JSON.stringify(params.arguments) : params.arguments;
        const result = parsed(await executeNative(tool, given, { signal }));
        return result === "undefined" ? undefined : result; // so says Chromium of nothing
      })
    );
  },
});

// --- what the page uses -------------------------------------------------------------------------

/** What used to be part of WebMCP answers with what to use now. */
const gone = (name, instead) => () => {
  throw new Error(`${name} is gone from WebMCP: use ${instead}`);
};

Object.assign(modelContext, {
  async registerTool({ name, execute, disabled, ...config }, { signal } = {}) {
    const tool = speaker().registerTool(
      name,
      { inputSchema: {}, ...config, enabled: !disabled },
      execute,
    );
    signal?.addEventListener("abort", tool.remove);
  },
  async unregisterTool(name) {
    registered()
      .find((tool) => tool.name === name)
      ?.remove();
  },
  async updateTool(name, changes) {
    speaker().updateTool(name, changes);
  },
  provideContext: gone(
    "provideContext()",
    "registerTool() for each tool, and updateTool() when something about it changes",
  ),
  clearContext: gone("clearContext()", "the signal given to registerTool()"),
});
if (!listNative) {
  Object.assign(modelContext, {
    /** The tools that a model may see now, for an assistant inside the page. */
    async getTools() {
      return registered().flatMap((tool) => {
        const entry = offered(tool);
        return entry ? { ...entry, window, origin: location.origin } : [];
      });
    },
    /** Call one of them; the JSON of its result. */
    async executeTool({ name }, given, { signal } = {}) {
      const tool = registered().find((each) => each.name === name);
      if (!tool) throw new Error(`Tool ${name} not found`);
      return JSON.stringify(await run(tool, given, signal));
    },
  });
}
/** Every tool of the page's App, disabled ones too: for a developer to see, not for a model. */
Object.defineProperty(modelContext, "tools", { get: registered, configurable: true });
for (const place of [page, agent]) {
  if (place) Object.defineProperty(place, "modelContext", { value: modelContext });
}
if (agent && !("modelContextTesting" in agent)) {
  // A page that looks for it learns what to use: whatever it calls, throws.
  const answer = gone(
    "navigator.modelContextTesting",
    "getTools(), executeTool(), tools and the event toolchange of document.modelContext",
  );
  const value = new Proxy({}, { get: () => answer });
  Object.defineProperty(agent, "modelContextTesting", { value });
}
for (const tool of registered()) hooks.toolChanged(tool); // an App was there before us
