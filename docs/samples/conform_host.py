"""The conformance of a host that a program drives."""

from __future__ import annotations

from transom import Host, Policy
from transom.host.views.renderers import Renderer


# region measure
from transom.conform import ConformServer, DrivenTransomHost, measure


async def failed_requirements(renderer: Renderer) -> list[str]:
    """Measure a Host, with everything that its model and its user do."""
    server = ConformServer(timeout=30)  # seconds: a busy machine is not a broken host
    async with server.probes(), Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("conform", server.mcp)
        await measure(server, DrivenTransomHost(host, server))
    return server.measured.failed()


# endregion
