/**
 * transom.js: the View's side of MCP Apps, in one file without dependencies. `webmcp.js` beside it
 * adds WebMCP. It runs under `script-src 'unsafe-inline'`: nothing is evaluated, fetched or loaded.
 */
export { App } from "./app.js";
export { ProtocolError, ToolError } from "./errors.js";
export type { StandardSchemaV1 } from "./standard_schema.js";
export type * from "./types.js";
