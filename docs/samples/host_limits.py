"""What a View may cost."""

import asyncio

from sample_shop import ORDERS, server

from transom import App, Host, InProcessRenderer, Policy

# region limits
from transom import Limits
from transom.errors import RequestTimeout

limits = Limits(max_tools=2, call_timeout=0.2, max_result_bytes=100_000, max_live_views=4)
# endregion


def greedy() -> App:
    app = App("greedy", "1.0.0")

    @app.tool
    async def hang() -> str:
        await asyncio.Event().wait()
        return "never"

    app.register_tool("second", lambda: "2")
    app.register_tool("third", lambda: "3")
    return app


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: greedy})
    problems: list[BaseException] = []
    async with Host(renderer=renderer, policy=Policy.trusting(), limits=limits) as host:
        host.on_error = problems.append
        await host.add_server("orders", server)
        await host.call_tool("show_orders")
        # region over
        names = [tool.name for tool in await host.list_tools()]
        assert names == ["show_orders", "orders-1__hang", "orders-1__second"]  # not the third
        try:
            await host.call_tool("orders-1__hang")
        except RequestTimeout as error:
            message = str(error)  # the View was told to stop; it stays open, with its other tools
        assert (await host.call_tool("orders-1__second")).text == "2"
        # endregion
        assert "0.2" in message
        left_out = host.views["orders-1"].bridge.left_out
        assert left_out == {"": "the View has more than 2 tools (max_tools): 1 left out"}


if __name__ == "__main__":
    asyncio.run(main())
