"""One open View, as a host and its model use it.

1. A View is `opening` until it is initialised, then `live`, then `closing` while it cleans up, then
   `closed`; or `failed`, if it was never live. It is `waiting` while no page has a place for it, or
   its page has failed and may still connect: no call waits for it then. It is `busy` while it does
   not answer, and `gone` if its page is; then `live` again (`liveness.py`). A busy View keeps its
   tools, and calls wait.
2. A call to a View that is closed, or closes while the call runs, raises a `ViewClosed` that names
   the View.
3. A View opens while the tool's call runs, and gets the call's input first, then its result, or a
   cancellation. Whatever goes wrong with the View does not change the call's result.
4. The model sees the tools of the View's last listing. A View is listed again when it announces a
   change; one that never announces changes is listed again after each call.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal, Protocol

import msgspec

from transom.channel import Channel
from transom.connections.upstream import Server
from transom.drive.snapshot import ActResult, Snapshot
from transom.drive.tools import ActCall, Action, LookCall
from transom.errors import (
    INVALID_PARAMS,
    CapabilityMissing,
    ConnectionClosed,
    NotConnected,
    ProtocolError,
    Refused,
    RequestTimeout,
    TransomError,
    UsageError,
    ViewClosed,
)
from transom.events import Handler
from transom.host.asking.grants import Grant, same_tool
from transom.host.asking.policy import ApprovalRequest
from transom.host.audit import RecordedCall
from transom.host.tools.refresh import LATE, Refresh
from transom.host.tools.tool_names import SEPARATOR, owned_name
from transom.host.tools.tool_texts import Provenance, is_untrusted, mark_untrusted, without_our_meta
from transom.host.tools.tool_visibility import model_may_call
from transom.host.views.bridge import Bridge, CallsTools, OutgoingCall
from transom.host.views.driver import Driver
from transom.host.views.liveness import BUSY, GONE, LIVE, Liveness, ViewState
from transom.host.views.model_context import ModelContext, read_context
from transom.host.views.opening_failures import PAGE_FAILED, why_not_opened
from transom.host.views.renderers import NoPlace, Renderer, TakesScreenshots, turn_of
from transom.host.views.shown_calls import ShownCalls, ViewOrigin
from transom.host.views.tasks import owned_task
from transom.host.views.ui_resource import load_ui_resource
from transom.host.views.view_server import ViewServer
from transom.host.views.view_settings import ViewEnvironment
from transom.host.views.view_tools import KnownTools, describe_left_out
from transom.json_values import clean
from transom.protocol.lifecycle import LifecycleState
from transom.protocol.messages import ModelContextParams, TaskRequest, ToolOutcome
from transom.traffic import observe
from transom.types import (
    DisabledTool,
    Implementation,
    Task,
    TextContent,
    Tool,
    ToolInfo,
    ToolResult,
    ViewProblem,
)

_MAX_REASON = 500  # characters of the reason why a tool is disabled
_NOT_OPEN = "it is still opening"
_CANCELLED_WITHIN = 1.0  # seconds that a cancelled call waits for its task to stop
_TAKES_CALLS = LIVE, BUSY
_ENDED = ViewState.CLOSED, ViewState.FAILED


class ViewListener(Protocol):
    """Whose Views they are: learns what happens to each."""

    def bridge_handlers(self, view: View) -> Mapping[str, Handler]:
        """What handles a View's requests and notifications: see `Bridge(handlers=...)`."""
        ...

    def view_opened(self, view: View) -> None:
        """It is live."""

    def view_failed(self, view: View, error: BaseException) -> None:
        """It could not be opened, and has ended."""

    def view_unresponsive(self, view: View) -> None:
        """It is busy, gone, or waits because its page failed."""

    def view_responsive(self, view: View) -> None:
        """It answers again, or is live after a call has stopped waiting for it."""

    def view_listed(self, view: View, pulled: bool) -> Mapping[str, str]:
        """Its tools were listed; `pulled`: it had not announced a change.

        Returns the tools that cannot be shown to a model, with the reasons.
        """
        ...

    def view_changed(self, view: View) -> None:
        """Its result, pin, or what is left out of its tools is another one."""

    def context_changed(self, view: View) -> None:
        """It has sent another context for the model."""

    def problem_found(self, view: View, problem: ViewProblem) -> None:
        """The host itself has found a problem of it."""

    def view_ended(self, view: View) -> None:
        """It is closed or failed."""


class View(CallsTools):
    """One View. Get it from `host.views`; do not make one yourself."""

    def __init__(
        self,
        id: str,
        origin: ViewOrigin,
        environment: ViewEnvironment,
        listener: ViewListener,
        renderer: Renderer,
    ) -> None:
        self.id: str = id
        """Its id, such as `orders-1`."""
        self._calls = ShownCalls(origin, environment.limits, self._find_out_if_it_reads)
        self.state: ViewState = ViewState.OPENING
        """`opening`, `waiting`, `live`, `busy`, `gone`, `closing`, `closed` or `failed`."""
        self.pinned_by: Literal["host", "view"] | None = None
        """Who pinned it: `host` (with `pin`) or `view` (which asked for it); None if it is not."""
        self.failure: ViewProblem | None = None
        """What may have kept its page from connecting, for its author."""
        self.counts: Counter[str] = Counter()  # of what it may not do without end
        self.opening: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()  # or it waits for a place, or has failed
        self.last_used = time.perf_counter()
        self.record = partial(environment.audit.record, server=origin.server, view=id)
        self._env, self._listener, self._renderer = environment, listener, renderer
        self._bridge: Bridge | None = None
        self._closing: asyncio.Task[None] | None = None
        self._liveness: Liveness | None = None
        limits, audit, approvals = environment.limits, environment.audit, environment.approvals
        self._driver = Driver(self, renderer, approvals, audit, limits)
        self._context: ModelContext | None = None
        self._reason = _NOT_OPEN
        late = partial(self.record, "view", "late", detail=LATE)
        interval, stale = limits.relist_interval, environment.stale
        refresh = Refresh(self._list, interval, stale, self._report, late)
        self._tools = KnownTools(refresh, environment.pulled)

    def __repr__(self) -> str:
        return f"<View {self.id} {self.state}, {len(self._tools.by_name)} tools>"

    @property
    def origin(self) -> ViewOrigin:
        """The call that it shows."""
        return self._calls.shown

    @property
    def newest_call(self) -> ViewOrigin:
        """The newest call that it is used for, which it may show later; for `deliver`."""
        return self._calls.newest

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
        """The name and version it gave itself; None before it is initialised."""
        return None if self._bridge is None else self._bridge.app_info

    @property
    def bridge(self) -> Bridge | None:
        """The View's Bridge, for what `View` does not offer; None while there is none."""
        return self._bridge

    @property
    def provenance(self) -> Provenance:
        """Where its tools come from, which their descriptions begin with."""
        return Provenance(self.id, self.origin.server, self.app)

    @property
    def reason(self) -> str:
        """Why it is not live, such as `busy for 8 s`."""
        return f"busy for {self.silent_for:.0f} s" if self.state is BUSY else self._reason

    @property
    def takes_calls(self) -> bool:
        """Whether it is live, or busy: then calls wait for it."""
        return self.state in _TAKES_CALLS

    @property
    def silent_for(self) -> float:
        """For how many seconds it has left the host without an answer; 0 if it is live."""
        return 0.0 if self._liveness is None or self.state is LIVE else self._liveness.silent_for

    @property
    def offers_tools(self) -> bool:
        """Whether it declared that it has tools, now or later."""
        app = None if self._bridge is None else self._bridge.app_capabilities
        return app is not None and app.tools is not None

    @property
    def tools(self) -> list[Tool]:
        """Its tools as it defines them, as of the last listing."""
        return list(self._tools.by_name.values())

    @property
    def has_tools(self) -> bool:
        """Whether it has tools for the model, as of the last listing; also disabled ones."""
        return bool(self._tools.for_model) or bool(self.disabled_tools)

    @property
    def disabled_tools(self) -> list[DisabledTool]:
        """Its tools that are disabled, with the reasons, as of the last listing.

        For developers and users: models do not see them. Only Views made with Transom report them.
        """
        return [] if self._bridge is None else list(self._bridge.disabled.values())

    @property
    def left_out(self) -> str:
        """Which of its tools no model can call, and why; "" if there are none."""
        return self._tools.left_out

    @property
    def model_context(self) -> ModelContext | None:
        """The last context that it sent for the model."""
        return self._context

    @property
    def pinned(self) -> bool:
        """Whether it is never closed to make room."""
        return self.pinned_by is not None

    def pin(self) -> None:
        """Keep it open when the host closes Views to make room, or when it asks to be closed."""
        self.set_pinned_by("host")

    def unpin(self) -> None:
        """Let it be closed like any other again."""
        self.set_pinned_by(None)

    def set_pinned_by(self, who: Literal["host", "view"] | None) -> None:
        """Set who pinned it."""
        self.pinned_by = who
        self._listener.view_changed(self)

    @property
    def grants(self) -> list[Grant]:
        """The tools that the user always allows."""
        return self._env.approvals.grants.of(self.id)

    def withdraw(self, grant: Grant) -> None:
        """Take back a grant: the user is asked again before that tool runs."""
        if self._env.approvals.grants.withdraw(self.id, grant):
            self.record("approval", "withdrawn", tool=grant.tool)

    def mark_used(self) -> None:
        """Make it the most recently used View."""
        self.last_used = time.perf_counter()

    async def screenshot(self) -> bytes:
        """A PNG of what the View shows now, with its private parts hidden.

        It is a look at the page, for `Policy(look=...)`.

        Raises:
            UsageError: the host's renderer cannot take screenshots.
            Refused: the policy, or the user, lets nobody look at it.
            ViewClosed: the View is closed.
        """
        if not isinstance(self._renderer, TakesScreenshots):
            kind = type(self._renderer).__name__
            raise UsageError(f"{kind} cannot take screenshots; HeadlessRenderer can")
        return await self._driver.picture(self._renderer.screenshot)

    async def snapshot(
        self, find: str | None = None, under: str | None = None, changes_since: str | None = None
    ) -> Snapshot:
        """What is on the View's page, as text, with references for what can be used.

        Args:
            find: only what has this text, in all of the page.
            under: only what is in the part with this reference.
            changes_since: the `id` of one of the last snapshots. The text has only what changed.

        Raises:
            UsageError: the host's renderer cannot do this.
            ToolError: there is no such part or snapshot any more, or the View cannot be seen.
            Refused, ViewClosed, RequestTimeout, InvalidResult: as their names say.
        """
        return await self._driver.look(LookCall(self.id, find, under), changes_since=changes_since)

    async def act(self, ref: str, action: Action, value: str | None = None) -> ActResult:
        """Use an element of the View's page, and wait until the page has settled.

        Args:
            ref: the element's reference in a snapshot, such as `b3`.
            action: what to do with it.
            value: what to type, select, press (a key or chord) or set, or where to drag it.

        Raises:
            ToolError: it was not done; the text says why, and what is there now.
            ProtocolError: there is no such action, or it needs another value.
            UsageError, Refused, TooManyRequests, ...: as for `snapshot`.
        """
        return await self._driver.act(ActCall(self.id, ref, action, value))

    # --- calling -----------------------------------------------------------------------------

    async def _call(self, call: OutgoingCall) -> Any:
        """`call_tool` and `start_task`."""
        bridge, liveness = self._bridge, self._liveness
        if bridge is None or liveness is None or self.state not in _TAKES_CALLS:
            raise self._refused(call.name, call.arguments, self.closed_error())
        if call.arguments is None:
            call.arguments = {}
        tool = self._tools.for_model.get(call.name)
        if tool is None or self._check(tool, call) is not None:
            tool = await self._find_and_ask(bridge, tool, call)
            if isinstance(tool, DisabledTool):
                return self._disabled_result(tool, call.arguments)
        self.last_used = time.perf_counter()
        liveness.begin()
        try:
            audit, server = self._env.audit, self.origin.server
            with RecordedCall(audit, server, self.id, call.name, call.arguments) as recorded:
                result = recorded.result = await self._send(bridge, tool, call)
        except TransomError as error:
            if isinstance(error, RequestTimeout):
                liveness.ping()
            if (explained := self._explained(tool, error)) is error:
                raise
            raise explained from error
        finally:
            liveness.end()
            if self.state is LIVE:
                self._tools.called()
        untrusted = is_untrusted(tool)
        if isinstance(result, Task):
            return owned_task(self.id, result, untrusted=untrusted)
        if result.meta is not None:
            result = without_our_meta(result)
        return mark_untrusted(result, self.id) if untrusted else result

    async def _find_and_ask(
        self, bridge: Bridge, tool: Tool | None, call: OutgoingCall
    ) -> Tool | DisabledTool:
        """The tool of a call that is not listed yet, or that the user has to approve.

        Raises:
            ProtocolError: there is no such tool.
            Refused: the user or the policy refused the call.
            ViewClosed: the View closed meanwhile.
        """
        if tool is None or self._tools.may_differ:
            # It may exist by now, and the user is asked about the current definition.
            found = await self._find_refreshed(call.name, call.arguments)
            if isinstance(found, DisabledTool):
                return found
            tool = found
        if (request := self._check(tool, call)) is None:
            return tool
        approvals, name = self._env.approvals, tool.name
        await approvals.obtain(request, call.call_id)
        if not self.takes_calls:
            raise self._refused(name, request.arguments, self.closed_error())
        now = self._tools.for_model.get(name)
        if name not in bridge.disabled and (now is None or not same_tool(now, tool)):
            approvals.refuse(request, "the tool changed while the user was asked")
        call.arguments = request.arguments
        return bridge.disabled.get(name, tool)

    def _explained(self, tool: Tool, error: TransomError) -> TransomError:
        """The error of a call as a model should read it."""
        if isinstance(error, RequestTimeout) and self.state is BUSY:
            return RequestTimeout(f"{error}: View {self.id} is {self.reason}")
        if isinstance(error, ConnectionClosed | NotConnected):
            return self.closed_error()
        # It was loaded again, and may have no tools now, or not this one.
        late = isinstance(error, ProtocolError) and tool.name not in self._tools.by_name
        if late or isinstance(error, CapabilityMissing):
            return self.missing(tool.name)
        if isinstance(error, ProtocolError):  # the View's own text
            said = clean(error.message, self._env.limits.max_description)
            error.message = mark_untrusted(said, self.id) if is_untrusted(tool) else said
        return error

    @staticmethod
    async def _send(bridge: Bridge, tool: Tool, call: OutgoingCall) -> ToolResult | Task:
        """Call a tool as a task if it can run as one; wait for it if it must be one."""
        support = None if tool.execution is None else tool.execution.task_support
        wanted = call.as_task
        if support not in ("optional", "required"):
            call.as_task = None
        elif support == "required" and wanted is None:
            call.as_task = TaskRequest()
        result: Task | ToolResult = await bridge._call(call)
        if wanted is not None or not isinstance(result, Task):
            return result
        try:
            limit = call.timeout or bridge.limits.call_timeout_of(call.name)
            return await bridge.task_result(result.task_id, timeout=limit)
        except (asyncio.CancelledError, RequestTimeout):
            with suppress(TransomError):
                await bridge.cancel_task(result.task_id, timeout=_CANCELLED_WITHIN)
            raise

    async def approval_needed(
        self, name: str, arguments: Mapping[str, Any] | None, call_id: str
    ) -> ApprovalRequest | None:
        """What an agent has to ask its user before this call: see `Host.approval_needed`."""
        if name not in self._tools.for_model or self._tools.may_differ:
            await self.refreshed()
        tool, approvals = self._tools.for_model.get(name), self._env.approvals
        if tool is None or not self.takes_calls or approvals.policy.approve is not None:
            return None
        given: Mapping[str, Any] = {} if arguments is None else arguments
        return approvals.hold(call_id, approvals.check(self.provenance, tool, given, call_id))

    def _check(self, tool: Tool, call: OutgoingCall) -> ApprovalRequest | None:
        """What to ask the user, if the call does not run without asking."""
        return self._env.approvals.check(self.provenance, tool, call.arguments or {}, call.call_id)

    async def _find_refreshed(
        self, name: str, arguments: Mapping[str, Any] | None
    ) -> Tool | DisabledTool:
        """Find a tool after a pending listing, or after one more if it is not known at all.

        Nothing else is sent to the View: a name that it does not list for the model may be that of
        a tool which is not for the model.
        """
        bridge = self._bridge
        known = name in self._tools.by_name or (bridge is not None and name in bridge.disabled)
        await self.refreshed(list_again=not known)
        if not self.takes_calls:
            raise self._refused(name, arguments, self.closed_error())
        tool = self._tools.by_name.get(name)
        if tool is None and bridge is not None and name in bridge.disabled:
            return bridge.disabled[name]
        if tool is None:
            raise self._refused(name, arguments, self.missing(name))
        if not model_may_call(tool):
            text = f"{name[:128]} of View {self.id} is not for the model: its visibility says so"
            raise self._refused(name, arguments, Refused(text))
        return tool

    def _disabled_result(
        self, tool: DisabledTool, arguments: Mapping[str, Any] | None
    ) -> ToolResult:
        """What the View would answer. It is not called, because the call was not approved."""
        reason = "" if not tool.reason else f": {clean(tool.reason, _MAX_REASON)}"
        text = f"Tool {tool.name} is disabled{reason}"
        self.record("refusal", "disabled", tool=tool.name, arguments=arguments, detail=text)
        return ToolResult(content=[TextContent(text)], is_error=True)

    def missing(self, name: str) -> ProtocolError:
        """The error for a call of a tool that it does not have, or that is not for the model."""
        return ProtocolError(INVALID_PARAMS, f"View {self.id} has no tool {name[:128]}")

    def disabled_tool(self, shown: str) -> str | None:
        """Its own name for a disabled tool that a model calls by the name `shown`."""
        plain = shown.partition(SEPARATOR)[2]
        names = (tool.name for tool in self.disabled_tools)
        return next((n for n in names if n == plain or owned_name(self.id, n) == shown), None)

    async def refreshed(self, *, list_again: bool = False) -> None:
        """See `KnownTools.refreshed`."""
        await self._tools.refreshed(self._env.limits.fresh_timeout, list_again=list_again)

    def _refused(
        self, name: str, arguments: Mapping[str, Any] | None, error: TransomError
    ) -> TransomError:
        detail = str(error)
        self.record("refusal", "refused", tool=name[:128], arguments=arguments, detail=detail)
        return error

    def closed_error(self) -> ViewClosed:
        """The error for a caller that needs a live View, when it is not live."""
        if self.state in (ViewState.OPENING, ViewState.WAITING):
            return ViewClosed(self.id, f"View {self.id} is not open: {self._reason}")
        if self.state is ViewState.FAILED:
            return ViewClosed(self.id, f"View {self.id} could not be opened: {self._reason}")
        opener = self.origin.tool.name[:128]
        if self.state is GONE:
            text = (
                f"View {self.id} does not respond: {self._reason}. Its tools come back when it does"
            )
            return ViewClosed(self.id, f"{text}; {opener} opens another one")
        text = f"View {self.id} is closed: {self._reason}. Call {opener} to open another one"
        return ViewClosed(self.id, text)

    # --- whether it responds -----------------------------------------------------------------

    def lose(self, reason: str) -> None:
        """Its page is gone, such as one that navigated away: its running calls end at once."""
        if self._liveness is not None and self.state in (LIVE, BUSY, GONE):
            self._liveness.lose(reason)
            self._driver.end_requests()

    def _liveness_changed(self, state: ViewState, reason: str) -> None:
        if self.state not in (LIVE, BUSY, GONE):
            return  # it is closing
        self.state, self._reason = state, reason
        self.record("view", "responsive" if state is LIVE else state.value, detail=reason or None)
        if state is LIVE:
            self.tools_changed()
            self._listener.view_responsive(self)
        else:
            self._listener.view_unresponsive(self)

    def _find_out_if_it_reads(self) -> None:
        if self._liveness is not None:
            self._liveness.ping()

    def _notify_callers(self) -> None:
        """Callers that wait for a View which does not answer get to know it."""
        if self._bridge is not None:
            what = self.reason if self.state is BUSY else f"not responding: {self._reason}"
            self._bridge.notify_callers(f"View {self.id} is {what}")

    # --- opening and closing -----------------------------------------------------------------

    def begin_opening(self, server: Server, room: list[View] | Refused) -> None:
        """Open it in a task of its own, while the Views that make room for it are closed."""
        self.opening = asyncio.create_task(self._open(server, room))

    def give_up(self, reason: str | None = None) -> None:
        """End the waits for its page, which seems not to connect. It opens if it does after all."""
        if self.state is ViewState.OPENING and self.app is None:
            self._wait(reason or PAGE_FAILED)
            self.record("view", "waiting", detail=self._reason)
            self._listener.view_unresponsive(self)

    def _wait(self, reason: str) -> None:
        self.state, self._reason = ViewState.WAITING, reason
        self._opened.set()

    async def _open(self, server: Server, room: list[View] | Refused) -> None:
        began, timeout = time.perf_counter(), self._env.open_timeout
        limit = asyncio.timeout(timeout)
        try:
            if isinstance(room, Refused):
                raise room
            while self.state is ViewState.OPENING:
                try:
                    async with limit:
                        await self._show(server, room)
                except NoPlace as missing:
                    await self._wait_for_place(missing)
                    limit = asyncio.timeout(timeout)
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - not the call's failure
            known = self._reason if self.state is ViewState.WAITING else ""
            late_after = timeout if limit.expired() else None
            shown, connected = self._bridge is not None, self.app is not None
            reason = why_not_opened(
                error, late_after, known, is_shown=shown, began_to_connect=connected
            )
            self._end(ViewState.FAILED, reason)
            if self._bridge is not None:
                await self._bridge.aclose(reason)
            self.opening = None
            self._record_opening("failed", began, self._reason)
            failure = error
            if not isinstance(error, Exception) or not str(error):  # it has no useful text
                failure = self.closed_error()
                failure.__cause__ = error
            self._listener.view_failed(self, failure)
        else:
            self.opening = None
            name = None if (app := self.app) is None else f"{app.name[:100]} {app.version[:100]}"
            self._record_opening("opened", began, name)
            self._listener.view_opened(self)
            if self._opened.is_set():  # nobody waited for it any more
                self._listener.view_responsive(self)
        finally:
            self._opened.set()

    async def _wait_for_place(self, missing: NoPlace) -> None:
        self._wait(str(missing))
        await missing.found()
        if self.state is not ViewState.WAITING:  # it is about to be closed
            raise self.closed_error()
        self.state, self._reason = ViewState.OPENING, _NOT_OPEN
        self._opened.clear()

    def _record_opening(self, outcome: str, began: float, detail: str | None) -> None:
        ms = round((time.perf_counter() - began) * 1000, 3)
        self.record("view", outcome, tool=self.origin.tool.name, ms=ms, detail=detail)

    async def _show(self, server: Server, room: list[View]) -> None:
        env, origin = self._env, self.origin
        leaving = [asyncio.ensure_future(other.close()) for other in room]
        resource = await load_ui_resource(
            server,
            view_id=self.id,
            server_name=origin.server,
            uri=origin.uri,
            max_bytes=env.max_page_bytes,
        )
        if leaving:
            await asyncio.wait(leaving)
        channel = observe(await self._renderer.open(resource), "view", self.id, env.traffic)
        try:
            await self._start(server, channel)
        except BaseException:
            with suppress(Exception):
                await channel.aclose()
            raise

    async def _start(self, server: Server, channel: Channel) -> None:
        env, origin = self._env, self.origin
        view_server = ViewServer(
            server,
            name=origin.server,
            view_id=self.id,
            tasks=env.tasks,
            audit=env.audit,
            on_request=self.mark_used,
            view_calls=env.approvals.policy.view_calls,
            approve=self._approve_server_call,
            turn=turn_of(self._renderer),
        )
        bridge = self._bridge = Bridge(
            channel,
            host_info=env.host_info,
            context=msgspec.structs.replace(
                env.context.value, tool_info=ToolInfo(tool=origin.tool)
            ),
            upstream=view_server,
            limits=env.limits,
            offers=env.approvals.policy.offers,
            listener=self,
            handlers=self._handlers(),
        )
        self._liveness = Liveness(bridge, self._liveness_changed, self._notify_callers)
        bridge.start()
        await self._calls.start(bridge)
        await bridge.initialized(env.open_timeout)
        self.state, self._reason = LIVE, ""
        if self.offers_tools:
            self.tools_changed()
            await self._tools.wait_first()
        if bridge.state is LifecycleState.CLOSED:
            raise ConnectionClosed(await bridge.wait_closed())

    def _handlers(self) -> dict[str, Handler]:
        found = {**self._listener.bridge_handlers(self), "on_unconnected": self.give_up}
        if self._env.max_context_bytes > 0:
            found["on_update_model_context"] = self._update_context
        return found | {"on_closed": self._ended}

    async def opened(self) -> None:
        """Wait until the View is live.

        Raises:
            ViewClosed: it waits for a place, could not be opened, or was closed; `reason` says why.
        """
        await self._opened.wait()
        if not self.takes_calls:
            raise self.closed_error()

    def use_again(self, call: ViewOrigin) -> None:
        """Use it for another call of its tool.

        It gets the call's input at once, unless it waits for the previous call's result. Then it
        gets both when there is a result.
        """
        self.mark_used()
        self.record("view", "used again", tool=call.tool.name, arguments=call.arguments)
        self._calls.add(call)

    async def send_partial_input(
        self, arguments: Mapping[str, Any], *, call: ViewOrigin | None = None
    ) -> None:
        """Give the View the arguments of a call as far as they are written.

        For a View that was opened with `Host.open_view(…, partial=True)`. Each time it gets all
        that there is so far; what it did not get before the next one came, it never gets.

        Args:
            arguments: a JSON object; its last text or list may be unfinished.
            call: as for `deliver`.

        Raises:
            OutOfOrder: it has the complete input, or the call has ended.
            ProtocolError: the arguments cannot be sent.
        """
        await self._calls.write(call or self.newest_call, arguments, complete=False)

    async def send_input(
        self, arguments: Mapping[str, Any], *, call: ViewOrigin | None = None
    ) -> None:
        """Give the View the complete arguments, after `send_partial_input`; raises as that."""
        await self._calls.write(call or self.newest_call, arguments, complete=True)

    async def deliver(
        self,
        result: ToolOutcome | None = None,
        *,
        cancelled: str | None = None,
        call: ViewOrigin | None = None,
    ) -> None:
        """Give the View the result of a call it is used for, or say that there will be none.

        May be called as soon as there is a View: if it is not ready, the result is queued. The View
        gets the first result or cancellation; a later one is only stored for `Host.reopen`.

        Args:
            result: a `ToolResult`, a mapping with wire names, or just a text.
            cancelled: why there is no result, if there is none.
            call: which call, where one View may be used for several at the same time: its
                `newest_call`, as it was when `Host.open_view` returned. By default the newest one.

        Raises:
            TypeError: the result is none of these.
            OutOfOrder: it is a result, and not all of the call's input was sent.
        """
        if await self._calls.end(call or self.newest_call, result, cancelled):
            self._listener.view_changed(self)

    def begin_closing(self, reason: str) -> None:
        """Take no more calls: it is about to be closed."""
        if self.state not in _ENDED:
            self.state, self._reason = ViewState.CLOSING, reason

    async def close(self, reason: str = "the host closed it") -> None:
        """Let the View clean up, then close it. Always completes, safe to repeat."""
        if self.opening is not None:
            await asyncio.sleep(0)  # a task cancelled before its first step would report nothing
        if (opening := self.opening) is not None:
            if not opening.cancelling() and self.state not in _ENDED:
                opening.cancel(reason)
            await asyncio.wait([opening])
        if self.state in _ENDED:
            return
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(reason))
        # The View closes even if the caller stops waiting.
        await asyncio.shield(self._closing)

    async def _close(self, reason: str) -> None:
        there = self.state is not GONE
        if self.state is not ViewState.CLOSING:
            self.begin_closing(reason)
        if self._bridge is not None and self.state not in _ENDED:
            await (self._bridge.teardown if there else self._bridge.aclose)(self._reason)
        self._end(ViewState.CLOSED, self._reason)

    def _ended(self, reason: str) -> None:
        if self.opening is not None:
            return  # the task that opens it fails with the reason
        self._end(ViewState.CLOSED, self._reason if self.state is ViewState.CLOSING else reason)

    def _end(self, state: ViewState, reason: str) -> None:
        if self.state in _ENDED:
            return
        self.state, self._reason = state, reason
        if self._liveness is not None:
            self._liveness.stop()
        self._driver.end_requests()
        self._tools.close()
        self._context = None
        self._listener.view_ended(self)

    async def _approve_server_call(self, tool: Tool, arguments: Mapping[str, Any]) -> None:
        await self._env.approvals.check_view_call(self.provenance, tool, arguments)

    # --- what comes from the View ------------------------------------------------------------

    def tools_changed(self) -> None:
        """See `BridgeListener`."""
        if self.takes_calls and self._bridge is not None:
            self._tools.changed(self._bridge.app_capabilities)

    def refused(self, reason: str) -> None:
        """See `BridgeListener`."""
        self.give_up(f"its `ui/initialize` was refused: {clean(reason, _MAX_REASON)}")

    def restarted(self) -> None:
        """See `BridgeListener`: new registration numbers are unrelated to the old ones."""
        self._env.approvals.forget(self.id)

    async def _list(self) -> None:
        bridge, liveness = self._bridge, self._liveness
        if bridge is None or liveness is None:
            return
        liveness.begin()
        try:
            listed = await bridge.list_tools()
        except CapabilityMissing:  # it restarted, and has no tools now
            listed = []
        except (ConnectionClosed, NotConnected):
            return
        except TransomError as error:
            # The last list stays until the View announces another change, or was busy.
            if isinstance(error, RequestTimeout):
                liveness.ping()
            bridge.report(error)
            self._report_left_out({"all": f"they could not be listed: {error}"})
            return
        finally:
            liveness.end()
        if self.takes_calls:
            self._tools.update(listed, may_differ=self._env.fresh or bridge.lazy)
            known = self._tools.by_name.keys() | bridge.disabled.keys()
            self._env.approvals.grants.keep_only(self.id, known)
            unshown = self._listener.view_listed(self, self._tools.pulling)
            self._report_left_out({**bridge.left_out, **unshown})

    def _report_left_out(self, reasons: Mapping[str, str]) -> None:
        """Tell the user and the author, once, which tools no model can call and why."""
        text = describe_left_out(reasons)
        if text != self._tools.left_out:
            self._tools.left_out = text
            self._listener.view_changed(self)
        if text and self._tools.report_once(text):
            problem = ViewProblem("tools", f"Tools are left out: {text}")
            self._listener.problem_found(self, problem)

    def _report(self, error: BaseException) -> None:
        if self._bridge is not None:
            self._bridge.report(error)

    def _update_context(self, update: ModelContextParams) -> None:
        self._context = read_context(self.provenance, update, self._env.max_context_bytes)
        self.mark_used()
        self._listener.context_changed(self)
