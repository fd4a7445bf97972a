"""A host that measures a View: it speaks the wire itself, and answers what the View asks for.

1. Every message of the View is checked when it arrives, whatever the host waits for.
2. The View is a stranger: it may send anything, without end, or nothing. Each wait is bounded, and
   so is what is kept.
3. A View that no longer answers has failed what it was asked last. It is asked for nothing else but
   its teardown: it would fail all of that, each after a wait.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any, cast, get_args

import msgspec

from transom.background import Background, stop
from transom.channel import Channel
from transom.check.schemas import (
    fitting_arguments,
    mismatches_of,
    schema_error,
    unfitting_arguments,
)
from transom.conform.requirements import Measurements
from transom.errors import METHOD_NOT_FOUND, ChannelClosed, ProtocolError, TransomError
from transom.json_values import Json, JsonObject, as_object
from transom.types import DisplayMode, LogLevel

_log = logging.getLogger("transom.conform")
_MODES, _LEVELS = get_args(DisplayMode), get_args(LogLevel)
_MAX_MESSAGES = 1000
_MAX_SIZES = 50
_MAX_PAGES, _MAX_TOOLS = 20, 200
_MAX_CALLED = 10
_MAX_SIDE = 100_000
_NEEDS = {
    "tools/call": "serverTools",
    "tools/list": "serverTools",
    "resources/read": "serverResources",
    "resources/list": "serverResources",
    "resources/templates/list": "serverResources",
    "ui/open-link": "openLinks",
    "ui/download-file": "downloadFile",
    "sampling/createMessage": "sampling",
    "notifications/message": "logging",
}
_CAPABILITIES: JsonObject = {
    "openLinks": {},
    "serverTools": {"listChanged": True},
    "serverResources": {},
    "logging": {},
    "updateModelContext": {"text": {}},
    "message": {"text": {}},
    "tools": {"listChanged": True},
}
_CONTEXT: JsonObject = {
    "theme": "light",
    "displayMode": "inline",
    "availableDisplayModes": ["inline"],
    "containerDimensions": {"width": 800, "maxHeight": 600},
    "locale": "en-US",
    "platform": "web",
    "conform/unknown": {"member": 1},
}
_NOT_MESSAGES: tuple[Json, ...] = (
    "text",
    7,
    [],
    {},
    {"jsonrpc": "1.0", "id": "conform-malformed", "method": "ping"},
    {"jsonrpc": "2.0", "id": "conform-malformed", "method": 5},
)
CallServer = Callable[[str, JsonObject], Awaitable[Json]]
"""Forwards a request of the View, a method and params, to its server."""


class _NoLongerAnswersError(Exception):
    """The View answers nothing at all; under what it is reported has been said."""


class StrictHost:
    """Measures one View, once.

    Args:
        channel: the pipe to the View, which has just been opened.
        measured: where the verdicts go.
        call_server: forwards calls; raises a `TransomError` where that is not possible.
        arguments: those of the call that opened the View.
        result: its result.
        bare: whether the host declares no capabilities and gives no context.
        timeout: seconds after which an answer counts as missing.
    """

    def __init__(
        self,
        channel: Channel,
        measured: Measurements,
        *,
        call_server: CallServer,
        arguments: JsonObject,
        result: JsonObject,
        bare: bool = False,
        timeout: float = 5.0,
    ) -> None:
        self.sent_size = False
        """Whether the View has sent its size."""
        self._channel = channel
        self._measured = measured
        self._call_server = call_server
        self._arguments = arguments
        self._result = result
        self._bare = bare
        self._timeout = timeout
        self._counts: Counter[str] = Counter()
        self._introduced: asyncio.Future[JsonObject] = _future()
        self._initialized: asyncio.Future[bool] = _future()
        self._announced: asyncio.Future[bool] = _future()
        self._ended: asyncio.Future[None] = _future()
        self._waiting: dict[str, asyncio.Future[JsonObject]] = {}
        self._answered: set[str] = set()
        self._ids: set[str] = set()
        self._numbers = count(1)
        self._capabilities: JsonObject = {}
        self._answering = Background(_log.error)

    # --- the run -----------------------------------------------------------------------------

    async def run(self) -> None:
        """Measure everything; the View is torn down at the end."""
        reading = asyncio.create_task(self._read())
        try:
            if await self._shake_hands():
                await self._try_all()
        except ChannelClosed:
            self._check_end()
        finally:
            self._answering.cancel()
            await stop(reading)

    def _check_end(self) -> None:
        """The View is gone, or is no longer listened to, before it was torn down."""
        if not self._introduced.done():
            self._check("handshake-first", False, "the View ended without ui/initialize")
        elif self._bare:
            self._check("starts-without-context", False, "the View ended")
        else:
            self._check("teardown-answered", False, "the View ended before")

    async def _shake_hands(self) -> bool:
        """Whether the View has started."""
        missing = "ui/initialize did not come"
        introduced = await self._within(self._introduced) is not None
        started = introduced and await self._within(self._initialized, False)
        if self._bare:
            why = "it did not send initialized" if introduced else missing
            self._check("starts-without-context", started, why)
            return started
        self._check("handshake-first", introduced, missing)
        if introduced:
            self._check("initialized-sent", started, "it did not come")
        if started:
            self._check("unknown-fields", True)
        return started

    async def _try_all(self) -> None:
        try:
            await self._try_data()
            if not self._bare:
                await self._try_wire()
                await self._try_tools()
        except _NoLongerAnswersError:
            pass
        torn_down = await self._ask("ui/resource-teardown", {"reason": "measured"})
        if not self._bare:
            self._check("teardown-answered", torn_down, "there was no answer")
            for id in (
                *("handshake-once", "initialized-once", "requests-after-handshake", "size-valid"),
                *("wire-envelope", "wire-request-ids", "wire-answers-once", "wire-reserved"),
                *("wire-no-core-handshake", "wire-bounded", "size-settles", "display-available"),
                *("log-valid", "requests-valid", "tools-change-declared"),
            ):
                self._check(id, True)

    async def _try_data(self) -> None:
        nothing: JsonObject = {}
        some = dict(list(self._arguments.items())[:1])
        for arguments in (nothing, some, nothing):
            await self._notify("ui/notifications/tool-input-partial", {"arguments": arguments})
        if not self._bare:
            await self._tolerated("data-partial")
        await self._notify("ui/notifications/tool-input", {"arguments": self._arguments})
        await self._notify("ui/notifications/tool-result", self._result)
        await self._tolerated("starts-without-context" if self._bare else "data-result")
        if self._bare:
            self._check("capabilities-honoured", True)

    async def _try_wire(self) -> None:
        ping = await self._ask("ping")
        await self._check_answer("wire-ping", ping.get("result") == {}, ping)
        if ping:
            text = await self._ask("ping", id="conform-id")
            await self._check_answer("wire-string-ids", "result" in text, text)
        unknown = await self._ask("conform/no-such-method", {})
        code = as_object(unknown.get("error")).get("code")
        await self._check_answer("wire-unknown-method", code == METHOD_NOT_FOUND, unknown)
        await self._notify("conform/no-such-notification", {"value": 1})
        await self._notify("notifications/cancelled", {"requestId": 987654})
        await self._tolerated("wire-unknown-notification")
        await self._send({"jsonrpc": "2.0", "id": 987654, "result": {}})
        await self._tolerated("wire-unknown-answer")
        for message in _NOT_MESSAGES:
            await self._send(message)
        await self._tolerated("wire-malformed")
        changed: JsonObject = {"theme": "dark", "locale": "de", "conform/unknown": None}
        await self._notify("ui/notifications/host-context-changed", changed)
        await self._tolerated("context-changed")

    async def _tolerated(self, id: str) -> None:
        lives = await self._lives()
        self._check(id, lives, "the View no longer answers")
        if not lives:
            raise _NoLongerAnswersError

    async def _check_answer(self, id: str, holds: bool, answer: JsonObject) -> None:
        self._check(id, holds, _shown(answer))
        if not answer and not await self._lives():
            raise _NoLongerAnswersError

    # --- its tools ---------------------------------------------------------------------------

    async def _try_tools(self) -> None:
        if not isinstance(self._capabilities.get("tools"), dict):
            answer = await self._ask("tools/list", {})
            self._check("tools-undeclared", "error" in answer, _shown(answer))
            return
        self._measured.add("tools-undeclared", "skip", "the View declares tools")
        tools = await self._list()
        if tools is None:
            return
        self._announced = _future()  # what was announced so far is in this list
        names = [str(tool.get("name")) for tool in tools]
        wrong = [
            f"{name}: {why}"
            for name, tool in zip(names, tools, strict=True)
            if (why := _wrong(tool))
        ]
        wrong += [f"{name} twice" for name, count in Counter(names).items() if count > 1]
        self._check("tools-valid", not wrong, "; ".join(wrong))
        unknown = await self._call("conform_no_such_tool", {})
        await self._check_answer("tools-unknown", _failed(unknown), unknown)
        for tool, name in list(zip(tools, names, strict=True))[:_MAX_CALLED]:
            if not _wrong(tool) and not await self._try_tool(tool, name):
                return  # the others would be waited for as long
        await self._check_announced(tools)

    async def _try_tool(self, tool: JsonObject, name: str) -> bool:
        """Whether it answers calls at all."""
        schema = as_object(tool.get("inputSchema"))
        if (unfitting := unfitting_arguments(schema)) is not None:
            answer = await self._call(name, unfitting)
            self._check("tools-arguments", _failed(answer), f"{name}: {_shown(answer)}")
            if not answer:
                return False
        read_only = as_object(tool.get("annotations")).get("readOnlyHint") is True
        if not read_only or (fitting := fitting_arguments(schema)) is None:
            return True
        answer = await self._call(name, fitting)
        if not _failed(answer):  # it may: the arguments were made up
            why = _wrong_result(tool, as_object(answer.get("result"))) if answer else _shown(answer)
            self._check("tools-result", not why, f"{name}: {why or ''}")
        return bool(answer)

    async def _check_announced(self, before: list[JsonObject]) -> None:
        """Whether a list that has changed was announced, where the View says that it does so."""
        if as_object(self._capabilities.get("tools")).get("listChanged") is not True:
            return
        now = await self._list()
        if now is not None:
            changed = [each.get("name") for each in now] != [each.get("name") for each in before]
            announced = not changed or await self._within(self._announced, False)
            detail = "the list is another one, and no notification came"
            self._check("tools-change-announced", announced, detail)

    async def _list(self) -> list[JsonObject] | None:
        found: list[JsonObject] = []
        cursor: Json = None
        for _ in range(_MAX_PAGES):
            answer = await self._ask("tools/list", {} if cursor is None else {"cursor": cursor})
            page = as_object(answer.get("result"))
            listed = page.get("tools")
            if not isinstance(listed, list):
                self._check("tools-list", False, _shown(answer))
                return None
            found += [as_object(tool) for tool in listed]
            cursor = page.get("nextCursor")
            if cursor is None or len(found) > _MAX_TOOLS:
                break
        ended = cursor is None
        self._check("tools-list", ended, f"after {len(found)} tools there are still more")
        return found[:_MAX_TOOLS]

    async def _call(self, name: str, arguments: JsonObject) -> JsonObject:
        return await self._ask("tools/call", {"name": name, "arguments": arguments})

    # --- sending -----------------------------------------------------------------------------

    async def _send(self, message: Json) -> None:
        await self._channel.send(msgspec.json.encode(message))

    async def _notify(self, method: str, params: JsonObject) -> None:
        await self._send({"jsonrpc": "2.0", "method": method, "params": params})

    async def _ask(
        self, method: str, params: JsonObject | None = None, id: Json = None
    ) -> JsonObject:
        """The whole answer; empty if there was none."""
        id = next(self._numbers) if id is None else id
        key = json.dumps(id)
        waiting = self._waiting[key] = _future()
        request: JsonObject = {"jsonrpc": "2.0", "id": id, "method": method}
        await self._send(request if params is None else {**request, "params": params})
        return await self._within(waiting, {})

    async def _lives(self) -> bool:
        """Whether the View still answers anything."""
        methods = ("ping", "conform/are-you-there")
        asked = {asyncio.ensure_future(self._ask(method)) for method in methods}
        try:
            for each in asyncio.as_completed(asked):
                if await each:
                    return True
            return False
        finally:
            for each in asked:
                each.cancel()
            await asyncio.wait(asked)

    async def _within(self, future: asyncio.Future[Any], default: Any = None) -> Any:
        await asyncio.wait(
            [future, self._ended],
            timeout=self._timeout,
            return_when=asyncio.FIRST_COMPLETED,
        )
        if future.done():
            return future.result()
        if self._ended.done():
            raise ChannelClosed("the View is no longer listened to")
        return default

    def _check(self, id: str, holds: object, detail: str = "") -> None:
        self._measured.check(id, holds, detail)

    # --- receiving ---------------------------------------------------------------------------

    async def _read(self) -> None:
        while True:
            try:
                data = await self._channel.receive()
            except ChannelClosed:
                break
            self._counts["all"] += 1
            if self._counts["all"] > _MAX_MESSAGES:
                self._check("wire-bounded", False, f"there were more than {_MAX_MESSAGES}")
                break
            try:
                message = msgspec.json.decode(data)
            except (msgspec.DecodeError, RecursionError):
                message = None
            self._take(as_object(message), message)
        self._ended.set_result(None)

    def _take(self, message: JsonObject, read: object) -> None:
        if message.get("id") in (None, "conform-malformed") and "error" in message:
            return  # about one of ours that was wrong on purpose
        if why := _wrong_envelope(message):
            self._check("wire-envelope", False, f"{why}: {read!r:.200}")
            return
        if "method" not in message:
            self._take_answer(message)
            return
        method, params = str(message["method"]), as_object(message.get("params"))
        self._counts[method] += 1
        self._check_order(method, request="id" in message)
        self._check_meaning(method, params)
        if "id" in message:
            self._take_request(message["id"], method, params)

    def _take_answer(self, message: JsonObject) -> None:
        key = json.dumps(message["id"])
        waiting = self._waiting.get(key)
        if waiting is None or key in self._answered:
            text = "answered, and was not asked" if waiting is None else "answered again"
            self._check("wire-answers-once", False, f"{key:.100} was {text}")
        elif not waiting.done():  # else it is late, and nobody waits for it
            waiting.set_result(message)
        self._answered.add(key)

    def _check_order(self, method: str, *, request: bool) -> None:
        count = self._counts[method]
        if self._counts["all"] == 1 and not self._bare:
            first = method == "ui/initialize" and request
            self._check("handshake-first", first, f"it is {method:.100}")
        if method == "ui/initialize":
            self._check("handshake-once", count == 1, "it came again")
        elif method == "ui/notifications/initialized":
            early = not self._introduced.done()
            self._check("initialized-once", count == 1, "it came again")
            self._check("initialized-once", not early, "it came before the answer")
            if not self._initialized.done():
                self._initialized.set_result(True)
        elif not self._initialized.done() and method != "ping":
            self._check("requests-after-handshake", False, f"{method:.100} came before")

    def _check_meaning(self, method: str, params: JsonObject) -> None:
        check = self._check
        if self._bare and (needed := _NEEDS.get(method)):
            check("capabilities-honoured", False, f"{method} needs {needed}")
        if method.startswith("ui/notifications/sandbox-"):
            check("wire-reserved", False, f"{method:.100} came")
        match method:
            case "initialize":
                check("wire-no-core-handshake", False, "it came")
            case "ui/notifications/size-changed":
                self.sent_size = True
                check("size-valid", _is_size(params), f"{params!r:.200}")
                check("size-settles", self._counts[method] <= _MAX_SIZES, "it came too often")
            case "notifications/message":
                valid = params.get("level") in _LEVELS and "data" in params
                check("log-valid", valid, f"{params!r:.200}")
            case "notifications/tools/list_changed":
                declared = as_object(self._capabilities.get("tools")).get("listChanged") is True
                check("tools-change-declared", declared, "it did not declare tools.listChanged")
                if not self._announced.done():
                    self._announced.set_result(True)
            case "ui/request-display-mode" if not self._bare:
                available = params.get("mode") == "inline"
                check("display-available", available, f"it requested {params.get('mode')!r:.100}")
            case _:
                pass
        if why := _wrong_params(method, params):
            check("requests-valid", False, f"{method}: {why}: {params!r:.200}")

    def _take_request(self, id: Json, method: str, params: JsonObject) -> None:
        key = json.dumps(id)
        self._check("wire-request-ids", key not in self._ids, f"the id {key:.100} was used twice")
        self._ids.add(key)
        if method == "ui/initialize":
            self._check_introduction(params)
        self._answering.start(self._answer(id, method, params))

    def _check_introduction(self, params: JsonObject) -> None:
        info, capabilities = as_object(params.get("appInfo")), params.get("appCapabilities")
        named = isinstance(info.get("name"), str) and isinstance(info.get("version"), str)
        self._check("handshake-app-info", named, f"appInfo is {params.get('appInfo')!r:.200}")
        self._capabilities = as_object(capabilities)
        tools = self._capabilities.get("tools", {})
        listed = isinstance(tools, dict) and isinstance(tools.get("listChanged", True), bool)
        tried = isinstance(self._capabilities.get("experimental", {}), dict)
        shaped = isinstance(capabilities, dict) and listed and tried
        self._check("handshake-capabilities", shaped, f"appCapabilities is {capabilities!r:.200}")
        version = params.get("protocolVersion")
        self._check("handshake-version", isinstance(version, str), f"it is {version!r:.100}")
        modes = self._capabilities.get("availableDisplayModes", [])
        valid = isinstance(modes, list) and all(mode in _MODES for mode in modes)
        self._check("handshake-display-modes", valid, f"it declares {modes!r:.200}")

    async def _answer(self, id: Json, method: str, params: JsonObject) -> None:
        try:
            answer: JsonObject = {"result": await self._result_of(method, params)}
        except ProtocolError as error:
            answer = {"error": {"code": error.code, "message": str(error)}}
        except TransomError as error:
            answer = {"error": {"code": -32000, "message": str(error)}}
        if method == "ui/initialize" and not self._introduced.done():
            self._introduced.set_result(params)
        try:
            await self._send({"jsonrpc": "2.0", "id": id, **answer})
        except ChannelClosed:
            return

    async def _result_of(self, method: str, params: JsonObject) -> Json:
        match method:
            case "ui/initialize":
                return {
                    "protocolVersion": "2026-01-26",
                    "hostInfo": {"name": "transom-conform", "version": "1.0.0"},
                    "hostCapabilities": {} if self._bare else _CAPABILITIES,
                    "hostContext": {} if self._bare else _CONTEXT,
                    **({} if self._bare else {"conform/unknown": [1]}),
                }
            case "ping":
                return {}
            case "ui/request-display-mode":
                return {"mode": "inline"}
            case _ if self._bare:
                raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
            case "tools/call" | "tools/list" | "resources/read" | "resources/list":
                return await self._call_server(method, params)
            case "ui/open-link" | "ui/message" | "ui/update-model-context":
                return {}
            case _:
                raise ProtocolError(METHOD_NOT_FOUND, "Method not found")


# --- what is valid ---------------------------------------------------------------------------


def _wrong_envelope(message: JsonObject) -> str:
    if message.get("jsonrpc") != "2.0":
        return "it is no JSON-RPC 2.0"
    id = message.get("id", 0)
    if isinstance(id, bool) or not isinstance(id, int | str):
        return "its id is neither a string nor an integer"
    if "method" in message:
        named = isinstance(message["method"], str)
        fits = isinstance(message.get("params", {}), dict)
        mixed = "result" in message or "error" in message
        return "" if named and fits and not mixed else "it is no request and no notification"
    error = as_object(message.get("error"))
    if "id" not in message or ("result" in message) == ("error" in message):
        return "it is no answer"
    if "error" in message and not isinstance(error.get("code"), int):
        return "its error has no code"
    return "" if isinstance(message.get("result", {}), dict) else "its result is no object"


def _wrong_params(method: str, params: JsonObject) -> str:
    content = params.get("content")
    match method:
        case "ui/open-link" if not isinstance(params.get("url"), str):
            return "it needs a url"
        case "ui/request-display-mode" if params.get("mode") not in _MODES:
            return "it needs a mode"
        case "tools/call" if not isinstance(params.get("name"), str):
            return "it needs a name"
        case "tools/call" if not isinstance(params.get("arguments", {}), dict):
            return "its arguments are no object"
        case "resources/read" if not isinstance(params.get("uri"), str):
            return "it needs a uri"
        case "ui/message" if params.get("role") != "user" or not isinstance(content, dict | list):
            return "it needs a role and content"
        case "ui/update-model-context" if not isinstance(params.get("content", []), list):
            return "its content is no list"
        case _:
            return ""


def _is_size(params: JsonObject) -> bool:
    sides = [params[side] for side in ("width", "height") if side in params]
    return bool(sides) and all(
        isinstance(side, int | float) and not isinstance(side, bool) and 0 <= side <= _MAX_SIDE
        for side in sides
    )


def _wrong(tool: JsonObject) -> str | None:
    """What is wrong with the definition of a tool."""
    if not isinstance(tool.get("name"), str) or not tool["name"]:
        return "it has no name"
    schema = tool.get("inputSchema")
    if not isinstance(schema, dict) or schema.get("type") != "object":
        return "its inputSchema is not that of an object"
    return schema_error(cast("JsonObject", schema))


def _wrong_result(tool: JsonObject, result: JsonObject) -> str | None:
    if not isinstance(result.get("content"), list):
        return "its result has no content"
    schema = tool.get("outputSchema")
    if schema is None:
        return None
    try:
        found = mismatches_of(result.get("structuredContent"), as_object(schema), limit=1)
    except ValueError as error:
        return f"its outputSchema cannot be used: {error}"
    return f"structuredContent{found[0].path}: {found[0].message}" if found else None


def _failed(answer: JsonObject) -> bool:
    return "error" in answer or as_object(answer.get("result")).get("isError") is True


def _shown(answer: JsonObject) -> str:
    return f"{json.dumps(answer):.200}" if answer else "there was no answer"


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()
