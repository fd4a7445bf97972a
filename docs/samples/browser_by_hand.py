"""A page that is opened by hand where no browser can be started."""

import asyncio

from transom.errors import TransomError

# region unopened
import sys

from transom.web import BrowserRenderer

renderer = BrowserRenderer(
    share=True,
    on_unopened=lambda url: sys.stderr.write(f"Views are shown at {url}\n"),
)
# endregion


async def main() -> None:
    told: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def fails(url: str) -> None:
        raise TransomError("There is no browser here")

    async with BrowserRenderer(open_page=fails, on_unopened=told.set_result) as by_hand:
        showing = asyncio.create_task(by_hand.show_page())
        assert await told == by_hand.url
        showing.cancel()


if __name__ == "__main__":
    asyncio.run(main())
