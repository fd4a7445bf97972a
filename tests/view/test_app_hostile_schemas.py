"""Schemas and definitions of clumsy authors."""

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from tests.ids import plain
from tests.view.hostile import (
    OBJECT,
    RAISED,
    cyclic_dict,
    numbers,
    surviving,
    text,
)
from transom.errors import (
    ProtocolError,
    RegistrationError,
    SchemaError,
)
from transom.view.app import App

# --- lazy schemas ----------------------------------------------------------------------------

GARBAGE: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "a number": lambda: 3,
    "text": lambda: "object",
    "a list": lambda: [OBJECT],
    "bytes": lambda: b"{}",
    "an object without methods": object,
    "a schema of something else": lambda: {"type": "string"},
    "a schema with a type that does not exist": lambda: {"type": "objekt"},
    "a schema that is no schema": lambda: {"type": "object", "properties": 3},
    "a schema that contains itself": lambda: {"type": "object", "properties": cyclic_dict()},
    "a schema with values that are no JSON": lambda: {"type": "object", "default": object()},
    "a schema that is not Unicode": lambda: {"type": "object", "description": "\ud800"},
    "a schema with a reference to nowhere": lambda: {"type": "object", "$ref": "#/$defs/gone"},
    "another function": lambda: lambda: OBJECT,
    "a class that is no schema": lambda: int,
    "a generator": numbers,
}


@pytest.mark.parametrize("what", GARBAGE)
async def test_a_lazy_schema_that_returns_garbage_makes_its_tool_unavailable_and_no_other(
    what: str,
) -> None:
    app = App("a", "1")
    odd = app.register_tool("odd", lambda **_: "x", input_schema=lambda: GARBAGE[what]())
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine"]
        result = await host.call("odd")
        assert result["isError"] is True
        assert text(result) == "Tool odd is unavailable right now"
        assert odd.error is not None
        assert len(errors) == 1, "the same problem is told once"


@pytest.mark.parametrize("what", RAISED)
async def test_a_lazy_schema_that_raises_makes_its_tool_unavailable_and_no_other(
    what: str,
) -> None:
    app, failure = App("a", "1"), RAISED[what]()

    def schema() -> Any:
        raise failure

    odd = app.register_tool("odd", lambda **_: "x", input_schema=schema)
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine"]
        assert text(await host.call("odd")) == "Tool odd is unavailable right now"
        assert odd.error is failure
        assert errors == [failure]


async def test_a_lazy_schema_that_returns_a_coroutine_is_told_and_leaves_none_behind() -> None:
    app = App("a", "1")

    async def fetch() -> Any:
        return OBJECT

    app.register_tool("odd", lambda **_: "x", input_schema=lambda: fetch())
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine"]
        assert "must not be async" in str(errors[0])


async def test_a_lazy_schema_that_differs_each_time_is_taken_as_it_is_each_time() -> None:
    app = App("a", "1")
    turn = 0

    def schema() -> Any:
        nonlocal turn
        turn += 1
        return {
            "type": "object",
            "properties": {f"p{turn}": {"type": "integer"}},
            "required": [f"p{turn}"],
            "additionalProperties": False,
        }

    app.register_tool("odd", lambda **them: sorted(them), input_schema=schema)
    async with surviving(app) as (host, errors):
        for expected in (1, 2):
            (odd, _) = await host.list_tools()
            assert odd["inputSchema"]["required"] == [f"p{expected}"]
        result = await host.call("odd", {"p3": 3})
        assert result["structuredContent"] == {"result": ["p3"]}
        assert (await host.call("odd", {"p3": 3}))["isError"] is True
        assert errors == []


async def test_a_lazy_schema_may_hand_out_one_dict_and_change_it() -> None:
    app = App("a", "1")
    ids = ["a"]
    schema = {"type": "object", "properties": {"id": {"enum": ids}}, "required": ["id"]}
    app.register_tool("play", lambda id: id, input_schema=lambda: schema)
    async with surviving(app) as (host, _):
        assert (await host.call("play", {"id": "b"}))["isError"] is True
        ids.append("b")
        assert text(await host.call("play", {"id": "b"})) == "b"
        listed = (await host.list_tools())[0]["inputSchema"]
        assert listed["properties"]["id"]["enum"] == ["a", "b"]


async def test_a_slow_lazy_schema_blocks_only_while_it_runs() -> None:
    app = App("a", "1")
    release = threading.Event()
    asked = 0

    def schema() -> Any:
        nonlocal asked
        asked += 1
        threading.Timer(0.01, release.set).start()
        release.wait(30)
        return OBJECT

    app.register_tool("slow", lambda: "x", input_schema=schema)
    async with surviving(app) as (host, _):
        names, result = await asyncio.gather(host.names(), host.call("slow"))
        assert names == ["slow", "fine"]
        assert text(result) == "x"
        assert asked == 2


async def test_a_lazy_schema_whose_object_the_handler_cannot_take_is_unavailable() -> None:
    app = App("a", "1")

    class Point(msgspec.Struct):
        x: int

    app.register_tool("odd", lambda: "x", input_schema=lambda: Point)
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine"]
        assert isinstance(errors[0], SchemaError)


class Rude:
    """A custom schema whose methods break their promise."""

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure

    def json_schema(self) -> dict[str, Any]:
        return OBJECT

    def validate(self, value: Any) -> Any:
        raise self.failure


@pytest.mark.parametrize("what", RAISED)
async def test_a_custom_schema_that_breaks_while_it_validates_fails_its_call_only(
    what: str,
) -> None:
    app, failure = App("a", "1"), RAISED[what]()
    app.register_tool("odd", lambda _: "x", input_schema=Rude(failure))
    app.register_tool("out", lambda: {"a": 1}, output_schema=Rude(failure))
    async with surviving(app) as (host, errors):
        for name in ("odd", "out"):
            try:
                result = await host.call(name)
            except ProtocolError as error:
                assert error.code == -32603
                assert "secret" not in error.message
            else:
                assert result["isError"] is True
        assert errors


# --- definitions -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"meta": {"f": object()}},
        {"meta": cyclic_dict()},
        {"meta": [1]},
        {"title": 3},
        {"title": "\ud800"},
        {"description": object()},
        {"description": "\ud800"},
        {"annotations": {"readOnlyHint": True, "f": object()}},
        {"annotations": {"readOnlyHint": "yes"}},
        {"annotations": {"read_only_hint": True}},
    ],
    ids=plain,
)
async def test_a_definition_that_cannot_be_sent_is_refused_at_once(options: Any) -> None:
    app = App("a", "1")
    kept = app.register_tool("kept", lambda: "x")
    with pytest.raises(RegistrationError):
        app.register_tool("odd", lambda: "x", **options)
    async with surviving(app) as (host, _):
        with pytest.raises(RegistrationError):
            kept.update(**options)
        assert await host.names() == ["kept", "fine"]
        assert (kept.title, kept.description, kept.meta) == (None, None, None)
        assert await host.list_changes() == 0


ADDED = {"name": "added", "inputSchema": OBJECT}

BAD_LISTS: dict[str, tuple[Any, int]] = {
    "an object": ([ADDED, object()], 1),
    "nothing": ([None, ADDED], 1),
    "a number": ([5, ADDED], 1),
    "a tool without a name": ([{"inputSchema": OBJECT}, ADDED], 1),
    "a tool that is not Unicode": ([ADDED, {"name": "\ud800", "inputSchema": OBJECT}], 1),
    "a tool that contains itself": ([cyclic_dict(), ADDED], 1),
    "a schema of something else": ([ADDED, {"name": "b", "inputSchema": {"type": "array"}}], 1),
    "a cursor that is no text": ({"tools": [ADDED], "nextCursor": 3}, 1),
}


@pytest.mark.parametrize("what", BAD_LISTS)
async def test_what_on_list_tools_gets_wrong_leaves_the_rest_in_place(what: str) -> None:
    app = App("a", "1")
    returned, problems = BAD_LISTS[what]
    app.on_list_tools = lambda: returned
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine", "added"]
        assert len(errors) == problems


@pytest.mark.parametrize(
    "returned", ["added", 3, object(), {"tools": 3}, {"tools": None}], ids=plain
)
async def test_on_list_tools_that_returns_no_list_fails_the_listing(returned: Any) -> None:
    app = App("a", "1")
    app.on_list_tools = lambda: returned
    async with surviving(app) as (host, errors):
        with pytest.raises(ProtocolError) as error:
            await host.names()
        assert error.value.code == -32603
        assert len(errors) == 1
        app.on_list_tools = None
