"""Several Hosts on one page."""

import asyncio

from transom import Host, Policy
from transom.web import BrowserRenderer


async def main() -> None:
    # region seats
    async with BrowserRenderer() as renderer:
        seat = renderer.seat("cursor")  # the client is shown beside the Views and in questions
        async with Host(renderer=seat, policy=Policy(approve=seat.approve)) as host:
            assert await host.list_tools() == []
        # endregion
        async with Host(renderer=renderer.seat("codex")) as another:
            assert another.servers == []
        assert renderer.url.startswith("http://127.0.0.1:")


if __name__ == "__main__":
    asyncio.run(main())
