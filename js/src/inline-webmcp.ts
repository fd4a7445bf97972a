/** What `transom.server` adds for a page that uses WebMCP. */
import "./webmcp.js";
