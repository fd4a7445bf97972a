"""Showing one tool's View and trying its tools, step by step: what `transom open` does.

Each step is an event, a JSON object: `opened`, `tools` (again whenever they change), `call`,
`violation`, `closed`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import msgspec

from transom.errors import SERVER_ERROR, ProtocolError, TransomError, UsageError
from transom.host.host import Host
from transom.host.policy import Policy
from transom.host.renderers import Renderer
from transom.host.views import View
from transom.types import Tool, ToolResult
from transom.web.stage import Violation

__all__ = ["Event", "Showing"]

Event = dict[str, Any]


class _Watched(Protocol):
    on_violation: Callable[[Violation], object]


class Showing:
    """One server, one tool, one View.

    Args:
        renderer: what shows the View.
        stage: what tells of violations.
        on_event: gets each event.
        timeout: seconds for the server to start, for the View to open, and for each call.
    """

    def __init__(
        self,
        renderer: Renderer,
        stage: _Watched,
        on_event: Callable[[Event], object],
        *,
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
        self._timeout = timeout
        self._told: list[Tool] | None = None
        self.failed = False
        """Whether a call failed, or gave an error."""
        stage.on_violation = self._violated

    async def run(
        self,
        server: Sequence[str] | str,
        tool: str,
        arguments: Mapping[str, Any],
        calls: Sequence[tuple[str, Mapping[str, Any]]],
        *,
        screenshot: Callable[[bytes], object] | None = None,
        stay: bool = False,
    ) -> None:
        """Open the View, make the calls, and stay until it is closed if wanted.

        Raises:
            TransomError: the server could not be started, or the View not be opened.
        """
        async with self._host as host:
            async with asyncio.timeout(self._timeout):
                await host.add_server("server", server if isinstance(server, str) else list(server))
            view = await self._open(tool, arguments)
            await self._tell_tools(view)
            host.on_tools_changed(lambda: self._tools_changed(view))
            for name, given in calls:
                await self._call(view, name, given)
                await self._tell_tools(view)
            if screenshot is not None:
                screenshot(await view.screenshot())
            closed = asyncio.Event()
            host.on_view_closed(closed.set)
            if stay and view.state == "live":
                await closed.wait()
        self._event("closed", view=view.id, reason=view.reason)

    async def _open(self, tool: str, arguments: Mapping[str, Any]) -> View:
        host = self._host
        names = [known.name for known in await host.list_tools()]
        if tool not in names:
            raise UsageError(f"The server has no tool {tool}; it has: {', '.join(names) or 'none'}")
        result = await host.call_tool(tool, arguments)
        view = next(iter(host.views.values()), None)
        if view is not None and view.opening is not None:
            await asyncio.wait([view.opening])
        if view is None or view.state != "live":
            why = "it links none" if view is None else view.reason
            detail = f" The tool answered: {result.text[:500]}" if result.is_error else ""
            raise TransomError(f"Tool {tool} opened no View: {why}.{detail}")
        self.failed = result.is_error
        app = {"name": "", "version": ""}
        if view.app is not None:
            app = {"name": view.app.name, "version": view.app.version}
        self._event("opened", view=view.id, app=app, result=_plain(result))
        return view

    async def _call(self, view: View, tool: str, arguments: Mapping[str, Any]) -> None:
        try:
            result = await view.call_tool(tool, arguments, timeout=self._timeout)
        except TransomError as error:
            self.failed = True
            code = error.code if isinstance(error, ProtocolError) else SERVER_ERROR
            text = error.message if isinstance(error, ProtocolError) else str(error)
            self._event("call", tool=tool, error={"code": code, "message": text})
            return
        self.failed = self.failed or result.is_error
        self._event("call", tool=tool, result=_plain(result))

    async def _tell_tools(self, view: View) -> None:
        await self._host.list_tools()
        self._tools_changed(view)

    def _tools_changed(self, view: View) -> None:
        tools = view.tools
        if view.state == "live" and tools != self._told:
            self._told = tools
            self._event("tools", view=view.id, tools=[_plain(tool) for tool in tools])

    def _violated(self, violation: Violation) -> None:
        self._event("violation", **msgspec.structs.asdict(violation))

    def _event(self, event: str, **details: Any) -> None:
        self._on_event({"event": event, **details})


def _plain(value: ToolResult | Tool) -> dict[str, Any]:
    encoded = value.to_wire() if isinstance(value, ToolResult) else msgspec.json.encode(value)
    return msgspec.json.decode(encoded)
