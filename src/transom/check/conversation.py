"""A conversation with a server: handshake, one request at a time, lists in pages.

1. The checker reads the bytes itself, not through a `Session`, because it looks for mistakes of the
   server. Answers are returned unchanged; lines that are not messages are counted and skipped.
2. It begins with `initialize`. A server that refuses that gets `server/discover`, and the client's
   name and capabilities in every request, as the later revision of the protocol requires.
"""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec

from transom.channel import Channel
from transom.check.snapshot import CacheHint
from transom.errors import METHOD_NOT_FOUND, ChannelClosed, TransomError
from transom.json_values import Json, JsonObject, as_list, as_object, clean, type_name
from transom.servers.envelope import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    PROTOCOL_KEY,
)
from transom.version import __version__

MAX_ITEMS = 20_000
MAX_LIST_PAGES = 1_000
# How long all pages of a list may take together: a server must not stretch one by slow answers.
LIST_TIMEOUTS = 3
_UNSUPPORTED_VERSION = -32022
_CACHEABLE = {
    *("server/discover", "tools/list", "prompts/list", "resources/list"),
    *("resources/templates/list", "resources/read"),
}


class NoAnswer(TransomError):
    """The server did not answer with valid JSON-RPC. The text says what it did instead."""


class Answered(TransomError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


class Conversation:
    """One connection, used by one task. `noise` counts what the server wrote that is no message."""

    def __init__(self, channel: Channel, capabilities: JsonObject, timeout: float) -> None:
        self._channel = channel
        self._timeout = timeout
        self._last_id = 0
        self._stamp: JsonObject = {}
        self._capabilities = capabilities
        self.hints: list[CacheHint] = []
        """The cache hints of answers in MCP 2026-07-28."""
        self.closed: str | None = None
        self.noise = 0
        self.first_noise = ""

    async def open(self, *, handshake: bool = True) -> JsonObject:
        """Introduce ourselves; return what the server answers about itself.

        Args:
            handshake: whether to begin with `initialize`, as before 2026-07-28.
        """
        client: JsonObject = {"name": "transom-check", "version": __version__}
        if not handshake:
            return await self._discover(client)
        params: JsonObject = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": self._capabilities,
            "clientInfo": client,
        }
        try:
            answer = await self.request("initialize", params)
        except Answered as refusal:
            if refusal.code not in (_UNSUPPORTED_VERSION, METHOD_NOT_FOUND):
                raise
            return await self._discover(client)
        if not isinstance(answer.get("protocolVersion"), str):
            raise NoAnswer("the server answered initialize without a protocolVersion")
        await self._send(method="notifications/initialized")
        return answer

    async def _discover(self, client: JsonObject) -> JsonObject:
        self._stamp = {
            PROTOCOL_KEY: DISCOVERY_VERSION,
            CLIENT_KEY: client,
            CAPABILITIES_KEY: self._capabilities,
        }
        answer = await self.request("server/discover", {})
        if DISCOVERY_VERSION not in as_list(answer.get("supportedVersions")):
            raise NoAnswer(f"the server answered server/discover without {DISCOVERY_VERSION}")
        return answer

    async def request(self, method: str, params: JsonObject) -> JsonObject:
        """Send a request and wait for its result.

        Raises:
            NoAnswer: none came in time, it was too long or no object, or the server is gone.
            Answered: the answer is a JSON-RPC error.
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
        cursors: set[str] = set()
        params: JsonObject = {}
        while True:
            try:
                page = await self.request(method, params)
            except Answered as error:
                missing = error.code == METHOD_NOT_FOUND and not cursors
                return items, None if missing else f"{method} failed: {clean(str(error), 200)}"
            except NoAnswer as error:
                return items, str(error)
            if not isinstance(page.get(key), list):
                return items, f"{method} answered without a list of {key}"
            # An entry that is not an object is kept: a rule has to report it.
            items.extend(as_object(entry) for entry in as_list(page[key]))
            cursor = page.get("nextCursor")
            if not isinstance(cursor, str) or not cursor:
                return items, None
            if cursor in cursors:
                return items, f"{method} gives the same cursor again and again"
            if len(items) >= MAX_ITEMS or len(cursors) >= MAX_LIST_PAGES:
                problem = f"{method} goes on for ever; stopped after {len(items)} entries"
                return items[:MAX_ITEMS], problem
            if clock() >= end:
                return items, f"{method} takes too long; stopped after {len(items)}"
            cursors.add(cursor)
            params = {"cursor": cursor}

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
                raise Answered(code if isinstance(code, int) else 0, text)
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
