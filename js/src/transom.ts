/**
 * transom.js: the View's side of MCP Apps, without dependencies. `webmcp.js` beside it adds WebMCP.
 * `zod.js` is loaded, or bundled, for schemas of zod that do not say their JSON Schema.
 */
import { hooks } from "./hooks.js";

export { App } from "./app.js";
export { ProtocolError, ToolError } from "./errors.js";
export type { StandardSchemaV1 } from "./standard_schema.js";
export type * from "./types.js";

async function loadZod(): Promise<void> {
  try {
    hooks._zodToJsonSchema = (await import("./zod.js")).zodToJsonSchema;
  } catch {
    // The schemas stay open, which is reported.
  }
  hooks._loading = hooks._loadZod = undefined;
}

hooks._loadZod = () => {
  hooks._loading ??= loadZod();
};
