"""A worker of an application with Views: `python -m tests.fleet.worker REDIS PORT EFFECTS`.

`POST /agent` calls a tool for the user whom the cookie names: `{"tool", "arguments", "timeout"}`.
It answers what became of it, and where the user's Host is. Whatever a View or the model has the
server do is a line in the file EFFECTS.
"""

import os
import sys
from typing import Any

import uvicorn
from mcp.server.mcpserver import MCPServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse
from starlette.routing import Route

from tests.browser.views import html
from transom import Allow, Host, Policy
from transom.bus import Bus
from transom.errors import TransomError
from transom.server import Views
from transom.web import Sandbox, UserLimits, WebViews
from transom.web.seat import Seat

LEASE = 2.0
SECRET = "the same on all workers, thirty-two characters or more"
SCRIPT = """
let next = 0;
const pending = new Map();
addEventListener("message", ({ data }) => {
  pending.get(data.id)?.(data.result?.content?.[0].text ?? "failed");
  pending.delete(data.id);
});
const note = (text) => new Promise((resolve) => {
  next += 1;
  pending.set(`note-${next}`, resolve);
  say({ id: `note-${next}`, method: "tools/call", params: { name: "note", arguments: { text } } });
});
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
tools.work = async ({ id, ms = 0 }) => {
  await note(`begin ${id}`);
  await sleep(ms);
  return note(`end ${id}`);
};
tools.input = () =>
  told.find(({ method }) => method.endsWith("tool-result")).params.content[0].text;
tools.risky = () => "done";
"""
PAGE = """<!doctype html><meta charset="utf-8" />
<script type="module" src="/transom/elements.js"></script>
<body><transom-stage></transom-stage></body>"""


def tests_server(effects: str) -> MCPServer:
    views = Views()
    page = views.add("ui://tests/page.html", html=html(SCRIPT))

    def write(line: str) -> None:
        file = os.open(effects, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{line}\n".encode())
        os.close(file)

    @views.tool(opens=page, annotations={"readOnlyHint": True})
    def show(label: str = "") -> str:
        """Open a View."""
        write(f"show {label}")
        return f"shown {label}"

    @views.helper
    def note(text: str) -> str:
        """Note what a View does."""
        write(text)
        return text

    return MCPServer("tests", extensions=[views])


def application(redis: str, effects: str) -> Any:
    async def connect(_: str, host: Host) -> None:
        await host.add_server("tests", tests_server(effects))

    def make_host(_: str, seat: Seat) -> Host:
        async def approve(request: Any) -> Any:
            return Allow() if request.tool.name != "risky" else await seat.approve(request)

        return Host(renderer=seat, policy=Policy(approve=approve), open_timeout=40, audit=None)

    views = WebViews(
        authenticate=lambda connection: connection.cookies.get("user"),
        servers=connect,
        make_host=make_host,
        sandbox=Sandbox(secret=SECRET),
        limits=UserLimits(show_within=30),
        bus=Bus(redis, secret=SECRET, lease=LEASE),
    )

    async def page(_: Request) -> HTMLResponse:
        return HTMLResponse(PAGE)

    async def agent(request: Request) -> JSONResponse:
        given = await request.json()
        answer: dict[str, Any] = {}
        try:
            host = await views.host(request.cookies["user"])
            answer["host"] = type(host).__name__
            timeout = given.get("timeout")
            result = await host.call_tool(given["tool"], given.get("arguments"), timeout=timeout)
            answer.update(text=result.text, view=(result.meta or {}).get("transom/view"))
        except TransomError as error:
            answer.update(error=type(error).__name__, message=str(error))
        return JSONResponse(answer)

    return views.middleware(
        Starlette(routes=[Route("/", page), Route("/agent", agent, methods=["POST"])])
    )


if __name__ == "__main__":
    uvicorn.run(
        application(sys.argv[1], sys.argv[3]),
        host="127.0.0.1",
        port=int(sys.argv[2]),
        ws="websockets-sansio",
        ws_max_size=20 * 1024 * 1024,
        log_level="warning",
        timeout_graceful_shutdown=5,
    )
