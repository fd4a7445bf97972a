"""Opens a View as a host does, watches it, and says why it stays blank, blocked or cut off.

1. The tool is called once, with the arguments that were given, or some that fit its schema.
2. A server has `wait` seconds for each answer, and a page for the handshake. One that is loaded and
   does nothing more for `quiet` seconds has had its time.
3. A page may hang, leave, send garbage or be huge: every wait has an end, and what is kept of it is
   limited.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import cache, partial
from pathlib import Path
from typing import Any

import msgspec

from transom.check.causes import Cause, Exchange, Measured, SeenView, ViewFacts, causes
from transom.check.facts import ListedTool, ServedResource, TrialCall, listed_tools
from transom.check.host_profiles import HostProfile
from transom.check.observing import BrowserWatch, ObservedView
from transom.check.schemas import fitting_arguments
from transom.connections.upstream import Server, list_all
from transom.errors import InvalidResult, NotConnected, ProtocolError, TransomError, UsageError
from transom.host.views.settling import watch
from transom.host.views.ui_resource import UIResource, load_ui_resource
from transom.json_values import Json, JsonObject, as_object, clean
from transom.traffic import TrafficMessage
from transom.types import ToolResult
from transom.web.local.headless import HeadlessRenderer

_VIEW = "view"  # its id
_MAX_PAGE = 10 * 1024 * 1024  # bytes, as a Host accepts
_TOO_LARGE = re.compile("is longer than|over the limit")  # what is said of such an answer or page
_ANSWERS_WITHIN = 3.0  # seconds that a page has to be looked into
_LOOK_EVERY = 0.1  # a page that does nothing has no event
_LATE = 1.0  # seconds after which a page has set what handlers it sets late
_MORE_LOOKS = 3  # at a View that may be growing without end


OpenBrowser = Callable[[BrowserWatch, bool], AbstractAsyncContextManager[HeadlessRenderer]]
"""Starts a browser that reports to this watch; with `eval` in pages, or without."""


def headless_browser(watch: BrowserWatch, evals: bool) -> HeadlessRenderer:
    """A browser without a window that reports to `watch`."""
    return HeadlessRenderer(
        csp="compat" if evals else "strict",
        on_violation=watch.violation,
        on_console=watch.console,
        on_request=watch.request,
    )


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is wrong with a View; nothing, if there are no `causes`."""

    tool: str | None
    """The tool that opened it."""
    uri: str | None
    host: str
    """The name of the profile of its host."""
    causes: list[Cause]
    """In order of likelihood."""
    notes: list[str]
    """Remarks about how it was looked at."""
    page: str
    """Its HTML, which the lines of causes are counted in."""


async def diagnose(
    server: Server,
    tool: str | None = None,
    arguments: Mapping[str, Any] | None = None,
    *,
    profile: HostProfile,
    browser: OpenBrowser = headless_browser,
    called: TrialCall | None = None,
    wait: float = 10.0,
    quiet: float = 3.0,
    settle: float = 1.0,
) -> Diagnosis:
    """Open the View of a tool in a browser, and say what is wrong with it.

    Args:
        server: a connected server.
        tool: the tool that opens the View; not needed if there is only one.
        arguments: what to call it with; by default what its schema requires, made up.
        profile: the host whose View it is to be.
        browser: starts a browser without a window.
        called: how the tool was called before, and what it answered: then it is not called again.
        wait: seconds for each answer of the server, and for the handshake; a page that does not
            respond for so long hangs.
        quiet: seconds after which a page that is loaded and does nothing has had its time.
        settle: seconds it is watched after it got the tool's result.

    Raises:
        UsageError: there is no such tool, or several that open a View and none is named.
        TransomError: the server does not answer, or there is no browser.
    """
    tools = listed_tools(await _list(server, "tools/list", "tools", wait))
    chosen = _choose(tools, tool)
    facts = ViewFacts(tool=chosen, tools=tools)
    notes: list[str] = []
    if chosen is not None and (chosen.link or "").startswith("ui://"):
        facts, shown = await _read(server, facts, chosen, wait)
        if shown is not None:
            if called is None:
                facts = await _call(server, facts, chosen, arguments, wait)
            else:
                facts = msgspec.structs.replace(facts, call=called)
            if facts.made_up and facts.failure is not None:
                notes.append(
                    "The tool was called with arguments made from its schema, and failed: "
                    f"{clean(facts.failure, 200)}. Give some that fit: "
                    f"transom doctor TARGET {clean(chosen.name, 80)} ARGS"
                )
            visit = partial(_Visit, server, shown, facts.call, profile)
            times = {"wait": wait, "quiet": quiet, "settle": settle}
            view = await visit(**times).run(browser)
            if view.unmoved and facts.failure is None:  # is it too early for the page?
                again = await visit(**times, late=_LATE).run(browser)
                view = msgspec.structs.replace(view, late=again.after)
            facts = msgspec.structs.replace(facts, view=view)
    return Diagnosis(
        tool=None if chosen is None else chosen.name,
        uri=None if chosen is None else chosen.link,
        host=profile.name,
        causes=causes(facts, profile),
        notes=notes,
        page=facts.page,
    )


# --- the server ----------------------------------------------------------------------------------


@asynccontextmanager
async def _answers(method: str, wait: float) -> AsyncGenerator[None]:
    """Wait so long for the answers to requests of this method."""
    try:
        async with asyncio.timeout(wait):
            yield
    except TimeoutError:
        raise NotConnected(f"the server did not answer {method} within {wait:g} s") from None


async def _list(server: Server, method: str, key: str, wait: float) -> list[Json]:
    async with _answers(method, wait):
        entries = await list_all(lambda params: server.request(method, params), method, key)
    return [msgspec.json.decode(entry) for entry in entries]


def _choose(tools: Sequence[ListedTool], name: str | None) -> ListedTool | None:
    if name is not None:
        found = next((each for each in tools if each.name == name), None)
        if found is None:
            has = ", ".join(each.name for each in tools if each.for_model) or "none"
            raise UsageError(f"the server has no tool {name}; it has: {clean(has, 500)}")
        return found
    linked = [each for each in tools if each.link is not None]
    opening = [each for each in linked if not each.app_only] or linked
    if len(opening) > 1:
        names = ", ".join(each.name for each in opening)
        raise UsageError(f"several tools open a View, name one: {clean(names, 500)}")
    return opening[0] if opening else None


async def _read(
    server: Server, facts: ViewFacts, tool: ListedTool, wait: float
) -> tuple[ViewFacts, UIResource | None]:
    """Read the page, as it is and as a Host does."""
    uri = tool.link or ""
    listed: list[JsonObject] = []
    with suppress(ProtocolError, InvalidResult):  # a server need not list its pages
        listed = [
            as_object(each) for each in await _list(server, "resources/list", "resources", wait)
        ]
    nothing: JsonObject = {}
    entry = next((each for each in listed if each.get("uri") == uri), nothing)
    result, failure = None, None
    try:
        async with _answers("resources/read", wait):
            answer = await server.request("resources/read", {"uri": uri})
        result = as_object(msgspec.json.decode(answer))
    except (ProtocolError, InvalidResult) as error:
        failure = str(error)
    resource = ServedResource.from_answer(uri, (tool.name,), entry, result, failure)
    too_large, shown = failure if _TOO_LARGE.search(failure or "") else None, None
    if (resource.html or "").strip():
        try:
            async with _answers("resources/read", wait):
                shown = await load_ui_resource(
                    server, view_id=_VIEW, server_name="server", uri=uri, max_bytes=_MAX_PAGE
                )
        except InvalidResult as error:
            too_large = str(error) if _TOO_LARGE.search(str(error)) else None
    uris = tuple(str(each.get("uri")) for each in listed)
    more = {"listed": uris, "resource": resource, "too_large": too_large}
    return msgspec.structs.replace(facts, **more), shown


async def _call(
    server: Server,
    facts: ViewFacts,
    tool: ListedTool,
    given: Mapping[str, Any] | None,
    wait: float,
) -> ViewFacts:
    schema = as_object(tool.raw.get("inputSchema"))
    made_up = given is None and bool(schema.get("required"))
    arguments = dict(given or {}) if not made_up else fitting_arguments(schema) or {}
    result, fault, failure = None, None, None
    async with _answers(f"tools/call {clean(tool.name, 80)}", wait):
        try:
            params = {"name": tool.name, "arguments": arguments}
            result = as_object(msgspec.json.decode(await server.request("tools/call", params)))
        except ProtocolError as error:
            fault = (error.code, error.message)
        except TransomError as error:
            failure = str(error)
    call = TrialCall(tool.name, arguments, result=result, fault=fault, failure=failure)
    return msgspec.structs.replace(facts, call=call, made_up=made_up)


# --- the page ------------------------------------------------------------------------------------


@cache
def _script(name: str) -> str:
    return Path(__file__).with_name(name).read_text("utf-8")


class _Visit:
    """One View, shown once, as a host with that profile shows it."""

    def __init__(
        self,
        server: Server,
        shown: UIResource,
        call: TrialCall | None,
        profile: HostProfile,
        *,
        wait: float,
        quiet: float,
        settle: float,
        late: float = 0.0,
    ) -> None:
        self._server = server
        self._shown = as_shown_by(profile, shown)
        self._call = call
        self._profile = profile
        self._wait = wait
        self._quiet = quiet
        self._settle = settle
        self._late = late
        self._watch = BrowserWatch()
        self._missed = 0  # looks in a row that the page did not answer in time
        self._before: Measured | None = None

    @property
    def _hangs(self) -> bool:
        # A page may compute for a while, and a machine may be busy.
        return self._missed * _ANSWERS_WITHIN >= self._wait

    async def run(self, browser: OpenBrowser) -> SeenView:
        """Show it; what was seen."""
        profile = self._profile
        offers = profile.host_capabilities
        serves = offers is None or "serverTools" in offers or "serverResources" in offers
        async with browser(self._watch, profile.eval is not False) as opened:
            view = ObservedView(
                await opened.open(self._shown),
                name="transom doctor",
                context={"theme": "light", **profile.host_context},
                capabilities=None if offers is None else {**offers, "experimental": _PROBLEMS},
                server=self._server if serves else None,
            )
            async with view:
                initialized = await self._connected(view, opened)
                with suppress(TransomError):  # what was seen so far is what there is
                    if initialized:
                        await self._deliver(view, opened)
                after = await self._measure(opened)
                while self._missed and not self._hangs:
                    after = await self._measure(opened)
        return SeenView(
            initialized=initialized,
            sent=_exchanges(view.messages),
            strays=tuple(view.errors),
            problems=tuple(view.problems),
            blocked=tuple(self._watch.blocked),
            lines=tuple(self._watch.lines),
            requests=tuple(self._watch.requests),
            before=self._before,
            after=after,
            hangs=self._hangs,
        )

    async def _connected(self, view: ObservedView, opened: HeadlessRenderer) -> bool:
        """Wait for the handshake, as long as there is hope; whether it was completed."""
        ready = asyncio.ensure_future(view.bridge.initialized(timeout=self._wait))
        stuck = asyncio.ensure_future(self._stuck(view, opened))
        try:
            await asyncio.wait({ready, stuck}, return_when=asyncio.FIRST_COMPLETED)
            # A page that is stuck may be ready at the very same moment.
            return ready.done() and not ready.cancelled() and ready.exception() is None
        finally:  # also when the diagnosis is not wanted any more
            for task in (ready, stuck):
                task.cancel()
            await asyncio.gather(ready, stuck, return_exceptions=True)

    async def _stuck(self, view: ObservedView, opened: HeadlessRenderer) -> None:
        """Return when the page is loaded and does nothing more, or does not respond."""
        clock = asyncio.get_running_loop().time
        end, seen, quiet = clock() + self._wait, -1, 0
        # Looks in a row are counted, not seconds: a machine that stalls makes no page quiet.
        while clock() < end and quiet * _LOOK_EVERY < self._quiet:
            page = await self._measure(opened)
            if self._hangs:
                return
            happened = view.count + self._watch.count
            is_quiet = happened == seen and page is not None and page.state == "complete"
            seen, quiet = happened, quiet + 1 if is_quiet else 0
            await asyncio.sleep(_LOOK_EVERY)

    async def _deliver(self, view: ObservedView, opened: HeadlessRenderer) -> None:
        """Send it the tool's input and result, and watch what it does with them."""
        bridge, call = view.bridge, self._call
        self._before = await self._measure(opened)
        await bridge.send_tool_input({} if call is None else call.arguments)
        await asyncio.sleep(self._late)
        if call is not None and call.result is not None:
            await bridge.send_tool_result(ToolResult.from_wire(call.result))
        elif call is not None and (call.fault is not None or call.failure is not None):
            await bridge.send_tool_cancelled(call.failure or "the tool failed")
        await watch(bridge, self._settle)
        for _ in range(_MORE_LOOKS):
            seen = SeenView(initialized=True, sent=_exchanges(view.messages)).heights
            if len(seen) < 3 or not seen[-3] < seen[-2] < seen[-1]:
                break
            await watch(bridge, self._settle)

    async def _measure(self, opened: HeadlessRenderer) -> Measured | None:
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN):
                found = await opened.evaluate(
                    _VIEW, _script("measure.js"), timeout=_ANSWERS_WITHIN + 1
                )
        except TimeoutError:
            self._missed += 1
            return None
        except TransomError:
            return None  # it is being replaced by another one
        self._missed = 0
        try:
            return msgspec.convert(found, Measured)
        except msgspec.ValidationError:
            return None  # the page has replaced what the script calls


_PROBLEMS: dict[str, Any] = {"transom/problems": {}}
_DOCTYPE_OR_HEAD = re.compile(
    r"<head(?:\s[^>]*)?>|<html(?:\s[^>]*)?>|<!doctype[^>]*>", re.IGNORECASE
)


def as_shown_by(profile: HostProfile, shown: UIResource) -> UIResource:
    """The page as that host shows it."""
    granted = shown.permissions
    if granted is not None and profile.permissions is not None:
        granted = {name: value for name, value in granted.items() if name in profile.permissions}
    csp = shown.csp
    if csp is not None and profile.csp_ignored is not None:
        csp = {name: value for name, value in csp.items() if name not in profile.csp_ignored}
    html = shown.html
    if profile.storage is False:
        found = [each.end() for each in _DOCTYPE_OR_HEAD.finditer(html[:10_000])]
        at = found[-1] if found else 0
        html = f"{html[:at]}<script>{_one_line('no_storage.js')}</script>{html[at:]}"
    return msgspec.structs.replace(shown, html=html, csp=csp, permissions=granted)


def _one_line(name: str) -> str:
    """A script that moves no line of the page that it is put into."""
    return " ".join(line.strip() for line in _script(name).splitlines() if "//" not in line)


def _exchanges(messages: Sequence[TrafficMessage]) -> tuple[Exchange, ...]:
    """What the View sent, each request with the error that answered it."""
    decoded = [(each.from_host, each.message) for each in messages]
    errors: dict[object, tuple[int, str]] = {}
    for from_host, message in decoded:
        error = as_object(as_object(message).get("error"))
        if from_host and error:
            code, text = error.get("code"), error.get("message")
            key = as_object(message).get("id")
            if isinstance(key, str | int):
                errors[key] = (code if isinstance(code, int) else 0, str(text))
    found: list[Exchange] = []
    for from_host, message in decoded:
        sent = as_object(message)
        method = sent.get("method")
        # What the sandbox around it reports is not the View's.
        if not from_host and isinstance(method, str) and not method.startswith("transom/"):
            key = sent.get("id")
            error = errors.get(key) if isinstance(key, str | int) else None
            found.append(Exchange(method, as_object(sent.get("params")), error))
    return tuple(found)
