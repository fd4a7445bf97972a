"""What a View hears of its server's lists: that they changed, once it is ready to hear it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress

from transom.errors import NotConnected
from transom.host.coalesce import Coalesced
from transom.host.forward import Forward

__all__ = ["ServerNews"]


class ServerNews:
    """Passes the server's `list_changed` notices to one View.

    What comes before the View is initialised is told when it is. However many come while the View
    is slow, one of each kind is told.

    Args:
        forward: the way to the server.
        notify: sends a notification to the View; waits while the View is slow.
        report: told what goes wrong.
    """

    def __init__(
        self,
        forward: Forward,
        notify: Callable[[str, bytes], Awaitable[None]],
        report: Callable[[BaseException], object],
    ) -> None:
        self._forward = forward
        self._notify = notify
        self._changes: set[str] = set()
        self._ready = False
        self._telling = Coalesced(self._tell, report)
        self._unsubscribe = forward.upstream.subscribe(self._changed)

    def ready(self, is_ready: bool = True) -> None:
        """Note whether the View can be told."""
        self._ready = is_ready
        if is_ready and self._changes:
            self._telling.want()

    def close(self) -> None:
        """Hear and tell no more."""
        self._unsubscribe()
        self._telling.close()

    def _changed(self, method: str) -> None:
        if self._forward.announces(method):
            self._changes.add(method)
            if self._ready:
                self._telling.want()

    async def _tell(self) -> None:
        with suppress(NotConnected):  # the View is gone; its news with it
            while self._changes and self._ready:
                await self._notify(self._changes.pop(), b"{}")
