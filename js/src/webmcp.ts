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
import type { ServedTool } from "./served_tool.js";
import {
  App,
  type LazySchema,
  type RegisteredAppTool,
  type Schema,
  type Tool,
  type ToolConfig,
  type ToolExtra,
} from "./transom.js";

export interface ModelContextTool extends Omit<
  ToolConfig,
  "enabled" | "reason" | "returnsTask" | "execution"
> {
  name: string;
  description: string;
  disabled?: boolean;
  execute: (input: any, extra: ToolExtra) => unknown;
}

/** A tool as `getTools` lists it. */
export interface ListedModelContextTool {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly inputSchema?: object | string;
  readonly window?: Window;
  readonly origin?: string;
}

export interface ModelContext extends EventTarget {
  /** `exposedTo` has the origins of other documents that may use it, where browsers have WebMCP. */
  registerTool(
    tool: ModelContextTool,
    options?: { signal?: AbortSignal; exposedTo?: readonly string[] },
  ): Promise<void>;
  unregisterTool(name: string): Promise<void>;
  updateTool(
    name: string,
    changes: { disabled?: boolean; description?: string; inputSchema?: Schema | LazySchema },
  ): Promise<void>;
  /** Every tool of the page's App, disabled ones too. */
  readonly tools: RegisteredAppTool[];
  /** The tools that a model may see now. */
  getTools(): Promise<ListedModelContextTool[]>;
  /** Call one of them; the JSON of its result. */
  executeTool(
    tool: Pick<ListedModelContextTool, "name">,
    input?: object | string,
    options?: { signal?: AbortSignal },
  ): Promise<string | null>;
  ontoolchange: ((event: Event) => unknown) | null | undefined;
}

declare global {
  interface Document {
    readonly modelContext: ModelContext;
  }
  interface Navigator {
    /** Where browsers had it first. */
    readonly modelContext: ModelContext;
  }
}

/** What browsers have called `modelContext`, in all its forms. */
interface NativeContext extends EventTarget {
  registerTool(tool: object, options: { signal: AbortSignal; exposedTo?: string[] }): unknown;
  unregisterTool?(name: string): void;
  getTools?(): Promise<NativeTool[]>;
  executeTool?(tool: NativeTool, given: unknown, options: { signal: AbortSignal }): unknown;
}

type NativeTool = ListedModelContextTool & Pick<Tool, "annotations">;

const { hooks } = App;
const page = globalThis.document as Document | undefined;
const agent = globalThis.navigator as Navigator | undefined;
const native = (page?.modelContext ?? agent?.modelContext) as unknown as NativeContext | undefined;
const modelContext = (native ?? new EventTarget()) as ModelContext;

// The methods of the browser's own, before ours take their place.
const registerNative = native?.registerTool.bind(native);
const unregisterNative = native?.unregisterTool?.bind(native);
const listNative = native?.getTools?.bind(native);
const executeNative = native?.executeTool?.bind(native);

/** The App of the page; one is made if it has none. */
function speaker(): App {
  if (!App._current) {
    App._automatic = new App({ name: page!.title || "page", version: "1" });
    const connect = (): void => void App._automatic?.connect().catch(() => undefined);
    if (page!.readyState === "complete") setTimeout(connect);
    else addEventListener("load", connect);
  }
  return App._current!;
}

const registered = (): ServedTool[] => (App._current?.tools ?? []) as ServedTool[];

const find = (name: string): ServedTool | undefined =>
  registered().find((tool) => tool.name === name);

/** What may have come as JSON: the value itself; anything else stays as it is. */
function parsed(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[{[]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

/** A tool as a model may see it now; undefined if it may not. */
function offered(tool: ServedTool): Tool | undefined {
  const entry = tool.definition();
  const visibility = entry?._meta?.ui?.visibility;
  return visibility && !visibility.includes("model") ? undefined : entry;
}

/** Call a tool of ours for the browser. */
const run = (
  tool: ServedTool,
  given: unknown,
  signal = new AbortController().signal,
): Promise<unknown> => tool.call(parsed(given) ?? {}, signal);

function fireToolChange(): void {
  const event = new Event("toolchange");
  modelContext.dispatchEvent(event);
  if (!native) modelContext.ontoolchange?.(event);
}

// --- beside the browser's own -------------------------------------------------------------------

const removers = new WeakMap<ServedTool, () => void>(); // of a tool: takes it from the browser again
const exposures = new WeakMap<ServedTool, string[]>(); // of a tool: who else may use it there
let exposing: string[] | undefined; // while one is registered

/** Offer a tool to the browser as it is now; how to take it back. Not if a model may not see it. */
function offerToBrowser(tool: ServedTool): (() => void) | undefined {
  const entry = offered(tool);
  if (!entry) return undefined;
  const control = new AbortController();
  const register = async (): Promise<unknown> => {
    if (hooks._loading) await hooks._loading;
    return registerNative!(
      {
        description: entry.name,
        ...offered(tool),
        execute: (given: unknown, { signal }: { signal?: AbortSignal } = {}) =>
          run(tool, given, signal),
      },
      { signal: control.signal, exposedTo: exposures.get(tool) ?? [] },
    );
  };
  register().catch(fireToolChange); // it refuses; who listens learns of the tool from us
  return () => {
    control.abort();
    try {
      unregisterNative?.(entry.name); // a browser from before there was a signal
    } catch {
      // the signal was enough
    }
  };
}

async function listBrowserTools(): Promise<NativeTool[]> {
  const found = (await listNative?.().catch(() => undefined)) ?? [];
  return found.filter((tool) => (tool.window ?? window) === window); // other frames have theirs
}

Object.assign(hooks, {
  _makeApp: speaker,
  _isNative: Boolean(native),
  _toolChanged(tool) {
    if (exposing) exposures.set(tool, exposing);
    if (!native) {
      fireToolChange();
      return;
    }
    removers.get(tool)?.();
    removers.set(tool, offerToBrowser(tool) ?? (() => undefined));
  },
  _browserTools: async () =>
    (await listBrowserTools()).map(({ name, title, description, annotations, inputSchema }) => ({
      name,
      title: title || undefined,
      description,
      annotations,
      inputSchema: parsed(inputSchema) || undefined,
    })) as Tool[],
  async _browserTool(name) {
    const tool = (await listBrowserTools()).find((each) => each.name === name);
    if (!tool) return undefined;
    return async (params, { signal }) => {
      const asText = typeof tool.inputSchema === "string";
      const given = asText ? JSON.stringify(params.arguments) : params.arguments;
      const result = parsed(await executeNative!(tool, given, { signal }));
      return result === "undefined" ? undefined : result; // so says Chromium of nothing
    };
  },
} satisfies Partial<typeof hooks>);

// --- what the page uses -------------------------------------------------------------------------

/** The origin of an address, which must be one that nobody on the network can imitate. */
function originOf(address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  const isLocal = /^(.+\.)?localhost$|^127\.|^\[::1\]$/.test(url?.hostname ?? "");
  if (!url || (url.protocol !== "https:" && !isLocal)) {
    throw new DOMException(`exposedTo has no secure origin: ${address}`, "SecurityError");
  }
  return url.origin;
}

/** What used to be part of WebMCP answers with what to use now. */
const gone = (name: string, instead: string) => (): never => {
  throw new Error(`${name} is gone from WebMCP: use ${instead}`);
};

Object.assign(modelContext, {
  async registerTool({ name, execute, disabled, ...config }, { signal, exposedTo = [] } = {}) {
    signal?.throwIfAborted();
    if (!config.description || typeof execute !== "function") {
      throw new TypeError("A tool needs a description and execute()");
    }
    exposing = Array.from(exposedTo, originOf);
    try {
      const tool = speaker().registerTool(
        name,
        { inputSchema: {}, ...config, enabled: !disabled },
        execute,
      );
      signal?.addEventListener("abort", () => tool.remove());
    } finally {
      exposing = undefined;
    }
    await Promise.resolve();
    signal?.throwIfAborted(); // it may have been aborted in this turn
  },
  async unregisterTool(name) {
    find(name)?.remove();
  },
  async updateTool(name, changes) {
    speaker().updateTool(name, changes);
  },
} satisfies Partial<ModelContext>);
Object.assign(modelContext, {
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
      const tool = find(name);
      if (!tool) throw new Error(`Tool ${name} not found`);
      return JSON.stringify(await run(tool, given, signal));
    },
  } satisfies Partial<ModelContext>);
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
for (const tool of registered()) hooks._toolChanged(tool); // an App was there before us
