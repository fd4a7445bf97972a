"""Views that end, or read nothing more, in the middle of something else: each is told once."""

import asyncio
from typing import Any

import pytest

from tests.host.bare_view import until
from tests.host.shop import BareRenderer, hosting, shop
from transom import Host, Limits, Policy
from transom.channel import Channel, memory_pair
from transom.host import Allow, View
from transom.host.views.ui_resource import UIResource
from transom.protocol import wire

SOON = Limits(unresponsive_after=0.05, gone_after=0.5, teardown_timeout=0.05)
LARGE = "x" * 3_000_000  # of which two fill what may wait for a View


class DeafRenderer:
    """Shows Views that read nothing once they are initialised."""

    async def open(self, page: UIResource) -> Channel:
        ours, theirs = memory_pair(capacity=1)
        self.living = asyncio.create_task(self._live(theirs))
        return ours

    async def _live(self, channel: Channel) -> None:
        params = {
            "appInfo": {"name": "deaf", "version": "1"},
            "appCapabilities": {},
            "protocolVersion": "2026-01-26",
        }
        await channel.send(wire.encode_request(1, "ui/initialize", wire.encode(params)))
        await channel.receive()
        await channel.send(wire.encode_notification("ui/notifications/initialized", None))
        await asyncio.Event().wait()


async def begin(host: Host) -> View:
    """A live View of a call whose arguments are being written."""
    host.stream_arguments("show_orders", '{"status": "', call_id="c1")
    await until(lambda: len(host.views) == 1)
    [view] = host.views.values()
    await view.opened()
    return view


def told(host: Host) -> list[tuple[str, str]]:
    """What the host says of its Views from now on."""
    log: list[tuple[str, str]] = []
    host.on_view_opened = lambda view: log.append((view.id, "opened"))
    host.on_view_closed = lambda view: log.append((view.id, "closed"))
    host.on_view_failed = lambda view, _: log.append((view.id, "failed"))
    return log


# --- a View that does not read ---------------------------------------------------------------


@pytest.mark.load
async def test_a_view_that_reads_nothing_holds_up_no_call_and_is_gone() -> None:
    async with asyncio.timeout(60), hosting(renderer=DeafRenderer(), limits=SOON) as host:
        gone = asyncio.Event()
        host.on_view_unresponsive = lambda view: view.state == "gone" and gone.set()
        await host.add_server("again", shop("again"), reuse_views="always")
        for _ in range(3):
            result = await host.answer("show_again", {"status": LARGE})
            assert not result.is_error
        await gone.wait()


@pytest.mark.load
async def test_a_streamed_call_reaches_its_server_though_its_view_reads_nothing() -> None:
    async with asyncio.timeout(60), hosting(renderer=DeafRenderer(), limits=SOON) as host:
        await begin(host)
        for _ in range(3):
            host.stream_arguments("show_orders", LARGE[:1_300_000], call_id="c1")
            await asyncio.sleep(0.1)  # longer than what is written is held back
        result = await host.answer("show_orders", {"status": "late"}, call_id="c1")
        assert result.text == "orders: late"


@pytest.mark.load
async def test_a_streamed_call_that_is_cancelled_as_its_view_gets_the_input_has_an_end() -> None:
    async with (
        asyncio.timeout(60),
        hosting(renderer=DeafRenderer(), limits=Limits(teardown_timeout=0.05)) as host,
    ):
        changed = asyncio.Event()
        view = await begin(host)
        for _ in range(2):
            host.stream_arguments("show_orders", LARGE[:1_900_000], call_id="c1")
            await asyncio.sleep(0.2)  # longer than what is written is held back
        given = {"status": LARGE}
        call = asyncio.create_task(host.call_tool("show_orders", given, call_id="c1"))
        await until(lambda: view.origin.complete)
        host.on_view_changed = lambda _: changed.set()
        call.cancel()
        await asyncio.wait([call])
        await changed.wait()
        assert view.origin.cancelled == "The call was cancelled"


# --- ends that meet --------------------------------------------------------------------------


async def test_a_view_that_goes_during_its_first_listing_has_failed_and_nothing_else() -> None:
    renderer = BareRenderer()

    async def go(params: Any) -> Any:
        await renderer.views["orders-1"].channel.aclose()
        await asyncio.Event().wait()

    renderer.answers = {"tools/list": go}
    async with hosting(renderer=renderer) as host:
        log = told(host)
        await host.call_tool("show_orders")
        assert log == [("orders-1", "failed")]
        assert not host.views


@pytest.mark.parametrize("way", ["the view, then the host", "the host, then the view"])
async def test_an_end_is_told_once_whenever_both_sides_end_a_view(way: str) -> None:
    for turns in range(60):
        renderer = BareRenderer()
        async with hosting(renderer=renderer, limits=Limits(teardown_timeout=0.05)) as host:
            log = told(host)
            call = asyncio.create_task(host.answer("show_orders", {}))
            for _ in range(3 * turns):
                await asyncio.sleep(0)
            by_host = [each.close() for each in host.views.values()]
            by_view = [each.channel.aclose() for each in renderer.views.values()]
            view_first = way.startswith("the view")
            await asyncio.gather(*(by_view + by_host if view_first else by_host + by_view))
            assert not (await call).is_error
        assert [what for _, what in log] in ([], ["failed"], ["opened", "closed"]), turns


async def test_a_view_that_opens_while_its_server_is_removed_is_closed_too() -> None:
    leaving = asyncio.Event()

    async def slowly(params: Any) -> Any:
        await leaving.wait()
        return {}

    renderer = BareRenderer({"ui/resource-teardown": slowly})
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        removing = asyncio.create_task(host.remove_server("orders"))
        await renderer.views["orders-1"].asked("ui/resource-teardown")
        await host.call_tool("show_orders")
        assert "orders-2" in host.views
        leaving.set()
        await removing
        assert not host.views
        assert (await host.answer("orders-2__echo", {})).is_error


async def test_a_view_that_is_allowed_while_its_host_closes_is_closed_too() -> None:
    leaving, asked, allowed = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def slowly(params: Any) -> Any:
        await leaving.wait()
        return {}

    async def approve(request: object) -> Allow:
        asked.set()
        await allowed.wait()
        return Allow()

    renderer = BareRenderer({"ui/resource-teardown": slowly})
    policy = Policy(approve=approve)
    async with hosting(renderer=renderer, policy=policy) as host:
        await host.call_tool("show_orders")
        await host.add_server("two", shop("two"), open_views="ask")
        call = asyncio.create_task(host.call_tool("show_two"))
        await asked.wait()
        closing = asyncio.create_task(host.aclose())
        await renderer.views["orders-1"].asked("ui/resource-teardown")
        allowed.set()
        await until(lambda: "two-1" in renderer.views)
        leaving.set()
        await closing
        assert not host.views
        await asyncio.wait([call])
