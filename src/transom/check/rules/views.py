"""V: what a rendered View does."""

from __future__ import annotations

from transom.check.rule import Hits, Messages, rule
from transom.check.snapshot import Snapshot, ViewObservation
from transom.errors import INTERNAL_ERROR, METHOD_NOT_FOUND

MAX_TOOLS = 50


@rule("V1")
def handshake_completes(view: ViewObservation) -> Messages:
    if not view.initialized:
        yield (
            f"`{view.uri}` never completed ui/initialize within {view.waited:g}s; its page must "
            "call `await app.connect()`, and a script error before that prevents it."
        )


@rule("V2")
def handlers_are_early(view: ViewObservation) -> Messages:
    if view.late_handler:
        late = "when the tool-result may have been sent already"
        yield f"`{view.uri}` sets a handler after connect(), {late}."


@rule("V3")
def calls_are_allowed(seen: Snapshot) -> Hits:
    visible = {tool.name: tool.visibility for tool in seen.tools}
    for view in seen.views or ():
        for name in view.calls:
            if name not in visible:
                yield view, f"View called `{name}` which the server does not have."
            elif "app" not in visible[name]:
                yield view, f"View called `{name}` which is not visible to apps."


@rule("V4")
def every_theme_works(view: ViewObservation) -> Messages:
    for error in view.uncaught:
        yield f"`{view.uri}` throws in {view.theme}: {error}."


@rule("V5")
def declared_tools_work(view: ViewObservation) -> Messages:
    if view.declared_tools and view.tools is None:
        fault = "no answer" if view.list_fault is None else view.list_fault
        yield f"View declared tools but tools/list failed: {fault}."
    if any(code == METHOD_NOT_FOUND for _, code in view.tool_faults):
        yield f"View declared tools but tools/call failed: {METHOD_NOT_FOUND}."


@rule("V6")
def tool_failures_are_results(view: ViewObservation) -> Messages:
    fix = "return isError so the model can recover"
    for name, code in view.tool_faults:
        if code == INTERNAL_ERROR:
            yield f"App tool `{name}` answered {code}; {fix}."


@rule("V7")
def tools_are_few(seen: Snapshot) -> Hits:
    taken = {tool.name for tool in seen.tools}
    for view in seen.views or ():
        tools = view.tools or ()
        if len(tools) > MAX_TOOLS:
            yield view, f"View registered {len(tools)} tools (recommended max {MAX_TOOLS})."
        for name in (name for name in tools if name in taken):
            yield view, f"App tool `{name}` shadows a server tool."
