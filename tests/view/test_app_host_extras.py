"""What an App tells of Transom's own: lazy schemas, registrations, disabled tools, problems."""

from typing import Any

import pytest

from tests.view.fake_host import INITIALIZED, FakeHost, hosted
from transom.errors import NotConnected, ProtocolError, ToolError
from transom.view.app import App

OBJECT = {"type": "object", "properties": {}}
PROBLEM = "transom/notifications/problem"


def announcing(**capabilities: Any) -> dict[str, Any]:
    return {"ui/initialize": {**INITIALIZED, "hostCapabilities": capabilities}}


WANTS_PROBLEMS = announcing(experimental={"transom/problems": {}})
PINS = announcing(experimental={"transom/pin": {}})


def nothing() -> str:
    return ""


def broken() -> Any:
    raise LookupError("no tracks yet")


async def metas(host: FakeHost) -> dict[str, dict[str, Any]]:
    return {tool["name"]: tool["_meta"] for tool in await host.list_tools()}


async def problems(host: FakeHost) -> list[dict[str, Any]]:
    await host.settled()
    return host.told(PROBLEM)


# --- listings -----------------------------------------------------------------------------------


async def test_a_tool_with_a_lazy_schema_says_so_as_long_as_it_has_one() -> None:
    app = App("a", "1")
    lazy = app.register_tool("lazy", nothing, input_schema=lambda: OBJECT, meta={"mine": 1})
    app.register_tool("static", nothing)
    async with hosted(app) as host:
        found = await metas(host)
        assert found["lazy"] == {"mine": 1, "transom/registration": 1, "transom/lazy": True}
        assert found["static"] == {"transom/registration": 2}
        lazy.update(input_schema=OBJECT)
        assert (await metas(host))["lazy"] == {"mine": 1, "transom/registration": 1}


async def test_a_registration_is_a_number_that_lasts_until_the_tool_is_removed() -> None:
    app = App("a", "1")
    tool = app.register_tool("save", nothing)
    async with hosted(app) as host:
        first = (await metas(host))["save"]["transom/registration"]
        tool.disable()
        tool.enable()
        tool.update(description="Saves", name="store")
        assert (await metas(host))["store"]["transom/registration"] == first
        tool.remove()
        app.register_tool("store", nothing)
        assert (await metas(host))["store"]["transom/registration"] > first


async def test_what_an_author_writes_in_meta_cannot_pretend_to_be_a_registration() -> None:
    app = App("a", "1")
    app.register_tool("t", nothing, meta={"transom/registration": 99})
    async with hosted(app) as host:
        assert await metas(host) == {"t": {"transom/registration": 1}}


async def test_tools_of_on_list_tools_have_no_registration_and_bare_names_are_tools() -> None:
    app = App("a", "1")
    app.on_list_tools = lambda: ["bare", {"name": "full", "inputSchema": OBJECT}]
    async with hosted(app) as host:
        assert await host.list_tools() == [
            {"name": "bare", "inputSchema": OBJECT},
            {"name": "full", "inputSchema": OBJECT},
        ]


async def test_the_first_page_tells_which_tools_are_disabled_and_why() -> None:
    app = App("a", "1", page_size=1)
    app.register_tool("one", nothing)
    app.register_tool("two", nothing)
    save = app.register_tool("save", nothing, enabled=False)
    async with hosted(app) as host:
        page = await host.ask("tools/list")
        assert page["_meta"] == {"transom/disabled": [{"name": "save", "registration": 3}]}
        assert "_meta" not in await host.ask("tools/list", {"cursor": page["nextCursor"]})
        save.disable("nothing to save \ud800" + "x" * 900)
        (told,) = (await host.ask("tools/list"))["_meta"]["transom/disabled"]
        assert told["reason"] == "nothing to save ?" + "x" * 483
        save.enable()
        assert "_meta" not in await host.ask("tools/list")


@pytest.mark.parametrize("handler", [None, lambda: ["added"]])
async def test_at_most_a_hundred_disabled_tools_are_told_of(handler: Any) -> None:
    app = App("a", "1")
    for number in range(150):
        app.register_tool(f"t{number}", nothing, enabled=False)
    app.on_list_tools = handler
    async with hosted(app) as host:
        page = await host.ask("tools/list")
        assert len(page["tools"]) == (handler is not None)
        assert len(page["_meta"]["transom/disabled"]) == 100


# --- pins ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "pinned"),
    [({}, True), ({"isError": True}, False), (ProtocolError(-32000, "no"), False), ([], False)],
)
async def test_a_view_asks_to_stay_and_gets_a_plain_answer(answer: Any, pinned: bool) -> None:
    app = App("a", "1")
    async with hosted(app, **PINS | {"transom/request-pin": answer}) as host:
        assert await app.request_pin("an upload runs") is pinned
        assert host.requests[-1] == ("transom/request-pin", {"reason": "an upload runs"})


async def test_a_host_that_pins_nothing_is_not_asked() -> None:
    app = App("a", "1")
    with pytest.raises(NotConnected):
        await app.request_pin()
    async with hosted(app, **{"transom/request-pin": {}}) as host:
        assert await app.request_pin() is False
        assert [method for method, _ in host.requests] == ["ui/initialize"]


# --- problems -----------------------------------------------------------------------------------


async def test_a_schema_and_a_handler_that_raise_are_told_to_a_host_that_wants_to_know() -> None:
    app = App("a", "1")
    seen: list[BaseException] = []
    app.on_error = seen.append
    app.register_tool("play", nothing, input_schema=broken)
    app.register_tool("stop", broken)
    async with hosted(app, **WANTS_PROBLEMS) as host:
        await host.names()
        await host.names()  # the same once more: told once
        with pytest.raises(ProtocolError, match="Tool stop failed"):
            await host.call("stop")
        assert await problems(host) == [
            {"kind": "schema", "message": "LookupError: no tracks yet", "tool": "play"},
            {"kind": "tool", "message": "LookupError: no tracks yet", "tool": "stop"},
        ]
    assert len(seen) == 2


async def test_an_event_handler_that_raises_is_a_problem_and_a_tool_error_is_none() -> None:
    app = App("a", "1")
    app.on_error = lambda _: None
    app.on_host_context_changed = broken

    @app.tool
    def refuse() -> str:
        raise ToolError("not now")

    async with hosted(app, **WANTS_PROBLEMS) as host:
        assert (await host.call("refuse"))["isError"]
        await host.tell("ui/notifications/host-context-changed", {})
        await host.tell("ui/notifications/host-context-changed", {"theme": 5})  # the host's mistake
        assert await problems(host) == [{"kind": "error", "message": "LookupError: no tracks yet"}]


async def test_a_host_that_does_not_want_to_know_is_told_nothing() -> None:
    app = App("a", "1")
    app.on_error = lambda _: None
    app.register_tool("stop", broken)
    async with hosted(app) as host:
        with pytest.raises(ProtocolError):
            await host.call("stop")
        assert await problems(host) == []


async def test_a_hundred_problems_are_told_then_one_that_says_so_and_all_are_short() -> None:
    app = App("a", "1")
    app.on_error = lambda _: None

    @app.tool
    def fail(text: str) -> str:
        raise ValueError(text)

    async with hosted(app, **WANTS_PROBLEMS) as host:
        for number in range(120):
            with pytest.raises(ProtocolError):
                await host.call("fail", {"text": f"{number} " + "x" * 5000})
        told = await problems(host)
    assert len(told) == 101
    assert len(told[0]["message"]) == 2000
    assert told[-1]["message"] == "More than 100 problems"


# --- notices of changes -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("capabilities", "strict", "expected"),
    [
        ({}, False, 1),
        ({}, True, 0),
        ({"tools": {}}, False, 0),
        ({"tools": {}}, True, 0),
        ({"tools": {"listChanged": True}}, False, 1),
        ({"tools": {"listChanged": True}}, True, 1),
        ({"appTools": {}}, False, 0),
        ({"appTools": {"listChanged": True}}, True, 1),
        ({"tools": {"listChanged": True}, "appTools": {}}, False, 1),
    ],
)
async def test_only_hosts_that_take_notices_of_changes_are_sent_them(
    capabilities: dict[str, Any], strict: bool, expected: int
) -> None:
    app = App("a", "1", strict=strict)
    tool = app.register_tool("t", nothing)
    async with hosted(app, **announcing(**capabilities)) as host:
        tool.disable()
        assert await host.list_changes() == expected
        await app.send_tool_list_changed()
        assert await host.list_changes() == 2 * expected
