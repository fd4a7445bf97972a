"""Views in the pages of a FastAPI application."""

import asyncio

import httpx2

# region app
from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse
from sample_shop import server
from starlette.requests import HTTPConnection

from transom import Host
from transom.web import WebViews

app = FastAPI()
sessions = {"a-long-random-text": "ada"}  # yours has a database, and a page to sign in


def user_of(connection: HTTPConnection) -> str | None:
    return sessions.get(connection.cookies.get("session", ""))


async def connect_servers(user: str, host: Host) -> None:
    await host.add_server("orders", server)  # each user's own connection; or their own token


views = WebViews(authenticate=user_of, servers=connect_servers)
app.add_middleware(views.middleware)


@app.get("/", response_class=HTMLResponse)
async def page() -> str:
    return """<!doctype html><title>Orders</title>
      <script type="module" src="/transom/elements.js"></script>
      <button onclick="fetch('/orders', { method: 'POST' })">Show the orders</button>
      <transom-stage></transom-stage>"""


@app.post("/orders")
async def show_orders(request: Request) -> Response:
    user = user_of(request)
    if user is None:
        return Response("Sign in first", 401)
    host = await views.host(user)
    return Response((await host.answer("show_orders")).text)


# endregion


async def main() -> None:
    async with httpx2.AsyncClient(
        transport=httpx2.ASGITransport(app), base_url="http://localhost:8000"
    ) as client:
        script = await client.get("/transom/elements.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert "<transom-stage>" in (await client.get("/")).text
        assert (await client.post("/orders")).status_code == 401
        assert (await client.get("http://guess.localhost:8000/transom-view")).status_code == 404
    host = await views.host("ada")
    assert "show_orders" in [tool.name for tool in await host.list_tools()]
    await views.aclose()


if __name__ == "__main__":
    asyncio.run(main())
