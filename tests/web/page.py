"""A page that shows the Stage, without a browser: what stage.ts and link.ts do, in Python."""

import asyncio
import json
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed

from transom.errors import ChannelClosed
from transom.web.page_link import CONTROL
from transom.web.stage import Stage


class StagePage:
    """Connects to a Stage that is served. What the host says is in `told`, by View."""

    def __init__(self, stage: Stage, **hello: Any) -> None:
        self.hello = {"token": stage.token, "page": None, "received": 0, **hello}
        self.url = self.origin = stage.origin
        self.socket_at = "/socket"
        self.headers: dict[str, str] = {}
        self.address: dict[str, Any] = {}  # where the server is, if it is not at the url
        self.welcome: dict[str, Any] = {}
        self.views: dict[str, PageEnd] = {}
        self.told: list[dict[str, Any]] = []
        self.acknowledged = 0
        self.received = 0
        self.sent = 0
        self.closed: tuple[int, str] | None = None
        self._socket: ClientConnection | None = None
        self._reader: asyncio.Task[None] | None = None
        self._news = asyncio.Condition()
        self.on_mount: Callable[[str, PageEnd], object] = lambda *_: None

    async def connect(self) -> None:
        """Say hello, and wait for nothing."""
        self._socket = await connect(
            self.url.replace("http", "ws", 1) + self.socket_at,
            origin=self.origin,
            additional_headers=self.headers,
            **self.address,
            max_size=None,
            compression=None,
            close_timeout=0.2,
        )
        with suppress(ConnectionClosed):  # it may be turned away before it has said anything
            await self._socket.send(json.dumps(self.hello))

    async def closed_with(self) -> tuple[int, str]:
        """How a page that was turned away was."""
        assert self._socket is not None
        await self._socket.wait_closed()
        return self._socket.close_code or 1006, self._socket.close_reason or ""

    async def __aenter__(self) -> Self:
        await self.connect()
        assert self._socket is not None
        self.welcome = json.loads(await self._socket.recv())
        self._reader = asyncio.create_task(self._read())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._socket is not None
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.wait([self._reader])
        await self._socket.close()

    async def drop(self) -> None:
        """Lose the socket without a word."""
        assert self._socket is not None
        assert self._reader is not None
        self._reader.cancel()
        await asyncio.wait([self._reader])
        self._socket.transport.abort()

    async def resume(self) -> None:
        """Come back on another socket."""
        self.hello.update(page=self.welcome["page"], received=self.received)
        self.closed = None
        await self.__aenter__()

    async def leave(self) -> None:
        """Say goodbye, as a page does that is being closed or reloaded."""
        assert self._socket is not None
        await self._socket.close(4001, "leaving")

    # --- the link ----------------------------------------------------------------------------

    async def _read(self) -> None:
        assert self._socket is not None
        try:
            async for text in self._socket:
                head, newline, message = str(text).partition("\n")
                if not newline:
                    self.acknowledged = int(head)
                else:
                    number, _, view = head.partition(" ")
                    assert int(number) == self.received + 1
                    self.received += 1
                    if view == CONTROL:
                        await self._told(json.loads(message))
                    elif view in self.views:
                        self.views[view].arrived(self.received, message.encode())
                await self._notify()
        except ConnectionClosed:
            pass
        closed = self._socket.close_code, self._socket.close_reason
        self.closed = closed[0] or 1006, closed[1] or ""
        for view in self.views.values():
            view.end()
        await self._notify()

    async def _notify(self) -> None:
        async with self._news:
            self._news.notify_all()

    async def _told(self, message: dict[str, Any]) -> None:
        self.told.append(message)
        view_id = message.get("view", "")
        if message["do"] == "mount":
            self.views[view_id] = end = PageEnd(self, view_id)
            self.on_mount(view_id, end)
        elif message["do"] in ("unmount", "gone"):
            gone = self.views.pop(view_id, None)
            if gone is not None:
                gone.end()
        await self.acknowledge(self.received)

    async def acknowledge(self, number: int) -> None:
        with suppress(ChannelClosed):  # the Stage may have hung up since
            await self.write(str(number))

    async def send(self, view: str, message: str) -> None:
        self.sent += 1
        await self.write(f"{self.sent} {view}\n{message}")

    async def tell(self, **message: Any) -> None:
        """Say something that is not from a View."""
        await self.send(CONTROL, json.dumps(message))

    async def write(self, text: str | bytes) -> None:
        """Put something on the socket, whatever it is."""
        assert self._socket is not None
        try:
            await self._socket.send(text)
        except ConnectionClosed as error:
            raise ChannelClosed("The socket is closed") from error

    async def until(self, seen: Any) -> Any:
        """Wait until `seen(self)` is true; what it returned."""
        async with self._news:
            return await self._news.wait_for(lambda: seen(self))

    async def heard(self, do: str) -> dict[str, Any]:
        """Wait until the host has said that; the last time it did."""
        return await self.until(lambda p: next((m for m in p.told[::-1] if m["do"] == do), None))

    async def view(self, view_id: str) -> "PageEnd":
        """Wait until that View is there."""
        return await self.until(lambda page: page.views.get(view_id))

    async def over(self) -> tuple[int, str]:
        """Wait until the socket is closed; code and reason."""
        return await self.until(lambda page: page.closed)


class PageEnd:
    """The View's end of its channel. What is read is acknowledged, and nothing else."""

    def __init__(self, page: StagePage, view_id: str) -> None:
        self._page = page
        self._view_id = view_id
        self._unread: asyncio.Queue[tuple[int, bytes] | None] = asyncio.Queue()
        self._closed = False

    def arrived(self, number: int, message: bytes) -> None:
        self._unread.put_nowait((number, message))

    def end(self) -> None:
        if not self._closed:
            self._closed = True
            self._unread.put_nowait(None)

    async def send(self, data: bytes) -> None:
        if self._closed:
            raise ChannelClosed("The View is closed")
        await self._page.send(self._view_id, data.decode())

    async def receive(self) -> bytes:
        got = await self._unread.get()
        if got is None:
            self._unread.put_nowait(None)
            raise ChannelClosed("The View is closed")
        number, message = got
        # A page that has lost its socket can still be read from.
        if self._page.closed is None:
            await self._page.acknowledge(number)
        return message

    async def aclose(self) -> None:
        if not self._closed:
            while not self._unread.empty():
                self._unread.get_nowait()
            self.end()
            await self._page.tell(do="closed", view=self._view_id)
