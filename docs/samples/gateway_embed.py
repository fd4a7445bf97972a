"""The gateway in programs of your own: over standard input and output, and in a web application."""

import asyncio
import json
import os
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
from sample_shop import ORDERS, orders_view
from starlette.applications import Starlette
from starlette.routing import Mount

from transom import InProcessRenderer
from transom.gateway import Gateway

SHOP = Path(__file__).with_name("sample_shop.py")
TOKEN = os.environ.get("SHOP_TOKEN", secrets.token_urlsafe())

# region gateway
gateway = Gateway(
    {"orders": [sys.executable, str(SHOP)]},  # a command, or the URL of a streamable HTTP server
    renderer=InProcessRenderer({ORDERS: orders_view}),  # or transom.web.BrowserRenderer()
)
# endregion


# region stdio
async def serve() -> None:
    async with gateway:
        await gateway.serve_stdio()


# endregion


# region asgi
@asynccontextmanager
async def lifespan(app: Starlette) -> AsyncGenerator[None]:
    async with gateway:  # ends the servers and Views of all clients with the application
        yield


app = Starlette(routes=[Mount("/shop", gateway.asgi(token=TOKEN))], lifespan=lifespan)  # /shop/mcp
# endregion


async def ask(client: httpx2.AsyncClient, method: str, params: dict[str, Any]) -> httpx2.Response:
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await client.post("/shop/mcp", json=message)


HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "sample", "version": "1"},
}


async def main() -> None:
    program = await asyncio.create_subprocess_exec(
        *(sys.executable, __file__, "stdio"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
    assert program.stdin is not None
    assert program.stdout is not None
    program.stdin.write(json.dumps(hello).encode() + b"\n")
    answer = json.loads(await program.stdout.readline())
    assert answer["result"]["serverInfo"]["name"] == "orders"
    program.stdin.close()
    assert await program.wait() == 0

    transport = httpx2.ASGITransport(app)
    headers = {"accept": "application/json, text/event-stream"}
    async with (
        lifespan(app),
        httpx2.AsyncClient(
            transport=transport, base_url="http://shop.test", headers=headers
        ) as client,
    ):
        assert (await ask(client, "initialize", HELLO)).status_code == 401
        client.headers["authorization"] = f"Bearer {TOKEN}"
        client.headers["mcp-session-id"] = (await ask(client, "initialize", HELLO)).headers[
            "mcp-session-id"
        ]
        assert "show_orders" in (await ask(client, "tools/list", {})).text
        shown = await ask(client, "tools/call", {"name": "show_orders", "arguments": {}})
        assert "View orders-1 is open" in shown.text
        assert "orders-1__mark_shipped" in shown.text


if __name__ == "__main__":
    asyncio.run(serve() if sys.argv[1:] == ["stdio"] else main())
