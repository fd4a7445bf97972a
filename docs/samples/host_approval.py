"""Who may call what a View offers."""

import asyncio

from sample_shop import ORDERS, orders_view, server

# region approve
from transom import Allow, AllowAlways, Deny, Host, InProcessRenderer, Policy
from transom.errors import Refused
from transom.host import ApprovalRequest


async def ask(request: ApprovalRequest) -> Allow | AllowAlways | Deny:
    """Called for every tool that does not say that it only reads."""
    question = f"{request.view_id}: {request.tool.name} with {dict(request.arguments)}?"
    match await ask_user(question):
        case "yes":
            return Allow()
        case "always":  # while this View is open and the tool's definition stays the same
            return AllowAlways()
        case _:
            return Deny("The user would rather do it by hand")


# endregion

answers = ["no", "yes"]
asked: list[str] = []


async def ask_user(question: str) -> str:
    asked.append(question)
    return answers.pop(0)


async def main() -> None:
    renderer = InProcessRenderer({ORDERS: orders_view})
    async with Host(renderer=renderer, policy=Policy(approve=ask)) as host:
        await host.add_server("orders", server)
        await host.call_tool("show_orders")
        await host.call_tool("orders-1__get_selection")
        assert asked == []  # it only reads
        # region refused
        try:
            await host.call_tool("orders-1__mark_shipped")
        except Refused as error:
            message = str(error)  # give this to the model
        assert message == "mark_shipped of View orders-1: The user would rather do it by hand"
        # endregion
        assert asked == ["orders-1: mark_shipped with {}?"]
        assert not (await host.call_tool("orders-1__mark_shipped")).is_error

    async with Host(renderer=InProcessRenderer({ORDERS: orders_view})) as careful:
        await careful.add_server("orders", server)
        await careful.call_tool("show_orders")
        try:
            await careful.call_tool("orders-1__mark_shipped")
        except Refused as error:
            assert "Policy(approve=...)" in str(error)


if __name__ == "__main__":
    asyncio.run(main())
