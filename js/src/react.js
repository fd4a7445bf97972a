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
import { createElement, Fragment, useEffect, useRef, useState, useSyncExternalStore } from "react";
import { App } from "./transom.js";

export * from "./transom.js";

/** A value that components watch. */
const makeStore = (value) => {
  const listeners = new Set();
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
};

const useStore = ({ subscribe, get }) => useSyncExternalStore(subscribe, get, get);

const NO_DATA = {
  input: null,
  inputPartial: null,
  output: null,
  isError: false,
  isLoading: true,
  isCancelled: false,
  cancelReason: null,
};

const connection = makeStore({ app: null, isConnected: false, error: null });
const hostContext = makeStore(null);
const toolData = makeStore(NO_DATA);
const lists = new Set(); // of each component that uses useAppTools: what it gave last

let app = null;
let started = false;

const listed = () => [...lists].flatMap(({ current }) => current.tools.map(toTool));
const toTool = ({ inputSchema, ...tool }) => ({
  ...tool,
  inputSchema: { type: "object", ...inputSchema },
});

/** Notify the host of a changed list, if there is a connection. */
const listChanged = () => void app?.sendToolListChanged().catch(() => {});

/** The App of the page. What the host sends is stored for components that mount later. */
function makeApp({ appInfo, capabilities, autoResize, toJSONSchema }) {
  app = new App(appInfo, capabilities ?? { tools: { listChanged: true } }, {
    autoResize,
    toJSONSchema,
  });
  const keep = (changes) => toolData.set({ ...toolData.get(), ...changes });
  // A host may reuse the View for another call: drop the data of the previous one.
  app.addEventListener("toolinput", ({ arguments: input = {} }) =>
    toolData.set({ ...NO_DATA, input }),
  );
  app.addEventListener("toolinputpartial", ({ arguments: inputPartial = {} }) =>
    keep({ inputPartial }),
  );
  app.addEventListener("toolresult", ({ structuredContent, content, isError = false }) =>
    keep({ output: structuredContent ?? content, isError, isLoading: false }),
  );
  app.addEventListener("toolcancelled", ({ reason = null }) =>
    keep({ isCancelled: true, cancelReason: reason, isLoading: false }),
  );
  app.addEventListener("hostcontextchanged", () => hostContext.set(app.getHostContext()));
  app.onclose = () => connection.set({ app: null, isConnected: false, error: null });
}

async function connect(onAppCreated) {
  onAppCreated?.(app);
  await null; // other components of this commit have effects to run
  try {
    await app.connect();
    hostContext.set(app.getHostContext());
    connection.set({ app, isConnected: true, error: null });
  } catch (error) {
    connection.set({ app: null, isConnected: false, error });
  }
}

const theApp = (hook) => {
  if (!app) throw new Error(`${hook} needs useApp({ appInfo }) or <AppProvider> above it`);
  return app;
};

/**
 * With options, make and connect the page's App: `{ app, isConnected, error }`, as in ext-apps.
 * Without, the connected App or null, as in sunpeak.
 */
export function useApp(options) {
  const state = useStore(connection);
  if (options && !app) makeApp(options);
  useEffect(() => {
    if (!options || started) return;
    started = true;
    connect(options.onAppCreated);
  }, []);
  return options ? state : state.app;
}

/** Make and connect the page's App for the components inside. */
export function AppProvider({ children, ...options }) {
  useApp(options);
  return createElement(Fragment, null, children);
}

/** The defaults of a tool. */
const PLAIN = {
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

const differs = (one, other) =>
  Object.keys({ ...one, ...other }).some((key) => !Object.is(one[key], other[key]));

/**
 * With a name, offer a tool for as long as the component is there; what changes in `config`
 * between two renders changes the tool. Without, a function that registers tools, as in sunpeak.
 */
export function useRegisterTool(name, config = {}, callback = undefined) {
  const latest = useRef({ config, callback });
  const handle = useRef(undefined);
  const register = useRef((...given) => theApp("useRegisterTool").registerTool(...given));
  const { inputSchema } = config;
  const lazy = typeof inputSchema === "function" && !inputSchema["~standard"];
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
    const given = { ...config };
    if (lazy) given.inputSchema = () => latest.current.config.inputSchema();
    const tool = register.current(name, given, (...args) => latest.current.callback(...args));
    handle.current = tool;
    return () => {
      handle.current = undefined;
      tool.remove();
    };
  }, [name, lazy, inputSchema === undefined]); // with a schema, a callback has other parameters
  return name === undefined ? register.current : undefined;
}

/** Offer a fixed list of tools, with one function that is called for all of them. */
export function useAppTools(config) {
  const latest = useRef(config);
  useEffect(() => {
    latest.current = config;
  });
  useEffect(() => {
    const own = theApp("useAppTools");
    own.onlisttools = async () => ({ tools: listed() });
    own.oncalltool = async (params, extra) => {
      const has = ({ current }) => current.tools.some((tool) => tool.name === params.name);
      const list = [...lists].find(has) ?? [...lists].at(-1);
      return list?.current.onCallTool(params, extra);
    };
    lists.add(latest);
    return () => {
      lists.delete(latest);
      listChanged();
    };
  }, []);
  useEffect(listChanged, [JSON.stringify(config.tools)]);
}

/** What the host has sent of the tool that opened the View. */
export function useToolData(input = null, output = null) {
  const data = useStore(toolData);
  return { ...data, input: data.input ?? input, output: data.output ?? output };
}

/** What surrounds the View (theme, locale, display mode, ...); null before the handshake. */
export function useHostContext() {
  return useStore(hostContext);
}

/** Let the page have the host's theme and style variables. */
export function useHostStyleVariables(given = null) {
  useEffect(() => (given ?? app)?.followHostStyle(), [given]);
}

/** Let the page have the host's fonts. */
export function useHostFonts(_given = null, initial = null) {
  const fonts = (useHostContext() ?? initial)?.styles?.css?.fonts;
  useEffect(() => {
    if (!fonts) return;
    const sheet = document.createElement("style");
    sheet.textContent = fonts;
    document.head.append(sheet);
    return () => sheet.remove();
  }, [fonts]);
}

/** Let the page have the host's theme, style variables and fonts. */
export function useHostStyles(given = null, initial = null) {
  useHostStyleVariables(given);
  useHostFonts(given, initial);
}

const documentTheme = () => {
  const { dataset, classList } = document.documentElement;
  const dark = dataset.theme ? dataset.theme === "dark" : classList.contains("dark");
  return dark ? "dark" : "light";
};

/** The theme that the document has now: "light" or "dark". */
export function useDocumentTheme() {
  const [theme, setTheme] = useState(documentTheme);
  useEffect(() => {
    const look = () => setTheme(documentTheme());
    const observer = new MutationObserver(look);
    observer.observe(document.documentElement, { attributeFilter: ["data-theme", "class"] });
    look();
    return () => observer.disconnect();
  }, []);
  return theme;
}

/** Report the size of the content to the host, for an App that was made with autoResize off. */
export function useAutoResize(given) {
  useEffect(() => {
    if (!given) return;
    const { documentElement: html, body } = document;
    const report = () => {
      const { height } = body.getBoundingClientRect();
      const size = { width: innerWidth, height: Math.ceil(height) };
      given.sendSizeChanged(size).catch(() => {}); // it may be closed
    };
    const observer = new ResizeObserver(report);
    observer.observe(html);
    observer.observe(body);
    return () => observer.disconnect();
  }, [given]);
}
