"""The checker in a test of one's own server."""

import asyncio

from sample_shop import server

# region test
from transom.check import check


async def test_the_server_keeps_the_contract() -> None:
    report = await check("orders", server)
    assert not report.fails_on("warn"), report.findings


# endregion


async def main() -> None:
    await test_the_server_keeps_the_contract()


if __name__ == "__main__":
    asyncio.run(main())
