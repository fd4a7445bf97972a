"""One start of the server that an author edits: a Host, and what it reports to the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import msgspec

from transom.check.doctor import as_shown_by
from transom.check.facts import TrialCall
from transom.check.host_profiles import PLAIN, HostProfile, host_profile
from transom.connections.targets import Target
from transom.connections.upstream import Server
from transom.dev.describing import described_surface, described_tools, described_view
from transom.dev.files import find_in_files
from transom.dev.page import DevPage
from transom.drive.tools import DRIVE_TOOLS
from transom.errors import TransomError
from transom.host.asking.policy import ApprovalRequest, Decision, Policy
from transom.host.host import Host
from transom.host.open_views import USABLE
from transom.host.views.liveness import ViewState
from transom.host.views.ui_resource import UIResource
from transom.host.views.view import View
from transom.json_values import as_object
from transom.protocol.messages import LogParams
from transom.recent import Recent
from transom.types import ContentBlock, Tool, ToolResult, ViewProblem
from transom.web.local.headless import HeadlessRenderer
from transom.web.seat import Seat

_MAX_TEXT = 2000
_MAX_PLACES = 1000  # lines of pages whose place is known
_MAX_UNLISTED = 50  # tools of a View whose lazy schema failed
_PIECES, _BETWEEN_PIECES = 20, 0.06  # of arguments that are streamed, and seconds
_WIDTH, _HEIGHT = 800, 900  # of a picture

Approve = Callable[[Seat, ApprovalRequest], Awaitable[Decision]]
"""Decides about a call for the author, who may be asked at that seat."""


class ServerRun:
    """A Host with the server, its Views on the page.

    Args:
        page: shows what happens.
        name: the name of the server, after which Views are named.
        approve: decides whether the model, or a View, may call a tool.
        on_lost: called with the reason when the server is gone.
        on_view: called with a View that has opened, or could not.
        folder: where the pages of Views may be written.
        timeout: seconds for the server's start, a View's opening and each call.
    """

    def __init__(
        self,
        page: DevPage,
        name: str,
        approve: Approve,
        on_lost: Callable[[str], object],
        on_view: Callable[[View], object],
        folder: Path | None,
        timeout: float,
    ) -> None:
        self._page = page
        self._name = name
        self._timeout = timeout
        self._on_lost = on_lost
        self._on_view = on_view
        self._folder = folder
        seat = self._seat = page.seat(self._as_shown)
        self._policy = Policy(approve=lambda request: approve(seat, request))
        self._profile, self._refused = host_profile(PLAIN), frozenset[str]()
        self.host = Host(
            renderer=seat,
            policy=self._policy,
            audit=lambda line: page.add("audit", msgspec.json.decode(line)),
            traffic=page,
            open_timeout=timeout,
            call_timeout=timeout,
        )
        self._view: View | None = None
        self._before: Mapping[str, Tool] = {}
        self._listed: Mapping[str, Tool] = {}
        self._is_current = False
        self._unlisted: Recent[tuple[str, str], str] = Recent(
            _MAX_UNLISTED
        )  # why, by View and tool
        self._typed: View | None = None  # whose call is still being written
        self._typing = asyncio.Lock()
        self._places: Recent[tuple[str, int, int], dict[str, Any]] = Recent(_MAX_PLACES)

    async def start(self, target: Target) -> None:
        """Start the server.

        Raises:
            NotConnected: it does not start; the text says why.
        """
        host = self.host
        await host.__aenter__()
        host.on_message = self._message
        host.on_log(self._log)
        host.on_view_opened(self._view_opened)
        host.on_view_failed(self._view_failed)
        for event in ("on_view_closed", "on_view_changed", "on_view_responsive"):
            getattr(host, event)(self._view_changed)
        host.on_view_unresponsive(self._view_changed)
        host.on_tools_changed(self._tools_changed)
        host.on_model_context(self._context_changed)
        host.on_view_problem(self._problem)
        host.on_error(self._error)
        host.on_server_lost(self._server_lost)
        await host.add_server(self._name, target, timeout=self._timeout)

    async def show(self) -> None:
        """Be the run that the page is about."""
        self._is_current = True
        self._page.set("tools", described_tools((await self.server.tools()).values()))
        self._page.set("view", None)
        self._page.set("context", [])

    def behave_like(self, profile: HostProfile | None, refused: Collection[str]) -> None:
        """Offer the next Views what this host does, and no permission that is `refused`.

        What no source states of the host is as in Transom; None: all of it is.
        """
        plain = host_profile(PLAIN)
        self._profile, self._refused = profile or plain, frozenset(refused)
        self._policy.offers = None if profile is None else profile.capabilities
        context = {**plain.host_context, **self._profile.host_context}
        context.pop("containerDimensions", None)  # the page says it: the author may choose another
        self.host.set_context(**context)

    def _as_shown(self, resource: UIResource) -> UIResource:
        shown = as_shown_by(self._profile, resource)
        granted = {
            name: value
            for name, value in (shown.permissions or {}).items()
            if name not in self._refused
        }
        return msgspec.structs.replace(shown, permissions=granted)

    async def close(self) -> None:
        """End the server and its Views."""
        self._is_current = False
        await self.host.aclose()

    @property
    def server(self) -> Server:
        """The server."""
        return self.host.server(self._name)

    @property
    def view(self) -> View:
        """The View in front of the author.

        Raises:
            TransomError: there is none.
        """
        if self._view is None or not self._view.takes_calls:
            raise TransomError("There is no View: call a tool that opens one")
        return self._view

    async def prepare_view(self) -> None:
        """Have the page load what is around the next View before it is needed."""
        if self._view is not None and self._view.takes_calls:
            await self._seat.prepare_next(self._view.id)

    def forget_failed(self) -> None:
        """Show no longer why the last View did not open: the next one is on its way."""
        if self._view is not None and self._view.state is ViewState.FAILED:
            self._view = None
            self._page.set("view", None)

    async def avoid_stuck(self) -> None:
        """Have the next Views, also of other runs, load in spite of one in an endless loop."""
        await self._seat.avoid_stuck()

    # --- calls -------------------------------------------------------------------------------

    async def call(
        self,
        tool: Tool,
        arguments: dict[str, Any],
        on_progress: Callable[[Any], object],
        *,
        streamed: bool = False,
    ) -> ToolResult:
        """Call a tool of the server: as the model, or as a View does if only Views may.

        With `streamed`, its View gets the arguments piece by piece first.
        """
        shown = await self.host.list_tools()
        if (view := self._being_typed(tool)) is not None:
            return await self._call_typed(view, tool, arguments, on_progress)
        if any(each.name == tool.name for each in shown):
            call_id = token_hex(8)
            if streamed:
                await self._stream(tool, arguments, call_id)
            return await self.host.call_tool(
                tool.name, arguments, on_progress=on_progress, call_id=call_id
            )
        return await self._request_call(tool, arguments, on_progress)

    async def _request_call(
        self, tool: Tool, arguments: dict[str, Any], on_progress: Callable[[Any], object]
    ) -> ToolResult:
        params = {"name": tool.name, "arguments": arguments}
        raw = await self.server.request("tools/call", params, on_progress=on_progress)
        return ToolResult.from_wire(msgspec.json.decode(raw))

    async def type_arguments(self, tool: Tool, arguments: dict[str, Any]) -> None:
        """Show a View the arguments of a call that is still being written; open it for the first.

        Raises:
            TransomError: the tool opens no View.
        """
        async with self._typing:
            if (view := self._being_typed(tool)) is not None:
                await view.send_partial_input(arguments)
            else:
                opening = self.host.open_view(self._name, tool.name, arguments, partial=True)
                self._typed = await opening

    def _being_typed(self, tool: Tool) -> View | None:
        view = self._typed
        if view is None or view.state not in USABLE or view.origin.tool.name != tool.name:
            return None
        return view

    async def _call_typed(
        self,
        view: View,
        tool: Tool,
        arguments: dict[str, Any],
        on_progress: Callable[[Any], object],
    ) -> ToolResult:
        """Make the call that was typed, for the View that has its arguments so far."""
        self._typed = None
        await view.send_input(arguments)
        try:
            result = await self._request_call(tool, arguments, on_progress)
        except BaseException as error:
            is_failed = isinstance(error, TransomError)
            await view.deliver(cancelled=str(error) if is_failed else "the call was cancelled")
            raise
        await view.deliver(result)
        await view.opened()
        return result

    async def _stream(self, tool: Tool, arguments: dict[str, Any], call_id: str) -> None:
        """Write the arguments piece by piece, once the View is there to be seen."""
        text, open_before = msgspec.json.encode(arguments).decode(), set(self.host.views)
        size = max(1, len(text) // _PIECES)
        for start in range(0, len(text), size):
            piece = text[start : start + size]
            self.host.stream_arguments(tool.name, piece, call_id=call_id)
            await asyncio.sleep(_BETWEEN_PIECES)
            for view_id in set(self.host.views) - open_before:
                with suppress(TransomError):  # the call will say so
                    await self.host.views[view_id].opened()

    async def call_view_tool(
        self, name: str, arguments: dict[str, Any], *, as_model: bool
    ) -> ToolResult:
        """Call a tool of the View: as a model does, or without asking anyone, as its page does."""
        view = self.view
        if not as_model and view.bridge is not None:
            return await view.bridge.call_tool(name, arguments, timeout=self._timeout)
        return await view.call_tool(name, arguments, timeout=self._timeout)

    def called(self, view: View) -> TrialCall:
        """How a View's tool was called, and what it answered so far: for a diagnosis."""
        origin = view.origin
        result = None if origin.result is None else as_object(msgspec.json.decode(origin.result))
        return TrialCall(
            origin.tool.name, origin.arguments, result=result, failure=origin.cancelled
        )

    @property
    def shown_view(self) -> View | None:
        """The View that opened last, or could not be opened."""
        return self._view

    @property
    def unconnected(self) -> View | None:
        """The newest View whose page has not connected, if there is one."""
        waiting = [view for view in self.host.views.values() if view.app is None]
        return waiting[-1] if waiting else None

    async def surface(self) -> list[dict[str, Any]]:
        """What a model is given now, in each style."""
        drives = [tool for tool in await self.host.list_tools() if tool in DRIVE_TOOLS]
        tools = (await self.server.tools()).values()
        return described_surface(self._name, tools, self.host.views.values(), drives)

    async def screenshot(self) -> bytes:
        """A picture of the View: its call is shown in a browser without a window.

        Raises:
            TransomError: there is no View, or no such browser.
        """
        origin, bridge = self.view.origin, self.view.bridge
        context = {} if bridge is None else bridge.context
        width = as_object(context.get("containerDimensions")).get("width")
        renderer = HeadlessRenderer(
            size=(int(width) if isinstance(width, int | float) and width > 0 else _WIDTH, _HEIGHT),
            dark=context.get("theme") == "dark",
        )
        async with Host(renderer=renderer, audit=None, open_timeout=self._timeout) as host:
            await host.add_server(self._name, self.server)
            view = await host.open_view(self._name, origin.tool.name, origin.arguments)
            if origin.result is not None:
                await view.deliver(ToolResult.from_wire(origin.result))
            await view.opened()
            return await view.screenshot()

    # --- what happens ------------------------------------------------------------------------

    def _view_opened(self, view: View) -> None:
        self._view, self._before, self._listed = view, {}, {}
        self._show_view()
        if self._is_current:
            self._on_view(view)

    def _view_failed(self, view: View, _: BaseException) -> None:
        self._view_opened(view)

    def _server_lost(self, _: str, reason: str) -> None:
        if self._is_current:
            self._on_lost(reason)

    def _view_changed(self, view: View) -> None:
        if view is self._view:
            self._show_view()

    async def _tools_changed(self) -> None:
        self._show_view()
        if self._is_current:
            self._page.set("tools", described_tools((await self.server.tools()).values()))

    def _show_view(self) -> None:
        view = self._view
        if view is None or not self._is_current:
            return
        listed = {tool.name: tool for tool in view.tools}
        if listed != self._listed:
            self._before, self._listed = self._listed, listed
        unlisted = {
            name: reason for (view_id, name), reason in self._unlisted.items() if view_id == view.id
        }
        self._page.set("view", described_view(view, self._before, unlisted))

    def _context_changed(self, _: View) -> None:
        if self._is_current:
            self._page.set("context", self.host.model_context())

    def _message(self, view: View, blocks: list[ContentBlock]) -> None:
        self._page.add("messages", {"at": time.time(), "view": view.id, "content": blocks})

    def _log(self, view: View, entry: LogParams) -> None:
        self._find("log", view.id, str(entry.data)[:_MAX_TEXT], level=entry.level)

    def _problem(self, view: View, problem: ViewProblem) -> None:
        if problem.kind == "blocked":  # a violation, which comes by another way
            return
        if problem.kind == "schema" and problem.tool is not None:
            self._unlisted[view.id, problem.tool] = problem.message
            self._view_changed(view)
        details = msgspec.to_builtins(problem)
        if problem.is_in_page and problem.line is not None:
            details |= self._place(view.id, problem.line, problem.column or 1)
        self._find(details.pop("kind"), view.id, details.pop("message"), **details)

    def violation(self, view_id: str, text: str, blocked: str) -> None:
        """Show what a View's policy blocked, and the line of its page that names it."""
        page = self._page.html(self._seat, view_id)
        at = page.find(blocked) if blocked else -1
        place = {} if at < 0 else self._place(view_id, page.count("\n", 0, at) + 1, 1)
        self._find("blocked", view_id, text, **place)

    def _place(self, view_id: str, line: int, column: int) -> dict[str, Any]:
        """Where a line of a View's page is written, if that is known."""
        if (view_id, line, column) not in self._places:
            page = self._page.html(self._seat, view_id)
            found = find_in_files(page, line, column, self._folder)
            self._places[view_id, line, column] = msgspec.to_builtins(found or {})
        return self._places[view_id, line, column]

    def _error(self, error: BaseException) -> None:
        self._find("protocol", "", str(error)[:_MAX_TEXT] or type(error).__name__)

    def _find(self, kind: str, view: str, message: str, **details: Any) -> None:
        found = {"at": time.time(), "view": view, "message": message}
        self._page.add("findings", {**found, **details, "kind": kind})
