"""What a host hears, and what it is asked."""

import asyncio
from typing import Any

from sample_shop import ORDERS, server

from transom import App, Host, InProcessRenderer, Policy
from transom.host import View
from transom.types import ContentBlock

opened: list[str] = []
closed: list[str] = []
said: list[str] = []
outdated = asyncio.Event()


# region events


def listen(host: Host) -> None:
    @host.on_view_opened
    def _(view: View) -> None:
        opened.append(view.id)

    @host.on_view_closed
    def _(view: View) -> None:
        closed.append(f"{view.id}: {view.reason}")

    @host.on_tools_changed
    def _() -> None:
        outdated.set()  # the model's tools changed: list them again before its next turn

    @host.on_message
    async def _(view: View, blocks: list[ContentBlock]) -> None:
        said.append(blocks[0].text)  # put it into the conversation, as a message of the user

    @host.on_open_link
    async def _(view: View, url: str) -> bool:
        return url.startswith("https://example.com/")  # False: refused


# endregion


def talking() -> App:
    app = App("talking", "1.0.0")

    @app.tool
    async def ask_for_help() -> str:
        await app.send_message("Which of these is late?")
        verdict = await app.open_link("https://example.com/orders/A-1041")
        return "refused" if verdict.is_error else "opened"

    return app


async def main() -> None:
    problems: list[Any] = []
    renderer = InProcessRenderer({ORDERS: talking})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        listen(host)  # before a View opens: Views are told what the host can do
        host.on_error = problems.append
        await host.add_server("orders", server)
        await host.call_tool("show_orders")
        assert (await host.call_tool("orders-1__ask_for_help")).text == "opened"
        await host.views["orders-1"].close("that is enough")
    assert opened == ["orders-1"]
    assert closed == ["orders-1: that is enough"]
    assert said == ["Which of these is late?"]
    assert outdated.is_set()
    assert problems == []


if __name__ == "__main__":
    asyncio.run(main())
