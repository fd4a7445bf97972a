"""The Views of one client: how its calls open them, call their tools, and get their messages.

1. A call that opens a View goes to the server as the client sent it, and its result comes back as
   the server sent it, with one text more: which View is open, and what it can do.
2. A failure of a View never changes the result of the call that opened it.
3. Where lists may change, the tools of Views are in the client's list. Where they stand still, the
   fixed tools `list_view_tools` and `call_view_tool` are there from the beginning. `eras.py` says
   which it is, how the client names a View, and when a View opens.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

import msgspec

from transom.background import Background, Debounced, ignore
from transom.connections.connection import ServerConnection
from transom.connections.versions import is_complete, without_hop_keys
from transom.drive.tools import (
    ACT_ON_VIEW,
    DRIVE_TOOLS,
    LOOK_AT_VIEW,
    SCREENSHOT_VIEW,
    VIEW_ID_SCHEMA,
)
from transom.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    InvalidResult,
    NotConnected,
    ProtocolError,
    TransomError,
)
from transom.gateway.client import Client
from transom.gateway.client_host import (
    COALESCE,
    ClientHost,
    ViewOptions,
    ViewRecords,
    log_error,
)
from transom.gateway.eras import ClientRequest, ends_call, streams_list_views
from transom.gateway.inputs import Inputs
from transom.gateway.subscriptions import Subscriptions
from transom.gateway.view_messages import (
    INDEX,
    INDEX_URI,
    ViewMessages,
    text_block,
    unmarked,
    uri_of,
    with_blocks,
)
from transom.gateway.view_tasks import MAX_TASK_TIME, CallTasks
from transom.host.tools.indirect_tools import INDIRECT_TOOLS, LIST_VIEW_TOOLS
from transom.host.tools.tool_names import owner_of
from transom.host.tools.tool_visibility import links_view, model_may_call
from transom.json_values import clean, member, without_marks
from transom.protocol import wire
from transom.protocol.messages import OPEN
from transom.protocol.methods import read_result
from transom.session import OnProgress
from transom.types import (
    ImageContent,
    Task,
    TextContent,
    Tool,
    ToolAnnotations,
    ToolExecution,
    ToolResult,
    ViewProblem,
)

if TYPE_CHECKING:
    from transom.host.host import Host
    from transom.host.open_views import ShownCall
    from transom.host.tools.surface import Naming
    from transom.host.views.view import View

_log = logging.getLogger("transom.gateway")

Forward = Callable[[], Awaitable[bytes]]
"""Sends a client's call to its server; returns the result as JSON."""

_SCREENSHOT = Tool(
    name=SCREENSHOT_VIEW,
    title="Take a picture of an open View",
    description="Take a picture of an open View as it looks now.",
    input_schema={
        "type": "object",
        "properties": {"view_id": VIEW_ID_SCHEMA},
        "required": ["view_id"],
    },
    annotations=ToolAnnotations(read_only_hint=True),
)
STANDING_TOOLS: Final = frozenset(
    {SCREENSHOT_VIEW, *(tool.name for tool in (*INDIRECT_TOOLS, *DRIVE_TOOLS))}
)
"""The names of the fixed tools through which Views are used."""
_NO_SUCH_VIEW: Final = (
    f"There is no View with this view_id: {LIST_VIEW_TOOLS} names those that are open"
)
_MAX_REASON = 500
_MAX_NAMED = 20  # tools named in the result of a call that opened a View


class ToolHead(msgspec.Struct):
    """The parts of a tool's definition that decide what to do with it."""

    name: str
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def for_model(self) -> bool:
        """Whether a model may see it."""
        return model_may_call(Tool(name=self.name, meta=self.meta))


class ClientViews:
    """The Views of one client, whom the user sees as `client_name`."""

    def __init__(
        self,
        options: ViewOptions,
        client: Client,
        inputs: Inputs,
        subscriptions: Subscriptions,
        *,
        client_name: str = "",
        records: ViewRecords | None = None,
    ) -> None:
        self.tasks = CallTasks()
        """Calls of Views' tools that run as tasks."""
        self.learned = False
        """Whether the servers' tools, and so which of them open Views, are known."""
        self._options = options
        self._client = client
        self._inputs = inputs
        self._subscriptions = subscriptions
        self._messages = ViewMessages()
        self._taken: set[str] = set()
        self._tools_changed = Debounced(self._notify_tools_changed, log_error, delay=COALESCE)
        self._background = Background(log_error)
        self._host = ClientHost(options, client_name, inputs, records, self._configure)

    def _configure(self, host: Host) -> None:
        if self._client.identity.supports("sampling"):
            host.on_create_message = self._create_message
        host.on_message = self._message
        host.on_model_context = self._model_context
        host.on_view_opened = self._view_opened
        host.on_view_closed = self._view_closed
        host.on_view_failed = self._view_closed
        host.on_tools_changed = self._tools_changed.trigger
        host.on_error = log_error
        host.on_view_problem = _log_view_problem

    def learn_tools(self, heads: Iterable[ToolHead]) -> None:
        """The client got these tools of servers. If one opens a View, load what that needs."""
        self.learned = True
        for head in heads:
            self._taken.add(head.name)
            if self._options.screen is not None and not self._host.needed and links_view(head.meta):
                self._host.begin()

    def server_lost(self, name: str, reason: str) -> None:
        """A server was lost: close its Views."""
        self._host.server_lost(name, reason)

    async def aclose(self) -> None:
        """Close every View."""
        self._tools_changed.close()
        self.tasks.close()
        await self._background.aclose()
        await self._host.aclose()

    # --- tools -------------------------------------------------------------------------------

    def owns(self, request: ClientRequest) -> bool:
        """Whether a call's tool belongs to a View, or is one of the fixed tools."""
        name = request.name or ""
        if name in self._taken or not self._host.needed:
            return False
        if name in self._standing():
            return True
        host, owner = self._host.host, owner_of(name)
        if host is None or owner is None or self._naming(request) == "indirect":
            return False
        return host.was_view(owner)

    def _standing(self) -> dict[str, Tool]:
        """The fixed tools, which do not depend on open Views."""
        tools = () if self._options.naming == "flat" else INDIRECT_TOOLS
        screen = self._options.screen
        if screen is not None and screen.drives and self._options.drive != "never":
            tools = (*tools, *DRIVE_TOOLS)
        if screen is not None and screen.pictures:
            tools = (*tools, _SCREENSHOT)
        return {tool.name: tool for tool in tools if tool.name not in self._taken}

    def _naming(self, request: ClientRequest) -> Naming:
        return request.naming(self._options.naming)

    async def tools(self, request: ClientRequest) -> tuple[list[bytes], bool]:
        """The tools to add to those of servers, and whether tools of Views may be among them."""
        if not self._host.needed:
            return [], False
        shown = list(self._standing().values())
        host, changing = self._host.host, self._naming(request) != "indirect"
        if host is not None and host.views and changing:
            await host.list_tools()  # lists Views again that may have changed
            for view_id in host.views:
                shown += [t for t in host.view_tools(view_id) if t.name not in self._taken]
        return [wire.encode(tool) for tool in shown], changing

    async def call(self, request: ClientRequest) -> bytes:
        """Call a tool of a View, or one of the fixed tools."""
        host, name = await self._host.ready(), request.name or ""
        request.servers.update(host.servers)
        task = request.task_wanted()
        if task is not None and request.asks_for_tasks and not self._may_be_task(host, name):
            raise ProtocolError(METHOD_NOT_FOUND, f"Tool {name[:128]} cannot run as a task")
        result: Any
        try:
            arguments = self._with_view_id(request)
            relay = self._progress_relay(request)
            if name == SCREENSHOT_VIEW:
                result = await _picture(host, arguments)
            elif task is None:
                result = await host.call_tool(name, arguments, on_progress=relay)
            else:
                result = await host.start_task(name, arguments, ttl=task.ttl, on_progress=relay)
        except ProtocolError:
            raise
        except TransomError as error:
            result = _error_result(error)
        if name == LIST_VIEW_TOOLS:
            result = self._with_names(result, request)
        if task is None or not request.answers_with_task(result):
            return self._finished(result, request)
        return await self.tasks.run(request, self._follow(host, result, request), task)

    def _may_be_task(self, host: Host, name: str) -> bool:
        """Whether a tool can run as a task, as far as it is known."""
        shown = [*self._standing().values(), *host.view_tools(owner_of(name) or "")]
        executions = [tool.execution for tool in shown if tool.name == name]
        return executions != [None] and executions != [ToolExecution("forbidden")]

    def _finished(self, result: ToolResult, request: ClientRequest) -> bytes:
        """The result of a call, with what Views sent to the model."""
        return request.completed(with_blocks(result.to_wire(), self._messages.take_unseen()))

    async def _follow(self, host: Host, result: ToolResult | Task, request: ClientRequest) -> bytes:
        """Wait for a View's task, and stop it if the call is cancelled."""
        if isinstance(result, Task):
            id = result.task_id
            try:
                result = await host.task_result(id, timeout=MAX_TASK_TIME)
            except asyncio.CancelledError:
                self._background.start(host.cancel_task(id))
                raise
            except ProtocolError:
                raise
            except TransomError as error:
                result = _error_result(error)
        return self._finished(result, request)

    def _with_view_id(self, request: ClientRequest) -> dict[str, Any]:
        """The arguments of a call, with the id of a View in place of the client's name for it."""
        arguments = request.arguments
        name = arguments.get("view_id")
        if name is None or request.name not in self._standing():
            return arguments
        view_id = request.find_view(name, self._host.handles)
        if view_id is None:
            raise NotConnected(_NO_SUCH_VIEW)
        return {**arguments, "view_id": view_id}

    def _name(self, view_id: str, request: ClientRequest) -> str:
        return request.name_of(view_id, self._host.handles)

    def _with_names(self, result: ToolResult, request: ClientRequest) -> ToolResult:
        """A listing of Views with the client's names for them."""
        if result.is_error or result.structured_content is None:
            return result
        views = result.structured_content["views"]
        named = [{**each, "view_id": self._name(each["view_id"], request)} for each in views]
        if named == views:
            return result
        listed = {"views": named}
        text = TextContent(wire.encode(listed).decode())
        return ToolResult(content=[text], structured_content=listed)

    def _progress_relay(self, request: ClientRequest) -> OnProgress:
        relay = self._client.progress_relay(request)
        if relay is None:
            return ignore  # a page that reports progress may take longer, whoever asked for it
        # A View's own params do not reach the client.
        return lambda progress: relay(msgspec.structs.replace(progress, params=None))

    # --- opening -----------------------------------------------------------------------------

    def has_part_in(self, connection: ServerConnection, request: ClientRequest) -> bool:
        """Whether a call concerns Views: it opens one, is for one, or its result carries messages.

        Also for a tool that only Views may call, which must be refused.
        """
        cache, name = connection.tool_cache, request.name
        if self._host.needed or name is None or not cache.current:
            return True
        tool = cache.known(name)
        if tool is None:
            return name in STANDING_TOOLS
        opens = self._options.screen is not None and links_view(tool.meta)
        return opens or not model_may_call(tool)

    def opened_by(self, connection: ServerConnection, request: ClientRequest) -> Tool | None:
        """The server's tool, if this call of it opens a View."""
        tool = connection.tool_cache.known(request.name or "")
        if self._options.screen is None or tool is None or not links_view(tool.meta):
            return None
        wanted = self._host.settings_of(connection).opening(tool) != "never"
        return tool if wanted and member(request.meta.get(OPEN)) is not False else None

    async def open(
        self, connection: ServerConnection, tool: Tool, request: ClientRequest, forward: Forward
    ) -> bytes:
        """Make a call that opens a View; its result, with a text about the View."""
        if request.is_for_task:
            return await forward()  # there is no result to show yet
        if request.opens_during_call:
            return await self._show(connection, tool, request, forward)
        result = await forward()
        if not is_complete(result):
            return result
        return await self.show(connection, tool, request, result)

    async def show(
        self, connection: ServerConnection, tool: Tool, request: ClientRequest, result: bytes
    ) -> bytes:
        """Open the View of a call that has ended; its result, with a text about the View."""

        async def ended() -> bytes:
            return result

        return await self._show(connection, tool, request, ended)

    async def _show(
        self, connection: ServerConnection, tool: Tool, request: ClientRequest, forward: Forward
    ) -> bytes:
        result, running = b"", None
        asks = self._host.settings_of(connection).opening(tool) == "ask"
        if not asks and not self._host.has(connection):
            # The server works on the call while the host is made.
            running = asyncio.ensure_future(forward())

        async def call_server() -> ToolResult | None:
            nonlocal result
            result = await (forward() if running is None else running)
            try:
                answer = without_hop_keys("tools/call", result)
                return read_result("tools/call", ToolResult, answer)
            except InvalidResult:
                return None

        try:
            try:
                host, arguments = await self._host.with_server(connection), request.arguments
            except Exception as error:  # noqa: BLE001 - the call's result is not touched by it
                await call_server()
                about = self._not_shown(tool, error)
            else:
                name = connection.name
                shown = await host.call_with_view(name, tool, arguments, call_server)
                about = self._describe(host, tool, shown, request)
        finally:
            if running is not None:
                running.cancel()
        return with_blocks(
            without_marks(result), [*self._messages.take_unseen(), text_block(about)]
        )

    @staticmethod
    def _not_shown(tool: Tool, error: Exception | str) -> str:
        if isinstance(error, str | TransomError):
            reason = clean(str(error), _MAX_REASON)
            _log.warning("The View of %s could not be opened: %s", tool.name, reason)
        else:
            reason = "the gateway failed"
            _log.error("a View could not be opened", exc_info=error)
        return f"The View of this tool could not be shown: {reason}"

    def _describe(
        self, host: Host, opener: Tool, shown: ShownCall[Any], request: ClientRequest
    ) -> str:
        """The text for the model about the View of a call."""
        assert self._options.screen is not None  # noqa: S101 - there would be no View
        view, where = shown.view, self._options.screen.where()
        if view is None:
            return self._not_shown(opener, shown.error or "it may not open one now")
        if shown.error is not None:
            reason = clean(shown.error, _MAX_REASON)
            waits = view.state == "waiting"  # the module of `ViewState` loads much
            failed = "has not opened so far" if waits else "could not be opened"
            _log.warning("View %s %s: %s", view.id, failed, reason)
            text = f"The View of this tool {failed}: {reason}"
            return text if where is None else f"{text}\nViews are shown at {where}"
        lines = [f"View {view.id} is open"]
        if where is not None:
            lines[0] += f", and the user sees it at {where}"
        elif self._options.screen.pictures:
            by_id = f'{SCREENSHOT_VIEW} with view_id "{self._name(view.id, request)}"'
            lines[0] += f" in a browser without a window; {by_id} shows it"
        if shown.reused:
            lines.append("It was open already, and shows this call now.")
        elif view.app is not None:
            own = view.provenance.own_name
            lines.append(f'It is from server {view.server}, and calls itself "{own}".')
        names = [tool.name for tool in host.view_tools(view.id)]
        naming = self._naming(request)
        if naming == "indirect":
            names = [tool.name for tool in view.tools if model_may_call(tool)]
        if names:
            more = len(names) - _MAX_NAMED
            listed = ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
            name = self._name(view.id, request)
            by_id = f'list_view_tools and call_view_tool with view_id "{name}"'
            if naming == "indirect":
                lines.append(f"It has tools of its own: {listed}\nCall them by {by_id}.")
            else:
                lines.append(f"It has tools of its own, which you can call: {listed}")
            if naming == "both":
                lines.append(f"If they are not in your list of tools, use {by_id}.")
        elif view.offers_tools:
            where = "list_view_tools" if naming != "flat" else "your list of tools"
            lines.append(f"It has no tools of its own yet; if it offers some later, see {where}.")
        else:
            lines.append("It has no tools of its own.")
        if host.may_drive(view.id) and LOOK_AT_VIEW in self._standing():
            by_id = f'{LOOK_AT_VIEW} with view_id "{self._name(view.id, request)}"'
            lines.append(f"{by_id} shows what is on it, and {ACT_ON_VIEW} uses it.")
        return "\n".join(lines)

    # --- messages of Views -------------------------------------------------------------------

    def with_messages(self, result: bytes) -> bytes:
        """A tool's result with what the model has not seen yet, if the result ends the call."""
        if not self._host.needed or not ends_call(result):
            return result
        return with_blocks(without_marks(result), self._messages.take_unseen())

    def resources(self, request: ClientRequest) -> list[bytes]:
        """The resources of Views, as listed."""
        if request.lists_change:
            return self._messages.resources()
        return [INDEX] if self._host.needed else []

    def read(self, uri: str, request: ClientRequest) -> bytes | None:
        """The result of reading one of them; None if `uri` is not one."""
        if uri != INDEX_URI and not uri.startswith(f"{INDEX_URI}/"):
            return None
        view_id = None
        if uri != INDEX_URI:
            view_id = request.find_view(uri.removeprefix(f"{INDEX_URI}/"), self._host.handles)
            if view_id is None:
                return None
        told = self._messages.read(view_id, lambda view_id: self._name(view_id, request))
        if told is None:
            return None
        text = wire.encode(told).decode()
        return wire.encode(
            {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}
        )

    def _message(self, view: View, blocks: list[Any]) -> None:
        self._messages.add_message(view.id, view.provenance.mark(), blocks)
        self._notify_updated(view.id)

    def _model_context(self, view: View) -> None:
        context = view.model_context
        if context is not None:
            title = view.provenance.mark()
            self._messages.set_context(view.id, title, context.content, context.structured_content)
            self._notify_updated(view.id)

    def _view_opened(self, view: View) -> None:
        self._messages.view_opened(view.id, view.provenance.mark())
        self._views_changed()

    def _view_closed(self, view: View) -> None:
        self._messages.view_closed(view.id)
        self._views_changed()

    def _views_changed(self) -> None:
        self._host.changed.trigger()
        # Those who have streams see the index alone: see `resources`.
        self._subscriptions.notify_list_changed("resources", streams=False)

    def _notify_updated(self, view_id: str) -> None:
        for name in self._host.handles.names_of(view_id):
            self._subscriptions.notify_resource_updated(uri_of(name))
        self._subscriptions.notify_resource_updated(INDEX_URI)

    def _notify_tools_changed(self) -> None:
        naming = self._options.naming
        if naming != "indirect":
            self._subscriptions.notify_list_changed("tools", streams=streams_list_views(naming))

    # --- requests of Views -------------------------------------------------------------------

    async def _create_message(self, view: View, params: Any) -> dict[str, Any]:
        message = unmarked(params)
        whose = f"⟦View {view.id}⟧ of server {view.server} asks for this."
        given: object = message.get("systemPrompt")
        message["systemPrompt"] = f"{whose}\n\n{given}" if given else whose
        asking = self._inputs.ask("sampling/createMessage", wire.encode(message), view.server)
        return msgspec.json.decode(await asking)


def _error_result(error: TransomError) -> ToolResult:
    return ToolResult(content=[TextContent(str(error))], is_error=True)


def _log_view_problem(view: View, problem: ViewProblem) -> None:
    """Log a View's problem for the author of the page, who cannot see it elsewhere."""
    text = clean(problem.message, _MAX_REASON)
    advice = "; the page's csp has to declare it" if problem.kind == "blocked" else ""
    if problem.source and problem.kind != "blocked":
        page = "the page" if problem.is_in_page else clean(problem.source, _MAX_REASON)
        advice = f" ({page}, line {problem.line}, column {problem.column})"
    _log.warning("View %s: %s: %s%s", view.id, problem.kind, text, advice)


async def _picture(host: Host, arguments: dict[str, Any]) -> ToolResult:
    view_id: object = arguments.get("view_id")
    if not isinstance(view_id, str):
        raise ProtocolError(INVALID_PARAMS, f"{SCREENSHOT_VIEW} needs a view_id")
    png = await host.view(view_id).screenshot()
    data = b64encode(png).decode()
    return ToolResult(content=[ImageContent(data=data, mime_type="image/png")])
