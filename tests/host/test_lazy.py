"""A lazy schema is pulled: each listing for a model asks the View again, without any notice."""

import asyncio
from typing import Any

import pytest

from tests.host.bare_view import BareView, text, tool
from tests.host.shop import URI, BareRenderer, Heard, hosting, tool_names
from transom import Allow, App, Host, InProcessRenderer, Limits, Policy
from transom.host.asking.policy import ApprovalRequest

LAZY = {"transom/lazy": True}


class Player:
    """What Views with a lazy `play` list: the tracks that there are now."""

    def __init__(self, **meta: Any) -> None:
        self.tracks = ["a"]
        self.meta: dict[str, Any] = meta
        self.listings = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def definition(self) -> dict[str, Any]:
        schema = {"type": "object", "properties": {"id": {"enum": list(self.tracks)}}}
        return {"name": "play", "inputSchema": schema, "_meta": self.meta}

    async def list_tools(self, _: Any) -> dict[str, Any]:
        self.listings += 1
        answer = {"tools": [self.definition(), tool("stop")]}
        await self.gate.wait()
        return answer

    def renderer(self) -> BareRenderer:
        return BareRenderer({"tools/list": self.list_tools})


def enum(listed: Any) -> list[str]:
    [play] = [each for each in listed if each.name.endswith("__play")]
    return play.input_schema["properties"]["id"]["enum"]


async def test_every_listing_for_a_model_shows_what_is_true_now() -> None:
    player = Player(**LAZY)
    async with hosting(renderer=player.renderer(), naming="both") as host:
        await host.call_tool("show_orders")
        for number in range(20):  # more than the rate of announced changes allows
            player.tracks.append(f"b{number}")
            assert enum(await host.list_tools()) == player.tracks
        player.tracks.append("c")
        [shown] = [
            each["input_schema"]
            for each in await host.tools_for("anthropic")
            if each["name"] == "orders-1__play"
        ]
        assert shown["properties"]["id"]["enum"] == player.tracks
        for arguments in ({}, {"view_id": "orders-1"}):
            player.tracks.append("d")
            listed = await host.call_tool("list_view_tools", arguments)
            [view] = listed.structured_content["views"]
            assert view["tools"][0]["inputSchema"]["properties"]["id"]["enum"] == player.tracks


async def test_views_without_lazy_tools_are_not_listed_again() -> None:
    lazy, static = Player(**LAZY), Player()
    players = iter([static, lazy, static])

    class Renderer(BareRenderer):
        async def open(self, page: Any) -> Any:
            self.answers = {"tools/list": next(players).list_tools}
            return await super().open(page)

    async with hosting(renderer=Renderer()) as host:
        for _ in range(3):
            await host.call_tool("show_orders")
        before = static.listings, lazy.listings
        for _ in range(3):
            await host.list_tools()
        assert (static.listings, lazy.listings) == (before[0], before[1] + 3)


async def test_a_view_whose_lazy_tool_is_gone_is_not_listed_again() -> None:
    player = Player(**LAZY)
    async with hosting(renderer=player.renderer()) as host:
        await host.call_tool("show_orders")
        player.meta = {}
        await host.list_tools()
        before = player.listings
        await host.list_tools()
        assert player.listings == before


async def test_a_host_may_ask_every_view_each_time() -> None:
    player = Player()
    async with hosting(renderer=player.renderer(), fresh=True) as host:
        await host.call_tool("show_orders")
        player.tracks.append("b")
        assert enum(await host.list_tools()) == ["a", "b"]


async def test_a_listing_that_had_begun_before_does_not_answer_for_a_later_one() -> None:
    player = Player(**LAZY)
    async with hosting(renderer=player.renderer(), limits=Limits(fresh_timeout=60)) as host:
        await host.call_tool("show_orders")
        view = host.views["orders-1"]
        player.gate.clear()
        first = asyncio.create_task(host.list_tools())
        bare: BareView = host.renderer.views["orders-1"]  # type: ignore[union-attr]
        await bare.asked("tools/list", times=2)
        player.tracks.append("b")  # the View has made up its answer to the first one
        second = asyncio.create_task(host.list_tools())
        await asyncio.sleep(0)
        player.gate.set()
        await first
        assert enum(await second) == ["a", "b"]
        assert [each.name for each in view.tools] == ["play", "stop"]


async def test_a_view_that_does_not_answer_costs_the_freshness_time_and_is_in_the_audit() -> None:
    player, lines = Player(**LAZY), []
    limits = Limits(fresh_timeout=0.01)
    async with hosting(renderer=player.renderer(), limits=limits, audit=lines.append) as host:
        await host.call_tool("show_orders")
        player.tracks.append("b")
        player.gate.clear()
        assert enum(await host.list_tools()) == ["a"]
        await host.audit.flush()
        [late] = [line for line in lines if '"view","outcome":"late"' in line]
        assert '"view":"orders-1"' in late
        player.gate.set()
        while enum(await host.list_tools()) != ["a", "b"]:
            pass  # it is waited for again once it has answered


async def test_one_view_that_hangs_keeps_no_other_from_being_fresh() -> None:
    stuck, well = Player(**LAZY), Player(**LAZY)
    players = iter([stuck, well])

    class Renderer(BareRenderer):
        async def open(self, page: Any) -> Any:
            self.answers = {"tools/list": next(players).list_tools}
            return await super().open(page)

    async with hosting(renderer=Renderer()) as host:
        await host.call_tool("show_orders")
        await host.call_tool("show_orders")
        stuck.gate.clear()
        well.tracks.append("b")
        listed = await host.list_tools()
        assert enum(t for t in listed if t.name.startswith("orders-1")) == ["a"]
        assert enum(t for t in listed if t.name.startswith("orders-2")) == ["a", "b"]


async def test_the_user_is_asked_about_the_tool_as_it_is_now() -> None:
    player, asked = Player(**LAZY), []

    def approve(request: ApprovalRequest) -> Allow:
        asked.append(request.tool.input_schema["properties"]["id"]["enum"])
        return Allow()

    async with hosting(renderer=player.renderer(), policy=Policy(approve)) as host:
        await host.call_tool("show_orders")
        player.tracks.append("b")
        assert (await host.call_tool("orders-1__play", {"id": "b"})).text == "called play"
        assert asked == [["a", "b"]]


async def test_data_that_changes_while_the_user_is_asked_does_not_stop_the_call() -> None:
    player = Player(**LAZY)
    hosts: list[Host] = []

    async def approve(_: ApprovalRequest) -> Allow:
        player.tracks.append("b")
        await hosts[0].list_tools()
        return Allow()

    async with hosting(renderer=player.renderer(), policy=Policy(approve)) as host:
        hosts.append(host)
        await host.call_tool("show_orders")
        assert (await host.call_tool("orders-1__play", {"id": "a"})).text == "called play"


@pytest.mark.parametrize("naming", ["flat", "both"])
async def test_a_tool_that_a_lazy_view_has_only_now_can_be_called(naming: Any) -> None:
    player = Player(**LAZY)
    async with hosting(renderer=player.renderer(), naming=naming) as host:
        await host.call_tool("show_orders")
        more = {"tools": [player.definition(), tool("late")]}
        bare: BareView = host.renderer.views["orders-1"]  # type: ignore[union-attr]
        bare.answers["tools/list"] = more
        bare.answers["tools/call"] = text("it is there")
        assert (await host.call_tool("orders-1__late")).text == "it is there"


async def test_changes_that_a_listing_finds_are_announced_but_do_not_keep_a_listener_busy() -> None:
    """A View whose schema differs each time, and a listener that lists whenever it is called."""
    player, calls = Player(**LAZY), Heard()

    async def endless(_: Any) -> dict[str, Any]:
        player.tracks.append(f"b{len(player.tracks)}")
        return await player.list_tools(_)

    renderer = BareRenderer({"tools/list": endless})
    async with hosting(renderer=renderer, limits=Limits(relist_interval=3600)) as host:
        await host.call_tool("show_orders")
        await asyncio.sleep(0)  # what opening changed is announced in the next turn

        async def changed() -> None:
            calls.append("changed")
            await host.list_tools()

        host.on_tools_changed = changed
        before = player.listings
        for _ in range(10):
            await host.list_tools()
        assert player.listings == before + 10
        assert calls == []
    calls = Heard()
    async with hosting(renderer=player.renderer(), limits=Limits(relist_interval=0.0)) as host:
        await host.call_tool("show_orders")
        host.on_tools_changed = lambda: calls.append("changed")
        player.tracks.append("z")
        await host.list_tools()
        await calls.has("changed")


async def test_a_tool_whose_schema_fails_is_back_as_soon_as_it_does_not() -> None:
    tracks: list[str] = []

    def make() -> App:
        app = App("player", "1")

        def schema() -> dict[str, Any]:
            return {"type": "object", "properties": {"id": {"enum": [tracks[0]]}}}

        app.register_tool("play", lambda id: f"plays {id}", input_schema=schema)
        return app

    async with hosting(renderer=InProcessRenderer({URI: make})) as host:
        await host.call_tool("show_orders")
        assert not any("play" in name for name in await tool_names(host))
        tracks.append("a")
        assert "orders-1__play" in await tool_names(host)
        assert (await host.call_tool("orders-1__play", {"id": "a"})).text == "plays a"
