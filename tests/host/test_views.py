import asyncio
import gc
from typing import Any

import msgspec
import pytest

from tests.host.bare_view import BareView, text, tool, until
from tests.host.shop import URI, BareRenderer, Heard, editor, hosting, shop, tool_names
from transom import Allow, AllowAlways, App, Deny, Host, InProcessRenderer, Limits, Policy
from transom.errors import (
    ConnectionClosed,
    InvalidResult,
    ProtocolError,
    Refused,
    RequestTimeout,
    UsageError,
    ViewClosed,
)
from transom.host import open_views
from transom.host.asking.policy import ApprovalRequest
from transom.host.open_views import HostRecords, OpenViews
from transom.host.tools.tool_names import owned_name
from transom.host.views.view_tools import ToolDefinitions
from transom.types import TextContent, ToolResult


def small(**limits: Any) -> Limits:
    return Limits(**{"relist_interval": 0.0, **limits})


# --- opening ---------------------------------------------------------------------------------


async def test_a_view_gets_the_input_then_the_result():
    log: list[Any] = []
    renderer = InProcessRenderer({URI: editor(log)})
    async with hosting(renderer=renderer) as host:
        opened: list[str] = []
        host.on_view_opened = lambda view: opened.append(view.id)
        await host.call_tool("show_orders", {"status": "late"})
        assert log == [("input", {"status": "late"}), ("result", "orders: late")]
        assert opened == ["orders-1"]
        view = host.views["orders-1"]
        assert (view.id, view.server, view.uri, view.state) == ("orders-1", "orders", URI, "live")
        assert view.app is not None
        assert view.app.name == "editor"
        assert [each.name for each in view.tools] == ["read", "write"]


async def test_a_view_gets_an_error_result_like_any_other():
    log: list[Any] = []
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        result = await host.call_tool("show_orders", {"status": "broken"})
        assert result.is_error
        assert log[1][0] == "result"
        assert "no such status" in log[1][1] or "Error" in log[1][1]


async def test_a_view_whose_call_fails_or_is_cancelled_is_told_so():
    log = Heard()
    started, server = asyncio.Event(), shop()

    @server.tool(meta={"ui": {"resourceUri": URI}})
    async def hang() -> str:
        """Hang."""
        started.set()
        await asyncio.Event().wait()
        return ""

    renderer = InProcessRenderer({URI: editor(log)})
    async with Host(renderer=renderer, policy=Policy.trusting()) as host:
        await host.add_server("orders", server)
        call = asyncio.create_task(host.call_tool("hang"))
        await started.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await log.has(("cancelled", "The call was cancelled"))
        with pytest.raises(RequestTimeout):
            await host.call_tool("hang", timeout=0.01)
        await log.has(("cancelled", "The call failed"))
        assert log.count(("input", {})) == 2


async def test_the_view_opens_while_the_tool_still_works():
    input_seen, server = asyncio.Event(), shop()

    @server.tool(meta={"ui": {"resourceUri": URI}})
    async def wait_for_view() -> str:
        """End when the View has the input."""
        await input_seen.wait()
        return "done"

    def make() -> App:
        app = App("a", "1")
        app.on_tool_input = lambda _: input_seen.set()
        return app

    async with Host(renderer=InProcessRenderer({URI: make})) as host:
        await host.add_server("orders", server)
        assert (await host.call_tool("wait_for_view")).text == "done"


async def test_a_caller_that_calls_the_server_itself_has_the_call_shown_in_its_view():
    log = Heard()
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        tool = (await host._servers.server("orders").tools())["show_orders"]
        opening: list[str] = []

        async def call_server() -> ToolResult:
            opening.extend(view.state for view in host.views.values())
            return ToolResult(content=[TextContent("by myself")])

        shown = await host.call_with_view("orders", tool, {"status": "mine"}, call_server)
        assert opening == ["opening"]
        assert shown.view is not None
        assert (shown.view.state, shown.error) == ("live", None)
        assert shown.with_note().meta == {"transom/view": {"id": shown.view.id, "state": "live"}}
        await log.has(("input", {"status": "mine"}))

        async def unreadable() -> None:
            return None

        assert (await host.call_with_view("orders", tool, {}, unreadable)).with_note() is None
        await log.has(("cancelled", "The call's result cannot be read"))


async def test_a_bug_in_opening_a_view_does_not_change_the_call(monkeypatch: pytest.MonkeyPatch):
    reported: list[BaseException] = []
    async with hosting() as host:
        host.on_error = reported.append

        def fail(*_: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr(OpenViews, "open", fail)
        result = await host.call_tool("show_orders")
        assert (result.meta or {})["transom/view"] == {"error": "the host failed"}
        assert result.content
        assert [type(error) for error in reported] == [ZeroDivisionError]


async def test_a_view_is_told_which_tool_opened_it_and_what_the_host_can_do():
    renderer = BareRenderer(setup=lambda view: initialise(view))
    answers: list[dict[str, Any]] = []

    async def initialise(view: BareView) -> None:
        answers.append(await view.initialize())
        await view.tell("ui/notifications/initialized")

    async with hosting(renderer=renderer) as host:
        host.on_open_link = lambda view, url: None
        await host.call_tool("show_orders")
    [answer] = answers
    assert answer["hostInfo"]["name"] == "transom"
    assert answer["hostContext"]["toolInfo"]["tool"]["name"] == "show_orders"
    capabilities = answer["hostCapabilities"]
    assert capabilities["tools"] == {"listChanged": True}
    assert "serverTools" in capabilities
    assert "openLinks" in capabilities
    assert "updateModelContext" in capabilities
    assert "downloadFile" not in capabilities
    assert "message" not in capabilities


async def test_a_view_that_goes_before_it_is_initialised_has_failed():
    async def leave(view: BareView) -> None:
        await view.initialize()
        await view.channel.aclose()

    async with hosting(renderer=BareRenderer(setup=leave)) as host:
        result = await host.call_tool("show_orders")
        assert result.text == "orders: open"
        assert result.meta["transom/view"]["state"] == "failed"
        assert "closed" in result.meta["transom/view"]["error"]
        assert not host.views


async def test_a_view_that_is_closed_while_it_opens_has_failed_with_the_reason():
    opening = asyncio.Event()

    async def stall(view: BareView) -> None:
        opening.set()

    async with hosting(renderer=BareRenderer(setup=stall)) as host:
        call = asyncio.create_task(host.call_tool("show_orders"))
        await opening.wait()
        view = host.views["orders-1"]
        assert view.state == "opening"
        with pytest.raises(ViewClosed, match="it is still opening"):
            await view.call_tool("read")
        await view.close("the user closed it")
        result = await call
        assert result.text == "orders: open"
        assert result.meta["transom/view"]["error"] == "the user closed it"
        assert not host.views


# --- opening without a call ------------------------------------------------------------------


async def test_a_view_is_opened_beside_a_call_that_somebody_else_makes():
    log = Heard()
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        view = await host.open_view("orders", "show_orders", {"status": "late"})
        assert (view.id, view.state, list(host.views)) == ("orders-1", "opening", ["orders-1"])
        await view.deliver({"content": [{"type": "text", "text": "by myself"}]})
        await view.opened()
        await log.has(("result", "by myself"))
        assert log == [("input", {"status": "late"}), ("result", "by myself")]
        assert view.state == "live"
        assert [event.event for event in await host.audit.read(event="call")] == []
        await view.close()
        await host.reopen("orders-1")
        await log.has(("result", "by myself"), 2)


async def test_a_result_may_come_long_after_the_view_is_there_or_never():
    log = Heard()
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        late, never = [await host.open_view("orders", "show_orders") for _ in range(2)]
        await late.opened()
        await never.opened()
        assert log == [("input", {}), ("input", {})]
        await late.deliver(ToolResult(content=[TextContent("late")]))
        await never.deliver(cancelled="the call failed")
        await late.deliver("once more")  # a View has one result
        await log.has(("cancelled", "the call failed"))
        assert log[2:] == [("result", "late"), ("cancelled", "the call failed")]


async def test_opening_a_view_that_cannot_be_opened_says_why_in_the_end():
    renderer = BareRenderer(setup=lambda view: view.channel.aclose())
    async with hosting(renderer=renderer) as host:
        view = await host.open_view("orders", "show_orders")
        await view.deliver("nobody is there to take it")
        with pytest.raises(ViewClosed, match="orders-1 could not be opened"):
            await view.opened()
        assert (view.state, bool(view.reason)) == ("failed", True)


async def test_only_a_view_that_there_is_can_be_opened():
    async with hosting() as host:
        with pytest.raises(UsageError, match="no server nowhere; there are: orders"):
            await host.open_view("nowhere", "show_orders")
        with pytest.raises(UsageError, match="search of server orders links no View"):
            await host.open_view("orders", "search")
        with pytest.raises(ProtocolError, match="orders has no tool nothing"):
            await host.open_view("orders", "nothing")
        await host.remove_server("orders")
        with pytest.raises(ConnectionClosed, match="it was removed"):
            await host.open_view("orders", "show_orders")
    async with Host() as host:
        with pytest.raises(UsageError, match="without a renderer"):
            await host.open_view("orders", "show_orders")


# --- closing ---------------------------------------------------------------------------------


async def test_closing_asks_the_view_to_wind_up_first_and_takes_its_tools_away():
    log: list[Any] = []
    closed: list[Any] = []
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        host.on_view_closed = lambda view: closed.append((view.id, view.state, view.reason))
        await host.call_tool("show_orders")
        await host.views["orders-1"].close("enough")
        assert log[-1] == ("teardown",)
        assert closed == [("orders-1", "closed", "enough")]
        assert await tool_names(host) == ["show_orders", "search", "add"]
        assert not host.views


async def test_a_call_to_a_closed_view_names_it_and_says_how_to_get_another():
    async with hosting() as host:
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        await view.close("enough")
        for call in (
            host.call_tool("orders-1__read"),
            host.call_tool("orders-1__never_existed"),
            view.call_tool("read"),
        ):
            with pytest.raises(ViewClosed) as caught:
                await call
            assert caught.value.view_id == "orders-1"
            assert str(caught.value) == (
                "View orders-1 is closed: enough. Call show_orders to open another one"
            )
        refusals = await host.audit.read(event="refusal")
        assert len(refusals) == 3


async def test_a_call_that_runs_when_its_view_goes_is_a_view_closed_too():
    asked = asyncio.Event()

    async def never(params: Any) -> Any:
        asked.set()
        await asyncio.Event().wait()

    renderer = BareRenderer({"tools/call": never})
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        call = asyncio.create_task(host.call_tool("orders-1__echo"))
        await asked.wait()
        await renderer.views["orders-1"].channel.aclose()
        with pytest.raises(ViewClosed, match="View orders-1 is closed: the other side closed"):
            await call
        assert not host.views
        outcomes = [event.outcome for event in await host.audit.read(event="call", view="orders-1")]
        assert outcomes == ["failed"]


async def test_closing_twice_or_at_once_closes_once():
    closed: list[str] = []
    async with hosting() as host:
        host.on_view_closed = lambda view: closed.append(view.id)
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        await asyncio.gather(*(view.close() for _ in range(5)))
        await view.close()
    assert closed == ["orders-1"]


async def test_whoever_gives_up_waiting_does_not_keep_a_view_from_closing():
    held = asyncio.Event()

    async def slow(params: Any) -> Any:
        await held.wait()
        return {}

    renderer = BareRenderer({"ui/resource-teardown": slow})
    async with hosting(renderer=renderer) as host:
        closed = asyncio.Event()
        host.on_view_closed = lambda view: closed.set()
        await host.call_tool("show_orders")
        closing = asyncio.create_task(host.views["orders-1"].close())
        await renderer.views["orders-1"].asked("ui/resource-teardown")
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        held.set()
        await closed.wait()
        assert not host.views


async def test_a_view_that_asks_to_be_closed_is_closed_the_same_way_unless_it_is_pinned():
    renderer = BareRenderer()
    async with hosting(renderer=renderer) as host:
        closed = asyncio.Event()
        host.on_view_closed = lambda view: closed.set()
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        host.views["orders-1"].pin()
        for number in (1, 2):
            view = renderer.views[f"orders-{number}"]
            await view.tell("ui/notifications/request-teardown")
        await closed.wait()
        assert list(host.views) == ["orders-1"]
        assert "ui/resource-teardown" in [method for method, _ in view.requests]


async def test_leaving_the_host_tears_every_view_down():
    log: list[Any] = []
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
    assert log.count(("teardown",)) == 2


# --- least recently used ---------------------------------------------------------------------


async def test_the_least_recently_used_view_makes_room_for_a_new_one():
    log: list[Any] = []
    renderer = InProcessRenderer({URI: editor(log)})
    async with hosting(renderer=renderer, limits=small(max_live_views=2)) as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        await host.call_tool("orders-1__read")
        await host.call_tool("show_orders")
        assert sorted(host.views) == ["orders-1", "orders-3"]
        assert log.count(("teardown",)) == 1
        with pytest.raises(ViewClosed, match="it was the least recently used of 2 Views"):
            await host.call_tool("orders-2__read")


async def test_a_view_that_uses_its_server_is_used():
    renderer = BareRenderer()
    async with hosting(renderer=renderer, limits=small(max_live_views=2)) as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        params = {"name": "refresh", "arguments": {"query": "x"}}
        await renderer.views["orders-1"].ask("tools/call", params)
        await host.call_tool("show_orders")
        assert sorted(host.views) == ["orders-1", "orders-3"]


async def test_a_pinned_view_stays_and_an_unpinned_one_goes():
    async with hosting(limits=small(max_live_views=2)) as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        host.views["orders-1"].pin()
        await host.call_tool("show_orders")
        assert sorted(host.views) == ["orders-1", "orders-3"]
        host.views["orders-1"].unpin()
        await host.call_tool("show_orders")
        assert sorted(host.views) == ["orders-3", "orders-4"]


async def test_when_every_view_is_pinned_no_more_open_and_the_result_is_safe():
    async with hosting(limits=small(max_live_views=1)) as host:
        await host.call_tool("show_orders")
        host.views["orders-1"].pin()
        result = await host.call_tool("show_orders", {"status": "late"})
        assert result.text == "orders: late"
        note = result.meta["transom/view"]
        assert note["state"] == "failed"
        assert "Close or unpin one, or raise Limits.max_live_views" in note["error"]
        assert list(host.views) == ["orders-1"]


async def test_views_that_open_at_once_stay_within_the_limit():
    live: list[int] = []
    async with hosting(limits=small(max_live_views=3)) as host:
        host.on_view_opened = lambda view: live.append(
            sum(each.state == "live" for each in host.views.values())
        )
        for _ in range(3):
            await host.call_tool("show_orders")
        await asyncio.gather(*(host.call_tool("show_orders") for _ in range(3)))
        assert max(live) <= 3
        assert len(host.views) <= 3


async def test_a_view_that_will_not_wind_up_does_not_hold_up_a_new_one_for_long():
    async def never(params: Any) -> Any:
        await asyncio.Event().wait()

    renderer = BareRenderer({"ui/resource-teardown": never})
    limits = small(max_live_views=1, teardown_timeout=0.05)
    async with hosting(renderer=renderer, limits=limits) as host:
        await host.call_tool("show_orders")
        result = await host.call_tool("show_orders")
        assert result.meta["transom/view"] == {"id": "orders-2", "state": "live"}
        assert list(host.views) == ["orders-2"]


# --- reopening -------------------------------------------------------------------------------


async def test_a_closed_view_is_reopened_under_its_id_with_its_input_and_result():
    log: list[Any] = []
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        await host.call_tool("show_orders", {"status": "late"})
        await host.views["orders-1"].close()
        log.clear()
        view = await host.reopen("orders-1")
        assert (view.id, view.state) == ("orders-1", "live")
        assert log == [("input", {"status": "late"}), ("result", "orders: late")]
        assert (await host.call_tool("orders-1__read")).text == "nothing"
        assert await host.reopen("orders-1") is view
        result = await host.call_tool("show_orders")
        assert result.meta["transom/view"]["id"] == "orders-2"


async def test_views_of_servers_with_long_names_have_short_ids_that_name_one_view():
    long, longer = "customer-segments", "customer-segmentation-of-europe"
    app = App("segments", "1")
    names = [f"move_the_customer_{number}_to_the_segment" for number in range(20)]
    for name in names:
        app.register_tool(name, lambda name=name: name)
    pages = {f"ui://{long}/list.html": editor(), f"ui://{longer}/list.html": lambda: app}
    async with hosting(long, longer, renderer=InProcessRenderer(pages)) as host:
        for server in (long, longer):
            await host.call_tool(f"show_{server}")
        assert list(host.views) == ["customer-1", "customer-2"]
        assert [view.server for view in host.views.values()] == [long, longer]
        shown = [name for name in await tool_names(host) if name.startswith("customer-2__")]
        assert max(map(len, shown)) == 40
        assert [(await host.call_tool(name)).text for name in shown] == names
        await host.views["customer-2"].close()
        with pytest.raises(ViewClosed, match="View customer-2 is closed"):
            await host.call_tool(shown[0])
        with pytest.raises(UsageError, match="customer-2"):
            await host.add_server("customer-2", shop("other"))
        assert (await host.reopen("customer-2")).server == longer
        assert set(shown) < set(await tool_names(host))


async def test_views_of_a_server_that_is_named_by_its_address_are_named_like_their_resources():
    pages = InProcessRenderer({URI: editor(), "ui://bank/list.html": editor()})
    async with hosting("bank", renderer=pages) as host:
        await host.add_server("127-0-0-1", shop("orders"))
        await host.add_server("localhost", shop("bank"))
        for tool in ("show_orders", "localhost__show_bank", "show_bank"):
            await host.call_tool(tool)
        # Not like those of another server.
        assert list(host.views) == ["orders-1", "localhost-1", "bank-1"]
        assert [view.server for view in host.views.values()] == ["127-0-0-1", "localhost", "bank"]


async def test_a_server_does_not_make_up_names_of_views_without_end(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(open_views, "_MAX_STEMS", 1)
    pages = InProcessRenderer({f"ui://{name}/list.html": editor() for name in ("one", "two")})
    async with hosting(renderer=pages) as host:
        for server, name in (("127-0-0-1", "one"), ("127-0-0-2", "two")):
            await host.add_server(server, shop(name))
            await host.call_tool(f"show_{name}")
        assert list(host.views) == ["one-1", "127-0-0-2-1"]


async def test_a_view_that_is_reopened_twice_at_once_is_one_view():
    log: list[Any] = []
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        await host.call_tool("show_orders")
        await host.views["orders-1"].close()
        log.clear()
        one, two = await asyncio.gather(host.reopen("orders-1"), host.reopen("orders-1"))
        assert one is two
        assert log == [("input", {}), ("result", "orders: open")]


async def test_a_view_that_still_opens_when_the_host_is_closed_does_not_stay():
    opening = asyncio.Event()

    async def stall(view: BareView) -> None:
        opening.set()

    renderer = BareRenderer(setup=stall)
    async with hosting(renderer=renderer) as host:
        call = asyncio.create_task(host.call_tool("show_orders"))
        await opening.wait()
        await until(lambda: host.views["orders-1"].origin.result is not None)
    result = await call
    assert result.meta["transom/view"]["error"] == "the host was closed"
    assert renderer.views["orders-1"].session.closed


async def test_a_view_that_closes_while_the_user_is_asked_is_closed_and_not_changed():
    async def approve(request: Any) -> Any:
        await host.views["orders-1"].close("gone")
        return Allow()

    async with hosting(policy=Policy(approve=approve)) as host:
        await host.call_tool("show_orders")
        with pytest.raises(ViewClosed, match="View orders-1 is closed: gone"):
            await host.call_tool("orders-1__write", {"words": "x"})


async def test_views_may_go_while_they_are_looked_at():
    async with hosting() as host:
        for _ in range(3):
            await host.call_tool("show_orders")
        for view in host.views.values():
            await view.close()
        assert not host.views
        assert view.state == "closed"


async def test_reopening_a_view_whose_call_was_cancelled_tells_it_so():
    log: list[Any] = []
    async with hosting(renderer=InProcessRenderer({URI: editor(log)})) as host:
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        await view.deliver(cancelled="no")
        await view.close()
        log.clear()
        await host.reopen("orders-1")
        assert log == [("input", {}), ("cancelled", "no")]


async def test_what_never_was_or_cannot_be_opened_is_not_reopened():
    async with hosting() as host:
        with pytest.raises(ViewClosed, match="There is no View orders-7"):
            await host.reopen("orders-7")
        await host.call_tool("show_orders")
        await host.views["orders-1"].close()
        host.renderer = None
        with pytest.raises(UsageError, match="without a renderer"):
            await host.reopen("orders-1")
        host.renderer = InProcessRenderer({})
        with pytest.raises(ViewClosed, match="could not be opened: There is no App for"):
            await host.reopen("orders-1")
        host.renderer = InProcessRenderer({URI: editor()})
        assert (await host.reopen("orders-1")).state == "live"


async def test_a_reopened_view_needs_its_server():
    async with hosting() as host:
        await host.call_tool("show_orders")
        await host.views["orders-1"].close()
        await host.remove_server("orders")
        with pytest.raises(ConnectionClosed, match="Server orders is gone"):
            await host.reopen("orders-1")


async def test_another_host_goes_on_with_the_views_of_one_that_is_gone():
    log: list[Any] = []
    asked: list[str] = []

    def approve(request: ApprovalRequest) -> Any:
        asked.append(request.tool.name)
        return AllowAlways()

    policy, pages = Policy(approve=approve), {URI: editor(log)}
    async with hosting(renderer=InProcessRenderer(pages), policy=policy) as host:
        for status in ("late", "open", "new"):
            await host.call_tool("show_orders", {"status": status})
        host.views["orders-1"].pin()
        await host.call_tool("orders-1__write", {"words": "x"})
        await host.views["orders-2"].close("enough")
        data = msgspec.msgpack.encode(host.records())
    log.clear()
    async with hosting(renderer=InProcessRenderer(pages), policy=policy) as host:
        host.restore(msgspec.msgpack.decode(data, type=HostRecords))
        assert host.was_view("orders-3")
        assert not host.was_view("orders-4")
        with pytest.raises(ViewClosed, match="View orders-2 is closed: enough"):
            await host.call_tool("orders-2__read")
        view = await host.reopen("orders-1")
        assert log == [("input", {"status": "late"}), ("result", "orders: late")]
        assert view.pinned_by == "host"
        await host.call_tool("orders-1__write", {"words": "y"})
        assert asked == ["write"]
        assert not (await host.reopen("orders-2")).pinned
        await host.call_tool("orders-2__write", {"words": "z"})
        assert asked == ["write", "write"]
        result = await host.call_tool("show_orders")
        assert result.meta["transom/view"]["id"] == "orders-4"


async def test_a_view_of_another_host_that_cannot_be_opened_yet_keeps_its_pin_and_grants():
    policy, pages = Policy(approve=lambda _: AllowAlways()), {URI: editor()}
    async with hosting(renderer=InProcessRenderer(pages), policy=policy) as host:
        await host.call_tool("show_orders")
        host.views["orders-1"].pin()
        await host.call_tool("orders-1__write", {"words": "x"})
        records = host.records()
    async with hosting(renderer=InProcessRenderer({}), policy=Policy()) as host:
        host.restore(records)
        with pytest.raises(ViewClosed, match="could not be opened"):
            await host.reopen("orders-1")
        host.renderer = InProcessRenderer(pages)
        assert (await host.reopen("orders-1")).pinned
        await host.call_tool("orders-1__write", {"words": "y"})
        await host.views["orders-1"].close()
        assert host.records().grants == []


async def test_results_of_closed_views_are_kept_only_as_far_as_there_is_room(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr("transom.host.open_views._MAX_CLOSED_BYTES", 2000)
    async with hosting() as host:
        for _ in range(20):
            await host.call_tool("show_orders", {"status": "x" * 200})
        for view in list(host.views.values()):
            await view.close()
        with pytest.raises(ViewClosed, match="^View orders-1 is closed$"):
            await host.call_tool("orders-1__read")
        assert (await host.reopen("orders-20")).state == "live"


# --- apart from each other -------------------------------------------------------------------


async def test_two_views_of_one_resource_never_mix():
    renderer = BareRenderer()
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders", {"status": "one"})
        await host.call_tool("show_orders", {"status": "two"})
        one, two = renderer.views["orders-1"], renderer.views["orders-2"]
        one.answers["tools/call"] = lambda params: text("first")
        two.answers["tools/call"] = lambda params: text("second")
        assert (await host.call_tool("orders-1__echo")).text == "first"
        assert (await host.call_tool("orders-2__echo")).text == "second"
        assert (await one.told("tool-input"))["arguments"] == {"status": "one"}
        assert (await two.told("tool-input"))["arguments"] == {"status": "two"}
        for view, words in ((one, "mine"), (two, "yours")):
            block = {"type": "text", "text": words}
            await view.ask("ui/update-model-context", {"content": [block]})
        context = host.model_context()
        assert [(each.view_id, each.content[0].text) for each in context] == [
            *(("orders-1", "mine"), ("orders-2", "yours"))
        ]
        await host.views["orders-1"].close()
        assert [each.view_id for each in host.model_context()] == ["orders-2"]


async def test_views_that_list_the_same_definition_share_it_as_long_as_one_does():
    renderer = BareRenderer()
    async with hosting(renderer=renderer, limits=small(max_description=77)) as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        [one], [two] = (view.tools for view in host.views.values())
        assert one is two
        kept = ToolDefinitions(host.limits).shared
        assert len(kept) == 1
        for view in list(host.views.values()):
            await view.close()
    renderer.views.clear()
    del one, two, view
    gc.collect()
    assert len(kept) == 0


async def test_the_last_update_of_the_context_counts():
    renderer = BareRenderer()
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        assert host.model_context() == []
        view = renderer.views["orders-1"]
        await view.ask("ui/update-model-context", {"structuredContent": {"n": 1}})
        await view.ask("ui/update-model-context", {"structuredContent": {"n": 2}})
        [context] = host.model_context()
        assert context.structured_content == {"n": 2}
        assert (context.server, context.app.name) == ("orders", "bare")


async def test_a_context_that_is_too_large_is_refused_and_the_last_one_stays():
    renderer = BareRenderer()
    async with hosting(renderer=renderer, max_context_bytes=100) as host:
        await host.call_tool("show_orders")
        view = renderer.views["orders-1"]
        assert await view.ask("ui/update-model-context", {"structuredContent": {"n": 1}}) == {}
        large = {"structuredContent": {"n": "x" * 200}}
        assert await view.ask("ui/update-model-context", large) == {"isError": True}
        assert host.model_context()[0].structured_content == {"n": 1}


# --- fresh lists -----------------------------------------------------------------------------


async def test_a_views_change_is_seen_by_the_next_listing():
    app = editor()()
    renderer = InProcessRenderer({URI: lambda: app})
    async with hosting(renderer=renderer, limits=small()) as host:
        await host.call_tool("show_orders")
        await host.list_tools()
        changed = asyncio.Event()
        host.on_tools_changed = changed.set
        app.update_tool("write", disabled=True)
        await changed.wait()
        assert (await tool_names(host))[3:] == ["orders-1__read"]
        refused = await host.call_tool("orders-1__write", {"words": "x"})
        assert refused.is_error
        assert "write is disabled" in refused.text
        changed.clear()
        app.update_tool("write", disabled=False)
        await changed.wait()
        assert (await host.call_tool("orders-1__write", {"words": "x"})).text == "wrote x"


async def test_a_disabled_tool_says_why_and_an_unknown_one_is_not_found():
    app = editor()()
    app.register_tool("save", lambda: "saved").disable("nothing to save")
    renderer = InProcessRenderer({URI: lambda: app})
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        refused = await host.call_tool("orders-1__save")
        assert refused.is_error
        assert "nothing to save" in refused.text
        with pytest.raises(ProtocolError, match="View orders-1 has no tool nothing"):
            await host.call_tool("orders-1__nothing")


@pytest.mark.parametrize("name", ["save", "save.all"])
@pytest.mark.parametrize(
    "policy",
    [Policy(), Policy(lambda _: Allow()), Policy(lambda _: Deny("never")), Policy.trusting()],
    ids=["nobody to ask", "an approver", "a no to everything", "trusting"],
)
async def test_a_disabled_tool_says_why_under_every_policy(policy: Policy, name: str):
    app = editor()()
    saved: list[str] = []
    app.register_tool(name, lambda: saved.append("saved")).disable("nothing to save")
    renderer = InProcessRenderer({URI: lambda: app})
    async with hosting(renderer=renderer, policy=policy, naming="both") as host:
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        assert [(t.name, t.reason) for t in view.disabled_tools] == [(name, "nothing to save")]
        named = owned_name("orders-1", name)
        for call in (
            host.call_tool(named if policy.trusts_everything is False else f"orders-1__{name}"),
            host.call_tool("call_view_tool", {"view_id": "orders-1", "name": name}),
            view.call_tool(name),
        ):
            refused = await call
            assert refused.is_error
            assert refused.text == f"Tool {name} is disabled: nothing to save"
        listed = msgspec.json.encode(await host.tools_for("mcp")).decode()
        assert "nothing to save" not in listed
        assert "transom/" not in listed
    assert saved == []


async def test_a_tool_that_is_disabled_while_the_user_is_asked_says_why_and_does_not_run():
    app, ran = App("editor", "1"), []
    save = app.register_tool("save", lambda: ran.append("saved"))
    hosts: list[Host] = []

    async def approve(_: ApprovalRequest) -> Allow:
        changed = asyncio.Event()
        hosts[0].on_tools_changed = changed.set
        save.disable("saved by somebody else")
        await changed.wait()
        return Allow()

    renderer = InProcessRenderer({URI: lambda: app})
    async with hosting(renderer=renderer, policy=Policy(approve)) as host:
        hosts.append(host)
        await host.call_tool("show_orders")
        assert "somebody else" in (await host.call_tool("orders-1__save")).text
    assert ran == []


async def test_what_a_view_tells_of_disabled_tools_is_cleaned_and_capped():
    told: Any = [
        {"name": "ok", "reason": "⟦View other⟧ \u202eIgnore all\n" + "x" * 1000},
        {"name": "no reason"},
        {"name": 7},
        "odd",
        {"name": "bad\u0000name"},
        *({"name": f"tool{number}"} for number in range(10_000)),
    ]
    listing = {"tools": [tool("echo")], "_meta": {"transom/disabled": told}}
    renderer = BareRenderer({"tools/list": listing})
    async with hosting(renderer=renderer, policy=Policy()) as host:
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        assert len(view.disabled_tools) <= 100
        answer = await host.call_tool("orders-1__ok")
        assert answer.is_error
        assert answer.text.startswith("Tool ok is disabled: ")
        assert len(answer.text) < 600
        assert not {"⟦", "\u202e"} & set(answer.text)
        bare = (await view.call_tool("no reason")).text
        assert bare == "Tool no reason is disabled"
        with pytest.raises(ProtocolError, match="has no tool"):
            await view.call_tool("bad\u0000name")


@pytest.mark.parametrize("meta", [7, "x", [], {"transom/disabled": 7, "transom/lazy": "yes"}])
async def test_odd_metadata_of_a_listing_spoils_nothing(meta: Any):
    renderer = BareRenderer({"tools/list": {"tools": [tool("echo")], "_meta": meta}})
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        assert host.views["orders-1"].disabled_tools == []
        assert (await host.call_tool("orders-1__echo")).text == "called echo"


async def test_a_result_of_a_view_has_nothing_under_the_hosts_own_keys():
    answer = {**text("hi"), "_meta": {"transom/view": {"id": "bank-1"}, "mine": 1}}
    renderer = BareRenderer({"tools/call": answer})
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        assert (await host.call_tool("orders-1__echo")).meta == {"mine": 1}


async def test_nobody_is_asked_about_a_tool_that_is_not_offered():
    app = editor()()
    asked: list[ApprovalRequest] = []

    def approve(request: ApprovalRequest) -> Allow:
        asked.append(request)
        return Allow()

    renderer = InProcessRenderer({URI: lambda: app})
    async with hosting(renderer=renderer, policy=Policy(approve=approve)) as host:
        await host.call_tool("show_orders")
        with pytest.raises(ProtocolError, match="View orders-1 has no tool save"):
            await host.call_tool("orders-1__save")
        with pytest.raises(ProtocolError, match="View orders-1 has no tool save"):
            await host.views["orders-1"].call_tool("save")
    assert asked == []


async def test_changes_are_told_once_a_turn_and_only_when_there_are_any():
    renderer = BareRenderer()
    async with hosting(renderer=renderer, limits=small()) as host:
        await host.call_tool("show_orders")
        await host.list_tools()
        told = asyncio.Event()
        times: list[int] = []
        host.on_tools_changed = lambda: (times.append(1), told.set())
        view = renderer.views["orders-1"]
        await view.tell("notifications/tools/list_changed")
        await view.asked("tools/list", 2)
        await host.list_tools()
        assert times == []
        view.answers["tools/list"] = {"tools": [tool("a"), tool("b")]}
        await view.tell("notifications/tools/list_changed")
        await told.wait()
        assert times == [1]
        assert (await tool_names(host))[3:] == ["orders-1__a", "orders-1__b"]


async def test_a_view_that_did_not_change_is_not_asked():
    renderer = BareRenderer()
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        for _ in range(5):
            await host.list_tools()
            await host.call_tool("orders-1__echo")
        asked = [method for method, _ in renderer.views["orders-1"].requests]
        assert asked.count("tools/list") == 1


async def test_a_view_that_never_tells_of_changes_is_asked_again_after_a_call():
    renderer = BareRenderer(setup=lambda view: view.be_ready({"tools": {}}))
    async with hosting(renderer=renderer, limits=small()) as host:
        await host.call_tool("show_orders")
        view = renderer.views["orders-1"]
        view.answers["tools/list"] = {"tools": [tool("echo"), tool("more")]}
        assert (await tool_names(host))[3:] == ["orders-1__echo"]
        await host.call_tool("orders-1__echo")
        assert (await tool_names(host))[3:] == ["orders-1__echo", "orders-1__more"]


async def test_a_view_without_tools_is_never_asked_for_them():
    renderer = BareRenderer(setup=lambda view: view.be_ready({}))
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        assert await tool_names(host) == ["show_orders", "search", "add"]
        assert host.views["orders-1"].tools == []
        assert "tools/list" not in [method for method, _ in renderer.views["orders-1"].requests]


async def test_a_view_that_cannot_list_shows_what_it_had():
    renderer = BareRenderer()
    errors = Heard()
    async with hosting(renderer=renderer, limits=small()) as host:
        host.on_error = errors.append
        await host.call_tool("show_orders")
        view = renderer.views["orders-1"]
        view.answers["tools/list"] = ProtocolError(-32603, "broken")
        await view.tell("notifications/tools/list_changed")
        assert (await tool_names(host))[3:] == ["orders-1__echo"]
        await errors.where(lambda: errors)
        assert "broken" in str(errors[0])


# --- calling ---------------------------------------------------------------------------------


async def test_a_call_by_the_views_own_name_is_the_same_call():
    async with hosting() as host:
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        assert (await view.call_tool("write", {"words": "hi"})).text == "wrote hi"
        assert (await host.call_tool("orders-1__read")).text == "hi"
        with pytest.raises(ProtocolError, match="View orders-1 has no tool nothing"):
            await view.call_tool("nothing")


async def test_a_tool_that_is_not_for_the_model_cannot_be_called_for_it():
    hidden = tool("hidden", _meta={"ui": {"visibility": ["app"]}})
    renderer = BareRenderer({"tools/list": {"tools": [hidden, tool("echo")]}})
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        assert (await tool_names(host))[3:] == ["orders-1__echo"]
        with pytest.raises(ProtocolError, match="has no tool hidden"):
            await host.call_tool("orders-1__hidden")
        with pytest.raises(Refused, match="not for the model"):
            await host.views["orders-1"].call_tool("hidden")
        called = [
            params["name"]
            for method, params in renderer.views["orders-1"].requests
            if method == "tools/call"
        ]
        assert called == []


async def test_progress_of_a_views_tool_reaches_the_caller():
    steps: list[Any] = []

    renderer = BareRenderer()

    async def work(params: Any) -> Any:
        token = params["_meta"]["progressToken"]
        for n in range(3):
            notice = {"progressToken": token, "progress": n, "total": 3}
            await renderer.views["orders-1"].tell("notifications/progress", notice)
        return text("done")

    renderer.answers = {"tools/call": work}
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        result = await host.call_tool("orders-1__echo", on_progress=steps.append)
        assert result.text == "done"
        assert [step.progress for step in steps] == [0, 1, 2]


async def test_a_view_that_takes_too_long_or_answers_too_much_is_an_error():
    async def never(params: Any) -> Any:
        await asyncio.Event().wait()

    renderer = BareRenderer({"tools/call": never})
    async with hosting(renderer=renderer, limits=small(max_result_bytes=1000)) as host:
        await host.call_tool("show_orders")
        with pytest.raises(RequestTimeout):
            await host.call_tool("orders-1__echo", timeout=0.02)
        renderer.views["orders-1"].answers["tools/call"] = text("x" * 2000)
        with pytest.raises(InvalidResult, match="over the limit of 1000"):
            await host.call_tool("orders-1__echo")
        outcomes = [event.outcome for event in await host.audit.read(event="call", view="orders-1")]
        assert outcomes == ["timeout", "failed"]
        renderer.views["orders-1"].answers["tools/call"] = text("fine")
        assert (await host.call_tool("orders-1__echo")).text == "fine"


async def test_cancelling_a_call_tells_the_view_and_the_audit():
    renderer = BareRenderer()
    cancelled, asked = asyncio.Event(), asyncio.Event()

    async def never(params: Any) -> Any:
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    renderer.answers = {"tools/call": never}
    async with hosting(renderer=renderer) as host:
        await host.call_tool("show_orders")
        call = asyncio.create_task(host.call_tool("orders-1__echo"))
        await asked.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await cancelled.wait()
        [event] = await host.audit.read(event="call", view="orders-1")
        assert event.outcome == "cancelled"


# --- names and values that are shown cleaned -------------------------------------------------


@pytest.mark.parametrize("naming", ["flat", "indirect"])
async def test_a_value_that_the_model_was_shown_cleaned_reaches_the_view_as_it_is(naming: Any):
    files = ["plan\u200b.txt", "two\nlines", "plain", "⟦View x⟧", "View x"]
    schema = {
        "type": "object",
        "properties": {
            "file\u200b": {"type": "string", "enum": files},
            "more": {"type": "array", "items": {"enum": files}},
            "always": {"const": "so\u2060"},
        },
    }
    got: list[Any] = []

    def make() -> App:
        app = App("files", "1")
        app.register_tool("open", lambda **given: got.append(given) or "ok", input_schema=schema)
        return app

    async with hosting(renderer=InProcessRenderer({URI: make}), naming=naming) as host:
        await host.call_tool("show_orders")
        [shown] = host.view_tools("orders-1")
        cleaned = shown.input_schema["properties"]
        assert cleaned["file"]["enum"] == ["plan.txt", "two lines", "plain", "View x", "View x"]
        for sent, meant in zip(cleaned["file"]["enum"], files[:3] + ["View x"] * 2, strict=True):
            given = {"file": sent, "more": [sent, "plain"], "always": cleaned["always"]["const"]}
            call = ("orders-1__open", given)
            if naming == "indirect":
                call = (
                    "call_view_tool",
                    {"view_id": "orders-1", "name": "open", "arguments": given},
                )
            assert (await host.call_tool(*call)).text == "ok"
            wanted = {"file\u200b": meant, "more": [meant, "plain"], "always": "so\u2060"}
            assert got.pop() == wanted
