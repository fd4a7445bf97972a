"""What a server writes to its standard error, for the page of `transom dev`.

1. Each line is an entry of the log `output`. A line that does not end is shown in parts.
2. What was written since the last call began is added to that call, if it failed: a server tells a
   model less of an exception than its author needs. Nobody knows which call wrote a line.
"""

from __future__ import annotations

import codecs
import logging
import re
import time
from collections.abc import Mapping

from transom.background import Debounced, logs_errors
from transom.dev.page import DevPage
from transom.json_values import as_object, clean

_log = logging.getLogger("transom.dev")

_MAX_LINE = 2000  # characters
_MAX_KEPT = 8000  # characters since a call began
_SHOW_EVERY = 0.1  # seconds
_STYLE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")  # of a terminal


class ServerOutput:
    """Shows what is fed to it on the page."""

    def __init__(self, page: DevPage) -> None:
        self._page = page
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self.kept = ""
        """The end of what was written since the last call began."""
        self._is_of_call = False
        self._showing = Debounced(self._show_in_call, logs_errors(_log), delay=_SHOW_EVERY)

    def begin_call(self) -> None:
        """What comes from now on may be about a new call."""
        self.kept, self._is_of_call = "", True

    def begin_start(self) -> None:
        """What comes from now on is of a server that starts, and of no call."""
        self._is_of_call = False

    def feed(self, data: bytes) -> None:
        """Add what was written."""
        *lines, self._rest = (self._rest + self._decoder.decode(data)).split("\n")
        while len(self._rest) > _MAX_LINE:
            lines.append(self._rest[:_MAX_LINE])
            self._rest = self._rest[_MAX_LINE:]
        for line in lines:
            indent = re.match(r"\s{0,40}", line)
            shown = (indent[0] if indent else "") + clean(_STYLE.sub("", line).strip(), _MAX_LINE)
            self._page.add("output", {"at": time.time(), "text": shown})
            self.kept = f"{self.kept}{shown}\n"[-_MAX_KEPT:]
        self._showing.trigger()

    def close(self) -> None:
        """Show no more."""
        self._showing.close()

    def _show_in_call(self) -> None:
        call = as_object(self._page.get("call"))
        if self._is_of_call and call and is_failed(call):
            self._page.set("call", {**call, "output": self.kept})


def is_failed(call: Mapping[str, object]) -> bool:
    """Whether what is shown of a call says that it failed."""
    return call.get("state") == "failed" or as_object(call.get("result")).get("isError") is True
