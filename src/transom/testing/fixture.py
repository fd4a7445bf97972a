"""What a test has as `views`: a Host of its own, whose Views it opens and controls."""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Literal

from transom.connections.target_names import parse_target
from transom.connections.targets import (
    ServerOpener,
    Target,
    connected_server,
    identity_of,
    way_to,
)
from transom.errors import TransomError, UsageError, ViewClosed
from transom.host.asking.policy import Allow, Approve, Deny, Policy
from transom.host.host import Host
from transom.host.limits import Limits
from transom.host.tools.tool_visibility import links_view
from transom.host.views.renderers import MakeApp
from transom.host.views.settling import wait_for_failed_page
from transom.host.views.view import View
from transom.protocol.messages import ToolOutcome
from transom.testing.browser import MixedRenderer, SharedBrowser
from transom.testing.opened_view import OpenedView
from transom.testing.replay import Replay
from transom.testing.replay_view import open_page
from transom.testing.server_script import ScriptedCall, ServerScript, scripted
from transom.testing.view_files import ViewFiles
from transom.traffic import Leg, Recorder, TrafficMessage
from transom.types import ToolResult, ViewProblem
from transom.web.csp import CspMode

Refusal = Literal["openLinks", "downloadFile", "message", "logging", "updateModelContext"]
"""A capability that a host may lack."""

_CONTEXT_BYTES = 256 * 1024
_HANDLERS: dict[Refusal, str] = {
    "openLinks": "on_open_link",
    "downloadFile": "on_download_file",
    "message": "on_message",
    "logging": "on_log",
}
_OPEN_TIMEOUT = 30.0  # seconds
_MAX_MESSAGES = 5000
_MAX_BYTES = 32 * 1024 * 1024
_MAX_CONSOLE = 1000
_SHOWN = 5  # problems, and requests, of a View in the report of a failed test


class ViewsFixture:
    """Opens Views. Each test has its own, with a `Host` of its own."""

    def __init__(self, browser: SharedBrowser, files: ViewFiles) -> None:
        self.report = ""
        """Where a failed test has left what is known of its Views."""
        self._browser = browser
        self._files = files
        self._stack = AsyncExitStack()
        self._host: Host | None = None
        self._renderer = MixedRenderer({}, self._take_seat, self._configure_host)
        self._context: dict[str, Any] = {}
        self._refused: Collection[Refusal] = ()
        self._open_timeout: float | None = None
        self._csp: CspMode = "compat"
        self._approve: Approve | None = None
        self._script = ServerScript()
        self._servers: list[tuple[Target, str]] = []
        self._opened: dict[str, OpenedView] = {}
        self._early: dict[str, list[ViewProblem]] = {}
        self._unstarted = ""  # why the browser of the last View had not started before its opening
        self._traffic = _Traffic(self._opened)
        self._console: deque[str] = deque(maxlen=_MAX_CONSOLE)

    # --- the host ----------------------------------------------------------------------------

    @property
    def host(self) -> Host:
        """The test's `Host`; UsageError before the first View is opened."""
        if self._host is None:
            raise UsageError("There is no Host before `views.open`")
        return self._host

    def configure(
        self,
        *,
        refuse: Collection[Refusal] = (),
        approve: bool | Approve = True,
        apps: Mapping[str, MakeApp] | None = None,
        open_timeout: float | None = None,
        csp: CspMode = "compat",
        **context: Any,
    ) -> None:
        """Say what the host is like. Call it before `open`.

        Args:
            refuse: capabilities that the host does not have.
            approve: whether the user allows calls of tools that are not read-only; or a function
                that answers, as `Policy(approve=...)` takes it.
            apps: by `ui://` resource, functions that make Views in Python (`transom.App`), which
                then need no browser.
            open_timeout: seconds that a View may take to become live; by default 30. A page whose
                script failed is waited for only if this is given.
            csp: what a View's page may run: `compat`, as most hosts allow, or `strict`.
            context: the View's surroundings: `theme="dark"`, `locale="de"`, `displayMode=...`.
        """
        if self._host is not None:
            raise UsageError("Call views.configure before views.open")
        self._refused = refuse
        self._open_timeout = open_timeout
        self._csp = csp
        self._context = context
        if approve is False:
            self._approve = partial(_answer, Deny())
        elif approve is not True:
            self._approve = approve
        for uri, make in (apps or {}).items():
            self._renderer.add_app(uri, make)

    def server_call(
        self,
        tool: str,
        *,
        delay: float = 0.0,
        fails: str | None = None,
        returns: ToolOutcome | None = None,
    ) -> None:
        """Say what becomes of calls of a server's tool, from now on.

        Args:
            tool: the tool, by the server's name for it.
            delay: seconds before the server gets the call.
            fails: the text of the error that is the answer, in place of the server's.
            returns: the result, in place of the server's.
        """
        self._script.calls[tool] = ScriptedCall(delay=delay, fails=fails, returns=returns)

    def record(self, path: str | Path) -> None:
        """Write every message of the test to a file, for `transom replay`."""
        self._traffic.recorder = self._stack.enter_context(Recorder(path))

    async def replay(
        self,
        path: str | Path,
        target: Target,
        *,
        leg: Leg = "view",
        name: str | None = None,
        ignore: Sequence[str] = (),
    ) -> None:
        """Send a View, or its server, what it was sent in a record, and compare what it says.

        Args:
            path: the record, beside the test or where pytest was started.
            target: the server, or the one whose View it is, as for `open`.
            leg: whether the `view` or the `server` is tested.
            name: which, if the record has several.
            ignore: paths that are not compared, such as `result.structuredContent.*.price`.

        Raises:
            AssertionError: something differs; the text says what.
        """
        __tracebackhide__ = True
        replay = Replay(self._files.beside(str(path)), leg, name=name, ignore=ignore)
        if isinstance(target, str):
            target = parse_target(self._files.beside(target))
        if leg == "server":
            found = await replay.run(await way_to(target)())
        else:
            await self._start()
            async with open_page(replay, target, self._renderer) as channel:
                found = await replay.run(channel)
        if found:
            text = "\n".join(map(str, found))
            raise AssertionError(f"The {leg} does not do what it did in {path}\n{text}")

    async def _start(self) -> Host:
        if self._host is None:
            approve = self._approve
            policy = Policy.trusting() if approve is None else Policy(approve=approve)
            host = Host(
                renderer=self._renderer,
                policy=policy,
                limits=Limits(relist_interval=0),  # a test does not wait for what changed
                drive="always",
                audit=None,
                open_timeout=_OPEN_TIMEOUT if self._open_timeout is None else self._open_timeout,
                max_context_bytes=0 if "updateModelContext" in self._refused else _CONTEXT_BYTES,
                traffic=self._traffic,
            )
            host.on_view_problem(self._problem)
            host.on_tools_changed(self._tools_changed)
            host.on_error(_accept)  # what matters of it is in the problems
            self._host = await self._stack.enter_async_context(host)
            self._configure_host()
        return self._host

    def _configure_host(self) -> None:
        host = self.host
        for capability, handler in _HANDLERS.items():
            setattr(host, handler, None if capability in self._refused else _accept)
        if self._context:
            host.set_context(**self._context)

    async def _take_seat(self) -> Any:
        return await self._browser.seat(self._stack, self._console.append, self._csp)

    # --- Views -------------------------------------------------------------------------------

    async def open(
        self, target: Target | None = None, tool: str | None = None, /, **arguments: Any
    ) -> OpenedView:
        """Call a tool of a server, as a model does, and open the View that shows it.

            view = await views.open("orders.py", "show_orders", status="open")
            view = await views.open(server, "show_orders")           # an object in this process
            page = Path(__file__).with_name("orders.html")
            view = await views.open(html=page, tools={"refresh": refresh})
            view = await views.open(app=make_app)                    # a View in Python

        Args:
            target: a Python file (beside the test, or where pytest was started), `module:server`, a
                URL, a command; or an `MCPServer` or `FastMCP` object. Without one, `html` is a page
                or `app` a function that makes a View in Python, `tools` has the server's tools that
                it calls (functions, or just what they return), `arguments` is its input and
                `result` the result that it gets.
            tool: the tool to call; not needed if only one opens a View.
            arguments: the tool's arguments.

        Raises:
            AssertionError: there is no such tool, or it opened no View; the text says why.
            NotConnected: the server cannot be started.
        """
        if target is None:
            target, arguments = self._server_of(**arguments)
            tool = "show"
        host = await self._start()
        name = await self._tool_name(host, await self._add(host, target), tool)
        before = {*host.views}
        result = await host.call_tool(name, arguments)
        view = next((host.views[each] for each in host.views if each not in before), None)
        note = (result.meta or {}).get("transom/view", {})
        if view is None:
            view = host.views.get(note.get("id", ""))
        if view is not None:
            await self._wait_opened(view)
        if view is None or not view.takes_calls:
            raise AssertionError(self._why_not_opened(name, result, note.get("error")))
        return await self._opened_view(host, view, result)

    async def begin(
        self, target: Target | None = None, tool: str | None = None, /, **page: Any
    ) -> OpenedView:
        """Open the View of a tool whose arguments a model is still writing.

            view = await views.begin("orders.py", "show_orders")
            await view.send_partial_input(status="op")
            await view.send_input(status="open")
            await view.deliver("3 orders")

        Args:
            target: as for `open`.
            tool: as for `open`.
            page: `html` or `app`, and `tools`, in place of a target.
        """
        if target is None:
            target, _ = self._server_of(**page)
            tool = "show"
        host = await self._start()
        server = await self._add(host, target)
        name = await self._tool_name(host, server, tool)
        view = await host.open_view(server, name.removeprefix(f"{server}__"), partial=True)
        await self._wait_opened(view)
        if not view.takes_calls:
            raise AssertionError(f"{name} opened no View: {view.closed_error()}")
        return await self._opened_view(host, view, ToolResult())

    async def _wait_opened(self, view: View) -> None:
        with suppress(ViewClosed):
            await view.opened()
        if self._open_timeout is not None:  # or each test of a broken page would take all of it
            await wait_for_failed_page(view)

    async def _opened_view(self, host: Host, view: View, result: ToolResult) -> OpenedView:
        opened = self._opened.get(view.id)
        if opened is None:
            frame = await self._renderer.frame(view.id, view.uri)
            opened = OpenedView(host, view, result, frame, self._files)
            opened.problems += self._early.pop(view.id, [])
            for message in self._traffic.of(view.id):
                opened.on_message(message)
            self._opened[view.id] = opened
        opened.result = result
        return opened

    def _server_of(
        self,
        *,
        html: str | Path | None = None,
        app: MakeApp | None = None,
        tools: Mapping[str, Any] | None = None,
        arguments: Mapping[str, Any] | None = None,
        result: Any = "",
    ) -> tuple[Target, dict[str, Any]]:
        """A server for a page, or a View in Python, that has none."""
        if (html is None) == (app is None):
            raise UsageError("Give views.open a server, or html=..., or app=...")
        from transom.testing.page_server import page_server  # noqa: PLC0415 - it loads the SDK

        uri = f"ui://page/view-{len(self._servers) + 1}.html"
        if app is not None:
            self._renderer.add_app(uri, app)
        page = html if html is not None else "<!doctype html><title>A View in Python</title>"
        return page_server(uri, page, tools or {}, result), dict(arguments or {})

    async def _add(self, host: Host, target: Target) -> str:
        given: Target = target
        if isinstance(target, str):
            target = parse_target(self._files.beside(target))
        for known, name in self._servers:
            if known is target or (known == target and isinstance(target, str | list)):
                return name
        name = server_name(given, {name for _, name in self._servers})
        opener: Target = target
        if connected_server(target) is None:
            opener = ServerOpener(scripted(way_to(target), self._script), identity_of(target))
        if isinstance(given, str | list | ServerOpener):  # else it is in this process, at once
            await self._renderer.prepare()
        await host.add_server(name, opener)
        self._servers.append((target, name))
        return name

    async def _tool_name(self, host: Host, server: str, tool: str | None) -> str:
        """The host's name for a server's tool. The browser of its View, if any, has started."""
        shown = {each.name for each in await host.list_tools()}
        names: dict[str, str] = {}  # those that a model may call, by the server's name for each
        opening: list[str] = []
        tools = await host.server(server).tools()
        for own, each in tools.items():
            name = next((given for given in (f"{server}__{own}", own) if given in shown), None)
            if name is not None:
                names[own] = name
                opening += [own] if links_view(each.meta) else []
        if tool is None and len(opening) != 1:
            found = f"these do: {', '.join(opening)}" if opening else "none does"
            raise AssertionError(f"Name the tool that opens a View; {found}")
        chosen = opening[0] if tool is None else tool
        if chosen not in names:
            has = ", ".join(names) or "none"
            raise AssertionError(f"The server has no tool {chosen}; it has: {has}")
        self._unstarted = await self._renderer.wait_for_browser(tools[chosen])
        return names[chosen]

    def _why_not_opened(self, tool: str, result: ToolResult, reason: str | None) -> str:
        lines = [f"{tool} opened no View: {reason or 'the tool links none'}"]
        if result.is_error:
            lines.append(f"The tool answered: {result.text[:500]}")
        if self._unstarted and self._unstarted not in lines[0]:
            lines.append(f"The browser had not started before: {self._unstarted}")
        early = [problem for problems in self._early.values() for problem in problems]
        lines += [_described(problem) for problem in early]
        lines += list(self._console)[-10:]
        return "\n".join(lines)

    # --- what comes from the host ------------------------------------------------------------

    def _problem(self, view: View, problem: ViewProblem) -> None:
        opened = self._opened.get(view.id)
        problems = self._early.setdefault(view.id, []) if opened is None else opened.problems
        problems.append(problem)
        if opened is not None:
            opened.notify_changed()

    def _tools_changed(self) -> None:
        for opened in self._opened.values():
            opened.notify_changed()

    # --- the test ----------------------------------------------------------------------------

    async def run_test(self, test: Callable[[], Awaitable[Any]]) -> Any:
        """Run a test; then fail it if something went wrong in a View, and close everything."""
        __tracebackhide__ = True
        async with self._stack:
            try:
                returned = await test()
                await self._check()
            except BaseException as error:
                if isinstance(error, Exception) or type(error).__name__ == "Failed":
                    await self._settle()
                    await self._keep_failure()
                if isinstance(error, TransomError | AssertionError):
                    _end_in_test(error)
                raise
            return returned

    async def _settle(self) -> None:
        await asyncio.gather(*(opened.settle() for opened in self._opened.values()))

    async def _check(self) -> None:
        __tracebackhide__ = True
        await self._settle()
        lines = [
            f"View {name}: {_described(problem)}"
            for name, opened in self._opened.items()
            for problem in opened.unexpected
        ]
        if lines:
            import pytest  # noqa: PLC0415 - `transom eval` needs no pytest

            lines.append("If that is expected, say so: view.allow_problems('a part of the text')")
            pytest.fail("\n".join(lines), pytrace=False)  # no line of the test did it

    async def _keep_failure(self) -> None:
        """Leave what is known of the Views in a folder."""
        if not self._traffic.kept:
            return  # it failed before there was a server
        folder = self._files.failure()
        with Recorder(folder / "messages.jsonl") as recorder:
            for message in self._traffic.kept:
                recorder.on_message(message)
        if self._console:
            (folder / "console.txt").write_text("\n".join(self._console) + "\n")
        for name, opened in self._opened.items():
            tools = json.dumps(opened.described_tools(), indent=2)
            (folder / f"{name}.tools.json").write_text(tools)
            if opened.problems:
                problems = [f"{_described(each)}\n" for each in opened.problems]
                (folder / f"{name}.problems.txt").write_text("".join(problems))
            with suppress(TransomError):  # it has no page, or hangs
                (folder / f"{name}.png").write_bytes(await opened.screenshot())
        lines = [line for name, opened in self._opened.items() for line in _story(name, opened)]
        lines += [
            f"views.server_call names {tool}, but nobody has called that tool since"
            for tool in self._script.calls
            if tool not in self._script.followed
        ]
        lines.append(f"What the Views showed, sent and reported is in {folder}")
        self.report = "\n".join(lines)


class _Traffic:
    """The last messages of a test, and who else gets them."""

    def __init__(self, opened: Mapping[str, OpenedView]) -> None:
        self.kept: deque[TrafficMessage] = deque()
        self.recorder: Recorder | None = None
        self._opened = opened
        self._bytes = 0

    def of(self, view_id: str) -> list[TrafficMessage]:
        return [each for each in self.kept if each.leg == "view" and each.name == view_id]

    def on_message(self, message: TrafficMessage) -> None:
        self.kept.append(message)
        self._bytes += len(message.data)
        while len(self.kept) > _MAX_MESSAGES or self._bytes > _MAX_BYTES:
            self._bytes -= len(self.kept.popleft().data)
        if self.recorder is not None:
            self.recorder.on_message(message)
        if message.leg == "view" and (opened := self._opened.get(message.name)) is not None:
            opened.on_message(message)


def server_name(target: Target, taken: Collection[str]) -> str:
    """What a server is called, after its file or by its own name; Views are named after it."""
    own = Path(target.split(":")[0]).stem if isinstance(target, str) else ""
    own = own or str(getattr(target, "name", ""))
    stem = re.sub(r"[^A-Za-z0-9_-]+", "-", own).strip("-_")[:20] or "server"
    names = (stem if number == 1 else f"{stem}{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _end_in_test(error: BaseException) -> None:
    """Let a traceback end where the test calls this package: its author needs no more."""
    here = str(Path(__file__).parents[1])
    inside, entry = True, error.__traceback__
    while entry is not None and entry.tb_next is not None:
        inside = inside and entry.tb_frame.f_code.co_filename.startswith(here)
        if not inside and entry.tb_next.tb_frame.f_code.co_filename.startswith(here):
            entry.tb_next = None
        entry = entry.tb_next


async def _accept(*_: object) -> None:
    """Agree to what a View asks; the test sees it in `view.sent`."""


async def _answer(decision: Allow | Deny, _: object) -> Allow | Deny:
    return decision


def _story(name: str, opened: OpenedView) -> list[str]:
    """That a View is closed, its last problems and requests: they often say why a test failed."""
    closed = [] if opened.view.takes_calls else [str(opened.view.closed_error())]
    told = [f"View {name}: {_described(problem)}" for problem in opened.problems[-_SHOWN:]]
    sent = [f"View {name} sent {each.method} {each.params}"[:200] for each in opened.sent[-_SHOWN:]]
    return closed + told + sent


def _described(problem: ViewProblem) -> str:
    kind = problem.kind if problem.tool is None else f"{problem.kind} {problem.tool}"
    if problem.source is None:
        return f"{kind}: {problem.message}"
    in_page = problem.is_in_page or problem.source == "about"  # as a blocked request has it
    place = "the page" if in_page else problem.source
    return f"{kind}: {problem.message} ({place}, line {problem.line})"
