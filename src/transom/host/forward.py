"""What a View asks of its server, passed on.

1. A View reaches the tools of its own server whose visibility has `app`, and no others. What it
   sends goes on as it is, except for its progress token: the server gets one of ours, and its
   progress comes back under the View's.
2. When the View gives up on a request, or goes, the server is told to stop.
3. The server's errors reach the View as they are.
4. A View can ask after the tasks that the server gave to it, and after no others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, Protocol, cast, runtime_checkable

import msgspec
from msgspec import Raw

from transom.errors import (
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    SERVER_ERROR,
    NotConnected,
    ProtocolError,
)
from transom.host.policy import view_may_call
from transom.protocol import wire
from transom.types import Task, Tool

__all__ = ["Forward", "Relay", "Upstream", "WatchedUpstream"]

Relay = Callable[[float, float | None, str | None], Awaitable[None]]
"""Takes progress, total and message."""


@runtime_checkable
class Upstream(Protocol):
    """The server a View belongs to."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the server can do, as on the wire: `{"tools": {"listChanged": true}}`."""
        ...

    async def tools(self) -> Mapping[str, Tool]:
        """All tools of the server by name. Cheap: kept until the server says they changed."""
        ...

    async def tool(self, name: str) -> Tool | None:
        """One of them. Asks the server again before it says that there is none."""
        ...

    async def request(
        self, method: str, params: Mapping[str, Any], *, on_progress: Relay | None = None
    ) -> bytes:
        """Ask the server; the result as JSON. Cancelling it cancels the server's work.

        Raises:
            ProtocolError: the server's error, as it came.
        """
        ...

    def subscribe(self, observer: Callable[[str], object]) -> Callable[[], None]:
        """Call `observer` with the method of each `list_changed`. Returns how to stop that."""
        ...


@runtime_checkable
class WatchedUpstream(Upstream, Protocol):
    """A server whose tools are kept on a host's surface."""

    @property
    def current(self) -> bool:
        """Whether `tools()` still has what the server would list now, as far as one can know."""
        ...


_NEEDS = {
    "tools/call": "tools",
    "tools/list": "tools",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "prompts/list": "prompts",
    "tasks/get": "tasks",
    "tasks/result": "tasks",
    "tasks/cancel": "tasks",
}

_CHANGES = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}


_MAX_TASKS = 1000


class _CreatedTask(msgspec.Struct):
    task: Task


class Forward:
    """Passes one View's requests on to its server.

    Args:
        upstream: the server.
        notify: sends a notification to the View; waits while the View is slow.
    """

    def __init__(self, upstream: Upstream, notify: Callable[[str, bytes], Awaitable[None]]) -> None:
        self.upstream = upstream
        self._notify = notify
        self._tasks: OrderedDict[str, None] = OrderedDict()

    def serves(self, method: str) -> bool:
        """Whether the server can answer `method`."""
        need = _NEEDS.get(method)
        return need is not None and self.upstream.capabilities.get(need) is not None

    def announces(self, method: str) -> bool:
        """Whether the server said that it would send `method`, a `list_changed`."""
        capability = self.upstream.capabilities.get(_CHANGES.get(method, ""))
        return isinstance(capability, Mapping) and (
            cast("Mapping[str, Any]", capability).get("listChanged") is True
        )

    async def permitted(self, name: str, *, known: bool = True) -> None:
        """See that a View may call this tool.

        Args:
            name: the tool.
            known: whether it has to be one of the server's.

        Raises:
            ProtocolError: there is no such tool, or its visibility lacks `app`.
        """
        tool = await self.upstream.tool(name)
        if tool is None:
            if known:
                raise ProtocolError(INVALID_PARAMS, f"Tool {name[:128]} not found")
        elif not view_may_call(tool):
            text = f"Tool {name[:128]} may not be called by a View: its visibility lacks 'app'"
            raise ProtocolError(SERVER_ERROR, text)

    async def ask(self, method: str, raw: Raw | None) -> bytes:
        """Pass a request on.

        Raises:
            ProtocolError: the server's answer, or that it cannot answer this.
        """
        if not self.serves(method):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found")
        params: dict[str, Any] = {} if raw is None else msgspec.json.decode(raw)
        if method == "tools/call":
            await self.permitted(params["name"])
        elif method.startswith("tasks/") and params["taskId"] not in self._tasks:
            raise ProtocolError(INVALID_PARAMS, f"Task {params['taskId'][:128]} not found")
        token = _take_token(params)
        relay = None if token is None else self._relay(token)
        result = await self.upstream.request(method, params, on_progress=relay)
        if method == "tools/list":
            return _for_views(result)
        if "task" in params:
            self._note_task(result)
        return result

    def _note_task(self, result: bytes) -> None:
        with suppress(msgspec.ValidationError):  # the server answered with the result itself
            self._tasks[msgspec.json.decode(result, type=_CreatedTask).task.task_id] = None
            if len(self._tasks) > _MAX_TASKS:
                self._tasks.popitem(last=False)

    def _relay(self, token: wire.RequestId) -> Relay:
        waiting = False

        async def relay(progress: float, total: float | None, message: str | None) -> None:
            nonlocal waiting
            if waiting:
                return  # the View is slower than the server's progress, which matters less
            params = {"progressToken": token, "progress": progress}
            if total is not None:
                params["total"] = total
            if message is not None:
                params["message"] = message
            waiting = True
            try:
                with suppress(NotConnected):
                    await self._notify("notifications/progress", wire.encode(params))
            finally:
                waiting = False

        return relay


def _take_token(params: dict[str, Any]) -> wire.RequestId | None:
    """Take the View's progress token out: on the server's connection it means something else."""
    meta: object = params.get("_meta")
    if not isinstance(meta, dict) or "progressToken" not in meta:
        return None
    rest = dict(cast("dict[str, Any]", meta))
    token = rest.pop("progressToken")
    if rest:
        params["_meta"] = rest
    else:
        del params["_meta"]
    usable = isinstance(token, str | int) and not isinstance(token, bool)
    return token if usable else None


def _for_views(result: bytes) -> bytes:
    """A page of tools without those that a View may not call."""
    page = msgspec.json.decode(result)
    page["tools"] = [entry for entry in page.get("tools", ()) if _visible(entry)]
    return wire.encode(page)


def _visible(entry: object) -> bool:
    if not isinstance(entry, dict):
        return False
    meta: object = cast("dict[str, Any]", entry).get("_meta")
    known = cast("dict[str, Any]", meta) if isinstance(meta, dict) else None
    return view_may_call(Tool(name="", meta=known))
