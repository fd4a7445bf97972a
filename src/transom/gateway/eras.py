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
   listed (`Era.lists_change`). Fixed tools list and call them, and name a View by a handle, which
   any client of the same user may send and nobody can guess (`Handles`).
3. Notifications. Before: the client gets all of them, and those of resources after
   `resources/subscribe`. Now: it gets what it asks for with `subscriptions/listen`, a request that
   stays open as a stream (`Era.has_streams`, `subscriptions.py`).
4. Input from the user. Before: the server sends a request of its own while it works. Now: it
   answers with a result that requires input, and the client calls again with the answers, as often
   as it takes (`Era.asks_in_answers`, `inputs.py`). That is why a View opens while a call runs, or
   when it has ended (`Era.opens_during_call`).
5. Tasks. Before: the client asks for one in its call, and waits with `tasks/result`. Now: an
   extension. The server decides; `tasks/get` has the result, there are no lists (`CallTasks`).
6. Results. Now: they have keys for one hop only, `resultType` and how long a list or a resource may
   be cached; structured content may be any JSON (`Era.own_result`, `Era.completed`).
7. An unknown resource is an error of its own code before, and one of invalid params now.
8. HTTP. Before: sessions, which begin with `initialize`. Now: none; headers repeat the request's
   version, method and name (`http.py`, `http_session.py`).

A request is read once, at the door, as a `ClientRequest`, which has its era. A server has the era
in which it answered the client's introduction. If they differ, the server's `Translator` translates
requests and results, in both directions.
"""

# ruff: noqa: ARG002 - an era does not use what only the other one needs

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

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
    MISSING_CAPABILITY,
    PROTOCOL_KEY,
    TASKS_EXTENSION,
    as_extension_task,
    task_id_in,
    with_envelope,
    with_ui,
    without_envelope,
)
from transom.errors import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    ProtocolError,
    TransomError,
)
from transom.json_values import Members, member, members, with_member
from transom.protocol import wire
from transom.protocol.messages import CreateTaskResult, TaskRequest
from transom.recent import Recent
from transom.session import OnProgress
from transom.types import Task, ToolResult
from transom.view.tasks import TaskRecord, TaskStore

if TYPE_CHECKING:
    from transom.host.tools.surface import Naming

RESOURCE_NOT_FOUND: Final = -32002
MAX_TASK_TIME: Final = 24 * 3600.0  # seconds
_TASK_AFTER = 0.5  # seconds until a call becomes a task of the extension
_MAX_HANDLES = 1000
_SERVER_INFO: Final = "io.modelcontextprotocol/serverInfo"
_NONE: Final = Raw(b"{}")
_NOBODY: Final = Raw(b'{"name":"unknown","version":"0"}')
_TASKS: Final[dict[str, Any]] = {"list": {}, "cancel": {}, "requests": {"tools": {"call": {}}}}
_COMPLETE: Final = {"resultType": "complete"}
_UNCACHED: Final = {"ttlMs": 0, "cacheScope": "private"}
_CACHED: Final = frozenset(
    {
        *("tools/list", "prompts/list", "resources/list", "resources/templates/list"),
        *("resources/read", "server/discover"),
    }
)
"""Methods whose results a 2026-07-28 client may cache."""


# --- the two eras ----------------------------------------------------------------------------


class Era:
    """A version of MCP: what it has, and the form of what the gateway itself answers in it.

    This is the handshake's; `_Stateless` overrides all that 2026-07-28 changed.
    """

    introduction = "initialize"
    """The request by which a server learns of its client."""
    introduces_once = True
    """Whether a server needs it before any other request."""
    lists_change = True
    """Whether lists may change because of a call."""
    has_streams = False
    """Whether a client gets only the notifications that it opened a stream for."""
    asks_in_answers: frozenset[str] = frozenset()
    """The requests in whose answers a client is asked for input; none: it is sent requests."""
    opens_during_call = True
    """Whether a View opens while a call runs; else when it has ended, after rounds of input."""
    removed_methods: frozenset[str] = frozenset()
    """Methods of earlier versions that it does not have: nobody is asked, and nothing changes."""
    resource_not_found = RESOURCE_NOT_FOUND
    """The code of that error."""
    task_result_method = "tasks/result"
    """The request whose answer has the result of a task."""

    def naming(self, wanted: Naming) -> Naming:
        """How the tools of Views are offered: indirectly, where no list may change."""
        return "indirect" if wanted == "both" and not self.lists_change else wanted

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
        """A listing or resource of the gateway, or one that must not be cached."""
        return result

    def completed(self, result: bytes) -> bytes:
        """The result of a View's tool."""
        return result

    def view_name(self, view_id: str, handles: Handles) -> str:
        """What the client calls a View."""
        return view_id

    def view_named(self, name: object, handles: Handles) -> Any:
        """The id of the View that the client calls so; None if there never was one."""
        return name

    def task_wanted(self, request: ClientRequest) -> TaskRequest | None:
        """How a call may run as a task: as it asks for, or as its client's capabilities allow."""
        try:
            wanted = request.members.get("task")
            return None if wanted is None else msgspec.json.decode(wanted, type=TaskRequest)
        except msgspec.DecodeError:
            return TaskRequest()

    def answers_with_task(self, result: object) -> bool:
        """Whether a call that may run as a task, and returned this, is answered with one."""
        return True  # the client asked for it

    def task_result(self, answer: bytes) -> Raw | bytes | None:
        """The result of a server's task in the answer to `task_result_method`, if it has ended."""
        return answer

    def with_task_result(self, answer: bytes, result: bytes) -> bytes:
        """That answer with another result."""
        return result


class _Stateless(Era):
    introduction = "server/discover"
    introduces_once = False
    lists_change = False
    has_streams = True
    asks_in_answers = frozenset({"tools/call", "prompts/get", "resources/read"})
    opens_during_call = False
    removed_methods = frozenset(
        {
            *("initialize", "ping", "logging/setLevel", "tasks/list", "tasks/result"),
            *("resources/subscribe", "resources/unsubscribe"),
        }
    )
    resource_not_found = INVALID_PARAMS
    task_result_method = "tasks/get"

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

    def completed(self, result: bytes) -> bytes:
        given = members(result)
        return result if "resultType" in given else wire.encode({**given, **_COMPLETE})

    def view_name(self, view_id: str, handles: Handles) -> str:
        return handles.of(view_id)

    def view_named(self, name: object, handles: Handles) -> Any:
        return handles.view_of(name)

    def task_wanted(self, request: ClientRequest) -> TaskRequest | None:
        return TaskRequest() if request.has_tasks_extension else None

    def answers_with_task(self, result: object) -> bool:
        return isinstance(result, Task)

    def task_result(self, answer: bytes) -> Raw | bytes | None:
        return members(answer).get("result")

    def with_task_result(self, answer: bytes, result: bytes) -> bytes:
        return with_member(answer, "result", Raw(result))


HANDSHAKE: Era = Era()
"""The versions up to 2025-11-25."""
STATELESS: Era = _Stateless()
"""2026-07-28."""
ERAS: Final = (HANDSHAKE, STATELESS)
INTRODUCTIONS: Final = {era.introduction: era for era in ERAS}


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

    def view_of(self, handle: object) -> str | None:
        """The id of the View with this handle, open or closed; None if there never was one."""
        view_id = handle.rpartition(".")[0] if isinstance(handle, str) else ""
        return view_id if handle and self.by_view.get(view_id) == handle else None


# --- requests of the client ------------------------------------------------------------------


class ClientRequest:
    """A request of the client, read once. What it does not name stays raw, and passes unchanged."""

    __slots__ = ("envelope", "era", "id", "members", "meta", "method", "params", "servers")

    def __init__(self, request: wire.Request) -> None:
        self.id = request.id
        self.method = request.method
        self.members = members(request.params)
        """Its params, each of them unread."""
        self.meta = members(self.members.get("_meta"))
        self.era = STATELESS if PROTOCOL_KEY in self.meta else HANDSHAKE
        self.envelope = self._read_envelope() if self.era is STATELESS else None
        """Who its client is, if the request says so."""
        self.params: bytes | None = None if request.params is None else bytes(request.params)
        """As servers get it: an envelope says that Views can be shown."""
        if self.envelope is not None:
            self.meta[CAPABILITIES_KEY] = with_ui(self.meta[CAPABILITIES_KEY])
            self.members["_meta"] = wire.raw(self.meta)
            self.params = wire.encode(self.members)
        self.servers: set[str] = set()
        """The servers that work on it."""

    def _read_envelope(self) -> Members | None:
        meta = self.meta
        version, capabilities = meta[PROTOCOL_KEY], meta.get(CAPABILITIES_KEY, b"")
        # An incomplete envelope goes to the server unchanged, which will refuse it.
        if not bytes(version).startswith(b'"') or not bytes(capabilities).startswith(b"{"):
            return None
        return {
            key: meta[key] for key in (PROTOCOL_KEY, CLIENT_KEY, CAPABILITIES_KEY) if key in meta
        }

    def text(self, key: str) -> str | None:
        """A param that is text; None if it is missing, or something else."""
        found = member(self.members.get(key))
        return found if isinstance(found, str) else None

    @property
    def name(self) -> str | None:
        """The tool or prompt that it is for."""
        return self.text("name")

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
        return self.meta.get("progressToken")

    @property
    def capabilities(self) -> Members:
        """What its client can do, if the request says so."""
        return members(self.meta.get(CAPABILITIES_KEY))

    @property
    def has_tasks_extension(self) -> bool:
        """Whether its client knows the tasks of 2026-07-28."""
        return TASKS_EXTENSION in members(self.capabilities.get("extensions"))

    def replaced(self, **values: object) -> ClientRequest:
        """The same request with other params; None leaves one out."""
        changed = object.__new__(ClientRequest)
        changed.id, changed.method, changed.era = self.id, self.method, self.era
        changed.meta, changed.envelope, changed.servers = self.meta, self.envelope, self.servers
        changed.members = {key: each for key, each in self.members.items() if key not in values}
        for key, value in values.items():
            if value is not None:
                changed.members[key] = wire.raw(value)
        changed.params = wire.encode(changed.members)
        return changed

    def fits(self, era: Era | None) -> bool:
        """Whether a server of this era, or of an unknown one, can get it without translation."""
        return (self.envelope is not None) is (era is STATELESS)


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
        notify: sends the client a notification: that a resource changed to which it subscribed,
            which a 2026-07-28 server said on a stream.
    """

    def __init__(
        self,
        connection: ServerConnection,
        can: Callable[[str], bool],
        notify: Callable[[str, bytes], object],
    ) -> None:
        self.era: Era | None = None
        """The server's; None while that is not known: requests pass unchanged."""
        self.log_level: str | None = None
        """What an older server was set to for requests of 2026-07-28, which each have a level."""
        self._connection = connection
        self._can = can
        self._notify = notify
        self._listening: dict[str, asyncio.Future[Raw]] = {}

    def introduced(
        self, era: Era, capabilities: Mapping[str, Any], identity: ClientIdentity
    ) -> None:
        """The server has answered the introduction of this era."""
        self.era = era
        connection = self._connection
        if era is HANDSHAKE:
            connection.introduced(capabilities)
            if identity.initialized or identity.envelope is not None:
                connection.notify("notifications/initialized")
            return
        connection.introduced(capabilities, lambda: identity.own_envelope)
        if identity.envelope is None:  # an older client expects notifications
            connection.listen_to_lists()

    async def forward(self, request: ClientRequest, on_progress: OnProgress | None) -> bytes:
        """Send a request; its result in the version of the request."""
        method, params = request.method, request.params
        if self.era is None or self.era is request.era:
            return await self._connection.forward(method, params, on_progress=on_progress)
        if self.era is STATELESS:
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
        if isinstance(level, str) and level != self.log_level and self._can("logging"):
            self.log_level = level
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
        if self.era is STATELESS:
            self._listen(uri)
        else:
            await self._connection.forward("resources/subscribe", params)

    async def restore_level(self, params: bytes) -> None:
        """Set the log level again that the client set with these params."""
        if self.era is not STATELESS:
            await self._connection.forward("logging/setLevel", params)


# --- tasks -----------------------------------------------------------------------------------


class CallTasks:
    """Calls of Views' tools that one client runs as tasks, in both forms.

    A result is stored for the task's `ttl`, even if its View is closed meanwhile.
    """

    def __init__(self) -> None:
        self._store = TaskStore(_no_host)

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and id in self._store

    def close(self) -> None:
        """Cancel and drop every task."""
        self._store.close()

    async def run(self, era: Era, outcome: Awaitable[bytes], wanted: TaskRequest) -> bytes:
        """Run a call as a task, and answer with its handle.

        With the extension, a call that is quick is answered with its result.
        """
        if era is HANDSHAKE:
            return CreateTaskResult(task=self._store.start(outcome, wanted.ttl).task).to_wire()
        record = self._store.start(outcome, None)
        try:
            async with asyncio.timeout(_TASK_AFTER):
                await record.ended.wait()
        except TimeoutError:
            return wire.encode({**_extension_task(record), "resultType": "task"})
        except asyncio.CancelledError:
            self._store.forget(record.task.task_id)
            raise
        self._store.forget(record.task.task_id)
        if isinstance(record.outcome, ToolResult):
            return record.outcome.to_wire()
        raise record.outcome or ProtocolError(INTERNAL_ERROR, "The call was lost")

    def without_own(self, request: ClientRequest) -> ClientRequest:
        """A `subscriptions/listen` for servers, which know nothing of these tasks.

        No notifications are sent about them, so the client keeps polling.
        """
        wanted = members(request.members.get("notifications"))
        ids: object = member(wanted.get("taskIds"))
        if not isinstance(ids, list) or not any(id in self for id in cast("list[object]", ids)):
            return request
        others = [id for id in cast("list[object]", ids) if id not in self]
        return request.replaced(notifications={**wanted, "taskIds": others})

    def listed(self) -> list[Raw]:
        """The stored tasks, as in `tasks/list`."""
        return [wire.raw(task) for task in self._store.tasks()]

    async def answer(self, request: ClientRequest) -> bytes:
        """Answer a request about one of them."""
        id = request.task_id or ""
        if request.era is STATELESS:
            return self._answer_extension(request, id)
        match request.method:
            case "tasks/get":
                answer = self._store.get(id)
            case "tasks/result":
                answer = self._store.result(id)
            case "tasks/cancel":
                answer = self._store.cancel(id)
            case method:
                raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method[:200]}")
        return answer if isinstance(answer, bytes) else await answer

    def _answer_extension(self, request: ClientRequest, id: str) -> bytes:
        if not request.has_tasks_extension:
            data: object = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
            raise ProtocolError(MISSING_CAPABILITY, "Missing required client capability", data)
        record = self._store.find(id)
        told: dict[str, object] = {}
        match request.method:
            case "tasks/get":
                told = {**_extension_task(record)}
                if isinstance(record.outcome, ToolResult):
                    # A result with `isError` is a result: the task has not failed.
                    told |= {"status": "completed", "result": Raw(record.outcome.to_wire())}
                elif record.outcome is not None and record.task.status == "failed":
                    error = record.outcome
                    data = msgspec.UNSET if error.data is None else error.data
                    told["error"] = wire.WireError(error.code, error.message, data)
            case "tasks/cancel":
                self._store.stop(record)
            case _:  # "tasks/update": no task here asks for input
                pass
        return wire.encode({**told, "resultType": "complete"})


def _extension_task(record: TaskRecord) -> dict[str, object]:
    return {**as_extension_task(members(wire.encode(record.task)))}


async def _no_host(method: str, params: bytes) -> bytes:
    raise ProtocolError(METHOD_NOT_FOUND, f"Method not found: {method} {params!r}"[:200])
