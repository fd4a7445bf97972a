"""The proxy between one client and its servers: one or many, which look like one to the client.

1. Params and results pass unchanged. What is added: to introductions, that Views can be shown and
   that lists change; to lists, the tools and resources of Views; to results of tools, what Views
   send to the model. Ids and progress tokens are translated on both sides.
2. With several servers, their lists are merged into one page each, names are made unique (`lists`),
   and a request goes to the server that has what it names. What belongs to no particular server
   goes to all of them (notifications, the log level), or to the first that supports the method.
3. With one server nothing is renamed or merged, and its errors and pages pass through.
4. The client and each server may speak different versions of MCP, which only `eras` knows about.
5. Requests reach a server in order, unless one has to wait for a lookup. What a server sent before
   a result reaches the client before that result.
6. Every request of the client is answered once. When a server is lost, its requests fail and its
   Views close; the other servers are not affected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from msgspec import Raw

from transom.background import shared_task
from transom.channel import Channel
from transom.connections.connection import Connect
from transom.connections.versions import task_id_in
from transom.errors import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    ProtocolError,
    TransomError,
)
from transom.gateway.client import Client, ReadRequest, progress_relay
from transom.gateway.client_host import ViewOptions, ViewRecords
from transom.gateway.client_views import STANDING_TOOLS, ClientViews
from transom.gateway.eras import INTRODUCTIONS, ClientRequest, read_request
from transom.gateway.inputs import Inputs
from transom.gateway.lists import MergedLists, has_invalid_headers
from transom.gateway.members import LISTS, Member, Members
from transom.gateway.merge import (
    merge_introductions,
    renamed,
    server_names,
    with_own_capabilities,
)
from transom.gateway.subscriptions import Subscriptions
from transom.host.tools.tool_visibility import model_may_call
from transom.json_values import member as member_of
from transom.json_values import members, with_entries
from transom.protocol import wire
from transom.recent import Recent
from transom.session import SentRequest
from transom.types import Tool

_MAX_ASKING = 1000  # requests of one server that the client has not answered
_MAX_TASKS = 10_000
_TASK_METHODS = ("tasks/get", "tasks/result", "tasks/update", "tasks/cancel")
_FIRST_REQUESTS = frozenset({"ping", *INTRODUCTIONS})

Handler = Callable[[ClientRequest], Awaitable[bytes]]
CheckCall = Callable[[ClientRequest, Tool], object]
"""Raises ProtocolError if a call of a server's tool did not come as its transport demands."""


class _ServerTask(msgspec.Struct, frozen=True):
    """A task of a server, and the call that began it if its result opens a View."""

    server: Member
    call: ClientRequest | None = None
    opens: Tool | None = None


class Proxy:
    """Serves one client. `run` returns when the client is gone.

    Args:
        channel: to the client.
        servers: the servers: a name, and what starts or reaches each of them.
        views: how Views are shown.
        client_name: what the user sees the client as.
        records: of the Views that the client had at another replica of the gateway.
        hung_after: seconds of silence after which a server that owes an answer is restarted.
        check_call: checks calls of tools whose arguments are repeated in HTTP headers.
        read: gives the client's requests, if they were read where they came in.
    """

    def __init__(
        self,
        channel: Channel,
        servers: Sequence[tuple[str, Connect]],
        views: ViewOptions,
        *,
        client_name: str = "",
        records: ViewRecords | None = None,
        hung_after: float = 300.0,
        check_call: CheckCall | None = None,
        read: ReadRequest = read_request,
    ) -> None:
        self.closing = False
        """Whether it is being closed; a signal is then ignored."""
        names = server_names([name for name, _ in servers])
        connects = [connect for _, connect in servers]
        self._client = client = Client(channel, self, read)
        self._inputs = inputs = Inputs(client)
        self._members = Members(
            zip(names, connects, strict=True),
            client,
            inputs,
            self,
            hung_after=hung_after,
            identities=views.identities,
            traffic=views.traffic,
        )
        self._subscriptions = Subscriptions(client, self._members)
        self._views = ClientViews(
            views, client, inputs, self._subscriptions, client_name=client_name, records=records
        )
        self._lists = MergedLists(self._members, self._views, checks_headers=check_call is not None)
        self._check_call = check_call
        self._introducing: asyncio.Future[Any] | None = None
        self._tasks: Recent[str, _ServerTask] = Recent(_MAX_TASKS)
        self._handlers: dict[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": self._ping,
            "logging/setLevel": self._set_level,
            "subscriptions/listen": self._listen,
            "tools/list": self._lists.tools,
            "tools/call": self._call_tool,
            "prompts/list": self._lists.prompts,
            "prompts/get": self._get_prompt,
            "resources/list": self._lists.resources,
            "resources/templates/list": self._lists.templates,
            "resources/read": self._read_resource,
            "resources/subscribe": self._subscribe,
            "resources/unsubscribe": self._unsubscribe,
            "completion/complete": self._complete,
            "tasks/list": self._list_tasks,
            **dict.fromkeys(_TASK_METHODS, self._request_task),
        }

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

    def pass_on(self, request: ClientRequest) -> SentRequest | None:
        """Send a request to the only server at once, if neither request nor answer needs any work.

        Returns:
            The result; None if the request has to be handled otherwise.
        """
        only, method = self._members.only, request.method
        if only is None or not only.connection.up or not only.translator.passes(request):
            return None
        if method == "tools/call":
            cache = only.connection.tool_cache
            if self._views.has_part_in(only.connection, request) or (
                self._check_call is not None and cache.mirrors_arguments(request.name)
            ):
                return None
        elif method in self._handlers:
            return None
        self._client.identity.take(request)
        relay = self._client.progress_relay(request)
        return only.connection.send_request(method, request.params, on_progress=relay)

    async def handle_request(self, request: ClientRequest) -> bytes:
        """Answer a request of the client's; the result as JSON."""
        if request.removed:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found", request.method)
        self._client.identity.take(request)
        only = self._members.only
        # A single server gets what its own version needs: `initialize` is passed on like the rest.
        unknown = only is None or (request.stands_alone and not only.translator.known)
        if unknown and request.method not in _FIRST_REQUESTS:
            await self._introduced()
        handler = self._handlers.get(request.method, self._members.forward_any)
        if not request.asks_in_answer:
            return await handler(request)
        return await self._inputs.run(request, lambda: handler(request))

    def handle_notification(self, notification: wire.Notification) -> None:
        """Forward a notification of the client to every server of its version."""
        identity = self._client.identity
        if notification.method == "notifications/initialized":
            identity.initialized = identity.initialize is not None
        for each in self._members.present:
            each.translator.forward_notification(notification)

    def wait_writable(self) -> Awaitable[None] | None:
        """An awaitable while the servers are slow to read, else None."""
        return self._members.wait_writable()

    async def _introduced(self) -> None:
        """Wait until the client was introduced to the servers."""
        if not self._client.identity.known:
            raise ProtocolError(INVALID_REQUEST, "The first request must be initialize")
        introducing = self._introducing
        if introducing is None or (self._members.only is not None and introducing.done()):
            # Any request may be the first, if it says who its client is.
            introducing = self._introducing = shared_task(self._members.introduce_all())
        if not introducing.done():
            await asyncio.wait([introducing])  # if it fails, each request fails by itself

    # --- from servers ------------------------------------------------------------------------

    def on_server_request(
        self, member: Member, request: wire.Request
    ) -> bytes | Awaitable[bytes | Raw]:
        """Forward a server's request to the client."""
        if not self._client.identity.takes_requests:
            if request.method == "ping":
                return b"{}"
            return self._inputs.ask(request.method, request.params, member.name)
        if member.asking >= _MAX_ASKING:
            text = f"{_MAX_ASKING} requests are already waiting for the client"
            raise ProtocolError(SERVER_ERROR, text)

        def answered(_: object) -> None:
            member.asking -= 1

        token = members(members(request.params).get("_meta")).get("progressToken")
        relay = progress_relay(token, member.connection.notify)
        sent = self._client.send_request(request.method, request.params, relay)
        member.asking += 1
        sent.add_done_callback(answered)
        return sent

    def on_server_notification(self, member: Member, notification: wire.Notification) -> None:
        """Forward a server's notification to the client, or to streams that subscribed to it."""
        method, params = notification.method, notification.params
        translator = member.translator
        if translator.has_streams is False:
            if method == "notifications/resources/updated":
                uri: object = member_of(params, "uri")
                if isinstance(uri, str):
                    self._subscriptions.notify_resource_updated(uri)
            elif method.endswith("/list_changed"):
                self._subscriptions.notify_list_changed(method.split("/")[1], client=False)
        if translator.reaches_client(method, only=member is self._members.only):
            self._client.notify(method, params)

    def on_server_lists_changed(self, member: Member, method: str) -> None:
        """A list changed: a client without streams is notified of what a server says on its own."""
        if member.translator.has_streams and self._client.identity.initialized:
            self._client.notify(method)

    def on_server_lost(self, member: Member, reason: str) -> None:
        """A server was lost: close its Views and drop what it listed."""
        self._views.server_lost(member.name, reason)
        self.on_server_came(member)

    def on_server_came(self, member: Member) -> None:
        """A server can be used: its lists have changed."""
        for name in LISTS:
            if member.can(name):
                self._subscriptions.notify_list_changed(name)

    # --- the introduction --------------------------------------------------------------------

    async def _initialize(self, request: ClientRequest) -> bytes:
        requested = str(member_of(request.members.get("protocolVersion")))
        await self._introduce()
        return self._introduction(request.method, requested)

    async def _discover(self, request: ClientRequest) -> bytes:
        only = self._members.only
        if only is not None and (not request.introduces or only.translator.speaks(request)):
            answer = await only.forward(request)
            found = INTRODUCTIONS[request.method].introduced(answer, only.name, "")
            return with_own_capabilities(found)
        if not request.introduces:
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found: server/discover")
        if only is None:
            await self._introduced()
        elif not only.translator.known:
            await self._introduce(request.params)
        return self._introduction(request.method)

    async def _introduce(self, params: bytes | None = None) -> None:
        self._introducing = shared_task(self._members.introduce_all(params))
        await asyncio.shield(self._introducing)

    def _introduction(self, method: str, requested: str = "") -> bytes:
        """The servers' answer to an introduction that they have had."""
        only = self._members.only
        if only is not None:
            answer = INTRODUCTIONS[method].introduced(
                only.introduction or b"{}", only.name, requested
            )
            return with_own_capabilities(answer)
        present = self._members.present
        answers = {each.name: each.introduction for each in present if each.introduction}
        if not answers:
            raise ProtocolError(SERVER_ERROR, "No server can be used")
        missing = len(present) < len(list(self._members))
        return merge_introductions(method, answers, requested, missing=missing)

    async def _ping(self, request: ClientRequest) -> bytes:
        only = self._members.only
        return b"{}" if only is None else await only.forward(request)

    async def _set_level(self, request: ClientRequest) -> bytes:
        if request.params is not None:
            self._client.identity.log_level = request.params
        able = self._members.able("logging")
        sending = (each.forward(request) for each in able)
        answers = await asyncio.gather(*sending, return_exceptions=True)
        results = [answer for answer in answers if isinstance(answer, bytes)]
        errors = [answer for answer in answers if isinstance(answer, BaseException)]
        if errors and not results:
            raise errors[0]
        return results[0] if results else b"{}"

    async def _listen(self, request: ClientRequest) -> bytes:
        request = self._views.tasks.without_own(request)
        try:
            return await self._subscriptions.listen(request)
        except msgspec.DecodeError:
            return await self._members.forward_any(request)  # the server refuses it

    # --- tools and prompts -------------------------------------------------------------------

    async def _call_tool(self, request: ClientRequest) -> bytes:
        name = self._text(request.name, "name")
        if name is None:
            return self._views.with_messages(await self._members.forward_any(request))
        if name in STANDING_TOOLS and not self._views.learned:
            with suppress(TransomError):  # without a listing, it is not known whether a View opens
                await self._lists.relist_tools()
        owned = self._views.owns(request)
        found = None if owned else await self._lists.find_tool(name)
        if found is None and self._views.owns(request):
            return await self._views.call(request)
        if found is None:
            raise self._members.unknown("tool", name)
        server, own = found
        call = request if own == name else request.replaced(name=own)
        if not server.connection.current:
            await server.ready()
            with suppress(TransomError):
                await server.connection.tools()
        tool = server.connection.tool_cache.known(own)
        if (
            tool is None
        ):  # it may be new, and for Views only; a server may also answer unlisted names
            with suppress(TransomError):
                tool = await server.connection.tool_cache.tool(own)
        if tool is not None and not model_may_call(tool):
            raise self._members.unknown("tool", name)
        mirrors = server.connection.tool_cache.mirrors_arguments(own)
        if self._check_call is not None and mirrors and tool is not None:
            if has_invalid_headers(Raw(msgspec.json.encode(tool))):
                raise self._members.unknown("tool", name)
            self._check_call(call, tool)

        async def forward() -> bytes:
            result = await server.forward(call)
            if (id := task_id_in(result)) is not None:
                self._remember_task(server, id, call.replaced(task=None))
            return result

        opens = self._views.opened_by(server.connection, call)
        if opens is not None:
            return await self._views.open(server.connection, opens, call, forward)
        return self._views.with_messages(await forward())

    async def _get_prompt(self, request: ClientRequest) -> bytes:
        name = self._text(request.name, "name")
        if name is None:
            return await self._members.forward_any(request)
        server, own = await self._lists.find_prompt(name)
        asked = request if own == name else request.replaced(name=own)
        return await server.forward(asked)

    async def _complete(self, request: ClientRequest) -> bytes:
        ref = request.members.get("ref")
        kind: object = member_of(ref, "type")
        if (
            kind == "ref/prompt"
            and (name := self._text(member_of(ref, "name"), "name")) is not None
        ):
            server, own = await self._lists.find_prompt(name)
            asked = request.replaced(ref=Raw(renamed(ref, name, own)))
            return await server.forward(asked)
        if kind == "ref/resource" and (uri := self._text(member_of(ref, "uri"), "uri")) is not None:
            only = self._members.only
            candidates = self._members.candidates(uri)
            able = [each for each in candidates if each is only or each.can("completions")]
            return await self._members.forward_any(request, able)
        if self._members.only is None:
            raise ProtocolError(INVALID_PARAMS, "The ref must be a ref/prompt or a ref/resource")
        return await self._members.forward_any(request)

    def _text(self, given: object, key: str) -> str | None:
        """A required text of the params; None if it is missing, for the only server to refuse."""
        if isinstance(given, str):
            return given
        if self._members.only is None:
            raise ProtocolError(INVALID_PARAMS, f"The params need a {key}, which is text")
        return None

    # --- resources ---------------------------------------------------------------------------

    async def _read_resource(self, request: ClientRequest) -> bytes:
        uri = self._text(request.uri, "uri")
        if uri is None:
            return await self._members.forward_any(request)
        own = self._views.read(uri, request)
        if own is not None:
            return request.own_result(own)
        return (await self._forward_to_owner(request, uri))[1]

    async def _subscribe(self, request: ClientRequest) -> bytes:
        uri = self._text(request.uri, "uri")
        if uri is None:
            return await self._members.forward_any(request)
        if self._views.read(uri, request) is not None:
            self._subscriptions.subscribe(uri)
            return b"{}"
        if self._members.owner(uri) is None:
            # Many servers accept a subscription to any URI, so find the owner first.
            await self._lists.relist_resources()
        server, result = await self._forward_to_owner(request, uri)
        server.subscriptions[uri] = request.params or b"{}"
        return result

    async def _unsubscribe(self, request: ClientRequest) -> bytes:
        uri = self._text(request.uri, "uri")
        if uri is None:
            return await self._members.forward_any(request)
        if self._subscriptions.unsubscribe(uri):
            return b"{}"
        for each in self._members:
            if each.subscriptions.pop(uri, None) is not None:
                return await each.forward(request)
        return (await self._forward_to_owner(request, uri))[1]

    async def _forward_to_owner(self, request: ClientRequest, uri: str) -> tuple[Member, bytes]:
        text = f"Resource not found: {uri[:1000]}"
        missing = ProtocolError(request.resource_not_found, text, {"uri": uri})
        return await self._members.first(self._members.candidates(uri), request, missing)

    # --- tasks -------------------------------------------------------------------------------

    async def _list_tasks(self, request: ClientRequest) -> bytes:
        result, listed, last = await self._lists.list_page(request, "tasks", optional=True)
        if listed is None:
            return result
        entries: list[Raw | bytes] = []
        for server, theirs in listed:
            for entry in theirs:
                self._remember_task(server, member_of(entry, "taskId"))
            entries += theirs
        entries += self._views.tasks.listed() if last else []
        return with_entries(result, "tasks", entries)

    async def _request_task(self, request: ClientRequest) -> bytes:
        """Forward a request about a task to the View or server that has it."""
        id = request.task_id
        if id in self._views.tasks:
            return await self._views.tasks.answer(request)
        task = None if id is None else self._tasks.get(id)
        if task is None or id is None:
            able = [each for each in self._members.able() if each.has_tasks]
            if not able:  # then the only tasks that a client knows of are those of Views
                return await self._views.tasks.answer(request)
            return await self._members.forward_any(request, able, only=None)
        answer = await task.server.forward(request)
        if task.call is None or task.opens is None:
            return answer
        result = task.call.task_result(request.method, answer)
        if result is None or self._tasks.get(id) is not task:
            return answer
        self._tasks[id] = _ServerTask(task.server)  # the View opens once
        connection = task.server.connection
        shown = await self._views.show(connection, task.opens, task.call, bytes(result))
        return task.call.with_task_result(answer, shown)

    def _remember_task(self, server: Member, id: object, call: ClientRequest | None = None) -> None:
        """Record that a server has a task of that id, begun by this call if given."""
        known = self._tasks.get(id) if isinstance(id, str) else None
        if not isinstance(id, str) or (
            known is not None and (call is None or known.server is not server)
        ):
            return  # a task stays with the server that had its id first
        opens = None if call is None else self._views.opened_by(server.connection, call)
        self._tasks[id] = _ServerTask(server, call, opens)
