"""What a test sees of its View, whatever that sends."""

from typing import Any

import msgspec
import pytest

from tests.host.shop import hosting
from transom.errors import ViewClosed
from transom.testing import OpenedView, Sent
from transom.traffic import TrafficMessage


@pytest.mark.parametrize(
    ("message", "sent"),
    [
        ({"id": 1, "method": "ui/message", "params": {"a": 1, "_meta": {}}}, {"a": 1}),
        ({"id": 1, "method": "ui/message"}, {}),
        *(({"id": 1, "method": "ui/message", "params": odd}, {}) for odd in ([1], "x", 5, None)),
        *((nothing, None) for nothing in ([], "x", 5, None, {"id": 1}, {"method": "ui/message"})),
        *(({"id": 1, "method": method}, None) for method in ("ping", "ui/initialize")),
    ],
)
async def test_odd_requests_are_seen_as_well(message: object, sent: dict[str, Any] | None):
    unused: Any = None
    view = OpenedView(unused, unused, unused, unused, unused)
    data = msgspec.json.encode(message)
    view.on_message(TrafficMessage("view", "a-1", True, data, 0.0, 0.0))
    assert view.sent == []
    view.on_message(TrafficMessage("view", "a-1", False, data, 0.0, 0.0))
    assert view.sent == ([] if sent is None else [Sent("ui/message", sent)])


async def test_a_view_that_has_closed_says_so_when_its_surroundings_change():
    unused: Any = None
    async with hosting() as host:
        result = await host.call_tool("show_orders")
        view = OpenedView(host, host.views["orders-1"], result, unused, unused)
        await view.set_context(theme="dark")
        await view.close()
        with pytest.raises(ViewClosed, match="orders-1 is closed: the test closed it"):
            await view.set_context(theme="light")
