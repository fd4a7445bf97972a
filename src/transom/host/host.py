"""`Host`: many servers, many Views, one tool surface for a model.

1. `call_tool` is the model's call. It reaches the tools that `list_tools` shows, and no others.
2. A server's tool that links a View opens it. The tool's result is returned in any case; `_meta`
   says under `transom/view` whether the View opened.
3. Every call ends once: with a result, or with an error that says what went wrong and where.
4. Nothing a View or a server does affects another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self, TypeVar, runtime_checkable

from transom.background import Background, Debounced, logs_errors
from transom.connections.targets import Target
from transom.connections.upstream import Server
from transom.drive.tools import Drive, read_call
from transom.errors import (
    INVALID_PARAMS,
    ConnectionClosed,
    NotConnected,
    PeerError,
    ProtocolError,
    Refused,
    RequestEnded,
    TransomError,
    UsageError,
    ViewClosed,
)
from transom.events import Event, Slot
from transom.host.asking.approvals import Approvals
from transom.host.asking.policy import ApprovalRequest, Decision, Policy
from transom.host.audit import AuditLog, Sink
from transom.host.limits import Limits
from transom.host.open_views import HostRecords, OpenViews, ShownCall, ViewEvents
from transom.host.server_tools import ServerTools
from transom.host.tool_host import ToolHost
from transom.host.tools.indirect_tools import LIST_VIEW_TOOLS, IndirectCall, view_listing
from transom.host.tools.refresh import Refresh, wait_refreshed
from transom.host.tools.surface import Change, Entry, Naming, Surface
from transom.host.tools.tool_list import ToolList
from transom.host.tools.tool_names import SEPARATOR, owner_of
from transom.host.tools.tool_texts import mark_untrusted, without_our_meta
from transom.host.views.bridge import OutgoingCall
from transom.host.views.driver import DrivenViews
from transom.host.views.liveness import GONE
from transom.host.views.model_context import ModelContext
from transom.host.views.renderers import Renderer
from transom.host.views.tasks import MAX_TASKS, TaskServers, owned_task, parse_task_id
from transom.host.views.view import View
from transom.host.views.view_context import SharedContext
from transom.host.views.view_settings import Opening, Reuse, ViewEnvironment, ViewSettings
from transom.host.written_calls import WrittenCalls
from transom.protocol.messages import check_arguments
from transom.protocol.methods import HOST
from transom.traffic import TrafficListener
from transom.types import (
    HostContext,
    Implementation,
    Task,
    TextContent,
    Tool,
    ToolResult,
)
from transom.version import __version__

_log = logging.getLogger("transom.host")
_log_failure = logs_errors(_log)

_MB = 1024 * 1024
_MAX_REPORTS = 1000  # errors that async `on_error` handlers may work on at once

_R = TypeVar("_R")


@runtime_checkable
class AttachesToHost(Protocol):
    """A renderer that also handles requests of Views to the host: links, files, display modes."""

    def attach_host(self, host: Host) -> None:
        """Called before it shows the first View of `host`."""


class Host(ToolHost):
    """Connects servers, opens their Views, and offers the tools of both to a model.

        async with Host(renderer=InProcessRenderer({...}), policy=Policy(approve=ask)) as host:
            await host.add_server("orders", ["python", "orders.py"])
            result = await host.call_tool("show_orders", {"status": "open"})
            tools = await host.list_tools()

    Args:
        renderer: what shows Views. None: tools that link one just run.
        policy: which tools of Views may run; by default only those declared read-only.
        limits: how much a View may cost.
        naming: `flat`: every View tool is a tool of its own; `indirect`: two tools list and call
            them all; `both`.
        drive: which Views the model may use by their pages, as a person does, with `look_at_view`
            and `act_on_view`: those without tools for it (`when_no_tools`), all (`always`), none
            (`never`). The renderer has to be a browser.
        fresh: whether each listing lists every View again, not only those that announced a change
            or have a lazy schema.
        audit: an `AuditLog`, or what to make one of: the path of an SQLite file, a callable that
            takes JSON lines, or None for no audit. By default the last 10,000 events in memory.
        info: how the host names itself to Views.
        context: the surroundings of Views.
        call_timeout: seconds a server's tool may take without an answer or a progress notification.
        open_timeout: seconds a View may take to become live; a call that opens one waits for it.
        max_page_bytes: how large a View's page may be.
        max_context_bytes: how large one update of the model's context may be; 0: there are none.
        traffic: gets every message to and from servers and Views, such as a `Recorder` of
            `transom.traffic`. A client or `Server` that you connected yourself is not observed.

    Events, assigned or as decorators, sync or async. Those that answer nothing:
    `on_tools_changed()`, `on_view_opened(view)`, `on_view_closed(view)`,
    `on_view_failed(view, error)`, `on_view_unresponsive(view)` when it became busy or gone, or
    waits because its page failed (see its `state`), `on_view_responsive(view)` when it answers,
    `on_view_changed(view)` when its result, its pin, what the user granted it or which of its tools
    are left out changed,
    `on_server_lost(name, reason)`, `on_size_changed(view, width, height)`, `on_log(view, entry)`,
    `on_model_context(view)`, `on_view_problem(view, problem)` with what went wrong inside a page,
    for its author, and `on_error(error)`. Requests of a View, answered as on a `Bridge`:
    `on_message(view, blocks)`, `on_open_link(view, url)`, `on_download_file(view, files)`,
    `on_request_display_mode(view, mode)`, `on_create_message(view, params)`,
    `on_request_pin(view, reason)`: return whether a View that asks to stay open may; without a
    handler it may only with `Policy.trusting()`. Set these before a View opens: at the handshake it
    learns what the host can do. And one of a server, to be set before it is added:
    `on_elicit(server, request)` asks the user what an `ElicitRequest` says, and returns the fields
    of the form (True: as the schema's defaults have them, or that the page was opened), False if
    the user declines, None if they just close it. Without one, a renderer with a page asks there.
    """

    on_tools_changed = Event["Host"]()
    on_view_opened = Event["Host"]()
    on_view_closed = Event["Host"]()
    on_view_failed = Event["Host"]()
    on_view_unresponsive = Event["Host"]()
    on_view_responsive = Event["Host"]()
    on_view_changed = Event["Host"]()
    on_server_lost = Event["Host"]()
    on_elicit = Event["Host"]()
    on_message = Event["Host"]()
    on_open_link = Event["Host"]()
    on_download_file = Event["Host"]()
    on_request_display_mode = Event["Host"]()
    on_create_message = Event["Host"]()
    on_request_pin = Event["Host"]()
    on_view_problem = Event["Host"]()
    on_size_changed = Event["Host"]()
    on_log = Event["Host"]()
    on_model_context = Event["Host"]()
    on_error = Event["Host"]()

    def __init__(
        self,
        *,
        renderer: Renderer | None = None,
        policy: Policy | None = None,
        limits: Limits | None = None,
        naming: Naming = "flat",
        drive: Drive = "when_no_tools",
        fresh: bool = False,
        audit: AuditLog | str | Path | Sink | None = ":memory:",
        info: Implementation | None = None,
        context: HostContext | Mapping[str, Any] | None = None,
        call_timeout: float | None = 300.0,
        open_timeout: float = 30.0,
        max_page_bytes: int = 10 * _MB,
        max_context_bytes: int = 256 * 1024,
        traffic: TrafficListener | None = None,
    ) -> None:
        if naming not in ("flat", "indirect", "both"):
            raise UsageError(f"naming is flat, indirect or both, not {naming!r}")
        if drive not in ("when_no_tools", "always", "never"):
            raise UsageError(f"drive is when_no_tools, always or never, not {drive!r}")
        self._slots: dict[str, Slot] = {}
        self.renderer = renderer
        self.limits = limits if limits is not None else Limits()
        self.audit = _audit_log(audit)
        self._background = Background(self._report)
        self._reports = Background(_log_failure, limit=_MAX_REPORTS)
        fire_tools_changed = partial(self._fire, "on_tools_changed")
        self._tools_changed = Debounced(fire_tools_changed, self._report)
        # Debounces changes that only a listing found. A client often lists again when it is
        # notified, so a View whose list is always different would otherwise cause an endless loop.
        self._changes_found = Debounced(
            fire_tools_changed, self._report, delay=self.limits.relist_interval
        )
        self._call_timeout = call_timeout
        self._surface = Surface(naming, max_description=self.limits.max_description)
        self._driven = DrivenViews(drive, self._surface, self._tools_changed.trigger)
        self._stale: set[Refresh] = set()
        self._pulled: set[Refresh] = set()
        self._tasks = TaskServers(MAX_TASKS)
        self._approvals = Approvals(
            policy or Policy(),
            self.audit,
            on_error=self._report,
            on_grants_changed=self._grants_changed,
        )
        self._servers = ServerTools(
            self._surface,
            self.audit,
            self._stale,
            interval=self.limits.relist_interval,
            on_changed=lambda name, change: self._surface_changed(name, None, change),
            on_lost=partial(self._fire, "on_server_lost"),
            on_error=self._report,
            on_elicit=self.on_elicit,
            traffic=traffic,
        )
        environment = ViewEnvironment(
            limits=self.limits,
            audit=self.audit,
            approvals=self._approvals,
            tasks=self._tasks,
            stale=self._stale,
            pulled=self._pulled,
            host_info=info or Implementation("transom", __version__),
            context=SharedContext(context),
            fresh=fresh,
            open_timeout=open_timeout,
            max_page_bytes=max_page_bytes,
            max_context_bytes=max_context_bytes,
            traffic=traffic,
        )
        events = ViewEvents(
            views=lambda: self._views,
            handlers=self._slots,
            surface=self._surface,
            driven=self._driven,
            approvals=self._approvals,
            surface_changed=self._surface_changed,
            background=self._background,
            report=self._report,
        )
        self._views = OpenViews(
            environment,
            events,
            self._servers,
            lambda: self.renderer,
            self._background,
            self._report,
        )
        self._written = WrittenCalls(self._views, self._background, self._report)
        self._stack: AsyncExitStack | None = None
        self._closed = False

    # --- life --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._stack is not None or self._closed:
            raise UsageError("A Host can be entered only once: create another one")
        async with AsyncExitStack() as stack:
            stack.callback(self.audit.on_error.remove, self.audit.on_error(self._report))
            stack.push_async_callback(self.audit.aclose)
            renderer: Any = self.renderer
            if renderer is not None and hasattr(renderer, "__aenter__"):
                await stack.enter_async_context(renderer)
            self._stack = stack.pop_all()
        if isinstance(self.renderer, AttachesToHost):
            self.renderer.attach_host(self)
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Tear down every View, disconnect every server, write the audit. Safe to repeat."""
        stack, self._stack = self._stack, None
        self._closed = True
        if stack is None:
            return
        async with stack:
            self._written.close()
            await self._close_views("the host was closed")
            await self._servers.close()
            await self._close_views("the host was closed")  # those of calls that came meanwhile
            self._tools_changed.close()
            self._changes_found.close()
            await self._background.aclose()
            await self._reports.aclose()

    async def _close_views(self, reason: str, *, of: str | None = None) -> None:
        views = [view for view in self._views.values() if of in (None, view.server)]
        await asyncio.gather(*(view.close(reason) for view in views))

    def _check_open(self) -> None:
        if self._stack is None:
            if self._closed:  # perhaps not by whoever uses it, such as an agent that still runs
                raise NotConnected("The host is closed")
            raise UsageError("The host is not open: use `async with Host(...)`")

    # --- servers -----------------------------------------------------------------------------

    @property
    def servers(self) -> list[str]:
        """The names of the servers that are connected."""
        return self._servers.names

    async def add_server(
        self,
        name: str,
        target: Target,
        *,
        timeout: float = 30.0,
        open_views: Opening | Mapping[str, Opening] = "always",
        reuse_views: Reuse | Mapping[str, Reuse] | None = None,
    ) -> None:
        """Connect a server; its tools are there when this returns.

        Args:
            name: 1 to 32 of `A-Za-z0-9-_`. Its Views are called `NAME-1`, `NAME-2` ..., with the
                first 12 characters of the name.
            target: a command as a list, the URL of a streamable HTTP server, an `MCPServer` or
                `FastMCP` object, a connected client (which stays yours to close), or an
                `Server` of your own.
            timeout: seconds that it may take to start.
            open_views: whether its tools open their Views: `always`; `ask`: if the user agrees
                (`Policy.approve`); `never`. For all tools, or a mapping by tool with `"*"` for the
                others.
            reuse_views: whether a call uses the tool's open View instead of opening another one:
                `never`; `arguments`: if that View has the same arguments; `always`. For all tools
                or by tool, as above. None: what the server declares for its tools, by default
                `never`.

        Raises:
            UsageError: the name is taken or invalid, the target is not a server, or a setting is
                invalid.
            NotConnected: it cannot be reached. The host can be used as before.
        """
        self._check_open()
        if self._views.is_view_id(name):
            raise UsageError(f"{name} is the id of a View: choose another name for the server")
        settings = ViewSettings(open_views, reuse_views)
        await self._servers.add(name, target, timeout, settings)

    def server(self, name: str) -> Server:
        """A server, for requests that no model makes.

        Raises:
            ConnectionClosed: there is none of that name, or it is gone.
        """
        return self._servers.server(name)

    async def remove_server(self, name: str) -> None:
        """Close a server's Views and disconnect it. Nothing happens if it is gone already.

        Raises:
            UsageError: there never was one of that name.
        """
        self._check_open()
        await self._close_views("its server was removed", of=name)
        await self._servers.remove(name)
        await self._close_views("its server was removed", of=name)  # as above
        self._approvals.grants.forget_server(name)

    # --- tools -------------------------------------------------------------------------------

    async def list_tools(self) -> ToolList:
        """The tools a model may call right now, to be read like any list.

        Servers and Views that announced a change are listed again first, and so are Views with a
        lazy schema (all Views with `Host(fresh=True)`), in parallel. If one has not answered after
        half a second (`Limits.fresh_timeout`), its previous list is used, and the audit records
        that.
        """
        self._check_open()
        await self._refresh()
        return self._surface.tools()

    async def _refresh(self) -> None:
        await asyncio.sleep(0)  # let notifications that have arrived be handled first
        self._servers.refresh_outdated()
        for refresh in list(self._pulled):
            refresh.pull()
        if self._stale:
            await wait_refreshed(list(self._stale), self.limits.fresh_timeout)

    async def _call(self, call: OutgoingCall) -> Any:
        """`call_tool` and `start_task`."""
        entry = self._surface.find(call.name)
        if entry is None or self._stack is None:
            entry = await self._find_late(call.name, call.arguments)
        if call.arguments is not None and entry.kind != "drive":  # which `read_call` checks
            try:
                check_arguments(call.name, call.arguments, self.limits.max_message_depth)
            except ProtocolError as error:
                self.audit.record_refusal(call.name, call.arguments, error)
                raise
        if entry.kind == "server":
            return await self._call_server_tool(entry, call)
        name = entry.tool.name
        if entry.kind == "drive":
            try:
                wanted = read_call(name, call.arguments)
            except ProtocolError as error:  # a model has to read it
                return ToolResult(content=[TextContent(str(error))], is_error=True)
            view = self.view(wanted.view_id)
            await view.refreshed()
            return await self._driven.use(view, wanted, call.call_id)
        if entry.kind == "indirect" and name == LIST_VIEW_TOOLS:
            return await self._list_view_tools(IndirectCall.read(name, call.arguments).view_id)
        view, call.name, call.arguments = self._view_tool(entry, call.arguments)
        return await view._call(call)

    def _view_tool(
        self, entry: Entry, arguments: Mapping[str, Any] | None
    ) -> tuple[View, str, Mapping[str, Any] | None]:
        """The View that a call is for, its own name for the tool, and the arguments as it has them.

        Raises:
            ProtocolError, ViewClosed: a call of `call_view_tool` that names none.
        """
        if entry.kind == "view":
            given = self._surface.original(entry, arguments)
            return self._views[entry.owner], entry.tool.name, given
        call = IndirectCall.read(entry.tool.name, arguments)
        if call.view_id is None or call.name is None:
            raise ProtocolError(INVALID_PARAMS, f"{entry.tool.name} needs view_id and name")
        view = self.view(call.view_id)
        found = self._surface.find_view_tool(view.id, call.name)
        if found is None:
            return view, call.name, call.arguments
        return view, found.tool.name, self._surface.original(found, call.arguments)

    def may_drive(self, view_id: str) -> bool:
        """Whether the model may use an open View by its page, with `look_at_view`."""
        view = self._views.get(view_id)
        return view is not None and self._driven.may_use(view)

    async def approval_needed(
        self, name: str, arguments: Mapping[str, Any] | None = None, *, call_id: str
    ) -> ApprovalRequest | None:
        """What to ask the user before a call, for an agent that asks in its own way.

        None if there is nothing to ask: the policy lets the call run, or has an approver, which is
        asked during the call. Otherwise show the user what this returns, hand their answer to
        `decide`, and call the tool with the same `call_id`:

            request = await host.approval_needed(name, arguments, call_id=call_id)
            if request is not None:
                await host.decide(call_id, await ask_user(request))
            result = await host.answer(name, arguments, call_id=call_id)

        Args:
            name: the tool, as `list_tools` names it.
            arguments: what it would be called with.
            call_id: the agent's name for this call; any text.
        """
        self._check_open()
        entry = self._surface.find(name)
        if entry is None:
            await self._refresh()
            entry = self._surface.find(name)
        if entry is None or entry.kind == "server" or entry.tool.name == LIST_VIEW_TOOLS:
            return None
        try:
            check_arguments(name, arguments, self.limits.max_message_depth)
            if entry.kind == "drive":
                call = read_call(entry.tool.name, arguments)
                if not self.may_drive(call.view_id):
                    return None
                return await self.view(call.view_id)._driver.approval_needed(call, call_id)
            view, tool, given = self._view_tool(entry, arguments)
        except (ProtocolError, ViewClosed):  # the call will raise it
            return None
        return await view.approval_needed(tool, given, call_id)

    async def decide(self, call_id: str, decision: Decision, *, edited: bool = False) -> None:
        """Store the user's decision about a call that was passed to `approval_needed`.

        An approval is used once, for a call with the same `call_id`, and only while the tool's
        definition is the one they saw. A refusal is written to the audit; do not call the tool
        then.

        Args:
            call_id: the call.
            decision: `Allow()`, `AllowAlways()` or `Deny(reason)`.
            edited: whether the user changed the arguments, so that the call's differ from those
                shown.
        """
        asked = self._approvals.decide(call_id, decision, edited=edited)
        view = None if asked is None or not asked.drives else self._views.get(asked.view_id)
        if view is not None:
            await view._driver.mark(None)

    def stream_arguments(self, name: str, text: str, *, call_id: str) -> None:
        """See `ToolHost.stream_arguments`."""
        entry = self._surface.find(name)
        if entry is not None and entry.kind == "server" and self._stack is not None:
            self._written.add(call_id, entry.owner, entry.tool, text)

    def view_tools(self, view_id: str) -> list[Tool]:
        """The tools of an open View, under the names that the model sees; empty if it is closed."""
        return self._surface.shown(view_id)

    async def _find_late(self, name: str, arguments: Mapping[str, Any] | None) -> Entry:
        """Find a tool that is not listed yet; raises for one that is not listed any more."""
        self._check_open()
        owner = owner_of(name)
        view = None if owner is None else self._views.get(owner)
        if view is None:
            await self._refresh()
        elif view.state is not GONE:
            await view.refreshed(list_again=view.disabled_tool(name) is None)
        entry = self._surface.find(name)
        if entry is not None:
            return entry
        if view is not None and (tool := view.disabled_tool(name)) is not None:
            return Entry("view", view.id, Tool(name=tool), Tool(name=name))
        error: TransomError = ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        server = self._surface.reserved_for(name)
        if view is not None:
            live = view.takes_calls
            error = view.missing(name.partition(SEPARATOR)[2]) if live else view.closed_error()
        elif owner is not None and self._views.is_view_id(owner) and owner not in self._views:
            error = self._views.closed_error(owner)
        elif server is not None and (reason := self._servers.why_gone(server)) is not None:
            error = ConnectionClosed(f"{name[:128]}: server {server} is gone: {reason}")
        self.audit.record_refusal(name, arguments, error)
        raise error

    async def _call_server_tool(self, entry: Entry, call: OutgoingCall) -> ToolResult | Task:
        call.name = entry.tool.name
        if call.timeout is None:
            call.timeout = self._call_timeout

        async def call_server() -> ToolResult | Task:
            result = await self._servers.call(entry.owner, call)
            if isinstance(result, ToolResult) and result.meta is not None:
                return without_our_meta(result)  # a server cannot say which View shows a result
            return result

        if not call.open_view:
            return await call_server()
        which = entry.owner, entry.tool
        begun = self._written.take(call.call_id, *which)
        opening = self._views.for_call(*which, call.arguments, begun)
        shown = await self._views.call_with_view(opening, call_server)
        return shown.with_note()

    async def _list_view_tools(self, view_id: str | None) -> ToolResult:
        if view_id is None:
            await self._refresh()
            views = list(self._views.values())
        else:
            views = [self.view(view_id)]
            await views[0].refreshed()
        return view_listing((view.provenance, self._surface.shown(view.id)) for view in views)

    # --- Views -------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, View]:
        """The open Views, by id; the least recently used one first."""
        return self._views

    def view(self, view_id: str) -> View:
        """An open View.

        Raises:
            ViewClosed: it is closed, or there never was one of that id.
        """
        view = self._views.get(view_id)
        if view is None:
            raise self._views.closed_error(view_id)
        return view

    def was_view(self, view_id: str) -> bool:
        """Whether there is a View of that id, or was one."""
        return self._views.is_view_id(view_id)

    async def open_view(
        self,
        server: str,
        tool: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        partial: bool = False,
    ) -> View:
        """Open the View that a server's tool links, without calling the tool.

        For callers that call the server's tool themselves. It returns as soon as the View has its
        id and is opening, so that the call can run at the same time:

            view = await host.open_view("orders", "show_orders", arguments)
            call = view.newest_call
            await view.deliver(await call_it_myself(arguments), call=call)
            await view.opened()

        Depending on the settings of `add_server` and of the server, it may return a View that is
        already open, or ask the user first.

        Args:
            server: the name it was added under.
            tool: the tool, by the server's own name for it.
            arguments: the arguments of the call, which the View gets as its input.
            partial: not all yet: go on with `view.send_partial_input`, and then `view.send_input`.

        Raises:
            UsageError: there is no such server, the tool links no View or may open none, or the
                host has no renderer.
            ProtocolError: the arguments cannot be sent, or the server lists no such tool or fails.
            InvalidResult: the tool links something that is not a View.
            ConnectionClosed: the server is gone.
            Refused: the user does not want it to open a View.
        """
        self._check_open()
        if self.renderer is None:
            raise UsageError("A host without a renderer cannot open Views")
        if server not in self._servers and self._servers.why_gone(server) is None:
            raise UsageError(f"There is no server {server}; there are: {', '.join(self.servers)}")
        definition = await self._servers.server(server).tool(tool)
        if definition is None:
            raise ProtocolError(INVALID_PARAMS, f"Server {server} has no tool {tool[:128]}")
        call = self._views.call_of(server, definition, arguments)
        if call is None:
            raise UsageError(
                f"Tool {tool[:128]} of server {server} links no View, or may open none"
            )
        call.complete = not partial
        return await self._views.view_for(call)

    async def reopen(self, view_id: str) -> View:
        """Open a closed View again, under its old id, with its input and result.

        Raises:
            ViewClosed: it cannot be opened, or was closed too long ago.
            ConnectionClosed: its server is gone.
            UsageError: the host has no renderer.
        """
        self._check_open()
        if (view := self._views.get(view_id)) is not None:
            await view.opened()
            return view
        closed = self._views.closed(view_id)
        if closed is None:
            raise self._views.closed_error(view_id)
        if self.renderer is None:
            raise UsageError("A host without a renderer cannot open Views")
        origin = closed.origin
        if origin.result is None and origin.cancelled is None:
            origin.cancelled = "The call had not ended when the View was closed"
        view = self._views.open(view_id, origin)
        await view.opened()
        return view

    def records(self) -> HostRecords:
        """What another host with the same servers needs to reopen the Views of this one.

        That is: the calls that opened them, with their results, who pinned them, the user's
        permanent grants, and which ids were used. It changes with the events `on_view_opened`,
        `on_view_changed`, `on_view_closed` and `on_view_failed`.
        """
        return HostRecords(*self._views.records(), self._approvals.grants.records())

    def restore(self, records: HostRecords) -> None:
        """Take over the Views of another host, once the servers are connected.

        They are closed here until `reopen` opens them. New Views get none of their ids.
        """
        self._views.restore(records.views, records.numbers)
        self._approvals.grants.restore(records.grants)

    def set_context(self, **changes: Any) -> None:
        """Change the host's context for all Views, including open ones.

        Keys have their Python name or that of the wire (`displayMode`); None removes a key, and
        what a page says of it counts again.

        Raises:
            msgspec.ValidationError: a value is invalid.
        """
        self._views.set_context(changes)

    def set_surroundings(self, **changes: Any) -> None:
        """For renderers: what a page says of its user. What `set_context` sets goes before it."""
        self._views.set_context(changes, by_page=True)

    def model_context(self) -> list[ModelContext]:
        """The last context that each open View sent for the model, the oldest first."""
        found = [view.model_context for view in self._views.values()]
        return sorted((each for each in found if each is not None), key=lambda each: each.when)

    async def call_with_view(
        self,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any] | None,
        call_server: Callable[[], Awaitable[_R]],
    ) -> ShownCall[_R]:
        """Call a server's tool, and show the call in the View that the tool links, if it links one.

        For callers that call the server themselves. The View opens while the call runs. It gets the
        result, or a cancellation if the call fails or its result cannot be shown. Whatever goes
        wrong with the View does not change what the call returns or raises.

        Args:
            server: the name it was added under.
            tool: the tool, as the server defines it.
            arguments: the arguments of the call, which the View gets as its input.
            call_server: makes the call; called once the View is opening, or cannot be opened. It
                returns the result; a task, whose result the View gets from `task_result`; or
                anything else, which no View can show.
        """
        opening = self._views.for_call(server, tool, arguments)
        return await self._views.call_with_view(opening, call_server)

    def _grants_changed(self, view_id: str) -> None:
        if (view := self._views.get(view_id)) is not None:
            self._fire("on_view_changed", view)

    # --- tasks -------------------------------------------------------------------------------

    async def request_task(self, method: str, task_id: str, timeout: float | None = None) -> Any:
        """Send a request about a task to the View or the server that has it."""
        self._check_open()
        owner, inner, untrusted = parse_task_id(task_id)
        params, view = {"taskId": inner}, self._views.get(owner)
        answer: Task | ToolResult | None = None
        if view is not None and view.bridge is not None:
            with suppress(ConnectionClosed, NotConnected):  # it closed; its server may have it
                answer = await view.bridge.request_task(method, params, timeout)
        if answer is None:
            server = owner if owner in self._servers else self._tasks.get((owner, inner))
            if server is None:
                raise self._views.closed_error(owner)
            raw = await self._servers.request(server, method, params, timeout)
            answer = HOST[method].read_result(raw)
        if isinstance(answer, Task):
            return owned_task(owner, answer, untrusted=untrusted)
        if isinstance(answer, ToolResult):
            answer = without_our_meta(answer)
            await self._views.deliver_task(task_id, answer)
            if untrusted:
                answer = mark_untrusted(answer, owner)
        return answer

    # --- events ------------------------------------------------------------------------------

    def _surface_changed(
        self, server: str, view_id: str | None, change: Change, *, found: bool = False
    ) -> None:
        """Record a change and call the handlers; `found`: it was not announced."""
        record = partial(self.audit.record, "registration", server=server, view=view_id)
        for outcome, entries in (
            ("added", change.added),
            ("changed", change.changed),
            ("removed", change.removed),
        ):
            for entry in entries:
                record(outcome, tool=entry.tool.name)
        if change:
            (self._changes_found if found else self._tools_changed).trigger()

    def _fire(self, event: str, *about: object) -> None:
        self._background.fire(getattr(self, event), *about)

    def _report(self, error: BaseException) -> None:
        """Report an error that reaches no caller: to `on_error`, or else to the log."""
        if self.on_error:
            self._reports.fire(self.on_error, error)
        elif isinstance(error, PeerError | ProtocolError | Refused | RequestEnded):
            _log.debug("%s", error)  # a View can cause as many of these as it likes
        else:
            _log_failure(error)


def _audit_log(given: AuditLog | str | Path | Sink | None) -> AuditLog:
    if isinstance(given, AuditLog):
        return given
    if given == ":memory:":
        return AuditLog(given, max_rows=10_000, max_bytes=8 * _MB)
    return AuditLog(given)
