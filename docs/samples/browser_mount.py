"""The Stage inside a web app of one's own."""

import asyncio

# region mount
from starlette.applications import Starlette
from starlette.routing import Host, Mount

from transom.web import Stage, sandbox_app, stage_app

stage = Stage(origin="https://agent.example.com", sandbox="https://*.views.example.com")
app = Starlette(
    routes=[
        Host("agent.example.com", Mount("/stage", stage_app(stage))),
        Host("{view}.views.example.com", sandbox_app(stage.sandboxes)),
    ]
)
# endregion


async def main() -> None:
    assert await status("agent.example.com/stage/") == 200
    assert await status("nobody.views.example.com/") == 404  # there is no View of that name
    assert await status("elsewhere.example.com/stage/") == 404


async def status(address: str) -> int:
    host, _, path = address.partition("/")
    answers: list[int] = []
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "https",
        "path": f"/{path}",
        "raw_path": f"/{path}".encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", host.encode())],
        "client": ("127.0.0.1", 5000),
        "server": (host, 443),
        "http_version": "1.1",
    }

    async def receive() -> dict[str, object]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, object]) -> None:
        if message["type"] == "http.response.start":
            answers.append(int(str(message["status"])))

    await app(scope, receive, send)
    return answers[0]


if __name__ == "__main__":
    asyncio.run(main())
