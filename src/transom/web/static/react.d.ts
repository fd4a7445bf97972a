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
import { type ReactNode } from "react";
import { App, type AppOptions, type AppToolCallback, type Implementation, type LazySchema, type McpUiAppCapabilities, type McpUiHostContext, type McpUiTheme, type Schema, type Tool, type ToolConfig, type ToolExtra } from "./transom.js";
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
    onCallTool(params: {
        name: string;
        arguments: Record<string, any>;
    }, extra: ToolExtra): unknown;
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
/** Make and connect the page's App, as in ext-apps. Options are read once. */
export declare function useApp(options: UseAppOptions): AppState;
/** The page's App once it is connected, as in sunpeak. */
export declare function useApp(): App | null;
/** Make and connect the page's App for the components inside. */
export declare function AppProvider({ children, ...options }: AppProviderProps): ReactNode;
/**
 * Offer a tool for as long as the component is there. What changes in `config` between two renders
 * changes the tool.
 */
export declare function useRegisterTool<const In extends Schema | LazySchema | undefined = undefined, const Out extends Schema | undefined = undefined>(name: string, config: ToolConfig<In, Out>, callback: AppToolCallback<In, Out>): void;
/** A function that registers tools, as in sunpeak. */
export declare function useRegisterTool(): App["registerTool"];
/** Offer a fixed list of tools, with one function that is called for all of them. */
export declare function useAppTools(config: AppToolsConfig): void;
/** What the host has sent of the tool that opened the View. */
export declare function useToolData<Input = any, Output = any>(input?: Input | null, output?: Output | null): ToolData<Input, Output>;
/** What surrounds the View (theme, locale, display mode, ...); null before the handshake. */
export declare function useHostContext(): McpUiHostContext | null;
/** Let the page have the host's theme and style variables. */
export declare function useHostStyleVariables(app?: App | null, _initial?: McpUiHostContext | null): void;
/** Let the page have the host's fonts. */
export declare function useHostFonts(_app?: App | null, initial?: McpUiHostContext | null): void;
/** Let the page have the host's theme, style variables and fonts. */
export declare function useHostStyles(app?: App | null, initial?: McpUiHostContext | null): void;
/** The theme that the document has now. */
export declare function useDocumentTheme(): McpUiTheme;
/** Report the size of the content to the host, for an App that was made with `autoResize: false`. */
export declare function useAutoResize(app: App | null): void;
