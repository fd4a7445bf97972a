"""Calls that a model is still writing: their Views open, and show the arguments so far.

1. A View opens while they are written only if it would open whatever they are, and unasked.
2. A call that is not made in time is cancelled, and its View closed.
3. However fast a model writes, a View gets its arguments twenty times a second at most.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from pydantic_core import from_json

from transom.background import Background, Debounced
from transom.errors import TransomError
from transom.host.open_views import USABLE, OpenViews, ViewCall
from transom.json_values import as_object
from transom.types import Tool

_Key = tuple[str, str, str]

_SHOWN_EVERY = 0.05  # seconds
_MADE_WITHIN = 60.0  # seconds after which a call that was begun is not waited for
_MAX_CALLS = 16  # that are written at once
_MAX_TEXT = 4 * 1024 * 1024  # characters of a call's arguments


class WrittenCalls:
    """The calls that the model of one host is writing, by their ids, servers and tools."""

    def __init__(
        self, views: OpenViews, background: Background, report: Callable[[BaseException], object]
    ) -> None:
        self._views = views
        self._background = background
        self._report = report
        self._written: dict[_Key, _WrittenCall] = {}

    def add(self, call_id: str, server: str, tool: Tool, text: str) -> None:
        """Add what the model has written of a call's arguments since the last time."""
        key = call_id, server, tool.name  # what is written for one server is no other's to read
        written = self._written.get(key)
        if written is None:
            if len(self._written) >= _MAX_CALLS or not self._views.opens_unasked(server, tool):
                return
            written = _WrittenCall(self._views, server, tool, self._report)
            self._written[key] = written
        if written.expires is not None:
            written.expires.cancel()
        loop = asyncio.get_running_loop()
        written.expires = loop.call_later(_MADE_WITHIN, self._drop, key)
        written.add(text)

    def take(self, call_id: str | None, server: str, tool: Tool) -> ViewCall | None:
        """The View of a call that is made now, if it has one."""
        if call_id is None:
            return None
        written = self._written.pop((call_id, server, tool.name), None)
        return None if written is None else written.end()

    def close(self) -> None:
        """Wait for no call any more."""
        for written in self._written.values():
            written.end()
        self._written.clear()

    def _drop(self, key: _Key) -> None:
        begun = self._written.pop(key).end()
        if begun is not None:
            self._background.start(_cancel(begun))


class _WrittenCall:
    def __init__(
        self,
        views: OpenViews,
        server: str,
        tool: Tool,
        report: Callable[[BaseException], object],
    ) -> None:
        self.expires: asyncio.TimerHandle | None = None
        self._begin = partial(views.begin, server, tool)
        self._begun: ViewCall | None = None
        self._pieces: list[str] = []
        self._length = 0
        self._shown = Debounced(self._show, report, delay=_SHOWN_EVERY)

    def add(self, text: str) -> None:
        self._length += len(text)
        if self._length <= _MAX_TEXT:
            self._pieces.append(text)
            self._shown.trigger()

    async def _show(self) -> None:
        self._pieces = ["".join(self._pieces)]
        try:
            arguments = as_object(from_json(self._pieces[0], allow_partial="trailing-strings"))
            if self._begun is None:
                self._begun = self._begin()
            view, call = self._begun
            await view.send_partial_input(arguments, call=call)
        except (ValueError, TypeError):
            pass  # the text is no JSON, which the call itself will say
        except TransomError:
            self._shown.close()  # the View cannot be opened, which the call itself will say

    def end(self) -> ViewCall | None:
        self._shown.close()
        if self.expires is not None:
            self.expires.cancel()
        begun = self._begun
        return begun if begun is not None and begun.view.state in USABLE else None


async def _cancel(begun: ViewCall) -> None:
    await begun.view.deliver(cancelled="The call was not made", call=begun.call)
    if not begun.call.reused:
        await begun.view.close("the call that it was opened for was not made")
