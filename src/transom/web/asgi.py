"""The Stage and its sandbox as two ASGI apps, for two origins.

`stage_app` serves the page and its one socket. `sandbox_app` serves, for each View, the page that
holds it, with the policy the View's resource declared as a response header. Both answer only to
their own `Host`, so that a name that was made to point here gets nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from importlib.resources import files

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from transom.errors import PeerError
from transom.web.stage import Hello, Stage

__all__ = ["sandbox_app", "stage_app"]

_HELLO_WITHIN = 5.0
_MAX_REPORT = 16 * 1024
_TYPES = {"html": "text/html", "js": "text/javascript", "css": "text/css"}
_ALWAYS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


def _static(name: str, headers: dict[str, str], **words: str) -> Response:
    text = (files("transom.web") / "static" / name).read_text("utf-8")
    for word, value in words.items():
        text = text.replace(f"%{word}%", value)
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(text, media_type=kind, headers={**_ALWAYS, **headers})


# --- the Stage -------------------------------------------------------------------------------


def stage_app(stage: Stage) -> Starlette:
    """The Stage's page and socket. Mount it anywhere; `stage.origin` must say where."""

    def allowed(host: str | None) -> bool:
        return host is not None and f"http://{host}" in _aliases(stage.origin)

    def serve(name: str) -> Callable[[Request], Response]:
        def endpoint(request: Request) -> Response:
            if not allowed(request.headers.get("host")):
                return PlainTextResponse("This is not that host", 421)
            return _static(name, {"Content-Security-Policy": _stage_csp(stage)})

        return endpoint

    async def socket(websocket: WebSocket) -> None:
        origin = websocket.headers.get("origin")
        if not allowed(websocket.headers.get("host")) or origin not in _aliases(stage.origin):
            await websocket.close(4403, "Not from here")
            return
        await websocket.accept()
        await _Socket(stage, websocket).run()

    return Starlette(
        routes=[
            Route("/", serve("stage.html")),
            Route("/stage.js", serve("stage.js")),
            Route("/link.js", serve("link.js")),
            Route("/stage.css", serve("stage.css")),
            WebSocketRoute("/socket", socket),
        ]
    )


def _aliases(origin: str) -> tuple[str, ...]:
    return origin, origin.replace("//127.0.0.1:", "//localhost:")


def _stage_csp(stage: Stage) -> str:
    sockets = " ".join(o.replace("http", "ws", 1) for o in _aliases(stage.origin))
    frames = f"http://*.{stage.sandbox_domain}:{stage.sandbox_port}"
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
        f"connect-src 'self' {sockets}; frame-src {frames}; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


class _Socket:
    """One socket of a page: what it says goes to the link, what the link says goes to it."""

    def __init__(self, stage: Stage, websocket: WebSocket) -> None:
        self._stage = stage
        self._websocket = websocket
        self._outbox: asyncio.Queue[str | None] = asyncio.Queue()

    async def run(self) -> None:
        try:
            async with asyncio.timeout(_HELLO_WITHIN):
                text = await self._websocket.receive_text()
            hello = msgspec.json.decode(text, type=Hello)
            link, resumed = self._stage.welcome(hello)
        except (TimeoutError, msgspec.DecodeError, PeerError, WebSocketDisconnect, KeyError):
            await self._close(4401, "Who are you?")
            return
        answer = {"page": link.id, "received": link.received, "resumed": resumed}
        await self._websocket.send_text(msgspec.json.encode(answer).decode())
        writer = asyncio.create_task(self._write())
        try:
            link.attach(self._outbox.put_nowait, hello.received if resumed else 0)
            while not link.over:
                link.feed(await self._websocket.receive_text())
        except (WebSocketDisconnect, KeyError):
            pass
        except PeerError as error:
            await self._close(4400, str(error))
        finally:
            link.detach(self._outbox.put_nowait)
            writer.cancel()
            await asyncio.wait([writer])

    async def _write(self) -> None:
        try:
            while (text := await self._outbox.get()) is not None:
                await self._websocket.send_text(text)
        except (WebSocketDisconnect, RuntimeError):
            pass  # the reader hears of it too

    async def _close(self, code: int, reason: str) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):  # it was closed already
            await self._websocket.close(code, reason[:100])


# --- the sandbox -----------------------------------------------------------------------------


def sandbox_app(stage: Stage) -> Starlette:
    """The pages that hold Views, each on an origin of its own."""

    def page(request: Request) -> Response:
        mounted = stage.find(request.headers.get("host", ""))
        if mounted is None:
            return PlainTextResponse("There is no View here", 404, headers=_ALWAYS)
        headers = {"Content-Security-Policy": mounted.csp}
        return _static("sandbox.html", headers, stage=stage.origin)

    def script(request: Request) -> Response:
        if stage.find(request.headers.get("host", "")) is None:
            return PlainTextResponse("There is no View here", 404, headers=_ALWAYS)
        return _static("sandbox.js", {"Cross-Origin-Resource-Policy": "same-origin"})

    async def report(request: Request) -> Response:
        mounted = stage.find(request.headers.get("host", ""))
        if mounted is not None:
            body = b""
            async for chunk in request.stream():
                body += chunk
                if len(body) > _MAX_REPORT:
                    return Response(status_code=413)
            told = _read_report(body)
            if told is not None:
                stage.violated(mounted, *told)
        return Response(status_code=204)

    return Starlette(
        routes=[
            Route("/", page),
            Route("/sandbox.js", script),
            Route("/csp-report", report, methods=["POST"]),
        ]
    )


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
    except msgspec.DecodeError:
        return None
    directive = report.effective_directive or report.violated_directive
    return directive, report.blocked_uri, report.source_file
