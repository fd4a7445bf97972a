"""Approvals that an agent obtains in its own way: asked about, decided, and used once."""

from typing import Any

from tests.host.bare_view import tool
from tests.host.shop import BareRenderer, hosting
from tests.host.test_host import changed_list
from transom import Allow, AllowAlways, Deny, Host, Limits, Policy

WRITE = "orders-1__write"
WORDS = {"words": "x"}


async def approvals(host: Host) -> list[tuple[str, str]]:
    return [(event.event, event.outcome) for event in await host.audit.read(tool="write")]


async def test_a_call_that_the_user_allowed_runs_once():
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        request = await host.approval_needed(WRITE, WORDS, call_id="1")
        assert request is not None
        assert (request.view_id, request.tool.name, request.arguments) == (
            "orders-1",
            "write",
            WORDS,
        )
        await host.decide("1", Allow())
        assert (await host.answer(WRITE, WORDS, call_id="1")).text == "wrote x"
        again = await host.answer(WRITE, WORDS, call_id="1")
        assert again.is_error
        assert "The user was not asked about this call" in again.text


async def test_nothing_is_asked_where_the_policy_lets_it_run_or_asks_by_itself():
    for policy in (Policy.trusting(), Policy(approve=lambda request: Allow())):
        async with hosting(policy=policy) as host:
            await host.call_tool("show_orders")
            assert await host.approval_needed(WRITE, WORDS, call_id="1") is None
            assert (await host.answer(WRITE, WORDS, call_id="1")).text == "wrote x"
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        for name in ("show_orders", "orders-1__read", "orders-1__fly", "nothing_like_it"):
            assert await host.approval_needed(name, call_id="1") is None


async def test_a_call_that_was_refused_or_not_answered_does_not_run():
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        await host.approval_needed(WRITE, WORDS, call_id="1")
        assert (await host.answer(WRITE, WORDS, call_id="1")).is_error
        await host.approval_needed(WRITE, WORDS, call_id="2")
        await host.decide("2", Deny("not today"))
        assert (await host.answer(WRITE, WORDS, call_id="2")).is_error
        await host.decide("nobody asked about this", Allow())
        assert (await host.answer(WRITE, WORDS, call_id="nobody asked about this")).is_error
        denied = await host.audit.read(event="approval")
        assert [(event.outcome, event.detail) for event in denied][1] == ("denied", "not today")
        assert not await host.audit.read(event="call", tool="write")


async def test_a_yes_is_for_the_arguments_that_were_shown_unless_the_user_changed_them():
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        await host.approval_needed(WRITE, WORDS, call_id="1")
        await host.decide("1", Allow())
        other = await host.answer(WRITE, {"words": "y"}, call_id="1")
        assert "It changed while the user was asked" in other.text
        await host.approval_needed(WRITE, WORDS, call_id="2")
        await host.decide("2", Allow(), edited=True)
        assert (await host.answer(WRITE, {"words": "y"}, call_id="2")).text == "wrote y"


async def test_a_tool_that_changes_after_it_was_shown_does_not_run_though_it_is_asked_about_again():
    renderer = BareRenderer({"tools/list": {"tools": [tool("echo", description="Say it back")]}})
    async with hosting(
        renderer=renderer, policy=Policy(), limits=Limits(relist_interval=0)
    ) as host:
        await host.call_tool("show_orders")
        await host.approval_needed("orders-1__echo", call_id="1")
        other = tool("echo", description="Delete everything")
        await changed_list(host, renderer.views["orders-1"], other)
        # A graph that is resumed asks again, and is given the answer to what was shown first.
        shown = await host.approval_needed("orders-1__echo", call_id="1")
        assert shown is not None
        assert (shown.tool.description, shown.repeated) == ("Say it back", True)
        await host.decide("1", Allow())
        result = await host.answer("orders-1__echo", call_id="1")
        assert "It changed while the user was asked" in result.text
        assert "tools/call" not in [name for name, _ in renderer.views["orders-1"].requests]


async def test_a_yes_counts_for_no_other_call_that_has_the_same_id():
    other = {"words": "delete all"}
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        # Some models give all calls of a turn one id. The user is asked about both.
        await host.approval_needed(WRITE, WORDS, call_id="1")
        await host.approval_needed(WRITE, other, call_id="1")
        await host.decide("1", Allow())
        for arguments in (other, WORDS):
            result = await host.answer(WRITE, arguments, call_id="1")
            assert result.is_error
        assert not await host.audit.read(event="call", tool="write")
        await host.approval_needed(WRITE, other, call_id="1")
        await host.decide("1", Allow())
        assert (await host.answer(WRITE, other, call_id="1")).text == "wrote delete all"


async def test_yes_for_good_is_a_grant_and_is_not_asked_about_again():
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        await host.approval_needed(WRITE, WORDS, call_id="1")
        await host.decide("1", AllowAlways())
        assert not (await host.answer(WRITE, WORDS, call_id="1")).is_error
        assert await host.approval_needed(WRITE, WORDS, call_id="2") is None
        assert not (await host.answer(WRITE, WORDS, call_id="2")).is_error
        assert ("approval", "always") in await approvals(host)


async def test_a_yes_ends_with_its_view_though_another_has_the_same_id():
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        await host.approval_needed(WRITE, WORDS, call_id="1")
        await host.decide("1", Allow())
        await host.views["orders-1"].close("enough")
        await host.reopen("orders-1")
        assert (await host.answer(WRITE, WORDS, call_id="1")).is_error


async def test_indirect_calls_are_asked_about_like_any_other():
    async with hosting(policy=Policy(), naming="indirect") as host:
        await host.call_tool("show_orders")
        given: dict[str, Any] = {"view_id": "orders-1", "name": "write", "arguments": WORDS}
        request = await host.approval_needed("call_view_tool", given, call_id="1")
        assert request is not None
        assert (request.tool.name, request.arguments) == ("write", WORDS)
        await host.decide("1", Allow())
        assert (await host.answer("call_view_tool", given, call_id="1")).text == "wrote x"
        assert await host.approval_needed("call_view_tool", {"view_id": 7}, call_id="2") is None
        assert await host.approval_needed("list_view_tools", call_id="3") is None


async def test_calls_that_nobody_decides_about_are_not_kept_without_end():
    async with hosting(policy=Policy()) as host:
        await host.call_tool("show_orders")
        for number in range(1001):
            await host.approval_needed(WRITE, WORDS, call_id=f"{number}")
        for call_id in ("0", "1000"):
            await host.decide(call_id, Allow())
        assert (await host.answer(WRITE, WORDS, call_id="0")).is_error
        assert not (await host.answer(WRITE, WORDS, call_id="1000")).is_error
