"""What Views want the model to know."""

import asyncio

from sample_shop import ORDERS, orders_view, server

# region context
from transom import Host, InProcessRenderer, Policy
from transom.types import TextContent


def for_the_prompt(host: Host) -> str:
    """One paragraph for each View that has sent context, marked as coming from that View."""
    return "\n".join(
        f"View {said.view_id} (server {said.server}) says: "
        + " ".join(block.text for block in said.content if isinstance(block, TextContent))
        for said in host.model_context()
    )


# endregion


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: orders_view})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("orders", server)
        await host.call_tool("show_orders")
        assert for_the_prompt(host) == ""
        await host.call_tool("orders-1__mark_shipped")
        expected = "View orders-1 (server orders) says: Shipped so far: A-1041"
        assert for_the_prompt(host) == expected


if __name__ == "__main__":
    asyncio.run(main())
