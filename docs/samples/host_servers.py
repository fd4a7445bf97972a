"""The things a host takes for a server."""

import asyncio
import sys
from pathlib import Path

import sample_shop
from mcp import Client

from transom import Host
from transom.errors import NotConnected

SHOP = Path(__file__).with_name("sample_shop.py")


async def main() -> None:
    lost: list[str] = []
    async with Host() as host, Client(sample_shop.server) as client:
        host.on_server_lost = lambda name, reason: lost.append(name)
        # region servers
        await host.add_server("shop", [sys.executable, str(SHOP)])  # a command, run for as long
        await host.add_server("office", sample_shop.server)  # an MCPServer or FastMCP object
        await host.add_server("warehouse", client)  # a connected mcp.Client; stays yours to close
        # endregion
        # region names
        names = [tool.name for tool in await host.list_tools()]
        assert names == ["show_orders", "office__show_orders", "warehouse__show_orders"]
        # endregion
        # region unreachable
        try:
            await host.add_server("far", "http://127.0.0.1:9/mcp", timeout=5)  # streamable HTTP
        except NotConnected as error:
            reason = str(error)
        # endregion
        assert "far" in reason
        assert host.servers == ["shop", "office", "warehouse"]
        await host.remove_server("shop")
        assert "show_orders" not in [tool.name for tool in await host.list_tools()]


if __name__ == "__main__":
    asyncio.run(main())
