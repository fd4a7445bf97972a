import base64
import io
import os
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import transom
from mcp.server.mcpserver import MCPServer
from transom.server import Csp, Views

PYODIDE = os.environ.get("PYODIDE", "https://cdn.jsdelivr.net/pyodide/v314.0.7/full")


def transom_for_views() -> str:
    """The part of Transom that a View needs, as a zip file in base64: about 150 KB."""
    archive, source = io.BytesIO(), Path(transom.__file__).parent
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for files in ("*.py", "protocol/*.py", "schema/*.py", "view/*.py"):
            for file in sorted(source.glob(files)):
                packed.write(file, file.relative_to(source.parent))
    return base64.b64encode(archive.getvalue()).decode()


def page() -> str:
    html = Path(__file__).with_suffix(".html").read_text()
    return html.replace("PYODIDE", PYODIDE).replace("TRANSOM", transom_for_views())


views = Views()
address = urlsplit(PYODIDE)
origin = [f"{address.scheme}://{address.netloc}"]
view = views.add("ui://shout/page.html", html=page, csp=Csp(connect=origin, resource=origin))


@views.tool(opens=view)
def open_shout() -> str:
    """Open a View that is written in Python."""
    return "It is open."


server = MCPServer("shout", extensions=[views])

if __name__ == "__main__":
    server.run()
