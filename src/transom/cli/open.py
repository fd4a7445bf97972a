"""`transom open`: show one tool's View, and try the View's tools."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, NoReturn
from urllib.parse import urlsplit

import msgspec
from rich.console import Console
from rich.text import Text

from transom.background import ignore, stop
from transom.check.facts import CSP_DIRECTIVES
from transom.check.schemas import schema_error
from transom.cli import print_failure, run_async
from transom.cli.options import OpenOptions
from transom.cli.target import read_call, read_object, read_target
from transom.connections.targets import Target, identity_of
from transom.dev.describing import wire_result, wire_tool
from transom.dev.files import find_in_files, watch_files
from transom.dev.starting import DevTarget, ServerStarter
from transom.drive.tools import ACT_ON_VIEW, LOOK_AT_VIEW, act_request, is_ref
from transom.errors import (
    SERVER_ERROR,
    NotConnected,
    PeerError,
    ProtocolError,
    TransomError,
    UsageError,
)
from transom.host.asking.policy import Policy
from transom.host.host import Host
from transom.host.tools.tool_visibility import links_view
from transom.host.views.liveness import ViewState
from transom.host.views.renderers import Renderer
from transom.host.views.settling import wait_for_failed_page, watch
from transom.host.views.view import View
from transom.traffic import Recorder, TrafficListener
from transom.types import Tool, ToolResult, ViewProblem
from transom.web.local.headless import HeadlessRenderer
from transom.web.local.renderers import BrowserRenderer, open_in_browser
from transom.web.mounted_views import MISSING, Violation
from transom.web.seat import Seat

Event = dict[str, Any]
"""A step of `transom open`; `event` says which."""

_MARGIN = 9
_MAX_SHOWN = 1000
# Views write this: nothing in it may move the cursor, change colours or turn text around.
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


class EventPrinter:
    """Prints each event as it comes: a word in the margin, and what there is to say."""

    def __init__(self, console: Console | None = None) -> None:
        self._out = console or Console(highlight=False)

    def print(self, event: Event) -> None:
        """Print one event."""
        getattr(self, f"_{event['event']}")(event)

    def _lines(self, heading: str, style: str, *lines: str | Text) -> None:
        for number, line in enumerate(lines):
            margin = Text(f"{heading if not number else '':<{_MARGIN}}", style=f"bold {style}")
            body = line if isinstance(line, Text) else Text(_safe(line))
            self._out.print(margin + body, soft_wrap=True)

    def _opened(self, event: Event) -> None:
        app = f"{event['app']['name']} {event['app']['version']}".strip() or "A View"
        self._lines("Opened", "green", Text.assemble(_safe(app), (f"  {event['view']}", "dim")))
        self._result(event["result"])

    def _tools(self, event: Event) -> None:
        tools = event["tools"]
        if not tools:
            self._lines("Tools", "blue", "The View has no tools of its own.")
            return
        signatures = [_safe(f"{tool['name']}({_arguments(tool)})") for tool in tools]
        width = min(max(map(len, signatures)), 40)
        lines: list[Text] = []
        for tool, signature in zip(tools, signatures, strict=True):
            summary = _safe(str(tool.get("description", ""))).partition("\n")[0][:100]
            lines.append(Text.assemble(f"{signature:<{width}}", (f"  {summary}", "dim")))
        self._lines("Tools", "blue", *lines)

    def _call(self, event: Event) -> None:
        if "error" in event:
            text = f"{event['error']['message']} ({event['error']['code']})"
            self._lines("Failed", "red", event["tool"], text)
            return
        self._lines("Called", "green", event["tool"])
        self._result(event["result"])

    def _look(self, event: Event) -> None:
        find, under = event.get("find"), event.get("under")
        what = "at the View" if find is None else f"for {find}"
        self._lines("Looked", "green", what if under is None else f"under {under}")
        self._result(event["result"], whole=True)

    def _act(self, event: Event) -> None:
        did = (event["ref"], event["action"], event["value"] or "")
        self._lines("Acted", "green", " ".join(did).rstrip())
        self._result(event["result"], whole=True)

    def _result(self, result: dict[str, Any], *, whole: bool = False) -> None:
        text = "\n".join(_block(block) for block in result["content"])
        if len(text) > _MAX_SHOWN and not whole:
            text = f"{text[:_MAX_SHOWN]}… ({len(text)} characters)"
        heading, style = ("Error", "red") if result.get("isError") else ("", "default")
        self._lines(heading, style, *(text.splitlines() or ["(no text)"]))

    def _violation(self, event: Event) -> None:
        if event["directive"] == MISSING:
            self._lines("Missing", "yellow", f"{event['blocked']}: {_NO_FOLDER}")
            return
        lines = [f"{event['directive']}: {event['blocked']}"]
        if advice := _to_allow(event["directive"], event["blocked"]):
            lines.append(advice)
        self._lines("Blocked", "yellow", *lines)

    def _problem(self, event: Event) -> None:
        what = f"{event['kind']} in {event['tool']}" if "tool" in event else event["kind"]
        lines: list[str | Text] = [f"{what}: {event['message']}"]
        at = f"{event.get('line', '?')}:{event.get('column', '?')}"
        if event.get("file"):  # terminals make a link of it
            link = f"link {Path(event['file']).absolute().as_uri()}"
            lines.append(Text(f"{event['file']}:{at}", style=link))
        elif "source" in event:
            lines.append(f"{'the page' if 'file' in event else event['source']}:{at}")
        if "text" in event:
            lines.append(Text(f"    {_safe(event['text'])}", style="dim"))
        self._lines("Problem", "red", *lines)

    def _changed(self, event: Event) -> None:
        files = event["files"]
        more = f" and {len(files) - 3} more" if len(files) > 3 else ""
        self._lines("Changed", "blue", ", ".join(files[:3]) + more)

    def _closed(self, event: Event) -> None:
        self._lines("Closed", "dim", f"{event['view']}: {event['reason']}")


_NO_FOLDER = "a page has no folder of its own, so put what it needs into the page"


def _to_allow(directive: str, blocked: str) -> str:
    """What to write so that a View may do what was blocked; nothing where that is not known."""
    directive = re.sub(r"-(elem|attr)$", "", directive)
    parts = urlsplit(blocked)
    if directive not in CSP_DIRECTIVES:
        return ""
    if not parts.netloc:
        return "--csp compat allows it" if blocked in {"inline", "eval"} else ""
    field, wire = CSP_DIRECTIVES[directive]
    origin = f"{parts.scheme}://{parts.netloc}"
    return (
        f'To allow it: views.add(…, csp=Csp({field}=["{origin}"])), '
        f"which is {wire} in the page's _meta.ui.csp"
    )


def _arguments(tool: dict[str, Any]) -> str:
    schema = tool["inputSchema"]
    required = schema.get("required", [])
    names = schema.get("properties", {})
    return ", ".join(name if name in required else f"{name}?" for name in names)


def _block(block: dict[str, Any]) -> str:
    return block["text"] if block["type"] == "text" else f"<{block['type']}>"


def _safe(text: str) -> str:
    return _UNSAFE.sub("\N{REPLACEMENT CHARACTER}", text)


_INTERRUPTED = 130
_TIMEOUT = 30.0  # seconds
_SETTLE = 0.5  # seconds in which reports of what was blocked still arrive
_PICTURES = 10  # of a View that goes on moving
_BETWEEN = 0.15  # seconds from one to the next


def run(options: OpenOptions) -> int:
    """Do what the command line says; the exit code."""
    command: OpenCommand | None = None
    try:
        target = read_target(options, "transom open")
        tool, arguments = read_call(options)
        steps = [read_step(*each) for each in options.steps]
        _check_screenshot(options.screenshot, headless=options.headless)
        if options.wait is not None and not options.headless:
            raise UsageError("--wait needs --headless")
        if options.watch and target.folder is None:
            raise UsageError("--watch needs a server that runs here: a file, module or command")
        recording = nullcontext() if options.record is None else Recorder(options.record)
        with recording as recorder:
            command = _make_command(options, target, recorder)
            run_async(
                command.run(
                    target.server,
                    tool,
                    arguments or {},
                    steps,
                    name=target.name,
                    wait=options.wait,
                    screenshot=options.screenshot and options.screenshot.write_bytes,
                    stay=not options.headless,
                    watched=target.folder if options.watch else None,
                )
            )
    except NotConnected as error:
        raise TransomError(_reason(options.target, error)) from error
    except KeyboardInterrupt:
        # A View that was to stay until now has stayed: how its calls went is what counts.
        if command is None or (options.headless and not options.watch) or not command.opened:
            return _INTERRUPTED
    if options.screenshot is not None and not options.json:
        sys.stdout.write(f"Saved a picture of the View as {options.screenshot}\n")
    return 1 if command.failed else 0


def _reason(server: str, error: Exception) -> str:
    """What went wrong, in terms of what the user typed."""
    if isinstance(error, NotConnected) and error.__cause__ is not None:
        reach = "reached" if server.startswith(("http://", "https://")) else "started"
        return f"{server} could not be {reach}: {error.__cause__}"
    return str(error)


def _make_command(
    options: OpenOptions, target: DevTarget, recorder: Recorder | None
) -> OpenCommand:
    on_event = _print_json if options.json else EventPrinter().print
    on_violation = partial(report_violation, on_event)
    timeout = _TIMEOUT if options.timeout is None else options.timeout
    if options.headless:
        renderer = HeadlessRenderer(csp=options.csp, timeout=timeout, on_violation=on_violation)
        before = None
    else:
        renderer = BrowserRenderer(
            csp=options.csp,
            open_page=_open_page,
            port=options.port,
            sandbox_port=options.port and options.port + 1,
            ephemeral=options.ephemeral,
            program=f"open {identity_of(target.server)}",
            on_violation=on_violation,
        )
        before = partial(_show_page, renderer, timeout if options.steps else None)
    return OpenCommand(
        renderer,
        on_event,
        on_trouble=partial(print_failure, "open"),
        before=before,
        timeout=timeout,
        patient=not options.headless or options.timeout is not None,
        folder=target.folder,
        traffic=recorder,
        target=target.shown,
    )


async def _show_page(renderer: BrowserRenderer, timeout: float | None) -> None:
    """Wait for the page: its user may take all the time there is, unless there are steps to do."""
    try:
        await renderer.show_page(timeout=timeout)
    except TransomError as error:
        raise TransomError(f"{error}. Open it in a browser, or add --headless") from None


async def _open_page(url: str) -> None:
    # Standard output is for events: nothing else may be taken for one.
    sys.stderr.write(f"The View opens at {url}\nPress Ctrl-C to close it and end.\n")
    try:
        await open_in_browser(url)
    except TransomError:
        sys.stderr.write("No browser could be opened: open that address yourself.\n")


def _print_json(event: Event) -> None:
    sys.stdout.write(json.dumps(event) + "\n")
    sys.stdout.flush()


# --- what was given --------------------------------------------------------------------------


class Step(NamedTuple):
    """A call of a tool of the View, or of one of the tools that look at it and act on it."""

    tool: str
    arguments: Mapping[str, Any]
    event: str = "call"


def read_step(option: str, text: str) -> Step:
    """A step as the command line has it."""
    if option in ("look", "look-for"):
        return Step(LOOK_AT_VIEW, {"find": text or None}, "look")
    if option == "look-under":
        if not is_ref(ref := text.strip().strip("[]")):
            raise UsageError(f"--look-under {text!r}: a reference is like t2, as --look shows it")
        return Step(LOOK_AT_VIEW, {"find": None, "under": ref}, "look")
    if option == "act":
        ref, action, value = [*text.split(maxsplit=2), "", "", ""][:3]
        try:  # or a mistake would be found when the View is open
            act_request(ref, action, value or None)
        except ProtocolError as error:
            problem = error.message.partition(": ")[2]
            raise UsageError(f"--act {text!r}: {problem}; as in --act 'b3 click'") from None
        return Step(ACT_ON_VIEW, {"ref": ref, "action": action, "value": value or None}, "act")
    name, equals, arguments = text.partition("=")
    if not name:
        raise UsageError(f"--call {text}: name a tool of the View, as in --call 'pick={{}}'")
    return Step(name, read_object(f"--call {name}", arguments, f"{name}=") if equals else {})


def _check_screenshot(path: Path | None, *, headless: bool) -> None:
    if path is None:
        return
    if not headless:
        raise UsageError("--screenshot needs --headless")
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise UsageError(f"--screenshot {path}: a picture cannot be saved there")


# --- the steps -------------------------------------------------------------------------------


class OpenCommand:
    """Opens the View of one tool and tries the View's tools, step by step.

    Each step is an event, a JSON object: `opened`, `tools` (again whenever they change), `call`,
    `look`, `act`, `violation`, `problem`, `changed` (files), `closed`. A page that is reloaded
    closes its View and opens it again.

    `on_trouble` gets what went wrong beside the steps. `before` is awaited before the tool is
    called. The server's start, the View's opening and each call have `timeout` seconds, a page that
    failed and may still connect only for a `patient` user. `folder` has the files that pages were
    written in; `traffic` gets every message. `target` is what the user calls the server.
    """

    def __init__(
        self,
        renderer: Renderer,
        on_event: Callable[[Event], object],
        *,
        on_trouble: Callable[[str], object] = ignore,
        before: Callable[[], Awaitable[object]] | None = None,
        timeout: float = _TIMEOUT,
        patient: bool = False,
        folder: Path | None = None,
        traffic: TrafficListener | None = None,
        target: str = "TARGET",
    ) -> None:
        self._host = Host(
            renderer=renderer,
            policy=Policy.trusting(),
            drive="always",
            audit=None,
            open_timeout=timeout,
            call_timeout=timeout,
            traffic=traffic,
        )
        self._on_event = on_event
        self._on_trouble = on_trouble
        self._before = before
        self._timeout = timeout
        self._patient = patient
        self._folder = folder
        self._target = target
        self._view: View | None = None
        self._shown_tools: list[Tool] | None = None
        self.opened = False
        """Whether the View was there."""
        self.failed = False
        """Whether a call failed, or gave an error."""

    async def run(
        self,
        server: Target,
        tool: str | None,
        arguments: Mapping[str, Any],
        todo: Sequence[Step],
        *,
        name: str = "server",
        wait: float | str | None = None,
        screenshot: Callable[[bytes], object] | None = None,
        stay: bool = False,
        watched: Path | None = None,
    ) -> None:
        """Open the View and do the steps; then end, or stay until cancelled.

        Without a `tool`, it is the only one that opens a View. With a `watched` folder, it is all
        done again, with a new server, whenever a file there changes. `wait` is for so many seconds,
        or until the View shows something that this selector finds.
        """

        async def steps(server: Target) -> None:
            await host.add_server(name, server, timeout=self._timeout)
            if self._before is not None:
                await self._before()
            view = await self._open(tool, arguments)
            await self._refresh_tools()
            for step in todo:
                await (self._call(*step[:2]) if step.event == "call" else self._use(step))
                await self._refresh_tools()
            if isinstance(wait, str):
                await self._wait_for(view, wait)
            elif wait is not None:
                await asyncio.sleep(wait)
            if screenshot is not None:
                screenshot(await _settled_picture(view))

        async with self._host as host:
            host.on_error(self._on_error)
            host.on_server_lost(self._on_server_lost)
            host.on_view_problem(self._on_problem)
            host.on_view_opened(self._reopened)
            host.on_view_closed(self._closed)
            host.on_tools_changed(self._tools_changed)
            if watched is not None:
                with ServerStarter(server, ignore) as starter:
                    await self._repeat(steps, name, starter, watched)
            await steps(server)
            if stay:
                await asyncio.Event().wait()
            if self._view is not None:
                if self._view.bridge is not None:  # what was blocked comes by another way, later
                    await watch(self._view.bridge, _SETTLE)
                await self._view.close("all is done")

    async def _repeat(
        self,
        steps: Callable[[Target], Awaitable[None]],
        name: str,
        starter: ServerStarter,
        folder: Path,
    ) -> NoReturn:
        changes = watch_files(folder)
        while True:
            changed = asyncio.ensure_future(anext(changes))
            try:
                try:
                    await steps(starter.target)
                except TransomError as error:
                    self._on_trouble(_reason(name, error))
                starter.prepare()
                files = await changed
            finally:
                await stop(changed)
            self._event("changed", files=[str(file.relative_to(folder)) for file in files])
            if isinstance(renderer := self._host.renderer, Seat):
                await renderer.avoid_stuck()
            with suppress(TransomError):  # it may not have come up
                await self._host.remove_server(name)

    async def _open(self, tool: str | None, arguments: Mapping[str, Any]) -> View:
        host = self._host
        self._view = None  # so that what is opened here is reported here
        tools = await host.list_tools()
        tool = self._tool_to_open(tool, tools)
        schema = next(each.input_schema for each in tools if each.name == tool)
        if problem := schema_error(schema):
            text = f"its input schema is not valid JSON Schema: {problem}"
            self._event("problem", kind="schema", tool=tool, message=text)
        result = await host.call_tool(tool, arguments)
        view = next(iter(host.views.values()), None)
        if view is not None and self._patient:
            await wait_for_failed_page(view)
        if view is None or not view.takes_calls:
            note = (result.meta or {}).get("transom/view", {})
            why = note.get("error") or "the tool links none"
            detail = f" The tool answered: {result.text[:500]}" if result.is_error else ""
            if "its page" in why:
                failure = None if view is None else view.failure
                is_placed = failure is not None and failure.line is not None
                if view is not None and view.state is ViewState.WAITING and not is_placed:
                    why += ". If it is only slow, --timeout SECONDS waits for it"
                detail += f" `transom doctor {shlex.join([self._target, tool])}` tells why."
            raise TransomError(f"{tool} opened no View: {why}.{detail}")
        self.failed = result.is_error
        self._opened(view, result)
        return view

    async def _wait_for(self, view: View, selector: str) -> None:
        renderer = self._host.renderer
        if not isinstance(renderer, HeadlessRenderer):
            raise UsageError("Only a browser without a window finds what a View shows")
        await renderer.wait_for(view.id, selector)

    @staticmethod
    def _tool_to_open(tool: str | None, tools: Sequence[Tool]) -> str:
        opening = [each.name for each in tools if links_view(each.meta)]
        if tool is None:
            if len(opening) == 1:
                return opening[0]
            if opening:
                raise UsageError(f"Several tools open a View, name one: {', '.join(opening)}")
            raise UsageError(
                "No tool of the server opens a View. One that does is made with "
                "@views.tool(opens=page)"
            )
        if all(each.name != tool for each in tools):
            names = ", ".join([each.name for each in tools]) or "none"
            raise UsageError(f"The server has no tool {tool}; it has: {names}")
        return tool

    def _opened(self, view: View, result: ToolResult | None) -> None:
        self._view, self._shown_tools, self.opened = view, None, True
        app = {"name": "", "version": ""}
        if view.app is not None:
            app = {"name": view.app.name, "version": view.app.version}
        shown = ToolResult(content=[]) if result is None else result
        self._event("opened", view=view.id, app=app, result=wire_result(shown))

    def _reopened(self, view: View) -> None:
        """The page was reloaded."""
        if self._view is None:  # `_open` waits for it
            return
        result = view.origin.result
        self._opened(view, None if result is None else ToolResult.from_wire(result))
        self._tools_changed()

    def _closed(self, view: View) -> None:
        if view is not self._view:
            return
        self._event("closed", view=view.id, reason=view.reason)

    async def _call(self, tool: str, arguments: Mapping[str, Any]) -> None:
        try:
            if self._view is None:
                raise TransomError("There is no View")
            result = await self._view.call_tool(tool, arguments, timeout=self._timeout)
        except TransomError as error:
            self.failed = True
            code = error.code if isinstance(error, ProtocolError) else SERVER_ERROR
            text = error.message if isinstance(error, ProtocolError) else str(error)
            self._event("call", tool=tool, error={"code": code, "message": text})
            return
        self.failed = self.failed or result.is_error
        self._event("call", tool=tool, result=wire_result(result))

    async def _use(self, step: Step) -> None:
        """Look at the View's page, or act on it, as a model does."""
        view_id = "" if self._view is None else self._view.id
        result = await self._host.answer(step.tool, {"view_id": view_id, **step.arguments})
        self.failed = self.failed or result.is_error
        self._event(step.event, **step.arguments, result=wire_result(result))

    async def _refresh_tools(self) -> None:
        await self._host.list_tools()
        self._tools_changed()

    def _tools_changed(self) -> None:
        view = self._view
        if view is not None and view.takes_calls and view.tools != self._shown_tools:
            self._shown_tools = view.tools
            self._event("tools", view=view.id, tools=[wire_tool(tool) for tool in view.tools])

    # --- what goes wrong beside the steps ----------------------------------------------------

    def _on_problem(self, view: View, problem: ViewProblem) -> None:
        if problem.kind == "blocked":  # a violation, which comes by another way
            return
        details: Event = msgspec.to_builtins(problem)
        if problem.is_in_page and problem.line is not None:
            given = self._page(view.id), problem.line, problem.column or 1
            if (found := find_in_files(*given, self._folder)) is not None:
                details |= msgspec.to_builtins(found)
        self._event("problem", view=view.id, **details)

    def _page(self, view_id: str) -> str:
        renderer, mounted = self._host.renderer, None
        if isinstance(renderer, HeadlessRenderer | BrowserRenderer):
            mounted = renderer._stage.mounted(renderer.key_of(view_id))
        return "" if mounted is None else mounted.resource.html

    def _on_error(self, error: BaseException) -> None:
        if isinstance(error, PeerError):
            view = "" if self._view is None else self._view.id
            report_violation(self._on_event, Violation(view, "protocol", str(error)[:500]))
        else:
            self._on_trouble(str(error) or type(error).__name__)

    def _on_server_lost(self, _: str, reason: str) -> None:
        self._on_trouble(f"The server is gone: {reason}")

    def _event(self, event: str, **details: Any) -> None:
        self._on_event({"event": event, **details})


async def _settled_picture(view: View) -> bytes:
    """A picture of a View that shows what it was asked to: two in a row are the same."""
    if view.bridge is not None:  # what it asks for when it has its result has been answered
        await watch(view.bridge, _SETTLE)
    picture = await view.screenshot()
    for _ in range(_PICTURES):
        await asyncio.sleep(_BETWEEN)
        before, picture = picture, await view.screenshot()
        if picture == before:
            break
    return picture


def report_violation(on_event: Callable[[Event], object], violation: Violation) -> None:
    """Make an event of what a View's policy blocked."""
    details = msgspec.structs.asdict(violation)
    del details["client"]  # there is one Host, and it works for no client
    on_event({"event": "violation", **details})
