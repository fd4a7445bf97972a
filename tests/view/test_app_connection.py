import asyncio
from typing import Any

import msgspec
import pytest

from tests.view.fake_host import INITIALIZED, hosted
from transom.channel import memory_pair
from transom.errors import (
    AlreadyConnected,
    InvalidResult,
    NotConnected,
    ProtocolError,
    RequestTimeout,
    UsageError,
)
from transom.session import Session
from transom.types import AppCapabilities, ContainerDimensions
from transom.view.app import App


def initialized(**changes: Any) -> dict[str, Any]:
    return {**INITIALIZED, **changes}


def without(key: str) -> dict[str, Any]:
    return {name: value for name, value in INITIALIZED.items() if name != key}


async def test_the_handshake_is_initialize_then_initialized_and_nothing_else() -> None:
    app = App("doc-editor", "1.2.0", title="Editor")
    async with hosted(app) as host:
        await host.settled()
        assert host.ids == [0]
        assert host.requests == [
            (
                "ui/initialize",
                {
                    "appInfo": {"name": "doc-editor", "version": "1.2.0", "title": "Editor"},
                    "appCapabilities": {},
                    "protocolVersion": "2026-01-26",
                },
            )
        ]
        assert host.notifications == [("ui/notifications/initialized", {})]


async def test_initialized_has_no_params_member() -> None:
    view, end = memory_pair()
    app = App("a", "1")
    seen: list[Any] = []
    async with Session(
        end,
        on_request=lambda _: msgspec.json.encode(INITIALIZED),
        on_notification=lambda n: seen.append((n.method, n.params)),
    ):
        await app.connect(view)
        await app.close()
    assert seen == [("ui/notifications/initialized", None)]


async def test_the_hosts_state_is_known_after_the_handshake_and_unknown_before_and_after() -> None:
    app = App("a", "1")
    assert (app.host_info, app.host_capabilities, app.host_context) == (None, None, None)
    assert not app.connected
    async with hosted(app):
        assert app.connected
        assert app.host_info is not None
        assert app.host_info.name == "fake-host"
        assert app.host_context is not None
        assert app.host_context.theme == "light"
        assert app.host_capabilities is not None
        assert app.protocol_version == "2026-01-26"
    assert not app.connected
    assert app.host_context is None


async def test_capabilities_are_sent_as_given_with_unknown_keys_and_by_reference() -> None:
    given = {"experimental": {"x": {}}, "availableDisplayModes": ["inline"], "ours": 1}
    app = App("a", "1", capabilities=given)
    given["later"] = True
    async with hosted(app) as host:
        assert host.requests[0][1]["appCapabilities"] == given


@pytest.mark.parametrize("tools", [{"listChanged": True}, {"listChanged": False}, {}])
async def test_tools_that_are_declared_and_not_registered_yet_are_declared_as_given(
    tools: dict[str, bool],
) -> None:
    async with hosted(App("a", "1", capabilities={"tools": tools})) as host:
        assert host.requests[0][1]["appCapabilities"] == {"tools": tools}
        assert await host.list_tools() == []


async def test_capabilities_may_be_a_struct() -> None:
    app = App("a", "1", capabilities=AppCapabilities(available_display_modes=["pip"]))
    async with hosted(app) as host:
        assert host.requests[0][1]["appCapabilities"] == {"availableDisplayModes": ["pip"]}


async def test_the_first_tool_declares_the_tools_capability_without_touching_the_callers() -> None:
    given: dict[str, Any] = {"experimental": {}}
    app = App("a", "1", capabilities=given)
    app.register_tool("t", lambda: "x").remove()
    async with hosted(app) as host:
        declared = host.requests[0][1]["appCapabilities"]
        assert declared == {"experimental": {}, "tools": {"listChanged": True}}
        assert await host.list_tools() == []
    assert given == {"experimental": {}}


@pytest.mark.parametrize("tools", [{}, {"listChanged": False}, {"listChanged": True, "x": 1}])
async def test_an_explicit_tools_capability_is_kept_as_it_is(tools: dict[str, Any]) -> None:
    app = App("a", "1", capabilities={"tools": tools})
    app.register_tool("t", lambda: "x")
    async with hosted(app) as host:
        assert host.requests[0][1]["appCapabilities"] == {"tools": tools}
        app.register_tool("u", lambda: "x")
        assert await host.list_changes() == (1 if tools.get("listChanged") else 0)


async def test_any_version_the_host_answers_is_taken() -> None:
    app = App("a", "1")
    async with hosted(app, ui__initialize=initialized(protocolVersion="1999-01-01")):
        assert app.protocol_version == "1999-01-01"


@pytest.mark.parametrize("missing", ["protocolVersion", "hostInfo", "hostCapabilities"])
async def test_an_answer_without_what_it_needs_fails_the_handshake(missing: str) -> None:
    app = App("a", "1")
    async with hosted(app, connect=False, ui__initialize=without(missing)) as host:
        with pytest.raises(InvalidResult, match=missing):
            await app.connect(host.channel)
        assert not app.connected
        assert host.notifications == []
        await host.session.wait_closed()


async def test_a_host_that_leaves_out_its_context_is_tolerated() -> None:
    app = App("a", "1")
    async with hosted(app, ui__initialize=without("hostContext")):
        assert app.host_context is not None
        assert app.host_context.theme is None


@pytest.mark.parametrize(
    "context",
    [
        {"styles": {"variables": {"--made-up": "red", "--color-text-primary": "#000"}}},
        {"theme": "sepia"},
        {"displayMode": "hologram"},
        {"availableDisplayModes": ["inline", "hologram"]},
        {"platform": "fridge"},
        {"somethingNew": {"deep": [1]}},
    ],
)
async def test_values_we_have_never_heard_of_do_not_fail_the_handshake(context: Any) -> None:
    app = App("a", "1")
    async with hosted(app, ui__initialize=initialized(hostContext=context)):
        assert app.connected
        assert app.host_context is not None


async def test_unknown_keys_of_the_context_are_kept_and_of_capabilities_dropped() -> None:
    answer = initialized(
        hostContext={"x-ours": 1}, hostCapabilities={"openLinks": {"y": 1}, "later": {}}, top=1
    )
    app = App("a", "1")
    async with hosted(app, ui__initialize=answer):
        assert app.host_context is not None
        assert app.host_context.extra == {"x-ours": 1}
        assert app.host_capabilities is not None
        assert app.host_capabilities.open_links is not None


async def test_a_fixed_size_wins_over_a_maximum() -> None:
    both = {"height": 300, "maxHeight": 600, "maxWidth": 400}
    app = App("a", "1")
    async with hosted(app, ui__initialize=initialized(hostContext={"containerDimensions": both})):
        assert app.host_context is not None
        dimensions = app.host_context.container_dimensions
        assert dimensions == ContainerDimensions(height=300, max_width=400)


@pytest.mark.parametrize("context", [{"toolInfo": {"id": 1}}, {"theme": 3}, {"styles": []}])
async def test_a_context_that_makes_no_sense_fails_the_handshake(context: Any) -> None:
    app = App("a", "1")
    async with hosted(app, connect=False, ui__initialize=initialized(hostContext=context)) as host:
        with pytest.raises(InvalidResult, match="hostContext"):
            await app.connect(host.channel)
        assert not app.connected


async def test_an_error_to_initialize_fails_the_handshake_and_closes() -> None:
    app = App("a", "1")
    async with hosted(app, connect=False, ui__initialize=ProtocolError(-32000, "no")) as host:
        with pytest.raises(ProtocolError, match="no"):
            await app.connect(host.channel)
        await host.session.wait_closed()
        assert not app.connected


async def test_silence_fails_the_handshake_after_the_timeout_and_says_so_to_the_host() -> None:
    app = App("a", "1")

    async def never() -> None:
        await asyncio.Event().wait()

    async with hosted(app, connect=False, ui__initialize=lambda _: never()) as host:
        with pytest.raises(RequestTimeout):
            await app.connect(host.channel, timeout=0.01)
        await host.session.wait_closed()
    view, end = memory_pair()
    connecting = asyncio.ensure_future(app.connect(view, timeout=0.01))
    await end.receive()
    assert b'"notifications/cancelled"' in await end.receive()
    with pytest.raises(RequestTimeout):
        await connecting


async def test_connecting_twice_is_refused_and_leaves_the_connection_as_it_is() -> None:
    app = App("a", "1")
    app.register_tool("t", lambda: "x")
    async with hosted(app) as host:
        with pytest.raises(AlreadyConnected, match="Call close"):
            await app.connect(memory_pair()[0])
        assert await host.names() == ["t"]


async def test_an_app_reconnects_with_its_tools_and_handlers_and_its_ids_go_on() -> None:
    app = App("a", "1")
    app.register_tool("t", lambda: "x")
    async with hosted(app) as host:
        assert host.ids == [0]
    async with hosted(app) as host:
        assert host.ids == [1]
        assert await host.names() == ["t"]


async def test_what_the_host_asks_before_it_answers_initialize_is_answered() -> None:
    app = App("a", "1")
    app.register_tool("t", lambda: "x")
    asked: list[Any] = []

    async def initialize(_: Any) -> dict[str, Any]:
        asked.append(await host.ask("tools/list"))
        asked.append(await host.ask("ping"))
        return INITIALIZED

    async with hosted(app, connect=False, ui__initialize=lambda p: initialize(p)) as host:
        await app.connect(host.channel)
    assert [tool["name"] for tool in asked[0]["tools"]] == ["t"]
    assert asked[1] == {}


async def test_a_context_change_before_the_answer_is_overwritten_by_it() -> None:
    app = App("a", "1")
    changes: list[Any] = []
    app.on_host_context_changed = changes.append

    async def initialize(_: Any) -> dict[str, Any]:
        await host.tell("ui/notifications/host-context-changed", {"theme": "dark", "locale": "nl"})
        return INITIALIZED

    async with hosted(app, connect=False, ui__initialize=lambda p: initialize(p)) as host:
        await app.connect(host.channel)
        assert len(changes) == 1
        assert app.host_context is not None
        assert (app.host_context.theme, app.host_context.locale) == ("light", None)


async def test_nothing_can_be_asked_without_a_connection() -> None:
    app = App("a", "1")
    for asking in (
        app.call_server_tool("t"),
        app.list_server_tools(),
        app.read_resource("x://y"),
        app.list_resources(),
        app.create_message("hi", max_tokens=1),
        app.send_message("hi"),
        app.update_model_context("hi"),
        app.open_link("https://example.com"),
        app.download_file([]),
        app.request_display_mode("inline"),
        app.request_teardown(),
        app.send_log("info", "x"),
        app.send_size_changed(width=1),
        app.send_tool_list_changed(),
        app.ping(),
        app.wait_closed(),
    ):
        with pytest.raises(NotConnected, match="Not connected"):
            await asking


async def test_outside_a_browser_connect_wants_a_channel() -> None:
    with pytest.raises(UsageError, match="needs a channel"):
        await App("a", "1").connect()


async def test_wait_closed_tells_why_the_connection_ended() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        waiting = asyncio.ensure_future(app.wait_closed())
        await host.session.aclose()
        assert "other side" in await waiting
        assert not app.connected


async def test_an_app_closes_at_the_end_of_its_block() -> None:
    app = App("a", "1")
    async with hosted(app), app:
        assert app.connected
    assert not app.connected


def test_a_page_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="page_size"):
        App("a", "1", page_size=0)
