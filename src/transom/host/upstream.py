"""A connected MCP client as the server behind Views.

1. One `ClientUpstream` serves all Bridges of a client (`ClientUpstream.of`). The client's own
   handlers stay as they are: with 2026-07-28 servers this listens on a subscription of its own,
   with older ones it looks at each notification and hands it on.
2. The tools are listed once and kept until the server says that they changed.
3. Requests go out as they came in, keys unknown to the SDK included, and so do the results. Only
   what belongs to this one hop (`resultType`, `ttlMs`, `cacheScope`) is taken off.
4. A server that wants input first (2026-07-28) gets it from the client's own callbacks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from weakref import WeakValueDictionary

import mcp.types as mcp
from mcp import Client, ClientSession
from mcp.client.session import ClientRequestContext
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp_types import HEADER_MISMATCH

from transom.errors import InvalidResult, NotConnected, ProtocolError, UsageError
from transom.host.listchanges import ListChanges
from transom.host.view_server import Relay, Upstream
from transom.mcptypes import error_from_mcp, tool_from_mcp
from transom.protocol import wire
from transom.types import Tool

__all__ = ["ClientUpstream", "Upstream"]

_HOP_KEYS: Final = ("resultType", "ttlMs", "cacheScope")
_MAX_PAGES: Final = 200
_MAX_TOOLS: Final = 10_000
_MAX_ROUNDS: Final = 10
_ASK_AGAIN: Final = 1.0  # seconds before a server is asked again for what it may not have told us


class _AsItCame:
    """Stands for the result type where the SDK would read a result: keeps all of it."""

    @staticmethod
    def model_validate(raw: dict[str, Any], **_: object) -> dict[str, Any]:
        return raw


class ClientUpstream:
    """One MCP server, through a client that is connected to it. Get it with `of`.

    Raises:
        NotConnected: the client is not connected.
    """

    def __init__(self, session: ClientSession, client: Client | None = None) -> None:
        capabilities = session.server_capabilities
        if capabilities is None:
            raise NotConnected(
                "The client's server capabilities are not available: connect it first, as in "
                "`async with Client(...) as client`"
            )
        self._session = session
        self._capabilities: dict[str, Any] = capabilities.model_dump(
            by_alias=True, mode="json", exclude_none=True
        )
        self._changes = ListChanges(session, client, self._capabilities, self._changed)
        self._tools: dict[str, Tool] = {}
        self._version = 0
        self._known_version = -1
        self._listed_at = 0.0
        self._listing: asyncio.Task[None] | None = None

    @classmethod
    def of(cls, client: Client | ClientSession) -> ClientUpstream:
        """The one that belongs to a connected client, for all Bridges that share it.

        Raises:
            NotConnected: the client is not connected.
            UsageError: it is no MCP client.
        """
        try:
            session: object = client if isinstance(client, ClientSession) else client.session
        except RuntimeError as error:
            raise NotConnected(f"The client is not connected: {error}") from None
        except AttributeError:
            session = None
        if not isinstance(session, ClientSession):
            raise UsageError(f"Expected a connected MCP client, not {type(client).__name__}")
        upstream = _upstreams.get(id(session))
        if upstream is None:
            upstream = cls(session, client if isinstance(client, Client) else None)
            _upstreams[id(session)] = upstream
        return upstream

    @property
    def session(self) -> ClientSession:
        """The client's session."""
        return self._session

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server can do, as on the wire."""
        return self._capabilities

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`. Returns how to stop that."""
        return self._changes.subscribe(observer)

    # --- tools -------------------------------------------------------------------------------

    @property
    def current(self) -> bool:
        """Whether the tools that are kept are the server's, as far as it would have said so."""
        heard = self._changes.watching or self._age() < _ASK_AGAIN
        return heard and self._known_version >= self._version

    async def tools(self) -> Mapping[str, Tool]:
        """All tools of the server by name.

        Raises:
            ProtocolError: the server's error.
            InvalidResult: the server's answer is no list of tools.
        """
        if not self._changes.watching and self._age() >= _ASK_AGAIN:
            self._version += 1  # nobody told us that nothing changed
        wanted = self._version
        while self._known_version < wanted:
            if self._listing is None:
                self._listing = asyncio.ensure_future(self._list())
                self._listing.add_done_callback(_retrieve)
            # Shared by all who wait, so one who gives up must not end it for the others.
            await asyncio.shield(self._listing)
        return self._tools

    async def tool(self, name: str) -> Tool | None:
        """One of them; asks the server again, but not all the time, before it says no.

        Raises:
            ProtocolError: the server's error.
        """
        found = (await self.tools()).get(name)
        if found is None and self._age() >= _ASK_AGAIN:
            self._version += 1
            found = (await self.tools()).get(name)
        return found

    def _age(self) -> float:
        return asyncio.get_running_loop().time() - self._listed_at

    async def _list(self) -> None:
        version, found = self._version, dict[str, Tool]()
        cursor: str | None = None
        seen: set[str] = set()
        try:
            if self._capabilities.get("tools") is not None:
                for _ in range(_MAX_PAGES):
                    params = mcp.PaginatedRequestParams(cursor=cursor)
                    page = await self._session.list_tools(params=params)
                    for tool in page.tools:
                        found.setdefault(tool.name, tool_from_mcp(tool))
                    cursor = page.next_cursor
                    if cursor is None or cursor in seen or len(found) > _MAX_TOOLS:
                        break
                    seen.add(cursor)
        except MCPError as error:
            raise error_from_mcp(error) from None
        except ValueError:  # pydantic's: its text would quote the server
            raise InvalidResult("Invalid result for tools/list from the server") from None
        finally:
            self._listing = None
        self._tools, self._known_version = found, version
        self._listed_at = asyncio.get_running_loop().time()

    def _changed(self, method: str) -> None:
        if method == "notifications/tools/list_changed":
            self._version += 1

    # --- requests ----------------------------------------------------------------------------

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: Relay | None = None
    ) -> bytes:
        """Ask the server; the result as JSON.

        Raises:
            ProtocolError: the server's error, as it came.
            InvalidResult: the server's answer is not what the method promises.
        """
        try:
            raw = await self._send(method, params, on_progress)
        except ProtocolError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
            self._version += 1  # it wants headers from a schema that we do not know yet
            await self.tools()
            raw = await self._send(method, params, on_progress)
        for turn in range(_MAX_ROUNDS):
            if raw.get("resultType") != "input_required":
                break
            raw = await self._send(method, await self._with_input(params, raw, turn), on_progress)
        else:
            raise InvalidResult(f"{method}: the server asked for input {_MAX_ROUNDS} times")
        result = {key: value for key, value in raw.items() if key not in _HOP_KEYS}
        structured: object = result.get("structuredContent", {})
        if method == "tools/call" and not isinstance(structured, dict):
            result["structuredContent"] = {"result": structured}
        return wire.encode(result)

    async def _send(
        self, method: str, params: Mapping[str, Any], on_progress: Relay | None
    ) -> dict[str, Any]:
        request = mcp.Request[dict[str, Any], str](method=method, params=dict(params))
        callback = None if on_progress is None else _awaitable(on_progress)
        try:
            answer = await self._session.send_request(
                request, cast("Any", _AsItCame), progress_callback=callback
            )
        except MCPError as error:
            raise error_from_mcp(error) from None
        except ValueError as error:  # pydantic's: its text would quote the server
            task = _refused_task(error) if "task" in params else None
            if task is None:
                raise InvalidResult(f"Invalid result for {method} from the server") from None
            return task
        return cast("dict[str, Any]", answer)

    async def _with_input(
        self, params: Mapping[str, Any], raw: dict[str, Any], turn: int
    ) -> dict[str, Any]:
        """The params again, with what the server wants to know first."""
        wanted = mcp.InputRequiredResult.model_validate(raw, by_name=False)
        again = {**params, "requestState": wanted.request_state}
        responses: dict[str, Any] = {}
        for key, request in (wanted.input_requests or {}).items():
            meta = request.params.meta if request.params else None
            context = ClientRequestContext(session=self._session, request_id=key, meta=meta)
            response = await self._session.dispatch_input_request(context, request)
            if isinstance(response, mcp.ErrorData):
                raise ProtocolError(response.code, response.message, response.data)
            responses[key] = response.model_dump(by_alias=True, mode="json", exclude_none=True)
        if responses:
            again["inputResponses"] = responses
        else:
            await asyncio.sleep(min(0.05 * 2**turn, 0.25))  # the server is not ready yet
        if wanted.request_state is None:
            del again["requestState"]
        return again


_upstreams: WeakValueDictionary[int, ClientUpstream] = WeakValueDictionary()


def _refused_task(error: ValueError) -> dict[str, Any] | None:
    """The SDK knows no answer to `tools/call` that is a task; what it refused is in its error."""
    for problem in cast("list[dict[str, Any]]", getattr(error, "errors", list)()):
        refused = problem.get("input")
        if isinstance(refused, dict) and "task" in refused:
            return cast("dict[str, Any]", refused)
    return None


def _awaitable(relay: Relay) -> ProgressFnT:
    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        await relay(progress, total, message)

    return on_progress


def _retrieve(task: asyncio.Task[None]) -> None:
    if not task.cancelled():
        task.exception()  # whoever waited has it; if nobody does any more, it is nobody's news
