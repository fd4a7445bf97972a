"""The Stage and its sandbox as two ASGI apps, for two origins.

`stage_app` serves the page and its one socket. `sandbox_app` serves, for each View, the page that
contains it, with the View's policy as a response header. Both answer only to their own `Host`,
which prevents DNS rebinding.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from importlib.resources import files
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from transom.background import stop
from transom.errors import PeerError, Refused
from transom.fair_share import FairShare, PageTurns
from transom.web.mounted_views import MISSING, MountedView, Sandboxes, is_guard
from transom.web.page_link import Link
from transom.web.stage import Hello, Stage

_HELLO_WITHIN = 5.0
_MAX_COOKIES = 180  # as many as a browser has for one domain
_COOKIE_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_MAX_REPORT = 16 * 1024
_SANDBOX = ("sandbox.js", "drive.js")
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_ALWAYS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-DNS-Prefetch-Control": "off",
}
_NOTHING = {**_ALWAYS, "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'"}

# The path of the sandbox page on a View's origin; the same as in view.ts. A page that is shared
# with other Stages may frame only this path below `localhost`.
_SANDBOX_PATH = "/transom-view"

# The codes that sockets are closed with; the same as in link.ts.
_BROKEN, _UNKNOWN, _ELSEWHERE, _OVER, _LEAVING = 4400, 4401, 4403, 4410, 4001
_MOVED = 1012  # after which a page reconnects, maybe to another worker
_GOING_AWAY = 1001  # what a browser closes a socket with when it leaves the page


@cache
def _text(name: str) -> str:
    return (files("transom.web") / "static" / name).read_text("utf-8")


def _static(name: str, headers: dict[str, str], **words: str) -> Response:
    text = _text(name)
    for word, value in words.items():
        text = text.replace(f"%{word}%", value)
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(text, media_type=kind, headers={**_ALWAYS, **headers})


def static_file(name: str) -> Callable[[Request], Awaitable[Response]]:
    """Serves one of the files of this package, without authentication."""

    async def endpoint(_: Request) -> Response:
        return _static(name, {})

    return endpoint


async def _missing(_: Request, error: Exception) -> Response:
    status, text = 500, "Failed"
    if isinstance(error, HTTPException):
        status, text = error.status_code, error.detail
    return PlainTextResponse(text, status, headers=_NOTHING)


# --- the Stage -------------------------------------------------------------------------------


def stage_app(
    stage: Stage, *, shared: bool = False, page: Literal["stage", "dev"] = "stage"
) -> Starlette:
    """The Stage's page and socket. Mount it anywhere; `stage.origin` must say where.

    `shared`: the page may show the Views of other Stages on this machine as well. `page`: which
    page it is, that of `transom dev` or the one that shows nothing but Views.
    """

    def here(host: str | None) -> bool:
        return host is not None and host == urlsplit(stage.origin).netloc

    def serve(name: str) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            if not here(request.headers.get("host")):
                raise HTTPException(421, "This host name is not served here")
            return _static(name, {"Content-Security-Policy": _stage_csp(stage, shared=shared)})

        return endpoint

    async def socket(websocket: WebSocket) -> None:
        headers = websocket.headers
        origin = headers.get("origin")
        if not here(headers.get("host")) or origin is None or not stage.allows_origin(origin):
            await websocket.close(_ELSEWHERE, "This origin is not allowed")
            return
        await websocket.accept()
        await PageSocket(websocket, lambda hello: stage.connect_page(hello, origin)).run()

    return Starlette(
        routes=[
            Route("/", serve(f"{page}.html")),
            *(
                Route(f"/{name}", serve(name))
                for name in (f"{page}.js", "views.js", f"{page}.css", "colours.css")
            ),
            WebSocketRoute("/socket", socket),
        ],
        exception_handlers={HTTPException: _missing},
    )


def _stage_csp(stage: Stage, *, shared: bool) -> str:
    sockets = stage.origin.replace("http", "ws", 1)
    frames = stage.sandbox or "'none'"
    if shared:
        # Other Stages on this machine: their ports are not known yet, so only paths are fixed.
        sockets += " ws://127.0.0.1:*/socket"
        frames += f" http://*.localhost:*{_SANDBOX_PATH}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        f"connect-src 'self' {sockets}; frame-src {frames}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class PageSocket:
    """Connects one socket of a page to its link, both ways.

    `connect` returns the link for a page's `Hello`, and whether it is a resumed one. `moves` says
    whether a page whose link has ended should reconnect. `share` is the user's part of the time.
    """

    def __init__(
        self,
        websocket: WebSocket,
        connect: Callable[[Hello], tuple[Link, bool]],
        moves: Callable[[], bool] = lambda: False,
        share: FairShare | None = None,
    ) -> None:
        self._websocket = websocket
        self._turns = PageTurns(share or FairShare(1.0))
        self._moves = moves
        self._connect = connect
        self._outbox: asyncio.Queue[str | None] = asyncio.Queue()
        self._reason = ""
        self._closed = asyncio.get_running_loop().create_future()

    async def run(self) -> None:
        """Pass messages both ways until the socket closes."""
        try:
            async with asyncio.timeout(_HELLO_WITHIN):
                text = await self._websocket.receive_text()
            hello = msgspec.json.decode(text, type=Hello)
            link, resumed = self._connect(hello)
        except (
            *(TimeoutError, msgspec.DecodeError, RecursionError),
            *(PeerError, WebSocketDisconnect, KeyError),
        ):
            await self._close(_UNKNOWN, "Who are you?")
            return
        except Refused as error:
            await self._close(_OVER, str(error))
            return
        answer = {"page": link.id, "received": link.received, "resumed": resumed}
        self._outbox.put_nowait(msgspec.json.encode(answer).decode())
        writer = asyncio.create_task(self._write())
        leaving = False
        try:
            link.attach(self._outbox.put_nowait, hello.received if resumed else 0, self._hang_up)
            while True:
                if (pause := self._turns.next()) is not None:
                    await pause
                text = await self._websocket.receive_text()
                self._turns.note_size(len(text))
                link.feed(text)
        except WebSocketDisconnect as gone:
            leaving = gone.code in (_LEAVING, _GOING_AWAY)
        except RuntimeError:
            pass  # this side has closed it, and the page was still sending
        except KeyError:
            await self._close(_BROKEN, "A frame is text")
        except PeerError as error:
            await self._close(_BROKEN, str(error))
        finally:
            link.detach(self._outbox.put_nowait, leaving=leaving)
            if not self._closed.done():
                self._closed.set_result(None)
            await stop(writer)

    def _hang_up(self, reason: str) -> Awaitable[None]:
        self._reason = reason
        self._outbox.put_nowait(None)
        return self._closed

    async def _write(self) -> None:
        try:
            while (text := await self._outbox.get()) is not None:
                await self._websocket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):
            return  # reading fails too, which ends the socket
        await self._close(_MOVED if self._moves() else _OVER, self._reason)

    async def _close(self, code: int, reason: str) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):  # it was closed already
            await self._websocket.close(code, reason.encode()[:120].decode(errors="ignore"))


# --- the sandbox -----------------------------------------------------------------------------


def unavailable() -> Response:
    """The response of a sandbox when its View cannot be looked up: anyone may read it."""
    return PlainTextResponse("The View cannot be looked up now", 503, headers=_NOTHING)


def sandbox_app(sandboxes: Sandboxes, clears: Callable[[str], bool] = lambda _: False) -> Starlette:
    """The pages that hold Views, each on an origin of its own: for `stage.sandboxes`.

    `clears` says whether the browser should delete its storage for the origin with a `Host`.

    Everything that is served here has the View's policy, so that no document of its origin is
    without one.
    """

    def find(request: Request) -> MountedView:
        mounted = sandboxes.find(request.headers.get("host", ""), request.url.query)
        if mounted is None:
            raise HTTPException(404, "There is no View here")
        return mounted

    async def page(request: Request) -> Response:
        if is_guard(host := request.headers.get("host", "")):
            return _without_cookies(
                request, _static("sandbox.html", _guard_headers(host), stage="", script="guard.js")
            )
        if clears(host):
            return Response(headers={**_NOTHING, "Clear-Site-Data": '"storage", "cookies"'})
        mounted = find(request)
        policy = {"Content-Security-Policy": mounted.csp}
        shown = _static("sandbox.html", policy, stage=mounted.page_origin, script="sandbox.js")
        return _without_cookies(request, shown)

    async def guard_script(request: Request) -> Response:
        if not is_guard(host := request.headers.get("host", "")):
            raise HTTPException(404, "There is no guard here")
        return _without_cookies(request, _static("guard.js", _guard_headers(host)))

    async def script(request: Request) -> Response:
        name = request.url.path.removeprefix("/")
        shown = _static(name, {"Content-Security-Policy": find(request).csp})
        return _without_cookies(request, shown)

    async def report(request: Request) -> Response:
        mounted = find(request)
        body = b""
        with suppress(ClientDisconnect):
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_REPORT:
                    raise HTTPException(413, "Too large")
            violation = _read_report(body)
            if violation is not None:
                mounted.report_violation(*violation)
        return Response(status_code=204, headers=_NOTHING)

    async def missing(request: Request) -> Response:
        """A file that a page names beside itself: it has no folder, so there is none."""
        find(request).report_violation(MISSING, request.url.path.removeprefix("/"))
        raise HTTPException(404, "There is no such file")

    return Starlette(
        routes=[
            Route(_SANDBOX_PATH, page),
            Route("/guard.js", guard_script),
            *(Route(f"/{name}", script) for name in _SANDBOX),
            Route("/csp-report", report, methods=["POST"]),
            Route("/{path:path}", missing),
        ],
        exception_handlers={HTTPException: _missing},
    )


def _guard_headers(host: str) -> dict[str, str]:
    """A guard runs its own script and frames sandboxes, in a process of its own where possible."""
    sandboxes = f"*.{host.partition('.')[2]}"
    policy = (
        f"default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; frame-src {sandboxes}"
    )
    return {"Content-Security-Policy": policy, "Origin-Agent-Cluster": "?1"}


def _without_cookies(request: Request, response: Response) -> Response:
    """Expire cookies for the domain that all Views share: any View can set some for all others.

    Cookies of the View's own host stay, and so do those of domains above. (`Clear-Site-Data` would
    delete the application's, where that is on the same site.)
    """
    domain = request.headers.get("host", "").partition(":")[0].partition(".")[2]
    for name in filter(_COOKIE_NAME.fullmatch, list(request.cookies)[:_MAX_COOKIES]):
        for path in ("/", request.url.path):
            for partition in ("", "; Partitioned"):
                about = f"Domain={domain}; Path={path}; Max-Age=0; Secure; SameSite=None{partition}"
                response.headers.append("Set-Cookie", f"{name}=; {about}")
    return response


class _Report(msgspec.Struct, rename="kebab"):
    blocked_uri: str = ""
    effective_directive: str = ""
    violated_directive: str = ""
    source_file: str = ""


class _ReportBody(msgspec.Struct, rename="kebab"):
    csp_report: _Report


def _read_report(body: bytes) -> tuple[str, str, str] | None:
    try:
        report = msgspec.json.decode(body, type=_ReportBody).csp_report
    except (ValueError, RecursionError):  # not text, not JSON, too deep, or not a report
        return None
    directive = report.effective_directive or report.violated_directive
    return directive, report.blocked_uri, report.source_file
