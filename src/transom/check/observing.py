"""One View in a browser without a window, and what it does there.

Its connection is a Bridge. What the browser knows beside that goes to a `BrowserWatch`: the
renderer is made with its methods.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Self

from transom.background import ignore
from transom.channel import Channel
from transom.connections.upstream import Server
from transom.events import Handler
from transom.host.limits import Limits
from transom.host.views.bridge import Bridge
from transom.json_values import JsonObject
from transom.traffic import TrafficMessage, observe
from transom.types import Implementation, ViewProblem
from transom.web.mounted_views import Violation

MAX_SEEN = 1000
"""Console lines, blocked and requested addresses, messages and problems of one View, each."""
_MAX_TEXT = 1000
LATE_HANDLER = re.compile(r"handler.*(?:after|before).*connect", re.IGNORECASE)
"""What an SDK writes to the console when a handler is set after `connect()`."""
CORS_REFUSAL = re.compile(r"access to .* at '([^']+)' .* blocked by cors policy", re.IGNORECASE)
"""What browsers write there when a server refuses the View's origin."""
_MAX_MESSAGE = 100_000  # bytes of a message that is kept
_MAX_TOOLS = 1000  # more than a View should have, so that a View with too many is seen (V7)


class BrowserWatch:
    """What the browser reports while one View is shown."""

    def __init__(self) -> None:
        self.blocked: dict[tuple[str, str], None] = {}
        """Directives of the View's policy with the address that each blocked."""
        self.lines: list[tuple[str, str]] = []
        """What was written to the console: kind, text."""
        self.requests: dict[str, None] = {}
        """Addresses that were loaded or connected to."""
        self.count = 0
        """How much has happened."""

    def violation(self, found: Violation) -> None:
        """For `on_violation` of a renderer."""
        self.count += 1
        if len(self.blocked) < MAX_SEEN:
            self.blocked[found.directive, found.blocked] = None

    def console(self, kind: str, text: str) -> None:
        """For `on_console`."""
        self.count += 1
        if len(self.lines) < MAX_SEEN:
            self.lines.append((kind, text[:_MAX_TEXT]))

    def request(self, url: str) -> None:
        """For `on_request`."""
        self.count += 1
        if len(self.requests) < MAX_SEEN:
            self.requests[url[:_MAX_TEXT]] = None

    def clear(self) -> None:
        """Forget it all, for the next View."""
        self.blocked.clear()
        self.lines.clear()
        self.requests.clear()


class ObservedView:
    """One View that is being shown: its Bridge, and what went over it. `async with` runs it.

    Args:
        channel: what a renderer gave for it.
        name: how its host names itself.
        context: its host context.
        capabilities: what its host offers; None: all that is handled here.
        server: answers the View's requests to its server; without one, `call` answers its calls.
        call: called with the name of the tool.
    """

    def __init__(
        self,
        channel: Channel,
        *,
        name: str,
        context: Mapping[str, Any],
        capabilities: Mapping[str, Any] | None = None,
        server: Server | None = None,
        call: Callable[[str], JsonObject] | None = None,
    ) -> None:
        self.messages: list[TrafficMessage] = []
        self.problems: list[ViewProblem] = []
        self.errors: list[str] = []
        """What the View sent that is no message, or none for that moment."""
        self.count = 0
        """How many messages there were."""
        answering: dict[str, Handler] = {} if call is None else {"on_call_tool": call}
        for capability, (event, handler) in _ANSWERING.items():
            if capabilities is None or capability in capabilities:
                answering[event] = handler
        self.bridge = Bridge(
            observe(channel, "view", name, self),
            host_info=Implementation(name, "1"),
            context=context,
            capabilities=capabilities,
            upstream=server,
            limits=Limits(max_tools=_MAX_TOOLS),
            handlers={"on_error": self._error, "on_problem": self._problem, **answering},
        )

    def on_message(self, message: TrafficMessage) -> None:
        """A message of the View, or to it: see `TrafficListener`."""
        self.count += 1
        if len(self.messages) < MAX_SEEN and len(message.data) <= _MAX_MESSAGE:
            self.messages.append(message)

    async def __aenter__(self) -> Self:
        self.bridge.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.bridge.aclose()

    def _error(self, error: BaseException) -> None:
        if len(self.errors) < MAX_SEEN:
            self.errors.append(str(error)[:_MAX_TEXT])

    def _problem(self, problem: ViewProblem) -> None:
        if len(self.problems) < MAX_SEEN:
            self.problems.append(problem)


def _refuse(*_: object) -> bool:
    return False


_ANSWERING: dict[str, tuple[str, Handler]] = {
    "openLinks": ("on_open_link", _refuse),
    "message": ("on_message", _refuse),
    "downloadFile": ("on_download_file", _refuse),
    "updateModelContext": ("on_update_model_context", ignore),
}
"""The event of each capability that is offered, and what answers it."""
