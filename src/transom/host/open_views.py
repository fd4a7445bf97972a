"""The Views of a host: how a call opens one, which are open, what follows from their events.

1. A View opens while the tool's call runs. Whatever goes wrong with it does not change the call.
2. A call may use a View that is open already, if the settings of its server say so.
3. When there are too many open Views, one that waits is closed, or else the least
   recently used one. Records of closed Views are stored, to reopen them.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, ItemsView, Iterator, Mapping, ValuesView
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any, Generic, Literal, NamedTuple, TypeVar

import msgspec

from transom.background import Background
from transom.errors import ConnectionClosed, InvalidResult, Refused, TransomError, ViewClosed
from transom.events import Handler, Slot
from transom.host.asking.approvals import Approvals
from transom.host.asking.grants import GivenGrant
from transom.host.server_tools import ServerTools
from transom.host.tools.surface import Surface
from transom.host.tools.tool_names import names_nothing, resource_name, view_stem
from transom.host.views.bridge import set_context_while_open
from transom.host.views.driver import DrivenViews
from transom.host.views.liveness import BUSY, GONE, LIVE, ViewState
from transom.host.views.pinning import answer_pin_request
from transom.host.views.renderers import Renderer
from transom.host.views.settling import wait_settled
from transom.host.views.shown_calls import ViewOrigin
from transom.host.views.ui_resource import view_uri
from transom.host.views.view import View, ViewListener
from transom.host.views.view_problems import record_problem
from transom.host.views.view_settings import ViewEnvironment
from transom.protocol.messages import check_arguments
from transom.recent import Recent
from transom.types import Task, Tool, ToolResult, ViewProblem

_R = TypeVar("_R")
_MAX_TASK_VIEWS = 1000  # Views that wait for the result of a task
_MAX_CLOSED = 1000
_MAX_STEMS = 100  # of ids, as servers choose them
_MAX_CLOSED_BYTES = 32 * 1024 * 1024
USABLE = LIVE, BUSY, ViewState.OPENING, ViewState.WAITING
"""The states in which a View may be used for another call."""
# Events of a View's Bridge: requests that the host's handlers answer, and notifications.
_REQUESTS = (
    "on_message",
    "on_open_link",
    "on_download_file",
    "on_request_display_mode",
    "on_create_message",
)
_NOTIFICATIONS = ("on_size_changed", "on_log")
_REASON_ONLY = 100  # bytes that a closed View costs without its input and result
_encode = msgspec.json.Encoder(order="deterministic").encode


class ViewRecord(msgspec.Struct, frozen=True):
    """What is needed to reopen a View, in its host or in another one."""

    origin: ViewOrigin
    reason: str = ""
    """Why it was closed; empty if it is open."""
    pinned_by: Literal["host", "view"] | None = None

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        origin = self.origin
        try:
            arguments = len(_encode(origin.arguments))
        except (TypeError, ValueError, OverflowError, RecursionError):
            arguments = 0  # they were changed after they were checked
        return arguments + len(origin.result or b"") + _REASON_ONLY


class HostRecords(msgspec.Struct, frozen=True):
    """What another host needs to reopen the Views of this one: see `Host.records`."""

    views: dict[str, ViewRecord] = {}
    numbers: dict[str, int] = {}
    """The number of the last View of each server."""
    grants: list[GivenGrant] = []
    """The user's permanent grants."""


class ShownCall(msgspec.Struct, Generic[_R], frozen=True):
    """What `Host.call_with_view` returns: what the call returned, and the View that shows it."""

    result: _R
    view: View | None = None
    """None if the tool links none, or if it could not even begin to open."""
    reused: bool = False
    """Whether the View was open before."""
    error: str | None = None
    """Why the View is not live."""

    def with_note(self) -> _R:
        """The result, whose `meta["transom/view"]` says what became of the View."""
        note: dict[str, Any] = {}
        if self.view is not None:
            note = {"id": self.view.id, "state": self.view.state.value}
        if self.reused:
            note["reused"] = True
        if self.error is not None:
            note["error"] = self.error
        if not note or not isinstance(self.result, ToolResult):
            return self.result
        meta = {**(self.result.meta or {}), "transom/view": note}
        return msgspec.structs.replace(self.result, meta=meta)


class ViewCall(NamedTuple):
    """A call, and the View that it is for."""

    view: View
    call: ViewOrigin


class ViewEvents(ViewListener):
    """What follows from the events of a host's Views: the model's surface and the audit change.

    And the host's handlers are called.

    Args:
        views: returns the host's Views.
        handlers: the host's handlers, by name.
        surface: what the model is offered.
        driven: the Views that the model may use by their pages.
        approvals: has the policy, and what the user granted.
        surface_changed: called with a View's server and id and a change of its tools; `found`: it
            was not announced.
        background: runs async handlers.
        report: called with an error that reaches no caller.
    """

    def __init__(
        self,
        *,
        views: Callable[[], OpenViews],
        handlers: Mapping[str, Slot],
        surface: Surface,
        driven: DrivenViews,
        approvals: Approvals,
        surface_changed: Callable[..., object],
        background: Background,
        report: Callable[[BaseException], object],
    ) -> None:
        self._views = views
        self._handlers = handlers
        self._surface = surface
        self._driven = driven
        self._approvals = approvals
        self._surface_changed = surface_changed
        self._background = background
        self._report = report

    def _fire(self, event: str, *about: object) -> None:
        if slot := self._handlers.get(event):
            self._background.fire(slot, *about)

    def bridge_handlers(self, view: View) -> dict[str, Handler]:
        """See `ViewListener`."""
        found: dict[str, Handler] = {
            "on_request_teardown": partial(self._teardown_requested, view),
            "on_request_pin": partial(self._pin_requested, view),
            "on_problem": partial(self._problem_reported, view),
            "on_error": self._report,
        }
        for name in _REQUESTS:
            if slot := self._handlers.get(name):
                found[name] = partial(_handle_request, slot, view)
        for name in _NOTIFICATIONS:
            if slot := self._handlers.get(name):
                found[name] = partial(self._background.fire, slot, view)
        return found

    def _teardown_requested(self, view: View) -> None:
        if view.pinned_by != "host" and view.takes_calls:
            self._background.start(view.close("it asked to be closed"))

    async def _pin_requested(self, view: View, reason: str | None) -> bool:
        views = self._views()
        return await answer_pin_request(
            view,
            reason,
            views.values(),
            handler=self._handlers.get("on_request_pin"),
            trusting=self._approvals.policy.trusts_everything,
            max_live_views=views.max_live,
        )

    def _problem_reported(self, view: View, problem: ViewProblem) -> None:
        if problem.kind == "tools":  # only the host itself finds these, and its user reads them
            problem = msgspec.structs.replace(problem, kind="error")
        self.problem_found(view, problem)

    def problem_found(self, view: View, problem: ViewProblem) -> None:
        """See `ViewListener`."""
        if (recorded := record_problem(view, problem)) is not None:
            self._fire("on_view_problem", view, recorded)

    def view_opened(self, view: View) -> None:
        """See `ViewListener`."""
        self._driven.update(view)
        self._fire("on_view_opened", view)

    def view_failed(self, view: View, error: BaseException) -> None:
        """See `ViewListener`."""
        self._fire("on_view_failed", view, error)

    def view_unresponsive(self, view: View) -> None:
        """See `ViewListener`. The tools of a View that is gone leave the surface."""
        if view.state is GONE:
            self._withdraw_tools(view)
        self._fire("on_view_unresponsive", view)

    def view_responsive(self, view: View) -> None:
        """See `ViewListener`."""
        self._driven.update(view)
        self._fire("on_view_responsive", view)

    def view_listed(self, view: View, pulled: bool) -> Mapping[str, str]:
        """See `ViewListener`."""
        change = self._surface.put_view(view.id, view.tools)
        self._surface_changed(view.server, view.id, change, found=pulled)
        self._driven.update(view)
        return change.left_out

    def view_changed(self, view: View) -> None:
        """See `ViewListener`."""
        self._fire("on_view_changed", view)

    def context_changed(self, view: View) -> None:
        """See `ViewListener`."""
        self._fire("on_model_context", view)

    def view_ended(self, view: View) -> None:
        """See `ViewListener`."""
        self._withdraw_tools(view)
        self._views().remove(view)
        if view.state is ViewState.CLOSED:
            self._approvals.forget(view.id)
            view.record("view", "closed", detail=view.reason)
            self._fire("on_view_closed", view)

    def _withdraw_tools(self, view: View) -> None:
        self._surface_changed(view.server, view.id, self._surface.drop("view", view.id))
        self._driven.update(view)


def _handle_request(slot: Slot, view: View, *arguments: object) -> Any:
    view.mark_used()
    return slot.ask(view, *arguments)


class OpenViews(Mapping[str, View]):
    """Opens Views, and maps ids to open Views, the least recently used one first."""

    def __init__(
        self,
        environment: ViewEnvironment,
        listener: ViewListener,
        servers: ServerTools,
        renderer: Callable[[], Renderer | None],
        background: Background,
        report: Callable[[BaseException], object],
    ) -> None:
        self._environment = environment
        self._listener = listener
        self._servers = servers
        self._renderer = renderer
        self._background = background
        self._report = report
        self._task_views: Recent[str, ViewCall] = Recent(_MAX_TASK_VIEWS)
        self.max_live = environment.limits.max_live_views
        """How many there may be at once."""
        self._open: dict[str, View] = {}
        self._closed: OrderedDict[str, ViewRecord] = OrderedDict()
        self._closed_bytes = 0
        self._numbers: dict[str, int] = {}

    # --- which there are ---------------------------------------------------------------------

    def __getitem__(self, view_id: str) -> View:
        return self._open[view_id]

    def __iter__(self) -> Iterator[str]:
        return iter([view.id for view in self.values()])

    def __len__(self) -> int:
        return len(self._open)

    def values(self) -> ValuesView[View]:
        """The Views that are open now, as a copy that does not change as Views open and close."""
        return self._in_order().values()

    def items(self) -> ItemsView[str, View]:
        """The same, with their ids."""
        return self._in_order().items()

    def _in_order(self) -> dict[str, View]:
        views = sorted(self._open.values(), key=lambda view: view.last_used)
        return {view.id: view for view in views}

    def _new_id(self, call: ViewOrigin) -> str:
        """An id that no View of this host had, and no server has."""
        stem = self._stem_of(call)
        number = self._numbers.get(stem, 0) + 1
        while f"{stem}-{number}" in self._servers.names:
            number += 1
        self._numbers[stem] = number
        return f"{stem}-{number}"

    def _stem_of(self, call: ViewOrigin) -> str:
        """What a View is named after: its server, or its resource if the server has no real name.

        Not like those of another server; and a server does not make up names without end.
        """
        if names_nothing(call.server) and (name := resource_name(call.uri)):
            stem = view_stem(name)
            known = stem in self._numbers or len(self._numbers) < _MAX_STEMS
            if known and stem not in map(view_stem, self._servers.names):
                return stem
        return view_stem(call.server)

    def is_view_id(self, name: str) -> bool:
        """Whether a View of this host has or had that id."""
        stem, _, number = name.rpartition("-")
        short = len(number) < 10  # Python refuses to read thousands of digits
        return short and number.isdecimal() and int(number) <= self._numbers.get(stem, 0)

    def closed(self, view_id: str) -> ViewRecord | None:
        """The record of a closed View, if it still exists."""
        return self._closed.get(view_id)

    def closed_error(self, view_id: str) -> ViewClosed:
        """The error for a request to a View that is not open."""
        closed = self._closed.get(view_id)
        if closed is not None:
            opener = closed.origin.tool.name[:128]
            text = f"View {view_id} is closed: {closed.reason}. Call {opener} to open another one"
        elif self.is_view_id(view_id):
            text = f"View {view_id} is closed"
        else:
            text = f"There is no View {view_id[:128]}"
        return ViewClosed(view_id, text)

    def remove(self, view: View) -> None:
        """Remove a View that has ended, and store a record to reopen it."""
        if self._open.get(view.id, view) is not view:
            return
        self._open.pop(view.id, None)
        pinned_by = view.pinned_by if view.state is ViewState.FAILED else None  # for a retry
        self._keep(view.id, ViewRecord(view.origin, view.reason, pinned_by))

    def _keep(self, view_id: str, record: ViewRecord) -> None:
        self._closed[view_id] = record
        self._closed_bytes += record.size
        while len(self._closed) > _MAX_CLOSED or self._closed_bytes > _MAX_CLOSED_BYTES:
            _, oldest = self._closed.popitem(last=False)
            self._closed_bytes -= oldest.size

    def set_context(self, changes: Mapping[str, Any], *, by_page: bool = False) -> None:
        """Change the context of all Views, as `Host.set_context` or `Host.set_surroundings`."""
        changed = self._environment.context.change(changes, by_page=by_page)
        for view in self.values():
            if view.bridge is not None and view.state in (*USABLE, GONE):
                self._background.start(set_context_while_open(view.bridge, changed))

    # --- records -----------------------------------------------------------------------------

    def records(self) -> tuple[dict[str, ViewRecord], dict[str, int]]:
        """The records of all Views, closed ones first, and the last number of each server's ids."""
        shown = {
            view.id: ViewRecord(view.origin, "", view.pinned_by)
            for view in self.values()
            if view.state is not ViewState.CLOSING
        }
        return {**self._closed, **shown}, dict(self._numbers)

    def restore(self, views: Mapping[str, ViewRecord], numbers: Mapping[str, int]) -> None:
        """Take over the records of another host, as if its Views had been closed here."""
        for stem, number in numbers.items():
            self._numbers[stem] = max(number, self._numbers.get(stem, 0))
        for view_id, record in views.items():
            if view_id not in self._open and view_id not in self._closed:
                self._keep(view_id, record)

    # --- opening -----------------------------------------------------------------------------

    async def call_with_view(
        self,
        opening: Awaitable[ViewCall | None],
        call_server: Callable[[], Awaitable[_R]],
    ) -> ShownCall[_R]:
        """See `Host.call_with_view`; `opening` is what `for_call` returns."""
        shown, failure, since = None, None, 0.0
        try:
            if (shown := await opening) is not None:
                since = shown.view.last_used
        except TransomError as error:
            failure = str(error)
        except Exception as error:  # noqa: BLE001 - the call does not depend on its View
            self._report(error)
            failure = "the host failed"
        try:
            result = await call_server()
        except BaseException as error:
            if shown is not None:
                cancelled = isinstance(error, asyncio.CancelledError)
                reason = "The call was cancelled" if cancelled else "The call failed"
                self._background.start(shown.view.deliver(cancelled=reason, call=shown.call))
            raise
        if shown is None:
            return ShownCall(result, error=failure)
        view, call = shown
        if isinstance(result, Task):
            self._task_views[result.task_id] = shown
        elif isinstance(result, ToolResult):
            await view.deliver(result, call=call)
        else:
            await view.deliver(cancelled="The call's result cannot be read", call=call)
        with suppress(ViewClosed):
            await view.opened()
            await wait_settled(view, since)
        waits = view.state is ViewState.WAITING and view.bridge is None  # for a place
        error = None if view.takes_calls or waits else view.reason
        return ShownCall(result, view, reused=call.reused, error=error)

    async def for_call(
        self,
        server: str,
        tool: Tool,
        arguments: Mapping[str, Any] | None,
        begun: ViewCall | None = None,
    ) -> ViewCall | None:
        """The View for a call, and its record of the call; None if it should not open one.

        `begun`: what `begin` returned for it. Raises as `call_of` and `view_for`.
        """
        if begun is not None:
            try:
                await begun.view.send_input(arguments or {}, call=begun.call)
            except BaseException:
                reason = "The call was cancelled"
                self._background.start(begun.view.deliver(cancelled=reason, call=begun.call))
                raise
            return begun
        call = self.call_of(server, tool, arguments)
        return None if call is None else ViewCall(await self.view_for(call), call)

    async def deliver_task(self, task_id: str, result: ToolResult) -> None:
        """Give the View of a call that ran as a task its result, if there is one."""
        if (waiting := self._task_views.pop(task_id, None)) is not None:
            await waiting.view.deliver(result, call=waiting.call)

    def call_of(
        self, server: str, tool: Tool, arguments: Mapping[str, Any] | None
    ) -> ViewOrigin | None:
        """The View's record of a call; None if the call should not open a View."""
        if self._renderer() is None:
            return None
        try:
            uri = view_uri(tool)
            if uri is None or self._servers.view_settings(server).opening(tool) == "never":
                return None
            self._servers.server(server)
        except (InvalidResult, ConnectionClosed) as error:
            self._report(error)
            self._environment.audit.record(
                "view", "failed", server=server, tool=tool.name, detail=str(error)
            )
            raise
        check_arguments(tool.name, arguments, self._environment.limits.max_message_depth)
        return ViewOrigin(server, uri, tool, dict(arguments or {}))

    async def view_for(self, call: ViewOrigin) -> View:
        """The View for a call: an open one if it may be reused, else a new one.

        Raises:
            Refused: the user wants none.
        """
        settings = self._servers.view_settings(call.server)
        if settings.opening(call.tool) == "ask" and self._to_use_again(call) is None:
            await self._environment.approvals.check_opening(call.server, call.tool, call.arguments)
        return self._use_or_open(call)

    def _use_or_open(self, call: ViewOrigin) -> View:
        if (view := self._to_use_again(call)) is not None:
            view.use_again(call)
            return view
        return self.open(self._new_id(call), call)

    def opens_unasked(self, server: str, tool: Tool) -> bool:
        """Whether a call opens a View, or uses one, whatever its arguments are."""
        try:
            settings = self._servers.view_settings(server)
            shown = self._renderer() is not None and view_uri(tool) is not None
        except InvalidResult:
            return False
        return (
            shown and settings.opening(tool) == "always" and settings.reuse_of(tool) != "arguments"
        )

    def begin(self, server: str, tool: Tool) -> ViewCall:
        """Open a View for a call whose arguments are still being written, or use one for it.

        For a call that `opens_unasked`.

        Raises:
            ConnectionClosed: its server is gone.
            Refused: there is no room for it.
        """
        call = self.call_of(server, tool, None)
        assert call is not None  # noqa: S101 - it opens unasked
        call.complete = False
        return ViewCall(self._use_or_open(call), call)

    def _to_use_again(self, call: ViewOrigin) -> View | None:
        """The open or opening View of another call of the same tool, if this call may reuse it."""
        reuse = self._servers.view_settings(call.server).reuse_of(call.tool)
        if reuse == "never" or (reuse == "arguments" and not call.complete):
            return None
        given = _canonical(call.arguments)
        for view in reversed(list(self.values())):
            last = view.newest_call
            if (
                view.state in USABLE
                and (last.server, last.uri) == (call.server, call.uri)
                and last.tool.name == call.tool.name
                and (reuse == "always" or _canonical(last.arguments) == given)
            ):
                return view
        return None

    def _add(self, view: View) -> list[View]:
        """Add a View. Returns the Views to close to make room for it."""
        staying = [other for other in self.values() if other.state is not ViewState.CLOSING]
        excess = max(len(staying) + 1 - self.max_live, 0)
        waiting = [v for v in staying if v.state is ViewState.WAITING]
        may_close = (v for v in staying if v.state in (LIVE, BUSY, GONE) and not v.pinned)
        closing = list(islice(chain(waiting, may_close), excess))
        if len(closing) < excess:
            raise Refused(
                f"There are {len(staying)} Views open and none may be closed: they are pinned "
                "or opening. Close or unpin one, or raise Limits.max_live_views"
            )
        self._open[view.id] = view
        for other in closing:
            other.begin_closing(f"it was the least recently used of {self.max_live} Views")
        return closing

    def open(self, view_id: str, origin: ViewOrigin) -> View:
        """Begin to open a View; `view.opened()` waits until it is live, waits or has failed."""
        renderer, server = self._renderer(), self._servers.server(origin.server)
        assert renderer is not None  # noqa: S101 - see `call_of`
        view = View(view_id, origin, self._environment, self._listener, renderer)
        if (reopened := self._closed.pop(view_id, None)) is not None:
            self._closed_bytes -= reopened.size
            view.pinned_by = reopened.pinned_by
        try:
            # Here, not in the task, so that the id is taken from now on.
            view.begin_opening(server, self._add(view))
        except Refused as refusal:
            view.begin_opening(server, refusal)
        return view


def _canonical(arguments: Mapping[str, Any]) -> bytes:
    """Their JSON, which is the same whatever the order of the members."""
    return _encode(msgspec.json.decode(msgspec.json.encode(arguments)))
