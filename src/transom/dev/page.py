"""The page of `transom dev`, as its session uses it: panels, logs, and requests of the author.

1. A panel has one value, which the page shows; a log has entries, of which the last are kept.
2. A page that connects, again or for the first time, gets all of them.
3. Servers and Views choose how much they say. A value that is too long is shown in part, of a log
   only so much is taken in a second, and all of it together is less than a page's link holds.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from itertools import islice
from typing import Any, Self, cast

import msgspec

from transom.background import Background, Debounced, logs_errors
from transom.channel import Channel
from transom.errors import PeerError, ProtocolError, TransomError
from transom.host.views.ui_resource import UIResource
from transom.json_values import as_object
from transom.traffic import TrafficListener, TrafficMessage, recorded
from transom.web.local.local_stage import LocalStage, OpenPage
from transom.web.mounted_views import Violation
from transom.web.seat import Seat, SeatOptions
from transom.web.stage import Stage, StageListener
from transom.web.view_storage import ViewStorage

_log = logging.getLogger("transom.dev")

Request = Callable[[dict[str, Any]], Awaitable[object]]
"""Does what the author asks for, given the arguments, and returns what the page shows."""

_SEND_AFTER = 0.04
_MAX_ENTRIES = 10_000
# A link ends when 64 MB wait in it: what a page is sent when it connects, all panels and logs, has
# to stay well below that.
_MAX_PANEL = 1024 * 1024
_MAX_LOG = 1024 * 1024
_MAX_TRAFFIC = 5 * 1024 * 1024
_MAX_MESSAGE = 256 * 1024  # bytes of a message that the page shows
_MAX_REPLY = 10 * 1024 * 1024
_WINDOW = 1.0  # seconds, in which a log takes so many entries and bytes
_MAX_IN_WINDOW, _MAX_BYTES_IN_WINDOW = 500, 2 * 1024 * 1024
# Characters of a text, members of a list or object, and levels, of what is too long to be shown.
_CUTS = ((256 * 1024, 5000, 50), (32 * 1024, 1000, 20), (2000, 200, 10), (200, 50, 5), (32, 16, 3))
_AT_ONCE = 500  # entries in a message
_MAX_REQUESTS = 100


def _fitting(value: Any, max_bytes: int) -> Any:
    """A value, or what of it can be shown; an object then says in `bytes` how long it is."""
    size = len(msgspec.json.encode(value))
    if size <= max_bytes:
        return value
    shown = value
    for cut in _CUTS:
        shown = _cut(value, *cut)
        if len(msgspec.json.encode(shown)) <= max_bytes:
            break
    return {**cast("dict[str, Any]", shown), "bytes": size} if isinstance(shown, dict) else shown


def _cut(value: Any, characters: int, members: int, levels: int) -> Any:
    if isinstance(value, str) and len(value) > characters:
        return f"{value[:characters]}… {len(value) - characters} more characters"
    if isinstance(value, list):
        some = cast("list[Any]", value)[: members if levels else 0]
        return [_cut(each, characters, members, levels - 1) for each in some]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {
            key: _cut(each, characters, members, levels - 1)
            for key, each in islice(items, members if levels else 0)
            if len(key) <= characters
        }
    return value


class _Log:
    """The last entries of a log, as JSON, and those that the page has not been sent."""

    def __init__(self, max_bytes: int) -> None:
        self.kept: deque[msgspec.Raw] = deque()
        self.bytes = 0
        self.unsent = 0
        self.dropped = 0
        """How many entries were not taken: too many came at once."""
        self._max_bytes = max_bytes
        self._window_began = -_WINDOW
        self._in_window = self._bytes_in_window = 0

    def add(self, entry: object) -> None:
        """Add an entry, and forget the oldest ones for which there is no room."""
        now = time.monotonic()
        if now - self._window_began >= _WINDOW:
            self._window_began, self._in_window, self._bytes_in_window = now, 0, 0
        if self._in_window >= _MAX_IN_WINDOW or self._bytes_in_window >= _MAX_BYTES_IN_WINDOW:
            self.dropped += 1
            return
        data = msgspec.Raw(msgspec.json.encode(entry))
        if len(data) > _MAX_MESSAGE:
            data = msgspec.Raw(
                msgspec.json.encode(_fitting(msgspec.json.decode(data), _MAX_MESSAGE))
            )
        self._in_window += 1
        self._bytes_in_window += len(data)
        self.kept.append(data)
        self.bytes += len(data)
        self.unsent += 1
        while len(self.kept) > _MAX_ENTRIES or self.bytes > self._max_bytes:
            self.bytes -= len(self.kept.popleft())
        self.unsent = min(self.unsent, len(self.kept))

    def take_unsent(self) -> list[msgspec.Raw]:
        """What to send now."""
        count, self.unsent = self.unsent, 0
        return [self.kept[index] for index in range(len(self.kept) - count, len(self.kept))]


class _DevSeat(Seat):
    """Shows each View as the chosen host does."""

    def __init__(
        self, stage: LocalStage, mark: str, shown: Callable[[UIResource], UIResource]
    ) -> None:
        super().__init__(stage, mark)
        self._shown_as = shown

    async def open(self, resource: UIResource) -> Channel:
        """Show a View."""
        return await super().open(self._shown_as(resource))


class DevPage(StageListener, TrafficListener):
    """Serves the page while its block runs.

    Args:
        requests: what the author may ask for, by name.
        open_page: opens the page; None: the author does.
        program: identifies this program, which has its own ports and storage of Views.
        ephemeral: store nothing for Views.
        ports: those of the page and of the sandboxes; 0: any that is free.
        on_violation: called with everything that a View's policy blocked.
        recorder: gets every message, too.
    """

    def __init__(
        self,
        requests: Mapping[str, Request],
        open_page: OpenPage | None,
        *,
        program: str = "",
        ephemeral: bool = False,
        ports: tuple[int, int] = (0, 0),
        on_violation: Callable[[Violation], object] | None = None,
        recorder: TrafficListener | None = None,
    ) -> None:
        self._requests = requests
        self._recorder = recorder
        self._panels: dict[str, Any] = {}
        self._logs: dict[str, _Log] = {}
        self._local = LocalStage(
            open_page,
            SeatOptions(confirm=True),
            listener=self,
            csp="compat",
            ports=ports,
            page="dev",
            storage=None if ephemeral else ViewStorage(program),
            on_violation=on_violation,
        )
        self.stage = self._local.stage
        self._began = time.monotonic()
        report = logs_errors(_log)
        self._running = Background(report, limit=_MAX_REQUESTS)
        self._sending = Debounced(self._send_logs, report, delay=_SEND_AFTER)

    @property
    def url(self) -> str:
        """The address of the page, with its token."""
        return self._local.url

    async def __aenter__(self) -> Self:
        await self._local.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._running.cancel()
        self._sending.close()
        await self._local.close()

    async def show(self) -> None:
        """Open the page, and wait until it is there."""
        await self._local.find_page(None)

    def seat(self, shown: Callable[[UIResource], UIResource]) -> Seat:
        """A renderer for a Host whose Views are on this page, each as `shown` has it."""
        return _DevSeat(self._local, self._local.new_mark(), shown)

    def html(self, seat: Seat, view_id: str) -> str:
        """The page of a View that is shown; "" if it is not."""
        mounted = self.stage.mounted(seat.key_of(view_id))
        return "" if mounted is None else mounted.resource.html

    # --- what it shows -----------------------------------------------------------------------

    def set(self, panel: str, value: object) -> None:
        """Show another value, or as much of it as can be shown."""
        shown = _fitting(msgspec.to_builtins(value), _MAX_PANEL)
        if panel not in self._panels or self._panels[panel] != shown:
            self._panels[panel] = shown
            self.stage.send({"do": "panel", "name": panel, "value": shown})

    def get(self, panel: str) -> Any:
        """What a panel shows."""
        return self._panels.get(panel)

    def add(self, log: str, entry: object) -> None:
        """Add an entry to a log."""
        if log not in self._logs:
            self._logs[log] = _Log(_MAX_TRAFFIC if log == "traffic" else _MAX_LOG)
        self._logs[log].add(entry)
        self._sending.trigger()

    def on_message(self, message: TrafficMessage) -> None:
        """Add a message to the log of the traffic, as a record has it."""
        self.add("traffic", recorded(message, self._began, _MAX_MESSAGE))
        if self._recorder is not None:
            self._recorder.on_message(message)

    def clear(self, log: str) -> None:
        """Forget the entries of a log."""
        self._logs.pop(log, None)
        self.stage.send({"do": "log", "name": log, "entries": [], "clear": True})

    def _send_logs(self) -> None:
        dropped = {name: log.dropped for name, log in self._logs.items() if log.dropped}
        if dropped:
            self.set("dropped", dropped)
        for name, log in self._logs.items():
            entries = log.take_unsent()
            for start in range(0, len(entries), _AT_ONCE):
                part = entries[start : start + _AT_ONCE]
                self.stage.send({"do": "log", "name": name, "entries": part})

    # --- what the page says ------------------------------------------------------------------

    def page_connected(self, stage: Stage) -> None:
        """Send a new page everything."""
        for name, value in self._panels.items():
            stage.send({"do": "panel", "name": name, "value": value})
        for log in self._logs.values():
            log.unsent = len(log.kept)
        self._send_logs()

    def request_received(self, stage: Stage, request: dict[str, Any]) -> None:  # noqa: ARG002
        """Do what the author asks for."""
        if not self._running.start(self._answer(request)):
            self._reply(request, error="Too much is asked for at once")

    async def _answer(self, request: dict[str, Any]) -> None:
        handle = self._requests.get(str(request.get("name")))
        try:
            if handle is None:
                raise PeerError(f"There is no request {request.get('name')}")
            result = await handle(as_object(request.get("arguments")))
        except asyncio.CancelledError:
            self._reply(request, error="It was cancelled")
            raise
        except (TransomError, msgspec.ValidationError) as error:
            text = error.message if isinstance(error, ProtocolError) else str(error)
            self._reply(request, error=text)
        except Exception:
            self._reply(request, error="It failed: the terminal of transom dev says why")
            raise
        else:
            size = len(msgspec.json.encode(result))
            if size > _MAX_REPLY:
                self._reply(request, error=f"It has {size} bytes: too many to show")
            else:
                self._reply(request, result=result)

    def _reply(self, request: dict[str, Any], **answer: object) -> None:
        self.stage.send({"do": "reply", "id": request.get("id"), **answer})
