"""Which Views there are: those that live, in the order of their use, and those that were closed.

Opening Views: for a tool's call as it runs, or once more for a View that was closed.

1. The View opens while the tool works. It gets the call's input first, then its result, or the word
   that there will be none.
2. Whatever goes wrong with the View, the call's result is not touched by it.
3. There are never more live Views than allowed: the least recently used one goes first.
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
from transom.errors import Refused, TransomError
from transom.host.page import load_page, view_uri
from transom.host.renderers import Renderer
from transom.host.tasks import Tasks
from transom.host.view import Home, Origin, View
from transom.host.view_server import ViewServer
from transom.servers.server import Server
from transom.types import HostContext, Implementation, Tool, ToolInfo

__all__ = ["ClosedView", "Openings", "Shelf", "origin_of"]


_MAX_CLOSED = 1000
_MAX_CLOSED_BYTES = 32 * 1024 * 1024
_REASON_ONLY = 100  # bytes that a closed View costs without its input and result


class ClosedView(msgspec.Struct, frozen=True):
    """What is left of a View: why it closed, and how to open it again."""

    id: str
    reason: str
    origin: Origin
    size: int


class Shelf(Mapping[str, View]):
    """The Views that live, by id, the least recently used one first.

    Args:
        max_live: how many there may be.
    """

    def __init__(self, max_live: int) -> None:
        self._max_live = max_live
        self._live: OrderedDict[str, View] = OrderedDict()
        self._closed: OrderedDict[str, ClosedView] = OrderedDict()
        self._closed_bytes = 0
        self._numbers: dict[str, int] = {}

    def __getitem__(self, view_id: str) -> View:
        return self._live[view_id]

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._live))

    def __len__(self) -> int:
        return len(self._live)

    def values(self) -> ValuesView[View]:
        """The Views there are now; they may come and go while these are looked at."""
        return dict(self._live).values()

    def items(self) -> ItemsView[str, View]:
        """The same, with their ids."""
        return dict(self._live).items()

    def new_id(self, server: str, taken: Mapping[str, object]) -> str:
        """An id that no View of this host had, and no server has for a name."""
        number = self._numbers.get(server, 0) + 1
        while f"{server}-{number}" in taken:
            number += 1
        self._numbers[server] = number
        return f"{server}-{number}"

    def is_view_id(self, name: str) -> bool:
        """Whether a View of this host has or had that id."""
        server, _, number = name.rpartition("-")
        return number.isdecimal() and int(number) <= self._numbers.get(server, 0)

    def add(self, view: View) -> list[View]:
        """Give a View its place. Returns those that have to be closed to make room for it.

        Raises:
            Refused: there is no room, and nothing that may be closed.
        """
        staying = [other for other in self._live.values() if other.state != "closing"]
        excess = max(len(staying) + 1 - self._max_live, 0)
        may_go = (other for other in staying if other.state == "live" and not other.pinned)
        victims = list(islice(may_go, excess))
        if len(victims) < excess:
            raise Refused(
                f"There are {len(staying)} Views open and none may be closed: they are pinned "
                "or opening. Close or unpin one, or raise Limits.max_live_views"
            )
        self._forget(view.id)
        self._live[view.id] = view
        for victim in victims:
            victim.retire(f"it was the least recently used of {self._max_live} Views")
        return victims

    def touch(self, view: View) -> None:
        """Note that a View was used."""
        if view.id in self._live:
            self._live.move_to_end(view.id)

    def remove(self, view: View) -> None:
        """Take a View that has ended off, and remember how to open it again."""
        if self._live.get(view.id) is not view:
            return
        del self._live[view.id]
        origin = view.origin
        size = _REASON_ONLY + len(msgspec.json.encode(origin.arguments)) + len(origin.result or b"")
        self._closed[view.id] = ClosedView(view.id, view.reason, origin, size)
        self._closed_bytes += size
        while len(self._closed) > _MAX_CLOSED or self._closed_bytes > _MAX_CLOSED_BYTES:
            _, oldest = self._closed.popitem(last=False)
            self._closed_bytes -= oldest.size

    def closed(self, view_id: str) -> ClosedView | None:
        """What is left of a View, unless it was too long ago."""
        return self._closed.get(view_id)

    def _forget(self, view_id: str) -> None:
        forgotten = self._closed.pop(view_id, None)
        if forgotten is not None:
            self._closed_bytes -= forgotten.size


class Openings:
    """Opens Views.

    Args:
        shelf: where they stand.
        home: what they share.
        tasks: the tasks that servers give to Views.
        host_info: how the host names itself to them.
        context: what they are told of their surroundings.
        timeout: seconds a View has to come to live.
        max_page_bytes: how large a page may be.
        handlers: makes the handlers of one View's Bridge, by name.
        on_opened: told of each View that came to live.
        on_failed: told of each that did not, with the reason.
    """

    def __init__(
        self,
        shelf: Shelf,
        home: Home,
        tasks: Tasks,
        *,
        host_info: Implementation,
        context: HostContext,
        timeout: float,
        max_page_bytes: int,
        handlers: Callable[[View], Mapping[str, Callable[..., Any]]],
        on_opened: Callable[[View], object],
        on_failed: Callable[[View, BaseException], object],
    ) -> None:
        self.timeout = timeout
        self._shelf = shelf
        self._home = home
        self._tasks = tasks
        self._host_info = host_info
        self._context = context
        self._max_page_bytes = max_page_bytes
        self._handlers = handlers
        self._on_opened = on_opened
        self._on_failed = on_failed

    def set_context(self, changes: Mapping[str, Any]) -> None:
        """Change what Views opened from now on are told of their surroundings."""
        known = msgspec.json.decode(self._context.to_wire(), type=dict[str, Any])
        merged = {**known, **changes}
        given = {key: value for key, value in merged.items() if value is not None}
        self._context = HostContext.from_wire(given)

    def begin(self, view_id: str, origin: Origin, upstream: Server, renderer: Renderer) -> View:
        """Begin to open a View; `view.opening` ends when it is live or has failed."""
        view = View(view_id, origin, self._home)
        try:
            # At once, not in the task: the id is taken from now on.
            victims: list[View] | Refused = self._shelf.add(view)
        except Refused as refusal:
            victims = refusal
        view.opening = asyncio.create_task(self._open(view, victims, upstream, renderer))
        return view

    async def _open(
        self, view: View, victims: list[View] | Refused, upstream: Server, renderer: Renderer
    ) -> None:
        began = time.perf_counter()
        try:
            if isinstance(victims, Refused):
                raise victims
            async with asyncio.timeout(self.timeout):
                await self._show(view, victims, upstream, renderer)
        except TimeoutError as error:
            text = f"it was not initialised within {self.timeout:g} s"
            await self._failed(view, began, text, error)
        except asyncio.CancelledError as error:
            await self._failed(view, began, str(error) or "it was given up", error)
        except TransomError as error:
            await self._failed(view, began, str(error), error)
        except Exception as error:  # noqa: BLE001 - a renderer's failure is the View's, not the call's
            await self._failed(view, began, f"it could not be shown: {type(error).__name__}", error)
        else:
            view.opening = None
            self._record(view, "opened", began)
            self._on_opened(view)

    async def _show(
        self, view: View, victims: list[View], upstream: Server, renderer: Renderer
    ) -> None:
        origin = view.origin
        leaving = [asyncio.ensure_future(victim.close()) for victim in victims]
        page = await load_page(
            upstream,
            view_id=view.id,
            server=origin.server,
            uri=origin.uri,
            max_bytes=self._max_page_bytes,
        )
        if leaving:
            await asyncio.wait(leaving)
        channel = await renderer.open(page)
        try:
            await view.start(
                channel,
                upstream=ViewServer(
                    upstream,
                    origin.server,
                    view.id,
                    self._home.audit,
                    self._tasks,
                    lambda: self._shelf.touch(view),
                ),
                host_info=self._host_info,
                context=msgspec.structs.replace(
                    self._context, tool_info=ToolInfo(tool=origin.tool)
                ),
                handlers=self._handlers(view),
            )
        except BaseException:
            await _close_quietly(channel)
            raise

    async def _failed(self, view: View, began: float, reason: str, error: BaseException) -> None:
        view.opening = None
        await view.fail(reason)
        self._record(view, "failed", began, reason)
        self._on_failed(view, error)

    def _record(self, view: View, outcome: str, began: float, detail: str | None = None) -> None:
        app = view.app
        if detail is None and app is not None:
            detail = f"{app.name[:100]} {app.version[:100]}"
        self._home.audit.record(
            "view",
            outcome,
            server=view.server,
            view=view.id,
            tool=view.origin.tool.name,
            ms=round((time.perf_counter() - began) * 1000, 3),
            detail=detail,
        )


def origin_of(server: str, tool: Tool, arguments: Mapping[str, Any] | None) -> Origin | None:
    """What a call of `tool` would open; None when it opens no View.

    Raises:
        InvalidResult: it links something that is no View.
    """
    uri = view_uri(tool)
    return None if uri is None else Origin(server, uri, tool, dict(arguments or {}))


async def _close_quietly(channel: Channel) -> None:
    with suppress(Exception):
        await channel.aclose()
