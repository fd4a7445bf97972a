"""A connected client of the official SDK as a `Server`.

1. All users of a client share one `SdkServer` (`sdk_server`). The client's own handlers stay as
   they are.
2. Requests and results pass unchanged, including keys that the SDK does not know.
3. A 2026-07-28 server announces changed lists on a subscription: one is opened for all observers,
   and opened again when it is lost. The SDK has no way to observe an older server's notifications
   once a client is connected: create the client with a `ListChangedHandler`. Without one, tools are
   listed again when they are needed, at most once a second.
4. If a 2026-07-28 server needs input, the client's own callbacks give it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, cast
from weakref import WeakMethod, WeakValueDictionary

import anyio
import mcp.types as mcp
import msgspec
from mcp import Client, ClientSession
from mcp.client.session import ClientRequestContext, IncomingMessage, MessageHandlerFnT
from mcp.client.subscriptions import Subscription, SubscriptionLost, listen
from mcp.shared.dispatcher import ProgressFnT
from mcp.shared.exceptions import MCPError
from mcp.shared.subscriptions import event_to_notification
from mcp_types import CONNECTION_CLOSED
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from transom.connections.upstream import CachingServer, announced_lists
from transom.errors import (
    ConnectionClosed,
    InvalidResult,
    NotConnected,
    ProtocolError,
    UsageError,
)
from transom.events import is_awaitable
from transom.protocol import wire
from transom.protocol.peer import Progress
from transom.session import OnProgress

_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0


def sdk_server(client: Client | ClientSession) -> SdkServer:
    """The server of a connected client, the same object for all users of the client."""
    try:
        session: object = client if isinstance(client, ClientSession) else client.session
    except RuntimeError as error:
        raise NotConnected(f"The client is not connected: {error}") from None
    except AttributeError:
        session = None
    if not isinstance(session, ClientSession):
        raise UsageError(f"Expected a connected MCP client, not {type(client).__name__}")
    server = _servers.get(id(session))
    if server is None:
        server = SdkServer(session, client if isinstance(client, Client) else None)
        _servers[id(session)] = server
    return server


class ListChangedHandler:
    """Lets Transom know at once when a server of the handshake era changes its lists.

    Give it to the client that you connect yourself, or to several:
    `Client(transport, message_handler=ListChangedHandler(my_handler))`.

    Args:
        handler: gets every message, as it would without this.
    """

    def __init__(self, handler: MessageHandlerFnT | None = None) -> None:
        self._handler = handler
        self._observers: list[WeakMethod[Callable[[str], object]]] = []

    def subscribe(self, observer: Callable[[str], object]) -> None:
        """Call a method with the notifications of changed lists, while its object is in use."""
        self._observers.append(WeakMethod(observer, self._observers.remove))

    async def __call__(self, message: IncomingMessage) -> None:
        """Called by the SDK with each message of the server."""
        method: str = getattr(message, "method", "")
        if method.endswith("/list_changed"):
            for reference in list(self._observers):  # the SDK does not say which client it is from
                if (observer := reference()) is not None:
                    observer(method)
        if self._handler is not None:
            await self._handler(message)


class SdkServer(CachingServer):
    """One MCP server, through a client that is connected to it. Get it with `sdk_server`."""

    def __init__(self, session: ClientSession, client: Client | None = None) -> None:
        capabilities = session.server_capabilities
        if capabilities is None:
            raise NotConnected(
                "The client's server capabilities are not available: connect it first, as in "
                "`async with Client(...) as client`"
            )
        super().__init__()
        self._session = session
        self._client = client
        self._capabilities = capabilities.model_dump(by_alias=True, mode="json", exclude_none=True)
        self._lists = announced_lists(self._capabilities)
        self._listener: asyncio.Task[None] | None = None
        self._watching = False
        handler = None if client is None else client.message_handler
        if isinstance(handler, ListChangedHandler):
            handler.subscribe(self._list_changed)
            self._watching = True

    # --- changed lists -----------------------------------------------------------------------

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        """See `Server`."""
        stop = super().subscribe(observer)
        stateless = self._session.protocol_version in MODERN_PROTOCOL_VERSIONS
        if stateless and self._lists and self._listener is None:
            self._listener = asyncio.ensure_future(self._listen())

        def unsubscribe() -> None:
            stop()
            if not self._observers and self._listener is not None:
                self._listener.cancel()
                self._listener = None

        return unsubscribe

    def _announces_tools(self) -> bool:
        return self._watching or not self._lists

    async def _listen(self) -> None:
        """Keep a subscription open while there are observers."""
        pause, again = _FIRST_PAUSE, False
        while True:
            try:
                async with self._subscription() as subscription:
                    self._watching = True
                    self.tool_cache.invalidate()  # a change may have been missed
                    if again:
                        for kind in self._lists:
                            self._list_changed(f"notifications/{kind}/list_changed")
                    pause, again = _FIRST_PAUSE, True
                    async for event in subscription:
                        self._list_changed(event_to_notification(event, {}).method)
                return  # the server ended it
            except SubscriptionLost:
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LONGEST_PAUSE)
            except (MCPError, TimeoutError, RuntimeError):
                return  # closed, or the server does not offer it
            finally:
                self._watching = False

    def _subscription(self) -> AbstractAsyncContextManager[Subscription]:
        wanted = {f"{kind}_list_changed": True for kind in self._lists}
        if self._client is not None:
            return self._client.listen(**cast("Any", wanted))
        return listen(self._session, **cast("Any", wanted))

    # --- through the session -----------------------------------------------------------------

    async def _list_page(self, method: str, params: bytes | None) -> bytes:
        if method != "tools/list":
            return await super()._list_page(method, params)
        # The session's own method, which reads from the schemas which headers a call needs.
        wanted = mcp.PaginatedRequestParams.model_validate_json(params or b"{}")
        listed = await _translated(method, self._session.list_tools(params=wanted))
        return listed.model_dump_json(by_alias=True, exclude_none=True).encode()

    async def _send(
        self, method: str, params: bytes | None, on_progress: OnProgress | None = None
    ) -> bytes:
        given: dict[str, Any] = msgspec.json.decode(params or b"{}")
        request = mcp.Request[dict[str, Any], str](method=method, params=given)
        sending = self._session.send_request(
            request,
            cast("Any", _Unread),
            progress_callback=None if on_progress is None else _progress_callback(on_progress),
        )
        return wire.encode(await _translated(method, sending))

    async def _answer_input(self, result: bytes) -> dict[str, Any]:
        """The answers of the client's callbacks to a server's request for input."""
        wanted = mcp.InputRequiredResult.model_validate_json(result, by_name=False)
        responses: dict[str, Any] = {}
        for key, request in (wanted.input_requests or {}).items():
            meta = request.params.meta if request.params else None
            context = ClientRequestContext(session=self._session, request_id=key, meta=meta)
            response = await self._session.dispatch_input_request(context, request)
            if isinstance(response, mcp.ErrorData):
                raise ProtocolError(response.code, response.message, response.data)
            responses[key] = response.model_dump(by_alias=True, mode="json", exclude_none=True)
        return responses


_servers: WeakValueDictionary[int, SdkServer] = WeakValueDictionary()


class _Unread:
    """A type for the SDK to read a result as, which keeps all of it."""

    @staticmethod
    def model_validate(raw: dict[str, Any], **_: object) -> dict[str, Any]:
        return raw


async def _translated(method: str, waiting: Awaitable[Any]) -> Any:
    """The result of a request of the SDK, with its exceptions translated."""
    try:
        return await waiting
    except MCPError as error:
        if error.code == CONNECTION_CLOSED and error.message == "Connection closed":
            raise ConnectionClosed(f"{method}: the client is closed") from None
        raise ProtocolError(error.code, error.message, error.data) from None
    except (RuntimeError, anyio.ClosedResourceError, anyio.BrokenResourceError) as error:
        raise ConnectionClosed(f"{method}: the client is closed: {error}") from None
    except ValueError:  # pydantic's: its text would quote the server
        raise InvalidResult(f"Invalid result for {method} from the server") from None


def _progress_callback(on_progress: OnProgress) -> ProgressFnT:
    async def callback(progress: float, total: float | None, message: str | None) -> None:
        waiting = on_progress(Progress(0, progress, total, message))
        if is_awaitable(waiting):
            await waiting

    return callback
