"""Hosts that show Views in a browser."""

import asyncio

# region renderers
from transom import Host, Policy
from transom.web import BrowserRenderer, HeadlessRenderer

renderer = BrowserRenderer()  # a page in the user's browser, opened when a View is to be shown
host = Host(renderer=renderer, policy=Policy(approve=renderer.approve))  # asks on that page

unseen = Host(renderer=HeadlessRenderer(), policy=Policy.trusting())  # view.screenshot()
# endregion


async def main() -> None:
    assert host.renderer is renderer
    async with unseen:  # the browser itself starts with the first View
        assert await unseen.list_tools() == []


if __name__ == "__main__":
    asyncio.run(main())
