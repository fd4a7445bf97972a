"""A chat for several users, with Views in the conversation.

uvicorn examples.chat.app:app        then open http://localhost:8000 and choose a name

Several workers that share a Redis, behind any balancer (see docs/deploying.md):

CHAT_BUS=redis://localhost CHAT_SECRET=... uvicorn examples.chat.app:app --port 8001

Every user has servers, Views and a conversation of their own. The model is a script that knows a
few sentences (`script.py`), so that the chat runs offline, or any model of Pydantic AI:

CHAT_MODEL=openai:gpt-5 uvicorn examples.chat.app:app

`WebViews` does everything about Views and `HostToolset` gives the model their tools (`agent.py`);
all else here is what any chat has.
"""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import FileResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from examples.chat.agent import reply
from examples.chat.store import Message, Store
from transom import Host
from transom.web import Sandbox, WebViews

HERE = Path(__file__).parent
MAX_TEXT = 2000
BUS = os.environ.get("CHAT_BUS")
SECRET = os.environ.get("CHAT_SECRET")

store = Store(BUS)


async def user_of(connection: HTTPConnection) -> str | None:
    """Who a connection is: the application's own way to know that."""
    return await store.user(connection.cookies.get("session", ""))


async def connect_servers(_: str, host: Host) -> None:
    """A user's servers: a process each, which no other user shares."""
    for name in ("orders", "music"):
        await host.add_server(name, [sys.executable, str(HERE.parent / f"{name}.py")])


views = WebViews(
    authenticate=user_of, servers=connect_servers, sandbox=Sandbox(secret=SECRET), bus=BUS
)


# --- signing in ------------------------------------------------------------------------------


async def page(_: Request) -> Response:
    return FileResponse(HERE / "static" / "chat.html")


async def sign_in(request: Request) -> Response:
    name = str((await request.json()).get("name", "")).strip()[:40]
    if not name:
        return JSONResponse({"error": "Choose a name."}, 400)
    answer = Response(status_code=204)
    answer.set_cookie("session", await store.sign_in(name), httponly=True, samesite="strict")
    return answer


async def sign_out(request: Request) -> Response:
    user = await user_of(request)
    await store.sign_out(request.cookies.get("session", ""))
    if user is not None:
        await views.close(user)
    return Response(status_code=204)


# --- the conversation ------------------------------------------------------------------------


async def conversation(request: Request) -> Response:
    user = await user_of(request)
    if user is None:
        return JSONResponse({"error": "Sign in first."}, 401)
    return JSONResponse({"user": user, "messages": await store.messages(user)})


async def say(request: Request) -> Response:
    user = await user_of(request)
    if user is None:
        return JSONResponse({"error": "Sign in first."}, 401)
    text = str((await request.json()).get("text", ""))[:MAX_TEXT]
    return StreamingResponse(answer(user, text), media_type="application/x-ndjson")


async def answer(user: str, text: str) -> AsyncIterator[str]:
    """The model's answer as it comes, a line of JSON for each part."""
    await store.add(user, {"role": "user", "text": text})
    message: Message = {"role": "assistant", "parts": []}
    parts: asyncio.Queue[Message | None] = asyncio.Queue()

    async def emit(part: Message) -> None:
        message["parts"].append(part)
        await parts.put(part)

    async def run() -> None:
        try:
            host, history = await views.host(user), await store.history(user)
            await store.keep_history(user, await reply(host, text, emit, history))
        except Exception as error:  # noqa: BLE001 - the user is told, and the conversation goes on
            await emit({"type": "text", "text": f"That did not work: {error}"})
        finally:
            await store.add(user, message)
            await parts.put(None)

    running = asyncio.create_task(run())
    try:
        while (part := await parts.get()) is not None:
            yield json.dumps(part) + "\n"
    finally:
        await asyncio.wait([running])  # the user may be gone; the answer is kept


app = Starlette(
    routes=[
        Route("/", page),
        Route("/sign-in", sign_in, methods=["POST"]),
        Route("/sign-out", sign_out, methods=["POST"]),
        Route("/conversation", conversation),
        Route("/messages", say, methods=["POST"]),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ],
    middleware=[Middleware(views.middleware)],
)
