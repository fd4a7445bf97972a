"""The calls that a streamed model is writing, as a framework tells of them: piece by piece."""

from __future__ import annotations

from collections.abc import Hashable

from transom.host.tool_host import ToolHost
from transom.recent import Recent

_MAX_CALLS = 100  # that are written at once


class StreamedCalls:
    """Hands what a model writes of a call's arguments to its host.

    A framework names the tool and the call once, and then a call by its place in the response.
    """

    def __init__(self, host: ToolHost) -> None:
        self._host = host
        self._calls: Recent[Hashable, tuple[str, str]] = Recent(_MAX_CALLS)

    def begin(self, place: Hashable, name: str, call_id: str) -> None:
        """The model begins a call."""
        self._calls[place] = name, call_id

    def add(self, place: Hashable, text: object) -> None:
        """It has written more of the arguments; what is no text comes with the call itself."""
        call = self._calls.get(place)
        if call is not None and isinstance(text, str):
            name, call_id = call
            self._host.stream_arguments(name, text, call_id=call_id)
