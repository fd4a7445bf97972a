/** What becomes `webmcp.js`: WebMCP, and forms that are tools. */
import "./webmcp.js";
import "./forms.js";
