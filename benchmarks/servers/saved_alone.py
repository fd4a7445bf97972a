"""A server whose file is changed: `benchmarks/dev_rows.py`."""

from mcp.server.mcpserver import MCPServer

from transom.server import Views

VERSION = "version 0"

PAGE = """<!doctype html><title>Saved</title><p id="shown"></p>
<script src="transom.js"></script>
<script>
const app = new transom.App({ name: "saved", version: "1" });
app.ontoolresult = ({ content }) => {
  shown.textContent = content[0].text;
  requestAnimationFrame(() => { shown.dataset.at = `${content[0].text} ${Date.now()}`; });
};
app.connect();
</script>"""

views = Views()
view = views.add("ui://saved/page.html", html=PAGE)


@views.tool(opens=view, annotations={"readOnlyHint": True})
def show() -> str:
    """Show which version of the file runs."""
    return VERSION


server = MCPServer("saved", extensions=[views])
