"""Views inside the pages of a web application, for its many users.

1. The application authenticates connections. Each user has their own Host and pages, and cannot
   reach anything of another user.
2. With a bus, a user is on one worker. Other workers forward pages and sandboxes to it; when it
   ends or dies, the next worker that needs the user takes over the Views.
3. Pages connect from the given origins. Without any, only pages on this machine can: settings for
   production are not guessed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Self

from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect

from transom.background import logs_errors, stop
from transom.bus import Bus, forward, serve_forwarded
from transom.bus.forwarding import claim_or_reach
from transom.channel import Channel
from transom.errors import BusError, NoOwner, OutcomeUnknown, OwnerGone, Refused
from transom.fair_share import FairShares, PageTurns
from transom.host.asking.policy import Policy
from transom.host.host import Host
from transom.web.application.remote_host import RemoteHost, refuse
from transom.web.application.sandbox import Sandbox
from transom.web.application.users import (
    ConnectServers,
    MakeHost,
    User,
    UserLimits,
    Users,
    UserSetup,
)
from transom.web.application.workers import HOST_CHANNEL, Workers
from transom.web.asgi import PageSocket, sandbox_app, static_file, unavailable
from transom.web.mounted_views import Sandboxes, Violation, is_guard
from transom.web.seat import Seat
from transom.web.stage import Stage

_log = logging.getLogger("transom.web")
_report = logs_errors(_log)

Authenticate = Callable[[HTTPConnection], Awaitable[str | None] | str | None]
"""Says which user a request or socket is from; None: nobody that the application knows."""

_PAGE, _SANDBOX = "web-page", "web-sandbox"  # kinds of channels between workers
_UNKNOWN, _ELSEWHERE, _FULL = 4401, 4403, 4410  # close codes of sockets; the same as in link.ts
_FAILED = 1011  # after which a page retries
_UNIDENTIFIED = "The user could not be identified"
_GONE = (WebSocketDisconnect, OSError)  # what sending raises when the page is gone

_OTHERS = (
    "A browser asks for the View at %r, which this process does not have. If the application runs "
    "in several processes, each needs WebViews(bus='redis://...'), or there may be only one"
)


class WebViews:
    """Views in the pages of a web application, with a Host for each of its users.

        views = WebViews(authenticate=lambda connection: connection.session.get("user"),
                         servers=connect_servers)
        app.add_middleware(views.middleware)        # Starlette and FastAPI
        application = views.middleware(application)  # Django, or any other ASGI app

    A page includes the script that is served at `/transom/elements.js`, and has an element
    `<transom-view view="orders-1">` for each View, or a `<transom-stage>` for all of them.

    Args:
        authenticate: takes Starlette's `HTTPConnection`, which has cookies, headers and the
            session, and returns the user's id, or None if nobody is signed in. May be async. It is
            called for every connection of a page, and again once a minute; the page is
            disconnected when it fails, or takes longer than ten seconds.
        servers: `await servers(user, host)` adds the servers of a user to their new Host.
        sandbox: where Views are served, and which pages may show them; needed for anything but
            development on this machine.
        path: where the script and the socket are served.
        make_host: makes a user's Host, given the renderer that it has to use; by default
            `Host(renderer=renderer, policy=Policy(approve=renderer.approve))`, which asks the user
            on the page.
        limits: how many users may have a Host or a page at once, and for how long.
        on_violation: called with the user and everything that a View's policy blocked.
        bus: connects the workers of an application that runs in several processes: the URL of a
            Redis (`redis://`, `rediss://`), for which `Sandbox(secret=...)` is needed, or a
            `transom.bus.Bus` that was created in this process and is opened and closed with this.
            Each user's Host and pages are on one worker; the others forward to it, and one of them
            takes over the user's Views when it ends or dies.
            None: this is the only process.

    Raises:
        UsageError: `bus` is invalid; the text says what to set.
    """

    def __init__(
        self,
        *,
        authenticate: Authenticate,
        servers: ConnectServers | None = None,
        sandbox: Sandbox | None = None,
        path: str = "/transom",
        make_host: MakeHost | None = None,
        limits: UserLimits | None = None,
        on_violation: Callable[[str, Violation], object] | None = None,
        bus: str | Bus | None = None,
    ) -> None:
        self.path = "/" + path.strip("/")
        self._authenticate = authenticate
        self._recheck = 60.0
        self._identify_within = 10.0
        self._on_violation = on_violation
        self._warned = False  # that there may be other processes
        sandboxes, sandbox = Sandboxes(), sandbox or Sandbox()
        self._sandbox_app = sandbox_app(sandboxes)
        on_open = {
            _PAGE: serve_forwarded(self._forwarded_page),
            _SANDBOX: serve_forwarded(self._sandbox_app),
            HOST_CHANNEL: self._serve_host,
        }
        self._setup = UserSetup(
            make_host=make_host or _default_host,
            servers=servers,
            sandbox=sandbox,
            workers=Workers(bus, sandbox.secret, on_open),
            limits=(limits := limits or UserLimits()),
            sandboxes=sandboxes,
            shares=FairShares(limits.max_share),
        )
        self._users = Users(self._setup)
        self._pages_app = Starlette(
            routes=[
                *(Route(f"/{name}", static_file(name)) for name in ("elements.js", "views.js")),
                WebSocketRoute("/socket", self._socket),
            ]
        )

    # --- users -------------------------------------------------------------------------------

    @property
    def users(self) -> list[str]:
        """The users who have a Host or a page on this worker, the least recently used first."""
        return self._users.names

    async def host(self, user: str) -> Host | RemoteHost:
        """The Host of a user, created and connected to its servers if there is none.

        Call this whenever you use the Host, rather than keeping it: a Host that is not used is
        closed when its user has no page open. With a `bus` it may be on another worker; then you
        get a `RemoteHost`, which has the same methods for an agent.

        Raises:
            Refused: too many users have one.
            UsageError: it is not a valid user id.
            BusError: it is on another worker, and that cannot be reached.
        """
        if (remote := self._setup.workers.remote_host(user)) is not None:
            return remote
        found = await claim_or_reach(
            partial(self._users.claim, user), partial(self._setup.workers.connect, user)
        )
        return found if isinstance(found, RemoteHost) else await found.started_host()

    async def close(self, user: str) -> None:
        """Close a user's Host, Views and pages, on whichever worker they are, such as at sign-out.

        Raises:
            BusError: they are on another worker, and that cannot be reached.
        """
        workers = self._setup.workers

        async def reach() -> None:
            await (await workers.connect(user)).close_user()

        if not workers.alone:
            await claim_or_reach(partial(self._users.claim, user, even_if_full=True), reach)
        await self._users.close(user)

    async def aclose(self) -> None:
        """Close those of all users. The middleware does so when the application shuts down.

        With a `bus`, other workers take over, and this object cannot be used any more.
        """
        await asyncio.gather(self._users.aclose(), self._setup.workers.close_remote_hosts())
        await self._setup.workers.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    # --- other workers -----------------------------------------------------------------------

    async def _serve_host(self, lease: str, _: bytes, channel: Channel) -> None:
        """Let another worker use the Host of a user who is here."""
        user = await self._users.find(lease)
        if user is None:
            return
        try:
            await user.started_host()
        except Exception as error:  # noqa: BLE001 - all callers get it
            await refuse(channel, error)
        if user.shared is not None:
            await user.shared.serve(channel)

    async def _forward_sandbox(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a sandbox request for a View that is not on this worker."""
        begun = False

        async def send_on(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            name = f"origin:{_host(scope)}"
            bus = await self._setup.workers.bus()
            await forward(bus, name, scope, receive, send_on, kind=_SANDBOX)
        except (NoOwner, OwnerGone):
            if not begun:
                await self._sandbox_app(scope, receive, send)  # which answers that there is no View
        except BusError:
            if not begun:
                await unavailable()(scope, receive, send)

    # --- the application ---------------------------------------------------------------------

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """An ASGI middleware around your application: handles requests for Views only."""

        async def with_views(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await app(scope, receive, lambda message: self._on_lifespan(message, send))
            elif self._is_ours(scope):
                await self(scope, receive, send)
            else:
                await app(scope, receive, send)

        return with_views

    async def _on_lifespan(self, message: Message, send: Send) -> None:
        if message["type"].startswith("lifespan.shutdown."):
            await self.aclose()
        await send(message)

    def _is_ours(self, scope: Scope) -> bool:
        path: str = scope["path"].removeprefix(scope.get("root_path", ""))
        return path.startswith(f"{self.path}/") or self._setup.sandbox.has_host(_host(scope))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the script and the socket below `path`, and the sandboxes on their own hosts."""
        if self._setup.sandbox.has_host(host := _host(scope)):
            if scope["type"] != "http":
                await WebSocket(scope, receive, send).close(_ELSEWHERE)
            elif is_guard(host) or host in self._setup.sandboxes:
                await self._sandbox_app(scope, receive, send)
            elif self._setup.workers.alone:
                self._warn_of_others(host)
                await self._sandbox_app(scope, receive, send)  # which answers that there is no View
            else:
                await self._forward_sandbox(scope, receive, send)
            return
        root: str = scope.get("root_path", "")
        if not root.endswith(self.path):  # it wraps the whole application
            scope = {**scope, "root_path": root + self.path}
        await self._pages_app(scope, receive, send)

    def _warn_of_others(self, host: str) -> None:
        """A View that is not here may be in another process, which cannot be reached."""
        if not self._warned:
            self._warned = True
            _log.warning(_OTHERS, host[:200])

    # --- pages -------------------------------------------------------------------------------

    async def _socket(self, websocket: WebSocket) -> None:
        origin = websocket.headers.get("origin", "")
        try:
            template = self._setup.sandbox.template_for(origin, websocket.headers.get("host", ""))
        except Refused as error:
            _log.warning("A page at %r was refused: %s", origin[:200], error)
            await websocket.close(_ELSEWHERE, str(error))
            return
        try:
            user = await self._who(websocket)
        except TimeoutError:
            await _turn_away(websocket, _FAILED, _UNIDENTIFIED)
            return
        if user is None:
            await _turn_away(websocket, _UNKNOWN, "Nobody is signed in")
            return
        if not await self._setup.shares.of(user).connect():
            await websocket.close(_FULL)  # without a reason, which would need it accepted
            return
        checking = asyncio.create_task(self._check_again(websocket, user))
        try:
            await self._serve_page(websocket, user, template)
        except Refused as error:
            await _turn_away(websocket, _FULL, str(error))
        except BusError as error:
            await _turn_away(websocket, _FAILED, str(error))
        except _GONE:
            pass  # while it was sent something, or before it was accepted
        finally:
            await stop(checking)

    async def _serve_page(self, websocket: WebSocket, user: str, template: str) -> None:
        """Serve a page's socket here, or forward it to the worker that has the user.

        Raises:
            Refused: as for `host`.
            BusError: that worker cannot be reached.
        """
        connect = await websocket.receive()

        async def reach() -> None:
            first, turns = [connect], PageTurns(self._setup.shares.of(user))

            async def receive() -> Message:
                if (pause := turns.next()) is not None:
                    await pause
                message = first.pop() if first else await websocket.receive()
                turns.note_size(len(message.get("text") or ""))
                return message

            try:
                await forward(
                    *(await self._setup.workers.bus(), f"user:{user}"),
                    *(websocket.scope, receive, websocket.send),
                    kind=_PAGE,
                    context={"sandbox": template},
                )
            except OutcomeUnknown as error:
                raise OwnerGone(str(error)) from None  # it was not accepted, so try again
            except RuntimeError:
                return  # the user's session has ended, and this side has closed the socket

        here = await claim_or_reach(partial(self._users.claim, user), reach)
        if here is not None:
            await self._run_page(websocket, here, template)

    async def _forwarded_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page whose socket is on another worker, which has authenticated it."""
        given = scope["extensions"]["transom"]
        websocket = WebSocket(scope, receive, send)
        try:
            await websocket.receive()
        except RuntimeError:
            return  # it was gone before this worker knew of it
        user = await self._users.find(given["name"])
        if user is None:
            await _turn_away(websocket, _FAILED, "The user is not on this worker any more")
        else:
            await self._run_page(websocket, user, given["context"]["sandbox"])

    async def _run_page(self, websocket: WebSocket, user: User, template: str) -> None:
        origin = websocket.headers.get("origin", "")
        make_stage = partial(self._make_stage, user, origin, template)
        try:
            await websocket.accept()
        except _GONE:
            return
        await PageSocket(
            websocket,
            lambda hello: user.pages.connect(hello, origin, make_stage),
            lambda: user.moving,
            user.share,
        ).run()

    async def _who(self, connection: HTTPConnection) -> str | None:
        answer = self._authenticate(connection)
        if answer is None or isinstance(answer, str):
            return answer
        async with asyncio.timeout(self._identify_within):
            return await answer

    async def _check_again(self, websocket: WebSocket, user: str) -> None:
        """Close the socket when the user's session has ended."""
        code, reason = _UNKNOWN, "Nobody is signed in any more"
        try:
            while True:
                await asyncio.sleep(self._recheck)
                if await self._who(websocket) != user:
                    break
        except Exception as error:  # noqa: BLE001 - whatever the application raises
            _report(error)
            code, reason = _FAILED, _UNIDENTIFIED
        with suppress(RuntimeError, *_GONE):
            await websocket.close(code, reason)

    def _make_stage(self, user: User, origin: str, template: str) -> Stage:
        report = self._on_violation
        return Stage(
            listener=user.pages,
            on_violation=None if report is None else partial(report, user.name),
            csp=self._setup.sandbox.csp,
            origin=origin,
            sandbox=template,
            sandboxes=self._setup.sandboxes,
            origins=sorted(self._setup.sandbox.origins),
            backlog=user.backlog,
        )


async def _turn_away(websocket: WebSocket, code: int, reason: str) -> None:
    with suppress(RuntimeError, *_GONE):
        await websocket.accept()
        await websocket.close(code, reason.encode()[:120].decode(errors="ignore"))


def _default_host(_: str, renderer: Seat) -> Host:
    return Host(renderer=renderer, policy=Policy(approve=renderer.approve))


def _host(scope: Scope) -> str:
    return Headers(scope=scope).get("host", "")
