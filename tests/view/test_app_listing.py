from collections.abc import Callable
from dataclasses import make_dataclass
from typing import Any

import pytest

from tests.view.fake_host import hosted
from transom.errors import ProtocolError
from transom.protocol.messages import ListToolsResult
from transom.types import Tool
from transom.view.app import App
from transom.view.tools import RegisteredTool


def nothing() -> str:
    return ""


def many(count: int, page_size: int = 100) -> App:
    app = App("a", "1", page_size=page_size)
    for number in range(count):
        app.register_tool(f"t{number}", nothing)
    return app


async def pages(host: Any) -> list[list[str]]:
    found: list[list[str]] = []
    cursor = None
    while True:
        page = await host.ask("tools/list", {} if cursor is None else {"cursor": cursor})
        found.append([tool["name"] for tool in page["tools"]])
        cursor = page.get("nextCursor")
        if cursor is None:
            return found


async def test_tools_are_listed_in_the_order_of_registration_with_what_was_said_of_them() -> None:
    app = App("a", "1")
    app.register_tool("plain", nothing)
    app.register_tool(
        "full",
        nothing,
        title="Full",
        description="All of it",
        input_schema={"type": "object", "properties": {}},
        output_schema={"type": "object"},
        annotations={},
        meta={},
    )
    async with hosted(app) as host:
        assert await host.list_tools() == [
            {
                "name": "plain",
                "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
                "_meta": {"transom/registration": 1},
            },
            {
                "name": "full",
                "title": "Full",
                "description": "All of it",
                "inputSchema": {"type": "object", "properties": {}},
                "outputSchema": {"type": "object"},
                "annotations": {},
                "_meta": {"transom/registration": 2},
            },
        ]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 11])
async def test_pages_hold_at_most_page_size_tools_and_miss_none(size: int) -> None:
    async with hosted(many(10, size)) as host:
        found = await pages(host)
    assert [name for page in found for name in page] == [f"t{n}" for n in range(10)]
    assert all(len(page) <= size for page in found)
    assert len(found) == -(-10 // size)


async def test_changes_between_two_pages_neither_repeat_nor_lose_the_tools_that_stay() -> None:
    app = many(6, 2)
    async with hosted(app) as host:
        first = await host.ask("tools/list")
        app.tools[0].remove()
        app.register_tool("new", nothing)
        second = await host.ask("tools/list", {"cursor": first["nextCursor"]})
        assert [tool["name"] for tool in second["tools"]] == ["t2", "t3"]


@pytest.mark.parametrize("cursor", ["abc", "", "e30", "!!!", "eyJpbmRleCI6LTF9", "x" * 10_000])
async def test_a_cursor_that_is_not_ours_is_invalid_params(cursor: str) -> None:
    async with hosted(many(3, 1)) as host:
        with pytest.raises(ProtocolError) as error:
            await host.ask("tools/list", {"cursor": cursor})
    assert (error.value.code, error.value.message) == (-32602, "Invalid cursor")


async def test_declared_but_empty_answers_an_empty_list() -> None:
    async with hosted(App("a", "1", capabilities={"tools": {}})) as host:
        assert await host.ask("tools/list") == {"tools": []}
        with pytest.raises(ProtocolError) as error:
            await host.call("t")
        assert error.value.code == -32602


async def test_a_view_without_tools_knows_no_tool_methods() -> None:
    async with hosted(App("a", "1")) as host:
        for method in ("tools/list", "tools/call", "tasks/list", "tasks/get"):
            with pytest.raises(ProtocolError) as error:
                await host.ask(method, {"name": "t"})
            assert error.value.code == -32601


async def test_static_tools_are_looked_at_again_only_when_something_has_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = many(3)
    app.register_tool("lazy", nothing, input_schema=lambda: {"type": "object"})
    encoded = RegisteredTool.encoded
    looked_at: list[str] = []
    monkeypatch.setattr(
        RegisteredTool, "encoded", lambda tool: looked_at.append(tool.name) or encoded(tool)
    )
    async with hosted(app) as host:
        assert await host.names() == ["t0", "t1", "t2", "lazy"]
        assert await host.names() == ["t0", "t1", "t2", "lazy"]
        assert looked_at == ["t0", "t1", "t2", "lazy", "lazy"]
        app.tools[0].disable()
        assert await host.names() == ["t1", "t2", "lazy"]


# --- lazy schemas -----------------------------------------------------------------------------


def lazily(make: Callable[[], Any]) -> tuple[App, list[BaseException]]:
    app = App("music", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    app.register_tool("play_track", lambda **_: "playing", input_schema=make)
    app.register_tool("stop", lambda: "stopped")
    return app, errors


async def test_a_lazy_schema_follows_the_state_at_every_listing_and_call() -> None:
    tracks = ["a"]
    app, errors = lazily(
        lambda: {
            "type": "object",
            "properties": {"id": {"type": "string", "enum": list(tracks)}},
            "required": ["id"],
        }
    )
    async with hosted(app) as host:
        listed = await host.list_tools()
        assert listed[0]["inputSchema"]["properties"]["id"]["enum"] == ["a"]
        assert (await host.call("play_track", {"id": "b"}))["isError"] is True
        tracks.append("b")
        listed = await host.list_tools()
        assert listed[0]["inputSchema"]["properties"]["id"]["enum"] == ["a", "b"]
        assert "isError" not in await host.call("play_track", {"id": "b"})
        tracks.remove("a")
        assert (await host.call("play_track", {"id": "a"}))["isError"] is True
    assert errors == []


def raises() -> Any:
    raise RuntimeError("no library yet")


async def _async_schema() -> dict[str, Any]:
    return {"type": "object"}


@pytest.mark.parametrize(
    "make",
    [
        raises,
        lambda: {"type": "string"},
        lambda: None,
        lambda: 3,
        lambda: [{}],
        lambda: "schema",
        lambda: {"type": "object", "properties": 3},
        lambda: lambda: {"type": "object"},
        lambda: _async_schema(),
        lambda: {"type": "object", "x": object()},
    ],
)
async def test_a_lazy_schema_that_cannot_be_made_hides_its_tool_only_and_is_surfaced(
    make: Callable[[], Any],
) -> None:
    app, errors = lazily(make)
    async with hosted(app) as host:
        assert await host.names() == ["stop"]
        assert app.tools[0].error is not None
        assert errors == [app.tools[0].error]
        result = await host.call("play_track", {"id": "a"})
        assert result["isError"] is True
        assert "unavailable" in result["content"][0]["text"]
        assert "library" not in result["content"][0]["text"]
        assert (await host.call("stop"))["content"][0]["text"] == "stopped"
        assert len(errors) == 1


async def test_a_lazy_schema_that_recovers_brings_its_tool_back() -> None:
    ready: list[bool] = []
    app, errors = lazily(lambda: {"type": "object"} if ready else raises())
    async with hosted(app) as host:
        assert await host.names() == ["stop"]
        ready.append(True)
        assert await host.names() == ["play_track", "stop"]
        assert app.tools[0].error is None
        ready.clear()
        assert await host.names() == ["stop"]
    assert len(errors) == 2


async def test_a_lazy_schema_may_return_a_type() -> None:
    track = make_dataclass("Track", [("id", str)])
    got: list[Any] = []
    app = App("a", "1")
    app.register_tool("play", got.append, input_schema=lambda: track)
    async with hosted(app) as host:
        assert (await host.list_tools())[0]["inputSchema"]["required"] == ["id"]
        await host.call("play", {"id": "a"})
    assert got == [track("a")]


# --- on_list_tools ----------------------------------------------------------------------------


async def test_what_on_list_tools_adds_comes_after_the_registered_ones() -> None:
    app = App("a", "1")
    app.register_tool("registered", nothing)
    hidden = app.register_tool("hidden", nothing, enabled=False)

    @app.on_list_tools
    async def _(cursor: str | None) -> list[Tool]:
        return [Tool("added"), Tool("registered"), Tool("hidden")]

    async with hosted(app) as host:
        assert await host.names() == ["registered", "added"]
        hidden.remove()
        assert await host.names() == ["registered", "added", "hidden"]


@pytest.mark.parametrize(
    "returned",
    [
        [Tool("a"), Tool("b")],
        (Tool("a"), {"name": "b", "inputSchema": {"type": "object"}}),
        {"tools": [{"name": "a", "inputSchema": {"type": "object"}}, Tool("b")]},
        ListToolsResult(tools=[Tool("a"), Tool("b")]),
    ],
)
async def test_on_list_tools_may_return_a_list_or_a_result_of_structs_or_mappings(
    returned: Any,
) -> None:
    app = App("a", "1")
    app.on_list_tools = lambda: returned
    async with hosted(app) as host:
        assert host.requests[0][1]["appCapabilities"] == {"tools": {"listChanged": True}}
        assert await host.names() == ["a", "b"]


async def test_what_on_list_tools_gets_wrong_is_left_out_and_reported() -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    app.on_list_tools = lambda: [
        {"name": "no_schema_type", "inputSchema": {}},
        {"inputSchema": {"type": "object"}},
        {"name": "fine", "inputSchema": {"type": "object"}},
        {"name": 3, "inputSchema": {"type": "object"}},
        {"name": "bad", "inputSchema": {"type": "object"}, "description": 3},
    ]
    async with hosted(app) as host:
        assert await host.names() == ["fine"]
    assert len(errors) == 4


async def test_on_list_tools_that_raises_fails_the_listing_without_telling_why() -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append

    @app.on_list_tools
    async def _() -> list[Tool]:
        raise ValueError("secret")

    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.list_tools()
    assert error.value.code == -32603
    assert "secret" not in error.value.message
    assert [str(e) for e in errors] == ["secret"]


async def test_registered_and_added_tools_are_paged_together() -> None:
    app = many(3, 2)
    app.on_list_tools = lambda: [Tool(f"a{n}") for n in range(4)]
    async with hosted(app) as host:
        assert await pages(host) == [["t0", "t1"], ["t2", "a0"], ["a1", "a2"], ["a3"]]


async def test_on_list_tools_may_page_by_itself() -> None:
    app = App("a", "1")
    asked: list[str | None] = []

    @app.on_list_tools
    def _(cursor: str | None) -> dict[str, Any]:
        asked.append(cursor)
        more = {None: "p2", "p2": "p3"}.get(cursor)
        tools = [Tool(f"{cursor}-tool")]
        return {"tools": tools} if more is None else {"tools": tools, "nextCursor": more}

    async with hosted(app) as host:
        assert await pages(host) == [["None-tool"], ["p2-tool"], ["p3-tool"]]
    assert asked == [None, "p2", "p3"]


async def test_calls_go_to_the_registry_first_and_then_to_on_call_tool() -> None:
    app = App("a", "1")
    app.register_tool("registered", lambda: "registry")

    @app.on_call_tool
    async def _(name: str, arguments: dict[str, Any], ctx: Any) -> str:
        if name == "ghost":
            return NotImplemented
        return f"{name} {arguments} {ctx.tool}"

    async with hosted(app) as host:
        assert (await host.call("registered"))["content"][0]["text"] == "registry"
        assert (await host.call("other", {"a": 1}))["content"][0]["text"] == "other {'a': 1} other"
        with pytest.raises(ProtocolError, match="Tool ghost not found"):
            await host.call("ghost")
        app.on_call_tool = lambda name: f"assigned {name}"
        assert (await host.call("other"))["content"][0]["text"] == "assigned other"
        app.on_call_tool = None
        assert "other {}" in (await host.call("other"))["content"][0]["text"]


async def test_registering_never_takes_the_place_of_on_call_tool() -> None:
    app = App("a", "1")
    app.on_call_tool = lambda name: f"fallback {name}"
    app.register_tool("t", lambda: "tool")
    async with hosted(app) as host:
        assert (await host.call("t"))["content"][0]["text"] == "tool"
        assert (await host.call("u"))["content"][0]["text"] == "fallback u"
        assert await host.names() == ["t"]


async def test_on_call_tool_that_raises_is_answered_as_a_tool_is() -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append

    @app.on_call_tool
    def _(name: str) -> str:
        raise ValueError(f"Unknown tool: {name}")

    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.call("x")
    assert (error.value.code, error.value.message) == (-32603, "Tool x failed")
    assert len(errors) == 1
