/** What `transom.server` adds for a page that has forms for WebMCP. */
import "./forms.js";
