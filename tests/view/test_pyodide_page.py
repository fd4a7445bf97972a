"""The View in Python of docs/views.md: served by its server, shown by a host in a real browser.

The machine that tests may have no internet, so Pyodide comes from a server here, which has the
files that the CDN has.
"""

import hashlib
import json
import sys
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import Route

from tests.server.clients import serving
from transom.testing import ViewsFixture

pytestmark = pytest.mark.processes

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "docs" / "samples" / "python_view.py"
PYODIDE = ROOT / "node_modules" / "pyodide"
TYPES = {".mjs": "text/javascript", ".wasm": "application/wasm"}
ANYBODY = {"Access-Control-Allow-Origin": "*"}


async def answer(request: Request) -> Response:
    """A file of the distribution; its list of packages has the msgspec that is here."""
    (wheel,) = (ROOT / ".venv" / "pyodide").glob("msgspec-*.whl")
    name = request.path_params["name"]
    if name == "pyodide-lock.json":
        lock = json.loads((PYODIDE / name).read_text())
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        lock["packages"]["msgspec"] |= {"file_name": wheel.name, "sha256": digest}
        return JSONResponse(lock, headers=ANYBODY)
    file = wheel if name == wheel.name else PYODIDE / name
    return FileResponse(file, media_type=TYPES.get(file.suffix), headers=ANYBODY)


@pytest.mark.nightly
@pytest.mark.timeout(240)  # WebAssembly is compiled at each start
async def test_the_view_in_python_of_the_documentation_runs_in_a_host(views: ViewsFixture) -> None:
    views.configure(theme="dark", open_timeout=200)
    async with serving(Starlette(routes=[Route("/mcp/{name}", answer)])) as url:
        server = ["env", f"PYODIDE={url}", sys.executable, str(SAMPLE)]
        view = await views.open(server, "open_shout")
        await view.assert_tools("shout", timeout=60)
        assert view.view.app.name == "in-a-page"
        assert (await view.call("shout", text="hi")).text == "HI! (dark)"
