"""A server as Views and hosts use it, and what every implementation of it shares."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Protocol, runtime_checkable

import msgspec
from msgspec import Raw

from transom.errors import InvalidResult, ProtocolError
from transom.json_values import members
from transom.protocol import wire
from transom.servers.envelope import is_complete, without_hop_keys
from transom.session import OnProgress
from transom.types import Tool

TOOLS_CHANGED: Final = "notifications/tools/list_changed"

_HEADER_MISMATCH: Final = -32020
_MAX_ROUNDS: Final = 10  # of asking for input in one request
_MAX_PAGES: Final = 200
_MAX_ENTRIES: Final = 10_000

Send = Callable[[bytes | None], Awaitable[bytes]]
"""Sends one request with these params; its result as it came."""

Observer = Callable[[str], object]
"""Called with the method of a `list_changed`."""


@runtime_checkable
class Server(Protocol):
    """An MCP server, as a host and the Views of that server use it."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server can do, as on the wire: `{"tools": {"listChanged": true}}`."""
        ...

    @property
    def current(self) -> bool:
        """Whether `tools()` has what the server would list now, as far as one can know."""
        ...

    async def tools(self) -> Mapping[str, Tool]:
        """All tools of the server by name. Cached until the server says that they changed.

        Raises:
            ProtocolError: the server's error.
            InvalidResult: the server's answer is no list of tools.
            ConnectionClosed: the server is gone.
        """
        ...

    async def tool(self, name: str) -> Tool | None:
        """One of them. Lists again, at most once a second, before it returns None."""
        ...

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | bytes | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> bytes:
        """Send a request; the result as JSON. Cancelling it cancels the server's work.

        Raises:
            ProtocolError: the server's error, as it came.
            InputRequired: the server wants input that nobody here can give.
            InvalidResult: the server's answer is not what the method promises.
            ConnectionClosed: the server is gone.
        """
        ...

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`. Returns how to stop that."""
        ...


class InputRequired(ProtocolError):
    """A 2026-07-28 server wants input from the user first; `result` says which."""

    def __init__(self, result: bytes) -> None:
        super().__init__(
            -32600, "The server wants input from the user, which cannot be asked for here"
        )
        self.result = result


async def complete_request(
    method: str,
    params: bytes | None,
    send: Send,
    *,
    relist: Callable[[], Awaitable[object]],
    answer_input: Callable[[bytes], Awaitable[object]] | None = None,
) -> bytes:
    """Send a request until the server gives its final result.

    Args:
        method: the request.
        params: its params.
        send: sends it once.
        relist: lists the tools: HTTP headers of a call come from the tool's schema, and a server
            refuses a call whose headers do not fit.
        answer_input: makes the `inputResponses` for a result that requires input.

    Raises:
        InputRequired: the server wants input, and there is no `answer_input`.
        InvalidResult: it wants input again and again.
    """
    try:
        result = await send(params)
    except ProtocolError as error:
        if error.code != _HEADER_MISMATCH or method != "tools/call":
            raise
        await relist()
        result = await send(params)
    for attempt in range(_MAX_ROUNDS):
        if is_complete(result):
            return without_hop_keys(method, result)
        required, again = members(result), members(params)
        if members(required.get("inputRequests")):
            if answer_input is None:
                raise InputRequired(result)
            again["inputResponses"] = Raw(wire.encode(await answer_input(result)))
        else:
            await asyncio.sleep(min(0.05 * 2**attempt, 0.25))  # the server is not ready yet
        if "requestState" in required:
            again["requestState"] = required["requestState"]
        result = await send(wire.encode(again))
    raise InvalidResult(f"{method}: the server asked for input {_MAX_ROUNDS} times")


async def list_all(send: Send, method: str, key: str) -> list[Raw]:
    """All entries of a list, page after page, each as it came.

    Raises:
        InvalidResult: the answer has no list `key`.
    """
    entries: list[Raw] = []
    seen = {b"null"}  # a cursor that repeats would go on for ever
    params: bytes | None = None
    for _ in range(_MAX_PAGES):
        page = members(await send(params))
        try:
            entries += msgspec.json.decode(page.get(key, b""), type=list[Raw])
        except msgspec.DecodeError:
            raise InvalidResult(f"Invalid result for {method} from the server") from None
        cursor = bytes(page.get("nextCursor", b"null"))
        if cursor in seen or len(entries) > _MAX_ENTRIES:
            break
        seen.add(cursor)
        params = b'{"cursor":%b}' % cursor
    return entries[:_MAX_ENTRIES]


def announced_lists(capabilities: Mapping[str, Any]) -> list[str]:
    """Which lists a server says it will send `list_changed` for: "tools", "resources" ..."""
    announced: list[str] = []
    for kind in ("tools", "resources", "prompts"):
        said: object = capabilities.get(kind)
        if isinstance(said, dict) and said.get("listChanged") is True:  # pyright: ignore[reportUnknownMemberType]
            announced.append(kind)
    return announced


class ListObservers:
    """Those who want to know when a server's lists change.

    However many notices come in one turn of the event loop, an observer is called once for each
    list.
    """

    def __init__(self) -> None:
        self._observers: list[Observer] = []
        self._changed: set[str] = set()

    def __len__(self) -> int:
        return len(self._observers)

    def subscribe(self, observer: Observer) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`. Returns how to stop that."""
        self._observers.append(observer)

        def unsubscribe() -> None:
            if observer in self._observers:
                self._observers.remove(observer)

        return unsubscribe

    def notify(self, method: str) -> None:
        """Call the observers soon."""
        if not self._changed:
            asyncio.get_running_loop().call_soon(self._flush)
        self._changed.add(method)

    def _flush(self) -> None:
        changed, self._changed = self._changed, set()
        for method in sorted(changed):
            for observer in list(self._observers):
                observer(method)
