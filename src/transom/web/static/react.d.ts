/** Types of `react.js`. */
import type { ReactNode } from "react";
import type {
  App,
  AppOptions,
  AppToolCallback,
  Implementation,
  LazySchema,
  McpUiAppCapabilities,
  McpUiHostContext,
  McpUiTheme,
  Schema,
  Tool,
  ToolConfig,
  ToolExtra,
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

/** Make and connect the page's App. Options are read once. */
export function useApp(options: UseAppOptions): AppState;
/** The page's App once it is connected. */
export function useApp(): App | null;

export interface AppProviderProps extends UseAppOptions {
  children?: ReactNode;
}

/** Make and connect the page's App for the components inside. */
export function AppProvider(props: AppProviderProps): ReactNode;

/** Offer a tool for as long as the component is there. */
export function useRegisterTool<
  const In extends Schema | LazySchema | undefined = undefined,
  const Out extends Schema | undefined = undefined,
>(name: string, config: ToolConfig<In, Out>, callback: AppToolCallback<In, Out>): void;
/** A function that registers tools. */
export function useRegisterTool(): App["registerTool"];

export interface AppTool extends Omit<Tool, "inputSchema"> {
  inputSchema?: Record<string, unknown>;
}

export interface AppToolsConfig {
  tools: AppTool[];
  /** Called with each call of one of them. */
  onCallTool(
    params: { name: string; arguments: Record<string, any> },
    extra: ToolExtra,
  ): unknown;
}

/** Offer a fixed list of tools. */
export function useAppTools(config: AppToolsConfig): void;

export interface ToolData<Input, Output> {
  input: Input | null;
  inputPartial: Partial<Input> | null;
  output: Output | null;
  isError: boolean;
  isLoading: boolean;
  isCancelled: boolean;
  cancelReason: string | null;
}

/** What the host has sent of the tool that opened the View. */
export function useToolData<Input = any, Output = any>(
  input?: Input | null,
  output?: Output | null,
): ToolData<Input, Output>;

/** What surrounds the View; null before the handshake. */
export function useHostContext(): McpUiHostContext | null;

/** Let the page have the host's theme and style variables. */
export function useHostStyleVariables(app?: App | null, initial?: McpUiHostContext | null): void;
/** Let the page have the host's fonts. */
export function useHostFonts(app?: App | null, initial?: McpUiHostContext | null): void;
/** Both. */
export function useHostStyles(app?: App | null, initial?: McpUiHostContext | null): void;

/** The theme that the document has now. */
export function useDocumentTheme(): McpUiTheme;

/** Report the size of the content, for an App that was made with `autoResize: false`. */
export function useAutoResize(app: App | null): void;
