"""Measures Transom's own hosts: a `Host`, and the gateway with a client, both in Chromium."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from typing import Any, Literal

import msgspec

from transom.channel import memory_pair
from transom.conform.driving import DrivenTransomHost, measure
from transom.conform.report import ConformReport
from transom.conform.server import ConformServer, other_server
from transom.gateway import Gateway
from transom.host.host import Host
from transom.host.policy import Policy
from transom.host.renderers import Renderer
from transom.json_values import as_list, as_object
from transom.protocol import wire
from transom.protocol.methods import read_result
from transom.session import Session
from transom.types import HostContext, ToolResult
from transom.version import __version__
from transom.web.csp import CspMode
from transom.web.headless import HeadlessRenderer

_CONTEXT = {
    "theme": "light",
    "displayMode": "inline",
    "availableDisplayModes": ["inline", "fullscreen"],
    "containerDimensions": {"width": 500, "maxHeight": 600},
    "locale": "de-AT",
    "timeZone": "Europe/Vienna",
    "platform": "web",
    "deviceCapabilities": {"touch": False, "hover": True},
    "safeAreaInsets": {"top": 0, "right": 0, "bottom": 0, "left": 0},
    "styles": {"variables": {"--color-text-primary": "light-dark(#111, #eee)"}},
}

_HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "transom-conform", "version": __version__},
}


async def measure_own(
    kind: Literal["host", "gateway"], csp: CspMode, timeout: float
) -> ConformReport:
    """Measure one of them with the Chromium that is there."""
    if kind == "host":
        renderer = HeadlessRenderer(csp=csp)
        return await measure_host(renderer, timeout, f"transom.Host, {csp} policy")
    server = ConformServer(timeout=timeout)
    async with (
        server.probes(mcp=True) as address,
        Gateway(
            {"conform": f"{address}/mcp"},
            renderer=HeadlessRenderer(csp=csp),
            naming="flat",
            view_calls="spec",
        ) as gateway,
        _client(gateway) as client,
    ):
        await measure(server, _DrivenGateway(client))
    return server.report(f"transom gateway, {csp} policy")


async def measure_host(renderer: Renderer, timeout: float, name: str) -> ConformReport:
    """Measure a `Host` with a renderer."""
    server = ConformServer(timeout=timeout, other=True)
    context = HostContext.from_wire(_CONTEXT)
    host = Host(renderer=renderer, policy=Policy.trusting(), context=context)
    host.on_error(_ignore)  # the instruments send what is wrong on purpose
    async with server.probes(), host:
        await host.add_server("conform", server.mcp)
        await host.add_server("other", other_server())
        await measure(server, DrivenTransomHost(host, server))
    return server.report(name)


@contextlib.asynccontextmanager
async def _client(gateway: Gateway) -> AsyncGenerator[Session]:
    """A client of the gateway with the handshake of MCP, as most agents are."""
    ours, theirs = memory_pair()
    serving = asyncio.create_task(gateway.serve(theirs))
    client = Session(ours, on_request=lambda _: b"{}", on_notification=_ignore)
    try:
        async with client:
            await client.request("initialize", wire.encode(_HELLO))
            await client.notify("notifications/initialized")
            yield client
    finally:
        await serving


class _DrivenGateway:
    """The gateway under test, as its client and that client's model have it."""

    def __init__(self, client: Session) -> None:
        self._client = client
        self._texts: list[str] = []

    async def list_tools(self) -> list[str]:
        listed = as_list(msgspec.json.decode(await self._client.request("tools/list"))["tools"])
        return [str(as_object(tool)["name"]) for tool in listed]

    async def call_tool(self, name: str, arguments: dict[str, Any]) -> object:
        params = wire.encode({"name": name, "arguments": arguments})
        raw = await self._client.request("tools/call", params)
        self._texts.append(read_result("tools/call", ToolResult, raw).text)
        return raw

    async def read(self) -> str:
        await self.call_tool("conform_model_only", {})  # what Views said is in the next result
        return "\n".join(self._texts)

    async def change_theme(self) -> bool:
        return False

    async def close_view(self) -> bool:
        await self._client.aclose()
        return True


def _ignore(_: object) -> None:
    pass
