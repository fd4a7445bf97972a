"""The channel to one View on the Stage. Messages are forwarded as they are, never decoded."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from transom.channel import Receiver
from transom.errors import ChannelClosed
from transom.web.page_link import Link

_MAX_UNREAD = 4096


class ViewChannel:
    """A Channel to one View, over whichever link the Stage has to its page now."""

    def __init__(
        self, view_id: str, link: Callable[[], Link | None], on_close: Callable[[str], object]
    ) -> None:
        self.view_id = view_id
        self._link = link
        self._on_close = on_close
        self._receiver: Receiver | None = None
        self._unread: deque[bytes] = deque()
        self._arrived: asyncio.Future[None] | None = None
        self.reason: str | None = None
        """Why it is closed; None while it is not."""
        self.spoken = False
        """Whether the View has sent anything yet."""

    async def send(self, data: bytes) -> None:
        """Send one message; waits while the page is slow."""
        link = self._live()
        if link.full:
            await link.room(self.view_id)
            link = self._live()
        link.post(self.view_id, data)

    def send_nowait(self, data: bytes) -> bool:
        """Send one message, or return False when the page is slow."""
        link = self._live()
        if link.full:
            return False
        link.post(self.view_id, data)
        return True

    def _live(self) -> Link:
        link = self._link()
        if self.reason is not None or link is None or link.over:
            raise ChannelClosed(self.reason or "There is no page to show the View")
        return link

    def attach(self, receiver: Receiver) -> None:
        """Hand each message to `receiver` from now on, beginning with those that wait."""
        self._receiver = receiver
        asyncio.get_running_loop().call_soon(self._drain)

    def _drain(self) -> None:
        while self._unread and self._receiver is not None:
            self._receiver(self._unread.popleft())
        if self.reason is not None and self._receiver is not None:
            receiver, self._receiver = self._receiver, None
            receiver(None)

    def feed(self, message: bytes) -> None:
        """A message of the View has arrived."""
        if self.reason is not None:
            return
        self.spoken = True
        if self._receiver is not None and not self._unread:
            self._receiver(message)
            return
        if len(self._unread) >= _MAX_UNREAD:
            self.end("The View sends more than anyone reads")
            return
        self._unread.append(message)
        self._wake()

    def end(self, reason: str) -> None:
        """The View is gone. What arrived before can still be read."""
        if self.reason is None:
            self.reason = reason
            self._wake()
            link = self._link()
            if link is not None:
                link.free(self.view_id)
            if self._receiver is not None:
                self._drain()

    def _wake(self) -> None:
        if self._arrived is not None and not self._arrived.done():
            self._arrived.set_result(None)

    async def receive(self) -> bytes:
        """The next message of the View."""
        while not self._unread:
            if self.reason is not None:
                raise ChannelClosed(self.reason)
            self._arrived = asyncio.get_running_loop().create_future()
            await self._arrived
        return self._unread.popleft()

    async def aclose(self) -> None:
        """Take the View off the Stage."""
        if self.reason is None:
            self._unread.clear()
            self.end("This side closed the channel")
        self._on_close(self.view_id)
