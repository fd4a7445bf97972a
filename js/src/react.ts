/**
 * react.js: React hooks over `transom.js`. React is a peer: it comes from the page's own bundle.
 *
 *   function Editor() {
 *     const { isConnected } = useApp({ appInfo: { name: "editor", version: "1.0.0" } });
 *     const [text, setText] = useState("");
 *     useRegisterTool("read_text", { description: "Read the text" }, () => text);
 *     return isConnected && <textarea value={text} onChange={(e) => setText(e.target.value)} />;
 *   }
 *
 * 1. Names are those of `@modelcontextprotocol/ext-apps/react` and of sunpeak, and mean the same.
 * 2. A page has one host, so there is one App. It is made by the first `useApp` or `AppProvider`,
 *    and outlives components, Strict Mode's second mount, and Fast Refresh.
 * 3. Tools that components register when they are first mounted are there before the handshake:
 *    the App connects after the effects of the first commit have run.
 * 4. What a callback sees is the component's state as it was last rendered.
 */
import {
  createElement,
  Fragment,
  useEffect,
  useRef,
  useState,
  useSyncExternalStore,
  type ReactNode,
} from "react";
import {
  App,
  type AppOptions,
  type AppToolCallback,
  type Implementation,
  type LazySchema,
  type McpUiAppCapabilities,
  type McpUiHostContext,
  type McpUiTheme,
  type RegisteredAppTool,
  type Schema,
  type Tool,
  type ToolConfig,
  type ToolExtra,
} from "./transom.js";

export * from "./transom.js";

export interface UseAppOptions extends AppOptions {
  appInfo: Implementation;
  /** What the View can do; tools that come and go, unless given. */
  capabilities?: McpUiAppCapabilities;
  /** Called once, before the App connects: set handlers here. */
  onAppCreated?: (app: App) => void;
}

export interface AppState {
  /** The App once it is connected. */
  app: App | null;
  isConnected: boolean;
  /** Why it could not connect. */
  error: Error | null;
}

export interface AppProviderProps extends UseAppOptions {
  children?: ReactNode;
}

export interface AppTool extends Omit<Tool, "inputSchema"> {
  inputSchema?: Record<string, unknown>;
}

export interface AppToolsConfig {
  tools: AppTool[];
  /** Called with each call of one of them. */
  onCallTool(params: { name: string; arguments: Record<string, any> }, extra: ToolExtra): unknown;
}

export interface ToolData<Input, Output> {
  input: Input | null;
  inputPartial: Partial<Input> | null;
  output: Output | null;
  isError: boolean;
  isLoading: boolean;
  isCancelled: boolean;
  cancelReason: string | null;
}

/** A value that components watch. */
interface Store<Value> {
  get: () => Value;
  set: (next: Value) => void;
  subscribe: (listener: () => void) => () => void;
}

function makeStore<Value>(value: Value): Store<Value> {
  const listeners = new Set<() => void>();
  return {
    get: () => value,
    set(next) {
      value = next;
      for (const listener of [...listeners]) listener();
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

const useStore = <Value>({ subscribe, get }: Store<Value>): Value =>
  useSyncExternalStore(subscribe, get, get);

const NO_DATA: ToolData<any, any> = {
  input: null,
  inputPartial: null,
  output: null,
  isError: false,
  isLoading: true,
  isCancelled: false,
  cancelReason: null,
};
const NOT_CONNECTED: AppState = { app: null, isConnected: false, error: null };

const connection = makeStore(NOT_CONNECTED);
const hostContext = makeStore<McpUiHostContext | null>(null);
const toolData = makeStore(NO_DATA);
/** Of each component that uses `useAppTools`: what it gave last. */
const lists = new Set<{ current: AppToolsConfig }>();

let pageApp: App | null = null;
let started = false;

const toTool = ({ inputSchema, ...tool }: AppTool): Tool => ({
  ...tool,
  inputSchema: { type: "object", ...inputSchema },
});

/** Notify the host of a changed list, if there is a connection. */
const notifyListChanged = (): void => void pageApp?.sendToolListChanged().catch(() => undefined);

/** Make the App of the page. What the host sends is stored for components that mount later. */
function makeApp({ appInfo, capabilities, ...options }: UseAppOptions): void {
  const { autoResize, toJSONSchema } = options;
  const declared = capabilities ?? { tools: { listChanged: true } };
  const app = new App(appInfo, declared, { autoResize, toJSONSchema });
  const keep = (changes: Partial<ToolData<any, any>>): void =>
    toolData.set({ ...toolData.get(), ...changes });
  // A host may reuse the View for another call: drop the data of the previous one.
  app.addEventListener("toolinput", ({ arguments: input = {} }) =>
    toolData.set({ ...NO_DATA, input }),
  );
  app.addEventListener("toolinputpartial", ({ arguments: inputPartial = {} }) =>
    keep({ inputPartial }),
  );
  app.addEventListener("toolresult", ({ structuredContent, content, isError = false }) => {
    const output: unknown = structuredContent ?? content;
    keep({ output, isError, isLoading: false });
  });
  app.addEventListener("toolcancelled", ({ reason = null }: { reason?: string | null }) =>
    keep({ isCancelled: true, cancelReason: reason, isLoading: false }),
  );
  app.addEventListener("hostcontextchanged", () => hostContext.set(app.getHostContext() ?? null));
  app.onclose = () => connection.set(NOT_CONNECTED);
  pageApp = app;
}

async function connect(app: App, onAppCreated: UseAppOptions["onAppCreated"]): Promise<void> {
  onAppCreated?.(app);
  await Promise.resolve(); // other components of this commit have effects to run
  try {
    await app.connect();
    hostContext.set(app.getHostContext() ?? null);
    connection.set({ app, isConnected: true, error: null });
  } catch (error) {
    connection.set({ app: null, isConnected: false, error: error as Error });
  }
}

function appFor(hook: string): App {
  if (!pageApp) throw new Error(`${hook} needs useApp({ appInfo }) or <AppProvider> above it`);
  return pageApp;
}

/** Make and connect the page's App, as in ext-apps. Options are read once. */
export function useApp(options: UseAppOptions): AppState;
/** The page's App once it is connected, as in sunpeak. */
export function useApp(): App | null;
export function useApp(options?: UseAppOptions): AppState | App | null {
  const state = useStore(connection);
  if (options && !pageApp) makeApp(options);
  useEffect(() => {
    if (!options || !pageApp || started) return;
    started = true;
    void connect(pageApp, options.onAppCreated);
  }, []);
  return options ? state : state.app;
}

/** Make and connect the page's App for the components inside. */
export function AppProvider({ children, ...options }: AppProviderProps): ReactNode {
  useApp(options);
  return createElement(Fragment, null, children);
}

/** The defaults of a tool. */
const PLAIN: ToolConfig = {
  title: undefined,
  description: undefined,
  inputSchema: undefined,
  outputSchema: undefined,
  annotations: undefined,
  _meta: undefined,
  execution: undefined,
  jsonSchema: undefined,
  toJSONSchema: undefined,
  returnsTask: undefined,
  reason: undefined,
  enabled: true,
};

type AnyCallback = (...given: unknown[]) => unknown;

const differs = (one: ToolConfig, other: ToolConfig): boolean =>
  (Object.keys({ ...one, ...other }) as (keyof ToolConfig)[]).some(
    (field) => !Object.is(one[field], other[field]),
  );

/**
 * Offer a tool for as long as the component is there. What changes in `config` between two renders
 * changes the tool.
 */
export function useRegisterTool<
  const In extends Schema | LazySchema | undefined = undefined,
  const Out extends Schema | undefined = undefined,
>(name: string, config: ToolConfig<In, Out>, callback: AppToolCallback<In, Out>): void;
/** A function that registers tools, as in sunpeak. */
export function useRegisterTool(): App["registerTool"];
export function useRegisterTool(
  name?: string,
  config: ToolConfig = {},
  given?: unknown,
): App["registerTool"] | undefined {
  const callback = given as AnyCallback;
  const latest = useRef({ config, callback });
  const handle = useRef<RegisteredAppTool | undefined>(undefined);
  const register = useRef(((...tool: Parameters<App["registerTool"]>) =>
    appFor("useRegisterTool").registerTool(...tool)) as App["registerTool"]);
  const { inputSchema } = config;
  const lazy = typeof inputSchema === "function" && !("~standard" in inputSchema);
  useEffect(() => {
    const before = latest.current.config;
    latest.current = { config, callback };
    if (!handle.current || !differs(before, config)) return;
    const { inputSchema: _, ...changes } = { ...PLAIN, ...config };
    // A function is called at every listing anyway; an update would only notify the host.
    handle.current.update(lazy ? changes : { inputSchema, ...changes });
  });
  useEffect(() => {
    if (name === undefined) return undefined;
    const registered: ToolConfig = { ...config };
    if (lazy) registered.inputSchema = () => (latest.current.config.inputSchema as LazySchema)();
    const run: AnyCallback = (...args) => latest.current.callback(...args);
    const tool = register.current(name, registered, run);
    handle.current = tool;
    return () => {
      handle.current = undefined;
      tool.remove();
    };
  }, [name, lazy, inputSchema === undefined]); // with a schema, a callback has other parameters
  return name === undefined ? register.current : undefined;
}

/** Offer a fixed list of tools, with one function that is called for all of them. */
export function useAppTools(config: AppToolsConfig): void {
  const latest = useRef(config);
  useEffect(() => {
    latest.current = config;
  });
  useEffect(() => {
    const app = appFor("useAppTools");
    app.onlisttools = async () => ({
      tools: [...lists].flatMap(({ current }) => current.tools.map(toTool)),
    });
    app.oncalltool = async (params, extra) => {
      const all = [...lists];
      const has = ({ current }: { current: AppToolsConfig }): boolean =>
        current.tools.some((tool) => tool.name === params.name);
      return (all.find(has) ?? all.at(-1))?.current.onCallTool(params, extra);
    };
    lists.add(latest);
    return () => {
      lists.delete(latest);
      notifyListChanged();
    };
  }, []);
  useEffect(notifyListChanged, [JSON.stringify(config.tools)]);
}

/** What the host has sent of the tool that opened the View. */
export function useToolData<Input = any, Output = any>(
  input: Input | null = null,
  output: Output | null = null,
): ToolData<Input, Output> {
  const data = useStore(toolData) as ToolData<Input, Output>;
  return { ...data, input: data.input ?? input, output: data.output ?? output };
}

/** What surrounds the View (theme, locale, display mode, ...); null before the handshake. */
export function useHostContext(): McpUiHostContext | null {
  return useStore(hostContext);
}

/** Let the page have the host's theme and style variables. */
export function useHostStyleVariables(
  app: App | null = null,
  _initial?: McpUiHostContext | null,
): void {
  useEffect(() => (app ?? pageApp)?.followHostStyle(), [app]);
}

/** Let the page have the host's fonts. */
export function useHostFonts(
  _app: App | null = null,
  initial: McpUiHostContext | null = null,
): void {
  const fonts = (useHostContext() ?? initial)?.styles?.css?.fonts;
  useEffect(() => {
    if (!fonts) return undefined;
    const sheet = document.createElement("style");
    sheet.textContent = fonts;
    document.head.append(sheet);
    return () => sheet.remove();
  }, [fonts]);
}

/** Let the page have the host's theme, style variables and fonts. */
export function useHostStyles(
  app: App | null = null,
  initial: McpUiHostContext | null = null,
): void {
  useHostStyleVariables(app);
  useHostFonts(app, initial);
}

function documentTheme(): McpUiTheme {
  const { dataset, classList } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : classList.contains("dark");
  return dark ? "dark" : "light";
}

/** The theme that the document has now. */
export function useDocumentTheme(): McpUiTheme {
  const [theme, setTheme] = useState(documentTheme);
  useEffect(() => {
    const look = (): void => setTheme(documentTheme());
    const observer = new MutationObserver(look);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme", "class"] });
    look();
    return () => observer.disconnect();
  }, []);
  return theme;
}

/** Report the size of the content to the host, for an App that was made with `autoResize: false`. */
export function useAutoResize(app: App | null): void {
  useEffect(() => {
    if (!app) return undefined;
    const { documentElement: html, body } = document;
    const report = (): void => {
      const { height } = body.getBoundingClientRect();
      const size = { width: innerWidth, height: Math.ceil(height) };
      app.sendSizeChanged(size).catch(() => undefined); // it may be closed
    };
    const observer = new ResizeObserver(report);
    observer.observe(html);
    observer.observe(body);
    return () => observer.disconnect();
  }, [app]);
}
