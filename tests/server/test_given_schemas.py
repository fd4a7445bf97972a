"""Tools whose schemas and results are given as on the wire, on both frameworks."""

from __future__ import annotations

import json
from typing import Any

import fastmcp
import msgspec
import pydantic
import pytest
from mcp.server.mcpserver import Context, MCPServer

from tests.server import clients
from tests.server.clients import ERAS, FRAMEWORKS, SHOWS_VIEWS
from transom.errors import RegistrationError
from transom.server import Views, register_app_tool

every_framework = pytest.mark.parametrize("framework", FRAMEWORKS)
QUERY = {"type": "object", "properties": {"query": {"type": "string"}}, "required": ["query"]}


def bare(framework: str) -> Any:
    return MCPServer("x", log_level="CRITICAL") if framework == "official" else fastmcp.FastMCP("x")


class Note(msgspec.Struct):
    content: list[dict[str, str]]


async def called(
    server: Any, name: str, arguments: dict[str, Any] | None = None, era: str = ERAS[0]
) -> Any:
    async with clients.memory_client(server, SHOWS_VIEWS, era) as client:
        return await clients.call(client, name, arguments or {})


async def listed(server: Any, name: str) -> dict[str, Any]:
    async with clients.memory_client(server, SHOWS_VIEWS) as client:
        return (await clients.tools_of(client))[name]


def texts(result: Any) -> list[str]:
    return [block.text for block in result.content]


# --- the document's sample ----------------------------------------------------------------------


async def search_orders(query: str) -> dict[str, Any]:
    return {"orders": [{"id": query, "status": "open"}]}


@every_framework
@pytest.mark.parametrize("era", ERAS)
async def test_the_sample_of_the_document_answers_what_it_returns(framework: str, era: str) -> None:
    server = bare(framework)

    async def refresh(query):
        result = await search_orders(query)
        return {
            "content": [{"type": "text", "text": json.dumps(result)}],
            "structuredContent": result,
        }

    register_app_tool(
        server,
        "refresh-orders",
        refresh,
        description="Refresh order data for the app UI.",
        input_schema=QUERY,
        meta={"ui": {"visibility": ["app"]}},
    )
    tool = await listed(server, "refresh-orders")
    assert tool["inputSchema"] == QUERY
    assert tool["_meta"]["ui"] == {"visibility": ["app"]}
    result = await called(server, "refresh-orders", {"query": "7"}, era)
    data = {"orders": [{"id": "7", "status": "open"}]}
    assert result.structured_content == data
    assert [json.loads(text) for text in texts(result)] == [data]


# --- results in wire form -----------------------------------------------------------------------


@every_framework
async def test_a_result_in_wire_form_may_be_an_error_and_have_meta(framework: str) -> None:
    server = bare(framework)

    def refuse() -> Any:
        """Refuse."""
        content = [{"type": "text", "text": "closed"}]
        return {"content": content, "isError": True, "_meta": {"mine": 1}}

    register_app_tool(server, "refuse", refuse)
    result = await called(server, "refuse")
    assert (texts(result), result.is_error, result.meta["mine"]) == (["closed"], True, 1)
    assert result.structured_content is None


@every_framework
async def test_structured_content_alone_gets_its_text(framework: str) -> None:
    server = bare(framework)
    register_app_tool(
        server, "count", lambda: {"structuredContent": {"n": 3}}, description="Count."
    )
    result = await called(server, "count")
    assert result.structured_content == {"n": 3}
    assert [json.loads(text) for text in texts(result)] == [{"n": 3}]


@every_framework
async def test_data_that_has_a_key_named_content_stays_data(framework: str) -> None:
    server = bare(framework)
    page = {"content": "Once upon a time", "title": "A story"}
    register_app_tool(server, "read", lambda: page, description="Read.")
    assert (await called(server, "read")).structured_content == page

    def note() -> Note:
        """Read a note."""
        return {"content": [{"type": "text", "text": "x"}]}  # type: ignore[return-value]

    register_app_tool(server, "note", note)
    expected = {"content": [{"type": "text", "text": "x"}]}
    assert (await called(server, "note")).structured_content == expected


@every_framework
async def test_a_wire_result_is_held_to_the_output_schema(framework: str) -> None:
    views, server = Views(), bare(framework)
    page = views.add("ui://x/y.html", html="<!doctype html><p>")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}

    @views.tool(opens=page, output_schema=schema)
    def count(n: Any) -> Any:
        """Count."""
        return {"content": [], "structuredContent": {"n": n}}

    views.install(server)
    assert (await listed(server, "count"))["outputSchema"] == schema
    assert (await called(server, "count", {"n": 3})).structured_content == {"n": 3}
    assert (await called(server, "count", {"n": "three"})).is_error


# --- schemas ------------------------------------------------------------------------------------


@every_framework
async def test_arguments_are_held_to_the_whole_schema_and_defaults_are_filled_in(
    framework: str,
) -> None:
    server = bare(framework)
    schema = {
        "type": "object",
        "properties": {
            "kind": {"enum": ["open", "paid"]},
            "limit": {"type": "integer", "default": 10},
            "note": {"type": ["string", "null"]},
            "raw": {"type": "string"},
        },
        "required": ["kind"],
        "additionalProperties": False,
        "dependentRequired": {"note": ["raw"]},
    }

    def show(kind: str, limit: int, note: str | None = "none given", raw: str = "") -> Any:
        """Show orders."""
        return {"kind": kind, "limit": limit, "note": note, "raw": raw}

    register_app_tool(server, "show", show, input_schema=schema)
    assert (await listed(server, "show"))["inputSchema"] == schema
    result = await called(server, "show", {"kind": "open"})
    expected = {"kind": "open", "limit": 10, "note": "none given", "raw": ""}
    assert result.structured_content == expected
    # A text that looks like JSON stays text, and null is not the same as left out.
    result = await called(server, "show", {"kind": "paid", "note": None, "raw": "[1]"})
    assert result.structured_content == {"kind": "paid", "limit": 10, "note": None, "raw": "[1]"}
    for wrong in ({"kind": "lost"}, {"kind": "open", "note": "x"}, {"kind": "open", "limit": "x"}):
        result = await called(server, "show", wrong)
        assert result.is_error
        assert texts(result)[0].startswith("Invalid arguments for tool show:\n- ")


@every_framework
async def test_a_class_gives_the_function_one_object_beside_the_context(framework: str) -> None:
    class Query(msgspec.Struct):
        text: str
        limit: int = 5

    class Model(pydantic.BaseModel):
        text: str

    context = Context if framework == "official" else fastmcp.Context
    server = bare(framework)

    def find(ctx, query) -> Any:
        """Find orders."""
        assert ctx.request_id
        return {"found": f"{type(query).__name__} {query}"}

    find.__annotations__ |= {"ctx": context, "query": Query}
    register_app_tool(server, "find", find, input_schema=Query)
    tool = await listed(server, "find")
    assert set(tool["inputSchema"]["properties"]) == {"text", "limit"}
    result = await called(server, "find", {"text": "pens"})
    assert result.structured_content == {"found": "Query Query(text='pens', limit=5)"}
    assert (await called(server, "find", {"text": 5})).is_error

    register_app_tool(
        server, "see", lambda one: {"found": one.text}, description="See.", input_schema=Model
    )
    assert (await called(server, "see", {"text": "pens"})).structured_content == {"found": "pens"}


@every_framework
async def test_a_function_that_takes_any_keyword_gets_the_properties(framework: str) -> None:
    server = bare(framework)
    register_app_tool(server, "any", lambda **given: given, description="Take.", input_schema=QUERY)
    assert (await called(server, "any", {"query": "x"})).structured_content == {"query": "x"}


@every_framework
async def test_views_and_helpers_take_schemas_too(framework: str) -> None:
    views = Views()
    page = views.add("ui://x/y.html", html="<!doctype html><p>")

    @views.tool(opens=page, input_schema=QUERY, output_schema={"type": "object"})
    def show(query: str) -> Any:
        """Show orders."""
        return {"query": query}

    @views.helper(input_schema=QUERY)
    def refresh(query: str) -> Any:
        """Search again."""
        return {"query": query}

    if framework == "official":
        server = MCPServer("x", extensions=[views], log_level="CRITICAL")
    else:
        server = bare(framework)
        views.install(server)
    for name in ("show", "refresh"):
        assert (await listed(server, name))["inputSchema"] == QUERY
        assert (await called(server, name, {"query": "x"})).structured_content == {"query": "x"}


@pytest.mark.parametrize(
    ("handler", "schema", "problem"),
    [
        (lambda query: "", lambda: QUERY, "not a function"),
        (lambda query: "", {"type": "array"}, "input_schema: "),
        (lambda: "", QUERY, "has query, but the function has no such parameter"),
        (
            lambda query: "",
            {"type": "object", "properties": {"query": {}}},
            "Give the parameter a default",
        ),
        (lambda **_: "", {"type": "object", "properties": {"order-id": {}}}, "'order-id'"),
        (lambda: "", pydantic.create_model("M", a=(int, ...)), "one object"),
    ],
)
def test_an_input_schema_that_does_not_fit_the_function_is_refused(
    handler: Any, schema: Any, problem: str
) -> None:
    server = bare("official")
    with pytest.raises(RegistrationError, match=problem):
        register_app_tool(server, "t", handler, description="Try.", input_schema=schema)


def test_an_output_schema_that_cannot_be_used_is_refused() -> None:
    with pytest.raises(RegistrationError, match="tool t: output_schema: "):
        register_app_tool(
            bare("official"), "t", lambda: "", description="Try.", output_schema={"type": 5}
        )
