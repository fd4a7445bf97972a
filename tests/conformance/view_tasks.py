"""The gateway's own tasks, those of calls of Views' tools, for the official conformance suite.

    python -m tests.conformance.view_tasks

The suite calls tools by names of its own, so each call is renamed on its way into the gateway: it
becomes one of `call_view_tool`, for the View that is open.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import httpx2
import uvicorn
from starlette.types import Message, Receive, Scope, Send

from transom import App, InProcessRenderer, ToolError
from transom.errors import ProtocolError
from transom.gateway import Gateway
from transom.serving import listen

SHOP = Path(__file__).parents[2] / "docs" / "samples" / "sample_shop.py"
VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"


def view() -> App:
    app = App("tasks", "1.0.0")

    @app.tool()
    def greet(name: str) -> str:
        """Answer at once."""
        return f"Hello, {name}!"

    @app.tool(task="optional")
    async def slow_compute(seconds: float = 0, label: str = "") -> str:
        """Take some seconds."""
        await asyncio.sleep(seconds)
        return f"{label} took {seconds} s"

    @app.tool(task="required")
    async def failing_job() -> str:
        """Fail after a while."""
        await asyncio.sleep(1)
        raise ToolError("it failed")

    @app.tool(task="optional")
    async def protocol_error_job() -> str:
        """Fail with an error of the protocol, after a while."""
        await asyncio.sleep(1)
        raise ProtocolError(-32603, "It broke")

    @app.tool()
    def confirm_delete(filename: str) -> str:
        """Delete without a question: a View's tool has no way to ask one."""
        return f"{filename} is gone"

    return app


class Renamed:
    """A gateway whose View's tools are called by their own names."""

    def __init__(self, gateway: Any, host: str) -> None:
        self._gateway = gateway
        self._host = host
        self._view = asyncio.Lock()
        self._handle = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._gateway(scope, receive, send)
            return
        body = b""
        more = True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
        message = json.loads(body)
        params = message.get("params", {})
        headers = dict(scope["headers"])
        named = headers.get(b"mcp-name", b"").decode()
        if message["method"] == "tools/call" and named == params["name"]:
            inner = {"name": params["name"], "arguments": params.get("arguments", {})}
            arguments = {"view_id": await self._opened(), **inner}
            message["params"] = {**params, "name": "call_view_tool", "arguments": arguments}
            headers[b"mcp-name"] = b"call_view_tool"
        body = json.dumps(message).encode()
        headers[b"content-length"] = str(len(body)).encode()

        sent = False

        async def given() -> Message:
            nonlocal sent
            if sent:
                return await receive()
            sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self._gateway({**scope, "headers": list(headers.items())}, given, send)

    async def _opened(self) -> str:
        """What the open View is called."""
        async with self._view:
            if not self._handle:
                meta = {f"{META}protocolVersion": VERSION, f"{META}clientCapabilities": {}}
                params = {"name": "show_orders", "arguments": {}, "_meta": meta}
                message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
                headers = {
                    "accept": "application/json, text/event-stream",
                    "mcp-protocol-version": VERSION,
                    "mcp-method": "tools/call",
                    "mcp-name": "show_orders",
                }
                transport = httpx2.ASGITransport(app=self._gateway)
                base = f"http://{self._host}"
                async with httpx2.AsyncClient(transport=transport, base_url=base) as http:
                    answer = (await http.post("/mcp", json=message, headers=headers)).text
                self._handle = answer.partition('view_id \\"')[2].partition('\\"')[0]
                assert self._handle, answer
        return self._handle


async def main() -> None:
    with listen("127.0.0.1", 0) as listening:
        host = f"127.0.0.1:{listening.getsockname()[1]}"
        renderer = InProcessRenderer({"ui://orders/list.html": view})
        async with Gateway({"shop": [sys.executable, str(SHOP)]}, renderer=renderer) as gateway:
            app = Renamed(gateway.asgi(allowed_hosts=[host]), host)
            sys.stderr.write(f"The gateway listens at http://{host}/mcp\n")
            config = uvicorn.Config(app, log_level="critical", ws="none", lifespan="off")
            await uvicorn.Server(config).serve(sockets=[listening])


if __name__ == "__main__":
    asyncio.run(main())
