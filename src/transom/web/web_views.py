"""Views inside the pages of a web application, for its many users.

1. The application authenticates connections. Each user has their own Host and pages, and cannot
   reach anything of another user.
2. A Host is created on first use, and closed when its user has had no page open and nothing has
   used it for a while. The next one takes over its Views, so that no id is used twice.
3. With a bus, a user is on one worker, under a lease. Other workers forward pages and sandboxes to
   it; when it ends or dies, the next worker that needs the user takes over the Views.
4. Pages connect from the given origins. Without any, only pages on this machine can: settings for
   production are not guessed.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Self

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.requests import HTTPConnection
from starlette.routing import Route, WebSocketRoute
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from transom.background import Background, ignore, logs_errors, stop
from transom.bus import Bus, Lease, forward, serve_forwarded
from transom.bus.forwarding import claim_or_reach
from transom.channel import Channel
from transom.errors import (
    BusError,
    ConnectionClosed,
    NoOwner,
    OutcomeUnknown,
    OwnerGone,
    Refused,
    UsageError,
)
from transom.host.host import Host
from transom.host.page import Page
from transom.host.policy import Policy
from transom.web.asgi import PageSocket, sandbox_app, static_file, unavailable
from transom.web.csp import CspMode
from transom.web.mounted_views import Sandboxes, Violation
from transom.web.remote_host import RemoteHost, SharedHost, refuse
from transom.web.seat import Seat
from transom.web.stage import Stage, StageListener
from transom.web.users import KeptRecords, SharedRecords, User, read_records
from transom.web.view_storage import origin_label

__all__ = ["WebViews"]

_log = logging.getLogger("transom.web")
_report = logs_errors(_log)

Authenticate = Callable[[HTTPConnection], Awaitable[str | None] | str | None]
ConnectServers = Callable[[str, Host], Awaitable[object]]
MakeHost = Callable[[str, Seat], Host]

_TEMPLATE = re.compile(r"(https?)://\{view\}\.([a-z0-9-]+(?:\.[a-z0-9-]+)*)(:[0-9]{1,5})?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:]+\]|[a-z0-9.-]+)(:[0-9]{1,5})?")
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_MAX_USER = 200
_MIN_SECRET = 32
_MAX_ORIGINS = 100  # of one user's Views that are no longer shown
_KEEP_RECORDS = 30 * 86400.0  # seconds that records are stored after a user's last visit
_PAGE, _SANDBOX, _HOST = "web-page", "web-sandbox", "web-host"  # kinds of channels between workers
_UNKNOWN, _ELSEWHERE, _FULL = 4401, 4403, 4410  # close codes of sockets; the same as in link.js
_FAILED = 1011  # after which a page retries
_SETTINGS = "WebViews(sandbox=..., origins=..., secret=...)"
_UNCONFIGURED = f"Views are set up for development on this machine only: set {_SETTINGS}"


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
            called for every connection of a page, and again once a minute.
        servers: `await servers(user, host)` adds the servers of a user to their new Host.
        sandbox: the origins of Views, such as `https://{view}.views.example.com`: each has a name
            of its own, below a domain that is used for nothing else, with a wildcard in DNS and in
            its certificate. None: `*.localhost` on the same port, for development on this machine.
        origins: the origins of the pages that may show Views, such as `https://chat.example.com`.
            Needed with `sandbox`.
        secret: at least 32 secret characters that stay the same, such as from
            `secrets.token_hex()`. The origins of Views are derived from it: a user's View finds
            what it stored before, and nobody can guess its address. Needed with `sandbox`; without
            one, Views find nothing that they stored before.
        path: where the script and the socket are served.
        make_host: makes a user's Host, given the renderer that it has to use; by default
            `Host(renderer=renderer, policy=Policy(approve=renderer.approve))`, which asks the user
            on the page.
        csp: what a View's page may run: `compat` or `strict`.
        max_users: how many users may have a Host or a page at once. To make room, the least
            recently used Host without an open page is closed.
        idle: seconds until the Host of a user without a page is closed.
        show_within: seconds a View waits for a page to show it.
        on_violation: called with everything that a View's policy blocked.
        bus: connects the workers of an application that runs in several processes: the URL of a
            Redis (`redis://`, `rediss://`), or a `transom.bus.Bus` that was created in this process
            and is opened and closed with this. Each user's Host and pages are on one worker; the
            others forward to it, and one of them takes over the user's Views when it ends or dies.
            None: this is the only process.

    Raises:
        UsageError: `sandbox`, `origins`, `secret` or `bus` is invalid; the text says what to set.
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
        bus: str | Bus | None = None,
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
        self._bus_url = bus if isinstance(bus, str) else None
        self._bus = _make_bus(bus) if isinstance(bus, str) else bus
        self._joining: asyncio.Task[Bus] | None = None
        self._ended = False
        self._remote: dict[str, RemoteHost] = {}
        self._users: dict[str, User] = {}
        self._records = KeptRecords()
        self._closing: dict[str, asyncio.Task[None]] = {}
        self._sandboxes = Sandboxes()
        self._background = Background(_report)
        self._sweeping = False
        self._sandbox_app = sandbox_app(self._sandboxes)
        self._pages_app = Starlette(
            routes=[
                Route("/elements.js", static_file("elements.js")),
                WebSocketRoute("/socket", self._socket),
            ]
        )

    # --- users -------------------------------------------------------------------------------

    @property
    def users(self) -> list[str]:
        """The users who have a Host or a page on this worker, the least recently used first."""
        return sorted(self._users, key=lambda name: self._users[name].used)

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
        remote = self._remote.get(user)
        if remote is not None and not remote.closed:
            return remote
        found = await claim_or_reach(
            partial(self._claim, user), partial(self._connect_remote, user)
        )
        return found if isinstance(found, RemoteHost) else await self._local_host(found)

    async def _local_host(self, entry: User) -> Host:
        if entry.starting is None:
            entry.starting = asyncio.create_task(self._start(entry))
        return await asyncio.shield(entry.starting)

    async def close(self, user: str) -> None:
        """Close a user's Host, Views and pages, on whichever worker they are, such as at sign-out.

        Raises:
            BusError: they are on another worker, and that cannot be reached.
        """
        if self._bus is not None and user not in self._users and user not in self._closing:
            with suppress(NoOwner, OwnerGone):
                if await self._claim(user) is None:
                    remote = await self._connect_remote(user)
                    await remote.close_user()
        if (closing := self._begin_closing(user)) is not None:
            await asyncio.shield(closing)

    def _begin_closing(self, user: str, *, moving: bool = False) -> asyncio.Task[None] | None:
        if (entry := self._users.pop(user, None)) is not None:
            entry.moving = moving
            self._closing[user] = asyncio.create_task(self._close(entry))
        return self._closing.get(user)

    async def _close(self, entry: User) -> None:
        try:
            if entry.moving and entry.records is not None:
                await entry.records.finish()
            if entry.shared is not None:
                entry.shared.close()
            await entry.pages.close()
            if entry.moving:
                await entry.release()
            await entry.close_host()
            if entry.moving:
                return
            # The user's grants end with the Host.
            records = entry.stored if entry.host is None else entry.current_records()
            if records is not None and entry.lease is None:
                self._records.keep(entry.name, msgspec.structs.replace(records, grants=[]))
            elif records is not None and entry.lease is not None:
                stored = SharedRecords(entry.lease, lambda: records, records)
                await (entry.records or stored).finish(grants=False)
            await entry.release()
        finally:
            del self._closing[entry.name]

    async def aclose(self) -> None:
        """Close those of all users. The middleware does so when the application shuts down.

        With a `bus`, other workers take over, and this object cannot be used any more.
        """
        await self._background.aclose()
        self._background, self._sweeping = Background(_report), False
        moving = self._bus is not None
        closing = [self._begin_closing(user, moving=moving) for user in list(self._users)]
        remote, self._remote = self._remote, {}
        await asyncio.gather(
            *(each for each in [*closing, *self._closing.values()] if each is not None),
            *(each.aclose() for each in remote.values()),
        )
        self._ended = True
        if self._joining is not None:
            joining, self._joining = self._joining, None
            with suppress(BusError):
                await (await joining).__aexit__()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    def _entry(self, user: object) -> User:
        user = _check_user(user)
        entry = self._users.get(user)
        if entry is None:
            if len(self._users) >= self._max_users:
                self._make_room()
            entry = User(user, self._show_within, self._wake, self._label)
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

    def _wake(self, entry: User) -> Awaitable[object] | None:
        """An awaitable that creates the Host of a user who had Views; None if it is not needed."""
        starting, user = entry.starting, entry.name
        known = starting is not None or entry.stored is not None
        known = known or user in self._records or user in self._closing
        return self._local_host(entry) if known and not (starting and starting.done()) else None

    async def _start(self, entry: User) -> Host:
        try:
            if (closing := self._closing.get(entry.name)) is not None:
                await asyncio.wait([closing])
            host = entry.host = self._make_host(entry.name, entry.pages.seat)
            await host.__aenter__()
            entry.pages.attach_host(host)
            if self._servers is not None:
                await self._servers(entry.name, host)
            records = self._records.take(entry.name) if entry.lease is None else entry.stored
            if records is not None:
                entry.pages.restore(host, records)
            if entry.lease is not None:
                self._share(entry, entry.lease, host)
            entry.stored = None
            entry.mark_used()
        except BaseException:
            host, entry.host, entry.starting = entry.host, None, None
            if host is not None:
                await host.aclose()
            raise
        return host

    async def _sweep(self) -> None:
        """Close what is not used any more."""
        while self._users:
            await asyncio.sleep(self._idle / 4)
            late = time.monotonic() - self._idle
            for user, entry in list(self._users.items()):
                if entry.used < late and entry.is_idle:
                    await self.close(user)
        self._sweeping = False

    # --- other workers -----------------------------------------------------------------------

    async def _join(self) -> Bus:
        """The bus, entered on first use.

        Raises:
            BusUnreachable: Redis cannot be reached.
        """
        if self._ended:
            raise BusError("This worker is being shut down")
        if self._joining is None:
            self._joining = asyncio.create_task(self._enter_bus())
        return await asyncio.shield(self._joining)

    async def _enter_bus(self) -> Bus:
        if self._bus_url is not None:
            # Not in the constructor: processes that are forked after that would be one worker.
            self._bus = _make_bus(self._bus_url)
        assert self._bus is not None  # noqa: S101 - nobody joins without one
        bus = self._bus
        bus.on_open(_PAGE, serve_forwarded(self._forwarded_page))
        bus.on_open(_SANDBOX, serve_forwarded(self._sandbox_app))
        bus.on_open(_HOST, self._serve_host)
        try:
            return await bus.__aenter__()
        except BaseException:
            self._joining = None  # so that it is retried
            raise

    async def _claim(self, user: str) -> User | None:
        """Claim a user; None if another worker has them.

        Raises:
            Refused, UsageError: as for `host`.
            BusUnreachable: the user is not on this worker, and Redis cannot be reached.
        """
        if self._bus is None or user in self._users:
            return self._entry(user)
        bus = await self._join()
        if (closing := self._closing.get(_check_user(user))) is not None:
            await asyncio.wait([closing])
        lease = await bus.claim(f"user:{user}", self._on_lost, self._on_renewed)
        if lease is None:
            return None
        try:
            stored = read_records(await bus.records(lease.name))
            known = user in self._users  # another task was faster
            entry = self._entry(user)
        except BaseException:
            if user not in self._users:
                await lease.release()
            raise
        if not known:
            entry.lease, entry.stored = lease, stored
        return entry

    def _share(self, entry: User, lease: Lease, host: Host) -> None:
        """Store the records of a user's Host on the bus, and let other workers use the Host."""
        entry.records = SharedRecords(lease, entry.current_records, entry.stored)
        entry.records.watch(host)
        entry.shared = SharedHost(host, entry.mark_used, lambda: self.close(entry.name))

    def _on_lost(self, lease: Lease) -> None:
        """Another worker has taken over a user while this one was cut off from Redis."""
        user = lease.name.removeprefix("user:")
        if (entry := self._users.get(user)) is not None and entry.lease is lease:
            self._begin_closing(user, moving=True)

    def _on_renewed(self, lease: Lease) -> None:
        entry = self._users.get(lease.name.removeprefix("user:"))
        if entry is not None and entry.lease is lease and entry.records is not None:
            entry.records.rewrite()

    async def _connect_remote(self, user: str) -> RemoteHost:
        bus = await self._join()
        remote = RemoteHost(await bus.open(f"user:{user}", _HOST))
        try:
            await remote.connect()
        except ConnectionClosed as error:
            raise OwnerGone(str(error)) from error
        for name in [name for name, known in self._remote.items() if known.closed]:
            del self._remote[name]
        self._remote[user] = remote
        return remote

    async def _serve_host(self, name: str, _: bytes, channel: Channel) -> None:
        entry = await self._find_user(name)
        if entry is None:
            return
        try:
            await self._local_host(entry)
        except Exception as error:  # noqa: BLE001 - all callers get it
            await refuse(channel, error)
        if entry.shared is not None:
            await entry.shared.serve(channel)

    async def _find_user(self, name: str) -> User | None:
        """A user whom another worker believes to be here."""
        user = name.removeprefix("user:")
        if (closing := self._closing.get(user)) is not None:
            await asyncio.wait([closing])  # the other worker can claim the user then
        return self._users.get(user)

    async def _label(self, entry: User, page: Page, stage: Stage) -> str | None:
        """The label of a View's origin, claimed so that other workers find it here."""
        label = None
        if self._secret is not None:
            label = origin_label(
                self._secret,
                user=entry.name,
                server=page.server,
                identity=page.identity,
                uri=page.uri,
            )
        if entry.lease is None:
            return label
        for wanted in (label, None):
            label = stage.free_label(page, wanted)
            host = stage.host_of(label)
            try:
                bus = await self._join()
                lease = await bus.claim(f"origin:{host}", ignore)
            except BusError as error:  # pages on this worker still see it
                _log.warning("Other workers do not know where a View is: %s", error)
                return label
            if lease is not None:
                entry.origins[host] = lease
                break
        unused = [each for each in entry.origins if each not in self._sandboxes]
        for each in unused[:-_MAX_ORIGINS]:  # except the newest, which is about to be used
            self._background.start(entry.origins.pop(each).release())
        return label

    async def _forward_sandbox(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward a sandbox request for a View that is not on this worker."""
        begun = False

        async def send_on(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            name = f"origin:{Headers(scope=scope).get('host', '')}"
            await forward(await self._join(), name, scope, receive, send_on, kind=_SANDBOX)
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
        return path.startswith(f"{self.path}/") or self._is_sandbox(scope)

    def _is_sandbox(self, scope: Scope) -> bool:
        return self._sandbox_host.fullmatch(Headers(scope=scope).get("host", "")) is not None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the script and the socket below `path`, and the sandboxes on their own hosts."""
        if self._is_sandbox(scope):
            here = self._bus is None or Headers(scope=scope).get("host", "") in self._sandboxes
            if scope["type"] == "http" and here:
                await self._sandbox_app(scope, receive, send)
            elif scope["type"] == "http":
                await self._forward_sandbox(scope, receive, send)
            else:
                await WebSocket(scope, receive, send).close(_ELSEWHERE)
            return
        root: str = scope.get("root_path", "")
        if not root.endswith(self.path):  # it wraps the whole application
            scope = {**scope, "root_path": root + self.path}
        await self._pages_app(scope, receive, send)

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
        if user is None:
            await _turn_away(websocket, _UNKNOWN, "Nobody is signed in")
            return
        checking = asyncio.create_task(self._check_again(websocket, user))
        try:
            await self._serve_page(websocket, user, sandbox)
        except Refused as error:
            await _turn_away(websocket, _FULL, str(error))
        except BusError as error:
            await _turn_away(websocket, _FAILED, str(error))
        finally:
            await stop(checking)

    async def _serve_page(self, websocket: WebSocket, user: str, sandbox: str) -> None:
        """Serve a page's socket here, or forward it to the worker that has the user.

        Raises:
            Refused: as for `host`.
            BusError: that worker cannot be reached.
        """
        connect = await websocket.receive()

        async def reach() -> None:
            first = [connect]

            async def receive() -> Message:
                return first.pop() if first else await websocket.receive()

            try:
                await forward(
                    *(await self._join(), f"user:{user}"),
                    *(websocket.scope, receive, websocket.send),
                    kind=_PAGE,
                    context={"sandbox": sandbox},
                )
            except OutcomeUnknown as error:
                raise OwnerGone(str(error)) from None  # it was not accepted, so try again
            except RuntimeError:
                return  # the user's session has ended, and this side has closed the socket

        entry = await claim_or_reach(partial(self._claim, user), reach)
        if entry is not None:
            await self._run_page(websocket, entry, sandbox)

    async def _forwarded_page(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a page whose socket is on another worker, which has authenticated it."""
        given = scope["extensions"]["transom"]
        websocket = WebSocket(scope, receive, send)
        await websocket.receive()
        entry = await self._find_user(given["name"])
        if entry is None:
            await _turn_away(websocket, _FAILED, "The user is not on this worker any more")
        else:
            await self._run_page(websocket, entry, given["context"]["sandbox"])

    async def _run_page(self, websocket: WebSocket, entry: User, sandbox: str) -> None:
        origin = websocket.headers.get("origin", "")
        await websocket.accept()
        await PageSocket(
            websocket,
            lambda hello: entry.pages.connect(
                hello, origin, partial(self._make_stage, entry.name, origin, sandbox)
            ),
            lambda: entry.moving,
        ).run()

    async def _who(self, connection: HTTPConnection) -> str | None:
        answer = self._authenticate(connection)
        return answer if answer is None or isinstance(answer, str) else await answer

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
            code, reason = _FAILED, "The user could not be identified"
        await websocket.close(code, reason)

    def _sandbox_for(self, origin: str, host: str) -> str:
        """The sandbox origin for the Views of a page; Refused if its origin is not allowed."""
        if self._sandbox:
            if origin not in self._origins:
                raise Refused("This origin is not allowed: WebViews(origins=...) does not name it")
            return self._sandbox
        name, colon, port = host.rpartition(":") if not host.endswith("]") else (host, "", "")
        if (name or port) not in _LOOPBACK or origin.partition("://")[2] != host:
            raise Refused(_UNCONFIGURED)
        return f"http://*.localhost{colon}{port}" if colon else "http://*.localhost"

    def _make_stage(self, user: str, origin: str, sandbox: str, listener: StageListener) -> Stage:
        report = self._on_violation
        return Stage(
            listener=listener,
            on_violation=None if report is None else partial(report, user),
            csp=self._csp,
            origin=origin,
            sandbox=sandbox,
            sandboxes=self._sandboxes,
        )


def _make_bus(url: str) -> Bus:
    return Bus(url, keep_records=_KEEP_RECORDS)


async def _turn_away(websocket: WebSocket, code: int, reason: str) -> None:
    with suppress(RuntimeError, OSError):  # it is gone already
        await websocket.accept()
        await websocket.close(code, reason.encode()[:120].decode(errors="ignore"))


def _check_user(user: object) -> str:
    if not isinstance(user, str) or not 0 < len(user) <= _MAX_USER:
        raise UsageError(
            f"A user's id is a str of 1 to {_MAX_USER} characters, not {str(user)[:80]!r}"
        )
    return user


def _default_host(_: str, renderer: Seat) -> Host:
    return Host(renderer=renderer, policy=Policy(approve=renderer.approve))


def _read_sandbox(sandbox: str | None, origins: Sequence[str]) -> tuple[str, re.Pattern[str]]:
    """The sandbox in the Stage's form, and a pattern of its hosts."""
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
