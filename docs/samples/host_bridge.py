"""One View without a Host around it."""

import asyncio

from sample_shop import orders_view

# region bridge
from transom import Bridge
from transom.channel import memory_pair


async def main() -> None:
    to_view, to_host = memory_pair()
    bridge = Bridge(
        to_view,
        host_info={"name": "my-host", "version": "1.0.0"},
        context={"theme": "dark", "displayMode": "inline"},
    )
    bridge.on_update_model_context = print  # handlers decide which capabilities the View sees
    async with bridge:  # leaving it tears the View down
        view = orders_view()
        await view.connect(to_host)
        await bridge.initialized()

        await bridge.send_tool_input({"status": "open"})
        await bridge.send_tool_result("The open orders are shown.")

        assert [tool.name for tool in await bridge.list_tools()] == [
            "get_selection",
            "mark_shipped",
        ]
        assert (await bridge.call_tool("mark_shipped")).text == "Shipped A-1041"
        await bridge.set_context(theme="light")
        assert view.host_context.theme == "light"


# endregion


if __name__ == "__main__":
    asyncio.run(main())
