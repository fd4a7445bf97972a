"""A View that is used for another call of its tool, and calls that open none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp.server.mcpserver import MCPServer

from tests.host.bare_view import begun, until
from tests.host.shop import HTML, BareRenderer, Heard, editor
from transom import Allow, AllowAlways, Deny, Host, InProcessRenderer, Limits, Policy
from transom.errors import Refused, UsageError
from transom.host.asking.policy import ApprovalRequest
from transom.server.views import Views
from transom.types import ToolResult

URI = "ui://shop/page.html"


class Shop:
    """`show(status)` opens a View, and waits while its status is held; `other` opens another."""

    def __init__(self, reuse: Any) -> None:
        self.held: dict[str, asyncio.Event] = {}
        views = Views()
        page = views.add(URI, html=HTML.format("shop"))

        @views.tool(opens=page, reuse=reuse)
        async def show(status: str = "open", most: Any = None) -> str:
            """Show what there is."""
            if status in self.held:
                await self.held[status].wait()
            if status == "broken":
                raise ValueError("no such status")
            return status

        @views.tool(opens=page, reuse=reuse)
        def other() -> str:
            """Show it otherwise."""
            return "other"

        self.server: MCPServer[Any] = MCPServer("shop", extensions=[views])

    def hold(self, *statuses: str) -> None:
        self.held = {status: asyncio.Event() for status in statuses}


@asynccontextmanager
async def shopping(
    reuse: Any = None, renderer: Any = None, policy: Policy | None = None, **settings: Any
) -> AsyncIterator[tuple[Host, Shop, Heard]]:
    shop, log = Shop(reuse), Heard()
    async with Host(
        renderer=renderer or InProcessRenderer({URI: editor(log)}),
        policy=policy or Policy.trusting(),
        limits=Limits(unresponsive_after=0.2),
    ) as host:
        await host.add_server("shop", shop.server, **settings)
        yield host, shop, log


def view_of(result: ToolResult) -> Any:
    return (result.meta or {}).get("transom/view")


NEW = {"id": "shop-1", "state": "live"}
AGAIN = {**NEW, "reused": True}
SECOND = {"id": "shop-2", "state": "live"}


# --- which View is used ----------------------------------------------------------------------


async def test_every_call_opens_a_view_unless_the_server_says_otherwise():
    async with shopping() as (host, _, _):
        assert view_of(await host.call_tool("show")) == NEW
        assert view_of(await host.call_tool("show")) == SECOND


async def test_a_view_is_used_for_every_call_of_its_tool_and_gets_input_and_result():
    async with shopping("always") as (host, _, log):
        assert view_of(await host.call_tool("show", {"status": "open"})) == NEW
        assert view_of(await host.call_tool("show", {"status": "late"})) == AGAIN
        await log.has(("result", "late"))
        assert log == [
            ("input", {"status": "open"}),
            ("result", "open"),
            ("input", {"status": "late"}),
            ("result", "late"),
        ]
        assert view_of(await host.call_tool("other")) == SECOND
        events = await host.audit.read(event="view")
        assert [(e.outcome, e.view, e.tool) for e in events] == [
            ("opened", "shop-1", "show"),
            ("used again", "shop-1", "show"),
            ("opened", "shop-2", "other"),
        ]
        assert events[1].arguments == {"status": "late"}


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (
            {"status": "a", "most": {"x": 1, "y": 2}},
            {"most": {"y": 2, "x": 1}, "status": "a"},
            True,
        ),
        ({}, None, True),
        ({"status": "a"}, {"status": "b"}, False),
        ({"most": 1}, {"most": True}, False),
        ({"most": None}, {}, False),
        ({"most": [1, 2]}, {"most": [2, 1]}, False),
        ({"most": {1: 2}}, {"most": {"1": 2}}, True),
    ],
)
async def test_a_view_is_used_for_the_same_arguments(first: Any, second: Any, same: Any):
    async with shopping("arguments") as (host, _, _):
        assert view_of(await host.call_tool("show", first)) == NEW
        assert view_of(await host.call_tool("show", second)) == (AGAIN if same else SECOND)


async def test_the_one_that_runs_the_host_has_the_last_word():
    for reuse, used in (("never", SECOND), ({"show": "never", "*": "always"}, SECOND)):
        async with shopping("always", reuse_views=reuse) as (host, _, _):
            await host.call_tool("show")
            assert view_of(await host.call_tool("show")) == used
    for reuse in ("always", {"show": "always"}, {"*": "arguments", "other": "never"}):
        async with shopping(None, reuse_views=reuse) as (host, _, _):
            await host.call_tool("show")
            assert view_of(await host.call_tool("show")) == AGAIN


@pytest.mark.parametrize(
    "settings",
    [{"reuse_views": "sometimes"}, {"reuse_views": {"a": "b"}}, {"open_views": "no"}],
)
async def test_a_setting_that_means_nothing_is_an_error(settings: Any):
    with pytest.raises(UsageError, match="_views is one of"):
        async with shopping(**settings):
            pass


async def test_the_word_of_a_strange_server_means_something_or_nothing():
    for word in (True, ["always"], {"always": 1}, "ALWAYS", None):
        shop = Shop(None)
        [tool] = [t for t in shop.server._tool_manager.list_tools() if t.name == "show"]
        tool.meta = {**tool.meta, "transom/reuse": word}
        async with Host(renderer=InProcessRenderer({URI: editor()})) as host:
            await host.add_server("shop", shop.server)
            await host.call_tool("show")
            assert view_of(await host.call_tool("show")) == SECOND


async def test_a_view_that_is_closed_or_does_not_respond_is_not_used():
    async with shopping("always") as (host, _, _):
        await host.call_tool("show")
        await host.views["shop-1"].close()
        assert view_of(await host.call_tool("show")) == SECOND
        host.views["shop-2"].lose("its page shows something else now")
        assert host.views["shop-2"].state == "gone"
        assert view_of(await host.call_tool("show"))["id"] == "shop-3"


async def test_the_view_that_was_used_last_is_used_and_counts_as_used():
    async with shopping("arguments") as (host, _, _):
        await host.call_tool("show", {"status": "a"})
        await host.call_tool("show", {"status": "b"})
        await host.call_tool("show", {"status": "a"})
        assert list(host.views) == ["shop-2", "shop-1"]


# --- several calls at once -------------------------------------------------------------------


async def test_calls_at_once_share_the_view_that_is_opening():
    renderer = BareRenderer()
    async with shopping("always", renderer) as (host, _, _):
        calls = [host.call_tool("show", {"status": each}) for each in "abc"]
        results = await asyncio.gather(*calls)
        assert [result.text for result in results] == ["a", "b", "c"]
        assert [view_of(result)["id"] for result in results] == ["shop-1"] * 3
        assert len(renderer.pages) == 1


async def test_results_pair_with_inputs_whatever_ends_first():
    async with shopping("always") as (host, shop, log):
        await host.call_tool("show", {"status": "zero"})
        shop.hold("one", "two")
        one = await begun(host.call_tool("show", {"status": "one"}))
        await log.has(("input", {"status": "one"}))
        two = await begun(host.call_tool("show", {"status": "two"}))
        shop.held["two"].set()
        assert (await two).text == "two"
        shop.held["one"].set()
        assert view_of(await one) == AGAIN
        await log.has(("result", "one"))
        assert log[2:] == [
            ("input", {"status": "one"}),
            ("cancelled", "It is used for another call"),
            ("input", {"status": "two"}),
            ("result", "two"),
            ("input", {"status": "one"}),
            ("result", "one"),
        ]


async def test_a_view_waits_for_the_result_it_has_the_input_of():
    async with shopping("always") as (host, shop, log):
        shop.hold("one", "two")
        one = await begun(host.call_tool("show", {"status": "one"}))
        await log.has(("input", {"status": "one"}))
        two = await begun(host.call_tool("show", {"status": "two"}))
        shop.held["one"].set()
        await one
        shop.held["two"].set()
        await two
        await log.has(("result", "two"))
        assert log == [
            ("input", {"status": "one"}),
            ("result", "one"),
            ("input", {"status": "two"}),
            ("result", "two"),
        ]


async def test_a_call_that_fails_or_is_cancelled_is_told_to_the_view_that_shows_it():
    async with shopping("always") as (host, shop, log):
        await host.call_tool("show", {"status": "zero"})
        shop.hold("one", "two")
        one = await begun(host.call_tool("show", {"status": "one"}))
        await log.has(("input", {"status": "one"}))
        two = await begun(host.call_tool("show", {"status": "two"}))
        two.cancel()  # the View does not know of it
        await asyncio.wait([two])
        one.cancel()
        await log.has(("cancelled", "The call was cancelled"))
        assert view_of(await host.call_tool("show", {"status": "three"})) == AGAIN
        await log.has(("result", "three"))
        assert log[2:] == [
            ("input", {"status": "one"}),
            ("cancelled", "The call was cancelled"),
            ("input", {"status": "three"}),
            ("result", "three"),
        ]
        await host.remove_server("shop")


async def test_the_view_that_closes_while_it_is_used_leaves_the_result_whole():
    async with shopping("always") as (host, shop, _):
        await host.call_tool("show")
        shop.hold("late")
        call = await begun(host.call_tool("show", {"status": "late"}))
        await host.views["shop-1"].close("enough")
        shop.held["late"].set()
        result = await call
        assert result.text == "late"
        assert view_of(result) == {**AGAIN, "state": "closed", "error": "enough"}


# --- loaded again ----------------------------------------------------------------------------


async def test_a_page_that_is_loaded_again_gets_the_last_call_again():
    renderer = BareRenderer()
    async with shopping("always", renderer) as (host, _, _):
        await host.call_tool("show", {"status": "one"})
        await host.call_tool("show", {"status": "two"})
        view = renderer.views["shop-1"]
        await view.told("tool-result", 2)
        before = len(view.notices)
        await view.be_ready()
        await view.told("tool-result", 3)
        again = [(method[17:], params) for method, params in view.notices[before:]]
        assert again[0] == ("tool-input", {"arguments": {"status": "two"}})
        assert again[1][1]["content"][0]["text"] == "two"


async def test_a_closed_view_is_opened_again_with_its_last_call():
    async with shopping("always") as (host, _, log):
        await host.call_tool("show", {"status": "one"})
        await host.call_tool("show", {"status": "two"})
        await host.views["shop-1"].close()
        log.clear()
        await host.reopen("shop-1")
        await log.has(("result", "two"))
        assert log == [("input", {"status": "two"}), ("result", "two")]
        assert view_of(await host.call_tool("show")) == AGAIN


async def test_whoever_calls_the_tool_themselves_says_which_call_a_result_is_of():
    async with shopping("always") as (host, _, log):
        view = await host.open_view("shop", "show", {"status": "one"})
        one = view.newest_call
        await view.opened()
        assert await host.open_view("shop", "show", {"status": "two"}) is view
        two = view.newest_call
        assert (one.reused, two.reused) == (False, True)
        await view.deliver("first", call=one)
        await view.deliver("second", call=two)
        await log.has(("result", "second"))
        assert [what for what, *_ in log] == ["input", "result", "input", "result"]


# --- calls that open none --------------------------------------------------------------------


async def test_a_call_may_say_that_it_opens_no_view():
    async with shopping("always") as (host, _, log):
        result = await host.call_tool("show", open_view=False)
        assert (result.text, view_of(result), dict(host.views)) == ("open", None, {})
        await host.call_tool("show")
        assert view_of(await host.answer("show", {"status": "x"}, open_view=False)) is None
        assert ("input", {"status": "x"}) not in log


@pytest.mark.parametrize("setting", ["never", {"show": "never"}, {"*": "never", "other": "always"}])
async def test_a_host_may_open_no_view_for_a_tool(setting: Any):
    async with shopping(open_views=setting) as (host, _, _):
        result = await host.call_tool("show")
        assert (result.text, view_of(result)) == ("open", None)
        with pytest.raises(UsageError, match="links no View, or may open none"):
            await host.open_view("shop", "show")
        opened = view_of(await host.call_tool("other"))
        assert (opened is None) == (setting == "never")


async def test_the_user_is_asked_before_a_view_opens():
    asked: list[ApprovalRequest] = []
    answers: list[Any] = [Deny("not now"), Allow(), AllowAlways()]

    def approve(request: ApprovalRequest) -> Any:
        asked.append(request)
        return answers[len(asked) - 1]

    async with shopping(open_views="ask", policy=Policy(approve)) as (host, shop, _):
        result = await host.call_tool("show", {"status": "a"})
        assert result.text == "a"
        assert view_of(result) == {"error": "show opened no View: not now"}
        assert not host.views
        with_view = [view_of(await host.call_tool("show")) for _ in range(3)]
        assert [each["state"] for each in with_view] == ["live"] * 3
        assert len(asked) == 3  # the last one was for good
        assert (asked[0].opens, asked[0].server, asked[0].tool.name) == (True, "shop", "show")
        assert asked[0].arguments == {"status": "a"}
        await host.remove_server("shop")
        await host.add_server("shop", shop.server, open_views="ask")
        answers.append(Deny("another server now"))
        assert "another server now" in view_of(await host.call_tool("show"))["error"]
        outcomes = [e.outcome for e in await host.audit.read(event="approval")]
        assert outcomes == ["denied", "allowed", "always", "denied"]


async def test_an_open_view_is_used_without_asking():
    asked: list[ApprovalRequest] = []
    policy = Policy(approve_opening=lambda request: asked.append(request) or Allow())
    async with shopping("always", open_views="ask", policy=policy) as (host, _, _):
        assert [view_of(await host.call_tool("show")) for _ in range(2)] == [NEW, AGAIN]
        assert len(asked) == 1


async def test_without_anybody_to_ask_no_view_opens_unless_everything_is_trusted():
    async with shopping(open_views="ask", policy=Policy()) as (host, _, _):
        assert "Nobody can be asked" in view_of(await host.call_tool("show"))["error"]
        with pytest.raises(Refused, match="Nobody can be asked"):
            await host.open_view("shop", "show")
    async with shopping(open_views="ask") as (host, _, _):
        assert view_of(await host.call_tool("show")) == NEW


async def test_a_question_is_withdrawn_with_its_call():
    asking: list[ApprovalRequest] = []
    ended: list[str] = []

    async def approve(request: ApprovalRequest) -> Any:
        asking.append(request)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("withdrawn")

    async with shopping(open_views="ask", policy=Policy(approve)) as (host, _, _):
        call = await begun(host.call_tool("show"))
        await until(lambda: asking)
        call.cancel()
        await asyncio.wait([call])
        assert ended == ["withdrawn"]
        assert not host.views
