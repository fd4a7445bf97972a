import type { RegisteredAppTool, Tool, ToolExtra } from "./types.js";

/** A tool that was registered, for the modules of this package. */
export interface ServedTool extends RegisteredAppTool {
  error?: unknown;
  /** Its entry in a listing; undefined if it has none now. */
  definition: () => Tool | undefined;
  /** Run it for a host: the result to answer with, or a handle of the server's. */
  run: (given: unknown, extra: ToolExtra) => Promise<unknown>;
  /** Run it for the browser; the result. */
  call: (given: unknown, signal: AbortSignal) => Promise<unknown>;
}
