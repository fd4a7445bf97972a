"""A host that calls its servers itself, and has the Views shown."""

import asyncio

from mcp import Client
from mcp.client import advertise
from sample_shop import ORDERS, orders_view, server

from transom import Host, InProcessRenderer

SHOWS_VIEWS = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: orders_view})
    client = Client(server, extensions=[SHOWS_VIEWS])
    async with client, Host(renderer=renderer) as host:
        await host.add_server("orders", client)
        # region open
        view = await host.open_view("orders", "show_orders", {"status": "late"})  # begins to open
        result = await client.call_tool("show_orders", {"status": "late"})
        await view.deliver(result.model_dump(by_alias=True, mode="json", exclude_none=True))
        await view.opened()  # or a ViewClosed that says why it could not be opened
        # endregion
        assert view.state == "live"


if __name__ == "__main__":
    asyncio.run(main())
