"""Measures a host that can be driven by a program: its model's calls, and what its user does.

A host that nobody drives is measured by a person with the same tools: docs/conformance.md.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, Protocol
from urllib.request import urlopen

from transom.background import ignore
from transom.conform.server import ConformServer
from transom.errors import TransomError
from transom.host.host import Host
from transom.host.views.view import View

_ARGUMENTS = {"text": "Grüße 你好", "numbers": [1, 2.5, None], "nested": {"flag": True}}
_PATIENCE = 24  # times the time for an answer, for all that an instrument does


class DrivenHost(Protocol):
    """A host under test, with what its model and its user may do."""

    async def list_tools(self) -> list[str]:
        """The names of the tools that the model may call now."""
        ...

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> object:
        """Call a tool as the model does; cancelling this cancels the call."""
        ...

    async def read(self) -> str | None:
        """What Views have put into the model's context, and into the conversation.

        None: this host has no model.
        """
        ...

    async def change_theme(self) -> bool:
        """Change between light and dark; False if that cannot be done here."""
        ...

    async def close_view(self) -> bool:
        """Close the View that was opened last; False if that cannot be done here."""
        ...


async def measure(server: ConformServer, host: DrivenHost) -> None:
    """Do what is needed to measure everything; the results are in `server.measured`.

    Args:
        server: the server, whose probes are served, and to which the host is connected.
        host: the host.
    """
    timeout = server.timeout
    patience = timeout * _PATIENCE
    await _call(host, "conform_start", _ARGUMENTS)
    await server.until(lambda: server.done("main"), timeout=patience)
    if server.measured.outcome("handshake-answered") != "pass":
        return  # nothing else can be measured
    names = await host.list_tools()
    for name in (name for name in names if name.endswith("conform_view_first")):
        await _call(host, name, {"word": server.stamp})
    if (read := await host.read()) is not None:
        await _call(host, "conform_tell", {"tools": names, "read": read})
    if await host.change_theme():
        await _decided(server, "context-changed", timeout, "it did not come")
    await _decided(server, "link-opened", timeout / 5, "nobody asked for its page")
    await _call(host, "conform_failing", {})
    await server.until(lambda: server.done("failing"), timeout=patience)
    calling = asyncio.create_task(_call(host, "conform_waiting", {}))
    await server.until(lambda: server.reported("waiting"), timeout=patience)
    calling.cancel()
    await asyncio.wait([calling])
    await server.until(lambda: server.done("waiting"), timeout=patience)
    await _call(host, "conform_declared", {})
    await server.until(lambda: server.done("declared"), timeout=patience)
    if await host.close_view() and await _decided(
        server, "teardown-sent", timeout, "the View was removed without one"
    ):
        await _decided(server, "teardown-waits", timeout, "the View was removed at once")


async def _decided(server: ConformServer, id: str, timeout: float, otherwise: str) -> bool:
    """Wait for a verdict, and whether it is good; without one, the requirement has failed."""
    measured = server.measured
    await server.until(lambda: measured.outcome(id) is not None, timeout=timeout)
    if measured.outcome(id) is None:
        measured.add(id, "fail", otherwise)
    return measured.outcome(id) == "pass"


async def _call(host: DrivenHost, name: str, arguments: dict[str, Any]) -> None:
    with contextlib.suppress(TransomError):  # what the instruments observe of it counts
        await host.call_tool(name, arguments)


class DrivenTransomHost:
    """A `Host` of Transom under test.

    Args:
        host: the Host, which runs and is connected to the server.
        server: the server.
        opens_links: open the links that a View asks for, in the user's place; False: what is set
            for the Host does, such as a page that asks its user.
    """

    def __init__(self, host: Host, server: ConformServer, *, opens_links: bool = True) -> None:
        self._host = host
        self._server = server
        self._said: list[str] = []
        host.on_message = self._hear
        if opens_links:
            host.on_open_link = self._open
        host.on_log(ignore)

    async def list_tools(self) -> list[str]:
        """See `DrivenHost`."""
        return [tool.name for tool in await self._host.list_tools()]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> object:
        """See `DrivenHost`."""
        return await self._host.call_tool(name, arguments)

    async def read(self) -> str:
        """See `DrivenHost`."""
        return f"{self._host.model_context()} {self._said}"

    async def change_theme(self) -> bool:
        """See `DrivenHost`."""
        self._host.set_context(theme="dark")
        self._host.set_context(theme="light")
        return True

    async def close_view(self) -> bool:
        """See `DrivenHost`."""
        views = list(self._host.views.values())
        if views:
            await views[-1].close("measured")
        return bool(views)

    async def _hear(self, _: View, blocks: Any) -> None:
        self._said.append(repr(blocks))

    async def _open(self, _: View, url: str) -> None:
        if url.startswith(self._server.origins):
            await asyncio.to_thread(lambda: urlopen(url, timeout=5).close())  # noqa: S310 - ours
