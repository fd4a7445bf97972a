import asyncio
from typing import Any

import pytest

from tests.view.fake_host import INITIALIZED, hosted
from transom.errors import (
    CapabilityMissing,
    InvalidResult,
    ProtocolError,
    RequestTimeout,
    UsageError,
)
from transom.protocol.peer import Progress
from transom.types import EmbeddedResource, ResourceContents, TextContent, Tool
from transom.view.app import App

DONE: dict[str, Any] = {}


def offering(**capabilities: Any) -> dict[str, Any]:
    return {**INITIALIZED, "hostCapabilities": capabilities}


async def test_a_server_tool_is_called_with_a_progress_token() -> None:
    app = App("a", "1")
    answer = {"content": [{"type": "text", "text": "hi"}], "structuredContent": {"n": 1}, "x": 2}
    async with hosted(app, tools__call=answer) as host:
        result = await app.call_server_tool("greet", {"name": "you"})
        assert result.content == [TextContent("hi")]
        assert result.structured_content == {"n": 1}
        assert result.extra == {"x": 2}
        assert host.requests[1] == (
            "tools/call",
            {"name": "greet", "arguments": {"name": "you"}, "_meta": {"progressToken": 1}},
        )


async def test_a_failed_server_tool_is_a_result_and_a_failed_call_an_error() -> None:
    app = App("a", "1")
    answers: list[Any] = [
        {"content": [{"type": "text", "text": "no"}], "isError": True},
        ProtocolError(-32002, "MCP error -32002: Resource not found", {"uri": "x"}),
    ]
    async with hosted(app, tools__call=lambda _: answers.pop(0)):
        assert (await app.call_server_tool("t")).is_error
        with pytest.raises(ProtocolError) as error:
            await app.call_server_tool("t")
        assert (error.value.code, error.value.data) == (-32002, {"uri": "x"})


async def test_progress_of_a_server_tool_reaches_the_caller() -> None:
    app = App("a", "1")
    seen: list[Progress] = []

    async def work(params: Any) -> dict[str, Any]:
        token = params["_meta"]["progressToken"]
        await host.tell("notifications/progress", {"progressToken": token, "progress": 1})
        return {"content": []}

    async with hosted(app, tools__call=lambda p: work(p)) as host:
        await app.call_server_tool("t", on_progress=seen.append)
    assert [notice.progress for notice in seen] == [1]


async def test_a_name_that_is_no_string_is_refused_with_guidance() -> None:
    app = App("a", "1")
    async with hosted(app):
        with pytest.raises(TypeError, match=r"call_server_tool\(name, arguments\)"):
            await app.call_server_tool({"name": "t"})  # type: ignore[arg-type]


async def test_each_request_has_its_method_and_params() -> None:
    app = App("a", "1")
    page = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    answers = {
        "tools__list": lambda p: {**page, "nextCursor": "2"} if "cursor" not in p else page,
        "resources__read": {"contents": [{"uri": "x://y", "text": "body", "mimeType": "a/b"}]},
        "resources__list": {"resources": [{"uri": "x://y", "name": "y"}], "nextCursor": "n"},
        "ui__message": DONE,
        "ui__update-model-context": DONE,
        "ui__open-link": {"more": 1},
        "ui__download-file": {"isError": True},
        "ui__request-display-mode": {"mode": "inline"},
    }
    file = EmbeddedResource(ResourceContents("file:///a.txt", "text/plain", "A"))
    async with hosted(app, **answers) as host:
        assert await app.list_server_tools() == [
            Tool("t", input_schema={"type": "object"}),
            Tool("t", input_schema={"type": "object"}),
        ]
        assert (await app.read_resource("x://y")).contents[0].text == "body"
        listed = await app.list_resources("here")
        assert (listed.resources[0].uri, listed.next_cursor) == ("x://y", "n")
        assert not (await app.send_message("hello")).is_error
        await app.send_message([TextContent("a"), {"type": "text", "text": "b"}])
        await app.update_model_context("state", structured_content={"n": 1})
        opened = await app.open_link("https://example.com")
        assert (opened.is_error, opened.extra) == (False, {"more": 1})
        assert (await app.download_file([file])).is_error
        assert await app.request_display_mode("fullscreen") == "inline"
        await app.ping()
        assert host.requests[1:] == [
            ("tools/list", {}),
            ("tools/list", {"cursor": "2"}),
            ("resources/read", {"uri": "x://y"}),
            ("resources/list", {"cursor": "here"}),
            ("ui/message", {"role": "user", "content": [{"type": "text", "text": "hello"}]}),
            (
                "ui/message",
                {
                    "role": "user",
                    "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
                },
            ),
            (
                "ui/update-model-context",
                {
                    "content": [{"type": "text", "text": "state"}],
                    "structuredContent": {"n": 1},
                },
            ),
            ("ui/open-link", {"url": "https://example.com"}),
            (
                "ui/download-file",
                {
                    "contents": [
                        {
                            "type": "resource",
                            "resource": {
                                "uri": "file:///a.txt",
                                "mimeType": "text/plain",
                                "text": "A",
                            },
                        }
                    ]
                },
            ),
            ("ui/request-display-mode", {"mode": "fullscreen"}),
            ("ping", {}),
        ]


async def test_both_forms_of_a_refusal_are_understood() -> None:
    app = App("a", "1")
    refusal = ProtocolError(-32000, "The user said no")
    async with hosted(app, **{"ui__open-link": refusal, "ui__message": {"isError": True}}):
        refused = await app.open_link("https://example.com")
        assert refused.is_error
        assert refused.extra["message"] == "The user said no"
        assert (await app.send_message("hi")).is_error
        with pytest.raises(ProtocolError, match="Method not found"):
            await app.download_file([])


async def test_content_that_is_none_is_refused_before_it_is_sent() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        with pytest.raises(UsageError, match="Content is"):
            await app.send_message([3])  # type: ignore[list-item]
        assert len(host.requests) == 1


async def test_sampling_needs_the_hosts_capability() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        with pytest.raises(CapabilityMissing, match="sampling"):
            await app.create_message("hi", max_tokens=5)
        assert len(host.requests) == 1


async def test_sampling_with_tools_needs_the_hosts_capability_too() -> None:
    app = App("a", "1")
    made = {"role": "assistant", "content": {"type": "text", "text": "yes"}, "model": "m"}
    answers = {"ui__initialize": offering(sampling={}), "sampling__createMessage": made}
    async with hosted(app, **answers) as host:
        assert await app.create_message("hi", max_tokens=5, temperature=0.5) == made
        assert host.requests[-1][1] == {
            "messages": [{"role": "user", "content": {"type": "text", "text": "hi"}}],
            "maxTokens": 5,
            "temperature": 0.5,
        }
        with pytest.raises(CapabilityMissing, match=r"sampling\.tools"):
            await app.create_message("hi", max_tokens=5, tools=[Tool("t")])
    answers["ui__initialize"] = offering(sampling={"tools": {}})
    async with hosted(app, **answers) as host:
        await app.create_message([], max_tokens=5, tools=[Tool("t")])
        assert host.requests[-1][1]["tools"][0]["name"] == "t"


async def test_a_display_mode_the_host_does_not_have_is_not_asked_for() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        with pytest.raises(CapabilityMissing, match="it has: inline, fullscreen"):
            await app.request_display_mode("pip")
        assert len(host.requests) == 1


async def test_a_host_that_lists_no_modes_is_asked_except_in_strict_mode() -> None:
    answers = {
        "ui__initialize": {**INITIALIZED, "hostContext": {}},
        "ui__request-display-mode": {"mode": "pip"},
    }
    app = App("a", "1")
    async with hosted(app, **answers):
        assert await app.request_display_mode("pip") == "pip"
    strict = App("a", "1", strict=True)
    async with hosted(strict, **answers):
        with pytest.raises(CapabilityMissing):
            await strict.request_display_mode("pip")


async def test_other_capabilities_are_looked_at_in_strict_mode_only() -> None:
    answers: dict[str, Any] = {"ui__open-link": DONE}
    app = App("a", "1")
    async with hosted(app, **answers):
        assert not (await app.open_link("https://example.com")).is_error
    strict = App("a", "1", strict=True)
    async with hosted(strict, **answers):
        with pytest.raises(CapabilityMissing, match="open_links"):
            await strict.open_link("https://example.com")
    async with hosted(strict, ui__initialize=offering(openLinks={}), **answers):
        assert not (await strict.open_link("https://example.com")).is_error


async def test_asking_before_the_handshake_has_ended_warns_or_raises_in_strict_mode() -> None:
    async def attempt(app: App, expected: Any) -> None:
        asked = asyncio.Event()

        async def initialize(_: Any) -> dict[str, Any]:
            with expected:
                await app.read_resource("x://y")
            asked.set()
            return INITIALIZED

        answers = {
            "ui__initialize": lambda p: initialize(p),
            "resources__read": {"contents": []},
        }
        async with hosted(app, connect=False, **answers) as host:
            await app.connect(host.channel)
            await asked.wait()
            assert app.connected

    await attempt(App("a", "1"), pytest.warns(RuntimeWarning, match="before the handshake"))
    strict = App("a", "1", strict=True)
    await attempt(strict, pytest.raises(UsageError, match="before the handshake"))


async def test_logs_sizes_pings_and_the_wish_to_close_may_go_out_during_the_handshake() -> None:
    app = App("a", "1", strict=True)

    async def initialize(_: Any) -> dict[str, Any]:
        await app.send_log("info", "x")
        await app.send_size_changed(width=1)
        await app.request_teardown()
        await app.ping()
        return INITIALIZED

    async with hosted(app, connect=False, ui__initialize=lambda p: initialize(p)) as host:
        await app.connect(host.channel)
        await host.settled()
        assert len(host.notifications) == 4


async def test_notifications_have_their_wire_form() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        await app.send_log("warning", {"a": 1}, logger="me")
        await app.send_log("info", "plain")
        await app.send_size_changed(width=10, height=20.5)
        await app.send_size_changed()
        await app.request_teardown()
        await host.settled()
        assert host.notifications[1:] == [
            ("notifications/message", {"level": "warning", "data": {"a": 1}, "logger": "me"}),
            ("notifications/message", {"level": "info", "data": "plain"}),
            ("ui/notifications/size-changed", {"width": 10, "height": 20.5}),
            ("ui/notifications/size-changed", {}),
            ("ui/notifications/request-teardown", {}),
        ]


async def test_a_request_that_takes_too_long_ends_and_the_host_is_told() -> None:
    app = App("a", "1", timeout=0.01)

    async def never() -> None:
        await asyncio.Event().wait()

    async with hosted(app, tools__call=lambda _: never()) as host:
        with pytest.raises(RequestTimeout, match="tools/call"):
            await app.call_server_tool("t")
        await host.settled()
        assert app.connected


async def test_an_answer_that_is_no_result_is_the_hosts_fault() -> None:
    app = App("a", "1")
    answers = {
        "tools__call": {"content": "text"},
        "ui__request-display-mode": {},
        "tools__list": {"tools": [], "nextCursor": "again"},
    }
    async with hosted(app, **answers):
        with pytest.raises(InvalidResult, match="tools/call: content"):
            await app.call_server_tool("t")
        with pytest.raises(InvalidResult, match="mode"):
            await app.request_display_mode("inline")
        with pytest.raises(InvalidResult, match="tools repeats a cursor"):
            await app.list_server_tools()


async def test_a_method_without_a_name_of_its_own_can_be_asked_too() -> None:
    app = App("a", "1")
    async with hosted(app, prompts__list={"prompts": []}, x__own={"a": [1]}) as host:
        assert await app.request("prompts/list") == {"prompts": []}
        assert await app.request("x/own", {"p": 1}, meta={"m": 2}) == {"a": [1]}
        assert host.requests[-1] == ("x/own", {"_meta": {"m": 2}, "p": 1})
