"""V: what a rendered View does."""

from __future__ import annotations

from transom.check.catalogue import Hit, Hits, rule
from transom.check.snapshot import Snapshot, ViewObservation
from transom.check.spec_links import APP_TOOLS, LIFECYCLE, RESOURCE_FORMAT, SECURITY, VISIBILITY
from transom.errors import INTERNAL_ERROR

MAX_TOOLS = 50


def _on_view(view: ViewObservation, message: str) -> Hit:
    return Hit(f"view {view.uri}", message)


@rule("V1", "error", "The View completes the handshake", LIFECYCLE, "browser")
def handshake_completes(seen: Snapshot) -> Hits:
    """A View sends `ui/initialize`, waits, then sends `ui/notifications/initialized`.

    A host sends it nothing before that, so it stays empty. Call `app.connect()` when it loads.
    """
    for view in seen.views or ():
        if not view.initialized:
            yield _on_view(
                view, f"`{view.uri}` never completed ui/initialize within {view.waited:g}s."
            )


@rule("V2", "warn", "Handlers are set before connecting", LIFECYCLE, "browser")
def handlers_are_early(seen: Snapshot) -> Hits:
    """The host may send the tool's result at once after `initialized`.

    Set the handlers for tool-input and tool-result before `app.connect()`, or they miss it.
    """
    for view in seen.views or ():
        if view.missed_result:
            yield _on_view(
                view, f"`{view.uri}` missed a tool-result sent right after initialisation."
            )


@rule("V3", "error", "The View calls only tools it may", VISIBILITY, "browser")
def calls_are_allowed(seen: Snapshot) -> Hits:
    """A host refuses a View's call to a tool whose visibility lacks "app".

    Give the tool "app" visibility, or do not call it from the View.
    """
    visible = {tool.name: tool.visibility for tool in seen.tools}
    for view in seen.views or ():
        for call in view.calls:
            if call.refusal is not None and "app" not in visible.get(call.tool, ()):
                yield _on_view(view, f"View called `{call.tool}` which is not visible to apps.")


@rule("V4", "warn", "The View works in any host and theme", RESOURCE_FORMAT, "browser")
def every_cell_works(seen: Snapshot) -> Hits:
    """The View is rendered in light and dark, and in hosts that offer different things.

    An uncaught error in one of them usually means a host-only API or a missing check.
    """
    for view in seen.views or ():
        for error in view.uncaught:
            yield _on_view(view, f"`{view.uri}` throws in {view.host}/{view.theme}: {error}.")


@rule("V5", "error", "Declared tools can be listed", APP_TOOLS, "browser")
def declared_tools_are_listed(seen: Snapshot) -> Hits:
    """A View that offers tools says so in `appCapabilities.tools`, and one that says so has them.

    It must answer both `tools/list` and `tools/call`.
    """
    for view in seen.views or ():
        if view.declared_tools and view.tools is None:
            fault = "no answer" if view.list_fault is None else view.list_fault
            yield _on_view(view, f"View declared tools but tools/list failed: {fault}.")
        elif view.tools and not view.declared_tools:
            yield _on_view(
                view, "View answers tools/list but did not declare appCapabilities.tools."
            )


@rule("V6", "warn", "A View's tool fails with isError", APP_TOOLS, "browser")
def tool_failures_are_results(seen: Snapshot) -> Hits:
    """Arguments that do not fit should give a result with `isError`, which the model can read.

    The TypeScript SDK 2.0.4 answers with the JSON-RPC error -32603 instead.
    """
    for view in seen.views or ():
        for fault in view.tool_faults:
            if fault.code == INTERNAL_ERROR:
                yield _on_view(
                    view,
                    f"App tool `{fault.tool}` answered {fault.code}; return isError so the model "
                    "can recover.",
                )


@rule("V7", "warn", "A View's tools are few, with names of their own", SECURITY, "browser")
def tools_are_few(seen: Snapshot) -> Hits:
    """Hosts cap a View at about 50 tools, and a name that a server tool has too is confusing."""
    taken = {tool.name for tool in seen.tools}
    for view in seen.views or ():
        tools = view.tools or ()
        if len(tools) > MAX_TOOLS:
            yield _on_view(
                view, f"View registered {len(tools)} tools (recommended max {MAX_TOOLS})."
            )
        for name in tools:
            if name in taken:
                yield _on_view(view, f"App tool `{name}` shadows a server tool.")


@rule("V8", "error", "A closed View's tools are gone", APP_TOOLS, "host")
def closed_views_refuse(seen: Snapshot) -> Hits:
    """A check of our own host: a call to a tool of a View that was closed must fail."""
    for tool, refused in seen.host.closed_view_calls or ():
        if not refused:
            yield Hit(f"tool {tool}", f"Call to a tool of a closed View did not fail: `{tool}`.")
