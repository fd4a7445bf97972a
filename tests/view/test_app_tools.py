import asyncio
from typing import Any

import msgspec
import pytest

from tests.view.fake_host import INITIALIZED, hosted
from transom.channel import memory_pair
from transom.errors import RegistrationError, SchemaError
from transom.types import Tool, ToolAnnotations
from transom.view.app import App


def nothing() -> str:
    return ""


# --- registering ------------------------------------------------------------------------------


def test_a_decorated_function_gives_the_name_the_description_and_the_schemas() -> None:
    app = App("a", "1")

    @app.tool(annotations={"readOnlyHint": True}, title="Selection")
    def get_selection(limit: int = 5) -> str:
        """Return the user's current text selection.

        Args:
            limit: how much of it.
        """
        return "x" * limit

    assert app.tools == (get_selection,)
    definition = get_selection.definition()
    assert definition.name == "get_selection"
    assert definition.title == "Selection"
    assert definition.description == "Return the user's current text selection."
    assert definition.annotations == ToolAnnotations(read_only_hint=True)
    assert definition.input_schema["properties"]["limit"]["type"] == "integer"


@pytest.mark.parametrize(
    "name", ["constructor", "__proto__", "toString", "a", "9", "a.b-c_D", "x" * 128]
)
async def test_any_name_of_the_allowed_letters_works(name: str) -> None:
    app = App("a", "1")
    app.register_tool(name, lambda: "called")
    async with hosted(app) as host:
        assert await host.names() == [name]
        assert (await host.call(name))["content"][0]["text"] == "called"


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 129, "a/b", "a\n", None, 3])
def test_other_names_are_refused(name: Any) -> None:
    app = App("a", "1")
    with pytest.raises(RegistrationError, match="is not a tool name"):
        app.register_tool(name, nothing)
    assert app.tools == ()


def test_a_name_that_is_taken_is_refused() -> None:
    app = App("a", "1")
    first = app.register_tool("t", nothing)
    with pytest.raises(RegistrationError, match="Tool t is already registered"):
        app.register_tool("t", lambda: "other")
    assert app.tools == (first,)


async def test_names_that_look_like_numbers_keep_their_place() -> None:
    app = App("a", "1")
    for name in ("b", "10", "2", "a"):
        app.register_tool(name, nothing)
    async with hosted(app) as host:
        assert await host.names() == ["b", "10", "2", "a"]


def test_a_function_without_a_name_must_be_given_one() -> None:
    app = App("a", "1")
    with pytest.raises(RegistrationError, match="pass name="):
        app.tool(lambda: "x")
    assert app.tool(name="ok")(lambda: "x").name == "ok"


@pytest.mark.parametrize(
    "options",
    [
        {"input_schema": {"type": "string"}},
        {"input_schema": 3},
        {"input_schema": True},
        {"output_schema": 3},
        {"input_schema": {"type": "object", "properties": {"a": {"$ref": "https://x/y"}}}},
        {"visibility": ["everyone"]},
        {"visibility": []},
        {"annotations": {"readOnlyHint": "yes"}},
        {"task": "sometimes"},
    ],
)
def test_a_definition_that_cannot_be_used_is_refused_and_leaves_no_trace(
    options: dict[str, Any],
) -> None:
    app = App("a", "1")
    with pytest.raises((SchemaError, RegistrationError)):
        app.register_tool("t", lambda **_: "", **options)
    assert app.tools == ()
    assert app.capabilities == {}


def test_a_handler_that_is_no_function_is_refused() -> None:
    app = App("a", "1")
    with pytest.raises(TypeError, match="needs a function"):
        app.register_tool("t", "hello")  # type: ignore[arg-type]


async def test_an_async_lazy_schema_is_refused_at_registration() -> None:
    app = App("a", "1")

    async def schema() -> dict[str, Any]:
        return {"type": "object"}

    with pytest.raises(SchemaError, match="must be a sync function"):
        app.register_tool("t", nothing, input_schema=schema)
    assert app.tools == ()


async def test_registering_after_connect_without_the_capability_raises_every_time() -> None:
    app = App("a", "1")
    async with hosted(app) as host:
        for _ in range(2):
            with pytest.raises(RegistrationError, match="did not declare the tools capability"):
                app.register_tool("t", nothing)
        assert app.tools == ()
        for set_late in ("on_list_tools", "on_call_tool"):
            with pytest.raises(RegistrationError, match=set_late):
                setattr(app, set_late, nothing)
        with pytest.raises(Exception, match="Method not found"):
            await host.list_tools()


async def test_registering_after_connect_with_the_capability_works_and_is_told() -> None:
    app = App("a", "1", capabilities={"tools": {"listChanged": True}})
    async with hosted(app) as host:
        app.register_tool("t", nothing)
        assert await host.list_changes() == 1
        assert await host.names() == ["t"]


async def test_two_apps_never_see_each_others_tools() -> None:
    one, two = App("one", "1"), App("two", "1")
    one.register_tool("t", lambda: "one")
    two.register_tool("t", lambda: "two")
    async with hosted(one) as first, hosted(two) as second:
        assert (await first.call("t"))["content"][0]["text"] == "one"
        assert (await second.call("t"))["content"][0]["text"] == "two"


async def test_visibility_is_written_where_hosts_look_for_it() -> None:
    app = App("a", "1")
    meta = {"ui": {"resourceUri": "ui://x"}, "mine": 1}
    app.register_tool("refresh", nothing, visibility=("app",), meta=meta)
    async with hosted(app) as host:
        (tool,) = await host.list_tools()
    assert tool["_meta"] == {
        "ui": {"resourceUri": "ui://x", "visibility": ["app"]},
        "mine": 1,
        "transom/registration": 1,
    }
    assert meta == {"ui": {"resourceUri": "ui://x"}, "mine": 1}
    assert app.tools[0].definition().visibility == ("app",)


# --- changing ---------------------------------------------------------------------------------


async def test_a_disabled_tool_stays_registered_and_is_not_listed() -> None:
    app = App("a", "1")
    save = app.register_tool("save", nothing, enabled=False)
    app.register_tool("other", nothing)
    async with hosted(app) as host:
        assert await host.names() == ["other"]
        assert [tool.name for tool in app.tools] == ["save", "other"]
        save.enable()
        assert save.reason is None
        assert await host.names() == ["save", "other"]
        save.disable(reason="later")
        assert (save.enabled, save.reason) == (False, "later")
        assert await host.names() == ["other"]


async def test_only_real_changes_are_told() -> None:
    app = App("a", "1")
    tool = app.register_tool("t", nothing, description="d", title="t")
    async with hosted(app) as host:
        tool.enable()
        tool.update()
        tool.update(description="d", title="t", name="t")
        app.update_tool("t", disabled=False, description="d")
        tool.description = "d"
        assert await host.list_changes() == 0
        tool.disable()
        assert await host.list_changes() == 1
        tool.disable()
        tool.disable("why")
        tool.update(description="while hidden")
        assert await host.list_changes() == 1


async def test_changes_in_one_turn_of_the_loop_are_told_once() -> None:
    app = App("a", "1")
    tools = [app.register_tool(f"t{n}", nothing) for n in range(10)]
    async with hosted(app) as host:
        for tool in tools:
            tool.disable()
            tool.enable()
            tool.update(description="new")
        assert await host.list_changes() == 1
        tools[0].remove()
        assert await host.list_changes() == 2


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_change_made_by_a_call_is_told_before_its_result(is_async: bool) -> None:
    app = App("a", "1")
    save = app.register_tool("save", nothing, enabled=False)

    def edit() -> str:
        save.enable()
        return "edited"

    async def edit_later() -> str:
        return edit()

    app.register_tool("edit", edit_later if is_async else edit)
    view, end = memory_pair()
    async with hosted(app, connect=False):
        connecting = asyncio.ensure_future(app.connect(view))
        await end.receive()
        answer = msgspec.json.encode({"jsonrpc": "2.0", "id": 0, "result": INITIALIZED})
        await end.send(answer)
        await connecting
        await end.receive()
        await end.send(b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"edit"}}')
        assert b"list_changed" in await end.receive()
        assert b"edited" in await end.receive()


async def test_an_explicit_notice_counts_for_the_changes_of_its_turn() -> None:
    app = App("a", "1")
    save = app.register_tool("save", nothing, enabled=False)
    async with hosted(app) as host:
        save.enable()
        await app.send_tool_list_changed()
        assert await host.list_changes() == 1
        await app.send_tool_list_changed()
        assert await host.list_changes() == 2
        assert host.told("notifications/tools/list_changed") == [{}, {}]


async def test_an_explicit_notice_needs_the_declared_capability() -> None:
    app = App("a", "1", capabilities={"tools": {}})
    async with hosted(app):
        with pytest.raises(RegistrationError, match="listChanged"):
            await app.send_tool_list_changed()


async def test_changes_before_the_handshake_and_after_the_close_are_not_told() -> None:
    app = App("a", "1")
    tool = app.register_tool("t", nothing)

    async def initialize(_: Any) -> dict[str, Any]:
        app.register_tool("during", nothing)
        await asyncio.sleep(0)
        return host.initialized

    async with hosted(app, connect=False, ui__initialize=lambda p: initialize(p)) as host:
        host.initialized = {
            "protocolVersion": "2026-01-26",
            "hostInfo": {"name": "h", "version": "1"},
            "hostCapabilities": {},
            "hostContext": {},
        }
        tool.disable()
        await app.connect(host.channel)
        assert await host.list_changes() == 0
        assert await host.names() == ["during"]
        await app.close()
        tool.enable()
        tool.remove()
        app.register_tool("after", nothing)
        await asyncio.sleep(0)
        assert host.told("notifications/tools/list_changed") == []


async def test_setting_a_field_is_an_update() -> None:
    app = App("a", "1")
    tool = app.register_tool("t", nothing)
    async with hosted(app) as host:
        tool.description = "described"
        tool.title = "Titled"
        tool.annotations = {"readOnlyHint": True}
        tool.visibility = ("model",)
        tool.meta = {"k": 1}
        tool.output_schema = {"type": "object"}
        tool.input_schema = {"type": "object", "properties": {"a": {"type": "string"}}}
        assert await host.list_changes() == 1
        assert await host.list_tools() == [
            {
                "name": "t",
                "title": "Titled",
                "description": "described",
                "inputSchema": {"type": "object", "properties": {"a": {"type": "string"}}},
                "outputSchema": {"type": "object"},
                "annotations": {"readOnlyHint": True},
                "_meta": {"k": 1, "ui": {"visibility": ["model"]}, "transom/registration": 1},
            }
        ]
        tool.enabled = False
        assert await host.names() == []
        tool.enabled = True
        tool.name = "renamed"
        assert await host.names() == ["renamed"]


async def test_renaming_keeps_the_handle_and_its_place_and_refuses_a_taken_name() -> None:
    app = App("a", "1")
    first = app.register_tool("first", lambda: "one")
    app.register_tool("second", nothing)
    async with hosted(app) as host:
        with pytest.raises(RegistrationError, match="already registered"):
            first.update(name="second", description="lost?")
        assert (first.name, first.description) == ("first", None)
        with pytest.raises(RegistrationError, match="not a tool name"):
            first.update(name="not ok")
        first.update(name="renamed")
        assert await host.names() == ["renamed", "second"]
        assert (await host.call("renamed"))["content"][0]["text"] == "one"
        with pytest.raises(Exception, match="not found"):
            await host.call("first")
        app.register_tool("first", lambda: "two")
        assert (await host.call("first"))["content"][0]["text"] == "two"


async def test_a_schema_given_later_is_listed_and_checked() -> None:
    app = App("a", "1")
    tool = app.register_tool("t", lambda **arguments: str(arguments))
    async with hosted(app) as host:
        tool.update(
            input_schema={
                "type": "object",
                "properties": {"n": {"type": "integer"}},
                "required": ["n"],
            }
        )
        assert (await host.list_tools())[0]["inputSchema"]["required"] == ["n"]
        assert (await host.call("t", {}))["isError"] is True
        assert (await host.call("t", {"n": 1}))["content"][0]["text"] == "{'n': 1}"
        tool.update(input_schema=None)
        assert "isError" not in await host.call("t", {})


async def test_a_bad_update_changes_nothing() -> None:
    app = App("a", "1")
    tool = app.register_tool("t", nothing, description="before")
    async with hosted(app) as host:
        with pytest.raises(SchemaError):
            tool.update(description="after", input_schema={"type": "array"})
        with pytest.raises(RegistrationError):
            tool.update(description="after", annotations={"readOnlyHint": 3})
        assert (await host.list_tools())[0]["description"] == "before"
        assert await host.list_changes() == 0


async def test_a_stale_handle_does_nothing_and_tells_nobody() -> None:
    app = App("a", "1")
    stale = app.register_tool("t", lambda: "old")
    stale.remove()
    fresh = app.register_tool("t", lambda: "new")
    async with hosted(app) as host:
        stale.disable()
        stale.enable()
        stale.update(description="stale", name="other")
        stale.remove()
        stale.description = "stale"
        assert await host.list_changes() == 0
        assert app.tools == (fresh,)
        assert fresh.enabled
        assert (await host.call("t"))["content"][0]["text"] == "new"
        assert "stale" in repr(stale)


# --- update_tool ------------------------------------------------------------------------------


async def test_update_tool_changes_availability_description_and_schema_by_name() -> None:
    app = App("a", "1")
    queue: list[str] = []
    app.register_tool("remove_from_queue", lambda position: position, enabled=False)
    async with hosted(app) as host:
        app.update_tool("remove_from_queue", disabled=len(queue) == 0)
        assert await host.names() == []
        queue.append("song")
        app.update_tool("remove_from_queue", disabled=len(queue) == 0, description="Remove one.")
        (tool,) = await host.list_tools()
        assert tool["description"] == "Remove one."
        app.update_tool("remove_from_queue", input_schema={"type": "object", "properties": {}})
        assert (await host.list_tools())[0]["inputSchema"] == {"type": "object", "properties": {}}


def test_update_tool_keeps_the_reason_of_a_tool_that_is_disabled_already() -> None:
    app = App("a", "1")
    save = app.register_tool("save", nothing)
    save.disable("nothing to save")
    app.update_tool("save", disabled=True)
    assert save.reason == "nothing to save"


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"name": "x"}, "handle.update"),
        ({"annotations": {}}, "handle.update"),
        ({"visibility": ("app",)}, "handle.update"),
        ({"handler": print}, "register it again"),
        ({"enabled": True}, "disabled"),
        ({"disabled": "yes"}, "True or False"),
    ],
)
def test_update_tool_refuses_the_rest_and_says_how_to_do_it(
    change: dict[str, Any], hint: str
) -> None:
    app = App("a", "1")
    tool = app.register_tool("t", nothing, description="d")
    with pytest.raises(TypeError, match=hint):
        app.update_tool("t", description="new", **change)
    assert tool.description == "d"


def test_update_tool_of_an_unknown_tool_says_so() -> None:
    with pytest.raises(RegistrationError, match="not registered"):
        App("a", "1").update_tool("ghost", disabled=True)


def test_a_definition_is_a_tool_struct() -> None:
    app = App("a", "1")
    assert isinstance(app.register_tool("t", nothing).definition(), Tool)


def test_a_keyword_that_does_not_exist_is_refused_and_changes_nothing() -> None:
    app = App("a", "1")
    with pytest.raises(TypeError, match="unexpected keyword argument 'inputSchema'"):
        app.register_tool("one", lambda: None, inputSchema={})  # type: ignore[call-arg]
    assert app.tools == ()
    tool = app.register_tool("one", lambda: None)
    with pytest.raises(TypeError, match="unexpected keyword argument 'enabled'"):
        tool.update(enabled=False)  # type: ignore[call-arg]
    assert tool.enabled
