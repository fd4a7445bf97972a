"""What a View asks and tells its host, and how the host's handlers answer."""

import asyncio
from typing import Any

import pytest

from tests.host.bare_view import ready, text, tool
from transom.errors import ProtocolError, Refused
from transom.host.views.downloads import Download
from transom.host.views.view_requests import CAPABILITY_OF
from transom.protocol.messages import LogParams, ModelContextParams
from transom.types import EmbeddedResource, ResourceContents, ResourceLink, TextContent, ToolResult

MESSAGE = {"role": "user", "content": [{"type": "text", "text": "hello"}]}
FILE = {"type": "resource", "resource": {"uri": "file:///notes.txt", "text": "n"}}

ASKED = [
    ("on_message", "ui/message", MESSAGE),
    ("on_open_link", "ui/open-link", {"url": "https://example.com/a?b#c"}),
    ("on_download_file", "ui/download-file", {"contents": [FILE]}),
    ("on_update_model_context", "ui/update-model-context", {"content": []}),
]


@pytest.mark.parametrize(
    "method",
    [
        *("tools/call", "tools/list", "resources/list", "resources/templates/list"),
        *("resources/read", "prompts/list", "sampling/createMessage", "ui/message"),
        *("ui/open-link", "ui/download-file", "ui/update-model-context"),
        *("prompts/get", "tasks/get", "completion/complete", "ui/made-up", "initialize"),
    ],
)
async def test_what_nobody_handles_is_not_found(method: str):
    async with ready() as (_, view, _):
        with pytest.raises(ProtocolError, match="Method not found") as refused:
            await view.ask(method, {"name": "x", "uri": "x", "url": "x", **MESSAGE, "contents": []})
        assert refused.value.code == -32601


@pytest.mark.parametrize(("handler", "method", "params"), ASKED)
async def test_a_handler_that_returns_nothing_has_done_it(
    handler: str, method: str, params: dict[str, Any]
):
    async with ready() as (bridge, view, _):
        setattr(bridge, handler, lambda _: None)
        assert await view.ask(method, params) == {}


@pytest.mark.parametrize(("handler", "method", "params"), ASKED)
async def test_what_is_not_offered_is_not_found_whatever_the_host_could_do(
    handler: str, method: str, params: dict[str, Any]
):
    async with ready(offers=["sampling", CAPABILITY_OF["ui/message"]]) as (bridge, view, _):
        setattr(bridge, handler, lambda _: None)
        if method == "ui/message":
            assert await view.ask(method, params) == {}
        else:
            with pytest.raises(ProtocolError, match="Method not found"):
                await view.ask(method, params)


@pytest.mark.parametrize(("handler", "method", "params"), ASKED)
async def test_a_refusal_is_a_result_that_says_so(
    handler: str, method: str, params: dict[str, Any]
):
    async with ready() as (bridge, view, errors):

        async def refuse(_: Any) -> None:
            raise Refused("the user said no")

        for answer in (lambda _: False, refuse):
            setattr(bridge, handler, answer)
            assert await view.ask(method, params) == {"isError": True}
        assert errors == []


@pytest.mark.parametrize(("handler", "method", "params"), ASKED)
async def test_a_handlers_own_result_is_sent_as_it_is(
    handler: str, method: str, params: dict[str, Any]
):
    async with ready() as (bridge, view, _):
        setattr(bridge, handler, lambda _: {"isError": True, "why": "quota"})
        assert await view.ask(method, params) == {"isError": True, "why": "quota"}


@pytest.mark.parametrize(("handler", "method", "params"), ASKED)
async def test_a_handlers_protocol_error_is_answered_word_for_word(
    handler: str, method: str, params: dict[str, Any]
):
    async with ready() as (bridge, view, errors):

        def fail(_: Any) -> None:
            raise ProtocolError(-32002, "no such thing", {"at": 3})

        setattr(bridge, handler, fail)
        with pytest.raises(ProtocolError) as answered:
            await view.ask(method, params)
        assert (answered.value.code, answered.value.message, answered.value.data) == (
            -32002,
            "no such thing",
            {"at": 3},
        )
        assert errors == []


@pytest.mark.parametrize(("handler", "method", "params"), ASKED)
async def test_any_other_failure_of_a_handler_is_told_to_the_host_and_not_to_the_view(
    handler: str, method: str, params: dict[str, Any]
):
    async with ready() as (bridge, view, errors):

        async def fail(_: Any) -> None:
            raise RuntimeError("password is hunter2")

        setattr(bridge, handler, fail)
        with pytest.raises(ProtocolError) as answered:
            await view.ask(method, params)
        assert (answered.value.code, answered.value.message) == (-32603, "Internal error")
        assert errors == ["RuntimeError: password is hunter2"]


async def test_a_handler_that_returns_something_odd_is_an_internal_error():
    async with ready() as (bridge, view, errors):
        bridge.on_message = lambda blocks: 7
        with pytest.raises(ProtocolError, match="Internal error"):
            await view.ask("ui/message", MESSAGE)
        assert errors == ["TypeError: Expected a struct or a mapping, not int"]


async def test_the_newest_handler_counts_and_none_takes_it_away():
    async with ready() as (bridge, view, _):
        bridge.on_message = lambda blocks: {"by": "first"}
        bridge.on_message = lambda blocks: {"by": "second"}
        assert await view.ask("ui/message", MESSAGE) == {"by": "second"}
        bridge.on_message = None
        with pytest.raises(ProtocolError, match="Method not found"):
            await view.ask("ui/message", MESSAGE)


@pytest.mark.parametrize(
    ("method", "params", "where"),
    [
        ("ui/message", {"role": "assistant", "content": []}, "role"),
        ("ui/message", {"role": "user", "content": [{"type": "hologram"}]}, "content[0].type"),
        ("ui/message", {"role": "user"}, "missing required field `content`"),
        ("ui/open-link", {"url": 5}, "url: Expected `str`, got `int`"),
        ("ui/download-file", {"contents": [{"type": "text", "text": "x"}]}, "contents[0].type"),
        ("ui/update-model-context", {"structuredContent": [1]}, "structuredContent"),
        ("tools/call", {"arguments": {}}, "missing required field `name`"),
        ("tools/call", {"name": "x", "arguments": [1]}, "arguments: Expected `object`"),
        ("resources/read", {}, "missing required field `uri`"),
        ("tools/list", {"cursor": 5}, "cursor"),
    ],
)
async def test_params_that_do_not_fit_are_refused_and_the_place_named(
    method: str, params: dict[str, Any], where: str
):
    async with ready() as (bridge, view, _):
        called: list[Any] = []
        for name in ("message", "open_link", "download_file", "update_model_context"):
            setattr(bridge, f"on_{name}", called.append)
        for name in ("call_tool", "read_resource", "list_tools"):
            setattr(bridge, f"on_{name}", called.append)
        with pytest.raises(ProtocolError) as refused:
            await view.ask(method, params)
        assert refused.value.code == -32602
        assert refused.value.message.startswith(f"Invalid params for {method}: ")
        assert where in refused.value.message
        assert called == []


# --- messages and model context --------------------------------------------------------------


@pytest.mark.parametrize("content", [MESSAGE["content"], MESSAGE["content"][0]])
async def test_a_message_may_be_one_block_or_a_list(content: Any):
    heard: list[Any] = []
    async with ready() as (bridge, view, _):
        bridge.on_message = heard.append
        assert await view.ask("ui/message", {"role": "user", "content": content}) == {}
        assert heard == [[TextContent("hello")]]


async def test_a_model_context_may_have_content_structure_both_or_nothing():
    heard: list[ModelContextParams] = []
    async with ready() as (bridge, view, _):
        bridge.on_update_model_context = heard.append
        await view.ask(
            "ui/update-model-context", {"structuredContent": {"n": 1}, "_meta": {"a": 1}}
        )
        await view.ask("ui/update-model-context", text("now"))
        await view.ask("ui/update-model-context")
        assert heard == [
            ModelContextParams(structured_content={"n": 1}),
            ModelContextParams(content=[TextContent("now")]),
            ModelContextParams(),
        ]


async def test_sampling_is_passed_to_its_handler_whole():
    params = {"messages": [], "maxTokens": 5, "unheardOf": [1]}
    answer = {"role": "assistant", "content": {"type": "text", "text": "hi"}, "model": "m"}
    heard: list[dict[str, Any]] = []
    async with ready() as (bridge, view, _):

        @bridge.on_create_message
        async def _(given: dict[str, Any]) -> dict[str, Any]:
            heard.append(given)
            return answer

        assert await view.ask("sampling/createMessage", params) == answer
        assert heard == [params]


# --- links and files -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        *("javascript:alert(1)", "JavaScript:alert(1)", "java\tscript:alert(1)", " https://a.b"),
        *("file:///etc/passwd", "data:text/html,x", "vbscript:x", "//evil.example", "https://", ""),
        *("https:\\\\evil.example", "ui://x", "tel:1", "intent://x", "not a url", "mailto:nobody"),
    ],
)
async def test_links_that_could_run_something_never_reach_the_handler(url: str):
    opened: list[str] = []
    async with ready() as (bridge, view, _):
        bridge.on_open_link = opened.append
        assert await view.ask("ui/open-link", {"url": url}) == {"isError": True}
        assert opened == []


@pytest.mark.parametrize(
    "url", ["https://example.com/", "HTTP://EXAMPLE.com", "mailto:a@b.example?subject=x"]
)
async def test_links_that_lead_outside_reach_the_handler_as_they_are(url: str):
    opened: list[str] = []
    async with ready() as (bridge, view, _):
        bridge.on_open_link = opened.append
        assert await view.ask("ui/open-link", {"url": url}) == {}
        assert opened == [url]


async def test_files_reach_the_handler_under_harmless_names():
    got: list[list[Download]] = []
    link = {"type": "resource_link", "uri": "https://x.example/a/notes.txt?v=2", "name": "../../x"}
    evil = {
        "type": "resource",
        "resource": {"uri": "file:///..%2F..%2Fetc%2Fpasswd", "blob": "eA=="},
    }
    async with ready() as (bridge, view, _):
        bridge.on_download_file = got.append
        assert await view.ask("ui/download-file", {"contents": [FILE, evil, link]}) == {}
        [files] = got
        assert [file.name for file in files] == [
            "notes.txt",
            "_._etc_passwd",
            "notes (2).txt",
        ]
        assert files[0].content == EmbeddedResource(ResourceContents("file:///notes.txt", text="n"))
        assert isinstance(files[2].content, ResourceLink)


async def test_more_files_than_a_request_may_have_are_refused_with_a_reason():
    got: list[list[Download]] = []
    async with ready() as (bridge, view, _):
        bridge.on_download_file = got.append
        text = "12000 files at once; a request may have 100"
        with pytest.raises(ProtocolError, match=text):
            await view.ask("ui/download-file", {"contents": [FILE] * 12_000})
        assert got == []
        assert await view.ask("ui/download-file", {"contents": [FILE] * 100}) == {}
        assert len(got[0]) == 100


# --- in place of the server ------------------------------------------------------------------


async def test_a_host_can_answer_in_place_of_a_server():
    async with ready() as (bridge, view, _):
        bridge.on_call_tool = lambda name, arguments: f"{name} {arguments}"
        bridge.on_list_tools = lambda cursor: {"tools": [tool("a")], "at": cursor}
        bridge.on_list_resources = lambda cursor: {"resources": []}
        bridge.on_list_resource_templates = lambda cursor: {"resourceTemplates": []}
        bridge.on_read_resource = lambda uri: {"contents": [{"uri": uri, "text": "t"}]}
        bridge.on_list_prompts = lambda cursor: {"prompts": []}
        assert await view.ask("tools/call", {"name": "a", "arguments": {"n": 1}}) == text(
            "a {'n': 1}"
        )
        assert await view.ask("tools/call", {"name": "a", "arguments": None}) == text("a {}")
        assert await view.ask("tools/call", {"name": "a"}) == text("a {}")
        assert await view.ask("tools/list", {"cursor": "c"}) == {"tools": [tool("a")], "at": "c"}
        assert await view.ask("resources/list") == {"resources": []}
        assert await view.ask("resources/templates/list") == {"resourceTemplates": []}
        assert await view.ask("resources/read", {"uri": "u"}) == {
            "contents": [{"uri": "u", "text": "t"}]
        }
        assert await view.ask("prompts/list") == {"prompts": []}


async def test_a_hosts_own_tool_may_return_a_struct_or_refuse():
    async with ready() as (bridge, view, _):
        bridge.on_call_tool = lambda name, arguments: ToolResult(structured_content={"n": 1})
        assert await view.ask("tools/call", {"name": "a"}) == {
            "content": [],
            "structuredContent": {"n": 1},
        }

        @bridge.on_call_tool
        async def _(name: str, arguments: dict[str, Any]) -> None:
            raise Refused(f"{name} is off limits")

        bridge.on_call_tool = None
        answer = await view.ask("tools/call", {"name": "a"})
        assert answer == {**text("a is off limits"), "isError": True}


async def test_a_view_that_gives_up_on_a_request_stops_its_handler():
    stopped = asyncio.Event()
    began = asyncio.Event()
    async with ready() as (bridge, view, _):

        @bridge.on_message
        async def _(blocks: Any) -> None:
            began.set()
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        asking = asyncio.ensure_future(view.ask("ui/message", MESSAGE))
        await began.wait()
        asking.cancel()
        await stopped.wait()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert view.problems == []


# --- what a View tells -----------------------------------------------------------------------


async def test_sizes_reach_the_host_with_or_without_params():
    sizes: list[tuple[Any, Any]] = []
    async with ready() as (bridge, view, errors):
        bridge.on_size_changed = lambda width, height: sizes.append((width, height))
        await view.tell("ui/notifications/size-changed", {"width": 300, "height": 20.5})
        await view.tell("ui/notifications/size-changed", {"height": 5})
        await view.tell("ui/notifications/size-changed")
        assert sizes == [(300, 20.5), (None, 5), (None, None)]
        assert errors == []


async def test_log_entries_reach_the_host():
    entries: list[LogParams] = []
    async with ready() as (bridge, view, _):
        bridge.on_log = entries.append
        entry = {"level": "warning", "logger": "map", "data": {"tile": 4}}
        await view.tell("notifications/message", entry)
        assert entries == [LogParams("warning", {"tile": 4}, "map")]


async def test_an_event_may_have_many_listeners():
    heard: list[str] = []
    async with ready() as (bridge, view, _):
        bridge.on_log = lambda entry: heard.append("assigned")
        bridge.on_log(lambda entry: heard.append("first"))
        bridge.on_log(lambda: heard.append("second"))
        await view.tell("notifications/message", {"level": "info", "data": 1})
        assert heard == ["assigned", "first", "second"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/message", {"level": "shouting", "data": 1}),
        ("notifications/message", {"data": 1}),
        ("ui/notifications/size-changed", {"width": "wide"}),
    ],
)
async def test_a_notice_that_does_not_fit_is_reported_and_goes_nowhere_else(
    method: str, params: dict[str, Any]
):
    heard: list[Any] = []
    async with ready() as (bridge, view, errors):
        bridge.on_log = heard.append
        bridge.on_size_changed = lambda *size: heard.append(size)
        await view.tell(method, params)
        assert f"Invalid params for {method}" in await errors.one_with("Invalid params")
        assert heard == []


async def test_unknown_notices_are_ignored():
    async with ready() as (_, view, errors):
        await view.tell("ui/notifications/sandbox-proxy-ready", {})
        await view.tell("notifications/made-up", {"x": 1})
        await view.tell("tools/call", {"name": "x"})
        assert await view.ask("ping") == {}
        assert errors == []


async def test_notices_are_handled_in_the_order_they_came():
    heard: list[Any] = []
    done = asyncio.Event()
    async with ready() as (bridge, view, _):

        @bridge.on_log
        async def _(entry: LogParams) -> None:
            await asyncio.sleep(0)
            heard.append(entry.data)
            if entry.data == 49:
                done.set()

        for number in range(50):
            await view.tell("notifications/message", {"level": "info", "data": number})
        await done.wait()
        assert heard == list(range(50))


async def test_a_slow_handler_of_a_notice_does_not_hold_up_the_conversation():
    release, changed = asyncio.Event(), asyncio.Event()
    entries: list[Any] = []
    async with ready() as (bridge, view, errors):
        bridge.on_tools_changed = changed.set

        @bridge.on_log
        async def _(entry: LogParams) -> None:
            await release.wait()
            entries.append(entry.data)

        for number in range(300):
            await view.tell("notifications/message", {"level": "info", "data": number})
        await view.tell("notifications/tools/list_changed")
        await changed.wait()
        await view.initialize()
        await view.tell("ui/notifications/initialized")
        await bridge.ping()
        assert entries == []
        assert len([error for error in errors if "one was dropped" in error]) == 300 - 256
        release.set()


async def test_what_a_view_told_before_it_went_is_not_handled_any_more():
    handled: list[Any] = []
    async with ready() as (bridge, view, _):

        @bridge.on_log
        async def _(entry: LogParams) -> None:
            handled.append(entry.data)
            await asyncio.Event().wait()

        for number in range(3):
            await view.tell("notifications/message", {"level": "info", "data": number})
        await asyncio.sleep(0)
        await bridge.teardown()
    assert handled == [0]
