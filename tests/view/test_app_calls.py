import asyncio
import threading
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.view.fake_host import hosted
from transom.errors import ProtocolError, ToolError
from transom.types import TextContent, ToolResult
from transom.view.app import App, CallContext


def text(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


class Place(msgspec.Struct):
    city: str
    population: int


async def test_arguments_reach_the_handler_by_keyword_and_its_return_value_is_the_result() -> None:
    app = App("atlas", "1")

    @app.tool
    def find(city: str, population: int = 0) -> Place:
        """Find a city."""
        return Place(city, population)

    async with hosted(app) as host:
        result = await host.call("find", {"city": "Delft", "population": 3})
    assert result["structuredContent"] == {"city": "Delft", "population": 3}
    assert text(result) == '{"city":"Delft","population":3}'
    assert "isError" not in result


@pytest.mark.parametrize("params", [{}, {"arguments": None}, {"arguments": {}}])
async def test_missing_or_null_arguments_are_an_empty_object(params: dict[str, Any]) -> None:
    app = App("a", "1")
    app.register_tool("greet", lambda name="you": f"hello {name}")
    async with hosted(app) as host:
        result = await host.ask("tools/call", {"name": "greet", **params})
    assert text(result) == "hello you"


@pytest.mark.parametrize("arguments", [[], "x", 1, True, [{"a": 1}]])
async def test_arguments_that_are_no_object_are_invalid_params(arguments: Any) -> None:
    app = App("a", "1")
    app.register_tool("greet", lambda: "hello")
    async with hosted(app) as host:
        with pytest.raises(ProtocolError, match="arguments") as error:
            await host.call("greet", arguments)
        assert error.value.code == -32602
        assert text(await host.call("greet")) == "hello"


async def test_bad_arguments_are_an_error_result_that_lists_every_problem_with_its_place() -> None:
    app = App("a", "1")

    @app.tool
    def order(item: str, count: int) -> str:
        return f"{count} {item}"

    async with hosted(app) as host:
        result = await host.call("order", {"count": "three", "colour": "red"})
    assert result["isError"] is True
    lines = text(result).splitlines()
    assert lines[0] == "Invalid arguments for tool order:"
    assert any(line.startswith("- item: ") for line in lines)
    assert "- count: expected integer, got string" in lines
    assert any(line.startswith("- colour: ") for line in lines)


async def test_an_unknown_tool_is_a_json_rpc_error_that_names_it() -> None:
    app = App("a", "1")
    app.register_tool("known", lambda: "x")
    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.call("nope")
    assert (error.value.code, error.value.message) == (-32602, "Tool nope not found")


async def test_params_without_a_name_are_invalid_params() -> None:
    app = App("a", "1")
    app.register_tool("known", lambda: "x")
    async with hosted(app) as host:
        for params in (None, {}, {"name": 3}):
            with pytest.raises(ProtocolError) as error:
                await host.ask("tools/call", params)
            assert error.value.code == -32602
            assert "tools/call" in error.value.message


async def test_a_disabled_tool_is_refused_with_its_reason() -> None:
    app = App("a", "1")
    save = app.register_tool("save", lambda: "saved", enabled=False)
    async with hosted(app) as host:
        assert "save is disabled" in text(await host.call("save"))
        save.disable(reason="nothing to save")
        result = await host.call("save")
        assert result["isError"] is True
        assert text(result) == "Tool save is disabled: nothing to save"
        save.enable()
        assert text(await host.call("save")) == "saved"


async def test_a_tool_error_is_a_result_the_model_can_read() -> None:
    app = App("a", "1")

    @app.tool
    async def pay() -> str:
        raise ToolError("The card was declined")

    async with hosted(app) as host:
        result = await host.call("pay")
    assert result == {
        "content": [{"type": "text", "text": "The card was declined"}],
        "isError": True,
    }


async def test_a_protocol_error_is_answered_as_it_is() -> None:
    app = App("a", "1")

    @app.tool
    def guarded() -> str:
        raise ProtocolError(-32042, "Not today", {"until": "noon"})

    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.call("guarded")
    assert (error.value.code, error.value.message) == (-32042, "Not today")
    assert error.value.data == {"until": "noon"}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("failure", [ValueError("secret"), SystemExit(3), KeyboardInterrupt("x")])
async def test_anything_else_a_handler_raises_is_reported_and_its_text_stays_here(
    failure: BaseException, is_async: bool
) -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append

    def broken() -> str:
        raise failure

    async def broken_later() -> str:
        raise failure

    app.register_tool("broken", broken_later if is_async else broken)
    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.call("broken")
        assert (error.value.code, error.value.message) == (-32603, "Tool broken failed")
        assert error.value.data is None
        assert errors == [failure]
        assert await host.names() == ["broken"]


async def test_a_result_is_checked_against_the_output_schema() -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    app.register_tool(
        "measure",
        lambda: {"metres": "many"},
        output_schema={
            "type": "object",
            "properties": {"metres": {"type": "number"}},
            "required": ["metres"],
        },
    )
    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.call("measure")
    assert error.value.code == -32603
    assert "metres" in str(errors[0])


async def test_an_error_result_is_not_checked_against_the_output_schema() -> None:
    app = App("a", "1")

    @app.tool
    def find() -> Place:
        return ToolResult(  # type: ignore[return-value]
            content=[TextContent("no such place")],
            structured_content={"asked": "Atlantis"},
            is_error=True,
        )

    async with hosted(app) as host:
        result = await host.call("find")
    assert result["structuredContent"] == {"asked": "Atlantis"}


async def test_a_non_object_output_is_wrapped_in_schema_and_value_alike() -> None:
    app = App("a", "1")

    @app.tool
    def primes() -> list[int]:
        return [2, 3, 5]

    async with hosted(app) as host:
        (tool,) = await host.list_tools()
        assert tool["outputSchema"]["properties"]["result"]["type"] == "array"
        assert tool["outputSchema"]["required"] == ["result"]
        result = await host.call("primes")
    assert result["structuredContent"] == {"result": [2, 3, 5]}


async def test_the_handlers_own_object_is_never_changed() -> None:
    app = App("a", "1")
    mine = {"city": "Delft", "population": 1, "more": [1]}
    app.register_tool("find", lambda: mine, output_schema=dict[str, Any])
    async with hosted(app) as host:
        result = await host.call("find")
    assert mine == {"city": "Delft", "population": 1, "more": [1]}
    assert result["structuredContent"] == mine


@pytest.mark.parametrize("value", [object(), {"f": print}, {1, object()}])
async def test_a_result_that_cannot_be_sent_is_an_error_and_the_app_goes_on(value: Any) -> None:
    app = App("a", "1")
    errors: list[BaseException] = []
    app.on_error = errors.append
    app.register_tool("odd", lambda: value)
    app.register_tool("fine", lambda: "fine")
    async with hosted(app) as host:
        with pytest.raises(ProtocolError) as error:
            await host.call("odd")
        assert error.value.code == -32603
        assert len(errors) == 1
        assert text(await host.call("fine")) == "fine"


async def test_returning_nothing_is_a_result_with_readable_content() -> None:
    app = App("a", "1")
    app.register_tool("quiet", lambda: None)
    async with hosted(app) as host:
        assert text(await host.call("quiet"))


async def test_a_model_class_given_as_the_input_schema_arrives_as_one_instance() -> None:
    app = App("a", "1")

    @dataclass
    class Query:
        words: list[str]
        limit: int = 10

    got: list[Query] = []
    app.register_tool("search", got.append, input_schema=Query)
    async with hosted(app) as host:
        await host.call("search", {"words": ["a"]})
        result = await host.call("search", {"words": "a"})
    assert got == [Query(["a"], 10)]
    assert result["isError"] is True


async def test_a_handler_that_a_dict_schema_does_not_fit_gets_a_readable_problem() -> None:
    app = App("a", "1")
    app.register_tool("f", lambda a: a, input_schema={"type": "object"})
    async with hosted(app) as host:
        result = await host.call("f", {"b": 1})
    assert result["isError"] is True
    assert "- a: is required" in text(result)
    assert "- b: unexpected argument" in text(result)


async def test_odd_argument_names_are_just_names() -> None:
    app = App("a", "1")
    app.register_tool("all", lambda **them: sorted(them))
    names = {"__proto__": 1, "constructor": 2, "__class__": 3, "self": 4, "name": 5, "": 6}
    async with hosted(app) as host:
        result = await host.call("all", names)
    assert result["structuredContent"] == {"result": sorted(names)}


async def test_calls_run_side_by_side_and_may_end_out_of_order() -> None:
    app = App("a", "1")
    gates = {"first": asyncio.Event(), "second": asyncio.Event()}

    @app.tool
    async def wait(which: str) -> str:
        await gates[which].wait()
        return which

    async with hosted(app) as host:
        first = asyncio.ensure_future(host.call("wait", {"which": "first"}))
        second = asyncio.ensure_future(host.call("wait", {"which": "second"}))
        gates["second"].set()
        assert text(await second) == "second"
        assert not first.done()
        gates["first"].set()
        assert text(await first) == "first"


async def test_a_tool_removed_or_disabled_while_it_runs_completes_its_call() -> None:
    app = App("a", "1")
    started, gate = asyncio.Event(), asyncio.Event()

    @app.tool
    async def slow() -> str:
        started.set()
        await gate.wait()
        return "done"

    async with hosted(app) as host:
        running = asyncio.ensure_future(host.call("slow"))
        await started.wait()
        slow.disable()
        slow.remove()
        gate.set()
        assert text(await running) == "done"
        with pytest.raises(ProtocolError, match="not found"):
            await host.call("slow")


async def test_cancelling_a_call_stops_the_coroutine() -> None:
    app = App("a", "1")
    started, stopped = asyncio.Event(), asyncio.Event()
    seen: list[CallContext] = []

    @app.tool
    async def endless(ctx: CallContext) -> str:
        seen.append(ctx)
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return "never"

    async with hosted(app) as host:
        running = asyncio.ensure_future(host.call("endless"))
        await started.wait()
        running.cancel()
        await stopped.wait()
        await host.settled()
        assert seen[0].cancelled
        assert host.problems == []


async def test_progress_and_log_reach_the_host_from_sync_async_and_threads() -> None:
    app = App("a", "1")

    def step(ctx: CallContext) -> str:
        ctx.progress(1, 2, "half")
        ctx.log("info", {"at": 1})
        return "ok"

    async def step_later(ctx: CallContext) -> str:
        await ctx.progress(1, 2, "half")
        await ctx.log("info", {"at": 1})
        return "ok"

    app.register_tool("sync", step)
    app.register_tool("later", step_later)
    app.register_tool("thread", step, thread=True)
    async with hosted(app) as host:
        for number, name in enumerate(("sync", "later", "thread"), 1):
            notices: list[Any] = []
            assert text(await host.call(name, {}, on_progress=notices.append)) == "ok"
            assert [(n.progress, n.total, n.message) for n in notices] == [(1, 2, "half")]
            logs = await host.heard("notifications/message", number)
            assert logs[-1] == {"level": "info", "data": {"at": 1}, "logger": name}


async def test_progress_without_a_token_is_not_sent() -> None:
    app = App("a", "1")

    @app.tool
    def step(ctx: CallContext) -> str:
        ctx.progress(1)
        return "ok"

    async with hosted(app) as host:
        await host.call("step")
        await host.settled()
        assert host.told("notifications/progress") == []
        assert host.problems == []


async def test_a_threaded_handler_leaves_the_event_loop_free() -> None:
    app = App("a", "1")
    gate = threading.Event()
    app.register_tool("block", lambda: gate.wait(30) and "free", thread=True)
    app.register_tool("quick", lambda: "quick")
    async with hosted(app) as host:
        blocked = asyncio.ensure_future(host.call("block"))
        assert text(await host.call("quick")) == "quick"
        assert not blocked.done()
        gate.set()
        assert text(await blocked) == "free"


async def test_a_threaded_handler_learns_that_it_was_cancelled() -> None:
    app = App("a", "1")
    started, ended = threading.Event(), threading.Event()
    outcomes: list[str] = []

    @app.tool(thread=True)
    def work(ctx: CallContext) -> str:
        started.set()
        while not ctx.cancelled:
            ended.wait(0.001)
        with pytest.raises(asyncio.CancelledError):
            ctx.raise_if_cancelled()
        outcomes.append("stopped")
        ended.set()
        return ""

    async with hosted(app) as host:
        running = asyncio.ensure_future(host.call("work"))
        await asyncio.to_thread(started.wait)
        running.cancel()
        assert await asyncio.to_thread(ended.wait, 30)
    assert outcomes == ["stopped"]


async def test_a_tool_may_call_the_server_while_it_runs() -> None:
    app = App("a", "1")

    @app.tool
    async def relay(ctx: CallContext) -> str:
        result = await ctx.app.call_server_tool("lookup", {"q": "x"})
        return f"server said {result.content[0].text}"  # type: ignore[union-attr]

    answer = {"content": [{"type": "text", "text": "42"}]}
    async with hosted(app, tools__call=answer) as host:
        assert text(await host.call("relay")) == "server said 42"


async def test_registering_in_a_handler_works_and_is_told() -> None:
    app = App("a", "1")

    @app.tool
    def grow() -> str:
        app.register_tool("grown", lambda: "new")
        return "ok"

    async with hosted(app) as host:
        await host.call("grow")
        assert await host.list_changes() == 1
        assert text(await host.call("grown")) == "new"


async def test_closing_inside_a_handler_ends_the_connection_cleanly() -> None:
    app = App("a", "1")

    @app.tool
    async def quit_now() -> str:
        await app.close()
        return "gone"

    async with hosted(app) as host:
        with pytest.raises(Exception, match="closed"):
            await host.call("quit_now")
        assert not app.connected


async def test_closing_cancels_calls_that_run_and_answers_them() -> None:
    app = App("a", "1")
    started = asyncio.Event()

    @app.tool
    async def endless() -> str:
        started.set()
        await asyncio.Event().wait()
        return ""

    async with hosted(app) as host:
        running = asyncio.ensure_future(host.call("endless"))
        await started.wait()
        await app.close()
        with pytest.raises(ProtocolError, match="cancelled"):
            await running


async def test_a_registered_tool_stays_callable_as_the_function_it_wraps() -> None:
    app = App("a", "1")

    @app.tool
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8
    assert double.name == "double"
