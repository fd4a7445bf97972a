"""Showing one tool's View and trying its tools, step by step: what `transom open` does.

Each step is an event, a JSON object: `opened`, `tools` (again whenever they change), `call`,
`violation`, `closed`. A page that is reloaded closes its View and opens it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from transom.errors import SERVER_ERROR, PeerError, ProtocolError, TransomError, UsageError
from transom.host.host import Host
from transom.host.policy import Policy
from transom.host.renderers import Renderer
from transom.host.view import View
from transom.servers.targets import Target
from transom.types import Tool, ToolResult
from transom.web.stage import Violation

__all__ = ["Event", "Showing"]

Event = dict[str, Any]

_SETTLE = 0.5


class _Watched(Protocol):
    on_violation: Callable[[Violation], object]


class Showing:
    """One server, one tool, one View.

    Args:
        renderer: what shows the View.
        stage: what tells of violations.
        on_event: gets each event.
        on_trouble: gets what went wrong beside the steps, as text.
        before: awaited before the tool is called, such as until the user has a page open.
        timeout: seconds for the server to start, for the View to open, and for each call.
    """

    def __init__(
        self,
        renderer: Renderer,
        stage: _Watched,
        on_event: Callable[[Event], object],
        *,
        on_trouble: Callable[[str], object] = lambda _: None,
        before: Callable[[], Awaitable[object]] | None = None,
        timeout: float = 30.0,
    ) -> None:
        self._host = Host(
            renderer=renderer,
            policy=Policy.trusting(),
            audit=None,
            open_timeout=timeout,
            call_timeout=timeout,
        )
        self._on_event = on_event
        self._on_trouble = on_trouble
        self._before = before
        self._timeout = timeout
        self._view: View | None = None
        self._told: list[Tool] | None = None
        self.opened = False
        """Whether the View was there."""
        self.failed = False
        """Whether a call failed, or gave an error."""
        stage.on_violation = self._violated

    async def run(
        self,
        server: Target,
        tool: str,
        arguments: Mapping[str, Any],
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        name: str = "server",
        screenshot: Callable[[bytes], object] | None = None,
        stay: bool = False,
    ) -> None:
        """Open the View and make the calls; then end, or stay until cancelled.

        Raises:
            TransomError: the server could not be started, or the View not be opened.
        """
        async with self._host as host:
            host.on_error(self._went_wrong)
            host.on_server_lost(self._server_lost)
            await host.add_server(name, server, timeout=self._timeout)
            if self._before is not None:
                await self._before()
            view = await self._open(tool, arguments)
            host.on_view_opened(self._came_back)
            host.on_view_closed(self._closed)
            host.on_tools_changed(self._tools_changed)
            await self._tell_tools()
            for called, given in calls:
                await self._call(called, given)
                await self._tell_tools()
            if screenshot is not None:
                screenshot(await view.screenshot())
            if stay:
                await asyncio.Event().wait()
            await asyncio.sleep(_SETTLE)  # what was blocked comes by another way, a little later
            await view.close("all is done")

    async def _open(self, tool: str, arguments: Mapping[str, Any]) -> View:
        host = self._host
        names = [known.name for known in await host.list_tools()]
        if tool not in names:
            raise UsageError(f"The server has no tool {tool}; it has: {', '.join(names) or 'none'}")
        result = await host.call_tool(tool, arguments)
        view = next(iter(host.views.values()), None)
        if view is None or view.state != "live":
            note = (result.meta or {}).get("transom/view", {})
            why = note.get("error") or "the tool links none"
            detail = f" The tool answered: {result.text[:500]}" if result.is_error else ""
            raise TransomError(f"{tool} opened no View: {why}.{detail}")
        self.failed = result.is_error
        self._opened(view, result)
        return view

    def _opened(self, view: View, result: ToolResult | None) -> None:
        self._view, self._told, self.opened = view, None, True
        app = {"name": "", "version": ""}
        if view.app is not None:
            app = {"name": view.app.name, "version": view.app.version}
        shown = ToolResult(content=[]) if result is None else result
        self._event("opened", view=view.id, app=app, result=_plain(shown))

    def _came_back(self, view: View) -> None:
        """The page was reloaded."""
        result = view.origin.result
        self._opened(view, None if result is None else ToolResult.from_wire(result))
        self._tools_changed()

    def _closed(self, view: View) -> None:
        self._event("closed", view=view.id, reason=view.reason)

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        try:
            if self._view is None:
                raise TransomError("There is no View")
            result = await self._view.call_tool(tool, arguments, timeout=self._timeout)
        except TransomError as error:
            self.failed = True
            code = error.code if isinstance(error, ProtocolError) else SERVER_ERROR
            text = error.message if isinstance(error, ProtocolError) else str(error)
            self._event("call", tool=tool, error={"code": code, "message": text})
            return
        self.failed = self.failed or result.is_error
        self._event("call", tool=tool, result=_plain(result))

    async def _tell_tools(self) -> None:
        await self._host.list_tools()
        self._tools_changed()

    def _tools_changed(self) -> None:
        view = self._view
        if view is not None and view.state == "live" and view.tools != self._told:
            self._told = view.tools
            self._event("tools", view=view.id, tools=[_plain(tool) for tool in view.tools])

    # --- what goes wrong beside the steps ----------------------------------------------------

    def _violated(self, violation: Violation) -> None:
        details = msgspec.structs.asdict(violation)
        del details["client"]  # there is one Host, and it works for no client
        self._event("violation", **details)

    def _went_wrong(self, error: BaseException) -> None:
        if isinstance(error, PeerError):
            view = "" if self._view is None else self._view.id
            self._violated(Violation(view, "protocol", str(error)[:500]))
        else:
            self._on_trouble(str(error) or type(error).__name__)

    def _server_lost(self, _: str, reason: str) -> None:
        self._on_trouble(f"The server is gone: {reason}")

    def _event(self, event: str, **details: Any) -> None:
        self._on_event({"event": event, **details})


def _plain(value: ToolResult | Tool) -> dict[str, Any]:
    encoded = value.to_wire() if isinstance(value, ToolResult) else msgspec.json.encode(value)
    return msgspec.json.decode(encoded)
