"""The Views of one client: how its calls open them, call their tools, and get their messages.

1. Nothing is loaded or shown until a tool opens a View: a server without Views costs nothing.
2. A call that opens a View goes to the server as the client sent it, and its result comes back as
   the server sent it, with one text more: which View is open, and what it can do.
3. A problem with a View never changes the result of the call that opened it.
4. Before 2026-07-28 a View opens while the server works on the call. From then on a server may ask
   for input first, several times, so its View opens when the call is complete.
5. Since 2026-07-28 no list may change because of a call. Requests of that version get the fixed
   tools `list_view_tools` and `call_view_tool` in their list, and name a View by a handle that
   cannot be guessed. Older clients use the short id of a View, and have its tools in the list.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from base64 import b64encode
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Raw

from transom.background import Background, Debounced, retrieve
from transom.connections.connection import ServerConnection
from transom.connections.versions import is_complete, without_hop_keys
from transom.errors import (
    INVALID_PARAMS,
    InvalidResult,
    NotConnected,
    ProtocolError,
    Refused,
    TransomError,
)
from transom.gateway.client import Client, ClientState
from transom.gateway.inputs import Approval, Elicitation, Inputs, policy_for
from transom.gateway.tasks import MAX_TASK_TIME, CallTasks, task_request
from transom.host.indirect_tools import INDIRECT_TOOLS, LIST_VIEW_TOOLS
from transom.host.limits import Limits
from transom.host.page import links_view
from transom.host.policy import ApprovalRequest, Decision, Deny, ViewCalls, model_may_call
from transom.host.tool_names import owner_of
from transom.host.view_settings import ViewSettings
from transom.json_values import clean, member, members, with_entries, without_marks
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
    ToolResult,
    ViewProblem,
)

if TYPE_CHECKING:
    from transom.host.host import Host
    from transom.host.open_views import ShownCall
    from transom.host.renderers import Renderer
    from transom.host.surface import Style
    from transom.host.view import View

_log = logging.getLogger("transom.gateway")

Forward = Callable[[], Awaitable[bytes]]
"""Sends a client's call to its server; returns the result as JSON."""

SCREENSHOT_VIEW: Final = "screenshot_view"
_SCREENSHOT = Tool(
    name=SCREENSHOT_VIEW,
    title="Take a picture of an open View",
    description="Take a picture of an open View as it looks now.",
    input_schema={
        "type": "object",
        "properties": {
            "view_id": {"type": "string", "description": "The id of an open View, such as orders-1"}
        },
        "required": ["view_id"],
    },
    annotations=ToolAnnotations(read_only_hint=True),
)
STANDING_TOOLS: Final = frozenset({SCREENSHOT_VIEW, *(tool.name for tool in INDIRECT_TOOLS)})
"""The names of the fixed tools through which Views are used."""
_NO_SUCH_VIEW: Final = (
    f"There is no View with this view_id: {LIST_VIEW_TOOLS} names those that are open"
)
_COALESCE = 0.01  # seconds in which several changes become one notification
_MAX_REASON = 500
_MAX_HANDLES = 1000
_MAX_RECORDS = 1024 * 1024  # bytes of records that may include the input and result of Views
_LOST_REPLICA = "the replica of the gateway that had it is gone"
_MAX_NAMED = 20  # tools named in the result of a call that opened a View
INDEX_URI: Final = "transom://views"
INDEX: Final = wire.encode(
    {
        "uri": INDEX_URI,
        "name": "views",
        "title": "Open Views",
        "description": "The open Views, and what each of them sent.",
        "mimeType": "application/json",
    }
)
_MAX_MESSAGES = 20
_MAX_MESSAGE = 64 * 1024
_MAX_UNSEEN_BYTES = 256 * 1024


def uri_of(view_id: str) -> str:
    """The resource with what a View sent to the model."""
    return f"{INDEX_URI}/{view_id}"


def text_block(text: str) -> dict[str, Any]:
    """A text for the model."""
    return {"type": "text", "text": text}


def with_blocks(result: Raw | bytes, blocks: Iterable[object]) -> bytes:
    """A tool's result with more content at its end; unchanged if it has no list of content."""
    added = [wire.encode(block) for block in blocks]
    try:
        content = msgspec.json.decode(members(result).get("content", b"[]"), type=list[Raw])
    except msgspec.DecodeError:
        return bytes(result)
    return with_entries(result, "content", [*content, *added])


class _Sender:
    """One View."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.messages: deque[dict[str, Any]] = deque(maxlen=_MAX_MESSAGES)
        self.context: dict[str, Any] | None = None
        self.context_unseen = False


class ViewMessages:
    """Messages and context of the open Views of one client."""

    def __init__(self) -> None:
        self._views: dict[str, _Sender] = {}
        self._unseen: deque[tuple[int, list[Any]]] = deque()
        self._unseen_bytes = 0

    # --- from Views --------------------------------------------------------------------------

    def view_opened(self, view_id: str, title: str) -> None:
        """A View has opened."""
        self._views[view_id] = _Sender(title)

    def view_closed(self, view_id: str) -> None:
        """A View has closed. What the model has not seen yet is kept."""
        view = self._views.pop(view_id, None)
        if view is not None and view.context_unseen:
            self._keep(_context_blocks(view_id, view))

    def add_message(self, view_id: str, blocks: Sequence[Any]) -> None:
        """Keep a message of a View to the model."""
        raw = without_marks(wire.encode(blocks))
        if len(raw) > _MAX_MESSAGE:
            raise Refused(f"A message of {len(raw)} bytes is over {_MAX_MESSAGE}")
        content = msgspec.json.decode(raw)
        self._keep([text_block(f"⟦View {view_id}⟧ sends this message:"), *content])
        view = self._views.get(view_id)
        if view is not None:
            view.messages.append({"when": _now(), "content": content})

    def set_context(self, view_id: str, content: Sequence[Any], structured: object) -> None:
        """Store a View's context in place of its previous one."""
        view = self._views.get(view_id)
        if view is None:
            return
        view.context = {"when": _now(), "content": _without_marks(content)}
        if structured is not None:
            view.context["structuredContent"] = _without_marks(structured)
        view.context_unseen = True

    # --- for the next result -----------------------------------------------------------------

    def _keep(self, blocks: list[Any]) -> None:
        size = len(wire.encode(blocks))
        self._unseen.append((size, blocks))
        self._unseen_bytes += size
        while self._unseen_bytes > _MAX_UNSEEN_BYTES and len(self._unseen) > 1:
            self._unseen_bytes -= self._unseen.popleft()[0]

    def take_unseen(self) -> list[Any]:
        """Everything the model has not seen yet, as content blocks; marks it as seen."""
        blocks = [block for _, kept in self._unseen for block in kept]
        self._unseen.clear()
        self._unseen_bytes = 0
        for view_id, view in self._views.items():
            if view.context_unseen:
                view.context_unseen = False
                blocks += _context_blocks(view_id, view)
        return blocks

    # --- for reading -------------------------------------------------------------------------

    def resources(self) -> list[bytes]:
        """The resources, as listed."""
        if not self._views:
            return []
        each = (
            {
                "uri": uri_of(view_id),
                "name": view_id,
                "title": f"View {view_id}",
                "description": f"What {view.title} sent: its context and its last messages.",
                "mimeType": "application/json",
            }
            for view_id, view in self._views.items()
        )
        return [INDEX, *(wire.encode(entry) for entry in each)]

    def read(self, view_id: str | None, names: Callable[[str], str]) -> object:
        """What a View, or all of them, sent to the model; None if there is no such View.

        Args:
            view_id: the View's id.
            names: the client's name for each View.
        """
        if view_id is None:
            return {"views": [self._state(each, names) for each in self._views]}
        return self._state(view_id, names) if view_id in self._views else None

    def _state(self, view_id: str, names: Callable[[str], str]) -> dict[str, Any]:
        view = self._views[view_id]
        return {
            "view_id": names(view_id),
            "title": view.title,
            "context": view.context,
            "messages": list(view.messages),
        }


def _context_blocks(view_id: str, view: _Sender) -> list[Any]:
    context = view.context or {}
    blocks = [text_block(f"⟦View {view_id}⟧ tells you:"), *context.get("content", ())]
    if "structuredContent" in context:
        blocks.append(text_block(wire.encode(context["structuredContent"]).decode()))
    return blocks


def _without_marks(value: object) -> Any:
    return msgspec.json.decode(without_marks(wire.encode(value)))


def _now() -> float:
    return round(time.time(), 3)


class ToolHead(msgspec.Struct):
    """The parts of a tool's definition that decide what to do with it."""

    name: str
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def for_model(self) -> bool:
        """Whether a model may see it."""
        return model_may_call(Tool(name=self.name, meta=self.meta))


class _Named(msgspec.Struct):
    name: str


_read_name = msgspec.json.Decoder(_Named).decode


class ToolCall(msgspec.Struct, frozen=True):
    """A `tools/call` of the client's: the tool's name, as its owner knows it, and the params."""

    name: str
    params: Raw | None
    modern: bool = False
    """Whether it is a request of 2026-07-28."""

    @property
    def arguments(self) -> dict[str, Any]:
        """The tool's arguments."""
        raw = members(self.params).get("arguments")
        if raw is None or bytes(raw) == b"null":
            return {}
        given: object = member(raw)
        if not isinstance(given, dict):
            text = f"Invalid arguments for {self.name[:128]}: not an object"
            raise ProtocolError(INVALID_PARAMS, text)
        return given  # pyright: ignore[reportUnknownVariableType]


class Display(Protocol):
    """Where Views are shown, for all clients of a gateway."""

    pictures: bool
    """Whether it can take pictures of Views."""

    async def seat(self, label: str) -> Renderer:
        """A renderer for the Views of one client."""
        ...

    def where(self) -> str | None:
        """The address of the page, as it may be shown to the user; None if there is no page."""
        ...


class ClientViews:
    """The Views of one client."""

    def __init__(
        self,
        screen: Display | None,
        *,
        surface: Style = "both",
        approval: Approval = "client",
        fresh: bool = False,
        view_calls: ViewCalls = "spec",
        approve_view_calls: bool = False,
        settings: Mapping[str, ViewSettings] | None = None,
        identities: Mapping[str, str] | None = None,
        label: str = "",
    ) -> None:
        self._screen = screen
        self._style: Style = surface
        self._approval: Approval = approval
        self._fresh = fresh
        self._view_calls: ViewCalls = view_calls
        self._approve_view_calls = approve_view_calls
        self._settings = settings or {}
        self._identities = identities or {}
        self._label = label
        self._messages = ViewMessages()
        self.tasks = CallTasks()
        """Calls of Views' tools that run as tasks."""
        self._handles: dict[str, str] = {}  # by View
        self._background = Background(_log_problem)
        self.learned = False
        """Whether the servers' tools, and so which of them open Views, are known."""
        self._needed = False
        self._taken: set[str] = set()
        self._making: asyncio.Task[Host] | None = None
        self._host: Host | None = None
        self._adding = asyncio.Lock()
        self._tools_changed = Debounced(self._notify_tools_changed, _log_problem, delay=_COALESCE)
        self._records: bytes | None = None
        self._keep: Callable[[bytes], Awaitable[None]] | None = None
        self._changed = Debounced(self._keep_records, _log_problem, delay=_COALESCE)

    def remember(self, records: bytes | None, keep: Callable[[bytes], Awaitable[None]]) -> None:
        """Take over the Views that this client had at another replica of the gateway.

        Args:
            records: what that replica stored.
            keep: stores the records of this one whenever they change.
        """
        self._records = records
        self._keep = keep

    def attach(self, client: Client, state: ClientState, inputs: Inputs) -> None:
        """Set the proxy and client of these Views."""
        self._client = client
        self._state = state
        self._inputs = inputs
        self._elicitation = Elicitation(
            inputs.ask,
            # Once a server's call is done, its result must not depend on whether the client calls
            # again to answer a question about the View.
            possible=lambda request: (
                inputs.possible("elicitation") and not (request.opens and inputs.asks_by_answer)
            ),
            otherwise=self._ask_on_page,
        )

    # --- the host ----------------------------------------------------------------------------

    def learn_tools(self, heads: Iterable[ToolHead]) -> None:
        """The client got these tools of servers. If one opens a View, load what that needs."""
        self.learned = True
        for head in heads:
            self._taken.add(head.name)
            if links_view(head.meta) and self._screen is not None and not self._needed:
                self._begin_host()

    def _begin_host(self) -> asyncio.Task[Host]:
        self._needed = True
        self._making = asyncio.ensure_future(self._make_host())
        self._making.add_done_callback(retrieve)
        return self._making

    async def _make_host(self) -> Host:
        assert self._screen is not None  # noqa: S101 - see `opened_by`
        # The SDK takes most of a second to load; the first answers should not wait for that.
        module: Any = await asyncio.to_thread(import_module, "transom.host.host")
        renderer = await self._screen.seat(self._label)
        self._on_page: Any = getattr(renderer, "approve", None)
        policy = policy_for(self._approval, self._ask_on_page, self._elicitation.approve)
        policy.view_calls = self._view_calls
        if self._approve_view_calls:
            policy.approve_view_calls = policy.approve or self._ask_on_page
        policy.approve_opening = policy.approve or self._ask_on_page
        host: Host = module.Host(
            renderer=renderer,
            policy=policy,
            limits=Limits(fresh=self._fresh),
            naming=self._style,
            call_timeout=None,
            audit=None,  # nobody could read it
        )
        if self._state.supports("sampling"):
            host.on_create_message = self._create_message
        host.on_message = self._message
        host.on_model_context = self._model_context
        host.on_view_opened = self._view_opened
        host.on_view_closed = self._view_closed
        host.on_tools_changed = self._tools_changed.trigger
        host.on_error = _log_problem
        host.on_view_problem = _log_view_problem
        await host.__aenter__()
        if self._records is not None:
            self._restore(host, self._records)
        self._host = host
        return host

    def _restore(self, host: Host, data: bytes) -> None:
        from transom.host.open_views import HostRecords  # noqa: PLC0415 - as in `_make_host`

        records, self._handles = msgspec.msgpack.decode(
            data, type=tuple[HostRecords, dict[str, str]]
        )
        views = {
            view_id: each if each.reason else msgspec.structs.replace(each, reason=_LOST_REPLICA)
            for view_id, each in records.views.items()
        }
        host.restore(msgspec.structs.replace(records, views=views))

    async def _keep_records(self) -> None:
        if self._keep is not None and self._host is not None:
            records = self._host.records()
            data = msgspec.msgpack.encode((records, self._handles))
            if len(data) > _MAX_RECORDS:
                views = {
                    view_id: msgspec.structs.replace(
                        each, origin=msgspec.structs.replace(each.origin, arguments={}, result=None)
                    )
                    for view_id, each in records.views.items()
                }
                slim = msgspec.structs.replace(records, views=views)
                data = msgspec.msgpack.encode((slim, self._handles))
            await self._keep(data)

    async def _ready(self) -> Host:
        making = self._making
        if making is None or (making.done() and (making.cancelled() or making.exception())):
            making = self._begin_host()
        return await asyncio.shield(making)

    async def _with_server(self, connection: ServerConnection) -> Host:
        host = await self._ready()
        async with self._adding:
            if connection.name not in host.servers:
                connection.identity = self._identities.get(connection.name, "")
                settings = self._settings_of(connection)
                await host.add_server(
                    connection.name,
                    connection,
                    open_views=settings.open,
                    reuse_views=settings.reuse,
                )
        return host

    def _settings_of(self, connection: ServerConnection) -> ViewSettings:
        return self._settings.get(connection.name) or ViewSettings()

    def server_lost(self, name: str, reason: str) -> None:
        """A server was lost: close its Views."""
        if self._host is not None:
            self._background.start(self._remove_server(self._host, name, reason))

    async def _remove_server(self, host: Host, name: str, reason: str) -> None:
        async with self._adding:
            views = [view for view in host.views.values() if view.server == name]
            why = f"its server went away: {reason}"
            await asyncio.gather(*(view.close(why) for view in views))
            if name in host.servers:
                await host.remove_server(name)

    async def aclose(self) -> None:
        """Close every View."""
        self._tools_changed.close()
        self.tasks.close()
        await self._background.aclose()
        if self._making is not None and not self._making.done():
            await asyncio.wait([self._making], timeout=10)
        if self._host is not None:
            await self._host.aclose()
        self._changed.close()
        with suppress(TransomError):
            await self._keep_records()

    # --- tools -------------------------------------------------------------------------------

    def owns(self, name: str, *, modern: bool) -> bool:
        """Whether a tool of that name belongs to a View, or is one of the fixed tools."""
        if name in self._taken or not self._needed:
            return False
        if name in self._standing():
            return True
        host, owner = self._host, owner_of(name)
        if host is None or owner is None or self._surface(modern=modern) == "indirect":
            return False
        return host.was_view(owner)

    def _standing(self) -> dict[str, Tool]:
        """The fixed tools, which do not depend on open Views."""
        tools = () if self._style == "flat" else INDIRECT_TOOLS
        if self._screen is not None and self._screen.pictures:
            tools = (*tools, _SCREENSHOT)
        return {tool.name: tool for tool in tools if tool.name not in self._taken}

    def _surface(self, *, modern: bool) -> Style:
        """How the tools of Views are offered.

        Since 2026-07-28 a call must not change the list of tools. So `both` becomes `indirect`
        there; only `flat` still lists the tools of Views.
        """
        return "indirect" if self._style == "both" and modern else self._style

    async def tools(self, *, modern: bool) -> tuple[list[bytes], bool]:
        """The tools to add to those of servers, and whether tools of Views may be among them."""
        if not self._needed:
            return [], False
        shown = list(self._standing().values())
        host, changing = self._host, self._surface(modern=modern) != "indirect"
        if host is not None and host.views and changing:
            await host.list_tools()  # lists Views again that may have changed
            for view_id in host.views:
                shown += [t for t in host.view_tools(view_id) if t.name not in self._taken]
        return [wire.encode(tool) for tool in shown], changing

    async def call(self, call: ToolCall) -> bytes:
        """Call a tool of a View, or one of the fixed tools."""
        host = await self._ready()
        self._inputs.concerns(*host.servers)
        task = task_request(call.params)
        result: Any
        try:
            name, arguments = call.name, self._with_view_id(call)
            relay = self._progress_relay(call.params)
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
        if call.modern and call.name == LIST_VIEW_TOOLS:
            result = self._with_handles(result)
        if task is None or (call.modern and not isinstance(result, Task)):
            return self._finished(call, result)
        outcome = self._follow(host, call, result)
        return await self.tasks.begin(outcome) if call.modern else self.tasks.start(outcome, task)

    def _finished(self, call: ToolCall, result: ToolResult) -> bytes:
        """The result of a call, with what Views sent to the model."""
        answer = with_blocks(result.to_wire(), self._messages.take_unseen())
        if call.modern and "resultType" not in members(answer):
            return wire.encode({**members(answer), "resultType": "complete"})
        return answer

    async def _follow(self, host: Host, call: ToolCall, result: ToolResult | Task) -> bytes:
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
        return self._finished(call, result)

    # --- handles -----------------------------------------------------------------------------

    def _handle(self, view_id: str) -> str:
        """The handle of a View for requests of 2026-07-28."""
        if view_id not in self._handles:
            self._handles[view_id] = f"{view_id}.{secrets.token_urlsafe(16)}"
            if len(self._handles) > _MAX_HANDLES:
                del self._handles[next(iter(self._handles))]
            self._changed.trigger()
        return self._handles[view_id]

    def _view_of(self, handle: object) -> str | None:
        """The id of the View with this handle, open or closed; None if there never was one."""
        view_id = handle.rpartition(".")[0] if isinstance(handle, str) else ""
        return view_id if handle and self._handles.get(view_id) == handle else None

    def _with_view_id(self, call: ToolCall) -> dict[str, Any]:
        """The arguments of a call, with the id of a View in place of its handle."""
        arguments = call.arguments
        handle = arguments.get("view_id")
        if not call.modern or call.name not in self._standing() or handle is None:
            return arguments
        view_id = self._view_of(handle)
        if view_id is None:
            raise NotConnected(_NO_SUCH_VIEW)
        return {**arguments, "view_id": view_id}

    def _with_handles(self, result: ToolResult) -> ToolResult:
        """A listing of Views with their handles."""
        if result.is_error or result.structured_content is None:
            return result
        views = result.structured_content["views"]
        listed = {"views": [{**each, "view_id": self._handle(each["view_id"])} for each in views]}
        text = TextContent(wire.encode(listed).decode())
        return ToolResult(content=[text], structured_content=listed)

    def _progress_relay(self, params: Raw | None) -> OnProgress | None:
        relay = self._client.progress_relay(params)
        # A View's own params do not reach the client.
        return relay and (lambda progress: relay(msgspec.structs.replace(progress, params=None)))

    # --- opening -----------------------------------------------------------------------------

    def has_part_in(self, connection: ServerConnection, params: Raw | None) -> bool:
        """Whether a call concerns Views: it opens one, is for one, or its result carries messages.

        Also for a tool that only Views may call, which must be refused.
        """
        cache = connection.tool_cache
        if self._needed or params is None or not cache.current:
            return True
        try:
            name = _read_name(params).name
            tool = cache.known(name)
            if tool is None:
                return name in STANDING_TOOLS
            return not model_may_call(tool) or (self._screen is not None and links_view(tool.meta))
        except msgspec.DecodeError:
            return True

    def opened_by(self, connection: ServerConnection, call: ToolCall) -> Tool | None:
        """The server's tool, if this call of it opens a View."""
        tool = connection.tool_cache.known(call.name)
        if self._screen is None or tool is None or not links_view(tool.meta):
            return None
        wanted = self._settings_of(connection).opening(tool) != "never"
        return tool if wanted and member(call.params, "_meta", OPEN) is not False else None

    async def open(
        self, connection: ServerConnection, tool: Tool, call: ToolCall, forward: Forward
    ) -> bytes:
        """Make a call that opens a View; its result, with a text about the View."""
        if "task" in members(call.params):
            return await forward()  # there is no result to show yet
        if not call.modern:
            return await self._show(connection, tool, call, forward)
        result = await forward()
        return await self.show(connection, tool, call, result) if is_complete(result) else result

    async def show(
        self, connection: ServerConnection, tool: Tool, call: ToolCall, result: bytes
    ) -> bytes:
        """Open the View of a call that has ended; its result, with a text about the View."""

        async def ended() -> bytes:
            return result

        return await self._show(connection, tool, call, ended)

    async def _show(
        self, connection: ServerConnection, tool: Tool, call: ToolCall, forward: Forward
    ) -> bytes:
        result, running = b"", None
        asks = self._settings_of(connection).opening(tool) == "ask"
        if not asks and (self._host is None or connection.name not in self._host.servers):
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
                host, arguments = await self._with_server(connection), call.arguments
            except Exception as error:  # noqa: BLE001 - the call's result is not touched by it
                await call_server()
                about = self._not_shown(tool, error)
            else:
                name = connection.name
                shown = await host.call_with_view(name, tool, arguments, call_server)
                about = self._describe(tool, shown, modern=call.modern)
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

    def _describe(self, opener: Tool, shown: ShownCall[Any], *, modern: bool) -> str:
        """The text for the model about the View of a call."""
        assert self._screen is not None  # noqa: S101 - there would be no View
        assert self._host is not None  # noqa: S101 - as above
        view, where = shown.view, self._screen.where()
        if view is None:
            return self._not_shown(opener, shown.error or "it may not open one now")
        if shown.error is not None:
            reason = clean(shown.error, _MAX_REASON)
            _log.warning("View %s could not be opened: %s", view.id, reason)
            text = f"The View of this tool could not be opened: {reason}"
            return text if where is None else f"{text}\nViews are shown at {where}"
        lines = [
            f"View {view.id} is open in a browser without a window; {SCREENSHOT_VIEW} shows it"
            if where is None
            else f"View {view.id} is open, and the user sees it at {where}"
        ]
        if shown.reused:
            lines.append("It was open already, and shows this call now.")
        names = [tool.name for tool in self._host.view_tools(view.id)]
        surface = self._surface(modern=modern)
        if surface == "indirect":
            names = [tool.name for tool in view.tools if model_may_call(tool)]
        if names:
            more = len(names) - _MAX_NAMED
            listed = ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
            view_id = self._handle(view.id) if modern else view.id
            by_id = f'list_view_tools and call_view_tool with view_id "{view_id}"'
            if surface == "indirect":
                lines.append(f"It has tools of its own: {listed}\nCall them by {by_id}.")
            else:
                lines.append(f"It has tools of its own, which you can call: {listed}")
            if surface == "both":
                lines.append(f"If they are not in your list of tools, use {by_id}.")
        else:
            lines.append("It has no tools of its own right now.")
        return "\n".join(lines)

    # --- messages of Views -------------------------------------------------------------------

    def with_messages(self, result: bytes) -> bytes:
        """A tool's result with what the model has not seen yet, if the result ends the call."""
        if not self._needed or not is_complete(result) or "task" in members(result):
            return result
        result = without_marks(result)
        unseen = self._messages.take_unseen()
        return with_blocks(result, unseen) if unseen else result

    def resources(self, *, modern: bool) -> list[bytes]:
        """The resources of Views, as listed."""
        if modern:
            return [INDEX] if self._needed else []
        return self._messages.resources()

    def read(self, uri: str, *, modern: bool) -> bytes | None:
        """The result of reading one of them; None if `uri` is not one."""
        if uri != INDEX_URI and not uri.startswith(f"{INDEX_URI}/"):
            return None
        name = None if uri == INDEX_URI else uri.removeprefix(f"{INDEX_URI}/")
        view_id = self._view_of(name) if modern and name is not None else name
        if name is not None and view_id is None:
            return None
        told = self._messages.read(view_id, self._handle if modern else str)
        if told is None:
            return None
        text = wire.encode(told).decode()
        return wire.encode(
            {"contents": [{"uri": uri, "mimeType": "application/json", "text": text}]}
        )

    def _message(self, view: View, blocks: list[Any]) -> None:
        self._messages.add_message(view.id, blocks)
        self._notify_updated(view.id)

    def _model_context(self, view: View) -> None:
        context = view.model_context
        if context is not None:
            self._messages.set_context(view.id, context.content, context.structured_content)
            self._notify_updated(view.id)

    def _view_opened(self, view: View) -> None:
        self._messages.view_opened(view.id, view.label.text())
        self._changed.trigger()
        self._state.notify_list_changed("resources", modern=False)

    def _view_closed(self, view: View) -> None:
        self._messages.view_closed(view.id)
        self._changed.trigger()
        self._state.notify_list_changed("resources", modern=False)

    def _notify_updated(self, view_id: str) -> None:
        self._state.notify_resource_updated(uri_of(view_id))
        self._state.notify_resource_updated(uri_of(self._handle(view_id)))
        self._state.notify_resource_updated(INDEX_URI)

    def _notify_tools_changed(self) -> None:
        handshake, modern = (self._surface(modern=era) != "indirect" for era in (False, True))
        self._state.notify_list_changed("tools", handshake=handshake, modern=modern)

    # --- requests of Views -------------------------------------------------------------------

    async def _create_message(self, view: View, params: Any) -> dict[str, Any]:
        message = _without_marks(params)
        whose = f"⟦View {view.id}⟧ of server {view.server} asks for this."
        given: object = message.get("systemPrompt")
        message["systemPrompt"] = f"{whose}\n\n{given}" if given else whose
        asking = self._inputs.ask("sampling/createMessage", wire.encode(message), view.server)
        return msgspec.json.decode(await asking)

    async def _ask_on_page(self, request: ApprovalRequest) -> Decision:
        if self._on_page is None:
            return Deny("There is no user to ask: no page shows Views to a user")
        return await self._on_page(request)


def _error_result(error: TransomError) -> ToolResult:
    return ToolResult(content=[TextContent(str(error))], is_error=True)


def _log_problem(error: BaseException) -> None:
    _log.info("%s", error)


def _log_view_problem(view: View, problem: ViewProblem) -> None:
    """Log a View's problem for the author of the page, who cannot see it elsewhere."""
    text = clean(problem.message, _MAX_REASON)
    advice = "; the page's csp has to declare it" if problem.kind == "blocked" else ""
    _log.warning("View %s: %s: %s%s", view.id, problem.kind, text, advice)


async def _picture(host: Host, arguments: dict[str, Any]) -> ToolResult:
    view_id: object = arguments.get("view_id")
    if not isinstance(view_id, str):
        raise ProtocolError(INVALID_PARAMS, f"{SCREENSHOT_VIEW} needs a view_id")
    png = await host.view(view_id).screenshot()
    data = b64encode(png).decode()
    return ToolResult(content=[ImageContent(data=data, mime_type="image/png")])
