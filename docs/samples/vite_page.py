"""A View whose page comes from Vite's dev server while it is written."""

# region server
from urllib.request import urlopen

from mcp.server.mcpserver import MCPServer

from transom.server import Csp, Views

VITE = "http://localhost:5173"


def page_of_vite() -> str:
    with urlopen(VITE) as answer:
        html = answer.read().decode()
    return html.replace("<head>", f'<head><base href="{VITE}/">', 1)


views = Views()
page = views.add(
    "ui://editor/page.html",
    html=page_of_vite,
    csp=Csp(
        resource=[VITE],
        connect=[VITE, VITE.replace("http", "ws")],
        base_uri=[VITE],
    ),
)


@views.tool(opens=page)
def show_editor() -> str:
    """Open the editor."""
    return "The editor is open."


server = MCPServer("editor", extensions=[views])
# endregion
