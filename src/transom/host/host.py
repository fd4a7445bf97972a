"""`Host`: many servers, many Views, one tool surface for a model.

1. `call_tool` is the model's call. It reaches what `list_tools` shows, and nothing else.
2. A server's tool that links a View opens one. The result is the tool's in any case; whether the
   View opened stands in its `_meta`, under `transom/view`.
3. Every call ends once: with a result, or with an error that says whose fault it was.
4. Nothing a View or a server does affects another one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self, overload

import msgspec

from transom.errors import (
    INVALID_PARAMS,
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    ProtocolError,
    RequestTimeout,
    TransomError,
    UsageError,
    ViewClosed,
)
from transom.events import Event, Slot
from transom.host.approval import Approvals
from transom.host.audit import AuditLog, Sink
from transom.host.model_apis import Api, tools_for
from transom.host.news import News
from transom.host.open_views import Openings, Shelf, origin_of
from transom.host.policy import Limits, Policy
from transom.host.refresh import Relist, settle
from transom.host.renderers import AttachesToHost, Renderer, TakesScreenshots
from transom.host.server_tools import Servers
from transom.host.surface import (
    LIST_VIEW_TOOLS,
    Change,
    Entry,
    Style,
    Surface,
    ToolList,
    ViewCall,
    view_listing,
)
from transom.host.tasks import Tasks, owned_task, split_task_id
from transom.host.tool_names import SEPARATOR, owner_of
from transom.host.view import Home, ModelContext, View
from transom.protocol.messages import TaskRequest
from transom.protocol.methods import read_result
from transom.servers.targets import Target
from transom.session import OnProgress
from transom.types import HostContext, Implementation, Task, Tool, ToolResult
from transom.version import __version__

__all__ = ["Host"]

_log = logging.getLogger("transom.host")

_ASKED = (
    "on_message",
    "on_open_link",
    "on_download_file",
    "on_request_display_mode",
    "on_create_message",
)
_TOLD = ("on_size_changed", "on_log")

_MB = 1024 * 1024
_MAX_TASK_VIEWS = 1000  # Views that wait for the result of a task


class Host:
    """Connects servers, opens their Views, and offers the tools of both to a model.

        async with Host(renderer=InProcessRenderer({...}), policy=Policy(approve=ask)) as host:
            await host.add_server("orders", ["python", "orders.py"])
            result = await host.call_tool("show_orders", {"status": "open"})
            tools = await host.list_tools()

    Args:
        renderer: what shows Views. None: tools that link one just run.
        policy: who may call the tools of Views; by default those that only read.
        limits: how much a View may cost.
        naming: `flat`: every View tool is a tool of its own; `indirect`: two tools list and call
            them all; `both`.
        audit: an `AuditLog`, or what to make one of: the path of an SQLite file, a callable that
            takes JSON lines, or None for no audit. By default the last 10,000 events in memory.
        info: how the host names itself to Views.
        context: what Views are told of their surroundings.
        call_timeout: seconds a server's tool may take without an answer or a progress notice.
        open_timeout: seconds a View may take to come to live; a call that opens one waits for it.
        max_page_bytes: how large a View's page may be.
        max_context_bytes: how much a View may tell the model with one update.

    Events, assigned or as decorators, sync or async. Told: `on_tools_changed()`,
    `on_view_opened(view)`, `on_view_closed(view)`, `on_view_failed(view, error)`,
    `on_server_lost(name, reason)`, `on_size_changed(view, width, height)`, `on_log(view, entry)`,
    `on_model_context(view)`, `on_error(error)`. Asked: `on_message(view, blocks)`,
    `on_open_link(view, url)`, `on_download_file(view, files)`,
    `on_request_display_mode(view, mode)`, `on_create_message(view, params)`, answered as on a
    `Bridge`. What is asked must be set before a View opens: it is told what the host can do.
    """

    on_tools_changed = Event["Host"]()
    on_view_opened = Event["Host"]()
    on_view_closed = Event["Host"]()
    on_view_failed = Event["Host"]()
    on_server_lost = Event["Host"]()
    on_message = Event["Host"]()
    on_open_link = Event["Host"]()
    on_download_file = Event["Host"]()
    on_request_display_mode = Event["Host"]()
    on_create_message = Event["Host"]()
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
        naming: Style = "flat",
        audit: AuditLog | str | Path | Sink | None = ":memory:",
        info: Implementation | None = None,
        context: HostContext | None = None,
        call_timeout: float | None = 300.0,
        open_timeout: float = 15.0,
        max_page_bytes: int = 10 * _MB,
        max_context_bytes: int = 256 * 1024,
    ) -> None:
        if naming not in ("flat", "indirect", "both"):
            raise UsageError(f"naming is flat, indirect or both, not {naming!r}")
        self.renderer = renderer
        self.limits = limits if limits is not None else Limits()
        self._news = News(lambda: self.on_error, lambda: self.on_tools_changed)
        self.audit = _audit_log(audit)
        self.audit.on_problem = self._news.report
        self._call_timeout = call_timeout
        self._surface = Surface(naming, max_description=self.limits.max_description)
        self._shelf = Shelf(self.limits.max_live_views)
        self._stale: set[Relist] = set()
        self._tasks = Tasks()
        self._task_views: dict[str, View] = {}
        self._approvals = Approvals(
            policy if policy is not None else Policy(), self.audit, self._news.report
        )
        self._servers = Servers(
            self._surface,
            self.audit,
            self._stale,
            interval=self.limits.relist_interval,
            on_changed=lambda name, change: self._changed(name, None, change),
            on_lost=lambda name, reason: self._news.fire(self.on_server_lost, name, reason),
            on_problem=self._news.report,
        )
        self._task_desk = TaskDesk(self._tasks, self._shelf, self._servers, self._view_gone)
        home = Home(
            limits=self.limits,
            audit=self.audit,
            approvals=self._approvals,
            stale=self._stale,
            max_context_bytes=max_context_bytes,
            listed=self._view_listed,
            used=self._shelf.touch,
            ended=self._view_ended,
            informed=lambda view: self._news.fire(self.on_model_context, view),
            screenshot=self._screenshot,
        )
        self._openings = Openings(
            self._shelf,
            home,
            self._tasks,
            host_info=info or Implementation("transom", __version__),
            context=context or HostContext(),
            timeout=open_timeout,
            max_page_bytes=max_page_bytes,
            handlers=self._view_handlers,
            on_opened=lambda view: self._news.fire(self.on_view_opened, view),
            on_failed=lambda view, error: self._news.fire(self.on_view_failed, view, error),
        )
        self._stack: AsyncExitStack | None = None
        self._closed = False

    # --- life --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        if self._stack is not None or self._closed:
            raise UsageError("A Host is entered once: make another one")
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self.audit.aclose)
            renderer: Any = self.renderer
            if renderer is not None and hasattr(renderer, "__aenter__"):
                await stack.enter_async_context(renderer)
            self._stack = stack.pop_all()
        if isinstance(self.renderer, AttachesToHost):
            self.renderer.attach_host(self)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Tear down every View, disconnect every server, write the audit. Safe to repeat."""
        stack, self._stack = self._stack, None
        self._closed = True
        if stack is None:
            return
        async with stack:
            views = list(self._shelf.values())
            if views:
                await asyncio.gather(*(view.close("the host was closed") for view in views))
            await self._servers.close()
            await self._news.aclose()

    def _check_open(self) -> None:
        if self._stack is None:
            what = "is closed" if self._closed else "is not open: use `async with Host(...)`"
            raise NotConnected(f"The host {what}")

    # --- servers -----------------------------------------------------------------------------

    @property
    def servers(self) -> list[str]:
        """The names of the servers that are connected."""
        return self._servers.names

    async def add_server(self, name: str, target: Target, *, timeout: float = 30.0) -> None:
        """Connect a server; its tools are there when this returns.

        Args:
            name: 1 to 32 of `A-Za-z0-9-_`. Its Views are called `NAME-1`, `NAME-2` ...
            target: a command as a list, the URL of a streamable HTTP server, an `MCPServer` or
                `FastMCP` object, a connected client (which stays yours to close), or an
                `Server` of your own.
            timeout: seconds it has to start.

        Raises:
            UsageError: the name is taken or cannot be used, or the target is no server.
            NotConnected: it cannot be reached. The host can be used as before.
        """
        self._check_open()
        if self._shelf.is_view_id(name):
            raise UsageError(f"{name} is the id of a View: choose another name for the server")
        await self._servers.add(name, target, timeout)

    async def remove_server(self, name: str) -> None:
        """Close a server's Views and disconnect it.

        Raises:
            UsageError: there is none of that name.
        """
        self._check_open()
        views = [view for view in self._shelf.values() if view.server == name]
        if views:
            await asyncio.gather(*(view.close("its server was removed") for view in views))
        await self._servers.remove(name)

    # --- tools -------------------------------------------------------------------------------

    async def list_tools(self) -> ToolList:
        """The tools a model may call right now, to be read like any list.

        Whoever said that its tools changed is asked again, for half a second altogether; whoever
        does not answer by then is shown as before.
        """
        self._check_open()
        await self._freshen()
        return self._surface.tools()

    async def _freshen(self) -> None:
        await asyncio.sleep(0)  # news that is here already, but not yet handed on, counts
        self._servers.freshen()
        if self._stale:
            await settle(list(self._stale), self.limits.fresh_timeout)

    async def tools_for(self, api: Api) -> list[dict[str, Any]]:
        """The same, in the shape that an API takes.

        Args:
            api: `anthropic` (Messages), `openai` (Chat Completions) or `mcp` (`tools/list`).

        Raises:
            UsageError: there is no such API.
        """
        return tools_for(api, await self.list_tools())

    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        task: None = None,
    ) -> ToolResult: ...
    @overload
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        task: TaskRequest | Mapping[str, Any] | None,
    ) -> ToolResult | Task: ...
    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
        task: TaskRequest | Mapping[str, Any] | None = None,
    ) -> ToolResult | Task:
        """Call a tool by the name that `list_tools` gives it.

        A server's tool that links a View opens one, and the call waits until it is there. The
        result's `meta["transom/view"]` has the View's `id` and `state`, and the `error` if it
        could not be opened.

        Args:
            name: the tool.
            arguments: a JSON object.
            timeout: seconds without an answer or a progress notice, in place of the host's own.
            on_progress: called with each progress notice; may be async.
            task: ask to run it as a task, such as `{"ttl": 60000}`; see `get_task`.

        Raises:
            ViewClosed: the View it belongs to is gone, or went before it answered.
            Refused: the policy does not allow it.
            ProtocolError: there is no such tool, or it answered with an error.
            InvalidResult: the answer is no result, or is too large.
            RequestTimeout: there was no answer in time.
            ConnectionClosed: the server is gone.
        """
        entry = self._surface.find(name)
        if entry is None or self._stack is None:
            entry = await self._find_late(name, arguments)
        if entry.kind == "view":
            view = self._shelf[entry.owner]
            return await view.call_tool(
                entry.tool.name, arguments, timeout=timeout, on_progress=on_progress, task=task
            )
        if entry.kind == "indirect":
            return await self._call_indirect(entry, arguments, timeout, on_progress, task)
        return await self._call_server_tool(entry, arguments, timeout, on_progress, task)

    async def call_server_tool(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> ToolResult:
        """Call a server's tool by the name that the server gives it; otherwise as `call_tool`.

        Raises:
            ProtocolError, InvalidResult, RequestTimeout, ConnectionClosed: as `call_tool`.
        """
        entry = self._surface.find_server_tool(server, name)
        if entry is None:
            await self._freshen()
            entry = self._surface.find_server_tool(server, name)
        if entry is None:
            raise ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        result = await self._call_server_tool(entry, arguments, timeout, on_progress, None)
        assert isinstance(result, ToolResult)  # noqa: S101 - no task was asked for
        return result

    def view_tools(self, view_id: str) -> list[Tool]:
        """The tools of an open View, under the names a model knows them by; none if it is gone."""
        return self._surface.shown(view_id)

    async def _find_late(self, name: str, arguments: Mapping[str, Any] | None) -> Entry:
        """A tool that is not there yet, or not any more."""
        self._check_open()
        owner = owner_of(name)
        view = None if owner is None else self._shelf.get(owner)
        await (self._freshen() if view is None else view.settled())
        entry = self._surface.find(name)
        if entry is not None:
            return entry
        tool = name.partition(SEPARATOR)[2]
        if view is not None and view.may_explain(tool):
            return Entry("view", view.id, Tool(name=tool), Tool(name=name))
        error: TransomError = ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        server = self._surface.holder(name)
        if owner is not None and self._shelf.is_view_id(owner) and owner not in self._shelf:
            error = self._view_gone(owner)
        elif server is not None and (reason := self._servers.why_gone(server)) is not None:
            error = ConnectionClosed(f"{name[:128]}: server {server} is gone: {reason}")
        self.audit.record(
            "refusal", "refused", tool=name[:128], arguments=arguments, detail=str(error)
        )
        raise error

    async def _call_server_tool(
        self,
        entry: Entry,
        arguments: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
        task: TaskRequest | Mapping[str, Any] | None,
    ) -> ToolResult | Task:
        view, problem = None, None
        try:
            view = self._start_view(entry.owner, entry.tool, arguments)
        except TransomError as error:
            problem = str(error)
        try:
            result = await self._servers.call(
                entry.owner,
                entry.tool.name,
                arguments,
                timeout=self._call_timeout if timeout is None else timeout,
                on_progress=on_progress,
                task=task,
            )
        except BaseException as error:
            if view is not None:
                cancelled = isinstance(error, asyncio.CancelledError)
                reason = "The call was cancelled" if cancelled else "The call failed"
                self._news.aside(view.deliver(cancelled=reason))
            raise
        if view is None:
            return result if problem is None else _with_note(result, {"error": problem})
        if isinstance(result, Task):
            self._task_views[result.task_id] = view
            if len(self._task_views) > _MAX_TASK_VIEWS:
                del self._task_views[next(iter(self._task_views))]
        else:
            await view.deliver(result)
        with suppress(ViewClosed):
            await view.opened()
        note = {"id": view.id, "state": view.state}
        return _with_note(result, note if view.state == "live" else {**note, "error": view.reason})

    async def _call_indirect(
        self,
        entry: Entry,
        arguments: Mapping[str, Any] | None,
        timeout: float | None,
        on_progress: OnProgress | None,
        task: TaskRequest | Mapping[str, Any] | None,
    ) -> ToolResult | Task:
        call = ViewCall.read(entry.tool.name, dict(arguments or {}))
        if entry.tool.name == LIST_VIEW_TOOLS:
            await self._freshen()
            views = self._shelf.values() if call.view_id is None else [self.view(call.view_id)]
            return view_listing((view.label, self._surface.shown(view.id)) for view in views)
        if call.view_id is None or call.name is None:
            raise ProtocolError(INVALID_PARAMS, f"{entry.tool.name} needs view_id and name")
        view = self.view(call.view_id)
        found = self._surface.find_view_tool(view.id, call.name)
        name = call.name if found is None else found.tool.name
        return await view.call_tool(
            name, call.arguments, timeout=timeout, on_progress=on_progress, task=task
        )

    # --- Views -------------------------------------------------------------------------------

    @property
    def views(self) -> Mapping[str, View]:
        """The open Views, by id; the least recently used one first."""
        return self._shelf

    def view(self, view_id: str) -> View:
        """An open View.

        Raises:
            ViewClosed: it is closed, or there never was one of that id.
        """
        view = self._shelf.get(view_id)
        if view is None:
            raise self._view_gone(view_id)
        return view

    def was_view(self, view_id: str) -> bool:
        """Whether there is a View of that id, or was one."""
        return self._shelf.is_view_id(view_id)

    async def open_view(
        self, server: str, tool: str, arguments: Mapping[str, Any] | None = None
    ) -> View:
        """Open the View that a server's tool links, without calling the tool.

        For whoever calls the server's tool themselves. This returns as soon as the View has its id
        and is opening, so that the call can run at the same time:

            view = await host.open_view("orders", "show_orders", arguments)
            await view.deliver(await call_it_myself(arguments))
            await view.opened()

        Args:
            server: the name it was added under.
            tool: the tool, by the server's own name for it.
            arguments: the arguments of the call, which the View gets as its input.

        Raises:
            UsageError: there is no such server, the tool links no View, or the host has no
                renderer.
            ProtocolError: the server has no such tool, or could not list its tools.
            InvalidResult: the tool links something that is no View.
            ConnectionClosed: the server is gone.
        """
        self._check_open()
        if self.renderer is None:
            raise UsageError("A host without a renderer cannot open Views")
        if server not in self._servers and self._servers.why_gone(server) is None:
            raise UsageError(f"There is no server {server}; there are: {', '.join(self.servers)}")
        definition = await self._servers.server(server).tool(tool)
        if definition is None:
            raise ProtocolError(INVALID_PARAMS, f"Server {server} has no tool {tool[:128]}")
        view = self._start_view(server, definition, arguments)
        if view is None:
            raise UsageError(f"Tool {tool[:128]} of server {server} links no View")
        return view

    async def reopen(self, view_id: str) -> View:
        """Open a closed View again, under its old id, with its input and result.

        Raises:
            ViewClosed: it cannot be opened, or there is nothing left of it.
            ConnectionClosed: its server is gone.
            UsageError: the host has no renderer.
        """
        self._check_open()
        if (view := self._shelf.get(view_id)) is not None:
            await view.opened()
            return view
        closed = self._shelf.closed(view_id)
        if closed is None:
            raise self._view_gone(view_id)
        if self.renderer is None:
            raise UsageError("A host without a renderer cannot open Views")
        origin = closed.origin
        if origin.result is None and origin.cancelled is None:
            origin.cancelled = "The call had not ended when the View was closed"
        upstream = self._servers.server(origin.server)
        view = self._openings.begin(view_id, origin, upstream, self.renderer)
        await view.opened()
        return view

    def set_context(self, **changes: Any) -> None:
        """Change what Views are told of their surroundings, those that are open too.

        Keys go by their wire name (`displayMode`); None takes a key away.

        Raises:
            msgspec.ValidationError: a value makes no sense.
        """
        self._openings.set_context(changes)
        for view in self._shelf.values():
            if view.bridge is not None and view.state in ("opening", "live"):
                self._news.aside(view.bridge.set_context(**changes))

    def model_context(self) -> list[ModelContext]:
        """What each open View last wanted the model to know, the oldest first."""
        found = [view.model_context for view in self._shelf.values()]
        return sorted((each for each in found if each is not None), key=lambda each: each.when)

    def _start_view(
        self, server: str, tool: Tool, arguments: Mapping[str, Any] | None
    ) -> View | None:
        """Begin to open the View that a tool links; None when it links none.

        Raises:
            InvalidResult: the tool links something that is no View.
            ConnectionClosed: the server is gone.
        """
        if self.renderer is None:
            return None
        try:
            origin = origin_of(server, tool, arguments)
            if origin is None:
                return None
            upstream = self._servers.server(server)
        except (InvalidResult, ConnectionClosed) as error:
            self._news.report(error)
            self.audit.record("view", "failed", server=server, tool=tool.name, detail=str(error))
            raise
        view_id = self._shelf.new_id(server, dict.fromkeys(self._servers.names))
        return self._openings.begin(view_id, origin, upstream, self.renderer)

    def _view_gone(self, view_id: str) -> ViewClosed:
        closed = self._shelf.closed(view_id)
        if closed is not None:
            opener = closed.origin.tool.name[:128]
            text = f"View {view_id} is closed: {closed.reason}. Call {opener} to open another one"
        elif self._shelf.is_view_id(view_id):
            text = f"View {view_id} is closed"
        else:
            text = f"There is no View {view_id[:128]}"
        return ViewClosed(view_id, text)

    def _view_handlers(self, view: View) -> dict[str, Callable[..., Any]]:
        handlers: dict[str, Callable[..., Any]] = {
            "on_request_teardown": partial(self._teardown_requested, view),
            "on_error": self._news.report,
        }
        for name in _ASKED:
            slot: Slot = getattr(self, name)
            if slot:
                handlers[name] = partial(self._ask, slot, view)
        for name in _TOLD:
            slot = getattr(self, name)
            if slot:
                handlers[name] = partial(self._news.fire, slot, view)
        return handlers

    def _ask(self, slot: Slot, view: View, *arguments: object) -> Any:
        self._shelf.touch(view)
        return slot.ask(view, *arguments)

    def _teardown_requested(self, view: View) -> None:
        if not view.pinned and view.state == "live":
            self._news.aside(view.close("it asked to be closed"))

    def _view_listed(self, view: View) -> None:
        self._changed(view.server, view.id, self._surface.put_view(view.label, view.tools))

    def _view_ended(self, view: View) -> None:
        self._changed(view.server, view.id, self._surface.drop("view", view.id))
        self._approvals.grants.forget(view.id)
        self._shelf.remove(view)
        if view.state == "closed":
            self.audit.record(
                "view", "closed", server=view.server, view=view.id, detail=view.reason
            )
            self._news.fire(self.on_view_closed, view)

    async def _screenshot(self, view: View) -> bytes:
        if not isinstance(self.renderer, TakesScreenshots):
            raise UsageError(
                f"{type(self.renderer).__name__} cannot take screenshots; HeadlessRenderer can"
            )
        return await self.renderer.screenshot(view.id)

    # --- tasks -------------------------------------------------------------------------------

    async def get_task(self, task_id: str) -> Task:
        """How a task is doing that `call_tool` answered with.

        Raises:
            ViewClosed: the View that worked on it is gone, and it had not handed it to its server.
            ProtocolError: there is no such task.
        """
        self._check_open()
        return await self._task_desk.get(task_id)

    async def task_result(self, task_id: str, *, timeout: float | None = None) -> ToolResult:
        """The result of a task; waits until there is one.

        Raises:
            ViewClosed, ProtocolError: as for `get_task`.
            RequestTimeout: there was none in time.
        """
        self._check_open()
        result = await self._task_desk.result(task_id, timeout)
        view = self._task_views.pop(task_id, None)
        if view is not None:
            await view.deliver(result)
        return result

    async def cancel_task(self, task_id: str) -> Task:
        """Stop a task.

        Raises:
            ViewClosed, ProtocolError: as for `get_task`.
        """
        self._check_open()
        return await self._task_desk.cancel(task_id)

    # --- news --------------------------------------------------------------------------------

    def _changed(self, server: str, view_id: str | None, change: Change) -> None:
        for outcome, entries in (
            ("added", change.added),
            ("changed", change.changed),
            ("removed", change.removed),
        ):
            for entry in entries:
                self.audit.record(
                    "registration", outcome, server=server, view=view_id, tool=entry.tool.name
                )
        for name, reason in change.left_out.items():
            self.audit.record(
                "registration",
                "left out",
                server=server,
                view=view_id,
                tool=name[:128],
                detail=reason,
            )
        if change:
            self._news.tools_changed()


class TaskDesk:
    """Finds whoever knows about a task.

    Args:
        tasks: what servers handed to Views.
        views: the open Views.
        servers: the servers.
        gone: the error for a View that is not there any more.
    """

    def __init__(
        self,
        tasks: Tasks,
        views: Mapping[str, View],
        servers: Servers,
        gone: Callable[[str], TransomError],
    ) -> None:
        self._tasks = tasks
        self._views = views
        self._servers = servers
        self._gone = gone

    async def get(self, task_id: str) -> Task:
        """How a task is doing."""
        owner, _ = split_task_id(task_id)
        return owned_task(owner, await self._ask("get", task_id, Task, None))

    async def result(self, task_id: str, timeout: float | None) -> ToolResult:
        """What came of it, once it has ended."""
        return await self._ask("result", task_id, ToolResult, timeout)

    async def cancel(self, task_id: str) -> Task:
        """Stop it."""
        owner, _ = split_task_id(task_id)
        return owned_task(owner, await self._ask("cancel", task_id, Task, None))

    async def _ask(self, what: str, task_id: str, kind: Any, timeout: float | None) -> Any:
        owner, inner = split_task_id(task_id)
        view = self._views.get(owner)
        bridge = None if view is None else view.bridge
        if bridge is not None:
            asked = {"get": bridge.get_task, "result": bridge.task_result}
            ask: Any = asked.get(what, bridge.cancel_task)
            try:
                return await ask(inner, timeout=timeout)
            except (ConnectionClosed, NotConnected):
                pass  # it went while it was asked; its server may know
        server = owner if owner in self._servers else self._tasks.handed(owner, inner)
        if server is None:
            raise self._gone(owner)
        method = f"tasks/{what}"
        try:
            async with asyncio.timeout(timeout):
                raw = await self._servers.server(server).request(method, {"taskId": inner})
        except TimeoutError:
            raise RequestTimeout(f"{method}: no answer within {timeout:g} s") from None
        return read_result(method, kind, raw)


def _audit_log(given: AuditLog | str | Path | Sink | None) -> AuditLog:
    if isinstance(given, AuditLog):
        return given
    if given == ":memory:":
        return AuditLog(given, max_rows=10_000, max_bytes=8 * _MB)
    return AuditLog(given)


def _with_note(result: ToolResult | Task, note: Mapping[str, Any]) -> ToolResult | Task:
    if isinstance(result, Task):
        return result
    meta = {**(result.meta or {}), "transom/view": dict(note)}
    return msgspec.structs.replace(result, meta=meta)
