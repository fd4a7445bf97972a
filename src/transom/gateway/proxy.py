"""The proxy between one client and its servers: one or many, which look like one to the client.

1. Params and results pass unchanged. What is added: to `initialize` and `server/discover`, that
   Views can be shown and that lists change; to lists, the tools and resources of Views; to results
   of tools, what Views send to the model. Ids and progress tokens are translated on both sides.
2. With several servers, their lists are merged into one page each, names are made unique (`merge`),
   and a request goes to the server that has what it names. What belongs to no particular server
   goes to all of them (notifications, the log level), or to the first that supports the method.
3. With one server nothing is renamed or merged, and its errors and pages pass through. Each request
   has its version of MCP. If its server speaks another, requests and answers are translated: in
   `Member.forward` for requests, in `Inputs` for input from the client, and here for notifications.
4. Requests reach a server in order, unless one has to wait for a lookup. What a server sent before
   a result reaches the client before that result.
5. Every request of the client is answered once. When a server is lost, its requests fail and its
   Views close; the other servers are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec import Raw

from transom.background import retrieve
from transom.channel import Channel
from transom.connections.connection import Connect
from transom.connections.versions import is_modern, task_id_in, without_task
from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    ConnectionClosed,
    ProtocolError,
    TransomError,
)
from transom.gateway.client import (
    ACKNOWLEDGED,
    OWN_RESOURCES,
    Client,
    ClientState,
    Stream,
    progress_relay,
)
from transom.gateway.client_views import STANDING_TOOLS, ClientViews, ToolCall, ToolHead
from transom.gateway.inputs import ASKING, Inputs
from transom.gateway.members import LISTS, RESOURCE_NOT_FOUND, Member, Members
from transom.gateway.merge import (
    Names,
    as_discovered,
    as_initialized,
    as_modern,
    merge_discovered,
    merge_initialized,
    renamed,
    server_names,
    with_own_capabilities,
)
from transom.host.policy import model_may_call
from transom.json_values import as_object, members, with_entries, with_member, without_marks
from transom.json_values import member as member_of
from transom.protocol import wire
from transom.session import SentRequest
from transom.types import Tool

_RELIST_AFTER = 1.0  # seconds between listings that look for an unknown name
_ACKNOWLEDGED_WITHIN = 10.0  # seconds that a stream waits for the last of several servers
_MAX_ASKING = 1000  # requests of one server that the client has not answered
_MAX_TASKS = 10_000
_TASK_METHODS = ("tasks/get", "tasks/result", "tasks/update", "tasks/cancel")
_FIRST_REQUESTS = frozenset({"initialize", "server/discover", "ping"})

T = TypeVar("T")
Handler = Callable[[wire.Request], Awaitable[bytes]]
Listed = list[tuple[Member, list[Raw]]]
"""The entries that each server listed."""
Merge = Callable[[Listed], list[Raw | bytes]]
"""Merges the entries of several servers into one list."""


class Proxy:
    """Serves one client. `run` returns when the client is gone."""

    def __init__(
        self,
        channel: Channel,
        servers: Sequence[tuple[str, Connect]],
        views: ClientViews,
        *,
        hung_after: float = 300.0,
    ) -> None:
        self.closing = False
        """Whether it is being closed; a signal is then ignored."""
        names = server_names([name for name, _ in servers])
        self._views = views
        self._client = Client(
            channel,
            pass_on=self._pass_on,
            on_request=self._handle_request,
            on_notification=self._handle_notification,
            wait_for_servers=lambda: self._members.wait_writable(),
        )
        self._state = ClientState(self._client.notify)
        self._inputs = Inputs(self._client, self._state)
        connects = [connect for _, connect in servers]
        self._members = Members(
            zip(names, connects, strict=True), self._state, self, hung_after=hung_after
        )
        self._introducing: asyncio.Future[Any] | None = None
        self._tools = _Directory(Names(names, STANDING_TOOLS), self._relist_tools)
        self._prompts = _Directory(Names(names), self._relist_prompts)
        self._tasks: dict[str, Member] = {}
        self._opening: dict[str, tuple[Tool, ToolCall]] = {}  # by task: calls that open a View
        self._handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self._listen,
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": partial(self._list_others, key="prompts", merge=self._merge_prompts),
            "prompts/get": self._get_prompt,
            "resources/list": self._list_resources,
            "resources/templates/list": partial(
                self._list_others, key="resourceTemplates", merge=self._merge_templates
            ),
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "completion/complete": self._complete,
            "tasks/list": self._list_tasks,
            **dict.fromkeys(_TASK_METHODS, self._request_task),
        }
        views.attach(self._client, self._state, self._inputs)

    async def run(self) -> None:
        """Start the servers and serve the client until it is gone."""
        try:
            await self._members.start()
            await self._client.serve()
        finally:
            self.closing = True
            self._inputs.close()
            await self._client.aclose()
            await asyncio.gather(self._views.aclose(), self._members.aclose())

    # --- from the client ---------------------------------------------------------------------

    def _pass_on(self, request: wire.Request) -> SentRequest | None:
        """Send a request to the only server at once, if neither request nor answer needs any work.

        Returns:
            The result; None if the request has to be handled otherwise.
        """
        only, method = self._members.only, request.method
        if only is None or not only.connection.up:
            return None
        if method == "tools/call":
            if self._views.has_part_in(only.connection, request.params):
                return None
        elif method in self._handlers:
            return None
        params = None if request.params is None else bytes(request.params)
        if params is None or b'"_meta"' not in params:  # neither an envelope nor a progress token
            return None if only.modern else only.connection.send_request(method, params)
        given, request = request, self._state.take_request(request)
        if (request is not given) is not bool(only.modern):
            return None  # it has to be translated, or that is not known yet
        relay = self._client.progress_relay(request.params)
        return only.connection.send_request(method, request.params, on_progress=relay)

    async def _handle_request(self, request: wire.Request) -> bytes:
        """Answer a request of the client's; the result as JSON."""
        request = self._state.take_request(request)
        modern, only = is_modern(request.params), self._members.only
        unknown = only is None or (modern and only.modern is None)
        if unknown and request.method not in _FIRST_REQUESTS:
            await self._introduced()
        handler = self._handlers.get(request.method, self._forward_any)
        if modern and request.method in ASKING:
            return await self._inputs.run(request, lambda: handler(request))
        return await handler(request)

    def _handle_notification(self, notification: wire.Notification) -> None:
        """Forward a notification of the client to every server of its version."""
        if notification.method == "notifications/initialized":
            self._state.initialized = self._state.initialize is not None
        modern = self._state.initialize is None
        for each in self._members.present:
            if each.modern is None or each.modern is modern:
                each.connection.notify(notification.method, notification.params)

    async def _introduced(self) -> None:
        """Wait until the client was introduced to the servers."""
        if not self._state.introductions:
            raise ProtocolError(INVALID_REQUEST, "The first request must be initialize")
        introducing, only = self._introducing, self._members.only
        if introducing is None or (only is not None and introducing.done()):
            # 2026-07-28: any request may be the first
            work = self._members.introduce_all() if only is None else self._introduce_only(only)
            introducing = self._introducing = asyncio.ensure_future(work)
        if not introducing.done():
            await asyncio.wait([introducing])
        if not introducing.cancelled():
            introducing.exception()  # each request fails by itself

    async def _introduce_only(self, only: Member, params: Raw | bytes | None = None) -> None:
        await only.ready()
        await self._members.introduce(only, params)

    # --- to and from servers -----------------------------------------------------------------

    async def _forward(
        self, request: wire.Request, server: Member, params: Raw | bytes | None = None
    ) -> bytes:
        """Forward a request to a server, with `params` in place of the client's if given."""
        self._inputs.concerns(server.name)
        return await server.forward(
            request.method,
            request.params if params is None else params,
            on_progress=self._client.progress_relay(request.params),
        )

    async def _forward_first(
        self,
        request: wire.Request,
        servers: Sequence[Member],
        only: int | None = METHOD_NOT_FOUND,
    ) -> bytes:
        """Forward a request to one server after another, until one supports the method."""
        unknown = ProtocolError(METHOD_NOT_FOUND, f"Method not found: {request.method[:200]}")
        _, result = await self._members.first(
            servers,
            request.method,
            request.params,
            unknown,
            only=only,
            on_progress=self._client.progress_relay(request.params),
        )
        return result

    async def _forward_any(self, request: wire.Request) -> bytes:
        return await self._forward_first(request, self._members.able())

    def on_server_request(
        self, member: Member, request: wire.Request
    ) -> bytes | Awaitable[bytes | Raw]:
        """Forward a server's request to the client."""
        if self._state.initialize is None:
            if request.method == "ping":
                return b"{}"
            return self._inputs.ask(request.method, request.params, member.name)
        if member.asking >= _MAX_ASKING:
            text = f"{_MAX_ASKING} requests are already waiting for the client"
            raise ProtocolError(SERVER_ERROR, text)

        def answered(_: object) -> None:
            member.asking -= 1

        relay = progress_relay(request.params, member.connection.notify)
        sent = self._inputs.send(request.method, request.params, relay)
        member.asking += 1
        sent.add_done_callback(answered)
        return sent

    def on_server_notification(self, member: Member, notification: wire.Notification) -> None:
        """Forward a server's notification to the client, or to streams that subscribed to it."""
        method = notification.method
        if member.modern is False:
            uri: object = member_of(notification.params, "uri")
            if method == "notifications/resources/updated" and isinstance(uri, str):
                self._state.notify_resource_updated(uri)
            elif method.endswith("/list_changed"):
                self._state.notify_list_changed(method.split("/")[1], handshake=False)
            if self._state.initialize is None and (
                method != "notifications/message" or member.log_level is None
            ):
                return  # a 2026-07-28 client gets only what it subscribed to
        unsolicited = self._state.initialize is not None and not self._state.initialized
        if unsolicited and self._members.only is None and method.endswith("/list_changed"):
            return  # the client has not listed anything yet
        self.on_resource_updated(notification)

    def on_resource_updated(self, notification: wire.Notification) -> None:
        """Forward the notification to the client."""
        params = notification.params
        self._client.notify(notification.method, None if params is None else bytes(params))

    def on_server_lists_changed(self, member: Member, method: str) -> None:
        """A list changed: a client that began with `initialize` is notified of any server's."""
        if member.modern and self._state.initialized:
            self._client.notify(method)

    def on_server_lost(self, member: Member, reason: str) -> None:
        """A server was lost: close its Views and drop what it listed."""
        self._views.server_lost(member.name, reason)
        self.on_server_came(member)

    def on_server_came(self, member: Member) -> None:
        """A server can be used: its lists have changed."""
        for name in LISTS:
            if member.can(name):
                self._state.notify_list_changed(name)

    async def answer_input(self, member: Member, result: bytes) -> dict[str, Any]:
        """Have the client answer what a server's result asks for."""
        return await self._inputs.answer(result, member.name)

    def wait_client_writable(self) -> Awaitable[None] | None:
        """An awaitable while the client is slow to read."""
        return self._client.wait_writable()

    # --- the introduction --------------------------------------------------------------------

    async def _initialize(self, request: wire.Request) -> bytes:
        self._state.take_initialize(request.params)
        requested = str(member_of(request.params, "protocolVersion"))
        only = self._members.only
        if only is not None:
            await self._introduce(self._introduce_only(only))
            answer = as_initialized(only.introduction or b"{}", only.name, requested)
            return with_own_capabilities(answer)
        present = await self._introduce(self._members.introduce_all())
        missing = len(present) < len(list(self._members))
        return merge_initialized(_answers(present), requested, missing=missing)

    async def _discover(self, request: wire.Request) -> bytes:
        only = self._members.only
        if only is not None and (only.modern or not is_modern(request.params)):
            return with_own_capabilities(await self._forward(request, only))
        if only is not None:
            if only.modern is None:
                await self._introduce(self._introduce_only(only, request.params))
            return with_own_capabilities(as_discovered(only.introduction or b"{}"))
        if not is_modern(request.params):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found: server/discover")
        await self._introduced()
        present = self._members.present
        if not present:
            raise ProtocolError(SERVER_ERROR, "No server can be used")
        missing = len(present) < len(list(self._members))
        return merge_discovered(_answers(present), missing=missing)

    async def _introduce(self, introducing: Awaitable[T]) -> T:
        task = self._introducing = asyncio.ensure_future(introducing)
        return await asyncio.shield(task)

    async def _ping(self, request: wire.Request) -> bytes:
        only = self._members.only
        return b"{}" if only is None else await self._forward(request, only)

    async def _set_level(self, request: wire.Request) -> bytes:
        if request.params is not None:
            self._state.log_level = bytes(request.params)
        sending = (self._forward(request, each) for each in self._members.able("logging"))
        answers = await asyncio.gather(*sending, return_exceptions=True)
        results = [answer for answer in answers if isinstance(answer, bytes)]
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors and not results:
            raise errors[0]
        return results[0] if results else b"{}"

    # --- streams -----------------------------------------------------------------------------

    async def _listen(self, request: wire.Request) -> bytes:
        """Open a 2026-07-28 stream to the client, fed by every server that has streams."""
        servers = list(self._members)
        request = self._views.tasks.without_own(request)
        try:
            stream = Stream(request, self._client.notify, [each.name for each in servers])
        except msgspec.DecodeError:
            return await self._forward_any(request)  # the server refuses it
        self._state.add_stream(request.id, stream)
        listening = [asyncio.ensure_future(self._listen_to(each, stream)) for each in servers]
        try:
            if self._members.only is None:
                await asyncio.wait(listening, timeout=_ACKNOWLEDGED_WITHIN)
                stream.stop_waiting()
            await asyncio.wait(listening)
            ends = [each.result() for each in listening]
            if None in ends:  # a server has no streams, but the gateway serves this one
                await asyncio.Event().wait()
            for end in ends:
                if isinstance(end, bytes):
                    return stream.ended(end)
            raise next(end for end in ends if isinstance(end, ProtocolError))
        finally:
            self._state.remove_stream(request.id)
            for each in listening:
                each.cancel()

    async def _listen_to(self, server: Member, stream: Stream) -> bytes | ProtocolError | None:
        """Feed a stream from one server, also after it was restarted.

        Returns:
            The result or error with which the server ended it; None if it has no streams.
        """

        def handle(notification: wire.Notification) -> None:
            if notification.method == ACKNOWLEDGED:
                stream.acknowledge(server.name, notification.params)
            else:
                stream.notify(notification.method, members(notification.params))

        while True:
            connection = server.connection
            if not connection.up:
                stream.skip(server.name)
                await connection.wait_up(None)
            if server.modern is False:
                await self._listen_to_older(server, stream)
            try:
                return bytes(await connection.listen(stream.server_params, handle))
            except ConnectionClosed:
                stream.skip(server.name)
                await asyncio.sleep(0)
            except ProtocolError as error:
                if error.code == METHOD_NOT_FOUND:
                    stream.skip(server.name)
                    return None
                stream.refuse(server.name)
                return error

    async def _listen_to_older(self, server: Member, stream: Stream) -> None:
        """Subscribe at an older server to the resources of a stream, until it is cancelled."""
        honoured: list[str] = []
        can = as_object((server.capabilities or {}).get("resources")).get("subscribe") is True
        try:
            for uri in stream.server_uris if can else ():
                if self._members.owner(uri) not in (None, server):
                    continue
                server.streams[uri] += 1
                honoured.append(uri)
                if uri not in server.subscriptions:
                    params = server.subscriptions[uri] = wire.encode({"uri": uri})
                    with suppress(TransomError):
                        await server.connection.forward("resources/subscribe", params)
            stream.acknowledge_for(server.name, honoured, prompts=server.can("prompts"))
            await asyncio.Event().wait()
        finally:
            for uri in honoured:
                server.streams[uri] -= 1
                if not server.streams[uri]:
                    del server.streams[uri], server.subscriptions[uri]
                    if server.connection.up:
                        server.connection.send_request(
                            "resources/unsubscribe", wire.encode({"uri": uri})
                        ).add_done_callback(retrieve)

    # --- lists -------------------------------------------------------------------------------

    async def _list(
        self, request: wire.Request, key: str, *, optional: bool = False
    ) -> tuple[bytes, Listed | None, bool]:
        """The lists of all servers, or a page of the only one's; `optional`: it may have none.

        Returns:
            The result without the entries; the entries of each server, or None if a single server's
            result is not a listing and passes unchanged; and whether this is the last page.
        """
        only = self._members.only
        if only is None and member_of(request.params, "cursor") is not None:
            raise ProtocolError(INVALID_PARAMS, "Invalid cursor: there is one page only")
        try:
            if only is None:
                listed = await self._list_all(request.method, key)
                return _own_result(request, b"{}"), listed, True
            result = await self._forward(request, only)
        except ProtocolError as error:
            if error.code != METHOD_NOT_FOUND or not optional:
                raise
            return _own_result(request, b"{}"), [], True
        try:
            entries = msgspec.json.decode(members(result).get(key, b"[]"), type=list[Raw])
        except msgspec.DecodeError:
            return result, None, True
        return result, [(only, entries)], member_of(result, "nextCursor") is None

    async def _list_all(self, method: str, key: str) -> Listed:
        return await self._members.list_all(method, key, method.partition("/")[0])

    async def _list_tools(self, request: wire.Request) -> bytes:
        first = member_of(request.params, "cursor") is None
        result, listed, last = await self._list(request, "tools")
        if listed is None:
            return result
        entries = self._merge_tools(listed, whole=first and last)
        if last:
            more, changing = await self._views.tools(modern=is_modern(request.params))
            entries += more
            if changing:  # this list must not be cached, whatever the server says
                result = _own_result(request, result)
        return with_entries(result, "tools", entries)

    def _merge_tools(self, listed: Listed, *, whole: bool) -> list[Raw | bytes]:
        merged: list[Raw | bytes] = []
        heads: dict[str, ToolHead] = {}
        for server, entries in listed:
            if whole:
                server.connection.tool_cache.fill(entries)
            for entry in entries:
                try:
                    head = msgspec.json.decode(entry, type=ToolHead)
                except msgspec.DecodeError:
                    # It has no name to call it by. With a single server, the client sees it anyway.
                    if server is self._members.only:
                        merged.append(entry)
                    continue
                shown = self._tools.names.shown(server.name, head.name) if head.for_model else None
                if shown is None or (shown in heads and server is not self._members.only):
                    continue
                heads.setdefault(shown, ToolHead(shown, head.meta))
                merged.append(without_marks(bytes(renamed(entry, head.name, shown))))
        self._views.learn_tools(heads.values())
        return merged

    async def _relist_tools(self) -> None:
        self._merge_tools(await self._list_all("tools/list", "tools"), whole=True)

    async def _list_others(self, request: wire.Request, key: str, merge: Merge) -> bytes:
        """A list to which the gateway adds nothing."""
        result, listed, _ = await self._list(request, key)
        if listed is None:
            return result
        return with_entries(result, key, self._merged(listed, merge))

    def _merged(self, listed: Listed, merge: Merge) -> list[Raw | bytes]:
        """The entries of all servers; those of a single server unchanged."""
        only = self._members.only
        return merge(listed) if only is None else [each for _, page in listed for each in page]

    def _merge_prompts(self, listed: Listed) -> list[Raw | bytes]:
        merged: dict[str, Raw | bytes] = {}
        for server, entries in listed:
            for name, entry in _by(entries, "name").items():
                shown = self._prompts.names.shown(server.name, name)
                if shown is not None:
                    merged.setdefault(shown, renamed(entry, name, shown))
        return list(merged.values())

    async def _relist_prompts(self) -> None:
        self._merge_prompts(await self._list_all("prompts/list", "prompts"))

    async def _list_resources(self, request: wire.Request) -> bytes:
        result, listed, last = await self._list(request, "resources", optional=True)
        if listed is None:
            return result
        entries = self._merged(listed, self._merge_resources)
        if last:
            entries += self._views.resources(modern=is_modern(request.params))
        return with_entries(result, "resources", entries)

    @staticmethod
    def _merge_resources(listed: Listed) -> list[Raw | bytes]:
        merged: dict[str, Raw | bytes] = {}
        for server, entries in listed:
            theirs = _by(entries, "uri")
            server.uris = frozenset(theirs)
            for uri, entry in theirs.items():
                if not uri.startswith(OWN_RESOURCES):
                    merged.setdefault(uri, entry)
        return list(merged.values())

    @staticmethod
    def _merge_templates(listed: Listed) -> list[Raw | bytes]:
        merged: dict[str, Raw | bytes] = {}
        for server, entries in listed:
            theirs = _by(entries, "uriTemplate")
            server.templates = tuple(theirs)
            for template, entry in theirs.items():
                merged.setdefault(template, entry)
        return list(merged.values())

    async def _relist_resources(self) -> None:
        for method, key, merge in (
            ("resources/list", "resources", self._merge_resources),
            ("resources/templates/list", "resourceTemplates", self._merge_templates),
        ):
            with suppress(TransomError):  # a server may have only one of them
                merge(await self._list_all(method, key))

    # --- tools and prompts -------------------------------------------------------------------

    async def _call_tool(self, request: wire.Request) -> bytes:
        name = self._text(request.params, "name")
        if name is None:
            return self._views.with_messages(await self._forward_any(request))
        modern = is_modern(request.params)
        if name in STANDING_TOOLS and not self._views.learned:
            with suppress(TransomError):  # without a listing, it is not known whether a View opens
                await self._relist_tools()
        owned = self._views.owns(name, modern=modern)
        found = None if owned else await self._tools.find(name)
        if found is None and self._views.owns(name, modern=modern):
            return await self._views.call(ToolCall(name, request.params, modern))
        if found is None:
            raise self._members.unknown("tool", name)
        server, own = self._members[found[0]], found[1]
        params = request.params if own == name else Raw(renamed(request.params, name, own))
        if not server.connection.current:
            await server.ready()
            with suppress(TransomError):
                await server.connection.tools()
        tool = server.connection.tool_cache.known(own)
        if tool is not None and not model_may_call(tool):
            raise self._members.unknown("tool", name)

        call = ToolCall(own, params, modern)

        async def forward() -> bytes:
            result = await self._forward(request, server, params)
            if (id := task_id_in(result)) is not None:
                plain = Raw(without_task(None if params is None else bytes(params)))
                self._remember_task(server, id, ToolCall(own, plain, modern))
            return result

        opens = self._views.opened_by(server.connection, call)
        if opens is not None:
            return await self._views.open(server.connection, opens, call, forward)
        return self._views.with_messages(await forward())

    async def _get_prompt(self, request: wire.Request) -> bytes:
        name = self._text(request.params, "name")
        if name is None:
            return await self._forward_any(request)
        server, own = await self._prompt(name)
        return await self._forward(request, server, renamed(request.params, name, own))

    async def _prompt(self, name: str) -> tuple[Member, str]:
        """The server that has a prompt, and its own name for it."""
        found = await self._prompts.find(name)
        if found is None:
            raise self._members.unknown("prompt", name)
        return self._members[found[0]], found[1]

    async def _complete(self, request: wire.Request) -> bytes:
        ref = members(request.params).get("ref")
        kind: object = member_of(ref, "type")
        if kind == "ref/prompt" and (name := self._text(ref, "name")) is not None:
            server, own = await self._prompt(name)
            params = {**members(request.params), "ref": Raw(renamed(ref, name, own))}
            return await self._forward(request, server, wire.encode(params))
        if kind == "ref/resource" and (uri := self._text(ref, "uri")) is not None:
            only = self._members.only
            candidates = self._members.candidates(uri)
            able = [each for each in candidates if each is only or each.can("completions")]
            return await self._forward_first(request, able)
        if self._members.only is None:
            raise ProtocolError(INVALID_PARAMS, "The ref must be a ref/prompt or a ref/resource")
        return await self._forward_any(request)

    def _text(self, params: Raw | None, key: str) -> str | None:
        """A required text of the params; None if it is missing, for the only server to refuse."""
        text: object = member_of(params, key)
        if isinstance(text, str):
            return text
        if self._members.only is None:
            raise ProtocolError(INVALID_PARAMS, f"The params need a {key}, which is text")
        return None

    # --- resources ---------------------------------------------------------------------------

    async def _read_resource(self, request: wire.Request) -> bytes:
        uri = self._text(request.params, "uri")
        if uri is None:
            return await self._forward_any(request)
        own = self._views.read(uri, modern=is_modern(request.params))
        if own is not None:
            return _own_result(request, own)
        return (await self._forward_to_owner(request, uri))[1]

    async def _subscribe(self, request: wire.Request) -> bytes:
        uri = self._text(request.params, "uri")
        if uri is None:
            return await self._forward_any(request)
        if self._views.read(uri, modern=False) is not None:
            self._state.subscribe(uri)
            return b"{}"
        if self._members.owner(uri) is None:
            # Many servers accept a subscription to any URI, so find the owner first.
            await self._relist_resources()
        server, result = await self._forward_to_owner(request, uri)
        server.subscriptions[uri] = bytes(request.params or b"{}")
        return result

    async def _unsubscribe(self, request: wire.Request) -> bytes:
        uri = self._text(request.params, "uri")
        if uri is None:
            return await self._forward_any(request)
        if self._state.unsubscribe(uri):
            return b"{}"
        for each in self._members:
            if each.subscriptions.pop(uri, None) is not None:
                return await self._forward(request, each)
        return (await self._forward_to_owner(request, uri))[1]

    async def _forward_to_owner(self, request: wire.Request, uri: str) -> tuple[Member, bytes]:
        text = f"Resource not found: {uri[:1000]}"
        code = INVALID_PARAMS if is_modern(request.params) else RESOURCE_NOT_FOUND
        return await self._members.first(
            self._members.candidates(uri),
            request.method,
            request.params,
            ProtocolError(code, text, {"uri": uri}),
            on_progress=self._client.progress_relay(request.params),
        )

    # --- tasks -------------------------------------------------------------------------------

    async def _list_tasks(self, request: wire.Request) -> bytes:
        optional = not is_modern(request.params)
        result, listed, last = await self._list(request, "tasks", optional=optional)
        if listed is None:
            return result
        entries: list[Raw | bytes] = []
        for server, theirs in listed:
            for entry in theirs:
                self._remember_task(server, member_of(entry, "taskId"))
            entries += theirs
        entries += self._views.tasks.listed() if last else []
        return with_entries(result, "tasks", entries)

    async def _request_task(self, request: wire.Request) -> bytes:
        """Forward a request about a task to the View or server that has it."""
        id: object = member_of(request.params, "taskId")
        if id in self._views.tasks:
            return await self._views.tasks.answer(request.method, request.params)
        server = self._tasks.get(id) if isinstance(id, str) else None
        if server is None:
            only = self._members.only
            able = [each for each in self._members.able() if each is only or each.has_tasks]
            return await self._forward_first(request, able, only=None)
        answer = await self._forward(request, server)
        opening = self._opening.get(id) if isinstance(id, str) else None
        if opening is None or not isinstance(id, str):
            return answer
        tool, call = opening
        if request.method != ("tasks/get" if call.modern else "tasks/result"):
            return answer
        result = members(answer).get("result") if call.modern else answer
        if result is None or self._opening.pop(id, None) is None:
            return answer
        shown = await self._views.show(server.connection, tool, call, bytes(result))
        return with_member(answer, "result", Raw(shown)) if call.modern else shown

    def _remember_task(self, server: Member, id: object, call: ToolCall | None = None) -> None:
        """Record that a server has a task of that id."""
        if not isinstance(id, str):
            return
        self._tasks.setdefault(id, server)
        if len(self._tasks) > _MAX_TASKS:
            del self._tasks[next(iter(self._tasks))]
        tool = None if call is None else self._views.opened_by(server.connection, call)
        if call is not None and tool is not None:
            self._opening[id] = tool, call
            if len(self._opening) > _MAX_TASKS:
                del self._opening[next(iter(self._opening))]


class _Directory:
    """Finds the server that a name belongs to, for one kind of names."""

    def __init__(self, names: Names, relist: Callable[[], Awaitable[object]]) -> None:
        self.names = names
        self._relist = relist
        self._finding = asyncio.Lock()
        self._relisted_at = float("-inf")

    async def find(self, shown: str) -> tuple[str, str] | None:
        """The server of a name, and its own name for it; lists again before it returns None."""
        if (found := self.names.meant(shown)) is not None:
            return found
        async with self._finding:
            now = asyncio.get_running_loop().time()
            if self.names.meant(shown) is None and now - self._relisted_at >= _RELIST_AFTER:
                await self._relist()
                self._relisted_at = now
        return self.names.meant(shown)


def _by(entries: Sequence[Raw], key: str) -> dict[str, Raw]:
    """Entries by one of their texts; the first one if several have the same."""
    found: dict[str, Raw] = {}
    for entry in entries:
        text: object = member_of(entry, key)
        if isinstance(text, str):
            found.setdefault(text, entry)
    return found


def _own_result(request: wire.Request, result: bytes) -> bytes:
    """A listing or resource of the gateway, in the request's version of the protocol."""
    return as_modern(result) if is_modern(request.params) else result


def _answers(present: Sequence[Member]) -> dict[str, bytes]:
    return {each.name: each.introduction for each in present if each.introduction is not None}
