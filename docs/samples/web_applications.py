"""Views in a Starlette application, set up for production."""

import asyncio

# region app
import os
from hashlib import sha256

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection

from transom import Host, Limits, Policy
from transom.connections import RemoteServer
from transom.web import Sandbox, UserLimits, WebViews

sessions = {"a-long-random-text": "ada"}
tokens = {"ada": "ada's token at the shop"}


async def user_of(connection: HTTPConnection) -> str | None:
    return sessions.get(connection.cookies.get("session", ""))


async def connect_servers(user: str, host: Host) -> None:
    headers = {"Authorization": f"Bearer {tokens[user]}"}
    await host.add_server("shop", RemoteServer("https://shop.example.com/mcp", headers))


views = WebViews(
    authenticate=user_of,
    servers=connect_servers,
    sandbox=Sandbox(
        "https://{view}.views-of-example.com",
        origins=["https://chat.example.com"],
        secret=os.environ.get("CHAT_SECRET", "at least 32 characters, the same in every run"),
    ),
    limits=UserLimits(max_users=500),
    make_host=lambda user, renderer: Host(
        renderer=renderer,
        policy=Policy(approve=renderer.approve),
        limits=Limits(max_live_views=10),
        # Not the id itself: whoever chooses it would choose the path.
        audit=f"/var/log/chat/{sha256(user.encode()).hexdigest()}.sqlite",
    ),
)
app = Starlette(middleware=[Middleware(views.middleware)])
# endregion


async def main() -> None:
    assert views.users == []
    assert views.path == "/transom"
    await views.aclose()


if __name__ == "__main__":
    asyncio.run(main())
