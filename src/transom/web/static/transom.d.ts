/** Types of `transom.js`. Names are those of `@modelcontextprotocol/ext-apps` where it has them. */

// --- schemas ------------------------------------------------------------------------------------

/** A schema of zod, Valibot, ArkType or another library: https://standardschema.dev */
export interface StandardSchemaV1<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) =>
      | StandardSchemaV1.Result<Output>
      | Promise<StandardSchemaV1.Result<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export namespace StandardSchemaV1 {
  type Result<Output> =
    | { readonly value: Output; readonly issues?: undefined }
    | { readonly issues: readonly Issue[] };
  interface Issue {
    readonly message: string;
    readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
  }
  type InferInput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["input"];
  type InferOutput<S extends StandardSchemaV1> = NonNullable<S["~standard"]["types"]>["output"];
}

/** A JSON Schema, 2020-12. */
export type JsonSchema = { readonly [word: string]: unknown };

export type Schema = StandardSchemaV1 | JsonSchema;

/** A schema that follows the state of the page: asked at every listing and every call. */
export type LazySchema = () => Schema;

/** Makes a JSON Schema of a Standard Schema: `z.toJSONSchema`, Valibot's `toJsonSchema`. */
export type ToJsonSchema = (
  schema: any,
  options: { target: "draft-2020-12"; io: "input" | "output"; typeMode: "input" | "output" },
) => object;

type Arguments<In> = In extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<In>
  : In extends () => infer Made
    ? Arguments<Made>
    : Record<string, any>;

// --- results ------------------------------------------------------------------------------------

interface Annotated {
  annotations?: { audience?: ("user" | "assistant")[]; priority?: number; lastModified?: string };
  _meta?: Record<string, unknown>;
}
export interface TextContent extends Annotated {
  type: "text";
  text: string;
}
export interface ImageContent extends Annotated {
  type: "image";
  data: string;
  mimeType: string;
}
export interface AudioContent extends Annotated {
  type: "audio";
  data: string;
  mimeType: string;
}
export interface EmbeddedResource extends Annotated {
  type: "resource";
  resource: { uri: string; mimeType?: string; text?: string; blob?: string };
}
export interface ResourceLink extends Annotated {
  type: "resource_link";
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}
export type ContentBlock =
  | TextContent
  | ImageContent
  | AudioContent
  | EmbeddedResource
  | ResourceLink;

export interface CallToolResult {
  content?: ContentBlock[];
  structuredContent?: Record<string, unknown>;
  isError?: boolean;
  _meta?: Record<string, unknown>;
}

/** The server's handle on work that goes on there. */
export interface Task {
  taskId: string;
  status: "working" | "input_required" | "completed" | "failed" | "cancelled";
  statusMessage?: string;
  createdAt?: string;
  lastUpdatedAt?: string;
  ttl?: number | null;
  pollInterval?: number;
}

/**
 * What a callback may return. With an `outputSchema`, what fits it, alone or as
 * `structuredContent`, or an error.
 */
export type AppToolResult<Out = undefined> = Out extends StandardSchemaV1
  ?
      | (CallToolResult & {
          structuredContent: StandardSchemaV1.InferOutput<Out>;
          isError?: false;
        })
      | (CallToolResult & { isError: true })
      | StandardSchemaV1.InferOutput<Out>
      | Task
  : unknown;

// --- tools --------------------------------------------------------------------------------------

export interface ToolAnnotations {
  title?: string;
  readOnlyHint?: boolean;
  destructiveHint?: boolean;
  idempotentHint?: boolean;
  openWorldHint?: boolean;
}

export interface ToolMeta {
  ui?: { visibility?: ("model" | "app")[]; [key: string]: unknown };
  [key: string]: unknown;
}

/** What a tool is, besides its name and what it does. */
export interface ToolConfig<
  In extends Schema | LazySchema | undefined = Schema | LazySchema | undefined,
  Out extends Schema | undefined = Schema | undefined,
> {
  title?: string;
  description?: string;
  inputSchema?: In;
  outputSchema?: Out;
  annotations?: ToolAnnotations;
  _meta?: ToolMeta;
  /** Whether the tool may, or must, run as a task. */
  execution?: { taskSupport?: "forbidden" | "optional" | "required" };
  /** The callback returns what `startServerTask` gave; a host that asks for a task gets that. */
  returnsTask?: boolean;
  /** For an `inputSchema` of a library that does not say its JSON Schema. */
  jsonSchema?: JsonSchema;
  /** The same, for `inputSchema` and `outputSchema`. */
  toJSONSchema?: ToJsonSchema;
  enabled?: boolean;
  /** Why it is not enabled. */
  reason?: string;
}

/** What a callback may use while it runs. */
export interface ToolExtra {
  /** The host has cancelled the call, or the App closes. */
  readonly signal: AbortSignal;
  /** The arguments, checked and with defaults. */
  readonly arguments: Record<string, any>;
  readonly mcpReq: {
    readonly id: string | number;
    readonly method: string;
    readonly _meta: Record<string, unknown>;
    readonly signal: AbortSignal;
    notify(notification: { method: string; params?: object }): Promise<void>;
  };
  /** Tell a host that asked how far the work is. */
  sendProgress(progress: number, total?: number, message?: string): Promise<void>;
}

/** Called with `(args, extra)`, or with `(extra)` if the tool has no `inputSchema`. */
export type AppToolCallback<In = undefined, Out = undefined> = [In] extends [undefined]
  ? (extra: ToolExtra) => AppToolResult<Out> | Promise<AppToolResult<Out>>
  : (args: Arguments<In>, extra: ToolExtra) => AppToolResult<Out> | Promise<AppToolResult<Out>>;

/** A tool that was registered. Setting a field is an update with it. */
export interface RegisteredAppTool extends ToolConfig {
  name: string;
  enabled: boolean;
  /** What is wrong with its lazy schema now. */
  readonly error?: unknown;
  /** Tells this tool from an earlier one of the same name. */
  readonly registration: number;
  enable(): void;
  /** Hide it from hosts and refuse calls, saying why. It stays registered. */
  disable(reason?: string): void;
  /** Change what is given; undefined takes a field away. An error changes nothing. */
  update(changes: ToolConfig & { name?: string }): void;
  remove(): void;
}

/** A tool in a list. */
export interface Tool {
  name: string;
  title?: string;
  description?: string;
  inputSchema: { type: "object"; [word: string]: unknown };
  outputSchema?: { type: "object"; [word: string]: unknown };
  annotations?: ToolAnnotations;
  _meta?: ToolMeta;
}

// --- the host -----------------------------------------------------------------------------------

export interface Implementation {
  name: string;
  version: string;
  title?: string;
}

export type McpUiTheme = "light" | "dark";
export type McpUiDisplayMode = "inline" | "fullscreen" | "pip";

export interface McpUiAppCapabilities {
  tools?: { listChanged?: boolean };
  availableDisplayModes?: McpUiDisplayMode[];
  experimental?: Record<string, object>;
  [key: string]: unknown;
}

export interface McpUiHostCapabilities {
  serverTools?: { listChanged?: boolean };
  serverResources?: { listChanged?: boolean };
  tools?: { listChanged?: boolean };
  sampling?: { tools?: object; [key: string]: unknown };
  openLinks?: object;
  logging?: object;
  experimental?: Record<string, object>;
  [key: string]: unknown;
}

export interface McpUiHostContext {
  toolInfo?: { id?: string | number; tool: Tool };
  theme?: McpUiTheme;
  styles?: { variables?: Record<string, string | undefined>; css?: { fonts?: string } };
  displayMode?: McpUiDisplayMode;
  availableDisplayModes?: McpUiDisplayMode[];
  containerDimensions?: Record<string, number>;
  locale?: string;
  timeZone?: string;
  userAgent?: string;
  platform?: "web" | "desktop" | "mobile";
  deviceCapabilities?: { touch?: boolean; hover?: boolean };
  safeAreaInsets?: { top: number; right: number; bottom: number; left: number };
  [key: string]: unknown;
}

/** What the host sends by itself. */
export interface AppEventMap {
  toolinput: { arguments?: Record<string, any> };
  toolinputpartial: { arguments?: Record<string, any> };
  toolresult: CallToolResult & { content: ContentBlock[]; structuredContent?: any };
  toolcancelled: { reason?: string };
  hostcontextchanged: McpUiHostContext;
}

export interface RequestOptions {
  /** Milliseconds without an answer or a notice of progress; 60,000 unless given. */
  timeout?: number;
  signal?: AbortSignal;
  onprogress?: (progress: { progress: number; total?: number; message?: string }) => void;
}

/** Whether the host did it. */
export interface Verdict {
  isError?: boolean;
  message?: string;
  [key: string]: unknown;
}

export interface AppOptions {
  /** Report the size of the content; true unless given. */
  autoResize?: boolean;
  /** Makes a JSON Schema of the Standard Schemas that cannot do so themselves. */
  toJSONSchema?: ToJsonSchema;
}

type Handler<Params> = ((params: Params) => unknown) | undefined;

/** A View's end of the conversation with its host. */
export class App {
  constructor(info: Implementation, capabilities?: McpUiAppCapabilities, options?: AppOptions);

  ontoolinput: Handler<AppEventMap["toolinput"]>;
  ontoolinputpartial: Handler<AppEventMap["toolinputpartial"]>;
  ontoolresult: Handler<AppEventMap["toolresult"]>;
  ontoolcancelled: Handler<AppEventMap["toolcancelled"]>;
  onhostcontextchanged: Handler<AppEventMap["hostcontextchanged"]>;
  /** Set before `connect`, or with the `tools` capability declared. Bare names are tools too. */
  onlisttools:
    | ((
        params: { cursor?: string },
        extra: ToolExtra,
      ) => ListedTools | Promise<ListedTools>)
    | undefined;
  oncalltool:
    | ((
        params: { name: string; arguments: Record<string, any>; _meta?: object },
        extra: ToolExtra,
      ) => unknown)
    | undefined;
  onteardown: Handler<{ reason?: string }>;
  /** Told what nobody else hears of; the console is, unless this is set. */
  onerror: ((error: any) => unknown) | undefined;
  onclose: (() => unknown) | undefined;

  addEventListener<Name extends keyof AppEventMap>(
    event: Name,
    handler: (params: AppEventMap[Name]) => unknown,
  ): void;
  removeEventListener<Name extends keyof AppEventMap>(
    event: Name,
    handler: (params: AppEventMap[Name]) => unknown,
  ): void;

  /** Every registered tool, disabled ones too. */
  readonly tools: RegisteredAppTool[];

  /** Offer a tool to the host. */
  registerTool<
    const In extends Schema | LazySchema | undefined = undefined,
    const Out extends Schema | undefined = undefined,
  >(
    name: string,
    config: ToolConfig<In, Out>,
    callback: AppToolCallback<In, Out>,
  ): RegisteredAppTool;

  /** Change a tool by name, as WebMCP does. */
  updateTool(
    name: string,
    changes: { disabled?: boolean; description?: string; inputSchema?: Schema | LazySchema },
  ): void;

  /** Tell the host that the tools have changed, now. */
  sendToolListChanged(): Promise<void>;

  /** Shake hands with the host. Set handlers and register tools first. */
  connect(transport?: unknown, options?: RequestOptions): Promise<void>;
  /** End the connection. Calls that run are cancelled. Tools and handlers stay. */
  close(): Promise<void>;

  getHostContext(): McpUiHostContext | undefined;
  getHostCapabilities(): McpUiHostCapabilities | undefined;
  getHostVersion(): Implementation | undefined;

  callServerTool(
    params: { name: string; arguments?: Record<string, unknown>; _meta?: object },
    options?: RequestOptions,
  ): Promise<CallToolResult & { content: ContentBlock[]; structuredContent?: any }>;
  /** Call a tool of the server as a task; the server's handle. */
  startServerTask(
    params: { name: string; arguments?: Record<string, unknown> },
    options?: RequestOptions & { ttl?: number },
  ): Promise<Task>;
  listServerTools(
    params?: { cursor?: string },
    options?: RequestOptions,
  ): Promise<{ tools: Tool[]; nextCursor?: string }>;
  readServerResource(
    params: { uri: string },
    options?: RequestOptions,
  ): Promise<{ contents: { uri: string; mimeType?: string; text?: string; blob?: string }[] }>;
  listServerResources(
    params?: { cursor?: string },
    options?: RequestOptions,
  ): Promise<{ resources: { uri: string; name: string }[]; nextCursor?: string }>;
  createSamplingMessage(
    params: { messages: object[]; maxTokens: number; [key: string]: unknown },
    options?: RequestOptions,
  ): Promise<any>;
  sendMessage(
    params: { role: "user"; content: ContentBlock[] },
    options?: RequestOptions,
  ): Promise<Verdict>;
  updateModelContext(
    params: { content?: ContentBlock[]; structuredContent?: Record<string, unknown> },
    options?: RequestOptions,
  ): Promise<Verdict>;
  openLink(params: { url: string }, options?: RequestOptions): Promise<Verdict>;
  downloadFile(
    params: { contents: (EmbeddedResource | ResourceLink)[] },
    options?: RequestOptions,
  ): Promise<Verdict>;
  requestDisplayMode(
    params: { mode: McpUiDisplayMode },
    options?: RequestOptions,
  ): Promise<{ mode: McpUiDisplayMode }>;
  /** Ask the host to keep this View open; whether it does. No is a normal answer. */
  requestPin(reason?: string): Promise<boolean>;
  /** Let the page have the host's theme and style variables, from now on. */
  followHostStyle(): void;

  sendLog(params: { level: string; data: unknown; logger?: string }): Promise<void>;
  sendSizeChanged(params: { width?: number; height?: number }): Promise<void>;
  /** Ask to be closed. */
  requestTeardown(): Promise<void>;
}

type ListedTools = (Tool | string)[] | { tools: (Tool | string)[]; nextCursor?: string };

/** A tool cannot do what it was asked. The text becomes a result that the model can read. */
export class ToolError extends Error {}

/** A JSON-RPC error: throw it to answer with it, catch it when the host answered with it. */
export class ProtocolError extends Error {
  constructor(code: number, message: string, data?: unknown);
  code: number;
  data?: unknown;
}
