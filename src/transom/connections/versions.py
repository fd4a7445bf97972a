"""What differs between the versions of MCP: the envelope of requests, marks in results, tasks.

1. Before 2026-07-28 a client introduces itself once, with `initialize`. Since then each request has
   an envelope in its `_meta`: the protocol version, the client's name and its capabilities.
2. Tasks have the form of 2025-11-25 in all code here: the caller requests a task, and waits for the
   result with `tasks/result`. In the extension that came with 2026-07-28 the server decides, if the
   client has the extension, and `tasks/get` contains the result.

What the versions mean for a client, and between a client and a server, is in `gateway/eras.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from transom.errors import INTERNAL_ERROR, INVALID_PARAMS, InvalidResult, ProtocolError
from transom.json_values import Members, as_object, member, members
from transom.protocol import wire
from transom.protocol.messages import UI_EXTENSION, VIEW_MIME_TYPE
from transom.types import Task
from transom.version import __version__

PROTOCOL_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY: Final = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_KEY: Final = "io.modelcontextprotocol/logLevel"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""The versions that open with `initialize`, oldest first."""

DISCOVERY_VERSION: Final = "2026-07-28"
"""The version that opens with `server/discover`."""

CLIENT_INFO: Final = {"name": "transom", "version": __version__}
"""Who Transom says that it is, where no client of its own speaks through it."""

_HOP_KEYS: Final = ("resultType", "ttlMs", "cacheScope")


# --- requests --------------------------------------------------------------------------------


def with_ui(capabilities: Raw | bytes | None) -> Raw:
    """A client's capabilities, with MCP Apps added."""
    return with_extension(capabilities, UI_EXTENSION, {"mimeTypes": [VIEW_MIME_TYPE]})


def with_extension(capabilities: Raw | bytes | None, name: str, settings: object) -> Raw:
    """Capabilities with one more extension."""
    given = members(capabilities)
    extensions = members(given.get("extensions"))
    extensions[name] = wire.raw(settings)
    given["extensions"] = wire.raw(extensions)
    return wire.raw(given)


def own_envelope(capabilities: Mapping[str, Any] | None = None) -> dict[str, Raw]:
    """The envelope of requests that Transom makes for itself; it can show Views, and these."""
    return {
        PROTOCOL_KEY: wire.raw(DISCOVERY_VERSION),
        CLIENT_KEY: wire.raw(CLIENT_INFO),
        CAPABILITIES_KEY: with_ui(wire.encode(capabilities or {})),
    }


def with_envelope(params: Raw | bytes | None, envelope: Mapping[str, Raw] | None) -> bytes | None:
    """Params with an envelope, to which MCP Apps is added."""
    if envelope is None:
        return None if params is None else bytes(params)
    given = members(params)
    meta = members(given.get("_meta"))
    meta.update(envelope)
    meta[CAPABILITIES_KEY] = with_ui(envelope.get(CAPABILITIES_KEY))
    given["_meta"] = wire.raw(meta)
    return wire.encode(given)


def without_envelope(params: Raw | bytes | None) -> bytes | None:
    """Params as a server before 2026-07-28 expects them."""
    given = members(params)
    meta = members(given.pop("_meta", None))
    for key in (PROTOCOL_KEY, CLIENT_KEY, CAPABILITIES_KEY, LOG_LEVEL_KEY):
        meta.pop(key, None)
    for key in ("inputResponses", "requestState"):
        given.pop(key, None)
    if meta:
        given["_meta"] = wire.raw(meta)
    return wire.encode(given) if given else None


# --- results and notifications ---------------------------------------------------------------


def is_complete(result: Raw | bytes) -> bool:
    """Whether a result ends its request; a 2026-07-28 server may ask for input first."""
    kind = members(result).get("resultType")
    return kind is None or bytes(kind) == b'"complete"'


def without_hop_keys(method: str, result: Raw | bytes) -> bytes:
    """A result without what concerns one hop only, as a client before 2026-07-28 expects it.

    Structured content that is not an object, which 2026-07-28 allows, becomes `{"result": ...}`.
    """
    given = members(result)
    for key in _HOP_KEYS:
        given.pop(key, None)
    structured = given.get("structuredContent")
    if method == "tools/call" and structured and not bytes(structured).startswith(b"{"):
        given["structuredContent"] = wire.raw({"result": structured})
    return wire.encode(given)


def subscription_of(params: Raw | bytes | None) -> Any:
    """The id of the subscription that a notification belongs to, if it has one."""
    return member(params, "_meta", SUBSCRIPTION_KEY)


TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
MISSING_CAPABILITY: Final = -32021

_SAME: Final = ("taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt")
_RENAMED: Final = {"ttl": "ttlMs", "pollInterval": "pollIntervalMs"}
_LEAST_PAUSE, _PAUSE, _LONGEST_PAUSE = 0.02, 1.0, 10.0  # seconds between two polls

Send = Callable[[str, bytes], Awaitable[bytes]]
"""Sends a request to the server: method, params, result."""


def has_tasks(capabilities: Mapping[str, Any]) -> bool:
    """Whether a server declares tasks, in either form."""
    return capabilities.get("tasks") is not None or TASKS_EXTENSION in as_object(
        capabilities.get("extensions")
    )


def wants_task(method: str, params: bytes | None) -> bool:
    """Whether a call requests a task, in the form of 2025-11-25."""
    return method == "tools/call" and b'"task"' in (params or b"") and "task" in members(params)


def without_task(params: bytes | None) -> bytes:
    """The params of a call without the request for a task."""
    return wire.encode({key: value for key, value in members(params).items() if key != "task"})


class _TaskAnswer(msgspec.Struct):
    task: Task


_decode_answer = msgspec.json.Decoder(_TaskAnswer).decode


def task_in(result: bytes | Raw) -> Task | None:
    """The task in a result of `tools/call`; None if it is an ordinary result."""
    try:
        return _decode_answer(result).task
    except (msgspec.DecodeError, RecursionError, ValueError):
        return None


def is_task(result: Raw | bytes) -> bool:
    """Whether a 2026-07-28 server answered with a task instead of a result."""
    return bytes(members(result).get("resultType", b"")) == b'"task"'


def task_id_in(result: Raw | bytes) -> str | None:
    """The id of the task that a server answered a call with, in either form."""
    if b'"taskId"' not in bytes(result):
        return None
    id: object = member(result, "taskId") if is_task(result) else member(result, "task", "taskId")
    return id if isinstance(id, str) else None


def as_handshake_task(task: Members) -> Members:
    """A task in the form of 2025-11-25."""
    told = {key: task[key] for key in _SAME if key in task}
    told |= {old: task[new] for old, new in _RENAMED.items() if new in task}
    return {"ttl": Raw(b"null"), **told}


def as_extension_task(task: Members) -> Members:
    """A task in the form of the extension."""
    told = {key: task[key] for key in _SAME if key in task}
    told |= {new: task[old] for old, new in _RENAMED.items() if old in task}
    return {"ttlMs": Raw(b"null"), **told}


async def request_task(
    send: Send, answer_input: Callable[[bytes], Awaitable[dict[str, Any]]], method: str, id: str
) -> bytes:
    """The answer of 2025-11-25 to `tasks/get`, `tasks/result` or `tasks/cancel`.

    `send` sends requests to a server that has the extension; `answer_input` gives the
    `inputResponses` for a task that asks for input.
    """
    params = wire.encode({"taskId": id})
    if method == "tasks/cancel":
        await send(method, params)
    elif method == "tasks/result":
        return await _wait(send, answer_input, params)
    return wire.encode(as_handshake_task(members(await send("tasks/get", params))))


async def _wait(
    send: Send, answer_input: Callable[[bytes], Awaitable[dict[str, Any]]], params: bytes
) -> bytes:
    answered: set[str] = set()
    while True:
        raw = await send("tasks/get", params)
        task = members(raw)
        match member(raw, "status"):
            case "completed" if bytes(task.get("result", b"")).startswith(b"{"):
                return bytes(task["result"])
            case "failed":
                raise _error(task)
            case "cancelled":
                raise ProtocolError(INVALID_PARAMS, "The task was cancelled")
            case "input_required" if not answered.issuperset(members(task.get("inputRequests"))):
                given = await answer_input(raw)
                answered |= members(task.get("inputRequests")).keys()
                update = {**members(params), "inputResponses": wire.raw(given)}
                await send("tasks/update", wire.encode(update))
            case "working" | "input_required":
                await asyncio.sleep(_pause(member(raw, "pollIntervalMs")))
            case _:
                raise InvalidResult("tasks/get: the server's answer cannot be read")


def _pause(milliseconds: object) -> float:
    if not isinstance(milliseconds, int | float):
        return _PAUSE
    return min(max(milliseconds / 1000, _LEAST_PAUSE), _LONGEST_PAUSE)


def _error(task: Members) -> ProtocolError:
    error = as_object(member(task.get("error")))
    code, message = error.get("code"), error.get("message")
    return ProtocolError(
        code if isinstance(code, int) and not isinstance(code, bool) else INTERNAL_ERROR,
        message if isinstance(message, str) else "The task failed",
        error.get("data"),
    )
