"""Views that show a call's arguments while the model writes them."""

from typing import Any

import pytest

from tests.host.shop import URI, Heard, editor, hosting, shop
from transom import Host, InProcessRenderer
from transom.errors import OutOfOrder
from transom.host import written_calls


def watched(log: Heard, **options: Any) -> Any:
    return hosting(renderer=InProcessRenderer({URI: editor(log)}), **options)


def write(host: Host, *pieces: str, name: str = "show_orders", call_id: str = "c1") -> None:
    for piece in pieces:
        host.stream_arguments(name, piece, call_id=call_id)


async def test_a_view_opens_and_shows_the_arguments_while_they_are_written():
    log = Heard()
    async with watched(log) as host:
        write(host, '{"sta', 'tus": "la')
        await log.has(("partial", {"status": "la"}))
        assert list(host.views) == ["orders-1"]
        write(host, "te")
        await log.has(("partial", {"status": "late"}))
        result = await host.call_tool("show_orders", {"status": "late"}, call_id="c1")
        assert log[-2:] == [("input", {"status": "late"}), ("result", "orders: late")]
        assert list(host.views) == ["orders-1"]
        assert result.meta is not None
        assert result.meta["transom/view"] == {"id": "orders-1", "state": "live"}


async def test_another_call_of_the_same_tool_opens_a_view_of_its_own():
    log = Heard()
    async with watched(log) as host:
        write(host, '{"status": "la')
        await log.has(("partial", {"status": "la"}))
        await host.call_tool("show_orders", {"status": "paid"}, call_id="c2")
        await host.call_tool("show_orders", {"status": "late"}, call_id="c1")
        assert host.views["orders-1"].origin.arguments == {"status": "late"}
        assert host.views["orders-2"].origin.arguments == {"status": "paid"}


async def test_what_is_written_for_one_server_reaches_no_view_of_another():
    logs = {name: Heard() for name in ("orders", "music")}
    apps = {f"ui://{name}/list.html": editor(log) for name, log in logs.items()}
    async with hosting("orders", "music", renderer=InProcessRenderer(apps)) as host:
        write(host, '{"status": "la')
        await logs["orders"].has(("partial", {"status": "la"}))
        write(host, '{"status": "secret', name="show_music")  # with the same id
        await logs["music"].has(("partial", {"status": "secret"}))
        await host.call_tool("show_music", {"status": "secret"}, call_id="c1")
        assert all("secret" not in str(each) for each in logs["orders"])
        assert list(host.views) == ["orders-1", "music-1"]


@pytest.mark.parametrize(
    "text", ["nonsense", '{"a": nonsense', "[1, 2", '"text', "{" * 5000, "\ud83d"]
)
async def test_arguments_that_are_no_object_show_nothing_and_break_nothing(text: str):
    log = Heard()
    async with watched(log) as host:
        write(host, text)
        write(host, '{"status": "la', call_id="c2")
        await log.has(("partial", {"status": "la"}))
        await host.call_tool("show_orders", {"status": "late"}, call_id="c1")
        assert ("input", {"status": "late"}) in log


async def test_a_view_that_is_used_again_shows_what_is_written_for_it():
    log = Heard()
    async with hosting(
        "music", renderer=InProcessRenderer({"ui://music/list.html": editor(log)})
    ) as host:
        await host.remove_server("music")
        await host.add_server("music", shop("music"), reuse_views="always")
        await host.call_tool("show_music", {"status": "one"})
        write(host, '{"status": "tw', name="show_music")
        await log.has(("partial", {"status": "tw"}))
        await host.call_tool("show_music", {"status": "two"}, call_id="c1")
        assert log[-2:] == [("input", {"status": "two"}), ("result", "music: two")]
        assert list(host.views) == ["music-1"]


async def test_a_call_that_is_not_made_is_cancelled_and_its_view_closed(
    monkeypatch: pytest.MonkeyPatch,
):
    log = Heard()
    async with watched(log) as host:
        write(host, '{"status": "la')
        await log.has(("partial", {"status": "la"}))
        monkeypatch.setattr(written_calls, "_MADE_WITHIN", 0.0)  # from the last piece on
        write(host, "te")
        await log.has(("cancelled", "The call was not made"))
        await log.has(("teardown",))
        await host.call_tool("show_orders", {"status": "late"}, call_id="c1")
        assert "orders-2" in host.views


async def test_a_view_that_the_user_closed_meanwhile_is_opened_again_by_the_call():
    log = Heard()
    async with watched(log) as host:
        write(host, '{"status": "la')
        await log.has(("partial", {"status": "la"}))
        await host.views["orders-1"].close("the user closed it")
        await host.call_tool("show_orders", {"status": "late"}, call_id="c1")
        assert list(host.views) == ["orders-2"]


@pytest.mark.parametrize("settings", [{"open_views": "ask"}, {"reuse_views": "arguments"}])
async def test_no_view_opens_early_where_the_user_is_asked_or_the_arguments_decide(
    settings: dict[str, Any],
):
    log = Heard()
    async with watched(log) as host:
        await host.add_server("more", shop("more"), **settings)
        write(host, '{"status": "la', name="show_more")
        write(host, '{"status": "la', call_id="c2")
        await log.has(("partial", {"status": "la"}))
        assert list(host.views) == ["orders-1"]


async def test_calls_written_at_once_and_long_ones_are_limited(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(written_calls, "_MAX_CALLS", 2)
    monkeypatch.setattr(written_calls, "_MAX_TEXT", 20)
    log = Heard()
    async with watched(log) as host:
        for number in range(5):
            write(host, '{"status": "la', call_id=f"c{number}")
        write(host, "x" * 20, call_id="c0")
        await log.has(("partial", {"status": "la"}), times=2)
        assert list(host.views) == ["orders-1", "orders-2"]
        write(host, "search", '{"query":', name="search", call_id="c9")  # opens no View
        write(host, "{", name="no such tool", call_id="c9")


async def test_a_caller_of_its_own_opens_a_view_and_writes_into_it():
    log = Heard()
    async with watched(log) as host:
        view = await host.open_view("orders", "show_orders", {"status": "l"}, partial=True)
        call = view.newest_call
        for text in ("la", "lat"):  # it need not be open
            await view.send_partial_input({"status": text}, call=call)
        await view.opened()
        await view.send_input({"status": "late"}, call=call)
        await view.deliver("late orders", call=call)
        assert log == [
            ("partial", {"status": "lat"}),
            ("input", {"status": "late"}),
            ("result", "late orders"),
        ]
        with pytest.raises(OutOfOrder, match="has the input of that call already"):
            await view.send_partial_input({"status": "l"}, call=call)


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_result_is_refused_while_the_input_is_written_and_can_be_sent_after_it(
    is_open: bool,
):
    log = Heard()
    async with watched(log) as host:
        view = await host.open_view("orders", "show_orders", {"status": "l"}, partial=True)
        if is_open:
            await view.opened()
        with pytest.raises(OutOfOrder, match="not all of the input"):
            await view.deliver("too early")
        await view.send_input({"status": "late"})
        await view.deliver("late orders")
        await log.has(("result", "late orders"))


async def test_nothing_is_written_for_a_call_that_was_cancelled():
    async with watched(Heard()) as host:
        view = await host.open_view("orders", "show_orders", {"status": "l"}, partial=True)
        await view.deliver(cancelled="the user stopped it")
        with pytest.raises(OutOfOrder, match="has the end of that call already"):
            await view.send_partial_input({"status": "la"})
