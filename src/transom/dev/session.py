"""One server in front of its author: started, started again at every save, and called.

1. A save starts a new run (`ServerRun`) while the View of the old one stays. When the new server is
   there, it takes over, and the last call that opened a View is made again.
2. A server that does not start is shown with its output, until a save fixes it; if it needs a port
   that the old one has, it is started again without that. One that ends by itself is started again,
   after a pause that doubles; its last call is not made again.
3. A call can write files that count as saves: after some in a row that came during or right after
   a call, the call is not made again either.
4. Nothing that the server or a View does ends the session.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Literal

import msgspec

from transom.background import Background, Debounced, ignore, logged_task, logs_errors, stop
from transom.check.host_profiles import PLAIN, HostProfile, host_profile, host_profiles
from transom.dev.contract import check_when_quiet
from transom.dev.describing import shape_of, wire_result
from transom.dev.doctor import Diagnoses
from transom.dev.files import watch_files
from transom.dev.output import ServerOutput, is_failed
from transom.dev.page import DevPage
from transom.dev.run import ServerRun
from transom.dev.starting import DevTarget, ServerStarter
from transom.errors import ProtocolError, TransomError
from transom.host.asking.policy import Allow, ApprovalRequest, Decision, Deny
from transom.host.views.view import View
from transom.protocol.peer import Progress
from transom.types import Tool, ToolResult
from transom.web.local.local_stage import OpenPage
from transom.web.mounted_views import Violation
from transom.web.seat import Seat

_log = logging.getLogger("transom.dev")

_PAUSE = 0.5  # seconds until a server that has ended is started again, the first time
_LONGEST_PAUSE = 30.0
_RUNS_WELL = 10.0  # seconds after which its end is the first one again
_SHOW_PROGRESS_EVERY = 0.1  # seconds
_MAX_PROGRESS_TEXT = 500
_AFTER_CALL = 1.0  # seconds in which a change may still come from a call
_TAKEN = re.compile("address already in use|EADDRINUSE", re.IGNORECASE)  # a port
_MAX_REPEATS = 4  # of a call, if each may come from the one before


class CallRequest(msgspec.Struct, frozen=True):
    """A call that the author makes."""

    tool: str
    arguments: dict[str, Any] = {}
    call: str = ""
    """What the page calls it."""
    as_model: bool = True
    streamed: bool = False
    """Its arguments are written piece by piece, as a model writes them."""


class Settings(msgspec.Struct, frozen=True):
    """How the host behaves towards Views."""

    csp: Literal["compat", "strict"] = "compat"
    approvals: Literal["allow", "ask", "deny"] = "allow"
    profile: str = ""
    """The known host that it behaves like; "" for none."""
    refused: tuple[str, ...] = ()
    """Permissions that no View gets, whatever it declares."""


class DevSession:
    """Runs a server, and shows it on a page, while its block runs.

    Args:
        target: the server.
        open_page: opens the page; None: the author does.
        timeout: seconds for the server's start, a View's opening and each call.
        settings: how the host behaves until the author chooses otherwise.
        checks: check the contract of MCP Apps after each start.
        tell: called with a line if the server does not start, and when it runs after that.
        page_options: those of `DevPage`.
    """

    def __init__(
        self,
        target: DevTarget,
        open_page: OpenPage | None,
        *,
        timeout: float = 30.0,
        settings: Settings | None = None,
        checks: bool = True,
        tell: Callable[[str], object] = ignore,
        **page_options: Any,
    ) -> None:
        self._target = target
        self._timeout = timeout
        self._checks = checks
        self._settings = settings or Settings()
        requests = {
            "call": self._call,
            "cancel": self._cancel,
            "type": self._type,
            "view_call": self._view_call,
            "surface": self._surface,
            "snapshot": self._snapshot,
            "screenshot": self._screenshot,
            "diagnose": self._diagnose,
            "teardown": self._teardown,
            "restart": self._restart_requested,
            "settings": self._set,
        }
        self.page = DevPage(requests, open_page, on_violation=self._violation, **page_options)
        self.page.stage.csp_mode = self._settings.csp
        self._output = ServerOutput(self.page)
        self._starter = ServerStarter(target.server, self._output.feed, target.shown, tell)
        self._diagnoses = Diagnoses(self.page, target.folder, timeout)
        self._run: ServerRun | None = None
        self._again = asyncio.Event()  # the server is to be started again
        self._changed: list[str] = []
        self._pause = _PAUSE
        self._retry: asyncio.TimerHandle | None = None
        self._last_view_call: CallRequest | None = None
        self._is_repeated = False  # the last call, when the server is there
        self._repeats = 0  # that may each come from the one before
        self._called_until = 0.0  # the time of the loop
        self._newest_call: CallRequest | None = None
        self._calls: dict[str, asyncio.Task[Any]] = {}
        self._background = Background(logs_errors(_log))

    async def run(self) -> None:
        """Serve the page and keep the server running, until cancelled."""
        self.page.set("target", {"name": self._target.name, "shown": self._target.shown})
        self.page.set("settings", self._settings)
        self.page.set("profiles", [_shown_profile(each) for each in host_profiles().values()])
        with self._starter:
            async with self.page:
                await self._keep_running()

    async def _keep_running(self) -> None:
        beside = [logged_task(each, _log) for each in (self._watch(), self.page.show())]
        try:
            while True:
                self._again.clear()
                if self._retry is not None:
                    self._retry.cancel()
                starting = logged_task(self._start(), _log)
                try:
                    await self._again.wait()
                finally:
                    await stop(starting)
        finally:
            for task in beside:
                await stop(task)
            self._output.close()
            self._diagnoses.clear()
            if self._run is not None:
                await self._run.close()
            await self._background.aclose()

    # --- starting ----------------------------------------------------------------------------

    async def _watch(self) -> None:
        if self._target.folder is None:
            return
        async for files in watch_files(self._target.folder):
            self._changed = [file.name for file in files]
            self._pause = _PAUSE
            now = asyncio.get_running_loop().time()
            may_be_written = bool(self._calls) or now < self._called_until
            self._repeats = self._repeats + 1 if may_be_written else 0
            self._is_repeated = self._repeats <= _MAX_REPEATS
            self._again.set()

    async def _start(self) -> None:
        began, changed, self._changed = time.perf_counter(), self._changed, []
        self._show_server("starting", changed=changed)
        self._output.begin_start()
        run = ServerRun(
            self.page,
            self._target.name,
            self._approve,
            self._lost,
            self._view_opened,
            self._target.folder,
            self._timeout,
        )
        try:
            looking = () if self._run is None else (self._run.avoid_stuck(),)
            await asyncio.gather(run.start(self._starter.target), *looking)
        except asyncio.CancelledError:
            await run.close()
            raise
        except TransomError as error:
            await run.close()
            output = await self._starter.last_output()
            before, self._run = self._run, None
            if before is not None and _TAKEN.search(output):  # by the server that was there before
                await before.close()
                self._changed = changed
                self._again.set()
                return
            if before is not None:
                self._background.start(before.close())
            self._show_failure(error, output)
            return
        before, self._run = self._run, run
        self._diagnoses.clear()
        if changed:
            self.page.clear("findings")  # they are about what was there before the save
        try:
            self._behave(run)
            await run.show()
            self._show_server("running", ms=_since(began))
            self._starter.tell_running()
            for task in self._calls.values():  # of the server that was there before
                task.cancel()
            call, is_repeated = self._last_view_call, self._is_repeated
            if is_repeated and call is not None and call.tool in await run.server.tools():
                await self._make_call(msgspec.structs.replace(call))
                self._show_server("running", ms=_since(began))
        finally:
            # Not before: while the old View is there, the browser needs no new process for its
            # origin, which takes longer than all the rest.
            if before is not None:
                self._background.start(before.close())
        await run.prepare_view()
        self._starter.prepare()
        if self._checks:
            await check_when_quiet(
                self._target.shown,
                self._target.server,
                lambda found: self.page.set("contract", found),
            )
        await asyncio.sleep(_RUNS_WELL)
        self._pause = _PAUSE

    def _show_failure(self, error: TransomError, output: str) -> None:
        reason, is_retried = str(error.__cause__ or error), self._target.folder is None
        self._starter.tell_failure(reason)
        self.page.set("view", None)
        self._diagnoses.clear()
        self._show_server("failed", reason=reason, output=output, retried=is_retried)
        if is_retried:
            self._start_later()

    def _lost(self, reason: str) -> None:
        self._is_repeated = False  # it may be the call that ended it
        self._show_server("lost", reason=reason, output=self._output.kept)
        self._start_later()

    def _view_opened(self, view: View) -> None:
        if self._run is not None:
            self._diagnoses.view_opened(view, self._run, self._profile)

    @property
    def _profile(self) -> HostProfile:
        return host_profile(self._settings.profile or PLAIN)

    def _start_later(self) -> None:
        pause, self._pause = self._pause, min(self._pause * 2, _LONGEST_PAUSE)
        self._retry = asyncio.get_running_loop().call_later(pause, self._again.set)

    def _show_server(self, state: str, **details: Any) -> None:
        self.page.set("server", {"state": state, **details})

    # --- what the author asks for ------------------------------------------------------------

    @property
    def _current(self) -> ServerRun:
        if self._run is None:
            raise TransomError("The server does not run")
        return self._run

    async def _call(self, arguments: dict[str, Any]) -> object:
        self._repeats = 0
        answer = await self._make_call(msgspec.convert(arguments, CallRequest))
        if self._run is not None:
            await self._run.prepare_view()
        return answer

    async def _type(self, arguments: dict[str, Any]) -> object:
        call = msgspec.convert(arguments, CallRequest)
        await self._current.type_arguments(await self._tool(call), call.arguments)
        return None

    async def _tool(self, call: CallRequest) -> Tool:
        tool = await self._current.server.tool(call.tool)
        if tool is None:
            raise TransomError(f"The server has no tool {call.tool}")
        return tool

    async def _make_call(self, call: CallRequest) -> dict[str, Any]:
        run, tool = self._current, await self._tool(call)
        if shape_of(tool) == "opens":
            self._last_view_call = call
            self._diagnoses.watch(run, self._profile)
            run.forget_failed()

        last: dict[str, Any] = {}

        def show() -> None:
            self._show_call(call, "running", **last)

        showing = Debounced(show, logs_errors(_log), delay=_SHOW_PROGRESS_EVERY)

        def on_progress(progress: Progress) -> None:
            message = (progress.message or "")[:_MAX_PROGRESS_TEXT]
            last.update(progress=progress.progress, total=progress.total, message=message)
            showing.trigger()

        async def calling() -> ToolResult:
            try:
                return await run.call(tool, call.arguments, on_progress, streamed=call.streamed)
            finally:
                showing.flush()
                showing.close()

        return await self._follow(call, calling())

    async def _view_call(self, arguments: dict[str, Any]) -> object:
        call = msgspec.convert(arguments, CallRequest)
        calling = self._current.call_view_tool(call.tool, call.arguments, as_model=call.as_model)
        return await self._follow(call, calling)

    async def _follow(self, call: CallRequest, calling: Awaitable[Any]) -> dict[str, Any]:
        """Make a call that can be cancelled, and show how it goes."""
        began, self._newest_call = time.perf_counter(), call
        self._output.begin_call()
        self._show_call(call, "running")
        task = self._calls[call.call] = asyncio.ensure_future(calling)
        try:
            result = await task
        except asyncio.CancelledError:
            self._show_call(call, "cancelled", ms=_since(began))
            caller = asyncio.current_task()
            if caller is not None and caller.cancelling():  # not the call, but who waits for it
                raise
            return {"cancelled": True}
        except (TransomError, msgspec.MsgspecError) as error:  # or a result that is not valid
            text = error.message if isinstance(error, ProtocolError) else str(error)
            self._show_call(call, "failed", error=text, ms=_since(began))
            return {"error": text}
        finally:
            self._calls.pop(call.call, None)
            self._called_until = asyncio.get_running_loop().time() + _AFTER_CALL
        self._show_call(call, "done", result=wire_result(result), ms=_since(began))
        return {}

    def _show_call(self, call: CallRequest, state: str, **details: Any) -> None:
        if call is self._newest_call:  # an older one may still end
            shown = {"tool": call.tool, "arguments": call.arguments, "call": call.call}
            shown |= {"state": state, **details}
            if is_failed(shown):
                shown["output"] = self._output.kept
            self.page.set("call", shown)

    async def _cancel(self, arguments: dict[str, Any]) -> object:
        task = self._calls.get(str(arguments.get("call")))
        return task is not None and task.cancel()

    async def _surface(self, _: dict[str, Any]) -> object:
        return await self._current.surface()

    async def _snapshot(self, _: dict[str, Any]) -> object:
        return (await self._current.view.snapshot()).text

    async def _screenshot(self, _: dict[str, Any]) -> object:
        return base64.b64encode(await self._current.screenshot()).decode()

    async def _diagnose(self, _: dict[str, Any]) -> object:
        """Open the last View in a browser without a window, and show what is wrong with it."""
        call = self._last_view_call
        tool, given = (None, {}) if call is None else (call.tool, call.arguments)
        self._diagnoses.ask(self._current, self._profile, tool, given)
        return None

    async def _teardown(self, _: dict[str, Any]) -> object:
        await self._current.view.close("the author closed it")
        return None

    async def _restart_requested(self, _: dict[str, Any]) -> object:
        self._is_repeated = True
        self._again.set()
        return None

    async def _set(self, arguments: dict[str, Any]) -> object:
        """Change a setting; another host, or policy for pages, needs the View opened again."""
        settings = msgspec.convert(arguments, Settings)
        profile = host_profile(settings.profile) if settings.profile else None
        before, self._settings = self._settings, settings
        self.page.set("settings", settings)
        if msgspec.structs.replace(before, approvals=settings.approvals) == settings:
            return None
        refuses_eval = profile is not None and profile.eval is False
        self.page.stage.csp_mode = "strict" if refuses_eval else settings.csp
        run, call = self._run, self._last_view_call
        if run is not None:
            self._behave(run)
            if call is not None:
                with suppress(TransomError):
                    await run.view.close("its host is another one")
                await self._make_call(call)
        return None

    def _behave(self, run: ServerRun) -> None:
        name = self._settings.profile
        run.behave_like(host_profile(name) if name else None, self._settings.refused)

    async def _approve(self, seat: Seat, request: ApprovalRequest) -> Decision:
        match self._settings.approvals:
            case "allow":
                return Allow()
            case "deny":
                return Deny("The author refuses all calls at the moment")
            case "ask":
                return await seat.approve(request)

    def _violation(self, violation: Violation) -> None:
        if self._run is not None:
            text = f"{violation.directive}: {violation.blocked}"
            self._run.violation(violation.view, text, violation.blocked)


def _shown_profile(profile: HostProfile) -> dict[str, Any]:
    """A profile, with what is known of it and by which source."""
    known = msgspec.to_builtins(profile)
    about = {key: value for key, value in known.items() if value is not None}
    return {**about, "container": known["container"]}


def _since(began: float) -> float:
    return round((time.perf_counter() - began) * 1000, 1)
