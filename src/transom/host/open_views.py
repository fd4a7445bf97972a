"""The Views of a host: those that are open, and those that were closed.

1. A View opens while the tool's call runs. It gets the call's input first, then its result, or a
   cancellation.
2. Whatever goes wrong with a View does not change the result of the call it was opened for.
3. There are never more live Views than allowed: the least recently used one is closed first.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, ItemsView, Iterator, Mapping, ValuesView
from contextlib import suppress
from itertools import islice
from typing import Any

import msgspec

from transom.channel import Channel
from transom.errors import Refused, TransomError, ViewClosed
from transom.host.page import load_page
from transom.host.renderers import Renderer
from transom.host.view import View, ViewEnvironment, ViewOrigin
from transom.servers.server import Server
from transom.types import HostContext, Implementation, ToolInfo

_MAX_CLOSED = 1000
_MAX_CLOSED_BYTES = 32 * 1024 * 1024
_REASON_ONLY = 100  # bytes that a closed View costs without its input and result


class ClosedView(msgspec.Struct, frozen=True):
    """What is kept of a closed View: why it closed, and how to open it again."""

    reason: str
    origin: ViewOrigin
    size: int


class OpenViews(Mapping[str, View]):
    """Opens Views, and has those that are open by id, the least recently used one first.

    Args:
        environment: what each View is given.
        host_info: the host's name and version, for the Views.
        context: the surroundings of the Views.
        timeout: seconds a View may take to become live.
        max_page_bytes: how large a page may be.
        handlers: makes the handlers of one View's Bridge, by name.
        on_opened: called with each View that became live.
        on_failed: called with each View that did not, and the error.
    """

    def __init__(
        self,
        environment: ViewEnvironment,
        *,
        host_info: Implementation,
        context: HostContext,
        timeout: float,
        max_page_bytes: int,
        handlers: Callable[[View], Mapping[str, Callable[..., Any]]],
        on_opened: Callable[[View], object],
        on_failed: Callable[[View, BaseException], object],
    ) -> None:
        self._environment = environment
        self._max_live = environment.limits.max_live_views
        self._host_info = host_info
        self._context = context
        self._timeout = timeout
        self._max_page_bytes = max_page_bytes
        self._handlers = handlers
        self._on_opened = on_opened
        self._on_failed = on_failed
        self._open: dict[str, View] = {}
        self._closed: OrderedDict[str, ClosedView] = OrderedDict()
        self._closed_bytes = 0
        self._numbers: dict[str, int] = {}

    # --- which there are ---------------------------------------------------------------------

    def __getitem__(self, view_id: str) -> View:
        return self._open[view_id]

    def __iter__(self) -> Iterator[str]:
        return iter([view.id for view in self.values()])

    def __len__(self) -> int:
        return len(self._open)

    def values(self) -> ValuesView[View]:
        """The Views that are open now: a copy, which does not change as Views open and close."""
        return self._in_order().values()

    def items(self) -> ItemsView[str, View]:
        """The same, with their ids."""
        return self._in_order().items()

    def _in_order(self) -> dict[str, View]:
        return {view.id: view for view in sorted(self._open.values(), key=_last_used)}

    def new_id(self, server: str, taken: list[str]) -> str:
        """An id that no View of this host had, and that is not in `taken`."""
        number = self._numbers.get(server, 0) + 1
        while f"{server}-{number}" in taken:
            number += 1
        self._numbers[server] = number
        return f"{server}-{number}"

    def is_view_id(self, name: str) -> bool:
        """Whether a View of this host has or had that id."""
        server, _, number = name.rpartition("-")
        return number.isdecimal() and int(number) <= self._numbers.get(server, 0)

    def closed(self, view_id: str) -> ClosedView | None:
        """What is kept of a closed View, unless it was too long ago."""
        return self._closed.get(view_id)

    def closed_error(self, view_id: str) -> ViewClosed:
        """The error for a caller that wants a View which is not open."""
        closed = self._closed.get(view_id)
        if closed is not None:
            opener = closed.origin.tool.name[:128]
            text = f"View {view_id} is closed: {closed.reason}. Call {opener} to open another one"
        elif self.is_view_id(view_id):
            text = f"View {view_id} is closed"
        else:
            text = f"There is no View {view_id[:128]}"
        return ViewClosed(view_id, text)

    def remove(self, view: View) -> None:
        """Remove a View that has ended, and keep how to open it again."""
        if self._open.get(view.id, view) is not view:
            return
        self._open.pop(view.id, None)
        origin = view.origin
        size = len(msgspec.json.encode(origin.arguments)) + len(origin.result or b"")
        self._closed[view.id] = ClosedView(view.reason, origin, size + _REASON_ONLY)
        self._closed_bytes += size + _REASON_ONLY
        while len(self._closed) > _MAX_CLOSED or self._closed_bytes > _MAX_CLOSED_BYTES:
            _, oldest = self._closed.popitem(last=False)
            self._closed_bytes -= oldest.size

    def _add(self, view: View) -> list[View]:
        """Add a View. Returns those that have to be closed to make room for it.

        Raises:
            Refused: there is no room, and none that may be closed.
        """
        staying = [other for other in self.values() if other.state != "closing"]
        excess = max(len(staying) + 1 - self._max_live, 0)
        may_close = (other for other in staying if other.state == "live" and not other.pinned)
        closing = list(islice(may_close, excess))
        if len(closing) < excess:
            raise Refused(
                f"There are {len(staying)} Views open and none may be closed: they are pinned "
                "or opening. Close or unpin one, or raise Limits.max_live_views"
            )
        self._open[view.id] = view
        for other in closing:
            other.begin_closing(f"it was the least recently used of {self._max_live} Views")
        return closing

    # --- opening -----------------------------------------------------------------------------

    def set_context(self, changes: Mapping[str, Any]) -> None:
        """Change the surroundings of Views opened from now on."""
        known = msgspec.json.decode(self._context.to_wire(), type=dict[str, Any])
        merged = {**known, **changes}
        given = {key: value for key, value in merged.items() if value is not None}
        self._context = HostContext.from_wire(given)

    def open(self, view_id: str, origin: ViewOrigin, server: Server, renderer: Renderer) -> View:
        """Begin to open a View; `view.opened()` waits until it is live or has failed."""
        view = View(view_id, origin, self._environment)
        if (reopened := self._closed.pop(view_id, None)) is not None:
            self._closed_bytes -= reopened.size
        try:
            # Here, not in the task: the id is taken from now on.
            closing: list[View] | Refused = self._add(view)
        except Refused as refusal:
            closing = refusal
        view.opening = asyncio.create_task(self._run(view, closing, server, renderer))
        return view

    async def _run(
        self, view: View, closing: list[View] | Refused, server: Server, renderer: Renderer
    ) -> None:
        began = time.perf_counter()
        try:
            if isinstance(closing, Refused):
                raise closing
            async with asyncio.timeout(self._timeout):
                await self._show(view, closing, server, renderer)
        except TimeoutError as error:
            await self._fail(
                view, began, f"it was not initialised within {self._timeout:g} s", error
            )
        except asyncio.CancelledError as error:
            await self._fail(view, began, str(error) or "its opening was cancelled", error)
        except TransomError as error:
            await self._fail(view, began, str(error), error)
        except Exception as error:  # noqa: BLE001 - a renderer's failure is the View's, not the call's
            await self._fail(view, began, f"it could not be shown: {type(error).__name__}", error)
        else:
            view.opening = None
            self._record(view, "opened", began)
            self._on_opened(view)

    async def _show(
        self, view: View, closing: list[View], server: Server, renderer: Renderer
    ) -> None:
        origin = view.origin
        leaving = [asyncio.ensure_future(other.close()) for other in closing]
        page = await load_page(
            server,
            view_id=view.id,
            server_name=origin.server,
            uri=origin.uri,
            max_bytes=self._max_page_bytes,
        )
        if leaving:
            await asyncio.wait(leaving)
        channel = await renderer.open(page)
        try:
            await view.start(
                channel,
                server=server,
                host_info=self._host_info,
                context=msgspec.structs.replace(
                    self._context, tool_info=ToolInfo(tool=origin.tool)
                ),
                handlers=self._handlers(view),
            )
        except BaseException:
            await _close_quietly(channel)
            raise

    async def _fail(self, view: View, began: float, reason: str, error: BaseException) -> None:
        view.opening = None
        await view.fail(reason)
        self._record(view, "failed", began, reason)
        if not isinstance(error, Exception) or not str(error):  # it does not say what happened
            cause, error = error, view.closed_error()
            error.__cause__ = cause
        self._on_failed(view, error)

    @staticmethod
    def _record(view: View, outcome: str, began: float, detail: str | None = None) -> None:
        app = view.app
        if detail is None and app is not None:
            detail = f"{app.name[:100]} {app.version[:100]}"
        ms = round((time.perf_counter() - began) * 1000, 3)
        view.record("view", outcome, tool=view.origin.tool.name, ms=ms, detail=detail)


def _last_used(view: View) -> float:
    return view.last_used


async def _close_quietly(channel: Channel) -> None:
    with suppress(Exception):
        await channel.aclose()
