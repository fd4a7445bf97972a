"""Several servers behind the gateway, which look like one to the client.

1. Their tools and prompts are listed together, each under a name that tells it from the others
   (`apart`); so are their resources and templates (`whose`). What is asked of one of them goes to
   its server, under the name that the server gave it.
2. What belongs to no one in particular goes to all (notifications, the log level), or to the first
   that knows the method.
3. Only the versions of the protocol that begin with `initialize` are spoken: `server/discover` is
   an unknown method here, upon which clients of 2026-07-28 begin with `initialize` too. A listing
   is always one page.
4. When a server goes, its own requests fail and its own Views close; the others do not notice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

import msgspec
from msgspec import Raw

from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    ProtocolError,
    TransomError,
)
from transom.gateway.adding import ToolHead, member, members, with_entries
from transom.gateway.apart import Names, server_names
from transom.gateway.asking import Asking
from transom.gateway.front import Front
from transom.gateway.leg import Connect, Leg
from transom.gateway.listening import Listening
from transom.gateway.merging import with_member
from transom.gateway.roster import Member, Roster
from transom.gateway.told import Told
from transom.gateway.views import SCREENSHOT_VIEW, ClientViews
from transom.gateway.whose import Resources
from transom.host.surface import INDIRECT_TOOLS
from transom.protocol import wire

__all__ = ["Several"]


_LISTS: Final = ("tools", "resources", "prompts")
_NOT_HERE: Final = frozenset({"server/discover", "subscriptions/listen"})
_ASK_AGAIN = 1.0  # seconds between listings for the sake of a name that nobody knows
_MAX_TASKS = 10_000

Handler = Callable[[wire.Request], Awaitable[bytes]]


class Several:
    """The way between a client and its servers.

    Args:
        front: the client.
        servers: a name, and what starts each of them.
        views: shows Views, and has their tools.
    """

    def __init__(
        self, front: Front, servers: Sequence[tuple[str, Connect]], views: ClientViews
    ) -> None:
        self._front = front
        self._views = views
        self._told = Told()
        names = server_names([name for name, _ in servers])
        connects = [connect for _, connect in servers]
        self._roster = Roster(list(zip(names, connects, strict=True)), self, self._told)
        self._listening = Listening(self._told, front.post)
        self._resources = Resources(self._roster, views, self._listening)
        self._asking = Asking(front.post)
        standing = [SCREENSHOT_VIEW, *(tool.name for tool in INDIRECT_TOOLS)]
        self._tools = _Known(Names(names, standing), self._list_tools)
        self._prompts = _Known(Names(names), self._list_prompts)
        self._tasks: dict[str, Member] = {}
        self._tokens: dict[str | int, Member] = {}
        self._handlers: dict[str, Handler] = {
            "initialize": lambda request: self._roster.greet(request.params),
            "ping": self._pong,
            "tools/list": lambda request: self._page(request, self._tools.refresh),
            "tools/call": self._call_tool,
            "prompts/list": lambda request: self._page(request, self._prompts.refresh),
            "prompts/get": self._get_prompt,
            "resources/list": lambda request: self._page(request, self._resources.list_all),
            "resources/templates/list": lambda request: self._page(
                request, self._resources.list_templates
            ),
            "resources/read": lambda request: self._resources.read(request.params),
            "resources/subscribe": lambda request: self._resources.subscribe(request.params),
            "resources/unsubscribe": lambda request: self._resources.unsubscribe(request.params),
            "completion/complete": self._complete,
            "logging/setLevel": self._set_level,
            "tasks/list": lambda request: self._page(request, self._list_tasks),
        }
        views.attach(
            ask_client=front.ask,
            client_can=lambda name: name in self._told.capabilities,
            modern=lambda: False,
            tools_changed=lambda: self._tell_changed("tools"),
            resources_changed=lambda: self._tell_changed("resources"),
            resource_updated=self._listening.updated,
        )

    async def start(self) -> None:
        """Start the servers.

        Raises:
            NotConnected: none of them can be started.
        """
        await self._roster.start()

    async def room(self) -> None:
        """Nothing to wait for: a request waits for its own server, without holding up others."""

    async def aclose(self) -> None:
        """Stop the servers."""
        await self._roster.aclose()

    # --- from the client ---------------------------------------------------------------------

    def asked(self, request: wire.Request, data: bytes) -> None:
        """The client asks."""
        del data
        method = request.method
        if method in _NOT_HERE:
            self._front.post(wire.encode_error(request.id, METHOD_NOT_FOUND, _unknown(method)))
        elif self._told.initialize is None and method not in {"initialize", "ping"}:
            text = "The first request must be initialize"
            self._front.post(wire.encode_error(request.id, INVALID_REQUEST, text))
        else:
            otherwise = self._ask_by_task if method.startswith("tasks/") else self._ask_any
            self._front.work(request.id, self._handlers.get(method, otherwise)(request))

    def noted(self, notification: wire.Notification, data: bytes) -> None:
        """The client says something that wants no answer."""
        match notification.method:
            case "notifications/cancelled":
                id: object = member(notification.params, "requestId")
                reason: object = member(notification.params, "reason")
                if isinstance(id, str | int):
                    self._front.cancel(id, reason[:1000] if isinstance(reason, str) else None)
                return
            case "notifications/progress":
                self._asking.progressed(notification)
                return
            case "notifications/initialized":
                self._told.initialized = self._told.initialize is not None
            case _:
                pass
        for each in self._roster.present:
            each.leg.post(data)

    def answered(self, message: wire.Response | wire.ErrorResponse, data: bytes) -> None:
        """The client answers what a server asked."""
        del data
        self._asking.answered(message)

    # --- from a server -----------------------------------------------------------------------

    def server_said(self, leg: Leg, message: wire.Message, data: bytes) -> None:
        """A message for the client."""
        match message:
            case wire.Request():
                self._asking.asked(leg, message)
            case wire.Notification():
                self._server_noted(leg, message, data)
            case _:
                pass  # answers nothing that was asked

    async def room_for(self, leg: Leg) -> None:
        """Wait while the client is slow to read."""
        del leg
        await self._front.room()

    def _server_noted(self, leg: Leg, notification: wire.Notification, data: bytes) -> None:
        method = notification.method
        if method == "notifications/cancelled":
            self._asking.cancelled(leg, notification)
            return
        if method == "notifications/progress":
            token: object = member(notification.params, "progressToken")
            owner = self._tokens.get(token) if isinstance(token, str | int) else None
            if owner is not None and owner.leg is not leg:
                return  # it is another server that works on this
        if method.endswith("/list_changed"):
            behind = self._roster[leg.name].behind
            if behind is not None:
                behind.heard(method)
            if not self._told.initialized:
                return  # the client has not listed anything
        self._front.post(data)

    def server_lost(self, leg: Leg, reason: str) -> None:
        """A server went, or did not let itself be introduced."""
        lost = self._roster[leg.name]
        was_there = lost.behind is not None
        self._roster.lost(lost, reason)
        self._asking.lost(leg)
        if was_there:
            self._front.aside(self._views.server_lost(leg.name, reason))
            self._tell_all_changed(lost)

    def server_back(self, leg: Leg) -> None:
        """A server is there: for the first time, or again."""
        back = self._roster[leg.name]
        self._roster.back(back)
        self._tell_all_changed(back)

    def _tell_all_changed(self, server: Member) -> None:
        for what in _LISTS:
            if server.can(what):
                self._tell_changed(what)

    def _tell_changed(self, what: str) -> None:
        if self._told.initialized:
            self._front.post(wire.encode_notification(f"notifications/{what}/list_changed", None))

    # --- lists -------------------------------------------------------------------------------

    @staticmethod
    async def _page(request: wire.Request, whole: Callable[[], Awaitable[bytes]]) -> bytes:
        if member(request.params, "cursor") is not None:
            raise ProtocolError(INVALID_PARAMS, "Invalid cursor: there is one page only")
        return await whole()

    async def _list_tools(self) -> bytes:
        listed: dict[str, Raw | bytes] = {}
        heads: list[ToolHead] = []
        for server, entries in await self._roster.listing("tools/list", "tools", "tools"):
            if server.behind is not None:
                server.behind.learned(entries)
            for entry in entries:
                try:
                    head = msgspec.json.decode(entry, type=ToolHead)
                except msgspec.DecodeError:
                    continue  # no tool that anybody could call
                shown = self._tools.names.shown(server.name, head.name) if head.for_model else None
                if shown is not None and shown not in listed:
                    listed[shown] = _renamed(entry, head.name, shown)
                    heads.append(ToolHead(shown, head.meta))
        self._views.listed(heads)
        own = self._views.tools()
        added = own if isinstance(own, list) else await own
        return with_entries(b"{}", "tools", [*listed.values(), *added])

    async def _list_prompts(self) -> bytes:
        listed: dict[str, Raw | bytes] = {}
        for server, entries in await self._roster.listing("prompts/list", "prompts", "prompts"):
            for entry in entries:
                name: object = member(entry, "name")
                if isinstance(name, str):
                    shown = self._prompts.names.shown(server.name, name)
                    if shown is not None:
                        listed.setdefault(shown, _renamed(entry, name, shown))
        return with_entries(b"{}", "prompts", list(listed.values()))

    async def _list_tasks(self) -> bytes:
        listed: list[Raw] = []
        for server, entries in await self._roster.listing("tasks/list", "tasks", "tasks"):
            for entry in entries:
                self._gave_task(server, member(entry, "taskId"))
            listed += entries
        return with_entries(b"{}", "tasks", listed)

    # --- tools and prompts -------------------------------------------------------------------

    async def _call_tool(self, request: wire.Request) -> bytes:
        name = _text(request.params, "name")
        found = None if self._views.owns(name) else await self._tools.find(name)
        if found is None and self._views.owns(name):
            return await self._views.call(self._front.call(request, name, request.params))
        if found is None:
            raise self._roster.unknown("tool", name)
        server, own = self._roster[found[0]], found[1]
        params = Raw(_renamed(request.params, name, own))
        with self._working_on(request, server):
            behind = await server.ready()
            if not behind.current:
                with suppress(TransomError):
                    await behind.tools()
            if self._views.opens(behind, own):
                return await self._views.open(behind, self._front.call(request, own, params))
            result = await server.ask("tools/call", params)
        if self._gave_task(server, member(result, "task", "taskId")):
            return result
        return self._views.with_news(result)

    async def _get_prompt(self, request: wire.Request) -> bytes:
        name = _text(request.params, "name")
        found = await self._prompts.find(name)
        if found is None:
            raise self._roster.unknown("prompt", name)
        server, own = self._roster[found[0]], found[1]
        return await self._ask(request, server, _renamed(request.params, name, own))

    async def _complete(self, request: wire.Request) -> bytes:
        ref = members(request.params).get("ref")
        kind: object = member(ref, "type")
        if kind == "ref/prompt":
            name = _text(ref, "name")
            found = await self._prompts.find(name)
            if found is None:
                raise self._roster.unknown("prompt", name)
            server, own = self._roster[found[0]], found[1]
            given = {**members(request.params), "ref": Raw(_renamed(ref, name, own))}
            return await self._ask(request, server, wire.encode(given))
        if kind != "ref/resource":
            raise ProtocolError(INVALID_PARAMS, "The ref must be a ref/prompt or a ref/resource")
        able = [
            each
            for each in self._resources.candidates(_text(ref, "uri"))
            if each.can("completions")
        ]
        return await self._ask_first(request, able)

    # --- everything else ---------------------------------------------------------------------

    @staticmethod
    async def _pong(request: wire.Request) -> bytes:
        del request
        return b"{}"

    async def _set_level(self, request: wire.Request) -> bytes:
        if request.params is not None:
            self._told.log_level = bytes(request.params)
        able = [each for each in self._roster.present if each.can("logging")]
        asking = (each.ask(request.method, request.params) for each in able)
        answers = await asyncio.gather(*asking, return_exceptions=True)
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors and len(errors) == len(answers):
            raise errors[0]
        return b"{}"

    async def _ask_by_task(self, request: wire.Request) -> bytes:
        id: object = member(request.params, "taskId")
        server = self._tasks.get(id) if isinstance(id, str) else None
        if server is not None:
            return await self._ask(request, server, request.params)
        able = [each for each in self._roster.present if each.can("tasks")]
        unknown = ProtocolError(METHOD_NOT_FOUND, _unknown(request.method))
        return (await self._roster.first(able, request.method, request.params, unknown))[1]

    async def _ask_any(self, request: wire.Request) -> bytes:
        return await self._ask_first(request, self._roster.present)

    async def _ask_first(self, request: wire.Request, servers: Sequence[Member]) -> bytes:
        unknown = ProtocolError(METHOD_NOT_FOUND, _unknown(request.method))
        _, result = await self._roster.first(
            servers, request.method, request.params, unknown, only=METHOD_NOT_FOUND
        )
        return result

    async def _ask(
        self, request: wire.Request, server: Member, params: Raw | bytes | None
    ) -> bytes:
        with self._working_on(request, server):
            return await server.ask(request.method, params)

    @contextmanager
    def _working_on(self, request: wire.Request, server: Member) -> Generator[None]:
        """While it lasts, nobody else tells the client of progress with this request."""
        token: object = member(request.params, "_meta", "progressToken")
        if not isinstance(token, str | int):
            yield
            return
        self._tokens[token] = server
        try:
            yield
        finally:
            self._tokens.pop(token, None)

    def _gave_task(self, server: Member, id: object) -> bool:
        """Whether a server made a task, whose it is then."""
        if not isinstance(id, str):
            return False
        self._tasks.setdefault(id, server)
        if len(self._tasks) > _MAX_TASKS:
            del self._tasks[next(iter(self._tasks))]
        return True


class _Known:
    """One kind of names, and the listing by which they become known.

    Args:
        names: the names.
        listing: lists everything, and gives each a name.
    """

    def __init__(self, names: Names, listing: Callable[[], Awaitable[bytes]]) -> None:
        self.names = names
        self._listing = listing
        self._finding = asyncio.Lock()
        self._listed_at: float | None = None

    async def refresh(self) -> bytes:
        """The listing."""
        result = await self._listing()
        self._listed_at = asyncio.get_running_loop().time()
        return result

    async def find(self, shown: str) -> tuple[str, str] | None:
        """The server that a name means, and its own name for it; asks them before it says no.

        Raises:
            TransomError: they were asked, and all failed.
        """
        if (found := self.names.meant(shown)) is not None:
            return found
        async with self._finding:
            at, now = self._listed_at, asyncio.get_running_loop().time()
            if self.names.meant(shown) is None and (at is None or now - at >= _ASK_AGAIN):
                await self.refresh()
        return self.names.meant(shown)


def _renamed(value: Raw | bytes | None, before: str, after: str) -> bytes:
    if before == after:
        return bytes(value or b"{}")
    return with_member(value, "name", after)


def _text(value: Raw | bytes | None, key: str) -> str:
    text: object = member(value, key)
    if not isinstance(text, str):
        raise ProtocolError(INVALID_PARAMS, f"The params need a {key}, which is text")
    return text


def _unknown(method: str) -> str:
    return f"Method not found: {method[:200]}"
