"""Collects the facts about a server, within time and size, whatever it does.

1. There are up to four visits (see `facts`), one after the other, of which those are made that
   the rules need: each may start the server again, which takes long. Only the first has to succeed:
   if it cannot even be opened there is nothing to check, and `NothingToCheck` says why. Everything
   that goes wrong after that becomes one of the facts.
2. The checker reads the bytes itself, not through a `Session`, because it looks for mistakes of the
   server. Answers are returned unchanged; lines that are not messages are counted and skipped.
3. It begins with `initialize`. A server that refuses that gets `server/discover`, and the client's
   name and capabilities in every request, as the later revision of the protocol requires.
4. A connection of that revision serves any client: what a client without types is listed is asked
   for on it. A server that refuses `server/discover` is asked on the same connection, after
   `initialize`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Literal, cast

import msgspec
from msgspec.structs import replace

from transom.background import ignore
from transom.channel import Channel
from transom.check.facts import (
    CacheHint,
    CallKind,
    Client,
    Facts,
    ListedTool,
    ListedTools,
    Lists,
    ServedResource,
    TrialCall,
    ViewObservation,
    Visit,
    listed_tools,
    texts,
)
from transom.check.rule import RuleSurface
from transom.check.schemas import fitting_arguments, unfitting_arguments
from transom.connections.connection import Connect
from transom.connections.handshake import IntroductionRefused, introduce
from transom.connections.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    PROTOCOL_KEY,
)
from transom.errors import METHOD_NOT_FOUND, ChannelClosed, ProtocolError, TransomError
from transom.json_values import Json, JsonObject, as_list, as_object, clean, type_name
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.protocol.pagination import Pagination
from transom.version import __version__

MAX_ITEMS = 20_000
MAX_LIST_PAGES = 1_000
# How long all pages of a list may take together: a server must not stretch one by slow answers.
LIST_TIMEOUTS = 3
_CACHEABLE = {
    *("server/discover", "tools/list", "prompts/list", "resources/list"),
    *("resources/templates/list", "resources/read"),
}


class NoAnswer(TransomError):
    """The server did not answer with valid JSON-RPC. The text says what it did instead."""


class Conversation:
    """One connection, used by one task. `noise` counts what the server wrote that is no message."""

    def __init__(self, channel: Channel, timeout: float) -> None:
        self._channel = channel
        self._timeout = timeout
        self._last_id = 0
        self._stamp: JsonObject = {}
        self.hints: list[CacheHint] = []
        """The cache hints of answers in MCP 2026-07-28."""
        self.closed: str | None = None
        self.noise = 0
        self.first_noise = ""

    async def open(
        self, capabilities: JsonObject, *methods: Literal["initialize", "server/discover"]
    ) -> JsonObject:
        """Introduce ourselves as a client with these capabilities; the server's answer.

        The methods are tried in this order, by default `initialize` first.

        Raises:
            NoAnswer: the server did not answer, or its answer accepts nothing.
            ProtocolError: it refused the first of them.
        """
        client: JsonObject = {"name": "transom-check", "version": __version__}
        answered: JsonObject = {}

        async def send(method: str, _: bytes | None) -> bytes:
            nonlocal answered
            self._stamp = {}
            if method == "initialize":
                version = HANDSHAKE_VERSIONS[-1]
                names: JsonObject = {"protocolVersion": version, "clientInfo": client}
                answered = await self.request(method, {**names, "capabilities": capabilities})
            else:
                self._stamp = {PROTOCOL_KEY: DISCOVERY_VERSION, CLIENT_KEY: client}
                self.present_as(capabilities)
                answered = await self.request(method, {})
            return msgspec.json.encode(answered)

        tried = methods or ("initialize", "server/discover")
        try:
            method, _ = await introduce(
                send, [(each, None) for each in tried], discover_within=None
            )
        except IntroductionRefused as refused:
            if isinstance(refused.refusals[0], ProtocolError):
                raise refused.refusals[0] from None
            raise NoAnswer(f"the server's answer is wrong: {refused.refusals[0]}") from None
        if method == "initialize":
            await self._send(method="notifications/initialized")
        return answered

    def present_as(self, capabilities: JsonObject) -> None:
        """Have the next requests on a connection of 2026-07-28 name these capabilities."""
        self._stamp = {**self._stamp, CAPABILITIES_KEY: capabilities}

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and wait for its result.

        Raises:
            NoAnswer: none came in time, it was too long or no object, or the server is gone.
            ProtocolError: the answer is a JSON-RPC error.
        """
        if self.closed is not None:
            raise NoAnswer(self.closed)
        self._last_id += 1
        if self._stamp:
            params = {**params, "_meta": self._stamp}
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(id=self._last_id, method=method, params=params)
                answer = await self._answer(self._last_id, method)
        except TimeoutError:
            raise NoAnswer(
                f"the server did not answer {method} within {self._timeout:g} s"
            ) from None
        except ChannelClosed as error:
            self.closed = f"the server is gone: {clean(str(error), 400)}"
            raise NoAnswer(self.closed) from error
        if self._stamp and method in _CACHEABLE and answer.get("resultType") != "input_required":
            what = f"{method} of {uri}" if isinstance(uri := params.get("uri"), str) else method
            self.hints.append(CacheHint(what, answer.get("ttlMs"), answer.get("cacheScope")))
        return answer

    async def list_all(self, method: str, key: str) -> tuple[list[JsonObject], str | None]:
        """Every page of a list, and why it is missing or cut short, if it is.

        A server that has no such method has an empty list.
        """
        clock = asyncio.get_running_loop().time
        end = clock() + LIST_TIMEOUTS * self._timeout
        items: list[JsonObject] = []
        pages = Pagination(MAX_LIST_PAGES)
        while True:
            params: JsonObject = {} if pages.cursor is None else {"cursor": pages.cursor}
            try:
                answer = await self.request(method, params)
            except ProtocolError as error:
                missing = error.code == METHOD_NOT_FOUND and pages.cursor is None
                return items, None if missing else f"{method} failed: {clean(str(error), 200)}"
            except NoAnswer as error:
                return items, str(error)
            if not isinstance(answer.get(key), list):
                return items, f"{method} answered without a list of {key}"
            # An entry that is not an object is kept: a rule has to report it.
            items.extend(as_object(entry) for entry in as_list(answer[key]))
            cursor = answer.get("nextCursor")
            if not pages.follow(cursor if isinstance(cursor, str) and cursor else None):
                return items, None if pages.failure is None else f"{method} {pages.failure}"
            if len(items) >= MAX_ITEMS:
                return items[:MAX_ITEMS], f"{method} has more than {MAX_ITEMS} entries"
            if clock() >= end:
                return items, f"{method} takes too long; stopped after {len(items)}"

    async def _send(self, **message: Json) -> None:
        await self._channel.send(msgspec.json.encode({"jsonrpc": "2.0", **message}))

    async def _answer(self, request_id: int, method: str) -> JsonObject:
        while True:
            data = await self._channel.receive()
            incoming = _object_in(data)
            if incoming is None:
                self._count_noise(data[:200].decode(errors="replace"))
            elif "method" in incoming:
                await self._serve(incoming)
            elif incoming.get("id") in range(1, request_id):
                continue  # the late answer to a request that timed out
            elif incoming.get("id") != request_id:
                self._count_noise(f"an answer to request {clean(str(incoming.get('id')), 20)}")
            elif "error" in incoming:
                fault = as_object(incoming["error"])
                code, text = fault.get("code"), clean(str(fault.get("message", "")), 300)
                raise ProtocolError(code if isinstance(code, int) else 0, text)
            elif isinstance(result := incoming.get("result"), dict):
                return result
            else:
                what = f"{type_name(result)}, not an object"
                raise NoAnswer(f"the server answered {method} with {what}")

    async def _serve(self, message: JsonObject) -> None:
        if "id" not in message:
            return
        if message["method"] == "ping":
            await self._send(id=message["id"], result={})
        else:
            error: JsonObject = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
            await self._send(id=message["id"], error=error)

    def _count_noise(self, text: str) -> None:
        self.noise += 1
        self.first_noise = self.first_noise or clean(text, 100)


def _object_in(data: bytes) -> JsonObject | None:
    try:
        message = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return cast("JsonObject", message) if isinstance(message, dict) else None


APPS: JsonObject = {"extensions": {UI_EXTENSION: {"mimeTypes": [VIEW_MIME_TYPE]}}}
TEXT: JsonObject = {}
NO_MIME: JsonObject = {"extensions": {UI_EXTENSION: {"mimeTypes": []}}}
_OTHER_LISTS = (
    ("resources/list", "resources"),
    ("resources/templates/list", "resourceTemplates"),
    ("prompts/list", "prompts"),
)
_MAX_CALLED_AGAIN = 5
MAX_SILENT = 3  # reads in a row without an answer, after which no more are tried

CheckProgress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how many steps are done, how many there are."""


ViewObserver = Callable[[Facts], Awaitable[Sequence[ViewObservation]]]
"""Renders every page that a tool opens; `TransomError` if there is nothing to do it with."""


class NothingToCheck(TransomError):
    """The server could not be checked at all. The text says why."""


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools may be called, and with what."""

    all: bool = False
    """Also those that do not say they only read."""
    arguments: Mapping[str, dict[str, Any]] = {}
    """Arguments by tool name, instead of made-up ones; a tool named here may be called."""
    max_calls: int = 100
    max_silent: int = 3
    """Calls in a row without an answer, after which no more are made."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How to look at a server."""

    timeout: float = 10.0
    """Seconds for each answer."""
    calling: Calling | None = None
    """Which tools to call; `None` calls none."""
    surfaces: frozenset[RuleSurface] | None = None
    """What the rules look at. A visit that none of them needs is not made; `None` makes all."""
    read_twice: bool = False
    """Read each page a second time, to see whether it changes (C15)."""
    dev: bool = False
    server_host: str | None = None
    max_resources: int = 50


class ObservingOptions(Options, frozen=True, kw_only=True):
    """How to look at a server, and at its Views in a browser."""

    observer: ViewObserver


async def collect(connect: Connect, options: Options, *, progress: CheckProgress = ignore) -> Facts:
    """Visit the server and collect its answers; `NothingToCheck` if it answers no handshake."""
    return await _Collection(connect, options, progress).run()


class _Collection:
    def __init__(self, connect: Connect, options: Options, progress: CheckProgress) -> None:
        self._connect = connect
        self._options = options
        self._progress = progress
        self._done, self._steps = 0, 7 if isinstance(options, ObservingOptions) else 6
        self._notes: list[str] = []
        self._resources: list[ServedResource] = []
        self._calling = options.calling or Calling()
        self._calls: list[TrialCall] = []
        self._uncalled: list[tuple[str, str]] = []
        self._typeless: Visit | None = None  # as a client that accepts no type, if that is known

    async def run(self) -> Facts:
        apps = await self._visit(self._as_host)
        if apps.handshake is None:
            raise NothingToCheck(apps.failure)
        seen = Facts(apps=apps)
        if self._begin_for("visiting as a text-only client", "text", "no_mime", "text_call"):
            text = await self._visit(lambda server: self._as_text(server, apps))
            seen = replace(seen, text=self._noted("text-only", text))
        # Where a text-only client gets every link, a client without types cannot get more.
        unlinked = {tool.name for tool in apps.tools if tool.link is not None}
        unlinked -= {tool.name for tool in seen.text.tools if tool.link is not None}
        self._typeless = None if unlinked else Visit()
        if self._begin_for("listing in MCP 2026-07-28", "lists", "lists_call"):
            seen = replace(seen, lists=await self._visit_stateless())
        if self._begin_for("visiting as a client without types", "no_mime"):
            typeless = self._typeless or await self._visit(lambda each: _list_only(each, NO_MIME))
            seen = replace(seen, no_mime=self._noted("no-types", typeless))
        facts = replace(
            seen,
            resources=tuple(self._resources),
            calls=None if self._options.calling is None else tuple(self._calls),
            uncalled=tuple(self._uncalled),
            server_host=self._options.server_host,
            dev=self._options.dev,
            notes=tuple(dict.fromkeys(self._notes)),
        )
        if isinstance(self._options, ObservingOptions):
            self._begin("rendering Views")
            try:
                views = tuple(await self._options.observer(facts))
                facts = replace(facts, views=views)
            except TransomError as error:
                failure = f"Views cannot be rendered: {error}"
                facts = replace(facts, views_failure=failure)
        self._begin("done")
        return facts

    def _begin(self, step: str) -> None:
        self._progress(step, self._done, self._steps)
        self._done += 1

    # --- visits ------------------------------------------------------------------------------

    def _begin_for(self, step: str, *surfaces: RuleSurface) -> bool:
        """Begin a step, unless no rule looks at any of these; whether it began."""
        wanted = self._options.surfaces
        if wanted is not None and wanted.isdisjoint(surfaces):
            self._steps -= 1
            return False
        self._begin(step)
        return True

    def _noted(self, who: str, visit: Visit) -> Visit:
        if visit.failure is not None:
            self._notes.append(f"as a {who} client: {visit.failure}")
        return visit

    async def _visit(self, look: Callable[[Conversation], Awaitable[Visit]]) -> Visit:
        """Connect to the server, and collect what `look` wants."""
        try:
            channel = await self._connect()
        except TransomError as error:
            return Visit(failure=f"the server cannot be reached: {error}")
        try:
            return await look(Conversation(channel, self._options.timeout))
        except (NoAnswer, ProtocolError, ChannelClosed) as error:
            return Visit(failure=str(error))
        finally:
            await channel.aclose()

    async def _as_host(self, server: Conversation) -> Visit:
        self._begin("initializing")
        handshake = await server.open(APPS)
        self._begin("listing tools")
        tools, failure = await server.list_all("tools/list", "tools")
        self._begin("listing resources")
        resources, resources_failure = await server.list_all("resources/list", "resources")
        visit = Visit(handshake, listed_tools(tools), tuple(resources), failure)
        self._notes += [p for p in (failure, resources_failure) if p is not None]
        await self._read_resources(server, visit)
        if self._options.calling is not None:
            await self._call_tools(server, visit.tools)
        if self._options.read_twice:
            await self._read_again(server)
        if server.noise:
            what = f"{server.noise} things that are no MCP message"
            self._notes.append(f"the server wrote {what}, the first: {server.first_noise!r}")
        return visit

    async def _as_text(self, server: Conversation, apps: Visit) -> Visit:
        """List the tools, and call those that have a View for a host."""
        visit = await _list_only(server, TEXT)
        if self._options.calling is not None:
            await self._call_as_text(server, apps, visit)
        return visit

    # --- MCP 2026-07-28 ----------------------------------------------------------------------

    async def _visit_stateless(self) -> Lists:
        """List the tools as MCP 2026-07-28 does: twice, after calls, and on another connection."""
        listings: list[ListedTools] = []
        hints: list[CacheHint] = []

        async def listed(server: Conversation, when: str, *, after_calls: bool = False) -> None:
            tools, failure = await server.list_all("tools/list", "tools")
            if failure is not None:
                raise NoAnswer(failure)
            found = {tool.name: tool.raw for tool in listed_tools(tools)}
            listings.append(ListedTools(when, found, after_calls))

        async def look(server: Conversation) -> Visit:
            try:
                await server.open(APPS, "server/discover")
            except ProtocolError:
                await self._list_typeless(server, stateless=False)
                raise
            await listed(server, "at first")
            await listed(server, "when it is asked for again")
            hints.extend(server.hints)
            if called := await self._call_again(server):
                after = f"after calls of {', '.join(f'`{name}`' for name in called)}"
                await listed(server, after, after_calls=True)
            for method, key in _OTHER_LISTS:
                _, failure = await server.list_all(method, key)
                if failure is not None:
                    raise NoAnswer(failure)
            if served := [
                resource.uri for resource in self._resources if resource.result is not None
            ]:
                await _read(server, served[0])
            hints.extend(server.hints)
            await self._list_typeless(server, stateless=True)
            return Visit()

        async def look_again(server: Conversation) -> Visit:
            await server.open(APPS, "server/discover")
            await listed(server, "on another connection")
            return Visit()

        failure = (await self._visit(look)).failure
        if not listings:
            return Lists(failure=f"the server does not speak MCP 2026-07-28: {failure}")
        if failure is None:
            failure = (await self._visit(look_again)).failure
        if failure is not None:
            self._notes.append(f"in MCP 2026-07-28: {failure}")
        different = {msgspec.json.encode(hint): hint for hint in hints}  # JSON has no hash
        return Lists(tuple(listings), tuple(different.values()))

    async def _list_typeless(self, server: Conversation, *, stateless: bool) -> None:
        """List the tools as a client without types does, on this connection, if that works."""
        if self._typeless is None:
            with suppress(NoAnswer, ProtocolError):
                if stateless:
                    server.present_as(NO_MIME)
                self._typeless = await _list_only(server, None if stateless else NO_MIME)

    async def _call_again(self, server: Conversation) -> list[str]:
        """Call some of those tools again that answered; their names."""
        called: dict[str, None] = {}
        for call in self._calls:
            if call.kind == "example" and call.client == "apps" and call.result is not None:
                with suppress(ProtocolError):
                    params: JsonObject = {"name": call.tool, "arguments": call.arguments}
                    await server.request("tools/call", params)
                called[call.tool] = None
            if len(called) >= _MAX_CALLED_AGAIN:
                break
        return list(called)

    # --- resources ---------------------------------------------------------------------------

    async def _read_resources(self, server: Conversation, visit: Visit) -> None:
        linked: dict[str, list[str]] = {}
        for tool in visit.tools:
            if tool.link is not None and tool.link.startswith("ui://"):
                linked.setdefault(tool.link, []).append(tool.name)
        listed = {str(entry.get("uri")): entry for entry in reversed(visit.resources)}
        uris = [*linked, *(uri for uri in listed if uri.startswith("ui://") and uri not in linked)]
        if len(uris) > self._options.max_resources:
            self._notes.append(
                f"only the first {self._options.max_resources} UI resources were read"
            )
            uris = uris[: self._options.max_resources]
        self._steps += len(uris)
        silent, failure = 0, None
        for position, uri in enumerate(uris):
            if silent >= MAX_SILENT:
                self._notes.append(f"{len(uris) - position} UI resources were not read: {failure}")
                return
            self._begin(f"reading {uri}")
            result, failure, answered = await _read(server, uri)
            silent = 0 if answered else silent + 1
            tools, entry = tuple(linked.get(uri, ())), listed.get(uri, {})
            self._resources.append(ServedResource.from_answer(uri, tools, entry, result, failure))

    async def _read_again(self, server: Conversation) -> None:
        for index, first in enumerate(self._resources):
            if first.result is not None:
                again, _, answered = await _read(server, first.uri)
                if not answered:
                    return
                self._resources[index] = replace(first, again=again)

    # --- calls -------------------------------------------------------------------------------

    async def _call_tools(self, server: Conversation, tools: Sequence[ListedTool]) -> None:
        """Call each tool that may be called, then once more with arguments that do not fit.

        An idempotent tool that writes is called twice with the same arguments.
        """
        names = [tool.name for tool in tools]
        for name in self._calling.arguments:
            if name not in names:
                self._notes.append(
                    f"there is no tool {name} to call; there are: {', '.join(names)}"
                )
        chosen = [tool for tool in tools if self._may_call(tool)]
        limit = self._calling.max_calls
        why = f"no more than {limit} tools are called"
        self._uncalled += [(tool.name, why) for tool in chosen[limit:]]
        chosen = chosen[:limit]
        self._steps += len(chosen)
        silent = 0
        for position, tool in enumerate(chosen):
            if server.closed is not None or silent >= self._calling.max_silent:
                why = server.closed or f"{silent} calls in a row got no answer"
                self._uncalled += [(left.name, why) for left in chosen[position:]]
                self._notes.append(f"no more tools were called: {why}")
                return
            self._begin(f"calling {tool.name}")
            call = await self._call(server, tool, "example")
            silent = silent + 1 if call and call.failure else 0
            if call and call.result and call.result.get("isError") is True:
                text = clean(" ".join(texts(call.result)), 200)
                self._notes.append(f"{tool.name} answered with an error: {text}")
            if call is None or call.failure is not None:
                continue
            if tool.hints("idempotentHint") and not tool.hints("readOnlyHint"):
                await self._call(server, tool, "again")
            await self._call(server, tool, "invalid")

    async def _call_as_text(self, server: Conversation, apps: Visit, text: Visit) -> None:
        """Call the tools that have a View once more, as a client that shows none."""
        listed = {tool.name for tool in text.tools}
        linked = {tool.name: tool for tool in apps.tools if tool.link and tool.name in listed}
        silent = 0
        for name in dict.fromkeys(call.tool for call in self._calls if call.failure is None):
            if server.closed is not None or silent >= self._calling.max_silent:
                return
            if name in linked:
                call = await self._call(server, linked[name], "example", "text")
                silent = silent + 1 if call and call.failure else 0

    def _may_call(self, tool: ListedTool) -> bool:
        safe = tool.hints("readOnlyHint") and not tool.hints("destructiveHint")
        if tool.raw.get("name") != tool.name:
            self._uncalled.append((tool.name, "it has no name to call it by"))
        elif safe or self._calling.all or tool.name in self._calling.arguments:
            return True
        else:
            self._uncalled.append((tool.name, "not marked read-only; --call-all calls it"))
        return False

    async def _call(
        self, server: Conversation, tool: ListedTool, kind: CallKind, client: Client = "apps"
    ) -> TrialCall | None:
        schema = as_object(tool.raw.get("inputSchema"))
        if kind == "invalid":
            arguments = unfitting_arguments(schema)
        elif tool.name in self._calling.arguments:
            arguments = self._calling.arguments[tool.name]
        else:
            arguments = fitting_arguments(schema)
        if arguments is None:
            if kind == "example":
                self._uncalled.append((tool.name, "no arguments could be made from its schema"))
            return None
        result, fault, failure = None, None, None
        try:
            params: JsonObject = {"name": tool.name, "arguments": arguments}
            result = await server.request("tools/call", params)
        except ProtocolError as error:
            fault = (error.code, error.message)
        except NoAnswer as error:
            failure = str(error)
            self._notes.append(f"tool {tool.name}: {error}")
        call = TrialCall(tool.name, arguments, client, kind, result, fault, failure)
        self._calls.append(call)
        return call


async def _list_only(server: Conversation, capabilities: JsonObject | None) -> Visit:
    """List the tools, after the handshake of a client with these capabilities if there are any."""
    handshake = None if capabilities is None else await server.open(capabilities)
    tools, failure = await server.list_all("tools/list", "tools")
    if failure is not None:
        raise NoAnswer(failure)
    return Visit(handshake, listed_tools(tools))


async def _read(server: Conversation, uri: str) -> tuple[JsonObject | None, str | None, bool]:
    """The answer to reading `uri`, or why there is none, and whether anything was answered."""
    try:
        return await server.request("resources/read", {"uri": uri}), None, True
    except (ProtocolError, NoAnswer) as error:
        return None, str(error), isinstance(error, ProtocolError)
