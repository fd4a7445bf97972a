"""The link to one Stage page, and the channels to its Views, which share it.

It outlives its socket: no message is lost or delivered twice.

1. Every frame has a number. Each side buffers what it sent until the other has acknowledged it.
2. When a socket drops, the link waits `grace` seconds for another. Page and link then exchange the
   last numbers they received, and resend the rest. A page that announced that it is unloading is
   either reloading or closed, which shows within `leaving_grace` seconds.
3. A repeated frame is dropped; a frame out of order ends the socket, not the link.
4. While more than `high_water` bytes wait for the page, senders wait. A link ends if its page is
   disconnected too long, reads nothing for `patience` seconds, or lets too much pile up, together
   with the other pages of its user.
5. A link that ends closes its socket, if it has one, with the reason.

A frame is a line of text, `NUMBER VIEW`, then a newline and the message; the view `-` is the Stage
itself. A line with only a number is an acknowledgement; a repeated one is a ping, and is answered
with an acknowledgement. No I/O here: the socket is a callback.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections import deque
from collections.abc import Awaitable, Callable

import msgspec

from transom.background import Debounced, ignore
from transom.channel import Pipe
from transom.errors import ChannelClosed, PeerError

CONTROL = "-"
"""The view of frames that are about the Stage itself."""

_MAX_UNREAD = 4096
_ACK_EVERY = 32
_ACK_SOON = 0.05


def _raise(error: BaseException) -> None:
    raise error


class Backlog:
    """How many bytes wait for all pages of one user, and how many may.

    Args:
        limit: a page that needs more is closed.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.bytes = 0
        """How many wait now."""


class LinkLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How long a link waits for its page, in seconds, and how much it keeps for it, in bytes."""

    grace: float = 30.0
    leaving_grace: float = 3.0
    patience: float = 30.0
    high_water: int = 4 * 1024 * 1024
    max_waiting: int = 64 * 1024 * 1024


HangUp = Callable[[str], Awaitable[object] | None]
"""Closes a socket with a reason; what it returns ends when it is closed."""


class Link:
    """Numbered frames to and from one page.

    `on_frame` gets the view and the message of each frame, `on_over` the reason when the link has
    ended. `on_away` is called whenever the page's socket is gone.
    """

    def __init__(
        self,
        on_frame: Callable[[str, bytes], object],
        on_over: Callable[[str], object],
        *,
        limits: LinkLimits | None = None,
        backlog: Backlog | None = None,
        on_away: Callable[[], object] | None = None,
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self._on_frame = on_frame
        self._on_over = on_over
        self._on_away = on_away or ignore
        self._limits = limits or LinkLimits()
        self._backlog = backlog or Backlog(self._limits.max_waiting)
        self._send: Callable[[str], object] | None = None
        self._hang_up: HangUp = ignore
        self._sent = 0
        self.received = 0
        """The number of the last frame that has arrived."""
        self._acknowledged = 0
        # As bytes, as they are sent: one character can make a text of them four times as large.
        self._kept: deque[tuple[int, bytes]] = deque()
        self._kept_bytes = 0
        self._room: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ack = Debounced(self._send_ack, _raise, delay=_ACK_SOON)
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._took_at = 0.0
        self._decided: asyncio.Future[None] | None = None
        self.over = False

    @property
    def full(self) -> bool:
        """Whether senders should wait."""
        return self._kept_bytes > self._limits.high_water or bool(self._room)

    # --- sockets -----------------------------------------------------------------------------

    def attach(
        self,
        send: Callable[[str], object],
        received: int,
        hang_up: HangUp | None = None,
    ) -> None:
        """Use this socket from now on, beginning after the last frame that the page has."""
        if received > self._sent or received < 0:
            raise PeerError("The page claims frames that were never sent")
        self._cancel_timer()
        self._forget(received)
        self._hang_up("the page is back on another socket")
        self._send, self._hang_up = send, hang_up or ignore
        for _, frame in self._kept:
            send(frame.decode())
        self._start_patience()

    def detach(self, send: Callable[[str], object], *, leaving: bool = False) -> None:
        """That socket is gone; the page has `grace` seconds to reconnect.

        `leaving`: the page announced that it is being closed or reloaded.
        """
        if self._send is not None and self._send != send:
            return  # the page has already reconnected
        self._send, self._hang_up = None, ignore
        if self.over or self._timer is not None:
            return
        grace = self._limits.grace
        if leaving:
            grace = min(grace, self._limits.leaving_grace)
        away = f"the page was disconnected for more than {grace:g} s"
        text = "the page was closed" if leaving else away
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(grace, self.end, text)
        if leaving:
            self._decided = loop.create_future()
        self._on_away()

    @property
    def leaving(self) -> bool:
        """Whether the page announced that it is unloading, and may still reconnect."""
        return self._decided is not None

    async def decided(self) -> None:
        """Wait until a page that is unloading has reconnected, or counts as closed."""
        while self._decided is not None:
            await asyncio.shield(self._decided)

    def end(self, reason: str) -> Awaitable[object] | None:
        """End the link: wake all waiting senders, and send and receive nothing more.

        Returns:
            What ends when the page has the reason; None if it has no socket.
        """
        if self.over:
            return None
        self.over = True
        self._cancel_timer()
        self._ack.close()
        if self._stuck_timer is not None:
            self._stuck_timer.cancel()
        hang_up, self._send, self._hang_up = self._hang_up, None, ignore
        self._kept.clear()
        self._count(-self._kept_bytes)
        self._wake()
        closing = hang_up(reason)
        self._on_over(reason)
        return closing

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._decided is not None:
            self._decided.set_result(None)
            self._decided = None

    # --- out ---------------------------------------------------------------------------------

    def post(self, view: str, message: bytes) -> None:
        """Send a frame, now or when the page has reconnected."""
        if self.over:
            return
        self._sent += 1
        frame = b"%d %b\n%b" % (self._sent, view.encode(), message)
        if not self._kept:
            self._start_patience()
        self._kept.append((self._sent, frame))
        self._count(sys.getsizeof(frame))
        if self._kept_bytes > self._limits.max_waiting:
            self.end("the page does not read what is sent to it")
        elif self._backlog.bytes > self._backlog.limit:
            self.end("the pages of this user do not read what is sent to them")
        elif self._send is not None:
            self._send(frame.decode())

    async def room(self, view: str) -> None:
        """Wait until there is room for one more message; first come, first served.

        After waiting, a caller must post before it awaits anything else. `free` and the end of the
        link also wake waiters.
        """
        if self.over or not self.full:
            return
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        entry = view, place
        self._room.append(entry)
        try:
            await place
        finally:
            self._room.remove(entry)
            loop.call_soon(self._wake)

    def free(self, view: str) -> None:
        """Wake the senders to a View that is gone."""
        for waiting, place in self._room:
            if waiting == view and not place.done():
                place.set_result(None)

    def _forget(self, number: int) -> bool:
        """Drop frames that the page has acknowledged; returns whether there were any."""
        if not self._kept or self._kept[0][0] > number:
            return False
        while self._kept and self._kept[0][0] <= number:
            self._count(-sys.getsizeof(self._kept.popleft()[1]))
        self._took_at = asyncio.get_running_loop().time()
        self._wake()
        return True

    def _count(self, change: int) -> None:
        self._kept_bytes += change
        self._backlog.bytes += change

    def _wake(self) -> None:
        """Wake the first waiting sender if there is room, or all of them if the link has ended."""
        if self.over or self._kept_bytes <= self._limits.high_water:
            for _, place in self._room:
                if not place.done():
                    place.set_result(None)
                if not self.over:
                    break

    def _start_patience(self) -> None:
        """From now on the page has to acknowledge something every `patience` seconds."""
        loop = asyncio.get_running_loop()
        self._took_at = loop.time()
        if self._stuck_timer is None:
            self._stuck_timer = loop.call_later(self._limits.patience, self._check_progress)

    def _check_progress(self) -> None:
        self._stuck_timer = None
        if not self._kept or self._send is None:
            return  # everything is acknowledged; the next frame starts the timer again
        loop = asyncio.get_running_loop()
        left = self._took_at + self._limits.patience - loop.time()
        if left <= 0:
            self.end(f"the page read nothing for {self._limits.patience:g} s")
        else:
            self._stuck_timer = loop.call_later(left, self._check_progress)

    # --- in ----------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """Handle what arrived on the socket; a PeerError says that the socket should be closed."""
        head, newline, message = text.partition("\n")
        number_text, _, view = head.partition(" ")
        if not number_text.isascii() or not number_text.isdecimal() or len(number_text) > 15:
            raise PeerError("A frame begins with its number")
        number = int(number_text)
        if not newline:
            if view or number > self._sent:
                raise PeerError("The page has frames that were never sent")
            if not self._forget(number):
                self._ack.trigger()  # a repeated number is a ping
            return
        if number <= self.received:
            return  # resent, because our acknowledgement was lost
        if number != self.received + 1:
            raise PeerError(f"Frame {number} came after {self.received}")
        self.received = number
        if number - self._acknowledged >= _ACK_EVERY:
            self._send_ack()
        else:
            self._ack.trigger()
        self._on_frame(view, message.encode())

    def _send_ack(self) -> None:
        self._ack.drop()
        self._acknowledged = self.received
        if self._send is not None:
            self._send(str(self.received))


class ViewChannel:
    """A Channel to one View, over whichever link the Stage has to its page now.

    Messages are forwarded as they are, never decoded.
    """

    def __init__(
        self,
        view_id: str,
        link: Callable[[], Link | None],
        on_close: Callable[[ViewChannel], object],
    ) -> None:
        self.view_id = view_id
        self._link = link
        self._on_close = on_close
        self._incoming = Pipe(_MAX_UNREAD)
        self.attach = self._incoming.attach
        self.receive = self._incoming.receive
        self.reason: str | None = None
        """Why it is closed; None while it is open."""
        self.spoken = False
        """Whether the View has sent anything yet."""

    async def send(self, data: bytes) -> None:
        """Send one message; waits while the page is slow."""
        if not self.send_nowait(data):
            await self._live().room(self.view_id)
            self._live().post(self.view_id, data)

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

    def feed(self, message: bytes) -> None:
        """A message of the View has arrived."""
        if self.reason is not None:
            return
        self.spoken = True
        if len(self._incoming.messages) >= _MAX_UNREAD:
            self.end("The View sends more than anyone reads")
        else:
            self._incoming.put(message)

    def end(self, reason: str) -> None:
        """The View is gone. Messages that arrived before can still be read."""
        if self.reason is None:
            self.reason = self._incoming.reason = reason
            if (link := self._link()) is not None:
                link.free(self.view_id)
            self._incoming.close()

    async def aclose(self) -> None:
        """Take the View off the Stage."""
        if self.reason is None:
            self._incoming.messages.clear()
            self.end("This side closed the channel")
        self._on_close(self)
