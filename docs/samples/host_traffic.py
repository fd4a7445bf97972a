"""Every message of a host, recorded."""

import asyncio
import tempfile
from pathlib import Path

from sample_shop import ORDERS, orders_view, server

from transom import Host, InProcessRenderer, Policy

# region import
from transom.traffic import RecordedMessage, Recorder, read_record

# endregion


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "orders.jsonl"
        renderer, policy = InProcessRenderer({ORDERS: orders_view}), Policy.trusting()
        # region record
        with Recorder(file) as recorder:
            async with Host(renderer=renderer, policy=policy, traffic=recorder) as host:
                await host.add_server("orders", server)
                await host.call_tool("show_orders", {"status": "open"})

        recorded = [each for each in read_record(file) if isinstance(each, RecordedMessage)]
        first = next(each for each in recorded if each.leg == "view")
        assert (first.name, first.sender) == ("orders-1", "view")
        assert first.value["method"] == "ui/initialize"
        # endregion


if __name__ == "__main__":
    asyncio.run(main())
