"""Listing and calling a View's tools from its host."""

import asyncio
from types import MappingProxyType
from typing import Any

import pytest

from tests.host.bare_view import begun, joined, ready, text, tool
from transom import Limits
from transom.errors import (
    InvalidResult,
    NotConnected,
    ProtocolError,
    RequestTimeout,
)
from transom.protocol.peer import Progress
from transom.types import Task, TextContent, Tool, ToolAnnotations

WORKING = {"taskId": "t1", "status": "working", "ttl": 1000}


def pages(*contents: list[Any]) -> Any:
    """An answer to `tools/list` in pages, with the cursors "1", "2", ..."""

    def answer(params: dict[str, Any]) -> dict[str, Any]:
        page = int(params.get("cursor", 0))
        more = {"nextCursor": str(page + 1)} if page + 1 < len(contents) else {}
        return {"tools": contents[page], **more}

    return answer


def names(tools: list[Tool]) -> list[str]:
    return [entry.name for entry in tools]


# --- listing ---------------------------------------------------------------------------------


async def test_listing_follows_every_page():
    listing = pages([tool("a"), tool("b")], [], [tool("c")])
    async with ready(answers={"tools/list": listing}) as (bridge, view, _):
        assert names(await bridge.list_tools()) == ["a", "b", "c"]
        assert [params for _, params in view.requests] == [{}, {"cursor": "1"}, {"cursor": "2"}]


async def test_a_definition_keeps_what_we_know_and_drops_what_we_do_not():
    definition = tool(
        "a",
        title="A",
        description="does a",
        outputSchema={"type": "object"},
        annotations={"readOnlyHint": True, "moodHint": 7},
        execution={"taskSupport": "optional"},
        _meta={"ui": {"visibility": ["app"]}},
        colour="red",
    )
    async with ready(answers={"tools/list": {"tools": [definition]}}) as (bridge, _, _):
        [found] = await bridge.list_tools()
        assert found.annotations == ToolAnnotations(read_only_hint=True)
        assert found.visibility == ("app",)
        assert found.execution is not None
        assert found.execution.task_support == "optional"


async def test_a_null_cursor_ends_the_list():
    answer = {"tools": [tool("a")], "nextCursor": None}
    async with ready(answers={"tools/list": answer}) as (bridge, _, errors):
        assert names(await bridge.list_tools()) == ["a"]
        assert errors == []


@pytest.mark.parametrize(
    ("bad", "name", "reason"),
    [
        ({"inputSchema": {"type": "object"}}, "tool 2", "missing required field `name`"),
        (
            {"name": "x", "inputSchema": {"type": "string"}},
            "x",
            "input schema is not of type object",
        ),
        ({"name": "x", "inputSchema": {}}, "x", "input schema is not of type object"),
        (tool("x", outputSchema={"type": "array"}), "x", "output schema is not of type object"),
        (tool(""), "tool 2", "a name has 1 to 128 printable characters"),
        (tool("n" * 129), "n" * 128, "a name has 1 to 128 printable characters"),
        (tool("two\nlines"), "tool 2", "a name has 1 to 128 printable characters"),
        (tool("x", description=["no", "text"]), "tool 2", "description: Expected `str | null`"),
        ("just text", "tool 2", "Expected `object`, got `str`"),
        (tool("x", description="d" * 70000), "x", "bytes is over the limit of 65536"),
        (tool("first"), "first", "listed twice; the first counts"),
    ],
)
async def test_one_bad_definition_is_left_out_and_reported_and_the_others_stay(
    bad: Any, name: str, reason: str
):
    answer = {"tools": [tool("first"), bad, tool("last")]}
    async with ready(answers={"tools/list": answer}) as (bridge, _, errors):
        assert names(await bridge.list_tools()) == ["first", "last"]
        assert list(bridge.left_out) == [name]
        assert reason in bridge.left_out[name]
        assert errors == [f"PeerError: tools/list: {name} left out: {bridge.left_out[name]}"]


async def test_a_definition_left_out_is_reported_once_and_forgotten_when_mended():
    listing = {"tools": [tool("x", outputSchema={"type": "array"})]}
    async with ready(answers={"tools/list": listing}) as (bridge, view, errors):
        await bridge.list_tools()
        await bridge.list_tools()
        assert len(errors) == 1
        view.answers["tools/list"] = {"tools": [tool("x")]}
        assert names(await bridge.list_tools()) == ["x"]
        assert bridge.left_out == {}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"x": schema}}
    return schema


async def test_schemas_are_only_so_deep():
    answer = {
        "tools": [
            {"name": "ok", "inputSchema": nested(4)},
            {"name": "deep", "inputSchema": nested(6)},
            tool("meta", _meta=nested(6)),
        ]
    }
    limits = Limits(max_schema_depth=10)
    async with ready(answers={"tools/list": answer}, limits=limits) as (bridge, _, _):
        assert names(await bridge.list_tools()) == ["ok"]
        assert bridge.left_out == {
            "deep": "its input schema is nested deeper than 10 (max_schema_depth)",
            "meta": "its metadata is nested deeper than 10 (max_schema_depth)",
        }


async def test_long_descriptions_are_cut():
    answer = {"tools": [tool("a", description="d" * 500, title="t" * 500)]}
    limits = Limits(max_description=100)
    async with ready(answers={"tools/list": answer}, limits=limits) as (bridge, _, _):
        [found] = await bridge.list_tools()
        assert found.description == "d" * 100 + "… (cut)"
        assert found.title == "t" * 256 + "…"


async def test_only_so_many_tools_are_taken():
    listing = pages([tool(f"a{n}") for n in range(40)], [tool(f"b{n}") for n in range(40)])
    async with ready(answers={"tools/list": listing}) as (bridge, _, errors):
        found = await bridge.list_tools()
        assert len(found) == 50
        assert names(found)[-1] == "b9"
        text = "PeerError: tools/list: the View has more than 50 tools (max_tools)"
        assert errors == [f"{text}: 30 left out"]


async def test_exactly_as_many_tools_as_allowed_are_no_problem():
    answer = {"tools": [tool(f"t{n}") for n in range(50)]}
    async with ready(answers={"tools/list": answer}) as (bridge, _, errors):
        assert len(await bridge.list_tools()) == 50
        assert errors == []


async def test_a_list_that_goes_round_in_circles_ends():
    answer = {"tools": [tool("a")], "nextCursor": "again"}
    async with ready(answers={"tools/list": answer}) as (bridge, view, errors):
        assert names(await bridge.list_tools()) == ["a"]
        assert len(view.requests) == 2
        assert "repeats a cursor" in errors[-1]


async def test_a_list_without_end_ends():
    def endless(params: dict[str, Any]) -> dict[str, Any]:
        page = int(params.get("cursor", 0)) + 1
        return {"tools": [], "nextCursor": str(page)}

    limits = Limits(max_pages=7)
    async with ready(answers={"tools/list": endless}, limits=limits) as (bridge, view, errors):
        assert await bridge.list_tools() == []
        assert len(view.requests) == 7
        assert errors == ["PeerError: tools/list: the View's list has more than 7 pages"]


async def test_all_pages_together_have_one_time_limit():
    asked: list[object] = []

    async def trickle(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params)
        await asyncio.sleep(0.02)  # each page takes less than all of them may take
        return {"tools": [], "nextCursor": str(len(asked))}

    async with ready(answers={"tools/list": trickle}) as (bridge, _, _):
        with pytest.raises(RequestTimeout, match="tools/list: no answer"):
            await bridge.list_tools(timeout=0.1)


@pytest.mark.parametrize("answer", [{}, {"tools": {}}, {"tools": [], "nextCursor": 5}])
async def test_an_answer_that_is_no_list_of_tools_is_an_invalid_result(answer: Any):
    async with ready(answers={"tools/list": answer}) as (bridge, _, _):
        with pytest.raises(InvalidResult, match="Invalid result for tools/list"):
            await bridge.list_tools()


async def test_a_definition_that_did_not_change_is_the_same_object():
    listing = {"tools": [tool("a"), tool("b")]}
    async with ready(answers={"tools/list": listing}) as (bridge, view, _):
        first = await bridge.list_tools()
        view.answers["tools/list"] = {"tools": [tool("b", description="new"), tool("a")]}
        second = await bridge.list_tools()
        assert second[1] is first[0]
        assert second[0].description == "new"


async def test_the_same_listing_again_is_the_same_whatever_became_of_the_first():
    unusable = tool("x", outputSchema={"type": "array"})
    async with ready(answers={"tools/list": {"tools": [tool("a"), unusable]}}) as (bridge, view, _):
        first = await bridge.list_tools()
        first.clear()
        assert names(await bridge.list_tools()) == ["a"]
        assert list(bridge.left_out) == ["x"]
        view.answers["tools/list"] = {"tools": []}
        assert await bridge.list_tools() == []
        assert bridge.left_out == {}


async def test_a_listing_with_the_same_first_page_is_read_to_its_end():
    listing = pages([tool("a")], [tool("b")])
    async with ready(answers={"tools/list": listing}) as (bridge, view, _):
        assert names(await bridge.list_tools()) == ["a", "b"]
        view.answers["tools/list"] = pages([tool("a")], [tool("c")])
        assert names(await bridge.list_tools()) == ["a", "c"]
        view.answers["tools/list"] = pages([tool("a")])
        assert names(await bridge.list_tools()) == ["a"]
        view.answers["tools/list"] = pages([tool("a")], [tool("d")])
        assert names(await bridge.list_tools()) == ["a", "d"]


async def test_two_listings_at_once_do_not_mix():
    listing = pages([tool("a")], [tool("b")])
    async with ready(answers={"tools/list": listing}) as (bridge, _, errors):
        both = await asyncio.gather(bridge.list_tools(), bridge.list_tools())
        assert [names(found) for found in both] == [["a", "b"], ["a", "b"]]
        assert errors == []


# --- calling ---------------------------------------------------------------------------------


async def test_a_call_brings_its_result():
    answer = {
        "content": [{"type": "text", "text": "3"}],
        "structuredContent": {"sum": 3},
        "_meta": {"k": 1},
        "extraKey": [1],
    }
    async with ready(answers={"tools/call": answer}) as (bridge, view, _):
        result = await bridge.call_tool("add", {"a": 1, "b": 2})
        assert result.content == [TextContent("3")]
        assert result.structured_content == {"sum": 3}
        assert result.meta == {"k": 1}
        assert result.extra == {"extraKey": [1]}
        assert not result.is_error
        assert view.requests == [("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}})]


async def test_arguments_are_left_out_when_not_given_and_may_be_any_mapping():
    async with ready() as (bridge, view, _):
        await bridge.call_tool("a")
        await bridge.call_tool("a", MappingProxyType({"x": None}))
        assert view.requests == [
            ("tools/call", {"name": "a"}),
            ("tools/call", {"name": "a", "arguments": {"x": None}}),
        ]


async def test_arguments_that_are_not_json_are_refused_before_anything_is_sent():
    async with ready() as (bridge, view, _):
        with pytest.raises(TypeError, match="unsupported"):
            await bridge.call_tool("a", {"x": object()})
        assert view.requests == []
        await bridge.call_tool("a")


async def test_a_tool_that_says_no_is_a_result_not_an_exception():
    async with ready(answers={"tools/call": {**text("no"), "isError": True}}) as (bridge, _, _):
        result = await bridge.call_tool("a")
        assert result.is_error
        assert result.text == "no"


async def test_missing_content_is_empty_content():
    async with ready(answers={"tools/call": {"structuredContent": {}}}) as (bridge, _, _):
        assert (await bridge.call_tool("a")).content == []


@pytest.mark.parametrize(
    "answer",
    [
        {"content": "words"},
        {"content": [{"type": "hologram"}]},
        {"content": [], "structuredContent": [1]},
        {"content": [], "isError": "yes"},
    ],
)
async def test_an_answer_that_is_no_result_is_an_invalid_result(answer: Any):
    async with ready(answers={"tools/call": answer}) as (bridge, _, _):
        with pytest.raises(InvalidResult, match="Invalid result for tools/call"):
            await bridge.call_tool("a")
        view_lives = await bridge.list_tools()
        assert len(view_lives) == 1


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (-32601, "Method not found"),
        (-32602, "Tool x not found"),
        (-32603, "MCP error -32603: broken"),
        (-32002, "resource"),
        (418, "teapot"),
    ],
)
async def test_a_views_error_keeps_its_code_message_and_data(code: int, message: str):
    error = ProtocolError(code, message, {"why": 1})
    async with ready(answers={"tools/call": error}) as (bridge, _, _):
        with pytest.raises(ProtocolError) as raised:
            await bridge.call_tool("a")
        assert (raised.value.code, raised.value.message, raised.value.data) == (
            code,
            message,
            {"why": 1},
        )


async def test_a_result_over_the_limit_is_refused():
    async with ready(
        answers={"tools/call": text("x" * 2000)}, limits=Limits(max_result_bytes=1000)
    ) as (bridge, view, _):
        with pytest.raises(InvalidResult, match="big: a result of 20.. bytes is over the limit of"):
            await bridge.call_tool("big")
        view.answers["tools/call"] = text("small")
        assert (await bridge.call_tool("big")).text == "small"


async def test_a_call_that_takes_too_long_is_a_timeout_and_the_view_is_told_to_stop():
    async with ready(limits=Limits(call_timeout=0.5)) as (bridge, view, _):
        stopped = asyncio.Event()

        async def dawdle(_: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        view.answers["tools/call"] = dawdle
        with pytest.raises(RequestTimeout, match=r"tools/call: no answer within 0.5 s"):
            await bridge.call_tool("slow")
        await stopped.wait()
        with pytest.raises(RequestTimeout, match=r"within 0.01 s"):
            await bridge.call_tool("slow", timeout=0.01)


async def test_cancelling_a_call_tells_the_view_to_stop():
    async with ready() as (bridge, view, _):
        stopped = asyncio.Event()

        async def dawdle(_: Any) -> None:
            try:
                await asyncio.Event().wait()
            finally:
                stopped.set()

        view.answers["tools/call"] = dawdle
        call = await begun(bridge.call_tool("slow"))
        await view.asked("tools/call")
        call.cancel()
        await stopped.wait()
        with pytest.raises(asyncio.CancelledError):
            await call


async def test_progress_reaches_the_caller_and_buys_time():
    async with ready() as (bridge, view, _):
        steps: list[Progress] = []
        seen = asyncio.Event()

        async def in_steps(params: dict[str, Any]) -> dict[str, Any]:
            token = params["_meta"]["progressToken"]
            for step in (1, 2):
                notice = {"progressToken": token, "progress": step, "total": 2, "message": "on"}
                await view.tell("notifications/progress", notice)
            await seen.wait()
            return text("done")

        def on_progress(progress: Progress) -> None:
            steps.append(progress)
            if len(steps) == 2:
                seen.set()

        view.answers["tools/call"] = in_steps
        result = await bridge.call_tool("slow", {"n": 1}, on_progress=on_progress)
        assert result.text == "done"
        assert [(s.progress, s.total, s.message) for s in steps] == [(1, 2, "on"), (2, 2, "on")]
        assert view.requests[0][1]["arguments"] == {"n": 1}


async def test_a_call_without_on_progress_asks_for_none():
    async with ready() as (bridge, view, _):
        await bridge.call_tool("a")
        assert "_meta" not in view.requests[0][1]


async def test_a_view_cannot_claim_progress_for_ever():
    limits = Limits(call_timeout=0.02, max_call_time=0.08)
    async with ready(limits=limits) as (bridge, view, _):

        async def claim(params: dict[str, Any]) -> None:
            notice = {"progressToken": params["_meta"]["progressToken"], "progress": 1}
            while True:
                await view.tell("notifications/progress", notice)
                await asyncio.sleep(0)

        view.answers["tools/call"] = claim
        with pytest.raises(RequestTimeout, match=r"no answer within 0.08 s"):
            await bridge.call_tool("slow", on_progress=lambda progress: None)


async def test_the_wait_for_the_view_counts_towards_the_calls_time():
    async with joined() as (bridge, view, _):
        view.answers["tools/call"] = lambda _: asyncio.Event().wait()
        call = await begun(bridge.call_tool("a", timeout=1))
        await view.be_ready()
        with pytest.raises(RequestTimeout) as late:
            await call
        left = float(str(late.value).removeprefix("tools/call: no answer within ").rstrip(" s"))
        assert left < 1


async def test_ids_count_up_whatever_the_other_direction_does():
    async with ready() as (bridge, view, _):
        seen: list[Any] = []
        serve = view.session._incoming._on_request

        def note(request: Any) -> Any:
            seen.append(request.id)
            return serve(request)

        view.session._incoming._on_request = note
        await bridge.ping()
        await view.ask("ping")
        await bridge.call_tool("a")
        assert seen == [1, 2]


async def test_a_ping_that_is_not_answered_is_a_timeout():
    async with ready(answers={"ping": lambda _: asyncio.Event().wait()}) as (bridge, _, _):
        with pytest.raises(RequestTimeout, match="ping"):
            await bridge.ping(timeout=0.01)


# --- news ------------------------------------------------------------------------------------


async def test_a_views_list_changed_reaches_the_host():
    changed = asyncio.Event()
    async with ready() as (bridge, view, _):
        bridge.on_tools_changed = changed.set
        await view.tell("notifications/tools/list_changed", {})
        await changed.wait()


async def test_a_flood_of_list_changed_is_one_call_now_and_one_later():
    calls: list[int] = []
    began, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
    async with ready() as (bridge, view, errors):

        @bridge.on_tools_changed
        async def _() -> None:
            calls.append(len(calls))
            began.set()
            await release.wait()
            if len(calls) == 2:
                ended.set()

        for _ in range(1000):
            await view.tell("notifications/tools/list_changed")
        await began.wait()
        assert calls == [0]
        for _ in range(1000):
            await view.tell("notifications/tools/list_changed")
        release.set()
        await ended.wait()
        assert calls == [0, 1]
        assert errors == []


async def test_a_handler_of_list_changed_that_fails_is_reported_and_called_again():
    async with ready() as (bridge, view, errors):

        @bridge.on_tools_changed
        def _() -> None:
            raise RuntimeError("boom")

        await view.tell("notifications/tools/list_changed")
        assert await errors.one_with("boom") == "RuntimeError: boom"
        errors.clear()
        await view.tell("notifications/tools/list_changed")
        await errors.one_with("boom")


async def test_a_handler_of_list_changed_may_list_the_tools():
    found: list[list[str]] = []
    listed = asyncio.Event()
    async with ready() as (bridge, view, _):

        @bridge.on_tools_changed
        async def _() -> None:
            found.append(names(await bridge.list_tools()))
            listed.set()

        await view.tell("notifications/tools/list_changed")
        await listed.wait()
        assert found == [["echo"]]


# --- tasks -----------------------------------------------------------------------------------


async def test_a_call_as_a_task_brings_its_handle():
    async with ready(answers={"tools/call": {"task": WORKING}}) as (bridge, view, _):
        handle = await bridge.start_task("long", {"n": 1}, ttl=1000)
        assert handle == Task("t1", "working", ttl=1000)
        assert view.requests[0][1] == {"name": "long", "arguments": {"n": 1}, "task": {"ttl": 1000}}


async def test_a_view_that_knows_no_tasks_answers_with_the_result():
    async with ready() as (bridge, _, _):
        result = await bridge.start_task("long")
        assert not isinstance(result, Task)
        assert result.text == "called long"


async def test_a_task_that_nobody_asked_for_is_an_invalid_result():
    async with ready(answers={"tools/call": {"task": WORKING}}) as (bridge, _, _):
        with pytest.raises(InvalidResult, match="long: the View answered with a task"):
            await bridge.call_tool("long")


async def test_a_task_handle_that_makes_no_sense_is_an_invalid_result():
    async with ready(answers={"tools/call": {"task": {"status": "dreaming"}}}) as (bridge, _, _):
        with pytest.raises(InvalidResult, match="long: "):
            await bridge.start_task("long")


async def test_call_tool_takes_no_keyword_that_it_does_not_know():
    async with ready() as (bridge, _, _):
        for unknown in ("task", "retries"):
            with pytest.raises(TypeError, match=unknown):
                bridge.call_tool("long", **{unknown: {}})


async def test_tasks_are_asked_after_listed_awaited_and_cancelled():
    answers = {
        "tasks/get": WORKING,
        "tasks/list": {"tasks": [WORKING], "nextCursor": "2"},
        "tasks/result": text("finally"),
        "tasks/cancel": {**WORKING, "status": "cancelled"},
    }
    async with ready(answers=answers) as (bridge, view, _):
        assert (await bridge.get_task("t1")).status == "working"
        listed = await bridge.list_tasks()
        assert [entry.task_id for entry in listed.tasks] == ["t1"]
        assert listed.next_cursor == "2"
        await bridge.list_tasks("2")
        assert (await bridge.task_result("t1")).text == "finally"
        assert (await bridge.cancel_task("t1")).status == "cancelled"
        assert view.requests == [
            ("tasks/get", {"taskId": "t1"}),
            ("tasks/list", {}),
            ("tasks/list", {"cursor": "2"}),
            ("tasks/result", {"taskId": "t1"}),
            ("tasks/cancel", {"taskId": "t1"}),
        ]


async def test_a_view_without_tasks_says_so():
    async with ready() as (bridge, _, _):
        with pytest.raises(ProtocolError, match="Method not found"):
            await bridge.get_task("t1")


async def test_a_tasks_result_over_the_limit_is_refused():
    async with ready(
        answers={"tasks/result": text("x" * 2000)}, limits=Limits(max_result_bytes=1000)
    ) as (bridge, _, _):
        with pytest.raises(InvalidResult, match="tasks/result: a result of 20.. bytes"):
            await bridge.task_result("t1")


async def test_a_call_to_a_closed_view_is_an_error():
    async with ready() as (bridge, view, _):
        await view.session.aclose("page closed")
        await bridge.wait_closed()
        with pytest.raises(NotConnected, match="tools/call: not connected"):
            await bridge.call_tool("a")
