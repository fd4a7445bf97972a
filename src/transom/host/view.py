"""One open View, as a host and its model use it.

1. `opening` until the View is initialised, then `live`, then `closing` while it winds up, then
   `closed`; `failed` when it never came to live.
2. A call to a View that is gone, or goes while it runs, is a `ViewClosed` that names it.
3. What the model knows of a View is its last listing. It is made again when the View says that it
   changed, and after a call of a View that never says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, overload

import msgspec

from transom.channel import Channel
from transom.errors import (
    INVALID_PARAMS,
    CapabilityMissing,
    ConnectionClosed,
    NotConnected,
    OutOfOrder,
    ProtocolError,
    Refused,
    RequestTimeout,
    TransomError,
    ViewClosed,
)
from transom.host.approval import Approvals
from transom.host.audit import AuditLog
from transom.host.bridge import Bridge
from transom.host.policy import Limits, model_may_call
from transom.host.refresh import Relist, settle
from transom.host.tasks import owned_task
from transom.host.tool_text import Label
from transom.json_values import members
from transom.protocol.encoding import ToolOutcome, result_json
from transom.protocol.messages import ModelContextParams, TaskRequest
from transom.servers.server import Server
from transom.session import OnProgress
from transom.types import (
    ContentBlock,
    HostContext,
    Implementation,
    Task,
    Tool,
    ToolResult,
)

__all__ = ["Home", "ModelContext", "Origin", "View", "ViewState"]

_FIRST_LISTING = 3.0  # seconds

ViewState = Literal["opening", "live", "closing", "closed", "failed"]


class Origin(msgspec.Struct):
    """The call that opened a View: all it takes to open it again."""

    server: str
    uri: str
    tool: Tool
    arguments: dict[str, Any]
    result: bytes | None = None
    """The call's result as JSON, once there is one."""
    cancelled: str | None = None
    """Why there is none, and will not be."""


class ModelContext(msgspec.Struct, frozen=True):
    """The last thing a View wanted the model to know. It is the View's word, not the user's."""

    view_id: str
    server: str
    app: Implementation | None
    when: float
    content: list[ContentBlock]
    structured_content: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class Home:
    """What all Views of a host share."""

    limits: Limits
    audit: AuditLog
    approvals: Approvals
    stale: set[Relist]
    max_context_bytes: int
    listed: Callable[[View], object]
    used: Callable[[View], object]
    ended: Callable[[View], object]
    informed: Callable[[View], object]
    screenshot: Callable[[View], Any]


class View:
    """One View. Get it from `host.views`; do not make one yourself."""

    __slots__ = (
        "_bridge",
        "_callable",
        "_closing",
        "_context",
        "_home",
        "_quiet",
        "_reason",
        "_relist",
        "_tools",
        "id",
        "opening",
        "origin",
        "pinned",
        "state",
    )

    def __init__(self, id: str, origin: Origin, home: Home) -> None:
        self.id: str = id
        """What the model knows it by, such as `orders-1`."""
        self.origin = origin
        self.state: ViewState = "opening"
        """`opening`, `live`, `closing`, `closed` or `failed`."""
        self.pinned: bool = False
        """Whether it stays open when others are closed to make room, or when it asks to close."""
        self.opening: asyncio.Task[None] | None = None
        self._home = home
        self._bridge: Bridge | None = None
        self._closing: asyncio.Task[None] | None = None
        self._tools: dict[str, Tool] = {}
        self._callable: dict[str, Tool] = {}
        self._context: ModelContext | None = None
        self._quiet = False
        self._reason = "it is not open yet"
        self._relist = Relist(self._list, home.limits.relist_interval, home.stale)

    def __repr__(self) -> str:
        return f"<View {self.id} {self.state}, {len(self._tools)} tools>"

    @property
    def server(self) -> str:
        """The server whose resource it is."""
        return self.origin.server

    @property
    def uri(self) -> str:
        """The resource it shows."""
        return self.origin.uri

    @property
    def app(self) -> Implementation | None:
        """How the View names itself; None before it is initialised."""
        return None if self._bridge is None else self._bridge.app_info

    @property
    def bridge(self) -> Bridge | None:
        """The View's Bridge, for what only it can do; None while there is none."""
        return self._bridge

    @property
    def label(self) -> Label:
        """Whose tools these are, for descriptions."""
        return Label(self.id, self.origin.server, self.app)

    @property
    def reason(self) -> str:
        """Why it is not live."""
        return self._reason

    @property
    def tools(self) -> list[Tool]:
        """Its tools as it defines them, as far as they are known."""
        return list(self._tools.values())

    @property
    def model_context(self) -> ModelContext | None:
        """The last thing it wanted the model to know."""
        return self._context

    def pin(self) -> None:
        """Keep it open when the host closes Views to make room."""
        self.pinned = True

    def unpin(self) -> None:
        """Let it be closed like any other again."""
        self.pinned = False

    async def screenshot(self) -> bytes:
        """A PNG of what the View shows now.

        Raises:
            UsageError: the host's renderer cannot take screenshots.
            ViewClosed: the View is gone.
        """
        if self.state != "live":
            raise self.gone()
        return await self._home.screenshot(self)

    # --- calling -----------------------------------------------------------------------------

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
        """Call one of its tools, by the View's own name for it, within the host's policy.

        Args:
            name: as in `tools`.
            arguments: a JSON object.
            timeout: seconds without an answer or a progress notice; the host's limit unless given.
            on_progress: called with each progress notice; may be async.
            task: ask to run it as a task, such as `{"ttl": 60000}`.

        Raises:
            ViewClosed: the View is gone, or went before it answered.
            Refused: the policy does not allow it.
            ProtocolError: it has no such tool, or answered with an error.
            InvalidResult: its answer is no result, or is too large.
            RequestTimeout: it did not answer in time.
        """
        home, bridge = self._home, self._bridge
        if bridge is None or self.state != "live":
            raise self._noted(name, arguments, self.gone())
        tool = self._callable.get(name)
        if tool is None:
            tool = await self._find_late(name, arguments)
        given: Mapping[str, Any] = {} if arguments is None else arguments
        request = home.approvals.decide(self.id, self.origin.server, bridge.app_info, tool, given)
        if request is not None:
            await home.approvals.ask(request)
            given = request.arguments
            if self.state != "live":
                raise self._noted(name, given, self.gone())
            if self._callable.get(name) != tool:
                home.approvals.refuse(request, "the tool changed while the user was asked")
        home.used(self)
        began = time.perf_counter()
        try:
            result = await bridge.call_tool(
                name,
                given,
                timeout=timeout,
                on_progress=on_progress,
                task=task,
            )
        except asyncio.CancelledError:
            self._record(name, given, "cancelled", began, None)
            raise
        except TransomError as error:
            outcome = "timeout" if isinstance(error, RequestTimeout) else "failed"
            self._record(name, given, outcome, began, str(error))
            if isinstance(error, ConnectionClosed | NotConnected | OutOfOrder):
                raise self.gone() from error
            if isinstance(error, ProtocolError) and name not in self._tools:
                raise self._missing(name) from error
            raise
        finally:
            if self._quiet and self.state == "live":
                self._relist.changed()
        if isinstance(result, Task):
            self._record(name, given, "task", began, None)
            return owned_task(self.id, result)
        self._record(name, given, "error" if result.is_error else "ok", began, None)
        return result

    async def _find_late(self, name: str, arguments: Mapping[str, Any] | None) -> Tool:
        """A tool that is not in the last listing may be in the one that is on its way."""
        await self.settled()
        if self.state != "live":
            raise self._noted(name, arguments, self.gone())
        tool = self._tools.get(name)
        if self.may_explain(name):
            return Tool(name=name)
        if tool is None:
            raise self._noted(name, arguments, self._missing(name))
        if not model_may_call(tool):
            text = f"{name[:128]} of View {self.id} is not for the model: its visibility says so"
            raise self._noted(name, arguments, Refused(text))
        return tool

    def _missing(self, name: str) -> ProtocolError:
        return ProtocolError(INVALID_PARAMS, f"View {self.id} has no tool {name[:128]}")

    def may_explain(self, name: str) -> bool:
        """Whether to let the View itself say why it does not offer a tool of that name.

        Only where everything may run: nobody could be asked about a tool that is not there.
        """
        return self.state == "live" and name not in self._tools and self._home.approvals.trusting

    async def settled(self) -> None:
        """Wait a little for the listing that is on its way, if there is one."""
        await settle([self._relist], self._home.limits.fresh_timeout, slow=True)

    def _noted(
        self, name: str, arguments: Mapping[str, Any] | None, error: TransomError
    ) -> TransomError:
        self._home.audit.record(
            "refusal",
            "refused",
            server=self.origin.server,
            view=self.id,
            tool=name[:128],
            arguments=arguments,
            detail=str(error),
        )
        return error

    def _record(
        self,
        name: str,
        arguments: Mapping[str, Any],
        outcome: str,
        began: float,
        detail: str | None,
    ) -> None:
        self._home.audit.record_call(
            outcome,
            self.origin.server,
            self.id,
            name,
            arguments,
            int((time.perf_counter() - began) * 1e6) / 1e3,
            None if detail is None else detail[:500],
        )

    def gone(self) -> ViewClosed:
        """The error for whoever wanted something of a View that is not live."""
        if self.state == "opening":
            return ViewClosed(self.id, f"View {self.id} is not open yet")
        if self.state == "failed":
            return ViewClosed(self.id, f"View {self.id} could not be opened: {self._reason}")
        opener = self.origin.tool.name[:128]
        text = f"View {self.id} is closed: {self._reason}. Call {opener} to open another one"
        return ViewClosed(self.id, text)

    # --- life --------------------------------------------------------------------------------

    async def start(
        self,
        channel: Channel,
        *,
        upstream: Server,
        host_info: Implementation,
        context: HostContext | Mapping[str, Any],
        handlers: Mapping[str, Callable[..., Any]],
    ) -> None:
        """Run the View over `channel` until it is live.

        Raises:
            RequestTimeout, ConnectionClosed: it did not get there.
        """
        bridge = Bridge(
            channel,
            host_info=host_info,
            context=context,
            upstream=upstream,
            limits=self._home.limits,
        )
        for name, handler in handlers.items():
            setattr(bridge, name, handler)
        bridge.on_tools_changed = self._changed
        bridge.on_update_model_context = self._update_context
        bridge.on_closed = self._ended
        self._bridge = bridge
        bridge.start()
        await bridge.send_tool_input(self.origin.arguments)
        await self._send_outcome()
        await bridge.initialized()
        self.state, self._reason = "live", ""
        if self._offers_tools(bridge):
            self._relist.changed()
            # There is no last answer to fall back on yet, so the first one may take longer.
            await settle([self._relist], _FIRST_LISTING)

    async def opened(self) -> None:
        """Wait until the View is live.

        Raises:
            ViewClosed: it could not be opened, or was closed; `reason` says why.
        """
        if self.opening is not None:
            await asyncio.wait([self.opening])
        if self.state != "live":
            raise self.gone()

    async def deliver(
        self, result: ToolOutcome | None = None, *, cancelled: str | None = None
    ) -> None:
        """Give the View the result of the call it was opened for, or say that there will be none.

        May be called as soon as there is a View: what it cannot take yet is sent when it can. The
        View sees the first result or cancellation; a later one is kept for `Host.reopen`.

        Args:
            result: a `ToolResult`, a mapping with wire names, or just a text.
            cancelled: why there is no result, if there is none.

        Raises:
            TypeError: the result is none of these.
        """
        self.origin.result = None if result is None else result_json(result)
        self.origin.cancelled = cancelled
        if self._bridge is not None:
            await self._send_outcome()

    async def _send_outcome(self) -> None:
        bridge, origin = self._bridge, self.origin
        if bridge is None:
            return
        with suppress(OutOfOrder, NotConnected):  # it has one already, or is gone
            if origin.result is not None:
                await bridge.send_tool_result(members(origin.result))
            elif origin.cancelled is not None:
                await bridge.send_tool_cancelled(origin.cancelled)

    def retire(self, reason: str) -> None:
        """Take no more calls: it is about to be closed."""
        self.state, self._reason = "closing", reason

    async def close(self, reason: str = "the host closed it") -> None:
        """Let the View wind up, then close it. Always completes, safe to repeat."""
        if self.state in ("closed", "failed"):
            return
        opening = self.opening
        if self.state == "opening" and opening is not None:
            opening.cancel(reason)
            await asyncio.wait([opening])
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason))
        # Whoever waits may give up; the View is closed all the same.
        await asyncio.shield(self._closing)

    async def _close(self, reason: str) -> None:
        if self.state != "closing":
            self.retire(reason)
        if self._bridge is not None:
            await self._bridge.teardown(self._reason)
        self._end("closed", self._reason)

    async def fail(self, reason: str) -> None:
        """It did not come to live: close what there is of it."""
        self._reason = reason
        if self._bridge is not None:
            await self._bridge.aclose(reason)
        self._end("failed", reason)

    def _ended(self, reason: str) -> None:
        if self.state == "opening":
            return  # whoever opens it finds out, and says why
        self._end("closed", self._reason if self.state == "closing" else reason)

    def _end(self, state: ViewState, reason: str) -> None:
        if self.state in ("closed", "failed"):
            return
        self.state, self._reason = state, reason
        self._relist.stop()
        self._tools, self._callable = {}, {}
        self._context = None
        self._home.ended(self)

    # --- what the View tells -----------------------------------------------------------------

    def _offers_tools(self, bridge: Bridge) -> bool:
        tools = None if bridge.app_capabilities is None else bridge.app_capabilities.tools
        self._quiet = tools is not None and tools.list_changed is not True
        return tools is not None

    def _changed(self) -> None:
        if self.state == "live" and self._bridge is not None:
            self._offers_tools(self._bridge)  # it may have begun anew, and say something else
            self._relist.changed()

    async def _list(self) -> None:
        bridge = self._bridge
        if bridge is None:
            return
        try:
            listed = await bridge.list_tools()
        except CapabilityMissing:  # it has none any more, since it began anew
            listed = []
        except (ConnectionClosed, NotConnected, OutOfOrder):
            return
        except TransomError as error:
            # The last answer stands until the View says again that something changed.
            bridge.report(error)
            return
        if self.state == "live":
            self._tools = {tool.name: tool for tool in listed}
            self._callable = {tool.name: tool for tool in listed if model_may_call(tool)}
            self._home.listed(self)

    def _update_context(self, update: ModelContextParams) -> None:
        size = len(msgspec.json.encode(update))
        if size > self._home.max_context_bytes:
            limit = self._home.max_context_bytes
            raise Refused(f"A context of {size} bytes is over the limit of {limit}")
        self._home.used(self)
        self._context = ModelContext(
            view_id=self.id,
            server=self.origin.server,
            app=self.app,
            when=time.time(),
            content=update.content or [],
            structured_content=update.structured_content,
        )
        self._home.informed(self)
