"""A bare Starlette endpoint that answers every POST with the echo server's result, and no more."""

import sys

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route


class Call(msgspec.Struct):
    """As much of a request as the answer depends on."""

    id: int = 0
    params: dict[str, object] = {}


async def answer(request: Request) -> Response:
    call = msgspec.json.decode(await request.body(), type=Call)
    arguments = call.params.get("arguments")
    size = arguments["size"] if isinstance(arguments, dict) else 0
    result = {"content": [{"type": "text", "text": "x" * size}]}
    body = msgspec.json.encode({"jsonrpc": "2.0", "id": call.id, "result": result})
    return Response(body, media_type="application/json")


app = Starlette(routes=[Route("/mcp", answer, methods=["POST"])])
uvicorn.run(app, port=int(sys.argv[1]), log_level="error", access_log=False, lifespan="off")
