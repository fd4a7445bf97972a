export { App } from "./app.js";
export { ProtocolError, ToolError } from "./errors.js";
export type { StandardSchemaV1 } from "./standard_schema.js";
export type * from "./types.js";
