"""A link to one Stage page that outlives its socket: nothing is lost and nothing comes twice.

1. Every frame has a number. A side keeps what it sent until the other has said that it has it.
2. When a socket is gone, the link waits `grace` seconds for another. The page then says what it
   has, the link says what it has, and both send the rest again. A page that said it is leaving is
   reloading or closed for good, which shows within `leaving_grace` seconds.
3. A frame that was there already is dropped; a frame out of order ends the socket, not the link.
4. While more than `high_water` bytes wait for the page, senders wait. A link whose page has been
   away too long, takes nothing for `patience` seconds, or lets too much pile up is over.
5. A link that is over hangs up: its socket, if it has one, is closed with the reason.

A frame is a line of text, `NUMBER VIEW`, then a newline and the message; the view `-` is the Stage
itself. A line that is only a number says what has arrived. No I/O here: the socket is a callback.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable

from transom.errors import PeerError

__all__ = ["CONTROL", "Link"]

CONTROL = "-"
"""The view of frames that are about the Stage itself."""

_ACK_EVERY = 32
_ACK_SOON = 0.05


def _nothing(*_: object) -> None:
    pass


class Link:
    """Numbered frames to and from one page.

    Args:
        on_frame: gets the view and the message of each frame, once, in order.
        on_over: told once, with the reason, when the link has ended.
        grace: seconds to wait for the page to come back.
        leaving_grace: the same for a page that said it is leaving.
        patience: seconds a page that is there may take nothing of what was sent to it.
        high_water: bytes on their way above which senders wait.
        max_waiting: bytes on their way at which the link is given up.
        on_away: told whenever the page's socket is gone.
    """

    def __init__(
        self,
        on_frame: Callable[[str, bytes], object],
        on_over: Callable[[str], object],
        *,
        grace: float = 30.0,
        leaving_grace: float = 3.0,
        patience: float = 30.0,
        high_water: int = 4 * 1024 * 1024,
        max_waiting: int = 64 * 1024 * 1024,
        on_away: Callable[[], object] | None = None,
    ) -> None:
        self.id = secrets.token_urlsafe(12)
        self._on_frame = on_frame
        self._on_over = on_over
        self._on_away = on_away or _nothing
        self._grace = grace
        self._leaving_grace = leaving_grace
        self._patience = patience
        self._high_water = high_water
        self._max_waiting = max_waiting
        self._send: Callable[[str], object] | None = None
        self._hang_up: Callable[[str], object] = _nothing
        self._sent = 0
        self._received = 0
        self._acked_there = 0
        self._kept: deque[tuple[int, str]] = deque()
        self._kept_bytes = 0
        self._room: deque[tuple[str, asyncio.Future[None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ack_timer: asyncio.TimerHandle | None = None
        self._stuck_timer: asyncio.TimerHandle | None = None
        self._took_at = 0.0
        self._decided: asyncio.Future[None] | None = None
        self.over = False

    @property
    def received(self) -> int:
        """The number of the last frame that has arrived."""
        return self._received

    @property
    def full(self) -> bool:
        """Whether senders should wait."""
        return self._kept_bytes > self._high_water or bool(self._room)

    # --- sockets -----------------------------------------------------------------------------

    def attach(
        self,
        send: Callable[[str], object],
        received: int,
        hang_up: Callable[[str], object] | None = None,
    ) -> None:
        """A socket is there.

        Args:
            send: puts a text on it.
            received: what the page has.
            hang_up: closes it, given the reason.

        Raises:
            PeerError: the page claims what was never sent.
        """
        if received > self._sent or received < 0:
            raise PeerError("The page claims frames that were never sent")
        self._cancel_timer()
        self._forget(received)
        self._send, self._hang_up = send, hang_up or _nothing
        for _, frame in self._kept:
            send(frame)
        self._watch()

    def detach(self, send: Callable[[str], object], *, leaving: bool = False) -> None:
        """That socket is gone; the page has `grace` seconds to come back on another.

        Args:
            send: as given to `attach`.
            leaving: the page said that it is being closed or loaded anew.
        """
        if self._send is not None and self._send != send:
            return  # it came back on another already
        self._send, self._hang_up = None, _nothing
        if self.over or self._timer is not None:
            return
        grace = min(self._leaving_grace, self._grace) if leaving else self._grace
        text = "the page was closed" if leaving else f"the page was away for more than {grace:g} s"
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(grace, self.end, text)
        if leaving:
            self._decided = loop.create_future()
        self._on_away()

    @property
    def leaving(self) -> bool:
        """Whether the page said that it is leaving, and neither came back nor stayed away."""
        return self._decided is not None

    async def decided(self) -> None:
        """Wait until a page that is leaving has come back, or will not."""
        while self._decided is not None:
            await asyncio.shield(self._decided)

    def end(self, reason: str) -> None:
        """It is over: senders go on, and nothing is sent or heard any more."""
        if self.over:
            return
        self.over = True
        self._cancel_timer()
        for timer in (self._ack_timer, self._stuck_timer):
            if timer is not None:
                timer.cancel()
        hang_up, self._send, self._hang_up = self._hang_up, None, _nothing
        self._kept.clear()
        self._kept_bytes = 0
        self._wake()
        hang_up(reason)
        self._on_over(reason)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._decided is not None:
            self._decided.set_result(None)
            self._decided = None

    # --- out ---------------------------------------------------------------------------------

    def post(self, view: str, message: bytes) -> None:
        """Send, now or when the page is back."""
        if self.over:
            return
        self._sent += 1
        frame = f"{self._sent} {view}\n{message.decode()}"
        if not self._kept:
            self._watch()
        self._kept.append((self._sent, frame))
        self._kept_bytes += len(frame)
        if self._kept_bytes > self._max_waiting:
            self.end("the page does not take what is sent to it")
        elif self._send is not None:
            self._send(frame)

    async def room(self, view: str) -> None:
        """Wait until there is room for one more; first come, first served.

        Whoever waited posts before anything else is awaited. `free` and the link's end let them
        go on too.
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
        """Nothing more will be sent to a View: whoever waits to do so goes on."""
        for waiting, place in self._room:
            if waiting == view and not place.done():
                place.set_result(None)

    def _forget(self, number: int) -> None:
        """The page has everything up to `number`."""
        if not self._kept or self._kept[0][0] > number:
            return
        while self._kept and self._kept[0][0] <= number:
            self._kept_bytes -= len(self._kept.popleft()[1])
        self._took_at = asyncio.get_running_loop().time()
        self._wake()

    def _wake(self) -> None:
        """Let the first of those who wait go on, if there is room; all of them if it is over."""
        if self.over or self._kept_bytes <= self._high_water:
            for _, place in self._room:
                if not place.done():
                    place.set_result(None)
                if not self.over:
                    break

    def _watch(self) -> None:
        """From now on the page has to take something now and then."""
        loop = asyncio.get_running_loop()
        self._took_at = loop.time()
        if self._stuck_timer is None:
            self._stuck_timer = loop.call_later(self._patience, self._look)

    def _look(self) -> None:
        self._stuck_timer = None
        if not self._kept or self._send is None:
            return  # nothing is due; `_watch` begins anew when something is
        loop = asyncio.get_running_loop()
        left = self._took_at + self._patience - loop.time()
        if left <= 0:
            self.end(f"the page took nothing for {self._patience:g} s")
        else:
            self._stuck_timer = loop.call_later(left, self._look)

    # --- in ----------------------------------------------------------------------------------

    def feed(self, text: str) -> None:
        """Take what arrived on the socket.

        Raises:
            PeerError: it is not what a page sends; the socket should be closed.
        """
        head, newline, message = text.partition("\n")
        number_text, _, view = head.partition(" ")
        if not number_text.isascii() or not number_text.isdecimal() or len(number_text) > 15:
            raise PeerError("A frame begins with its number")
        number = int(number_text)
        if not newline:
            if view or number > self._sent:
                raise PeerError("The page has frames that were never sent")
            self._forget(number)
            return
        if number <= self._received:
            return  # it was sent again because our word of it was lost
        if number != self._received + 1:
            raise PeerError(f"Frame {number} came after {self._received}")
        self._received = number
        self._acknowledge()
        self._on_frame(view, message.encode())

    def _acknowledge(self) -> None:
        if self._received - self._acked_there >= _ACK_EVERY:
            self._ack_now()
        elif self._ack_timer is None:
            self._ack_timer = asyncio.get_running_loop().call_later(_ACK_SOON, self._ack_now)

    def _ack_now(self) -> None:
        if self._ack_timer is not None:
            self._ack_timer.cancel()
            self._ack_timer = None
        self._acked_there = self._received
        if self._send is not None:
            self._send(str(self._received))
