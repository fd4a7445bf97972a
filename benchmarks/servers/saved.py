"""A FastMCP server whose file is changed: `benchmarks/dev_rows.py`."""

from fastmcp import FastMCP
from fastmcp.apps import AppConfig

from transom.server.resource import inline_transom

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

URI = "ui://saved/page.html"
server = FastMCP("saved")


@server.resource(URI, mime_type="text/html;profile=mcp-app")
def page() -> str:
    """The page."""
    return inline_transom(PAGE)


@server.tool(app=AppConfig(resource_uri=URI), annotations={"readOnlyHint": True})
def show() -> str:
    """Show which version of the file runs."""
    return VERSION
