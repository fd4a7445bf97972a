/** The script that `transom.server` puts into a page: it sets `window.transom`. */
import { App, ProtocolError, ToolError } from "./transom.js";

(globalThis as { transom?: object }).transom = { App, ProtocolError, ToolError };
