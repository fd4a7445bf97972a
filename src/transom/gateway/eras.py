"""What the two versions of MCP do differently. No other module of the gateway asks which it is.

Up to 2025-11-25 a client shakes hands with its server, and both then talk over a lasting connection
(`HANDSHAKE`). 2026-07-28 made every request complete in itself, so that any replica of a server can
answer it (`STATELESS`). A gateway has clients of both in front of servers of both. What changed:

1. Who the client is. Before: it says so once, with `initialize`, and the answer says what the
   server can do. Now: every request has an envelope in its `_meta` (version, name, capabilities,
   log level). Any request may be the first; `server/discover` asks what the server can do.
   See `ClientIdentity` and `Era.introduced`.
2. Lists. Before: a list may change at any time, and the server notifies the client. Now: lists
   stand still, at least for what a call does. So the tools of a View that a call opened are not
   listed (`ClientRequest.naming`). Fixed tools list and call them, and name a View by a handle,
   which any client of the same user may send and nobody can guess (`Handles`).
3. Notifications. Before: the client gets all of them, and those of resources after
   `resources/subscribe`. Now: it gets what it asks for with `subscriptions/listen`, a request that
   stays open as a stream (`Era.has_streams`, `Translator.reaches_client`, `subscriptions.py`).
4. Input from the user. Before: the server sends a request of its own while it works. Now: it
   answers with a result that requires input, and the client calls again with the answers, as often
   as it takes (`ClientRequest.asks_in_answer`, `inputs.py`). That is why a View opens while a call
   runs, or when it has ended (`ClientRequest.opens_during_call`).
5. Tasks. Before: the client asks for one in its call, and waits with `tasks/result`. Now: an
   extension. The server decides; `tasks/get` has the result, there are no lists (`view_tasks.py`).
6. Results. Now: they have keys for one hop only, `resultType` and how long a list or a resource may
   be cached; structured content may be any JSON (`ClientRequest.own_result`, `.completed`).
7. An unknown resource is an error of its own code before, and one of invalid params now.
8. HTTP. Before: sessions, which begin with `initialize`. Now: none; headers repeat the request's
   version, method and name (`http.py`, `http_session.py`).

A request is read once, at the door, by `read_request`. Code behind the door asks the request, which
is a `_StatelessRequest` if it is of 2026-07-28: how it names a View, what form its result has. Of a
server, its `Translator` knows the version in which it answered the client's introduction; where
that is not the request's, it translates requests and results, in both directions.

`connections/versions.py` is this module's sibling at the servers: the same changes in what is sent
to one server, for a gateway and for a host alike. It has the parts, such as the envelope and the
two forms of a task, and nothing about clients.
"""

# ruff: noqa: ARG002 - an era does not use what only the other one needs

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

import msgspec
from msgspec import Raw

from transom.background import retrieve
from transom.connections.connection import ServerConnection
from transom.connections.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    LOG_LEVEL_KEY,
    PROTOCOL_KEY,
    TASKS_EXTENSION,
    is_complete,
    task_id_in,
    with_envelope,
    with_ui,
    without_envelope,
)
from transom.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ProtocolError,
    TransomError,
)
from transom.json_values import Members, member, members, with_member
from transom.protocol import wire
from transom.protocol.messages import TaskRequest
from transom.recent import Recent
from transom.session import OnProgress
from transom.types import Task

if TYPE_CHECKING:
    from transom.host.tools.surface import Naming

RESOURCE_NOT_FOUND: Final = -32002
_MAX_HANDLES = 1000
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_NONE: Final = Raw(b"{}")
_NOBODY: Final = Raw(b'{"name":"unknown","version":"0"}')
_TASKS: Final[dict[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_COMPLETE: Final = {"resultType": "complete"}
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
_ENVELOPE: Final = (PROTOCOL_KEY, CLIENT_KEY, CAPABILITIES_KEY)
_PROGRESS: Final = "progressToken"
_ASKING: Final = frozenset({"tools/call", "prompts/get", "resources/read"})
"""Methods of 2026-07-28 in whose answers the client may be asked for input."""
_REMOVED: Final = frozenset(
    {
        *("initialize", "ping", "logging/setLevel", "tasks/list", "tasks/result"),
        *("resources/subscribe", "resources/unsubscribe"),
    }
)
"""Methods that 2026-07-28 does not have any more."""
_CACHED: Final = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
        *("resources/read", "server/discover"),
    }
)
"""Methods whose results a 2026-07-28 client may cache."""


# --- the two eras ----------------------------------------------------------------------------


class Era:
    """A version of MCP, without its requests: how a server learns of its client, and what follows.

    This is the handshake's; `_Stateless` overrides all that 2026-07-28 changed.
    """

    introduction = "initialize"
    """The request by which a server learns of its client."""
    introduces_once = True
    """Whether a server needs it before any other request."""
    has_streams = False
    """Whether a client gets only the notifications that it opened a stream for."""
    takes_requests = True
    """Whether a client is sent requests; else it is asked for input in answers to its own."""

    def introduced(self, answer: bytes, name: str, requested: str) -> bytes:
        """A server's answer to an introduction of either era, in the form of this one.

        Args:
            answer: the server's answer.
            name: what the server is called here.
            requested: the version that the client asked for.
        """
        given = members(answer)
        if "protocolVersion" in given:
            return answer
        latest = HANDSHAKE_VERSIONS[-1]
        info = members(given.get("_meta")).get(_SERVER_INFO, {"name": name, "version": "0"})
        found = {
            "protocolVersion": requested if requested in HANDSHAKE_VERSIONS else latest,
            "capabilities": given.get("capabilities", _NONE),
            "serverInfo": info,
        }
        if "instructions" in given:
            found["instructions"] = given["instructions"]
        return wire.encode(found)

    def merged(self, answers: Sequence[bytes], info: Mapping[str, str]) -> dict[str, Any]:
        """The head of an answer for several servers, which is called `info`."""
        version = min(str(member(each, "protocolVersion")) for each in answers)
        return {"protocolVersion": version, "serverInfo": info}

    def own_result(self, result: bytes) -> bytes:
        """What the gateway itself answers, or what must not be cached."""
        return result


class _Stateless(Era):
    introduction = "server/discover"
    introduces_once = False
    has_streams = True
    takes_requests = False

    def introduced(self, answer: bytes, name: str, requested: str) -> bytes:
        given = members(answer)
        if "supportedVersions" in given:
            return with_member(answer, "supportedVersions", [DISCOVERY_VERSION])
        found: dict[str, Any] = {
            "supportedVersions": [DISCOVERY_VERSION],
            "capabilities": given.get("capabilities", _NONE),
        }
        if "serverInfo" in given:
            found["_meta"] = {_SERVER_INFO: given["serverInfo"]}
        if "instructions" in given:
            found["instructions"] = given["instructions"]
        return self.own_result(wire.encode(found))

    def merged(self, answers: Sequence[bytes], info: Mapping[str, str]) -> dict[str, Any]:
        return {"supportedVersions": [DISCOVERY_VERSION], "_meta": {_SERVER_INFO: info}}

    def own_result(self, result: bytes) -> bytes:
        return wire.encode({**members(result), **_COMPLETE, **_UNCACHED})


HANDSHAKE: Final = Era()
"""The versions up to 2025-11-25."""
STATELESS: Final = _Stateless()
"""2026-07-28."""
INTRODUCTIONS: Final[Mapping[str, Era]] = {era.introduction: era for era in (HANDSHAKE, STATELESS)}
"""By the request that asks for it, the form of a server's answer."""


def tasks_capability(answer: Raw | bytes) -> dict[str, Any]:
    """The tasks of the gateway, as capabilities in a server's answer to an introduction."""
    version = member(answer, "protocolVersion")
    if version is None:
        return {"extensions": {TASKS_EXTENSION: {}}}
    return {"tasks": _TASKS} if version == HANDSHAKE_VERSIONS[-1] else {}


class Handles:
    """The handles of Views, which cannot be guessed; the oldest are forgotten."""

    def __init__(self, on_changed: Callable[[], object]) -> None:
        self.by_view: Recent[str, str] = Recent(_MAX_HANDLES)
        self._on_changed = on_changed

    def of(self, view_id: str) -> str:
        """The handle of a View."""
        if view_id not in self.by_view:
            self.by_view[view_id] = f"{view_id}.{secrets.token_urlsafe(16)}"
            self._on_changed()
        return self.by_view[view_id]

    def names_of(self, view_id: str) -> tuple[str, str]:
        """What clients of either version call a View."""
        return view_id, self.of(view_id)

    def view_of(self, handle: object) -> str | None:
        """The id of the View with this handle, open or closed; None if there never was one."""
        view_id = handle.rpartition(".")[0] if isinstance(handle, str) else ""
        return view_id if handle and self.by_view.get(view_id) == handle else None


# --- requests of the client ------------------------------------------------------------------


class ClientRequest:
    """A request of the client, read once. What it does not name stays raw, and passes unchanged.

    This is one of the handshake's versions; `_StatelessRequest` overrides all that 2026-07-28
    changed.
    """

    __slots__ = ("envelope", "id", "members", "meta", "method", "name", "params", "servers")

    era: ClassVar[Era] = HANDSHAKE
    stands_alone: ClassVar[bool] = False
    """Whether it says who its client is, so that it may be the first."""
    opens_during_call: ClassVar[bool] = True
    """Whether a View opens while a call runs; else when it has ended, after rounds of input."""
    lists_change: ClassVar[bool] = True
    """Whether its client's lists may change because of a call."""
    asks_for_tasks: ClassVar[bool] = True
    """Whether a client asks for a task in its call; else the server decides, by the extension."""
    resource_not_found: ClassVar[int] = RESOURCE_NOT_FOUND
    """The code of that error."""

    def __init__(
        self,
        id: wire.RequestId,
        method: str,
        name: str | None,
        members: Members,
        meta: Members,
        params: bytes | None,
        envelope: Members | None = None,
        servers: set[str] | None = None,
    ) -> None:
        self.id = id
        self.method = method
        self.name = name
        """The tool or prompt that it is for."""
        self.members = members
        """Its params, each of them unread."""
        self.meta = meta
        self.params = params
        """As servers get it: an envelope says that Views can be shown."""
        self.envelope = envelope
        """Who its client is, if the request says so."""
        self.servers: set[str] = set() if servers is None else servers
        """The servers that work on it."""

    def text(self, key: str) -> str | None:
        """A param that is text; None if it is missing, or something else."""
        return _text(self.members.get(key))

    @property
    def uri(self) -> str | None:
        """The resource that it is for."""
        return self.text("uri")

    @property
    def task_id(self) -> str | None:
        """The task that it is for."""
        return self.text("taskId")

    @property
    def cursor(self) -> object:
        """Which page of a list it asks for; None: the first."""
        return member(self.members.get("cursor"))

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the tool.

        Raises:
            ProtocolError: they are not an object.
        """
        raw = self.members.get("arguments")
        if raw is None or bytes(raw) == b"null":
            return {}
        given: object = member(raw)
        if not isinstance(given, dict):
            text = f"Invalid arguments for {(self.name or '')[:128]}: not an object"
            raise ProtocolError(INVALID_PARAMS, text)
        return given  # pyright: ignore[reportUnknownVariableType]

    @property
    def progress_token(self) -> Raw | None:
        """Under which its client wants to hear of progress."""
        return self.meta.get(_PROGRESS)

    @property
    def capabilities(self) -> Members:
        """What its client can do, if the request says so."""
        return members(self.meta.get(CAPABILITIES_KEY))

    @property
    def has_tasks_extension(self) -> bool:
        """Whether its client knows the tasks of 2026-07-28."""
        return TASKS_EXTENSION in members(self.capabilities.get("extensions"))

    @property
    def is_for_task(self) -> bool:
        """Whether it asks for a task itself, so that its answer has no result yet."""
        return "task" in self.members

    def replaced(self, **values: object) -> Self:
        """The same request with other params; None leaves one out."""
        given = {key: each for key, each in self.members.items() if key not in values}
        given |= {key: wire.raw(value) for key, value in values.items() if value is not None}
        return self._with(self.id, given, self.meta, wire.encode(given))

    def renumbered(self, id: int) -> Self:
        """The same request under another id, which is its progress token too, if it has one."""
        given, meta, params = self.members, self.meta, self.params
        if member(self.progress_token) is not None:
            meta = {**meta, _PROGRESS: wire.raw(id)}
            given = {**given, "_meta": wire.raw(meta)}
            params = wire.encode(given)
        return self._with(id, given, meta, params)

    def _with(
        self, id: wire.RequestId, given: Members, meta: Members, params: bytes | None
    ) -> Self:
        same = given.get("name") is self.members.get("name")
        name = self.name if same else _text(given.get("name"))
        return type(self)(id, self.method, name, given, meta, params, self.envelope, self.servers)

    # --- what depends on its version ---------------------------------------------------------

    @property
    def introduces(self) -> bool:
        """Whether it is the introduction of its version."""
        return self.method == self.era.introduction

    @property
    def removed(self) -> bool:
        """Whether its version does not have the method any more: nobody is asked."""
        return False

    @property
    def asks_in_answer(self) -> bool:
        """Whether its client is asked for input in the answer; else it is sent requests."""
        return False

    @staticmethod
    def naming(wanted: Naming) -> Naming:
        """How its client is offered the tools of Views: indirectly, where no list may change."""
        return wanted

    def name_of(self, view_id: str, handles: Handles) -> str:
        """What its client calls a View."""
        return view_id

    def find_view(self, name: object, handles: Handles) -> Any:
        """The id of the View that its client calls so; None if there never was one."""
        return name

    def own_result(self, result: bytes) -> bytes:
        """A listing or resource of the gateway, or one that must not be cached, as its answer."""
        return self.era.own_result(result)

    def completed(self, result: bytes) -> bytes:
        """The result of a View's tool as its answer."""
        return result

    def task_wanted(self) -> TaskRequest | None:
        """How a call may run as a task: as it asks for, or as its client's capabilities allow."""
        try:
            wanted = self.members.get("task")
            return None if wanted is None else msgspec.json.decode(wanted, type=TaskRequest)
        except msgspec.DecodeError:
            return TaskRequest()

    def answers_with_task(self, result: object) -> bool:
        """Whether a call that may run as a task, and returned this, is answered with one."""
        return True  # the client asked for it

    def task_result(self, method: str, answer: bytes) -> Raw | bytes | None:
        """The result of its task in a server's answer to a request of that method, if it is there.

        The request is the one whose result is a task.
        """
        return answer if method == "tasks/result" else None

    def with_task_result(self, answer: bytes, result: bytes) -> bytes:
        """That answer with another result."""
        return result


class _StatelessRequest(ClientRequest):
    """A request of 2026-07-28."""

    __slots__ = ()

    era = STATELESS
    stands_alone = True
    opens_during_call = False
    lists_change = False
    asks_for_tasks = False
    resource_not_found = INVALID_PARAMS

    @property
    def removed(self) -> bool:
        return self.method in _REMOVED

    @property
    def asks_in_answer(self) -> bool:
        return self.method in _ASKING

    @staticmethod
    def naming(wanted: Naming) -> Naming:
        return "indirect" if wanted == "both" else wanted

    def name_of(self, view_id: str, handles: Handles) -> str:
        return handles.of(view_id)

    def find_view(self, name: object, handles: Handles) -> Any:
        return handles.view_of(name)

    def completed(self, result: bytes) -> bytes:
        given = members(result)
        return result if "resultType" in given else wire.encode({**given, **_COMPLETE})

    def task_wanted(self) -> TaskRequest | None:
        return TaskRequest() if self.has_tasks_extension else None

    def answers_with_task(self, result: object) -> bool:
        return isinstance(result, Task)

    def task_result(self, method: str, answer: bytes) -> Raw | bytes | None:
        return members(answer).get("result") if method == "tasks/get" else None

    def with_task_result(self, answer: bytes, result: bytes) -> bytes:
        return with_member(answer, "result", Raw(result))


def read_request(given: wire.Request) -> ClientRequest:
    """Read a request of either version."""
    found = members(given.params)
    meta = members(found.get("_meta"))
    name = _text(found.get("name"))
    params = None if given.params is None else bytes(given.params)
    if PROTOCOL_KEY not in meta:
        return ClientRequest(given.id, given.method, name, found, meta, params)
    version, capabilities = meta[PROTOCOL_KEY], meta.get(CAPABILITIES_KEY, b"")
    envelope = None
    # An incomplete envelope goes to the server unchanged, which will refuse it.
    if bytes(version).startswith(b'"') and bytes(capabilities).startswith(b"{"):
        envelope = {key: meta[key] for key in _ENVELOPE if key in meta}
        meta[CAPABILITIES_KEY] = with_ui(capabilities)
        found["_meta"] = wire.raw(meta)
        params = wire.encode(found)
    return _StatelessRequest(given.id, given.method, name, found, meta, params, envelope)


def _text(value: Raw | None) -> str | None:
    found = member(value)
    return found if isinstance(found, str) else None


def read_stateless_request(given: wire.Request) -> ClientRequest:
    """Read a request that came where only those of 2026-07-28 can be served.

    Raises:
        ProtocolError: that version does not have its method, or it has no envelope.
    """
    if given.method in _REMOVED:
        raise ProtocolError(METHOD_NOT_FOUND, "Method not found", given.method)
    request = read_request(given)
    missing = [key for key in (PROTOCOL_KEY, CAPABILITIES_KEY) if key not in request.meta]
    if missing:
        raise ProtocolError(INVALID_PARAMS, f"The _meta lacks {' and '.join(missing)}")
    return request


def streams_list_views(naming: Naming) -> bool:
    """Whether clients that have streams see the tools of Views in their list."""
    return _StatelessRequest.naming(naming) != "indirect"


def ends_call(result: bytes) -> bool:
    """Whether a result ends its call: it neither requires input nor is a task."""
    return is_complete(result) and "task" not in members(result)


class ClientIdentity:
    """Who the client is, in the form of either era, whichever it used itself."""

    def __init__(self) -> None:
        self.initialize: bytes | None = None
        """The params of its `initialize`, as servers get them."""
        self.initialized = False
        """Whether it sent `notifications/initialized`."""
        self.envelope: Mapping[str, Raw] | None = None
        """The envelope of its last request, if its requests have one."""
        self.sent_envelope = False
        """Whether a request ever had one."""
        self.log_level: bytes | None = None
        """The params of its last `logging/setLevel`."""

    @property
    def era(self) -> Era:
        """The era that it began with: a client that tried 2026-07-28 first may go back."""
        return STATELESS if self.initialize is None else HANDSHAKE

    @property
    def takes_requests(self) -> bool:
        """Whether it is sent requests; else it is asked for input in answers to its own."""
        return self.era.takes_requests

    @property
    def known(self) -> bool:
        """Whether it has said who it is."""
        return self.initialize is not None or self.envelope is not None

    @property
    def introductions(self) -> list[tuple[str, bytes | None]]:
        """The requests by which servers learn of it, method and params; its own era's first."""
        envelope = self.own_envelope
        if envelope is None:
            return []
        handshake = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": with_ui(envelope.get(CAPABILITIES_KEY)),
            "clientInfo": envelope.get(CLIENT_KEY, _NOBODY),
        }
        both = [
            (STATELESS.introduction, with_envelope(None, envelope)),
            (HANDSHAKE.introduction, self.initialize or wire.encode(handshake)),
        ]
        return both if self.envelope is not None else both[::-1]

    @property
    def own_envelope(self) -> Mapping[str, Raw] | None:
        """The envelope for 2026-07-28 servers, whatever the client's version."""
        if self.envelope is not None or self.initialize is None:
            return self.envelope
        given = members(self.initialize)
        level = members(self.log_level).get("level")
        return {
            PROTOCOL_KEY: wire.raw(DISCOVERY_VERSION),
            CLIENT_KEY: given.get("clientInfo", _NOBODY),
            CAPABILITIES_KEY: given["capabilities"],
            **({} if level is None else {LOG_LEVEL_KEY: level}),
        }

    def supports(self, capability: str) -> bool:
        """Whether the client declared a capability."""
        return capability in members((self.own_envelope or {}).get(CAPABILITIES_KEY))

    def take(self, request: ClientRequest) -> None:
        """Learn who the client is from a request."""
        if request.envelope is not None:
            self.envelope = request.envelope
            self.sent_envelope = True
        if request.method == HANDSHAKE.introduction:
            capabilities = with_ui(request.members.get("capabilities"))
            self.initialize = wire.encode({**request.members, "capabilities": capabilities})
            self.envelope = None


# --- requests to a server of the other era ---------------------------------------------------


class Translator:
    """Sends a client's requests to a server in the server's version, and translates its results.

    Args:
        connection: to the server.
        can: whether the server declared a capability.
        identity: who the client is.
        notify: sends the client a notification: that a resource changed to which it subscribed,
            which a 2026-07-28 server said on a stream.
    """

    def __init__(
        self,
        connection: ServerConnection,
        can: Callable[[str], bool],
        identity: ClientIdentity,
        notify: Callable[[str, bytes], object],
    ) -> None:
        self._era: Era | None = None  # the server's; while it is unknown, requests pass unchanged
        # What an older server was set to for requests of 2026-07-28, which each have a level.
        self._log_level: str | None = None
        self._connection = connection
        self._can = can
        self._identity = identity
        self._notify = notify
        self._listening: dict[str, asyncio.Future[Raw]] = {}

    def introduced(self, introduction: str, capabilities: Mapping[str, Any]) -> None:
        """The server has answered this introduction of its client."""
        self._era = INTRODUCTIONS[introduction]
        connection, identity = self._connection, self._identity
        if self._era is HANDSHAKE:
            connection.introduced(capabilities)
            if identity.initialized or identity.envelope is not None:
                connection.notify("notifications/initialized")
            return
        connection.introduced(capabilities, lambda: identity.own_envelope)
        if identity.envelope is None:  # an older client expects notifications
            connection.listen_to_lists()

    # --- which version it is -----------------------------------------------------------------

    @property
    def known(self) -> bool:
        """Whether the server's version is known."""
        return self._era is not None

    @property
    def has_streams(self) -> bool | None:
        """Whether the server has streams for its notifications; None: that is not known."""
        return None if self._era is None else self._era.has_streams

    @property
    def introduces_again(self) -> bool:
        """Whether a server that was restarted needs an introduction, for itself or its client."""
        eras = (self._identity.era, self._era)
        return any(each is not None and each.introduces_once for each in eras)

    def speaks(self, request: ClientRequest) -> bool:
        """Whether the server has the version of a request."""
        return self._era is request.era

    def passes(self, request: ClientRequest) -> bool:
        """Whether the server can get a request without translation, as far as is known."""
        return (request.envelope is not None) is (self._era is STATELESS)

    # --- notifications -----------------------------------------------------------------------

    def forward_notification(self, notification: wire.Notification) -> None:
        """Forward a notification of the client's, unless the server has the other version."""
        if self._era in (None, self._identity.era):
            self._connection.notify(notification.method, notification.params)

    def reaches_client(self, method: str, *, only: bool) -> bool:
        """Whether a notification of the server's goes to the client, not just to its streams.

        `only`: this is the client's only server.
        """
        identity = self._identity
        if self.has_streams is False and identity.era.has_streams:
            # What it did not open a stream for it does not get, but the log of its own requests.
            return method == "notifications/message" and self._log_level is not None
        # A client that is not introduced has not listed anything yet.
        early = identity.era.introduces_once and not identity.initialized
        return only or not early or not method.endswith("/list_changed")

    # --- requests ----------------------------------------------------------------------------

    async def forward(self, request: ClientRequest, on_progress: OnProgress | None) -> bytes:
        """Send a request; its result in the version of the request."""
        method, params = request.method, request.params
        if self._era is None or self._era is request.era:
            return await self._connection.forward(method, params, on_progress=on_progress)
        if self._era is STATELESS:
            return await self._forward_to_newer(request, on_progress)
        await self._set_level_of(request)
        sent = without_envelope(params)
        try:
            if method == "tools/call" and self._must_be_task(request.name):
                result = await self._call_as_task(sent)
            else:
                result = await self._connection.forward(method, sent, on_progress=on_progress)
        except ProtocolError as error:
            if error.code == RESOURCE_NOT_FOUND:
                raise ProtocolError(INVALID_PARAMS, error.message, error.data) from None
            raise
        cached = _UNCACHED if method in _CACHED else {}
        return wire.encode({**members(result), **_COMPLETE, **cached})

    # --- a newer client, an older server -----------------------------------------------------

    def _must_be_task(self, name: str | None) -> bool:
        """Whether a tool requires a task, which a newer client cannot request."""
        tool = None if name is None else self._connection.tool_cache.known(name)
        execution = None if tool is None else tool.execution
        return execution is not None and execution.task_support == "required"

    async def _call_as_task(self, params: bytes | None) -> bytes:
        """Call a tool as a task of 2025-11-25, and wait for its result."""
        connection = self._connection
        result = await connection.forward("tools/call", with_member(params, "task", {}))
        id = task_id_in(result)
        if id is None:
            return result
        asked = wire.encode({"taskId": id})
        try:
            return await connection.forward("tasks/result", asked)
        except asyncio.CancelledError:
            with suppress(TransomError):
                connection.send_request("tasks/cancel", asked).add_done_callback(retrieve)
            raise

    async def _set_level_of(self, request: ClientRequest) -> None:
        level: object = member(request.meta.get(LOG_LEVEL_KEY))
        if isinstance(level, str) and level != self._log_level and self._can("logging"):
            self._log_level = level
            with suppress(ProtocolError):
                given = wire.encode({"level": level})
                await self._connection.forward("logging/setLevel", given)

    # --- an older client, a newer server -----------------------------------------------------

    async def _forward_to_newer(
        self, request: ClientRequest, on_progress: OnProgress | None
    ) -> bytes:
        uri = request.uri
        match request.method:
            case "ping" | "logging/setLevel":  # each request has the log level
                return b"{}"
            case "resources/subscribe" if uri is not None:
                self._listen(uri)
                return b"{}"
            case "resources/unsubscribe" if uri is not None:
                if (listening := self._listening.pop(uri, None)) is not None:
                    listening.cancel()
                return b"{}"
            case method:
                params = request.params
                return await self._connection.request(method, params, on_progress=on_progress)

    def _listen(self, uri: str) -> None:
        """Have a 2026-07-28 server notify of a resource."""

        def handle(notification: wire.Notification) -> None:
            if notification.method == "notifications/resources/updated":
                given = members(notification.params)
                given.pop("_meta", None)
                self._notify(notification.method, wire.encode(given))

        if uri not in self._listening or self._listening[uri].done():
            wanted = wire.encode({"notifications": {"resourceSubscriptions": [uri]}})
            listening = self._listening[uri] = self._connection.listen(wanted, handle, stamp=True)
            listening.add_done_callback(retrieve)  # the server may refuse it

    # --- a server that was restarted ---------------------------------------------------------

    async def resubscribe(self, uri: str, params: bytes) -> None:
        """Subscribe to a resource again, as the client did with these params."""
        if self._era is STATELESS:
            self._listen(uri)
        else:
            await self._connection.forward("resources/subscribe", params)

    async def restore_level(self, params: bytes) -> None:
        """Set the log level again that the client set with these params."""
        if self._era is not STATELESS:
            await self._connection.forward("logging/setLevel", params)
