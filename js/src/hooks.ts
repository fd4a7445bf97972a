/**
 * What `webmcp.js` and the App of a page know of each other. They are two modules of the package, so
 * this is a member of `App`.
 */
import type { App } from "./app.js";
import type { ServedTool } from "./tools.js";
import type { Tool, ToolExtra } from "./types.js";

/** Runs a tool that the browser has. */
export type BrowserTool = (
  params: { name: string; arguments: Record<string, unknown> },
  extra: ToolExtra,
) => unknown;

export interface Hooks {
  /** The App that speaks for the page. */
  current?: App | undefined;
  /** The same, if it was made for a page that has tools and no App. */
  automatic?: App | undefined;
  /** The browser's own WebMCP. */
  native?: object | undefined;
  toolChanged: (tool: ServedTool) => void;
  /** The tools that the browser has of this page. */
  browserTools: () => Tool[] | Promise<Tool[]>;
  /** What can take the place of `oncalltool` for one call. */
  browserTool: (name: string) => BrowserTool | undefined | Promise<BrowserTool | undefined>;
}

export const hooks: Hooks = {
  toolChanged: () => undefined,
  browserTools: () => [],
  browserTool: () => undefined,
};
