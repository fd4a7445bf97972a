"""The calls that a View is used for: which one it shows, and what the View has got of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from transom.errors import NotConnected, OutOfOrder
from transom.host.limits import Limits
from transom.host.views.bridge import Bridge
from transom.json_values import members
from transom.protocol.messages import ToolOutcome, check_arguments, result_json
from transom.types import Tool


class ViewOrigin(msgspec.Struct, eq=False):
    """The call that a View shows: all that is needed to reopen it."""

    server: str
    uri: str
    tool: Tool
    arguments: dict[str, Any]
    complete: bool = True
    """False: the arguments are still being written, and these are those so far."""
    result: bytes | None = None
    """The call's result as JSON, once there is one."""
    cancelled: str | None = None
    """Why there will be no result."""
    reused: bool = False
    """Whether the View was open before."""

    @property
    def ended(self) -> bool:
        """Whether the call has a result, or will have none."""
        return self.result is not None or self.cancelled is not None


class ShownCalls:
    """The calls of one View. It shows one at a time, and the next when that one has ended.

    Whoever sends it the data of a call waits while it is slow to read, for `unresponsive_after`
    at most, because the call waits too. Then `on_slow` is called.
    """

    def __init__(self, first: ViewOrigin, limits: Limits, on_slow: Callable[[], object]) -> None:
        self.shown = first
        self.newest = first
        self._limits = limits
        self._on_slow = on_slow
        self._bridge: Bridge | None = None
        self._end_sent = False  # of the call that it shows

    async def start(self, bridge: Bridge) -> None:
        """Send the View what there is of its call; the Bridge queues it until it is initialised."""
        self._bridge = bridge
        await self._send_input()
        await self._send_outcome()

    def add(self, call: ViewOrigin) -> None:
        """Use the View for another call, which it shows at once or after the one it shows now."""
        call.reused, self.newest = True, call
        if self.shown.ended:
            self._show(call)

    async def write(
        self, call: ViewOrigin, arguments: Mapping[str, Any], *, complete: bool
    ) -> None:
        """Take the arguments of a call as far as they are written, or all of them."""
        if call.complete or call.ended:
            what = "the input of that call" if call.complete else "the end of that call"
            raise OutOfOrder(f"The View has {what} already")
        check_arguments(call.tool.name, arguments, self._limits.max_message_depth)
        call.arguments, call.complete = dict(arguments), complete
        if call is self.shown:
            await self._send_input()

    async def end(
        self, call: ViewOrigin, result: ToolOutcome | None, cancelled: str | None
    ) -> bool:
        """Take the result of a call, or why there is none. False: it will not be shown."""
        if result is not None and not call.complete:
            raise OutOfOrder("The View has not all of the input of that call yet")
        call.result = None if result is None else result_json(result)
        call.cancelled = cancelled
        if call is not self.shown:
            if result is None:
                return False
            self._show(call)
        await self._send_outcome()
        return True

    def _show(self, call: ViewOrigin) -> None:
        self.shown, self._end_sent = call, False
        if self._bridge is not None:
            with suppress(NotConnected):  # it is closing
                self._bridge.begin_call(call.arguments if call.complete else None)

    async def _send_input(self) -> None:
        bridge, call = self._bridge, self.shown
        if bridge is None:
            return
        if call.complete:
            await self._send(bridge.send_tool_input(call.arguments))
        elif call.arguments:
            await self._send(bridge.send_tool_input_partial(call.arguments))

    async def _send_outcome(self) -> None:
        bridge, call = self._bridge, self.shown
        if bridge is None or self._end_sent:
            return
        self._end_sent = call.ended
        if call.result is not None:
            await self._send(bridge.send_tool_result(members(call.result)))
        elif call.cancelled is not None:
            await self._send(bridge.send_tool_cancelled(call.cancelled))

    async def _send(self, sending: Awaitable[None]) -> None:
        try:
            async with asyncio.timeout(self._limits.unresponsive_after):
                with suppress(NotConnected):  # it is closing
                    await sending
        except TimeoutError:
            self._on_slow()
