/** The types of what a View and its host exchange. Names are those of ext-apps where it has them. */
import type { StandardSchemaV1 } from "./standard_schema.js";

/** A JSON Schema, 2020-12. */
export type JsonSchema = Readonly<Record<string, unknown>>;

export type Schema = StandardSchemaV1 | JsonSchema;

/** A schema that follows the state of the page: asked at every listing and every call. */
export type LazySchema = () => Schema;

/** Makes a JSON Schema of a Standard Schema: `z.toJSONSchema`, Valibot's `toJsonSchema`. */
export type ToJsonSchema = (
  schema: any,
  options: { target: "draft-2020-12"; io: "input" | "output"; typeMode: "input" | "output" },
) => object;

export type Arguments<In> = In extends StandardSchemaV1
  ? StandardSchemaV1.InferOutput<In>
  : In extends () => infer Made
    ? Arguments<Made>
    : In extends { properties: object }
      ? FromObject<In, RequiredOf<In> | WithDefault<In["properties"]>>
      : Record<string, any>;

/**
 * The values that a JSON Schema allows, as far as its types say: the schema stands where the tool is
 * registered, or was made `as const`. What is not understood, such as `$ref`, is `any`.
 */
export type FromSchema<S> = S extends { const: infer Value }
  ? Value
  : S extends { enum: readonly (infer Value)[] }
    ? Value
    : S extends { anyOf: readonly (infer Each)[] } | { oneOf: readonly (infer Each)[] }
      ? FromSchema<Each>
      : S extends { type: infer Type }
        ? FromType<Type, S>
        : any;

type FromType<Type, S> = Type extends readonly (infer Each)[]
  ? FromType<Each, S>
  : Type extends "object"
    ? S extends { properties: object }
      ? FromObject<S>
      : Record<string, any>
    : Type extends "array"
      ? S extends { items: infer Item }
        ? FromSchema<Item>[]
        : any[]
      : Type extends keyof Plain
        ? Plain[Type]
        : any;

interface Plain {
  string: string;
  number: number;
  integer: number;
  boolean: boolean;
  null: null;
}

type FromObject<S extends { properties: object }, Present = RequiredOf<S>> = {
  -readonly [K in keyof S["properties"] as K extends Present ? K : never]: FromSchema<
    S["properties"][K]
  >;
} & {
  -readonly [K in keyof S["properties"] as K extends Present ? never : K]?: FromSchema<
    S["properties"][K]
  >;
};

type RequiredOf<S> = S extends { required: readonly (infer Key)[] } ? Key : never;

type WithDefault<Properties> = {
  [K in keyof Properties]: Properties[K] extends Readonly<Record<"default", unknown>> ? K : never;
}[keyof Properties];

// --- results ------------------------------------------------------------------------------------

export interface Annotated {
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
  TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink;

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
  ? | (CallToolResult & {
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
  /** WebMCP: what the tool returns comes from others, whom the page does not vouch for. */
  untrustedContentHint?: boolean;
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

/**
 * A tool that was registered. What its handle says now is what hosts see and what calls are checked
 * against. Setting a field is an update with it. Once the tool is removed, its handle does nothing
 * and tells nobody.
 */
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

export type Handler<Params> = ((params: Params) => unknown) | undefined;

/** A tool as `onlisttools` describes it: a name alone, or what is to be listed. */
export type DescribedTool =
  | string
  | (Omit<Tool, "inputSchema" | "outputSchema"> & {
      inputSchema?: JsonSchema;
      outputSchema?: JsonSchema;
    });

/** What `onlisttools` returns. */
export type ListedTools = DescribedTool[] | { tools: DescribedTool[]; nextCursor?: string };

export type ListHandler = (
  params: { cursor?: string },
  extra: ToolExtra,
) => ListedTools | Promise<ListedTools>;

export type CallHandler = (
  params: { name: string; arguments: Record<string, any>; _meta?: object },
  extra: ToolExtra,
) => unknown;
