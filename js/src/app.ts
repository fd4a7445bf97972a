/**
 * The App: a View's end of the conversation with its host.
 *
 *   const app = new App({ name: "doc-editor", version: "1.0.0" });
 *   app.registerTool("get_selection", { description: "Return the user's selection" },
 *     () => String(getSelection()));
 *   await app.connect();
 *
 * 1. Names are those of @modelcontextprotocol/ext-apps. How tools behave is Transom's, the same as
 *    in Python.
 * 2. What a callback throws stays in the page, unless it is a ToolError or a ProtocolError.
 * 3. Transom's own extensions on the wire are named `transom/...`; other hosts can ignore them.
 */
import { ErrorCode, must, ProtocolError } from "./errors.js";
import { hooks } from "./hooks.js";
import { entries, fromEntries, isObject, isString, keys, type JsonObject } from "./json.js";
import { makeHostStyle, watchSize, type HostStyle } from "./page.js";
import { makePeer, type Served } from "./peer.js";
import { makeReporter, sendProblems } from "./reporter.js";
import { makeTasks } from "./tasks.js";
import { makeToolService } from "./tool_service.js";
import type {
  AppEventMap,
  AppOptions,
  AppToolCallback,
  CallHandler,
  CallToolResult,
  ContentBlock,
  EmbeddedResource,
  Handler,
  Implementation,
  LazySchema,
  ListHandler,
  McpUiAppCapabilities,
  McpUiDisplayMode,
  McpUiHostCapabilities,
  McpUiHostContext,
  RegisteredAppTool,
  RequestOptions,
  ResourceLink,
  Schema,
  Task,
  Tool,
  ToolConfig,
  ToolExtra,
  Verdict,
} from "./types.js";

const PROTOCOL_VERSION = "2026-01-26";

/** What the host notifies a View of: `ui/notifications/tool-input` is the event `toolinput`. */
const EVENTS = new Map(
  ["tool-input", "tool-input-partial", "tool-result", "tool-cancelled", "host-context-changed"].map(
    (name) => [`ui/notifications/${name}`, name.replaceAll("-", "") as keyof AppEventMap],
  ),
);

type Listener = (params: JsonObject) => unknown;

/** What the host said of itself in the handshake; its context as it is now. */
interface Host {
  readonly _info: Implementation;
  readonly _capabilities: McpUiHostCapabilities & { appTools?: { listChanged?: boolean } };
  _context: McpUiHostContext;
}

/**
 * `capabilities` are declared besides the tools that there are. The handlers of events, `ontoolinput`
 * and so on, can also be added with `addEventListener`.
 */
export class App {
  /** What `webmcp.js` uses. @internal */
  static readonly hooks = hooks;
  /** The one that speaks for the page. @internal */
  declare static _current: App | undefined;
  /** The same, if it was made for a page that has tools and no App. @internal */
  declare static _automatic: App | undefined;

  declare ontoolinput: Handler<AppEventMap["toolinput"]>;
  declare ontoolinputpartial: Handler<AppEventMap["toolinputpartial"]>;
  declare ontoolresult: Handler<AppEventMap["toolresult"]>;
  declare ontoolcancelled: Handler<AppEventMap["toolcancelled"]>;
  declare onhostcontextchanged: Handler<AppEventMap["hostcontextchanged"]>;
  declare onteardown: ((params: { reason?: string }, extra: ToolExtra) => unknown) | undefined;
  /** Gets what is reported nowhere else; the console does, unless this is set. */
  declare onerror: ((error: any) => unknown) | undefined;
  declare onclose: (() => unknown) | undefined;

  #info!: Implementation;
  #capabilities!: McpUiAppCapabilities;
  #options!: AppOptions;
  readonly #listeners = new Map([...EVENTS.values()].map((event) => [event, new Set<Listener>()]));
  readonly #reporter = makeReporter(() => this.onerror);
  readonly #peer = makePeer(this.#reporter, {
    _onRequest: (method, params, served) => this.#onRequest(method, params, served),
    _onNotification: (method, params) => this.#onNotification(method, params),
  });
  readonly #tasks = makeTasks(this.#peer);
  readonly #tools = makeToolService(this.#peer, this.#tasks, this.#reporter, {
    _canNotify: () => this.#canNotifyListChanged(),
    _toJSONSchema: () => this.#options.toJSONSchema,
  });
  #declared: McpUiAppCapabilities | undefined; // since connect() was called
  #host: Host | undefined; // since it has answered
  #isReady = false; // since the handshake is complete
  #style: HostStyle | undefined; // gives the page the look of the host
  #sizeObserver: ResizeObserver | undefined;

  constructor(
    info: Implementation,
    capabilities: McpUiAppCapabilities = {},
    options: AppOptions = {},
  ) {
    // A page that used tools before it made an App was given one, which this one then is.
    return (App._automatic ?? this).become(info, capabilities, options);
  }

  /** Take a name and options; those of the App that a page makes after all replace earlier ones. @internal */
  become(info: Implementation, capabilities: McpUiAppCapabilities, options: AppOptions): this {
    void this.close();
    this.#info = info;
    this.#capabilities = capabilities;
    this.#options = options;
    App._automatic = undefined;
    App._current = this;
    return this;
  }

  // --- the connection ---------------------------------------------------------------------------

  /** Shake hands with the host. Set handlers and register tools first. */
  async connect(_transport?: unknown, requestOptions?: RequestOptions): Promise<void> {
    must(!this.#declared, "App is already connected");
    const declared = {
      // With WebMCP tools may come at any time.
      ...(this.#tools._isUsed() || hooks._makeApp ? { tools: { listChanged: true } } : {}),
      ...this.#capabilities,
    };
    this.#declared = declared;
    this.#peer._open();
    try {
      this.#host = await this.#shakeHands(declared, requestOptions);
      this.#peer._notify("ui/notifications/initialized");
    } catch (error) {
      if (this.#declared === declared) void this.close(); // else there is another connection by now
      throw error;
    }
    this.#isReady = true;
    if (this.#hostOffers("problems")) {
      sendProblems((params) => this.#peer._notify("transom/notifications/problem", params));
    }
    this.#applyStyle();
    if (this.#options.autoResize ?? true) {
      this.#sizeObserver = watchSize((size) => {
        if (this.#isReady) void this.sendSizeChanged(size);
      });
    }
  }

  async #shakeHands(
    appCapabilities: McpUiAppCapabilities,
    requestOptions?: RequestOptions,
  ): Promise<Host> {
    const appInfo = this.#info;
    const params = { appInfo, appCapabilities, protocolVersion: PROTOCOL_VERSION };
    const found = await this.#peer._request("ui/initialize", params, requestOptions);
    const { hostInfo, hostCapabilities, hostContext = {} } = found;
    must([hostInfo, hostCapabilities, hostContext].every(isObject), "Invalid ui/initialize");
    return {
      _info: hostInfo,
      _capabilities: hostCapabilities,
      _context: hostContext,
    } as unknown as Host;
  }

  /** End the connection. Calls that run are cancelled. Tools and handlers stay. */
  async close(): Promise<void> {
    if (!this.#declared) return;
    this.#peer._close();
    this.#tasks._clear();
    this.#sizeObserver?.disconnect();
    sendProblems(undefined);
    this.#declared = this.#host = undefined;
    this.#isReady = false;
    void this.#reporter._run(this.onclose);
  }

  getHostContext(): McpUiHostContext | undefined {
    return this.#host?._context;
  }

  getHostCapabilities(): McpUiHostCapabilities | undefined {
    return this.#host?._capabilities;
  }

  getHostVersion(): Implementation | undefined {
    return this.#host?._info;
  }

  /** Whether the host announced one of Transom's extensions. */
  #hostOffers(extension: "pin" | "problems"): boolean {
    return Boolean(this.#host?._capabilities.experimental?.[`transom/${extension}`]);
  }

  // --- events -----------------------------------------------------------------------------------

  addEventListener<Name extends keyof AppEventMap>(
    event: Name,
    handler: (params: AppEventMap[Name]) => unknown,
  ): void {
    const listeners = this.#listeners.get(event);
    must(listeners, `Unknown event: ${event}`);
    listeners.add(handler as Listener);
  }

  removeEventListener<Name extends keyof AppEventMap>(
    event: Name,
    handler: (params: AppEventMap[Name]) => unknown,
  ): void {
    this.#listeners.get(event)?.delete(handler as Listener);
  }

  #onNotification(method: string, params: JsonObject): void {
    const event = EVENTS.get(method);
    if (event === "hostcontextchanged") this.#mergeHostContext(params);
    if (event === "toolresult") params.content ??= [];
    if (!event) return;
    for (const handler of [this[`on${event}`] as Listener, ...this.#listeners.get(event)!]) {
      void this.#reporter._run(handler, params);
    }
  }

  #mergeHostContext(changes: JsonObject): void {
    if (!this.#host) return;
    const all = entries({ ...this.#host._context, ...changes });
    this.#host._context = fromEntries(all.filter(([, value]) => value !== null));
    this.#applyStyle();
  }

  /** Let the page have the host's theme and style variables, from now on. */
  followHostStyle(): void {
    this.#style ??= makeHostStyle();
    this.#applyStyle();
  }

  #applyStyle(): void {
    if (this.#host) this.#style?.(this.#host._context);
  }

  // --- tools ------------------------------------------------------------------------------------

  /** Every registered tool, disabled ones too. */
  get tools(): RegisteredAppTool[] {
    return [...this.#tools._tools];
  }

  /** Set before `connect`, or with the `tools` capability declared. Bare names are tools too. */
  get onlisttools(): ListHandler | undefined {
    return this.#tools._handlers._onList;
  }

  set onlisttools(handler: ListHandler | undefined) {
    if (handler) this.#mustOfferTools("onlisttools was set");
    this.#tools._handlers._onList = handler;
  }

  get oncalltool(): CallHandler | undefined {
    return this.#tools._handlers._onCall;
  }

  set oncalltool(handler: CallHandler | undefined) {
    if (handler) this.#mustOfferTools("oncalltool was set");
    this.#tools._handlers._onCall = handler;
  }

  /**
   * Offer a tool to the host; its handle. The callback gets `(args, extra)`, or `(extra)` if there
   * is no inputSchema; then the arguments are `extra.arguments`.
   */
  registerTool<
    const In extends Schema | LazySchema | undefined = undefined,
    const Out extends Schema | undefined = undefined,
  >(
    name: string,
    config: ToolConfig<In, Out>,
    callback: AppToolCallback<In, Out>,
  ): RegisteredAppTool {
    this.#mustOfferTools(`Tool ${name} was registered`);
    return this.#tools._register(name, config, callback as (...given: unknown[]) => unknown);
  }

  /** Change a tool by name, as WebMCP does. */
  updateTool(
    name: string,
    changes: { disabled?: boolean; description?: string; inputSchema?: Schema | LazySchema },
  ): void {
    const tool = this.#tools._find(name);
    must(tool, `Tool ${name} is not registered`);
    const { disabled, ...others } = changes;
    for (const key of keys(others)) {
      if (key !== "description" && key !== "inputSchema") {
        throw new TypeError(`updateTool cannot change ${key}: use update() of the handle`);
      }
    }
    const switched = disabled === tool.enabled ? { enabled: !disabled, reason: undefined } : {};
    tool.update({ ...others, ...switched });
  }

  /**
   * Tell the host that the tools have changed, now. Counts for all changes of this turn. A host that
   * announces `tools` without `listChanged` is not notified.
   */
  async sendToolListChanged(): Promise<void> {
    must(this.#isReady && this.#declared?.tools?.listChanged, "Not connected or not declared");
    this.#tools._notify();
  }

  /** Check that tools can still be registered. */
  #mustOfferTools(what: string): void {
    must(
      !this.#declared || this.#declared.tools,
      `${what} after connect() without the capability tools: do so before, or declare it`,
    );
  }

  /** Whether both sides declared notifications of changed tools. */
  #canNotifyListChanged(): boolean {
    const { appTools, tools = appTools } = this.#host?._capabilities ?? {};
    const declared = this.#isReady && this.#declared?.tools?.listChanged;
    return Boolean(declared && (!tools || tools.listChanged));
  }

  // --- what the host asks -----------------------------------------------------------------------

  async #onRequest(method: string, params: JsonObject, served: Served): Promise<unknown> {
    const { _extra: extra } = served;
    if (method === "ping") return {};
    if (method === "ui/resource-teardown") {
      return Object(await this.#reporter._run(this.onteardown, params, extra));
    }
    if (this.#declared?.tools) {
      switch (method) {
        case "tools/list":
          return this.#tools._list(params.cursor, extra);
        case "tools/call":
          return this.#tools._call(params, served);
        case "tasks/list":
          return this.#tasks._list(params.cursor);
        case "tasks/get":
        case "tasks/result":
        case "tasks/cancel":
          return this.#tasks._answer(method, params.taskId, extra.signal);
      }
    }
    throw new ProtocolError(ErrorCode.MethodNotFound, "Method not found");
  }

  // --- what a View asks its host ----------------------------------------------------------------

  async callServerTool(
    params: { name: string; arguments?: Record<string, unknown>; _meta?: object },
    options?: RequestOptions,
  ): Promise<CallToolResult & { content: ContentBlock[]; structuredContent?: any }> {
    // A call of which the host tells progress may take longer than others.
    return this.#ask("tools/call", params, { onprogress: () => undefined, ...options });
  }

  /**
   * Call a tool of the server as a task; the server's handle. A tool with `returnsTask` that returns
   * it hands the work on: the host can follow it there, also when this View is gone.
   */
  async startServerTask(
    params: { name: string; arguments?: Record<string, unknown> },
    { ttl, ...options }: RequestOptions & { ttl?: number } = {},
  ): Promise<Task> {
    const asked: typeof params & { task: object } = { ...params, task: { ttl } };
    const { task } = (await this.callServerTool(asked, options)) as { task?: Task };
    must(isString(task?.taskId), `${params.name} started no task`);
    this.#tasks._addHandle(task);
    return task;
  }

  async listServerTools(
    params?: { cursor?: string },
    options?: RequestOptions,
  ): Promise<{ tools: Tool[]; nextCursor?: string }> {
    return this.#ask("tools/list", params, options);
  }

  async readServerResource(
    params: { uri: string },
    options?: RequestOptions,
  ): Promise<{ contents: { uri: string; mimeType?: string; text?: string; blob?: string }[] }> {
    return this.#ask("resources/read", params, options);
  }

  async listServerResources(
    params?: { cursor?: string },
    options?: RequestOptions,
  ): Promise<{ resources: { uri: string; name: string }[]; nextCursor?: string }> {
    return this.#ask("resources/list", params, options);
  }

  async createSamplingMessage(
    params: { messages: object[]; maxTokens: number; [key: string]: unknown },
    options?: RequestOptions,
  ): Promise<any> {
    const sampling = this.#host?._capabilities.sampling;
    must(sampling && (!params.tools || sampling.tools), "Not offered");
    return this.#ask("sampling/createMessage", params, options);
  }

  async sendMessage(
    params: { role: "user"; content: ContentBlock[] },
    options?: RequestOptions,
  ): Promise<Verdict> {
    return this.#askForVerdict("ui/message", params, options);
  }

  async updateModelContext(
    params: { content?: ContentBlock[]; structuredContent?: Record<string, unknown> },
    options?: RequestOptions,
  ): Promise<Verdict> {
    return this.#askForVerdict("ui/update-model-context", params, options);
  }

  async openLink(params: { url: string }, options?: RequestOptions): Promise<Verdict> {
    return this.#askForVerdict("ui/open-link", params, options);
  }

  async downloadFile(
    params: { contents: (EmbeddedResource | ResourceLink)[] },
    options?: RequestOptions,
  ): Promise<Verdict> {
    return this.#askForVerdict("ui/download-file", params, options);
  }

  async requestDisplayMode(
    params: { mode: McpUiDisplayMode },
    options?: RequestOptions,
  ): Promise<{ mode: McpUiDisplayMode }> {
    const modes = this.#host?._context.availableDisplayModes;
    must(!modes || modes.includes(params.mode), "Not offered");
    return this.#ask("ui/request-display-mode", params, options);
  }

  /** Ask the host to keep this View open; whether it does. No is a normal answer. */
  async requestPin(reason?: string): Promise<boolean> {
    if (!this.#hostOffers("pin")) return false;
    const answer = this.#ask<Verdict>("transom/request-pin", { reason });
    return answer.then(
      ({ isError }) => !isError,
      () => false,
    );
  }

  async sendLog(params: { level: string; data: unknown; logger?: string }): Promise<void> {
    this.#peer._notify("notifications/message", params);
  }

  async sendSizeChanged(params: { width?: number; height?: number }): Promise<void> {
    this.#peer._notify("ui/notifications/size-changed", params);
  }

  /** Ask to be closed. */
  async requestTeardown(): Promise<void> {
    this.#peer._notify("ui/notifications/request-teardown", {});
  }

  #ask<Result>(method: string, params: object = {}, options?: RequestOptions): Promise<Result> {
    return this.#peer._request(method, params as JsonObject, options) as Promise<Result>;
  }

  /** Hosts refuse in two forms; a page always gets the same one. */
  #askForVerdict(method: string, params: object, options?: RequestOptions): Promise<Verdict> {
    return this.#ask<Verdict>(method, params, options).catch((error: unknown) => {
      const { code } = error as Partial<ProtocolError>;
      if (code !== (ErrorCode.Refused as number)) throw error;
      // eslint-disable-next-line @typescript-eslint/no-misused-spread -- its fields are the verdict
      return { isError: true, ...(error as ProtocolError) };
    });
  }
}
