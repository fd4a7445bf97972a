"""The Views of one client: opened by its calls, their tools called by it, their words kept for it.

1. Nothing is loaded or shown until a tool opens a View: a server that has none costs nothing.
2. A call that opens a View goes to the server as the client sent it, and its result comes back as
   the server sent it, with one text more: which View is there, and what it can do.
3. What goes wrong with a View never touches the result of the call that opened it.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec
from msgspec import Raw

from transom.errors import ProtocolError, TransomError
from transom.gateway.adding import (
    ToolHead,
    is_complete,
    member,
    members,
    text_block,
    with_blocks,
)
from transom.gateway.approval import Approval, Elicitation, policy_for
from transom.gateway.behind import Behind, Carried, InputWanted
from transom.gateway.news import INDEX_URI, News, uri_of
from transom.host.policy import ApprovalRequest, Decision, Deny
from transom.host.surface import INDIRECT_TOOLS
from transom.host.tool_names import owner_of
from transom.json_values import clean
from transom.protocol import wire
from transom.types import ImageContent, TextContent, Tool, ToolAnnotations, ToolResult

if TYPE_CHECKING:
    from transom.host.host import Host
    from transom.host.renderers import Renderer
    from transom.host.surface import Style
    from transom.host.view import View
    from transom.protocol.peer import Progress

__all__ = ["SCREENSHOT_VIEW", "Call", "ClientViews", "Screen"]

_log = logging.getLogger("transom.gateway")

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
_COALESCE = 0.05  # seconds in which several changes are told as one
_MAX_REASON = 500
_MAX_NAMED = 20  # tools named in the result of a call that opened a View


class Call(msgspec.Struct, frozen=True):
    """A call of a tool, as the client made it."""

    name: str
    params: Raw | None
    progress: Callable[[float, float | None, str | None], object] | None

    @property
    def arguments(self) -> dict[str, Any]:
        """What the tool is given.

        Raises:
            ProtocolError: it is no object.
        """
        raw = members(self.params).get("arguments")
        if raw is None or bytes(raw) == b"null":
            return {}
        given: object = member(raw)
        if not isinstance(given, dict):
            raise ProtocolError(-32602, f"Invalid arguments for {self.name[:128]}: not an object")
        return given  # pyright: ignore[reportUnknownVariableType]

    def on_progress(self, progress: Progress) -> None:
        """Tell the client how a View's tool comes along."""
        if self.progress is not None:
            self.progress(progress.progress, progress.total, progress.message)


class Screen(Protocol):
    """Where Views are shown, for all clients of a gateway."""

    pictures: bool
    """Whether it can take pictures of Views."""

    async def seat(self, label: str) -> Renderer:
        """A renderer for the Views of one client."""
        ...

    def where(self) -> str | None:
        """The address of the page, as the user may be told it; None when nobody can look at it."""
        ...


class ClientViews:
    """The Views of one client.

    Args:
        screen: where they are shown. None: nowhere; tools that open Views just run.
        surface: how their tools are offered.
        approval: who is asked before one runs.
        label: for whom they are shown.
    """

    def __init__(
        self,
        screen: Screen | None,
        *,
        surface: Style = "both",
        approval: Approval = "client",
        label: str = "",
    ) -> None:
        self._screen = screen
        self._style: Style = surface
        self._approval: Approval = approval
        self._label = label
        self._news = News()
        self._needed = False
        self._taken: set[str] = set()
        self._opening: asyncio.Task[Host] | None = None
        self._host: Host | None = None
        self._adding = asyncio.Lock()
        self._soon: asyncio.TimerHandle | None = None
        self._closed = False

    def attach(
        self,
        *,
        ask_client: Callable[[str, object], Awaitable[bytes]],
        client_can: Callable[[str], bool],
        modern: Callable[[], bool],
        tools_changed: Callable[[], object],
        resources_changed: Callable[[], object],
        resource_updated: Callable[[str], object],
    ) -> None:
        """Say whose Views these are."""
        self._ask_client = ask_client
        self._client_can = client_can
        self._modern = modern
        self._tools_changed = tools_changed
        self._resources_changed = resources_changed
        self._resource_updated = resource_updated
        self._elicitation = Elicitation(
            ask_client, lambda: client_can("elicitation"), modern, self._ask_on_page
        )

    # --- the host ----------------------------------------------------------------------------

    def listed(self, heads: Iterable[ToolHead]) -> None:
        """The server has these tools; if one opens a View, get ready for it."""
        for head in heads:
            self._taken.add(head.name)
            if head.opens_view and self._screen is not None and not self._needed:
                self._needed = True
                self._opening = asyncio.ensure_future(self._make_host())
                self._opening.add_done_callback(_retrieve)

    async def _make_host(self) -> Host:
        assert self._screen is not None  # noqa: S101 - see `opens`
        # The SDK takes most of a second to load, which the first answers should not wait for.
        module: Any = await asyncio.to_thread(import_module, "transom.host.host")
        renderer = await self._screen.seat(self._label)
        self._on_page: Any = getattr(renderer, "approve", None)
        policy = policy_for(self._approval, self._ask_on_page, self._elicitation.approve)
        host: Host = module.Host(
            renderer=renderer, policy=policy, naming=self._style, call_timeout=None
        )
        if self._client_can("sampling") and not self._modern():
            host.on_create_message = self._create_message
        host.on_message = self._message
        host.on_model_context = self._model_context
        host.on_view_opened = self._view_opened
        host.on_view_closed = self._view_closed
        host.on_tools_changed = self._changed
        host.on_error = _log_problem
        await host.__aenter__()
        self._host = host
        return host

    async def _ready(self) -> Host:
        if self._opening is None or (self._opening.done() and self._opening.exception()):
            self._needed = True
            self._opening = asyncio.ensure_future(self._make_host())
            self._opening.add_done_callback(_retrieve)
        return await asyncio.shield(self._opening)

    async def _with_server(self, behind: Behind) -> Host:
        host = await self._ready()
        async with self._adding:
            if behind.leg.name not in host.servers:
                await host.add_server(behind.leg.name, behind)
        return host

    async def server_lost(self, name: str, reason: str) -> None:
        """A server went: its Views go too, until it is back and one is opened again."""
        host = self._host
        if host is None:
            return
        async with self._adding:
            views = [view for view in host.views.values() if view.server == name]
            why = f"its server went away: {reason}"
            await asyncio.gather(*(view.close(why) for view in views))
            if name in host.servers:
                await host.remove_server(name)

    async def aclose(self) -> None:
        """Close every View."""
        self._closed = True
        if self._soon is not None:
            self._soon.cancel()
        if self._opening is not None and not self._opening.done():
            await asyncio.wait([self._opening], timeout=10)
        if self._host is not None:
            await self._host.aclose()

    # --- tools -------------------------------------------------------------------------------

    def owns(self, name: str) -> bool:
        """Whether a tool of that name belongs to a View, or stands for those that do."""
        if name in self._taken or not self._needed:
            return False
        if name in self._standing():
            return True
        host, owner = self._host, owner_of(name)
        if host is None or owner is None or self._style == "indirect":
            return False
        return host.was_view(owner)

    def _standing(self) -> dict[str, Tool]:
        """The tools that are there whatever Views there are."""
        tools = () if self._style == "flat" else INDIRECT_TOOLS
        if self._screen is not None and self._screen.pictures:
            tools = (*tools, _SCREENSHOT)
        return {tool.name: tool for tool in tools if tool.name not in self._taken}

    def tools(self) -> list[bytes] | Awaitable[list[bytes]]:
        """What to add to the server's tools."""
        if not self._needed:
            return []
        host = self._host
        if host is None or not host.views:
            return [wire.encode(tool) for tool in self._standing().values()]
        return self._tools(host)

    async def _tools(self, host: Host) -> list[bytes]:
        await host.list_tools()  # asks those again that said that they changed
        shown = list(self._standing().values())
        if self._style != "indirect":
            for view_id in host.views:
                shown += [t for t in host.view_tools(view_id) if t.name not in self._taken]
        return [wire.encode(tool) for tool in shown]

    def opens(self, behind: Behind, name: str) -> bool:
        """Whether a call of this server's tool opens a View."""
        if self._screen is None:
            return False
        tool = behind.known(name)
        return tool is not None and ToolHead(name, tool.meta).opens_view

    async def open(self, behind: Behind, call: Call) -> bytes:
        """Call a server's tool that opens a View.

        Raises:
            ProtocolError: the server's error.
            ConnectionClosed: the server is gone.
        """
        params = _bytes(call.params)
        carried = Carried(call.name, params)
        try:
            if "task" in members(params):
                return await behind.pass_on("tools/call", params)  # there is no result to show yet
            if self._modern():
                # It may want input first, maybe more than once, and there is to be one View.
                carried.result = await behind.pass_on("tools/call", params)
            about = await self._show(behind, call, carried)
            if carried.result is None:
                carried.result = await behind.pass_on("tools/call", params)
        except InputWanted as wanted:
            return wanted.result
        return with_blocks(carried.result, [*self.news(), *about])

    async def _show(self, behind: Behind, call: Call, carried: Carried) -> list[dict[str, Any]]:
        """Make the call through a host, which opens the View; what to say of it.

        Raises:
            ProtocolError, ConnectionClosed: it is the call that failed, and not the View.
        """
        try:
            host = await self._with_server(behind)
            with carried:
                answer = await host.call_server_tool(behind.leg.name, call.name, call.arguments)
        except Exception as error:
            if carried.begun and carried.result is None:
                raise
            if not isinstance(error, TransomError):
                _log.exception("a View could not be opened")
                error = "the gateway failed"
            return [text_block(f"The View of this tool could not be shown: {error}")]
        note: dict[str, Any] = (answer.meta or {}).get("transom/view", {})
        return self._about(host, note)

    def _about(self, host: Host, note: dict[str, Any]) -> list[dict[str, Any]]:
        """What the model is told of the View that a call opened."""
        assert self._screen is not None  # noqa: S101 - there would be no View
        view_id, where = note.get("id", ""), self._screen.where()
        if note.get("state") != "live":
            if "error" not in note:
                return []
            why = clean(str(note["error"]), _MAX_REASON)
            text = f"The View of this tool could not be opened: {why}"
            return [text_block(text if where is None else f"{text}\nViews are shown at {where}")]
        names = [tool.name for tool in host.view_tools(view_id)]
        lines = [
            f"View {view_id} is open in a browser without a window; {SCREENSHOT_VIEW} shows it"
            if where is None
            else f"View {view_id} is open, and the user sees it at {where}"
        ]
        if names:
            more = len(names) - _MAX_NAMED
            listed = ", ".join(names[:_MAX_NAMED]) + (f" and {more} more" if more > 0 else "")
            lines.append(f"It has tools of its own, which you can call: {listed}")
            if self._style != "flat":
                lines.append(
                    "If they are not in your list of tools, use list_view_tools and "
                    f'call_view_tool with view_id "{view_id}".'
                )
        else:
            lines.append("It has no tools of its own right now.")
        return [text_block("\n".join(lines))]

    async def call(self, call: Call) -> bytes:
        """Call a tool of a View, or one that stands for them.

        Raises:
            ProtocolError: there is no such tool, or it answered with an error.
        """
        host = await self._ready()
        asking = self._elicitation.begin(member(call.params) or {})
        try:
            if call.name == SCREENSHOT_VIEW:
                result = await _picture(host, call.arguments)
            else:
                result = await host.call_tool(
                    call.name, call.arguments, on_progress=call.on_progress
                )
        except ProtocolError:
            raise
        except TransomError as error:
            if asking.wanted is not None:
                return asking.wanted
            result = ToolResult(content=[TextContent(str(error))], is_error=True)
        return with_blocks(result.to_wire(), self.news())

    # --- what Views tell ---------------------------------------------------------------------

    def news(self) -> list[Any]:
        """What the model has not seen yet, as content blocks."""
        return self._news.take()

    def with_news(self, result: Raw | bytes) -> bytes:
        """A tool's result with what the model has not seen yet, if it is one that ends a call."""
        if not is_complete(result) or "task" in members(result):
            return bytes(result)
        news = self.news()
        return with_blocks(result, news) if news else bytes(result)

    def resources(self) -> list[bytes]:
        """What can be read of Views, as it is listed."""
        return self._news.resources()

    def read(self, uri: str) -> bytes | None:
        """The result of reading that; None when `uri` is none of it."""
        return self._news.read(uri)

    def _message(self, view: View, blocks: list[Any]) -> None:
        self._news.message(view.id, blocks)
        self._updated(view.id)

    def _model_context(self, view: View) -> None:
        told = view.model_context
        if told is not None:
            self._news.context(view.id, told.content, told.structured_content)
            self._updated(view.id)

    def _updated(self, view_id: str) -> None:
        self._resource_updated(uri_of(view_id))
        self._resource_updated(INDEX_URI)

    def _view_opened(self, view: View) -> None:
        self._news.opened(view.id, view.label.text())
        self._resources_changed()

    def _view_closed(self, view: View) -> None:
        self._news.closed(view.id)
        self._resources_changed()

    def _changed(self) -> None:
        if self._soon is None and not self._closed:
            loop = asyncio.get_running_loop()
            self._soon = loop.call_later(_COALESCE, self._announce)

    def _announce(self) -> None:
        self._soon = None
        self._tools_changed()

    # --- what Views ask for ------------------------------------------------------------------

    async def _create_message(self, view: View, params: Any) -> dict[str, Any]:
        del view
        raw = await self._ask_client("sampling/createMessage", msgspec.to_builtins(params))
        return msgspec.json.decode(raw)

    async def _ask_on_page(self, request: ApprovalRequest) -> Decision:
        if self._on_page is None:
            return Deny("Nobody is there to ask: there is no page that a user looks at")
        return await self._on_page(request)


def _log_problem(error: BaseException) -> None:
    _log.info("%s", error)


async def _picture(host: Host, arguments: dict[str, Any]) -> ToolResult:
    view_id: object = arguments.get("view_id")
    if not isinstance(view_id, str):
        raise ProtocolError(-32602, f"{SCREENSHOT_VIEW} needs a view_id")
    png = await host.view(view_id).screenshot()
    data = b64encode(png).decode()
    return ToolResult(content=[ImageContent(data=data, mime_type="image/png")])


def _bytes(params: Raw | None) -> bytes | None:
    return None if params is None else bytes(params)


def _retrieve(task: asyncio.Task[Any]) -> None:
    if not task.cancelled():
        with suppress(Exception):
            task.exception()  # whoever needs the host is told
