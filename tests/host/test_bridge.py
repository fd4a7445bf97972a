"""A Bridge's life: handshake, readiness, the order of what it sends, and the end."""

import asyncio
from typing import Any

import pytest

from tests.host.bare_view import HOST, BareView, begun, joined, ready, text
from transom import Bridge, Limits
from transom.channel import memory_pair
from transom.errors import (
    AlreadyConnected,
    CapabilityMissing,
    ConnectionClosed,
    NotConnected,
    OutOfOrder,
    ProtocolError,
    RequestCancelled,
    RequestTimeout,
    UsageError,
)
from transom.protocol.lifecycle import LifecycleState
from transom.types import (
    AppCapabilities,
    HostCapabilities,
    HostContext,
    Implementation,
    ListChanged,
    TextContent,
    ToolResult,
)

QUICK = Limits(initialize_timeout=0.02, call_timeout=0.02, teardown_timeout=0.02, list_timeout=0.02)


# --- construction and handshake --------------------------------------------------------------


async def test_nothing_is_sent_on_connect():
    async with joined() as (_, view, _):
        await view.initialize()
        assert view.requests == []
        assert view.notices == []


async def test_the_answer_to_initialize_has_exactly_four_members():
    context = {"theme": "dark"}
    async with joined(capabilities={"openLinks": {}}, context=context) as (_, view, _):
        assert await view.initialize() == {
            "protocolVersion": "2026-01-26",
            "hostInfo": HOST,
            "hostCapabilities": {"openLinks": {}},
            "hostContext": {"theme": "dark"},
        }


async def test_the_context_is_empty_unless_given():
    async with joined() as (_, view, _):
        assert (await view.initialize())["hostContext"] == {}


async def test_mappings_are_sent_as_they_are_even_when_they_make_no_sense():
    strange = {"theme": "plaid", "unheardOf": {"a": [1, None]}}
    capabilities = {"openLinks": {"x": 1}, "flying": {}}
    async with joined(context=strange, capabilities=capabilities) as (_, view, _):
        answer = await view.initialize()
        assert answer["hostContext"] == strange
        assert answer["hostCapabilities"] == capabilities


async def test_structs_are_sent_with_their_wire_names():
    async with joined(
        host_info=Implementation("h", "1", website_url="https://h.example"),
        capabilities=HostCapabilities(open_links={}, server_tools=ListChanged(list_changed=True)),
        context=HostContext(display_mode="inline", extra={"mood": "good"}),
    ) as (bridge, view, _):
        answer = await view.initialize()
        assert answer["hostInfo"] == {
            "name": "h",
            "version": "1",
            "websiteUrl": "https://h.example",
        }
        assert answer["hostCapabilities"] == {"openLinks": {}, "serverTools": {"listChanged": True}}
        assert answer["hostContext"] == {"displayMode": "inline", "mood": "good"}
        assert bridge.context == {"displayMode": "inline", "mood": "good"}


async def test_capabilities_that_are_not_given_follow_from_the_handlers():
    async with joined() as (bridge, view, _):
        bridge.on_open_link = lambda url: None
        bridge.on_create_message = lambda params: {}
        bridge.on_call_tool = lambda name, arguments: "done"
        assert (await view.initialize())["hostCapabilities"] == {
            "tools": {"listChanged": True},
            "appTools": {"listChanged": True},
            "openLinks": {},
            "sampling": {},
            "serverTools": {},
        }


async def test_handlers_can_be_given_at_once():
    async with joined(handlers={"on_open_link": lambda url: None}) as (bridge, view, _):
        assert bridge.on_open_link
        assert "openLinks" in (await view.initialize())["hostCapabilities"]


async def test_a_handler_of_no_event_is_refused():
    ours, _ = memory_pair()
    with pytest.raises(UsageError, match="A Bridge has no event 'on_nothing'"):
        Bridge(ours, host_info={"name": "h", "version": "1"}, handlers={"on_nothing": print})


@pytest.mark.parametrize("version", ["2026-01-26", "2099-12-31", "draft", ""])
async def test_every_protocol_version_is_answered_with_ours(version: str):
    async with joined() as (_, view, _):
        answer = await view.initialize(protocolVersion=version)
        assert answer["protocolVersion"] == "2026-01-26"


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({"appInfo": {"name": "x"}}, "appInfo: Object missing required field `version`"),
        ({"appCapabilities": {"availableDisplayModes": ["cinema"]}}, "availableDisplayModes"),
        ({"protocolVersion": 3}, "protocolVersion: Expected `str`, got `int`"),
    ],
)
async def test_bad_initialize_params_are_refused_and_the_place_named(
    changes: dict[str, Any], where: str
):
    async with joined() as (bridge, view, _):
        with pytest.raises(ProtocolError) as refused:
            await view.initialize(**changes)
        assert refused.value.code == -32602
        assert refused.value.message.startswith("Invalid params for ui/initialize: ")
        assert where in refused.value.message
        assert bridge.app_info is None
        assert bridge.state is LifecycleState.CREATED


async def test_unknown_keys_in_initialize_are_dropped():
    async with joined() as (bridge, view, _):
        await view.initialize({"tools": {"listChanged": True, "x": 1}, "flying": {}}, colour="red")
        assert bridge.app_capabilities == AppCapabilities(tools=ListChanged(list_changed=True))


async def test_who_the_view_is_is_known_from_initialize_on():
    async with joined() as (bridge, view, _):
        assert bridge.app_info is None
        assert bridge.app_capabilities is None
        await view.be_ready()
        await bridge.initialized()
        assert bridge.app_info == Implementation("bare", "1")
        assert bridge.app_capabilities is not None


async def test_a_second_initialize_is_answered_reported_and_counts():
    async with ready() as (bridge, view, errors):
        await view.initialize({}, appInfo={"name": "other", "version": "2"})
        assert bridge.app_info == Implementation("other", "2")
        assert bridge.app_capabilities == AppCapabilities()
        assert "ui/initialize again" in await errors.one_with("again")
        assert bridge.state is LifecycleState.INITIALIZING


async def test_after_a_second_initialize_nothing_is_sent_until_initialized():
    async with ready() as (bridge, view, _):
        await view.initialize()
        await bridge.send_tool_input({"n": 1})
        waiting = await begun(bridge.ping())
        await view.ask("ping")
        assert view.heard == []
        assert view.requests == []
        await view.tell("ui/notifications/initialized")
        await waiting
        assert view.heard == ["tool-input"]


async def test_a_view_that_starts_over_ends_what_was_asked_on_either_side():
    begun_there, stopped = asyncio.Event(), asyncio.Event()

    async def answer(_: str) -> bool:
        begun_there.set()
        try:
            return await asyncio.Event().wait()
        finally:
            stopped.set()

    async with ready() as (bridge, view, _):
        bridge.on_open_link = answer
        view.answers["tools/call"] = lambda _: asyncio.Event().wait()
        calling = await begun(bridge.call_tool("echo"))
        await view.asked("tools/call")
        asking = await begun(view.ask("ui/open-link", {"url": "https://x.example"}))
        await begun_there.wait()
        await view.initialize()
        with pytest.raises(RequestCancelled, match="tools/call: the View restarted"):
            await calling
        await stopped.wait()
        assert not asking.done()  # nobody answers what the page before had asked
        asking.cancel()


async def test_a_view_that_starts_over_gets_input_and_result_again_and_is_listed_again():
    async with ready() as (bridge, view, _):
        changed = asyncio.Event()
        bridge.on_tools_changed = changed.set
        await bridge.send_tool_input_partial({"n": 0})
        await bridge.send_tool_input({"n": 1})
        await view.be_ready()
        assert view.heard == ["tool-input-partial", "tool-input", "tool-input"]
        await changed.wait()
        await bridge.send_tool_result("one")
        await view.initialize()
        with pytest.raises(OutOfOrder):
            await bridge.send_tool_result("two")
        await view.tell("ui/notifications/initialized")
        await bridge.ping()
        assert view.heard[3:] == ["tool-result", "tool-input", "tool-result"]


async def test_initialized_without_initialize_is_ignored_and_reported():
    async with joined() as (bridge, view, errors):
        await view.tell("ui/notifications/initialized")
        assert "state is 'created'" in await errors.one_with("initialized")
        assert bridge.state is LifecycleState.CREATED
        await view.be_ready()
        await bridge.initialized()


async def test_a_repeated_initialized_changes_nothing_and_is_reported():
    async with ready() as (bridge, view, errors):
        await bridge.send_tool_input({})
        await view.tell("ui/notifications/initialized")
        assert "state is 'ready'" in await errors.one_with("initialized")
        assert view.heard == ["tool-input"]


async def test_a_bridge_is_connected_once():
    async with joined() as (bridge, _, _):
        with pytest.raises(AlreadyConnected, match="make one per connection"):
            bridge.start()
    with pytest.raises(AlreadyConnected):
        await bridge.__aenter__()


async def test_the_bridge_never_starts_an_mcp_handshake():
    async with ready() as (bridge, view, _):
        await bridge.list_tools()
        await bridge.call_tool("echo")
        assert [method for method, _ in view.requests] == ["tools/list", "tools/call"]


# --- readiness -------------------------------------------------------------------------------


async def test_tools_are_asked_for_after_the_handshake_and_not_before():
    async with joined() as (bridge, view, _):
        listing = await begun(bridge.list_tools())
        await view.initialize()
        await view.ask("ping")
        assert view.requests == []
        await view.tell("ui/notifications/initialized")
        assert [tool.name for tool in await listing] == ["echo"]
        assert [method for method, _ in view.requests] == ["tools/list"]


async def test_what_is_sent_before_initialized_waits_and_goes_out_in_order():
    async with joined() as (bridge, view, _):
        await bridge.send_tool_input_partial({"n": 1})
        await bridge.send_tool_input_partial({"n": 2})
        await view.initialize()
        await bridge.send_tool_input({"n": 3})
        await bridge.send_tool_result("done")
        assert view.notices == []
        await view.tell("ui/notifications/initialized")
        await view.told("tool-result")
        assert view.heard == ["tool-input-partial", "tool-input", "tool-result"]
        assert [params for _, params in view.notices[:2]] == [
            {"arguments": {"n": n}} for n in (2, 3)
        ]


async def test_requests_made_before_initialized_wait_for_it():
    async with joined() as (bridge, view, _):
        calls = [
            await begun(bridge.call_tool("echo")),
            await begun(bridge.list_tools()),
            await begun(bridge.ping()),
        ]
        await view.initialize()
        assert view.requests == []
        await view.tell("ui/notifications/initialized")
        await asyncio.gather(*calls)
        assert {method for method, _ in view.requests} == {"tools/call", "tools/list", "ping"}


async def test_no_more_than_so_many_notices_of_a_view_wait_for_a_slow_handler():
    logged: asyncio.Queue[int] = asyncio.Queue()
    go_on = asyncio.Event()

    async def slow(entry: Any) -> None:
        logged.put_nowait(entry.data)
        await go_on.wait()

    async with joined(limits=Limits(max_queued=2)) as (bridge, view, errors):
        bridge.on_log = slow
        await view.be_ready()
        for n in range(5):
            await view.tell("notifications/message", {"level": "info", "data": n})
            if n == 0:
                assert await logged.get() == 0
        await errors.one_with("PeerError: 2 notifications wait already; one was dropped")
        go_on.set()
        assert [await logged.get() for _ in range(2)] == [1, 2]


async def test_a_view_that_never_initialises_is_a_timeout_that_says_so():
    async with joined(limits=QUICK) as (bridge, view, _):
        with pytest.raises(
            RequestTimeout, match="initialized: the View was not initialised within"
        ):
            await bridge.initialized()
        with pytest.raises(RequestTimeout, match="tools/call: the View was not initialised within"):
            await bridge.call_tool("echo")
        with pytest.raises(RequestTimeout, match="the View was not initialised within 0.01 s"):
            await bridge.initialized(timeout=0.01)
        assert await bridge.teardown() is False
        assert view.requests == []


async def test_waiting_for_a_view_that_goes_away_ends():
    async with joined() as (bridge, view, _):
        waiting = await begun(bridge.initialized())
        await view.initialize()
        await view.session.aclose()
        with pytest.raises(ConnectionClosed, match="initialized: connection closed"):
            await waiting


async def test_a_bridge_that_was_not_started_says_how_to():
    bridge = Bridge(memory_pair()[0], host_info=HOST)
    with pytest.raises(UsageError, match="async with bridge"):
        await bridge.call_tool("echo")
    await bridge.aclose()
    assert bridge.state is LifecycleState.CLOSED


async def test_what_a_view_asks_before_initialized_is_served_and_reported():
    async with joined() as (bridge, view, errors):
        bridge.on_message = lambda blocks: None
        message = {"role": "user", "content": [{"type": "text", "text": "early"}]}
        assert await view.ask("ui/message", message) == {}
        assert "ui/message came before" in await errors.one_with("before")
        assert await view.ask("ping") == {}
        await view.initialize()
        assert len(errors) == 1


# --- the tool's data -------------------------------------------------------------------------


async def test_tool_data_goes_out_as_it_is():
    async with ready() as (bridge, view, _):
        await bridge.send_tool_input_partial({"q": "a"})
        await bridge.send_tool_input({"q": "ab", "none": None})
        await bridge.send_tool_result(
            {"content": [{"type": "odd", "x": 1}], "_meta": {"k": 1}, "more": True}
        )
        await view.told("tool-result")
        assert [params for _, params in view.notices] == [
            {"arguments": {"q": "a"}},
            {"arguments": {"q": "ab", "none": None}},
            {"content": [{"type": "odd", "x": 1}], "_meta": {"k": 1}, "more": True},
        ]


@pytest.mark.parametrize(
    ("result", "params"),
    [
        ("words", text("words")),
        (ToolResult(content=[TextContent("w")], is_error=True), {**text("w"), "isError": True}),
        ({"structuredContent": {"n": 1}}, {"content": [], "structuredContent": {"n": 1}}),
        (ToolResult(), {"content": []}),
    ],
)
async def test_a_result_may_be_text_a_struct_or_a_mapping(result: Any, params: dict[str, Any]):
    async with ready() as (bridge, view, _):
        await bridge.send_tool_input()
        await bridge.send_tool_result(result)
        assert await view.told("tool-result") == params
        assert await view.told("tool-input") == {"arguments": {}}


@pytest.mark.parametrize(("reason", "params"), [(None, {}), ("user", {"reason": "user"})])
async def test_a_cancellation_may_have_a_reason(reason: str | None, params: dict[str, Any]):
    async with ready() as (bridge, view, _):
        await bridge.send_tool_input()
        await bridge.send_tool_cancelled(reason)
        assert await view.told("tool-cancelled") == params


OUT_OF_ORDER = [
    (["input", "input"], "tool-input: not after input"),
    (["input", "partial"], "tool-input-partial: not after input"),
    (["result"], "tool-result: not after nothing"),
    (["partial", "result"], "tool-result: not after partial input"),
    (["input", "result", "result"], "tool-result: not after result or cancellation"),
    (["input", "result", "cancelled"], "tool-cancelled: not after result or cancellation"),
    (["cancelled", "input"], "tool-input: not after result or cancellation"),
    (["input", "cancelled", "result"], "tool-result: not after result or cancellation"),
]


async def send(bridge: Bridge, step: str) -> None:
    match step:
        case "input":
            await bridge.send_tool_input({})
        case "partial":
            await bridge.send_tool_input_partial({})
        case "result":
            await bridge.send_tool_result("x")
        case _:
            await bridge.send_tool_cancelled()


@pytest.mark.parametrize(("steps", "complaint"), OUT_OF_ORDER)
async def test_tool_data_out_of_order_is_refused_and_not_sent(steps: list[str], complaint: str):
    async with ready() as (bridge, view, _):
        for step in steps[:-1]:
            await send(bridge, step)
        with pytest.raises(OutOfOrder, match=complaint):
            await send(bridge, steps[-1])
        await bridge.ping()
        assert len(view.notices) == len(steps) - 1


@pytest.mark.parametrize(("steps", "complaint"), OUT_OF_ORDER)
async def test_tool_data_out_of_order_is_refused_before_the_view_is_ready(
    steps: list[str], complaint: str
):
    async with joined() as (bridge, view, _):
        for step in steps[:-1]:
            await send(bridge, step)
        with pytest.raises(OutOfOrder, match=complaint):
            await send(bridge, steps[-1])
        await view.be_ready()
        await bridge.ping()
        assert len(view.notices) == len(steps) - 1


# --- the end ---------------------------------------------------------------------------------


async def test_teardown_asks_the_view_and_waits_for_its_answer():
    async with ready() as (bridge, view, _):
        assert await bridge.teardown("the chat was closed") is True
        assert view.requests == [("ui/resource-teardown", {"reason": "the chat was closed"})]
        assert bridge.state is LifecycleState.CLOSED
        assert await bridge.wait_closed() == "the chat was closed"


async def test_leaving_the_bridge_tears_the_view_down():
    async with ready() as (_, view, _):
        pass
    assert view.requests == [("ui/resource-teardown", {})]


@pytest.mark.parametrize(
    ("answer", "reported"),
    [
        (ProtocolError(-32601, "Method not found"), []),
        (
            ProtocolError(-32000, "please stay"),
            ["PeerError: The View did not clean up: please stay (-32000)"],
        ),
    ],
)
async def test_teardown_completes_when_the_view_answers_with_an_error(
    answer: ProtocolError, reported: list[str]
):
    async with ready(answers={"ui/resource-teardown": answer}) as (bridge, _, errors):
        assert await bridge.teardown() is False
        assert bridge.state is LifecycleState.CLOSED
        assert errors == reported


async def test_teardown_completes_when_the_view_is_silent():
    silence = asyncio.Event()
    answers = {"ui/resource-teardown": lambda _: silence.wait()}
    async with ready(answers=answers, limits=QUICK) as (bridge, _, errors):
        assert await bridge.teardown() is False
        assert bridge.state is LifecycleState.CLOSED
        assert "no answer within 0.02 s" in errors[-1]


async def test_teardown_completes_when_the_view_goes_away_meanwhile():
    async with ready() as (bridge, view, _):

        async def leave(_: Any) -> None:
            view.session.background.start(view.session.aclose())
            await asyncio.Event().wait()

        view.answers["ui/resource-teardown"] = leave
        assert await bridge.teardown() is False


async def test_teardown_can_be_asked_for_many_times_at_once():
    release = asyncio.Event()

    async def slowly(_: Any) -> dict[str, Any]:
        await release.wait()
        return {}

    async with ready(answers={"ui/resource-teardown": slowly}) as (bridge, view, _):
        waiting = [await begun(bridge.teardown()) for _ in range(3)]
        await view.asked("ui/resource-teardown")
        assert bridge.state is LifecycleState.TEARING_DOWN
        release.set()
        assert await asyncio.gather(*waiting) == [True, True, True]
        assert await bridge.teardown() is True
    assert len(view.requests) == 1


async def test_teardown_completes_even_when_it_is_cancelled():
    silence = asyncio.Event()
    async with ready(answers={"ui/resource-teardown": lambda _: silence.wait()}) as (
        bridge,
        view,
        _,
    ):
        waiting = await begun(bridge.teardown())
        await view.asked("ui/resource-teardown")
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert bridge.state is LifecycleState.CLOSED


async def test_a_view_that_is_being_torn_down_can_still_ask_but_is_told_nothing_new():
    saved: list[str] = []
    async with ready() as (bridge, view, errors):
        bridge.on_update_model_context = lambda update: saved.append(update.content[0].text)

        async def save_first(_: Any) -> dict[str, Any]:
            await view.ask("ui/update-model-context", text("draft"))
            for too_late in (
                *(bridge.send_tool_input({}), bridge.send_tool_cancelled()),
                *(bridge.call_tool("echo"), bridge.list_tools(), bridge.ping()),
                *(bridge.get_task("1"), bridge.initialized()),
            ):
                with pytest.raises(NotConnected, match="being torn down"):
                    await too_late
            with pytest.raises(NotConnected, match="being torn down"):
                bridge.begin_call({})
            await bridge.set_context(theme="dark")
            return {}

        view.answers["ui/resource-teardown"] = save_first
        assert await bridge.teardown() is True
        assert saved == ["draft"]
        assert view.notices == []
        assert errors == []


async def test_a_handler_may_tear_its_own_view_down():
    after: list[str] = []
    async with ready() as (bridge, view, _):

        @bridge.on_request_teardown
        async def _() -> None:
            await bridge.teardown()
            after.append("done")

        await view.tell("ui/notifications/request-teardown", {})
        assert await bridge.wait_closed() == "torn down by the host"
        await view.session.wait_closed()
        assert [method for method, _ in view.requests] == ["ui/resource-teardown"]
    assert after == ["done"]


async def test_a_wish_to_be_torn_down_is_only_a_wish():
    wishes: list[str] = []
    async with ready() as (bridge, view, _):
        bridge.on_request_teardown = lambda: wishes.append("please")
        await view.tell("ui/notifications/request-teardown")
        await view.ask("ping")
        assert wishes == ["please"]
        assert bridge.state is LifecycleState.READY


async def test_calls_in_flight_end_when_the_view_closes():
    async with ready() as (bridge, view, _):
        view.answers["tools/call"] = lambda _: asyncio.Event().wait()
        call = await begun(bridge.call_tool("echo"))
        await view.asked("tools/call")
        await view.channel.aclose()
        with pytest.raises(ConnectionClosed, match="tools/call: connection closed"):
            await call


async def test_after_the_end_every_use_says_that_it_is_not_connected():
    async with ready() as (bridge, _, _):
        await bridge.teardown("gone home")
        uses = [
            bridge.call_tool("echo"),
            bridge.list_tools(),
            bridge.ping(),
            bridge.initialized(),
            bridge.send_tool_input({}),
            bridge.send_tool_result("x"),
            bridge.set_context(theme="dark"),
            bridge.get_task("t"),
        ]
        for use in uses:
            with pytest.raises(NotConnected, match=r"not connected \(gone home\)"):
                await use


async def test_on_closed_is_told_the_reason_once():
    reasons: list[str] = []
    told = asyncio.Event()
    async with ready() as (bridge, view, _):
        bridge.on_closed = reasons.append

        @bridge.on_closed
        async def _(reason: str) -> None:
            reasons.append(f"async {reason}")
            told.set()

        await view.session.aclose()
        await bridge.wait_closed()
        await bridge.teardown()
        await told.wait()
    assert reasons == [
        "the other side closed the channel",
        "async the other side closed the channel",
    ]


async def test_on_closed_is_told_once_where_a_handler_closes_too_as_it_is_cancelled():
    reasons: list[str] = []
    began = asyncio.Event()
    async with ready() as (bridge, view, _):
        bridge.on_closed = reasons.append

        @bridge.on_message
        async def _(*_: object) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                await bridge.aclose("the handler is over")

        message = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
        asked = asyncio.ensure_future(view.ask("ui/message", message))
        await began.wait()
        await bridge.aclose("the host is over")
    await asyncio.wait([asked])
    assert reasons == ["the handler is over"]


async def test_on_error_may_be_async_and_may_fail():
    heard: list[str] = []
    told = asyncio.Event()
    async with ready() as (bridge, view, _):

        async def on_error(error: BaseException) -> None:
            heard.append(str(error))
            told.set()
            raise RuntimeError("and this goes nowhere")

        bridge.on_error = on_error
        await view.tell("ui/notifications/initialized")
        await told.wait()
        assert bridge.state is LifecycleState.READY
        assert "initialized" in heard[0]


async def test_a_view_without_tools_is_not_asked_for_them():
    async with ready(capabilities={}) as (bridge, view, _):
        for use in (bridge.call_tool("echo"), bridge.list_tools(), bridge.list_tasks()):
            with pytest.raises(CapabilityMissing, match="bare did not declare the tools"):
                await use
        assert view.requests == []


async def test_a_bridge_serves_any_channel_that_is_a_channel():
    ours, theirs = memory_pair()

    class Plain:
        """Without the shortcuts of the memory channel."""

        send, receive, aclose = ours.send, ours.receive, ours.aclose

    view = BareView(theirs)
    async with view.session, Bridge(Plain(), host_info=HOST) as bridge:  # type: ignore[arg-type]
        await view.be_ready()
        assert (await bridge.call_tool("echo")).text == "called echo"
