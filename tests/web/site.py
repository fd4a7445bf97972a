"""An application with users, and pages of theirs without a browser."""

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any, cast

from starlette.applications import Starlette
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from tests.web.browser import music, player
from tests.web.page import PageEnd, StagePage
from transom import App, Host, Policy
from transom.serving import listen, serve
from transom.web import UserLimits, WebViews
from transom.web.seat import Seat
from transom.web.stage import Stage


class UserPage(StagePage):
    """A page of somebody who is signed in; `wish` is what it does with Views that are offered."""

    def __init__(self, origin: str, session: str, wish: str = "take", **hello: Any) -> None:
        super().__init__(cast("Stage", SimpleNamespace(token="", origin=origin)), **hello)
        self.socket_at = "/transom/socket"
        self.headers = {"Cookie": f"session={session}"}
        self.wish = wish
        self.apps: dict[str, App] = {}
        self._running: set[asyncio.Task[Any]] = set()
        self.on_mount = self._run

    async def _told(self, message: dict[str, Any]) -> None:
        await super()._told(message)
        if message["do"] == "offer" and message["new"] and self.wish:
            await self.place(message["view"])

    async def place(self, view: str, wish: str = "") -> None:
        await self.tell(do="place", view=view, value=wish or self.wish)

    def go_to(self, url: str) -> None:
        """Use that address for the same server."""
        host, port = self.url.removeprefix("http://").split(":")
        self.address = {"host": host, "port": int(port)}
        self.url = url

    def _run(self, key: str, end: PageEnd) -> None:
        app = self.apps[key] = player(key)
        task = asyncio.create_task(app.connect(end))
        self._running.add(task)
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    async def __aexit__(self, *error: object) -> None:
        await super().__aexit__(*error)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)


class Site:
    """An application with users, who are whoever has the cookie."""

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.sessions: dict[str, str] = {}
        self.views: WebViews = cast("WebViews", None)
        self.connected: list[str] = []

    def who(self, connection: HTTPConnection) -> str | None:
        return self.sessions.get(connection.cookies.get("session", ""))

    async def connect(self, user: str, host: Host) -> None:
        self.connected.append(user)
        await host.add_server("music", music())

    def sign_in(self, user: str) -> str:
        session = secrets.token_hex(8)
        self.sessions[session] = user
        return session

    def page(self, user: str, wish: str = "take", **hello: Any) -> UserPage:
        return UserPage(self.origin, self.sign_in(user), wish, **hello)


@asynccontextmanager
async def site(**options: Any) -> AsyncIterator[Site]:
    sock = listen("127.0.0.1", 0)
    made = Site(f"http://127.0.0.1:{sock.getsockname()[1]}")
    trusting, limits = options.pop("trusting", True), options.pop("limits", None)

    def make_host(_: str, seat: Seat) -> Host:
        policy = Policy.trusting() if trusting else Policy(approve=seat.approve)
        return Host(renderer=seat, policy=policy, limits=limits)

    made.views = WebViews(
        authenticate=made.who,
        servers=options.pop("servers", made.connect),
        make_host=options.pop("make_host", make_host),
        limits=options.pop("users", UserLimits(show_within=30)),
        **options,
    )

    async def rest(request: Request) -> PlainTextResponse:
        return PlainTextResponse(f"ours {request.url.path}")

    app = made.views.middleware(Starlette(routes=[Route("/{path:path}", rest)]))
    async with serve(app, [sock], ws="websockets-sansio"):
        yield made
        await made.views.aclose()
