/** The same for a page that uses WebMCP. */
import "./inline.js";
import "./webmcp.js";
