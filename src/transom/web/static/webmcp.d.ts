import { type LazySchema, type RegisteredAppTool, type Schema, type ToolConfig, type ToolExtra } from "./transom.js";
export interface ModelContextTool extends Omit<ToolConfig, "enabled" | "reason" | "returnsTask" | "execution"> {
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
    registerTool(tool: ModelContextTool, options?: {
        signal?: AbortSignal;
        exposedTo?: readonly string[];
    }): Promise<void>;
    unregisterTool(name: string): Promise<void>;
    updateTool(name: string, changes: {
        disabled?: boolean;
        description?: string;
        inputSchema?: Schema | LazySchema;
    }): Promise<void>;
    /** Every tool of the page's App, disabled ones too. */
    readonly tools: RegisteredAppTool[];
    /** The tools that a model may see now. */
    getTools(): Promise<ListedModelContextTool[]>;
    /** Call one of them; the JSON of its result. */
    executeTool(tool: Pick<ListedModelContextTool, "name">, input?: object | string, options?: {
        signal?: AbortSignal;
    }): Promise<string | null>;
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
