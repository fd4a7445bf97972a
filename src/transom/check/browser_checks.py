"""What `transom check --browser` looks at: each View, rendered in Chromium, in light and dark.

A View gets the input and result that its tool gave to the checker, if it was called. What it asks
of the server is answered from what was learned before, so that nothing is called twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from transom.check.facts import Facts, ServedResource, TrialCall, ViewObservation
from transom.check.observing import (
    CORS_REFUSAL,
    LATE_HANDLER,
    MAX_SEEN,
    BrowserWatch,
    ObservedView,
)
from transom.check.schemas import schema_error, unfitting_arguments
from transom.errors import ProtocolError, Refused, TransomError
from transom.host.views.bridge import Bridge
from transom.host.views.settling import watch
from transom.host.views.ui_resource import UIResource
from transom.json_values import JsonObject, as_object
from transom.types import ToolResult, ViewProblem
from transom.web.local.headless import HeadlessRenderer
from transom.web.mounted_views import MISSING

WAIT = 10.0  # seconds a View has to complete the handshake
_SETTLE = 1.0  # seconds it is watched after it got its tool's result
_DENIED = re.compile(r"NotAllowedError|permission|denied", re.IGNORECASE)


async def observe_views(seen: Facts, *, settle: float = _SETTLE) -> Sequence[ViewObservation]:
    """Render every page that a tool opens, without a window, in light and in dark."""
    resources = [
        resource for resource in seen.resources if resource.html is not None and resource.linked_by
    ]
    found: list[ViewObservation] = []
    for theme in ("light", "dark"):
        watch = BrowserWatch()
        renderer = HeadlessRenderer(
            dark=theme == "dark",
            on_violation=watch.violation,
            on_console=watch.console,
            on_request=watch.request,
        )
        async with renderer:
            for number, resource in enumerate(resources):
                watch.clear()
                rendering = _Rendering(seen, resource, theme, watch)
                found.append(await rendering.run(renderer, f"view-{number}", settle))
        # What did not start in light will not start in dark.
        started = {view.uri for view in found if view.initialized}
        resources = [resource for resource in resources if resource.uri in started]
    return found


class _Rendering:
    """One View, shown once."""

    def __init__(
        self, seen: Facts, resource: ServedResource, theme: str, watch: BrowserWatch
    ) -> None:
        self._seen = seen
        self._resource = resource
        self._watch = watch
        self._calls: dict[str, None] = {}
        self._found = ViewObservation(resource.uri, WAIT, theme, initialized=False)

    def _note(self, **found: Any) -> None:
        self._found = replace(self._found, **found)

    async def run(self, renderer: HeadlessRenderer, view_id: str, settle: float) -> ViewObservation:
        ui = self._resource.effective_ui
        shown = UIResource(
            view_id=view_id,
            server="checked",
            uri=self._resource.uri,
            html=self._resource.html or "",
            csp=as_object(ui.get("csp")) or None,
        )
        context = {"theme": self._found.theme, "displayMode": "inline"}
        channel = await renderer.open(shown)
        async with ObservedView(
            channel, name="transom check", context=context, call=self._call
        ) as view:
            try:
                await view.bridge.initialized(timeout=WAIT)
                self._note(initialized=True)
                await self._deliver(view.bridge)
                await self._try_tools(view.bridge)
                await watch(view.bridge, settle)
            except TransomError:
                pass  # what was seen so far is what there is
        return self._seen_so_far(view.problems)

    async def _deliver(self, bridge: Bridge) -> None:
        """The input and the result of the call that opened the View, right after the handshake."""
        call = self._opening_call()
        await bridge.send_tool_input({} if call is None else call.arguments)
        if call is not None and call.result is not None:
            await bridge.send_tool_result(ToolResult.from_wire(call.result))

    def _opening_call(self) -> TrialCall | None:
        for call in self._seen.calls or ():
            wanted = (call.client, call.kind) == ("apps", "example")
            if wanted and call.tool in self._resource.linked_by:
                return call
        return None

    async def _try_tools(self, bridge: Bridge) -> None:
        capabilities = bridge.app_capabilities
        if capabilities is None or capabilities.tools is None:
            return
        self._note(declared_tools=True)
        try:
            tools = await bridge.list_tools()
        except ProtocolError as error:
            self._note(list_fault=error.code)
            return
        schemas = {tool.name: schema_error(tool.input_schema) for tool in tools}
        bad = {name: why for name, why in schemas.items() if why is not None}
        bad |= bridge.left_out
        self._note(tools=tuple(tool.name for tool in tools), bad_schemas=tuple(bad.items()))
        for tool in tools if self._found.theme == "light" else ():  # once is enough
            arguments = unfitting_arguments(tool.input_schema)
            if arguments is None:
                continue
            try:
                await bridge.call_tool(tool.name, arguments, timeout=5)
            except ProtocolError as error:
                self._note(tool_faults=(*self._found.tool_faults, (tool.name, error.code)))
            except TransomError:
                pass  # it failed in another way; only JSON-RPC errors are looked for

    def _call(self, name: str) -> JsonObject:
        """A View's call to its server: allowed or not, and what is known of the answer."""
        tool = next((tool for tool in self._seen.tools if tool.name == name), None)
        if len(self._calls) < MAX_SEEN:
            self._calls[name] = None
        if tool is None or "app" not in tool.visibility:
            why = f"its visibility is {list(tool.visibility)}" if tool else "there is no such tool"
            raise Refused(f"Tool {name} may not be called by a View: {why}")
        for call in self._seen.calls or ():
            if call.tool == name and call.result is not None:
                return call.result
        text = "This tool is not called while the View is checked"
        return {"content": [{"type": "text", "text": text}], "isError": True}

    def _seen_so_far(self, problems: Sequence[ViewProblem]) -> ViewObservation:
        # A handler of the page raised, which `transom.js` catches: the browser does not know.
        raised = [each.message[:1000] for each in problems if each.kind in ("error", "rejection")]
        uncaught = [text for kind, text in self._watch.lines if kind == "uncaught"]
        # Which of the denied permissions an error is about is not known, so all are named.
        wanted = ", ".join(as_object(self._resource.effective_ui.get("permissions")))
        denied = [(wanted, text) for text in uncaught if wanted and _DENIED.search(text)]
        refused = {
            match[1] for _, text in self._watch.lines if (match := CORS_REFUSAL.search(text))
        }
        blocked = [
            (directive, _origin(address))
            for directive, address in self._watch.blocked
            if directive not in ("declared", MISSING)
        ]
        return replace(
            self._found,
            late_handler=any(LATE_HANDLER.search(text) for _, text in self._watch.lines),
            uncaught=(
                *(text for text in uncaught if text not in dict(denied).values()),
                # The browser's text of an error is the end of the page's own.
                *(text for text in raised if not text.endswith(tuple(uncaught))),
            ),
            blocked=tuple(dict.fromkeys(blocked)),
            requests=tuple(dict.fromkeys(map(_origin, self._watch.requests))),
            calls=tuple(self._calls),
            denied_failures=tuple(denied),
            cors_refusals=tuple(sorted(_origin(url) for url in refused)),
        )


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else url
