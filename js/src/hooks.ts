/**
 * What the App of a page and the modules that a page may have beside it know of each other: WebMCP,
 * forms, and what converts schemas of zod. They are modules of the package, so this is a member of `App`.
 */
import type { ServedTool } from "./served_tool.js";
import type { ToJsonSchema, Tool, ToolExtra } from "./types.js";

/** Runs a tool that the browser has. */
export type BrowserTool = (
  params: { name: string; arguments: Record<string, unknown> },
  extra: ToolExtra,
) => unknown;

export interface Hooks {
  /** There with `webmcp.js`: makes an App for the page if it has none. */
  _makeApp?: () => unknown;
  /** There with `webmcp.js`: whether the browser has WebMCP of its own. */
  _isNative?: boolean;
  _toolChanged: (tool: ServedTool) => void;
  /** The tools that the browser has of this page. */
  _browserTools: () => Tool[] | Promise<Tool[]>;
  /** What can take the place of `oncalltool` for one call. */
  _browserTool: (name: string) => BrowserTool | undefined | Promise<BrowserTool | undefined>;
  /** Converts the schemas of zod that do not say their JSON Schema. */
  _zodToJsonSchema?: ToJsonSchema | undefined;
  /** Begin to load it; undefined where nothing can be loaded, and once that was tried. */
  _loadZod?: (() => void) | undefined;
  /** While it loads: until then schemas are not what they will be. */
  _loading?: Promise<void> | undefined;
}

export const hooks: Hooks = {
  _toolChanged: () => undefined,
  _browserTools: () => [],
  _browserTool: () => undefined,
};
