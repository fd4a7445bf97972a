"""Collects the facts about a server, within time and size, whatever it does.

Up to five visits (see `snapshot`), one after the other. Only the first has to succeed: when it
cannot even be opened there is nothing to check, and `Unreachable` says why. Everything that goes
wrong after that becomes part of the snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from transom.check.conversation import Answered, Conversation, NoAnswer
from transom.check.schemas import fitting_arguments, unfitting_arguments
from transom.check.snapshot import (
    CacheHint,
    CallKind,
    Client,
    ListedTool,
    ListedTools,
    Lists,
    ServedPage,
    Snapshot,
    TrialCall,
    ViewObservation,
    Visit,
    texts,
)
from transom.errors import ChannelClosed, TransomError
from transom.json_values import JsonObject, as_object, clean
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.servers.connection import Connect

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

Progress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how many steps are done, how many there are."""


ViewObserver = Callable[[Snapshot], Awaitable[Sequence[ViewObservation]]]
"""Renders every page that a tool opens; `TransomError` if there is nothing to do it with."""


class Unreachable(TransomError):
    """The server could not be checked at all. The text says why."""


class Calling(msgspec.Struct, frozen=True, kw_only=True):
    """Which tools may be called, and with what."""

    all: bool = False
    """Also those that do not say they only read."""
    arguments: Mapping[str, JsonObject] = {}
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
    read_twice: bool = False
    """Read each page a second time, to see whether it changes (C15)."""
    dev: bool = False
    server_host: str | None = None
    observer: ViewObserver | None = None
    """Renders Views; `None` renders none."""
    max_pages: int = 50


def unseen(text: str, done: int, total: int) -> None:
    """Ignores progress."""


async def collect(connect: Connect, options: Options, *, progress: Progress = unseen) -> Snapshot:
    """Visit the server and collect its answers; `Unreachable` if it answers no handshake."""
    return await _Collection(connect, options, progress).run()


class _Collection:
    def __init__(self, connect: Connect, options: Options, progress: Progress) -> None:
        self._connect = connect
        self._options = options
        self._progress = progress
        self._done, self._steps = 0, 6 if options.observer is None else 7
        self._notes: list[str] = []
        self._pages: list[ServedPage] = []
        self._calling = options.calling or Calling()
        self._calls: list[TrialCall] = []
        self._uncalled: list[tuple[str, str]] = []

    async def run(self) -> Snapshot:
        apps = await self._visit(APPS, self._as_host)
        if apps.handshake is None:
            raise Unreachable(apps.problem)
        self._begin("visiting as a text-only client")
        text = await self._visit(TEXT, lambda server: self._as_text(server, apps))
        self._begin("visiting as a client without types")
        no_mime = await self._visit(NO_MIME, _list_only)
        for who, visit in (("text-only", text), ("no-types", no_mime)):
            if visit.problem is not None:
                self._notes.append(f"as a {who} client: {visit.problem}")
        self._begin("listing in MCP 2026-07-28")
        snapshot = Snapshot(
            apps=apps,
            text=text,
            no_mime=no_mime,
            lists=await self._visit_modern(),
            pages=tuple(self._pages),
            calls=None if self._options.calling is None else tuple(self._calls),
            uncalled=tuple(self._uncalled),
            server_host=self._options.server_host,
            dev=self._options.dev,
            notes=tuple(dict.fromkeys(self._notes)),
        )
        if self._options.observer is not None:
            self._begin("rendering Views")
            try:
                views = tuple(await self._options.observer(snapshot))
                snapshot = msgspec.structs.replace(snapshot, views=views)
            except TransomError as error:
                problem = f"Views cannot be rendered: {error}"
                snapshot = msgspec.structs.replace(snapshot, views_problem=problem)
        self._begin("done")
        return snapshot

    def _begin(self, step: str) -> None:
        self._progress(step, self._done, self._steps)
        self._done += 1

    # --- visits ------------------------------------------------------------------------------

    async def _visit(
        self, capabilities: JsonObject, look: Callable[[Conversation], Awaitable[Visit]]
    ) -> Visit:
        """Connect as the client with these capabilities, and collect what `look` wants."""
        try:
            channel = await self._connect()
        except TransomError as error:
            return Visit(problem=f"the server cannot be reached: {error}")
        try:
            return await look(Conversation(channel, capabilities, self._options.timeout))
        except (NoAnswer, Answered, ChannelClosed) as error:
            return Visit(problem=str(error))
        finally:
            await channel.aclose()

    async def _as_host(self, server: Conversation) -> Visit:
        self._begin("initializing")
        handshake = await server.open()
        self._begin("listing tools")
        tools, problem = await server.list_all("tools/list", "tools")
        self._begin("listing resources")
        resources, resources_problem = await server.list_all("resources/list", "resources")
        visit = Visit(handshake, _tools(tools), tuple(resources), problem)
        self._notes += [p for p in (problem, resources_problem) if p is not None]
        await self._read_pages(server, visit)
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
        visit = await _list_only(server)
        if self._options.calling is not None:
            await self._call_as_text(server, apps, visit)
        return visit

    # --- MCP 2026-07-28 ----------------------------------------------------------------------

    async def _visit_modern(self) -> Lists:
        """List the tools as MCP 2026-07-28 does: twice, after calls, and on another connection."""
        listings: list[ListedTools] = []
        hints: list[CacheHint] = []

        async def listed(server: Conversation, when: str, *, after_calls: bool = False) -> None:
            tools, problem = await server.list_all("tools/list", "tools")
            if problem is not None:
                raise NoAnswer(problem)
            listings.append(ListedTools.from_entries(when, tools, after_calls=after_calls))

        async def look(server: Conversation) -> Visit:
            await server.open(handshake=False)
            await listed(server, "at first")
            await listed(server, "when it is asked for again")
            hints.extend(server.hints)
            if called := await self._call_again(server):
                after = f"after calls of {', '.join(f'`{name}`' for name in called)}"
                await listed(server, after, after_calls=True)
            for method, key in _OTHER_LISTS:
                _, problem = await server.list_all(method, key)
                if problem is not None:
                    raise NoAnswer(problem)
            if served := [page.uri for page in self._pages if page.result is not None]:
                await _read(server, served[0])
            hints.extend(server.hints)
            return Visit()

        async def look_again(server: Conversation) -> Visit:
            await server.open(handshake=False)
            await listed(server, "on another connection")
            return Visit()

        problem = (await self._visit(APPS, look)).problem
        if not listings:
            return Lists(problem=f"the server does not speak MCP 2026-07-28: {problem}")
        if problem is None:
            problem = (await self._visit(APPS, look_again)).problem
        if problem is not None:
            self._notes.append(f"in MCP 2026-07-28: {problem}")
        different = {msgspec.json.encode(hint): hint for hint in hints}  # JSON has no hash
        return Lists(tuple(listings), tuple(different.values()))

    async def _call_again(self, server: Conversation) -> list[str]:
        """Call some of those tools again that answered; their names."""
        called: dict[str, None] = {}
        for call in self._calls:
            if call.kind == "example" and call.client == "apps" and call.result is not None:
                with suppress(Answered):
                    params: JsonObject = {"name": call.tool, "arguments": call.arguments}
                    await server.request("tools/call", params)
                called[call.tool] = None
            if len(called) >= _MAX_CALLED_AGAIN:
                break
        return list(called)

    # --- pages -------------------------------------------------------------------------------

    async def _read_pages(self, server: Conversation, visit: Visit) -> None:
        linked: dict[str, list[str]] = {}
        for tool in visit.tools:
            if tool.link is not None and tool.link.startswith("ui://"):
                linked.setdefault(tool.link, []).append(tool.name)
        listed = {str(entry.get("uri")): entry for entry in reversed(visit.resources)}
        uris = [*linked, *(uri for uri in listed if uri.startswith("ui://") and uri not in linked)]
        if len(uris) > self._options.max_pages:
            self._notes.append(f"only the first {self._options.max_pages} UI resources were read")
            uris = uris[: self._options.max_pages]
        self._steps += len(uris)
        silent, problem = 0, None
        for position, uri in enumerate(uris):
            if silent >= MAX_SILENT:
                self._notes.append(f"{len(uris) - position} UI resources were not read: {problem}")
                return
            self._begin(f"reading {uri}")
            result, problem, answered = await _read(server, uri)
            silent = 0 if answered else silent + 1
            tools, entry = tuple(linked.get(uri, ())), listed.get(uri, {})
            self._pages.append(ServedPage.from_answer(uri, tools, entry, result, problem))

    async def _read_again(self, server: Conversation) -> None:
        for index, first in enumerate(self._pages):
            if first.result is not None:
                again, _, answered = await _read(server, first.uri)
                if not answered:
                    return
                self._pages[index] = msgspec.structs.replace(first, again=again)

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
            silent = silent + 1 if call and call.problem else 0
            if call and call.result and call.result.get("isError") is True:
                text = clean(" ".join(texts(call.result)), 200)
                self._notes.append(f"{tool.name} answered with an error: {text}")
            if call is None or call.problem is not None:
                continue
            if tool.hints("idempotentHint") and not tool.hints("readOnlyHint"):
                await self._call(server, tool, "again")
            await self._call(server, tool, "invalid")

    async def _call_as_text(self, server: Conversation, apps: Visit, text: Visit) -> None:
        """Call the tools that have a View once more, as a client that shows none."""
        listed = {tool.name for tool in text.tools}
        linked = {tool.name: tool for tool in apps.tools if tool.link and tool.name in listed}
        silent = 0
        for name in dict.fromkeys(call.tool for call in self._calls if call.problem is None):
            if server.closed is not None or silent >= self._calling.max_silent:
                return
            if name in linked:
                call = await self._call(server, linked[name], "example", "text")
                silent = silent + 1 if call and call.problem else 0

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
        result, fault, problem = None, None, None
        try:
            params: JsonObject = {"name": tool.name, "arguments": arguments}
            result = await server.request("tools/call", params)
        except Answered as error:
            fault = (error.code, error.message)
        except NoAnswer as error:
            problem = str(error)
            self._notes.append(f"tool {tool.name}: {error}")
        call = TrialCall(tool.name, arguments, client, kind, result, fault, problem)
        self._calls.append(call)
        return call


async def _list_only(server: Conversation) -> Visit:
    handshake = await server.open()
    tools, problem = await server.list_all("tools/list", "tools")
    if problem is not None:
        raise NoAnswer(problem)
    return Visit(handshake, _tools(tools))


async def _read(server: Conversation, uri: str) -> tuple[JsonObject | None, str | None, bool]:
    """The answer to reading `uri`, or why there is none, and whether anything was answered."""
    try:
        return await server.request("resources/read", {"uri": uri}), None, True
    except (Answered, NoAnswer) as error:
        return None, str(error), isinstance(error, Answered)


def _tools(items: Sequence[JsonObject]) -> tuple[ListedTool, ...]:
    return tuple(ListedTool.from_entry(at, entry) for at, entry in enumerate(items, 1))
