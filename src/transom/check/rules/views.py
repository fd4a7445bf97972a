"""V: what a rendered View does."""

from __future__ import annotations

from transom.check.rule import (
    ABOUT_HOST,
    APP_TOOLS,
    LIFECYCLE,
    RESOURCE_FORMAT,
    SECURITY,
    VISIBILITY,
    Hits,
    documented,
    rule,
)
from transom.check.snapshot import Snapshot
from transom.errors import INTERNAL_ERROR, METHOD_NOT_FOUND

MAX_TOOLS = 50


@rule("V1", "error", "The View completes the handshake", LIFECYCLE, "browser")
def handshake_completes(seen: Snapshot) -> Hits:
    """A View sends `ui/initialize`, waits, then sends `ui/notifications/initialized`.

    A host sends it nothing before that, so it stays empty. Call `app.connect()` when it loads.
    """
    for view in seen.views or ():
        if not view.initialized:
            yield view, f"`{view.uri}` never completed ui/initialize within {view.waited:g}s."


@rule("V2", "warn", "Handlers are set before connecting", LIFECYCLE, "browser")
def handlers_are_early(seen: Snapshot) -> Hits:
    """The host may send the tool's result at once after `initialized`.

    Set the handlers for tool-input and tool-result before `app.connect()`, or they miss it. The
    official SDK writes a warning to the console when one is set later; that is what is seen here.
    """
    for view in seen.views or ():
        if view.late_handler:
            late = "after connect(), when the tool-result may have been sent already"
            yield view, f"`{view.uri}` sets a handler {late}."


@rule("V3", "error", "The View calls only tools it may", VISIBILITY, "browser")
def calls_are_allowed(seen: Snapshot) -> Hits:
    """A host refuses a View's call to a tool whose visibility lacks "app".

    Give the tool "app" visibility, or do not call it from the View.
    """
    visible = {tool.name: tool.visibility for tool in seen.tools}
    for view in seen.views or ():
        for call in view.calls:
            if call.tool not in visible:
                yield view, f"View called `{call.tool}` which the server does not have."
            elif call.refusal is not None and "app" not in visible[call.tool]:
                yield view, f"View called `{call.tool}` which is not visible to apps."


@rule("V4", "warn", "The View works in light and in dark", RESOURCE_FORMAT, "browser")
def every_theme_works(seen: Snapshot) -> Hits:
    """The View is rendered twice by Transom's own host: in a light page and in a dark one.

    An uncaught error in one of them often means that the View expects something of its host
    without checking that it is there.
    """
    for view in seen.views or ():
        for error in view.uncaught:
            yield view, f"`{view.uri}` throws in {view.theme}: {error}."


@rule("V5", "error", "Declared tools can be listed and called", APP_TOOLS, "browser")
def declared_tools_work(seen: Snapshot) -> Hits:
    """A View that declares `appCapabilities.tools` must answer `tools/list` and `tools/call`.

    A View that does not declare it is not asked for tools, here or by a host.
    """
    for view in seen.views or ():
        if view.declared_tools and view.tools is None:
            fault = "no answer" if view.list_fault is None else view.list_fault
            yield view, f"View declared tools but tools/list failed: {fault}."
        for fault in view.tool_faults:
            if fault.code == METHOD_NOT_FOUND:
                yield view, f"View declared tools but tools/call failed: {fault.code}."


@rule("V6", "warn", "A View's tool fails with isError", APP_TOOLS, "browser")
def tool_failures_are_results(seen: Snapshot) -> Hits:
    """Arguments that do not fit should give a result with `isError`, which the model can read.

    The TypeScript SDK 2.0.4 answers with the JSON-RPC error -32603 instead.
    """
    for view in seen.views or ():
        for fault in view.tool_faults:
            if fault.code == INTERNAL_ERROR:
                fix = "return isError so the model can recover"
                yield view, f"App tool `{fault.tool}` answered {fault.code}; {fix}."


@rule("V7", "warn", "A View's tools are few, with names of their own", SECURITY, "browser")
def tools_are_few(seen: Snapshot) -> Hits:
    """Hosts accept about 50 tools of a View.

    A tool with the same name as a server tool confuses the model.
    """
    taken = {tool.name for tool in seen.tools}
    for view in seen.views or ():
        tools = view.tools or ()
        if len(tools) > MAX_TOOLS:
            yield view, f"View registered {len(tools)} tools (recommended max {MAX_TOOLS})."
        for name in (name for name in tools if name in taken):
            yield view, f"App tool `{name}` shadows a server tool."


@documented("V8", "error", "A closed View's tools are gone", APP_TOOLS, ABOUT_HOST)
def closed_views_refuse() -> None:
    """A View's tools end with the View: a call to a tool of a closed View must fail.

    No server can break this; Transom's own host is tested for it.
    """
