"""Clumsy and hostile authors: each mistake has its outcome, and the App works afterwards."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from tests.ids import plain
from tests.view.fake_host import FakeHost, hosted
from transom.channel import memory_pair
from transom.errors import (
    AlreadyConnected,
    ConnectionClosed,
    ProtocolError,
    RegistrationError,
    RequestTimeout,
    SchemaError,
    ToolError,
)
from transom.types import TextContent, ToolResult
from transom.view.app import App
from transom.view.context import CallContext
from transom.view.tools import RegisteredTool

OBJECT = {"type": "object", "properties": {}}


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@asynccontextmanager
async def surviving(app: App, **answers: Any) -> AsyncIterator[tuple[FakeHost, list[Any]]]:
    """A host of the App and what `on_error` is told; afterwards the App still has to work."""
    errors: list[BaseException] = []
    app.on_error(errors.append)
    app.register_tool("fine", lambda n: n + 1, input_schema={"type": "object"})
    async with hosted(app, **answers) as host:
        yield host, errors
        assert app.connected
        assert (await host.call("fine", {"n": 1}))["structuredContent"] == {"result": 2}
        assert "fine" in await host.names()


def text(result: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in result["content"])


async def refusal(host: FakeHost, name: str, arguments: Any = None) -> ProtocolError:
    with pytest.raises(ProtocolError) as caught:
        await host.call(name, arguments)
    return caught.value


# --- what handlers return --------------------------------------------------------------------


def cyclic_list() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def cyclic_dict() -> dict[str, Any]:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    return cycle


def deep() -> Any:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    return value


def numbers() -> Iterator[int]:
    yield 1


async def numbers_later() -> AsyncIterator[int]:
    yield 1


UNSENDABLE: dict[str, Callable[[], object]] = {
    "a list that contains itself": cyclic_list,
    "a mapping that contains itself": cyclic_dict,
    "a result with a mapping that contains itself": lambda: ToolResult(
        structured_content=cyclic_dict()
    ),
    "a result whose meta contains itself": lambda: ToolResult(meta=cyclic_dict()),
    "something very deep": deep,
    "a lone surrogate": lambda: "\ud800",
    "a lone surrogate in a result": lambda: ToolResult(content=[TextContent("\ud800")]),
    "a lone surrogate inside": lambda: {"a": ["\ud800"]},
    "a generator": numbers,
    "an async generator": numbers_later,
    "a class": lambda: int,
    "a function": lambda: print,
    "a lock": lambda: threading.Lock(),
    "content that is none": lambda: {"content": [{"type": "text", "text": 3}]},
    "a result with extra that is no JSON": lambda: ToolResult(extra={"a": object()}),
    "a mapping with keys that are no text": lambda: {(1, 2): 3},
    "content made of something else": lambda: ToolResult(content=[object()]),  # type: ignore[list-item]
    "structured content that is no object": lambda: ToolResult(structured_content=[1]),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", UNSENDABLE)
async def test_a_result_that_cannot_be_sent_is_an_error_that_on_error_explains(
    what: str, is_async: bool
) -> None:
    app = App("a", "1")
    make = UNSENDABLE[what]

    async def make_later() -> object:
        return make()

    app.register_tool("odd", make_later if is_async else make)
    async with surviving(app) as (host, errors):
        error = await refusal(host, "odd")
        assert (error.code, error.data) == (-32603, None)
        assert error.message == "Tool odd returned something it must not"
        assert len(errors) == 1
        assert str(errors[0])


async def test_a_coroutine_inside_a_result_is_an_error() -> None:
    app = App("a", "1")

    async def forgotten() -> str:
        return "x"

    made: list[Any] = []

    def forgetful() -> dict[str, Any]:
        made.append(forgotten())
        return {"value": made[0]}

    app.register_tool("odd", forgetful)
    async with surviving(app) as (host, errors):
        assert (await refusal(host, "odd")).code == -32603
        assert "coroutine" in str(errors[0])
    made[0].close()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf")])
async def test_numbers_that_json_lacks_are_null_as_in_a_browser(value: float) -> None:
    app = App("a", "1")
    app.register_tool("odd", lambda: {"n": value})
    async with surviving(app) as (host, _):
        assert (await host.call("odd"))["structuredContent"] == {"n": None}


@pytest.mark.parametrize("bits", [53, 64, 1000])
async def test_integers_are_sent_whole(bits: int) -> None:
    app = App("a", "1")
    value = 2**bits + 1
    app.register_tool("odd", lambda: {"n": value})
    async with surviving(app) as (host, _):
        result = await host.call("odd")
        assert result["structuredContent"] == {"n": value}
        assert json.loads(text(result)) == {"n": value}


async def test_an_integer_too_long_to_be_written_is_an_error() -> None:
    app = App("a", "1")
    app.register_tool("odd", lambda: {"n": 10**5000})
    async with surviving(app) as (host, errors):
        assert (await refusal(host, "odd")).code == -32603
        assert "digits" in str(errors[0])


async def test_bytes_are_content() -> None:
    app = App("a", "1")
    app.register_tool("odd", lambda: b"\x00\xff")
    app.register_tool("inside", lambda: {"b": b"\x00\xff"})
    async with surviving(app) as (host, _):
        assert (await host.call("odd"))["content"][0]["resource"]["blob"] == "AP8="
        assert (await host.call("inside"))["structuredContent"] == {"b": "AP8="}


async def test_a_result_is_copied_before_the_handler_can_change_it() -> None:
    app = App("a", "1")
    mine = {"n": 1}

    @app.tool
    def odd() -> dict[str, int]:
        asyncio.get_running_loop().call_soon(mine.update, {"n": 2})
        return mine

    async with surviving(app) as (host, _):
        assert (await host.call("odd"))["structuredContent"] == {"n": 1}


# --- what handlers raise ---------------------------------------------------------------------

RAISED: dict[str, Callable[[], BaseException]] = {
    "BaseException": lambda: BaseException("secret"),
    "SystemExit": lambda: SystemExit(3),
    "KeyboardInterrupt": lambda: KeyboardInterrupt("secret"),
    "GeneratorExit": lambda: GeneratorExit("secret"),
    "StopIteration": lambda: StopIteration("secret"),
    "StopAsyncIteration": lambda: StopAsyncIteration("secret"),
    "CancelledError": lambda: asyncio.CancelledError("secret"),
    "RecursionError": lambda: RecursionError("secret"),
    "MemoryError": lambda: MemoryError("secret"),
    "an exception without a text": Unprintable,
    "ExceptionGroup": lambda: ExceptionGroup("secret", [ValueError("secret")]),
}


@pytest.mark.parametrize("how", ["sync", "async", "async, later", "thread"])
@pytest.mark.parametrize("what", RAISED)
async def test_whatever_a_handler_raises_is_one_error_and_its_text_stays_here(
    what: str, how: str
) -> None:
    app, failure = App("a", "1"), RAISED[what]()

    def broken() -> None:
        raise failure

    async def broken_at_once() -> None:
        raise failure

    async def broken_later() -> None:
        await asyncio.sleep(0)
        raise failure

    handlers = {"async": broken_at_once, "async, later": broken_later}
    app.register_tool("broken", handlers.get(how, broken), thread=how == "thread")
    async with surviving(app) as (host, errors):
        error = await refusal(host, "broken")
        assert (error.code, error.message) == (-32603, "Tool broken failed")
        assert error.data is None
        assert len(errors) == 1


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_error_with_text_that_cannot_be_sent_is_still_a_result(is_async: bool) -> None:
    app = App("a", "1")

    def broken() -> None:
        raise ToolError("no \ud800 way")

    async def broken_later() -> None:
        broken()

    app.register_tool("broken", broken_later if is_async else broken)
    async with surviving(app) as (host, _):
        result = await host.call("broken")
        assert result["isError"] is True
        assert text(result) == "no ? way"


BAD_ERRORS = {
    "data that is no JSON": ProtocolError(-32001, "no", object()),
    "data that contains itself": ProtocolError(-32001, "no", cyclic_dict()),
    "a message that is not Unicode": ProtocolError(-32001, "\ud800"),
    "a code that is no number": ProtocolError("x", "no"),  # type: ignore[arg-type]
    "a message that is no text": ProtocolError(-32001, None),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", BAD_ERRORS)
async def test_a_protocol_error_that_cannot_be_sent_fails_the_call_all_the_same(
    what: str, is_async: bool
) -> None:
    app = App("a", "1")

    def broken() -> None:
        raise BAD_ERRORS[what]

    async def broken_later() -> None:
        broken()

    app.register_tool("broken", broken_later if is_async else broken)
    async with surviving(app) as (host, errors):
        error = await refusal(host, "broken")
        assert error.code == -32603
        assert len(errors) == 1


# --- handlers that never return --------------------------------------------------------------


async def test_a_call_that_never_returns_times_out_at_the_host_and_is_stopped() -> None:
    app = App("a", "1")
    stopped = asyncio.Event()

    @app.tool
    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    async with surviving(app) as (host, errors):
        with pytest.raises(RequestTimeout):
            await host.call("endless", timeout=0.01)
        await stopped.wait()
        assert errors == []


async def test_a_handler_that_will_not_be_stopped_is_left_behind_by_close() -> None:
    app = App("a", "1")
    started, release, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    @app.tool
    async def stubborn() -> str:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue
        ended.set()
        return "at last"

    async with surviving(app) as (host, _):
        call = asyncio.ensure_future(host.call("stubborn"))
        await started.wait()
        await app.close()
        with pytest.raises(ConnectionClosed):
            await call
        release.set()
        await ended.wait()
        await reconnected(app, host)


async def test_a_thread_that_does_not_end_holds_up_neither_calls_nor_close() -> None:
    app = App("a", "1")
    started, release = threading.Event(), threading.Event()

    @app.tool(thread=True)
    def block() -> str:
        started.set()
        release.wait(30)
        return "at last"

    try:
        async with surviving(app) as (host, _):
            with pytest.raises(RequestTimeout):
                await host.call("block", timeout=0.01)
            await asyncio.to_thread(started.wait)
    finally:
        release.set()


async def reconnected(app: App, host: FakeHost) -> None:
    """Connect the App again, and the host with it."""
    view, end = memory_pair()
    other = FakeHost(end)
    other.session.start()
    host.session = other.session
    await app.connect(view)


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize("is_async", [False, True])
async def test_progress_after_the_end_of_a_call_is_not_sent(is_async: bool, fails: bool) -> None:
    app = App("a", "1")
    kept: list[CallContext] = []

    def step(ctx: CallContext) -> str:
        kept.append(ctx)
        ctx.progress(1)
        if fails:
            raise ToolError("no")
        return "ok"

    async def step_later(ctx: CallContext) -> str:
        return step(ctx)

    app.register_tool("step", step_later if is_async else step)
    async with surviving(app) as (host, _):
        steps: list[Any] = []
        await host.call("step", {}, on_progress=steps.append)
        kept[0].progress(2)
        await host.settled()
        assert [step.progress for step in steps] == [1]
        assert host.problems == []


@pytest.mark.parametrize("where", ["sync", "async", "thread"])
async def test_progress_and_logs_that_cannot_be_sent_fail_where_they_are_made(where: str) -> None:
    app = App("a", "1")

    def work(ctx: CallContext) -> str:
        with pytest.raises(TypeError):
            ctx.log("info", object())
        with pytest.raises(TypeError):
            ctx.progress(object())  # type: ignore[arg-type]
        return "ok"

    async def work_later(ctx: CallContext) -> str:
        return work(ctx)

    app.register_tool("work", work_later if where == "async" else work, thread=where == "thread")
    async with surviving(app) as (host, errors):
        result = await host.call("work", {}, on_progress=lambda _: None)
        assert text(result) == "ok"
        assert errors == []


# --- arguments -------------------------------------------------------------------------------


async def raw_call(
    host: FakeHost, arguments: str, name: str = "take", timeout: float = 60
) -> dict[str, Any]:
    params = b'{"name":"%b","arguments":%b}' % (name.encode(), arguments.encode())
    return msgspec.json.decode(await host.session.request("tools/call", params, timeout=timeout))


def taking_anything(app: App, got: list[Any]) -> None:
    app.register_tool("take", lambda **them: got.append(them), input_schema={"type": "object"})


async def test_ten_megabytes_of_arguments_are_taken() -> None:
    app = App("a", "1")
    app.register_tool("size", lambda text: len(text), input_schema={"type": "object"})

    @app.tool
    def typed(text: str) -> int:
        return len(text)

    async with surviving(app) as (host, _):
        big = "x" * 10_000_000
        for name in ("size", "typed"):
            result = await host.call(name, {"text": big})
            assert result["structuredContent"] == {"result": 10_000_000}


async def test_ten_megabytes_of_wrong_arguments_get_a_short_answer() -> None:
    app = App("a", "1")

    @app.tool
    def typed(count: int) -> int:
        return count

    async with surviving(app) as (host, _):
        for arguments in (
            {"count": "x" * 10_000_000},
            {"count": 1, **{f"k{n}" * 10: n for n in range(100_000)}},
            {"x" * 10_000_000: 1},
        ):
            result = await host.call("typed", arguments)
            assert result["isError"] is True
            assert len(text(result)) < 5000


async def test_more_than_the_wire_takes_is_refused_without_an_answer_and_without_harm() -> None:
    app = App("a", "1")
    got: list[Any] = []
    taking_anything(app, got)
    async with surviving(app) as (host, errors):
        with pytest.raises(RequestTimeout):
            await host.call("take", {"text": "x" * 17_000_000}, timeout=0.2)
        assert got == []
        assert any("over the limit" in str(error) for error in errors)


@pytest.mark.parametrize("shape", ["[", '{"a":'])
async def test_arguments_are_taken_up_to_the_depth_of_the_wire(shape: str) -> None:
    app = App("a", "1")
    got: list[Any] = []
    taking_anything(app, got)
    close = "]" if shape == "[" else "}"
    async with surviving(app) as (host, errors):
        depth = 97  # the message, its params and the arguments are three more
        await raw_call(host, '{"a":' + shape * depth + "1" + close * depth + "}")
        assert len(got) == 1
        deeper = '{"a":' + shape * (depth + 1) + "1" + close * (depth + 1) + "}"
        with pytest.raises(RequestTimeout):
            await raw_call(host, deeper, timeout=0.05)
        assert len(got) == 1
        assert any("nested deeper" in str(error) for error in errors)


async def test_a_million_brackets_are_refused_quickly_and_without_harm() -> None:
    app = App("a", "1")
    got: list[Any] = []
    taking_anything(app, got)
    async with surviving(app) as (host, errors):
        with pytest.raises(RequestTimeout):
            await raw_call(host, '{"a":' + "[" * 10**6 + "]" * 10**6 + "}", timeout=0.05)
        assert got == []
        assert any("nested deeper" in str(error) for error in errors)


ODD_NAMES = [
    "__proto__",
    "constructor",
    "__class__",
    "self",
    "cls",
    "ctx",
    "args",
    "kwargs",
    "",
    "\0",
]


async def test_odd_argument_names_are_refused_where_they_are_not_known() -> None:
    app = App("a", "1")

    @app.tool
    def typed(n: int, ctx: CallContext) -> str:
        return type(ctx).__name__

    class Careful:
        def method(self, n: int) -> str:
            return str(n)

    app.register_tool("bound", Careful().method)
    async with surviving(app) as (host, _):
        assert text(await host.call("typed", {"n": 1})) == "CallContext"
        for name in ODD_NAMES:
            for tool in ("typed", "bound"):
                result = await host.call(tool, {"n": 1, name: {"polluted": True}})
                assert result["isError"] is True, (tool, name)


async def test_the_hosts_ctx_never_takes_the_place_of_the_real_one() -> None:
    app = App("a", "1")
    seen: list[Any] = []

    def take(ctx: CallContext, **rest: Any) -> None:
        seen.append((ctx, rest))

    app.register_tool("take", take, input_schema={"type": "object"})
    async with surviving(app) as (host, _):
        await host.call("take", {"ctx": {"app": 1}, "__proto__": {"a": 1}})
        assert isinstance(seen[0][0], CallContext)
        assert seen[0][1] == {"__proto__": {"a": 1}}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":"\\ud800"}',
        '{"a":"\\udc00\\ud800"}',
        '{"\\ud800":1}',
        '{"a":1e999}',
        '{"a":-1e999}',
        '{"a":' + "9" * 5000 + "}",
        '{"a":0.' + "1" * 5000 + "}",
        '{"a":1,"a":2}',
    ],
)
@pytest.mark.parametrize("tool", ["take", "typed", "static"])
async def test_json_that_others_choke_on_is_taken_or_refused_readably(
    arguments: str, tool: str
) -> None:
    app = App("a", "1")
    got: list[Any] = []
    taking_anything(app, got)

    @app.tool
    def typed(a: str | float | None = None) -> str:
        return "ok"

    app.on_call_tool = lambda name, arguments: "ok"
    async with surviving(app) as (host, errors):
        try:
            result = await raw_call(host, arguments, tool)
        except ProtocolError as error:
            assert error.code == -32602
        else:
            assert result["content"]
        assert [e for e in errors if not isinstance(e, ProtocolError)] == []


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
    "text": (["added", ADDED], 1),
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


@pytest.mark.parametrize("returned", [3, object(), {"tools": 3}, {"tools": None}], ids=plain)
async def test_on_list_tools_that_returns_no_list_fails_the_listing(returned: Any) -> None:
    app = App("a", "1")
    app.on_list_tools = lambda: returned
    async with surviving(app) as (host, errors):
        with pytest.raises(ProtocolError) as error:
            await host.names()
        assert error.value.code == -32603
        assert len(errors) == 1
        app.on_list_tools = None


# --- changing tools from everywhere ----------------------------------------------------------


async def test_a_handler_may_turn_the_registry_upside_down() -> None:
    app = App("a", "1")
    other = app.register_tool("other", lambda: "other")

    @app.tool
    async def churn() -> list[str]:
        for n in range(50):
            tool = app.register_tool(f"t{n}", lambda n=n: str(n))
            tool.update(name=f"u{n}", description="changed")
            if n % 2:
                tool.remove()
        other.disable(reason="churned")
        churn.update(name="churned")
        churn.remove()
        return [tool.name for tool in app.tools]

    async with surviving(app) as (host, errors):
        names = (await host.call("churn"))["structuredContent"]["result"]
        assert names == ["other", "fine", *(f"u{n}" for n in range(0, 50, 2))]
        assert await host.list_changes() == 1
        assert await host.names() == ["fine", *(f"u{n}" for n in range(0, 50, 2))]
        assert text(await host.call("u48")) == "48"
        assert "churned" in text(await host.call("other"))
        assert errors == []


async def test_a_listener_of_changes_may_change_tools() -> None:
    app = App("a", "1")
    seen: list[str] = []

    @app.on_tool_change
    def _(tool: RegisteredTool) -> None:
        seen.append(tool.name)
        if tool.name == "first" and not any(other.name == "second" for other in app.tools):
            app.register_tool("second", lambda: "second")
        if tool.name == "second":
            tool.update(description="described")

    async with surviving(app) as (host, errors):
        app.register_tool("first", lambda: "first")
        assert seen == ["fine", "first", "second", "second"]
        assert await host.list_changes() == 1
        assert await host.names() == ["fine", "first", "second"]
        assert errors == []


async def test_a_listener_of_changes_that_never_comes_to_an_end_is_stopped_and_told() -> None:
    app = App("a", "1")

    @app.on_tool_change
    def _(tool: RegisteredTool) -> None:
        if tool.name == "loop":
            tool.update(description=f"{tool.description}!")

    async with surviving(app) as (host, errors):
        app.register_tool("loop", lambda: "x", description="")
        assert any(isinstance(error, RecursionError) for error in errors)
        assert await host.list_changes() == 1
        assert await host.names() == ["fine", "loop"]


async def test_a_listener_of_changes_that_removes_the_tool_leaves_it_removed() -> None:
    app = App("a", "1")

    @app.on_tool_change
    def _(tool: RegisteredTool) -> None:
        if tool.name == "unwanted":
            tool.remove()

    async with surviving(app) as (host, _):
        unwanted = app.register_tool("unwanted", lambda: "x")
        assert unwanted.stale
        assert await host.names() == ["fine"]


async def test_on_list_tools_may_change_tools() -> None:
    app = App("a", "1")
    app.register_tool("old", lambda: "x")

    @app.on_list_tools
    async def _() -> list[dict[str, Any]]:
        for tool in app.tools:
            if tool.name == "old":
                tool.remove()
        if not any(tool.name == "new" for tool in app.tools):
            app.register_tool("new", lambda: "new")
        return [{"name": "new", "inputSchema": OBJECT}, ADDED]

    async with surviving(app) as (host, errors):
        await host.names()
        assert await host.names() == ["fine", "new", "added"]
        assert await host.list_changes() == 1
        assert errors == []


async def test_a_lazy_schema_may_change_tools_its_own_included() -> None:
    app = App("a", "1")

    def schema() -> Any:
        if not any(tool.name == "made" for tool in app.tools):
            app.register_tool("made", lambda: "made")
        lazy.update(description="listed")
        return OBJECT

    def last() -> Any:
        gone.remove()
        return OBJECT

    lazy = app.register_tool("lazy", lambda: "x", input_schema=schema)
    gone = app.register_tool("gone", lambda: "x", input_schema=last)
    async with surviving(app) as (host, errors):
        await host.names()
        assert await host.names() == ["lazy", "fine", "made"]
        assert text(await host.call("lazy")) == "x"
        assert errors == []


async def test_a_lazy_schema_that_asks_for_itself_is_unavailable() -> None:
    app = App("a", "1")
    odd = app.register_tool("odd", lambda: "x", input_schema=lambda: odd.definition().input_schema)
    async with surviving(app) as (host, errors):
        assert await host.names() == ["fine"]
        assert errors


async def test_a_handler_in_a_thread_may_change_tools_whatever_listens() -> None:
    app = App("a", "1")
    heard = asyncio.Event()
    save = app.register_tool("save", lambda: "x", enabled=False)

    @app.tool(thread=True)
    def work() -> str:
        save.enable()
        return "ok"

    @app.on_tool_change
    async def _(tool: RegisteredTool) -> None:
        if tool is save:
            heard.set()

    async with surviving(app) as (host, errors):
        assert text(await host.call("work")) == "ok"
        await heard.wait()
        await host.heard("notifications/tools/list_changed")
        assert "save" in await host.names()
        assert errors == []


# --- closing and connecting from everywhere --------------------------------------------------


async def test_closing_in_a_handler_that_another_task_runs_for_it_ends_cleanly() -> None:
    app = App("a", "1")

    @app.tool
    async def leave() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(app.close())

    async with surviving(app) as (host, _):
        with pytest.raises((ConnectionClosed, ProtocolError)):
            await host.call("leave")
        await app.wait_closed()
        await reconnected(app, host)


async def test_closing_that_is_cancelled_has_closed_all_the_same() -> None:
    app = App("a", "1")
    started, release = asyncio.Event(), asyncio.Event()

    @app.tool
    async def stubborn() -> None:
        started.set()
        while not release.is_set():
            try:
                await release.wait()
            except asyncio.CancelledError:
                continue

    async with surviving(app) as (host, _):
        call = asyncio.ensure_future(host.call("stubborn"))
        await started.wait()
        closing = asyncio.ensure_future(app.close())
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(ConnectionClosed):
            await call
        assert not app.connected
        release.set()
        await reconnected(app, host)


@pytest.mark.parametrize("event", ["on_teardown", "on_tool_input", "on_error", "on_tool_change"])
async def test_closing_inside_any_handler_ends_the_connection_cleanly(event: str) -> None:
    app = App("a", "1")
    closed = asyncio.Event()

    async def leave(*_: Any) -> None:
        await app.close()
        closed.set()

    async with surviving(app) as (host, _):
        getattr(app, event)(leave) if event != "on_tool_input" else None
        if event == "on_teardown":
            with pytest.raises(ConnectionClosed):
                await host.ask("ui/resource-teardown", {})
        elif event == "on_tool_change":
            app.register_tool("new", lambda: "x")
        elif event == "on_error":
            app.report(ValueError("x"))
        else:
            with pytest.warns(RuntimeWarning):
                app.on_tool_input = leave
            await host.tell("ui/notifications/tool-input", {})
        await closed.wait()
        assert not app.connected
        assert getattr(app, event)
        getattr(app, event).remove(leave)
        app.on_tool_input = None
        await reconnected(app, host)


async def test_a_sync_teardown_handler_may_hand_back_the_close_itself() -> None:
    app = App("a", "1")
    app.on_teardown = lambda: app.close()
    async with surviving(app) as (host, _):
        with pytest.raises(ConnectionClosed):
            await host.ask("ui/resource-teardown", {})
        await app.wait_closed()
        await reconnected(app, host)


async def test_connecting_inside_a_handler_is_refused_and_changes_nothing() -> None:
    app = App("a", "1")

    @app.tool
    async def again() -> str:
        with pytest.raises(AlreadyConnected):
            await app.connect(memory_pair()[0])
        return "still here"

    async with surviving(app) as (host, _):
        assert text(await host.call("again")) == "still here"


async def test_a_handler_may_close_and_connect_elsewhere() -> None:
    app = App("a", "1")
    hosts: list[FakeHost] = []
    moved = asyncio.Event()

    @app.tool
    async def move() -> None:
        await app.close()
        view, end = memory_pair()
        hosts.append(FakeHost(end))
        hosts[0].session.start()
        await app.connect(view)
        moved.set()

    async with surviving(app) as (host, errors):
        with pytest.raises(ConnectionClosed):
            await host.call("move")
        await moved.wait()
        assert errors == []
        host.session = hosts[0].session


async def test_a_call_that_is_closed_before_it_began_is_answered_and_leaves_no_trace() -> None:
    app = App("a", "1")
    begun: list[str] = []

    @app.tool
    async def late() -> None:
        begun.append("late")

    async with surviving(app) as (host, errors):
        call = asyncio.ensure_future(host.call("late"))
        closing = asyncio.ensure_future(app.close())
        with pytest.raises(ProtocolError, match="cancelled"):
            await call
        await closing
        assert begun == []
        assert errors == []
        await reconnected(app, host)


def test_an_app_may_live_in_one_event_loop_after_another() -> None:
    app = App("a", "1")
    save = app.register_tool("save", lambda: "x", enabled=False)

    async def live() -> None:
        async with surviving(app) as (host, errors):
            save.enable()
            assert await host.list_changes() == 1
            save.disable()
            assert await host.list_changes() == 2
            assert errors == []
        app.tools[-1].remove()

    for _ in range(3):
        asyncio.run(live())


@pytest.mark.parametrize("returned", [cyclic_dict(), {"f": object()}, [1], "text", object()])
async def test_teardown_is_answered_whatever_its_handler_returns(returned: Any) -> None:
    app = App("a", "1")
    app.on_teardown = lambda: returned
    async with surviving(app) as (host, _):
        assert await host.ask("ui/resource-teardown", {}) == {}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", RAISED)
async def test_a_listener_that_raises_anything_stops_neither_the_others_nor_teardown(
    what: str, is_async: bool
) -> None:
    app, failure = App("a", "1"), RAISED[what]()
    told: asyncio.Queue[str] = asyncio.Queue()

    def broken() -> None:
        raise failure

    async def broken_later() -> None:
        raise failure

    for slot in (app.on_teardown, app.on_tool_input):
        slot(broken_later if is_async else broken)
        slot(lambda: told.put_nowait("still told"))
    async with surviving(app) as (host, errors):
        assert await host.ask("ui/resource-teardown", {}) == {}
        await host.tell("ui/notifications/tool-input", {})
        for _ in range(2):
            assert await told.get() == "still told"
        for error in errors:  # Python itself wraps a StopIteration
            assert failure in (error, error.__cause__)
        assert len(errors) == 2


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("what", RAISED)
async def test_an_error_handler_that_raises_anything_is_survived(
    what: str, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    app, failure = App("a", "1"), RAISED[what]()

    def broken(_: BaseException) -> None:
        raise failure

    async def broken_later(_: BaseException) -> None:
        raise failure

    told: asyncio.Queue[BaseException] = asyncio.Queue()
    app.on_error = broken_later if is_async else broken
    app.on_error(told.put_nowait)
    app.on_tool_input = lambda: 1 / 0
    async with surviving(app) as (host, _):
        await host.tell("ui/notifications/tool-input", {})
        assert isinstance(await told.get(), ZeroDivisionError)
    assert "on_error itself failed" in caplog.text
