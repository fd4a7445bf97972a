import type { AppEventMap, AppOptions, AppToolCallback, CallHandler, CallToolResult, ContentBlock, EmbeddedResource, Handler, Implementation, LazySchema, ListHandler, McpUiAppCapabilities, McpUiDisplayMode, McpUiHostCapabilities, McpUiHostContext, RegisteredAppTool, RequestOptions, ResourceLink, Schema, Task, Tool, ToolConfig, ToolExtra, Verdict } from "./types.js";
/**
 * `capabilities` are declared besides the tools that there are. The handlers of events, `ontoolinput`
 * and so on, can also be added with `addEventListener`.
 */
export declare class App {
    #private;
    ontoolinput: Handler<AppEventMap["toolinput"]>;
    ontoolinputpartial: Handler<AppEventMap["toolinputpartial"]>;
    ontoolresult: Handler<AppEventMap["toolresult"]>;
    ontoolcancelled: Handler<AppEventMap["toolcancelled"]>;
    onhostcontextchanged: Handler<AppEventMap["hostcontextchanged"]>;
    onteardown: ((params: {
        reason?: string;
    }, extra: ToolExtra) => unknown) | undefined;
    /** Gets what is reported nowhere else; the console does, unless this is set. */
    onerror: ((error: any) => unknown) | undefined;
    onclose: (() => unknown) | undefined;
    constructor(info: Implementation, capabilities?: McpUiAppCapabilities, options?: AppOptions);
    /** Shake hands with the host. Set handlers and register tools first. */
    connect(_transport?: unknown, requestOptions?: RequestOptions): Promise<void>;
    /** End the connection. Calls that run are cancelled. Tools and handlers stay. */
    close(): Promise<void>;
    getHostContext(): McpUiHostContext | undefined;
    getHostCapabilities(): McpUiHostCapabilities | undefined;
    getHostVersion(): Implementation | undefined;
    addEventListener<Name extends keyof AppEventMap>(event: Name, handler: (params: AppEventMap[Name]) => unknown): void;
    removeEventListener<Name extends keyof AppEventMap>(event: Name, handler: (params: AppEventMap[Name]) => unknown): void;
    /** Let the page have the host's theme and style variables, from now on. */
    followHostStyle(): void;
    /** Every registered tool, disabled ones too. */
    get tools(): RegisteredAppTool[];
    /** Set before `connect`, or with the `tools` capability declared. Bare names are tools too. */
    get onlisttools(): ListHandler | undefined;
    set onlisttools(handler: ListHandler | undefined);
    get oncalltool(): CallHandler | undefined;
    set oncalltool(handler: CallHandler | undefined);
    /**
     * Offer a tool to the host; its handle. The callback gets `(args, extra)`, or `(extra)` if there
     * is no inputSchema; then the arguments are `extra.arguments`.
     */
    registerTool<const In extends Schema | LazySchema | undefined = undefined, const Out extends Schema | undefined = undefined>(name: string, config: ToolConfig<In, Out>, callback: AppToolCallback<In, Out>): RegisteredAppTool;
    /** Change a tool by name, as WebMCP does. */
    updateTool(name: string, changes: {
        disabled?: boolean;
        description?: string;
        inputSchema?: Schema | LazySchema;
    }): void;
    /**
     * Tell the host that the tools have changed, now. Counts for all changes of this turn. A host that
     * announces `tools` without `listChanged` is not notified.
     */
    sendToolListChanged(): Promise<void>;
    callServerTool(params: {
        name: string;
        arguments?: Record<string, unknown>;
        _meta?: object;
    }, options?: RequestOptions): Promise<CallToolResult & {
        content: ContentBlock[];
        structuredContent?: any;
    }>;
    /**
     * Call a tool of the server as a task; the server's handle. A tool with `returnsTask` that returns
     * it hands the work on: the host can follow it there, also when this View is gone.
     */
    startServerTask(params: {
        name: string;
        arguments?: Record<string, unknown>;
    }, { ttl, ...options }?: RequestOptions & {
        ttl?: number;
    }): Promise<Task>;
    listServerTools(params?: {
        cursor?: string;
    }, options?: RequestOptions): Promise<{
        tools: Tool[];
        nextCursor?: string;
    }>;
    readServerResource(params: {
        uri: string;
    }, options?: RequestOptions): Promise<{
        contents: {
            uri: string;
            mimeType?: string;
            text?: string;
            blob?: string;
        }[];
    }>;
    listServerResources(params?: {
        cursor?: string;
    }, options?: RequestOptions): Promise<{
        resources: {
            uri: string;
            name: string;
        }[];
        nextCursor?: string;
    }>;
    createSamplingMessage(params: {
        messages: object[];
        maxTokens: number;
        [key: string]: unknown;
    }, options?: RequestOptions): Promise<any>;
    sendMessage(params: {
        role: "user";
        content: ContentBlock[];
    }, options?: RequestOptions): Promise<Verdict>;
    updateModelContext(params: {
        content?: ContentBlock[];
        structuredContent?: Record<string, unknown>;
    }, options?: RequestOptions): Promise<Verdict>;
    openLink(params: {
        url: string;
    }, options?: RequestOptions): Promise<Verdict>;
    downloadFile(params: {
        contents: (EmbeddedResource | ResourceLink)[];
    }, options?: RequestOptions): Promise<Verdict>;
    requestDisplayMode(params: {
        mode: McpUiDisplayMode;
    }, options?: RequestOptions): Promise<{
        mode: McpUiDisplayMode;
    }>;
    /** Ask the host to keep this View open; whether it does. No is a normal answer. */
    requestPin(reason?: string): Promise<boolean>;
    sendLog(params: {
        level: string;
        data: unknown;
        logger?: string;
    }): Promise<void>;
    sendSizeChanged(params: {
        width?: number;
        height?: number;
    }): Promise<void>;
    /** Ask to be closed. */
    requestTeardown(): Promise<void>;
}
