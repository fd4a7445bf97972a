/**
 * The script that `transom.server` puts into a page: it sets `window.transom`. It runs under
 * `script-src 'unsafe-inline'`: nothing is evaluated, fetched or loaded. What only some pages need
 * follows in the same script: `inline-webmcp.ts`, `inline-forms.ts`, `inline-zod.ts`.
 */
import { App } from "./app.js";
import { ProtocolError, ToolError } from "./errors.js";

(globalThis as { transom?: object }).transom = { App, ProtocolError, ToolError };
