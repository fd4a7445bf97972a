"""The servers of a host: connected, their tools on the surface, their tools called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import msgspec

from transom.background import Background
from transom.connections.connection import ServerConnection
from transom.connections.targets import Target, connect, connected_server
from transom.connections.upstream import TOOLS_CHANGED, Server
from transom.connections.versions import task_in
from transom.errors import (
    ConnectionClosed,
    NotConnected,
    ProtocolError,
    RequestTimeout,
    TransomError,
    UsageError,
)
from transom.events import Slot, is_awaitable
from transom.host.asking.elicitation import ElicitListener
from transom.host.audit import AuditLog, RecordedCall
from transom.host.tools.call_limits import CallLimits
from transom.host.tools.refresh import LATE, Refresh
from transom.host.tools.surface import Change, Surface
from transom.host.tools.tool_names import check_server_name
from transom.host.views.bridge import OutgoingCall
from transom.host.views.tasks import owned_task
from transom.host.views.view_settings import ViewSettings
from transom.json_values import without_marks
from transom.protocol.methods import HOST
from transom.protocol.peer import Progress
from transom.session import OnProgress
from transom.traffic import TrafficListener
from transom.types import Task, Tool, ToolResult

_DISCONNECT_GRACE = 10.0  # seconds: a process gets a few to end by itself


@dataclass(eq=False, slots=True)
class _Connected:
    """A server of the host, connecting or connected."""

    name: str
    refresh: Refresh
    views: ViewSettings
    server: Server | None = None
    connection: ServerConnection | None = None  # if it is ours to close
    unsubscribe: Callable[[], None] | None = None
    added: bool = False
    limits: CallLimits = field(default_factory=CallLimits)

    def stop_watching(self) -> None:
        """Stop listing it."""
        self.refresh.stop()
        if self.unsubscribe is not None:
            self.unsubscribe()

    async def disconnect(self) -> None:
        """Stop listing it, and close the connection if it is ours."""
        self.stop_watching()
        if self.connection is not None:
            await self.connection.aclose()


class ServerTools:
    """Connects servers, keeps their tools on the surface, and calls them.

    `on_changed` is called with a server and the change of its tools, `on_lost` with a server that
    disconnected and the reason, `on_error` with the error when a server could not be listed.
    `on_elicit` answers what servers ask the user.
    """

    def __init__(
        self,
        surface: Surface,
        audit: AuditLog,
        stale: set[Refresh],
        *,
        interval: float,
        on_changed: Callable[[str, Change], object],
        on_lost: Callable[[str, str], object],
        on_error: Callable[[BaseException], object],
        on_elicit: Slot,
        traffic: TrafficListener | None = None,
    ) -> None:
        self._surface = surface
        self._audit = audit
        self._stale = stale
        self._interval = interval
        self._on_changed = on_changed
        self._on_lost = on_lost
        self._on_error = on_error
        self._on_elicit = on_elicit
        self._traffic = traffic
        self._servers: dict[str, _Connected] = {}
        self._gone: dict[str, str] = {}
        self._background = Background(on_error)

    @property
    def names(self) -> list[str]:
        """The servers that are connected."""
        return [name for name, server in self._servers.items() if server.added]

    def __contains__(self, name: object) -> bool:
        return name in self._servers

    def why_gone(self, name: str) -> str | None:
        """Why a server is no longer connected."""
        return None if name in self._servers else self._gone.get(name)

    def server(self, name: str) -> Server:
        """A server, to send requests to."""
        entry = self._servers.get(name)
        if entry is None or entry.server is None:
            reason = self._gone.get(name, "there is none of that name")
            raise ConnectionClosed(f"Server {name} is gone: {reason}")
        return entry.server

    def view_settings(self, name: str) -> ViewSettings:
        """How a server's tools open Views."""
        entry = self._servers.get(name)
        return ViewSettings() if entry is None else entry.views

    # --- connecting --------------------------------------------------------------------------

    async def add(self, name: str, target: Target, timeout: float, views: ViewSettings) -> None:
        """Connect a server and list its tools."""
        check_server_name(name)
        views.check()
        if name in self._servers:
            raise UsageError(
                f"There is already a server {name}: remove it first, or choose another name"
            )
        refresh = Refresh(
            partial(self._list, name),
            self._interval,
            self._stale,
            self._on_error,
            partial(self._audit.record, "server", "late", server=name, detail=LATE),
        )
        entry = _Connected(name, refresh, views)
        self._servers[name] = entry
        began = time.perf_counter()
        try:
            server = entry.server = connected_server(target)
            if server is None:
                server = entry.server = entry.connection = await connect(
                    target,
                    name=name,
                    timeout=timeout,
                    traffic=self._traffic,
                    listener=ElicitListener(
                        name,
                        self._on_elicit,
                        asking=entry.limits.paused,
                        lost=partial(self._lost, entry),
                        on_answer=partial(self._audit.record, "elicitation", server=name),
                        on_error=self._on_error,
                    ),
                )
            entry.unsubscribe = server.subscribe(partial(self._list_changed, entry))
            tools = await self._first_listing(name, server, timeout)
        except BaseException as error:
            if self._servers.get(name) is entry:
                del self._servers[name]
            await entry.disconnect()
            self._audit.record("server", "failed", server=name, detail=str(error)[:500])
            raise
        entry.added = True
        ms = round((time.perf_counter() - began) * 1000, 3)
        self._gone.pop(name, None)
        self._audit.record("server", "added", server=name, ms=ms)
        self._on_changed(name, self._surface.put_server(name, tools.values()))
        # A change may have come between the listing and the start of change notifications.
        asyncio.get_running_loop().call_later(self._interval, self.refresh_outdated)

    @staticmethod
    async def _first_listing(name: str, server: Server, timeout: float) -> Mapping[str, Tool]:
        try:
            async with asyncio.timeout(timeout):
                return await server.tools()
        except TimeoutError:
            text = f"Server {name} did not list its tools within {timeout:g} s"
            raise NotConnected(text) from None
        except (ProtocolError, ConnectionClosed) as error:
            raise NotConnected(f"Server {name} could not list its tools: {error}") from None

    async def remove(self, name: str) -> None:
        """Disconnect a server; its tools go at once. One that is gone may be removed again."""
        entry = self._servers.get(name)
        if entry is None and name in self._gone:
            return
        if entry is None or not entry.added:
            raise UsageError(f"There is no server {name}; there are: {', '.join(self.names)}")
        self._audit.record("server", "removed", server=name)
        self._withdraw(name, "it was removed")
        await entry.disconnect()

    async def close(self) -> None:
        """Disconnect them all."""
        entries = list(self._servers.values())
        for entry in entries:
            self._withdraw(entry.name, "the host was closed")
        await asyncio.gather(*(entry.disconnect() for entry in entries))
        await self._background.aclose(grace=_DISCONNECT_GRACE)

    def _withdraw(self, name: str, reason: str) -> None:
        entry = self._servers.pop(name)
        entry.stop_watching()
        self._gone[name] = reason
        self._on_changed(name, self._surface.drop("server", name))

    def _lost(self, entry: _Connected, reason: str) -> None:
        if self._servers.get(entry.name) is not entry or not entry.added:
            return  # it was removed, or `add` raises
        self._audit.record("server", "lost", server=entry.name, detail=reason)
        self._withdraw(entry.name, reason)
        self._background.start(entry.disconnect())
        self._on_lost(entry.name, reason)

    # --- tools -------------------------------------------------------------------------------

    def _list_changed(self, entry: _Connected, method: str) -> None:
        if method == TOOLS_CHANGED and entry.added:
            entry.refresh.trigger()

    def refresh_outdated(self) -> None:
        """List the servers again whose tools may have changed without a notification."""
        for entry in list(self._servers.values()):
            if entry.added and entry.server is not None and not entry.server.current:
                entry.refresh.trigger()

    async def _list(self, name: str) -> None:
        try:
            tools = await self.server(name).tools()
        except TransomError as error:
            self._on_error(error)
            return
        if name in self._servers:
            self._on_changed(name, self._surface.put_server(name, tools.values()))

    async def call(self, name: str, call: OutgoingCall) -> ToolResult | Task:
        """Call a server's tool for the model; raises what `request` does."""
        params: dict[str, Any] = {"name": call.name, "arguments": dict(call.arguments or {})}
        if call.as_task is not None:
            params["task"] = msgspec.to_builtins(call.as_task)
        with RecordedCall(self._audit, name, None, call.name, params["arguments"]) as recorded:
            raw = without_marks(
                await self.request(name, "tools/call", params, call.timeout, call.on_progress)
            )
            handle = None if call.as_task is None else task_in(raw)
            result = HOST["tools/call"].read_result(raw) if handle is None else handle
            recorded.result = result
        return result if handle is None else owned_task(name, handle)

    async def request(
        self,
        name: str,
        method: str,
        params: Mapping[str, Any],
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> bytes:
        """Send a server a request; its result as JSON."""
        server, what = self.server(name), params.get("name", method)
        limits = self._servers[name].limits
        try:
            async with limits.limit(timeout) as limit:
                if on_progress is not None:
                    on_progress = self._extending(limits, limit, on_progress)
                return await server.request(method, params, on_progress=on_progress)
        except TimeoutError:
            text = f"{what}: server {name} did not answer within {timeout:g} s"
            raise RequestTimeout(text) from None
        except ConnectionClosed as error:
            entry = self._servers.get(name)
            if entry is not None and entry.server is server:
                reason = server.reason if isinstance(server, ServerConnection) else str(error)
                self._lost(entry, reason)
            reason = self._gone.get(name) or str(error)
            raise ConnectionClosed(f"{what}: server {name} is gone: {reason}") from None

    def _extending(
        self, limits: CallLimits, limit: asyncio.Timeout, on_progress: OnProgress
    ) -> OnProgress:
        """The caller's handler, which also extends the timeout at each progress notification."""

        def handle(progress: Progress) -> None:
            limits.restart(limit)
            try:
                waiting = on_progress(progress)
            except Exception as error:  # noqa: BLE001 - a caller's handler must not break the call
                self._on_error(error)
                return
            if is_awaitable(waiting):
                self._background.start(waiting)

        return handle
