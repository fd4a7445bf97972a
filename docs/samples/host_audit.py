"""What happened, kept."""

import asyncio
import tempfile
from pathlib import Path

import msgspec
from sample_shop import ORDERS, orders_view, server

from transom import Host, InProcessRenderer, Policy

# region redact
from transom.host import AuditEvent, AuditLog, read_audit


def without_arguments(event: AuditEvent) -> AuditEvent | None:
    """Return what may be stored, or None to drop the event."""
    return msgspec.structs.replace(event, arguments=None)


# endregion


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "audit.db"
        # region keep
        audit = AuditLog(file, max_rows=50_000, redact=without_arguments)
        renderer = InProcessRenderer({ORDERS: orders_view})
        async with Host(renderer=renderer, policy=Policy.trusting(), audit=audit) as host:
            await host.add_server("orders", server)
            await host.call_tool("show_orders", {"status": "open"})
            await host.call_tool("orders-1__mark_shipped")

        calls = read_audit(file, event="call")
        assert [(call.view, call.tool, call.outcome) for call in calls] == [
            (None, "show_orders", "ok"),
            ("orders-1", "mark_shipped", "ok"),
        ]
        # endregion
        kinds = {event.event for event in read_audit(file)}
        assert kinds == {"server", "view", "registration", "call"}
        assert all(call.arguments is None for call in calls)


if __name__ == "__main__":
    asyncio.run(main())
