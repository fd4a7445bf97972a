"""Collects the facts about a server, within time and size, whatever it does.

Three visits (see `snapshot`), one after the other. Only the first has to succeed: when it cannot
even be opened there is nothing to check, and `Unreachable` says why. Everything that goes wrong
after that becomes part of the snapshot.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import msgspec

from transom.check.calling import Caller, Calling
from transom.check.client import Answered, Conversation, NoAnswer
from transom.check.connect import Connect, PipeClosed
from transom.check.facts import APP_MIME_TYPE, EXTENSION_ID, ListedTool, Page, page
from transom.check.hosting import visibility_decisions
from transom.check.snapshot import (
    GeneratedPolicy,
    HostObservation,
    Snapshot,
    ViewObservation,
    Visit,
)
from transom.errors import TransomError
from transom.json_values import JsonObject, as_object

__all__ = ["Collected", "Options", "Progress", "Unreachable", "ViewObserver", "collect", "unseen"]

APPS: JsonObject = {"extensions": {EXTENSION_ID: {"mimeTypes": [APP_MIME_TYPE]}}}
TEXT: JsonObject = {}
MAX_SILENT = 3  # reads in a row without an answer, after which no more are tried
NO_MIME: JsonObject = {"extensions": {EXTENSION_ID: {"mimeTypes": []}}}

Progress = Callable[[str, int, int], None]
"""Called as work goes on: what is being done, how many steps are done, how many there are."""


class Unreachable(TransomError):
    """The server could not be checked at all. The text says why."""


class ViewObserver(Protocol):
    """Renders Views in a browser and tells what they did."""

    async def observe(self, seen: Snapshot) -> Sequence[ViewObservation]:
        """Render every page of `seen` that a tool opens.

        Raises:
            TransomError: there is nothing to render them with.
        """
        ...


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a server is to be looked at."""

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
    build_csp: Callable[[JsonObject], str] | None = None
    """How our own host makes a CSP from what a resource declares (P17)."""
    max_pages: int = 50


class Collected(msgspec.Struct, frozen=True):
    """A snapshot, and remarks about how it was taken."""

    snapshot: Snapshot
    notes: tuple[str, ...] = ()


def unseen(text: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


async def collect(
    connect: Connect, options: Options, *, version: str, progress: Progress = unseen
) -> Collected:
    """Visit the server and note what it says.

    Raises:
        Unreachable: it could not be started or reached, or did not answer the handshake.
    """
    return await _Collection(connect, options, version, progress).run()


class _Collection:
    def __init__(
        self, connect: Connect, options: Options, version: str, progress: Progress
    ) -> None:
        self._connect = connect
        self._options = options
        self._version = version
        self._progress = progress
        self._done = 0
        self._steps = 5 if options.observer is None else 6
        self._notes: list[str] = []
        self._caller = (
            Caller(options.calling, self._announce, self._notes.append) if options.calling else None
        )
        self._pages: list[Page] = []

    async def run(self) -> Collected:
        apps, problem = await self._visit(APPS, self._as_host)
        if apps is None:
            raise Unreachable(problem)
        self._step("visiting as a text-only client")
        text, text_problem = await self._visit(TEXT, lambda server: self._as_text(server, apps))
        self._step("visiting as a client without types")
        no_mime, no_mime_problem = await self._visit(NO_MIME, self._list_only)
        for who, why in (("text-only client", text_problem), ("client", no_mime_problem)):
            if why is not None:
                self._notes.append(f"as a {who}: {why}")
        snapshot = Snapshot(
            apps=apps,
            text=text,
            text_problem=text_problem,
            no_mime=no_mime,
            no_mime_problem=no_mime_problem,
            pages=tuple(self._pages),
            calls=tuple(self._caller.calls) if self._caller else None,
            uncalled=tuple(self._caller.uncalled) if self._caller else (),
            host=HostObservation(
                decisions=visibility_decisions(apps.tools), policies=self._policies()
            ),
            server_host=self._options.server_host,
            dev=self._options.dev,
        )
        if self._options.observer is not None:
            self._step("rendering Views")
            snapshot = await _rendered(snapshot, self._options.observer)
        self._step("done")
        return Collected(snapshot, tuple(dict.fromkeys(self._notes)))

    # --- visits ------------------------------------------------------------------------------

    async def _visit(
        self, capabilities: JsonObject, look: Callable[[Conversation], Awaitable[Visit]]
    ) -> tuple[Visit | None, str | None]:
        """Connect as the client with these capabilities, say hello and look around."""
        visit, problem = None, None
        try:
            async with self._connect() as pipe:
                server = Conversation(
                    pipe, capabilities, version=self._version, timeout=self._options.timeout
                )
                # A transport may wrap what passes through it, so nothing does.
                try:
                    visit = await look(server)
                except (NoAnswer, Answered, PipeClosed) as error:
                    problem = str(error)
        except PipeClosed as error:
            problem = problem or str(error)
        return visit, problem

    async def _as_host(self, server: Conversation) -> Visit:
        self._step("saying hello")
        handshake = await server.open()
        self._step("listing tools")
        listing = await server.list_all("tools/list", "tools")
        self._step("listing resources")
        visit = Visit(
            advertised=server.capabilities,
            handshake=handshake,
            tools=_tools(listing.items),
            tools_problem=listing.problem,
            resources=await server.list_all("resources/list", "resources"),
            templates=await server.list_all("resources/templates/list", "resourceTemplates"),
        )
        for problem in (listing.problem, visit.resources.problem, visit.templates.problem):
            if problem is not None:
                self._notes.append(problem)
        await self._read_pages(server, visit)
        if self._caller is not None:
            await self._caller.call_tools(server, visit.tools)
        if self._options.read_twice:
            await self._read_again(server)
        self._note_noise(server)
        return visit

    async def _as_text(self, server: Conversation, apps: Visit) -> Visit:
        """List the tools, and call those that have a View for a host."""
        visit = await self._list_only(server)
        if self._caller is not None:
            await self._caller.call_as_text(server, apps, visit)
        return visit

    async def _list_only(self, server: Conversation) -> Visit:
        handshake = await server.open()
        listing = await server.list_all("tools/list", "tools")
        if listing.problem is not None:
            raise NoAnswer(listing.problem)
        return Visit(server.capabilities, handshake, _tools(listing.items))

    # --- pages -------------------------------------------------------------------------------

    async def _read_pages(self, server: Conversation, visit: Visit) -> None:
        linked: dict[str, list[str]] = {}
        for tool in visit.tools:
            if tool.link is not None and tool.link.startswith("ui://"):
                linked.setdefault(tool.link, []).append(tool.name)
        listed = {str(entry.get("uri")): entry for entry in reversed(visit.resources.items)}
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
            self._step(f"reading {uri}")
            result, problem, answered = await _read(server, uri)
            silent = 0 if answered else silent + 1
            by = linked.get(uri, ())
            self._pages.append(
                page(uri, linked_by=by, listed=listed.get(uri), result=result, problem=problem)
            )

    async def _read_again(self, server: Conversation) -> None:
        for index, first in enumerate(self._pages):
            if first.result is not None:
                again, _, answered = await _read(server, first.uri)
                if not answered:
                    return
                self._pages[index] = msgspec.structs.replace(first, again=again)

    # --- odds and ends -----------------------------------------------------------------------

    def _policies(self) -> tuple[GeneratedPolicy, ...] | None:
        build = self._options.build_csp
        if build is None:
            return None
        declared = [(each.uri, as_object(each.effective_ui.get("csp"))) for each in self._pages]
        return tuple(GeneratedPolicy(uri, csp, build(csp)) for uri, csp in declared)

    def _announce(self, steps: int, text: str) -> None:
        """More steps to come, or the next one."""
        self._steps += steps
        if text:
            self._step(text)

    def _step(self, text: str) -> None:
        self._progress(text, self._done, self._steps)
        self._done += 1

    def _note_noise(self, server: Conversation) -> None:
        if server.noise:
            self._notes.append(
                f"the server wrote {server.noise} things that are no MCP message, the first: "
                f"{server.first_noise!r}"
            )


async def _rendered(seen: Snapshot, observer: ViewObserver) -> Snapshot:
    try:
        views = tuple(await observer.observe(seen))
    except TransomError as error:
        return msgspec.structs.replace(seen, views_problem=f"Views cannot be rendered: {error}")
    closed = tuple(call for view in views for call in view.closed_calls)
    host = msgspec.structs.replace(seen.host, closed_view_calls=closed)
    return msgspec.structs.replace(seen, views=views, host=host)


async def _read(server: Conversation, uri: str) -> tuple[JsonObject | None, str | None, bool]:
    """The answer to reading `uri`, or why there is none, and whether anything was answered."""
    try:
        return await server.request("resources/read", {"uri": uri}), None, True
    except Answered as error:
        return None, str(error), True
    except NoAnswer as error:
        return None, str(error), False


def _tools(items: Sequence[JsonObject]) -> tuple[ListedTool, ...]:
    return tuple(ListedTool.from_entry(at, entry) for at, entry in enumerate(items, 1))
