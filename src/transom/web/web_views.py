"""Views inside a web application of one's own, for its many users.

1. The application says who a connection is. Each user has a Host and pages of their own; nothing of
   one user is found by another, whatever a page sends.
2. A Host is made when it is first needed, and closed when its user has no page open and nobody has
   asked for it for a while. The next one goes on with its Views: no id is given twice.
3. Pages connect from the origins that are named. Without any, only on this machine: what production
   needs is not guessed.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Self

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from transom.background import Background
from transom.errors import Refused, UsageError
from transom.host.host import Host
from transom.host.open_views import HostRecords, ViewRecord
from transom.host.page import Page
from transom.host.policy import Policy
from transom.web.asgi import SHARED_FILES, PageSocket, sandbox_app, static_file
from transom.web.csp import CspMode
from transom.web.seat import Seat
from transom.web.stage import MountedView, Stage, Violation
from transom.web.user_pages import UserPages
from transom.web.view_storage import origin_label

__all__ = ["WebViews"]

_log = logging.getLogger("transom.web")

Authenticate = Callable[[HTTPConnection], Awaitable[str | None] | str | None]
ConnectServers = Callable[[str, Host], Awaitable[object]]
MakeHost = Callable[[str, Seat], Host]

_TEMPLATE = re.compile(r"(https?)://\{view\}\.([a-z0-9-]+(?:\.[a-z0-9-]+)*)(:[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_MAX_USER = 200
_MIN_SECRET = 32
_MAX_RECORDS = 100_000  # users without a Host whose ids are known
_MAX_RECORD_BYTES = 64 * 1024 * 1024  # of their Views
_UNKNOWN, _ELSEWHERE, _FULL = 4401, 4403, 4410  # what sockets are closed with; link.js knows them
_FAILED = 1011  # after which a page tries again
_SETTINGS = "WebViews(sandbox=..., origins=..., secret=...)"
_UNCONFIGURED = f"Views are set up for development on this machine only: set {_SETTINGS}"


class _User:
    """What there is of one user."""

    def __init__(
        self,
        name: str,
        show_within: float,
        secret: bytes | None,
        wake: Callable[[_User], Awaitable[object] | None],
    ) -> None:
        self.name = name
        self.used = time.monotonic()
        self.host: Host | None = None
        self.starting: asyncio.Task[Host] | None = None
        self.pages = UserPages(
            lambda: self.host,
            lambda: wake(self),
            show_within=show_within,
            on_away=self.mark_used,
            label_of=None if secret is None else partial(self._label, secret),
        )

    def _label(self, secret: bytes, page: Page) -> str:
        return origin_label(
            secret, user=self.name, server=page.server, identity=page.identity, uri=page.uri
        )

    def mark_used(self) -> None:
        self.used = time.monotonic()

    @property
    def is_idle(self) -> bool:
        starting = self.starting is not None and not self.starting.done()
        return not starting and not len(self.pages)

    async def close(self) -> None:
        await self.pages.close()
        if self.starting is not None:
            self.starting.cancel()
            await asyncio.wait([self.starting])
        if self.host is not None:
            await self.host.aclose()


class _Records:
    """What is kept of users who have no Host now: their Views, and longer which ids they had."""

    def __init__(self) -> None:
        self._numbers: OrderedDict[str, dict[str, int]] = OrderedDict()
        self._views: OrderedDict[str, bytes] = OrderedDict()
        self._bytes = 0

    def __contains__(self, user: str) -> bool:
        return user in self._numbers

    def keep(self, user: str, records: HostRecords) -> None:
        """Keep a user's, in place of those of the least recent users if there is no room."""
        if not records.numbers:
            return
        self._numbers[user] = records.numbers
        # What the user allowed ends with the Host; and a user who is away has pinned nothing.
        data = self._views[user] = msgspec.msgpack.encode(records.views)
        self._bytes += len(data)
        while self._bytes > _MAX_RECORD_BYTES:
            self._bytes -= len(self._views.popitem(last=False)[1])
        while len(self._numbers) > _MAX_RECORDS:
            self.take(next(iter(self._numbers)))

    def take(self, user: str) -> HostRecords | None:
        """A user's, which are not kept any more."""
        numbers, data = self._numbers.pop(user, None), self._views.pop(user, None)
        if numbers is None:
            return None
        if data is None:
            return HostRecords(numbers=numbers)
        self._bytes -= len(data)
        return HostRecords(msgspec.msgpack.decode(data, type=dict[str, ViewRecord]), numbers)


class WebViews:
    """Views in the pages of a web application, with a Host for each of its users.

        views = WebViews(authenticate=lambda connection: connection.session.get("user"),
                         servers=connect_servers)
        app.add_middleware(views.middleware)        # Starlette and FastAPI
        application = views.middleware(application)  # Django, or any other ASGI app

    A page includes the script that is served at `/transom/elements.js`, and has an element
    `<transom-view view="orders-1">` for each View, or a `<transom-stage>` for all of them.

    Args:
        authenticate: who a connection is: takes Starlette's `HTTPConnection`, which has cookies,
            headers and the session, and returns the user's id, or None for nobody. May be async.
            It is called for every connection of a page, and again once a minute.
        servers: `await servers(user, host)` adds the servers of a user to their new Host.
        sandbox: the origins of Views, such as `https://{view}.views.example.com`: a name of their
            own each, below a domain that is used for nothing else, with a wildcard in DNS and in
            its certificate. None: `*.localhost` on the same port, for development on this machine.
        origins: the origins of the pages that may show Views, such as `https://chat.example.com`.
            Needed with `sandbox`.
        secret: at least 32 characters that nobody else knows, and that stay the same, such as those
            of `secrets.token_hex()`. The names of Views are made of it: a user's View finds what
            it stored before, and nobody can guess where it is. Needed with `sandbox`; without one,
            nothing that Views store lasts.
        path: where the script and the socket are served.
        make_host: makes a user's Host, given the renderer that it has to use; by default
            `Host(renderer=renderer, policy=Policy(approve=renderer.approve))`, which asks the user
            on the page.
        csp: how much a View's page may do with itself: `compat` or `strict`.
        max_users: how many users may have a Host or a page at once. For one more, the Host that
            was not used for longest is closed, if its user has no page open.
        idle: seconds until the Host of a user without a page is closed.
        show_within: seconds a View waits for a page to show it.
        on_violation: called with everything a View tried and was not allowed.

    Raises:
        UsageError: `sandbox`, `origins` or `secret` cannot be used; the text says what to set.
    """

    def __init__(
        self,
        *,
        authenticate: Authenticate,
        servers: ConnectServers | None = None,
        sandbox: str | None = None,
        origins: Sequence[str] = (),
        secret: str | None = None,
        path: str = "/transom",
        make_host: MakeHost | None = None,
        csp: CspMode = "compat",
        max_users: int = 1000,
        idle: float = 900.0,
        show_within: float = 10.0,
        on_violation: Callable[[str, Violation], object] | None = None,
    ) -> None:
        self.path = "/" + path.strip("/")
        self._authenticate = authenticate
        self._servers = servers
        self._make_host = make_host or _default_host
        self._csp: CspMode = csp
        self._max_users = max_users
        self._idle = idle
        self._show_within = show_within
        self._on_violation = on_violation
        self._recheck = 60.0
        self._origins = frozenset(origins)
        self._sandbox, self._sandbox_host = _read_sandbox(sandbox, origins)
        self._secret = _read_secret(secret, needed=sandbox is not None)
        self._users: dict[str, _User] = {}
        self._records = _Records()
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._hosts: dict[str, MountedView] = {}
        self._background = Background(_report)
        self._sweeping = False
        self._sandbox_app = sandbox_app(self)
        files = ("elements.js", *SHARED_FILES)
        self._pages_app = Starlette(
            routes=[
                *(Route(f"/{name}", static_file(name)) for name in files),
                WebSocketRoute("/socket", self._socket),
            ]
        )

    # --- users -------------------------------------------------------------------------------

    @property
    def users(self) -> list[str]:
        """The users who have a Host or a page now, the least recently used first."""
        return sorted(self._users, key=lambda name: self._users[name].used)

    async def host(self, user: str) -> Host:
        """The Host of a user, made and connected to its servers if there is none.

        Ask for it whenever you use it, rather than keeping it: a Host that nobody asks for is
        closed when its user has no page open.

        Raises:
            Refused: too many users have one.
            UsageError: that is not a valid user id.
        """
        entry = self._entry(user)
        if entry.starting is None:
            entry.starting = asyncio.create_task(self._start(entry))
        return await asyncio.shield(entry.starting)

    async def close(self, user: str) -> None:
        """End a user's Host, Views and pages, as when they sign out."""
        if (closing := self._begin_closing(user)) is not None:
            await asyncio.shield(closing)

    def _begin_closing(self, user: str) -> asyncio.Task[None] | None:
        if (entry := self._users.pop(user, None)) is not None:
            self._closing[user] = asyncio.create_task(self._close(entry))
        return self._closing.get(user)

    async def _close(self, entry: _User) -> None:
        try:
            await entry.close()
            if entry.host is not None:
                self._records.keep(entry.name, entry.pages.records(entry.host))
        finally:
            del self._closing[entry.name]

    async def aclose(self) -> None:
        """End those of all users. The middleware does so when the application ends."""
        await self._background.aclose()
        self._background, self._sweeping = Background(_report), False
        await asyncio.gather(*(self.close(user) for user in [*self._users, *self._closing]))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _entry(self, user: object) -> _User:
        if not isinstance(user, str) or not 0 < len(user) <= _MAX_USER:
            raise UsageError(
                f"A user's id is a str of 1 to {_MAX_USER} characters, not {str(user)[:80]!r}"
            )
        entry = self._users.get(user)
        if entry is None:
            if len(self._users) >= self._max_users:
                self._make_room()
            entry = _User(user, self._show_within, self._secret, self._wake)
            self._users[user] = entry
            if not self._sweeping:
                self._sweeping = True
                self._background.start(self._sweep())
        entry.mark_used()
        return entry

    def _make_room(self) -> None:
        idle = [user for user in self.users if self._users[user].is_idle]
        if not idle:
            raise Refused(f"{self._max_users} users have Views open, which is the most allowed")
        self._begin_closing(idle[0])

    def _wake(self, entry: _User) -> Awaitable[object] | None:
        """What to wait for until a user who has Views has a Host; None: there is one, or none."""
        starting = entry.starting
        known = starting is not None or entry.name in self._records or entry.name in self._closing
        return self.host(entry.name) if known and not (starting and starting.done()) else None

    async def _start(self, entry: _User) -> Host:
        try:
            if (closing := self._closing.get(entry.name)) is not None:
                await asyncio.wait([closing])
            host = entry.host = self._make_host(entry.name, entry.pages.seat)
            await host.__aenter__()
            entry.pages.attach_host(host)
            if self._servers is not None:
                await self._servers(entry.name, host)
            if (records := self._records.take(entry.name)) is not None:
                entry.pages.restore(host, records)
            entry.mark_used()
        except BaseException:
            host, entry.host, entry.starting = entry.host, None, None
            if host is not None:
                await host.aclose()
            raise
        return host

    async def _sweep(self) -> None:
        """Close what nobody uses any more."""
        while self._users:
            await asyncio.sleep(self._idle / 4)
            late = time.monotonic() - self._idle
            for user, entry in list(self._users.items()):
                if entry.used < late and entry.is_idle:
                    await self.close(user)
        self._sweeping = False

    # --- the application ---------------------------------------------------------------------

    def middleware(self, app: ASGIApp) -> ASGIApp:
        """An application around yours: answers for Views, and leaves everything else to it."""

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
        return path.startswith(f"{self.path}/") or self._is_sandbox(scope)

    def _is_sandbox(self, scope: Scope) -> bool:
        return self._sandbox_host.fullmatch(Headers(scope=scope).get("host", "")) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the script and the socket below `path`, and the sandboxes on their own hosts."""
        if self._is_sandbox(scope):
            if scope["type"] == "http":
                await self._sandbox_app(scope, receive, send)
            else:
                await WebSocket(scope, receive, send).close(_ELSEWHERE)
            return
        root: str = scope.get("root_path", "")
        if not root.endswith(self.path):  # not mounted there, but around the whole application
            scope = {**scope, "root_path": root + self.path}
        await self._pages_app(scope, receive, send)

    def find(self, host: str) -> MountedView | None:
        """The View whose origin has this `Host`."""
        return self._hosts.get(host)

    # --- pages -------------------------------------------------------------------------------

    async def _socket(self, websocket: WebSocket) -> None:
        origin = websocket.headers.get("origin", "")
        try:
            sandbox = self._sandbox_for(origin, websocket.headers.get("host", ""))
        except Refused as error:
            _log.warning("A page at %r was refused: %s", origin[:200], error)
            await websocket.close(_ELSEWHERE, str(error))
            return
        user = await self._who(websocket)
        await websocket.accept()
        if user is None:
            await websocket.close(_UNKNOWN, "Nobody is signed in")
            return
        try:
            entry = self._entry(user)
        except Refused as error:
            await websocket.close(_FULL, str(error))
            return
        checking = asyncio.create_task(self._check_again(websocket, user))
        try:
            await PageSocket(
                websocket,
                lambda hello: entry.pages.connect(
                    hello, origin, lambda: self._make_stage(user, origin, sandbox)
                ),
            ).run()
        finally:
            checking.cancel()
            await asyncio.wait([checking])

    async def _who(self, connection: HTTPConnection) -> str | None:
        answer = self._authenticate(connection)
        return answer if answer is None or isinstance(answer, str) else await answer

    async def _check_again(self, websocket: WebSocket, user: str) -> None:
        """A session that has ended ends its sockets, too."""
        code, reason = _UNKNOWN, "Nobody is signed in any more"
        try:
            while True:
                await asyncio.sleep(self._recheck)
                if await self._who(websocket) != user:
                    break
        except Exception as error:  # noqa: BLE001 - whatever the application raises
            _report(error)
            code, reason = _FAILED, "Who this is could not be found out"
        await websocket.close(code, reason)

    def _sandbox_for(self, origin: str, host: str) -> str:
        """Where the Views of a page go; Refused: it is none of ours."""
        if self._sandbox:
            if origin not in self._origins:
                raise Refused("Not from here: WebViews(origins=...) does not name this origin")
            return self._sandbox
        name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if (name or port) not in _LOOPBACK or origin.partition("://")[2] != host:
            raise Refused(_UNCONFIGURED)
        return f"http://*.localhost{colon}{port}" if colon else "http://*.localhost"

    def _make_stage(self, user: str, origin: str, sandbox: str) -> Stage:
        stage = Stage(csp=self._csp, origin=origin, sandbox=sandbox, hosts=self._hosts)
        if (report := self._on_violation) is not None:
            stage.on_violation = lambda violation: report(user, violation)
        return stage


def _default_host(_: str, renderer: Seat) -> Host:
    return Host(renderer=renderer, policy=Policy(approve=renderer.approve))


def _read_sandbox(sandbox: str | None, origins: Sequence[str]) -> tuple[str, re.Pattern[str]]:
    """The origins of Views as the Stage takes them, and the hosts that they are at."""
    if sandbox is None:
        if origins:
            raise UsageError(
                "WebViews(origins=...) needs a sandbox, too, such as "
                "sandbox='https://{view}.views.example.com': a domain for Views alone"
            )
        return "", re.compile(r"[a-z0-9-]+\.localhost(:[0-9]{1,5})?")
    found = _TEMPLATE.fullmatch(sandbox)
    if found is None or (found[1] == "http" and found[2] != "localhost"):
        raise UsageError(
            f"WebViews(sandbox={sandbox!r}) cannot be used: it is https, and has {{view}} in place "
            "of the first part of the name, such as 'https://{view}.views.example.com'"
        )
    if not origins:
        raise UsageError(
            "WebViews(sandbox=...) needs the origins of your pages, too, such as "
            "origins=['https://chat.example.com']"
        )
    for origin in origins:
        parts = _ORIGIN.fullmatch(origin)
        if parts is None or (origin.startswith("http:") and parts[1] not in _LOOPBACK):
            raise UsageError(
                f"WebViews(origins=...) has {origin!r}: an origin is https:// and a name, and a "
                "port if there is one, without a path, such as 'https://chat.example.com'"
            )
        if parts[1] == found[2] or parts[1].endswith(f".{found[2]}"):
            raise UsageError(
                f"{origin} is below the domain of the Views, {found[2]}: give them one of their own"
            )
    hosts = rf"[a-z0-9-]+\.{re.escape(found[2])}{found[3] or ''}"
    return sandbox.replace("{view}", "*"), re.compile(hosts)


def _read_secret(secret: str | None, *, needed: bool) -> bytes | None:
    if (secret is None and needed) or (secret is not None and len(secret) < _MIN_SECRET):
        raise UsageError(
            "WebViews(secret=...) has to be set: at least 32 characters that stay the same and "
            "that nobody else knows, such as secrets.token_hex() makes"
        )
    return None if secret is None else secret.encode()


def _report(error: BaseException) -> None:
    _log.error("%s: %s", type(error).__name__, error, exc_info=error)
