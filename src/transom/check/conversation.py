"""A conversation with a server: handshake, one request at a time, lists in pages.

1. The checker reads the bytes itself, not through a `Session`: what a server does wrong is what it
   looks for. Answers are returned as they came; what is no message is counted and passed over.
2. Both ways of opening are spoken: `initialize` first, and for a server that refuses it, the later
   revision that opens with `server/discover` and says who is asking in every request.
"""

from __future__ import annotations

import asyncio
from typing import cast

import msgspec

from transom.channel import Channel
from transom.check.snapshot import ListAnswer
from transom.errors import METHOD_NOT_FOUND, ChannelClosed, TransomError
from transom.json_values import JsonObject, as_list, as_object, clean, type_name
from transom.servers.envelope import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    DISCOVERY_VERSION,
    HANDSHAKE_VERSIONS,
    PROTOCOL_KEY,
)

_UNSUPPORTED_VERSION = -32022


class NoAnswer(TransomError):
    """The server did not answer as JSON-RPC wants it. The text says what it did instead."""


class Answered(TransomError):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


class Conversation:
    """One connection, used by one task. `noise` counts what the server wrote that is no message."""

    def __init__(
        self,
        channel: Channel,
        capabilities: JsonObject,
        *,
        version: str,
        timeout: float,
        list_timeout: float | None = None,
        max_items: int = 20_000,
    ) -> None:
        self._channel = channel
        self._timeout = timeout
        # All pages of a list together; a server must not stretch one by answering slowly.
        self._list_timeout = 3 * timeout if list_timeout is None else list_timeout
        self._max_items = max_items
        self._last_id = 0
        self._stamp: JsonObject = {}
        self.capabilities = capabilities
        self.client_info: JsonObject = {"name": "transom-check", "version": version}
        self.closed: str | None = None
        self.noise = 0
        self.first_noise = ""

    async def open(self) -> JsonObject:
        """Introduce ourselves; return what the server said of itself.

        Raises:
            NoAnswer: it did not answer, or not with an object.
            Answered: it refused.
        """
        params: JsonObject = {
            "protocolVersion": HANDSHAKE_VERSIONS[-1],
            "capabilities": self.capabilities,
            "clientInfo": self.client_info,
        }
        try:
            answer = await self.request("initialize", params)
        except Answered as refusal:
            if refusal.code not in (_UNSUPPORTED_VERSION, METHOD_NOT_FOUND):
                raise
            return await self._discover()
        version = answer.get("protocolVersion")
        if not isinstance(version, str):
            raise NoAnswer("the server answered initialize without a protocolVersion")
        await self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    async def _discover(self) -> JsonObject:
        self._stamp = {
            PROTOCOL_KEY: DISCOVERY_VERSION,
            CLIENT_KEY: self.client_info,
            CAPABILITIES_KEY: self.capabilities,
        }
        return await self.request("server/discover", {})

    async def request(self, method: str, params: JsonObject | None = None) -> JsonObject:
        """Ask, and wait for the answer.

        Raises:
            NoAnswer: none came in time, it was too long or no object, or the server is gone.
            Answered: the answer is a JSON-RPC error.
        """
        if self.closed is not None:
            raise NoAnswer(self.closed)
        self._last_id += 1
        params = dict(params or {})
        if self._stamp:
            params["_meta"] = {**as_object(params.get("_meta")), **self._stamp}
        message: JsonObject = {
            "jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params,
        }  # fmt: skip
        try:
            async with asyncio.timeout(self._timeout):
                await self._send(message)
                return await self._answer(self._last_id, method)
        except TimeoutError:
            raise NoAnswer(
                f"the server did not answer {method} within {self._timeout:g} s"
            ) from None
        except ChannelClosed as error:
            self.closed = f"the server is gone: {clean(str(error), 400)}"
            raise NoAnswer(self.closed) from error

    async def list_all(self, method: str, key: str) -> ListAnswer:
        """Every page of a list. A server that has no such method has an empty list."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._list_timeout
        items: list[JsonObject] = []
        cursors: set[str] = set()
        cursor: str | None = None
        while True:
            try:
                page = await self.request(method, {"cursor": cursor} if cursor else {})
            except Answered as error:
                missing = error.code == METHOD_NOT_FOUND and cursor is None
                problem = None if missing else f"{method} failed: {clean(str(error), 200)}"
                return ListAnswer(tuple(items), problem)
            except NoAnswer as error:
                return ListAnswer(tuple(items), str(error))
            if not isinstance(page.get(key), list):
                return ListAnswer(tuple(items), f"{method} answered without a list of {key}")
            # An entry that is no object still counts: a rule has to say so.
            items.extend(as_object(entry) for entry in as_list(page[key]))
            following = page.get("nextCursor")
            if not isinstance(following, str) or not following:
                return ListAnswer(tuple(items))
            if following in cursors:
                return ListAnswer(tuple(items), f"{method} gives the same cursor again and again")
            if len(items) >= self._max_items or len(cursors) >= 1_000:
                problem = f"{method} goes on for ever; stopped after {len(items)} entries"
                return ListAnswer(tuple(items[: self._max_items]), problem)
            if clock() >= end:
                return ListAnswer(
                    tuple(items), f"{method} takes too long; stopped after {len(items)}"
                )
            cursors.add(following)
            cursor = following

    async def _send(self, message: JsonObject) -> None:
        await self._channel.send(msgspec.json.encode(message))

    async def _answer(self, request_id: int, method: str) -> JsonObject:
        while True:
            data = await self._channel.receive()
            incoming = _object_in(data)
            if incoming is None:
                self._note(data[:200].decode(errors="replace"))
            elif "method" in incoming:
                await self._serve(incoming)
            elif incoming.get("id") in range(1, request_id):
                continue  # the late answer to a question we gave up on
            elif incoming.get("id") != request_id:
                self._note(f"an answer to request {clean(str(incoming.get('id')), 20)}")
            elif "error" in incoming:
                fault = as_object(incoming["error"])
                code = fault.get("code")
                raise Answered(
                    code if isinstance(code, int) else 0, clean(str(fault.get("message", "")), 300)
                )
            else:
                result = incoming.get("result")
                if not isinstance(result, dict):
                    raise NoAnswer(
                        f"the server answered {method} with {type_name(result)}, not an object"
                    )
                return result

    async def _serve(self, message: JsonObject) -> None:
        """Answer what the server asks of its client: it is alive, and offers nothing else."""
        if "id" not in message:
            return
        answer: JsonObject = {"jsonrpc": "2.0", "id": message["id"]}
        if message["method"] == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": METHOD_NOT_FOUND, "message": "Method not found"}
        await self._send(answer)

    def _note(self, text: str) -> None:
        self.noise += 1
        self.first_noise = self.first_noise or clean(text, 100)


def _object_in(data: bytes) -> JsonObject | None:
    try:
        message = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return cast("JsonObject", message) if isinstance(message, dict) else None
