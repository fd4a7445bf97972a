"""Clumsy and hostile authors: each mistake has its outcome, and the App works afterwards."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from tests.view.hostile import RAISED, cyclic_dict, numbers, reconnected, refusal, surviving, text
from transom.errors import (
    ConnectionClosed,
    ProtocolError,
    RequestTimeout,
    ToolError,
)
from transom.types import TextContent, ToolResult
from transom.view.app import App, CallContext

# --- what handlers return --------------------------------------------------------------------


def cyclic_list() -> list[Any]:
    cycle: list[Any] = []
    cycle.append(cycle)
    return cycle


def deep() -> Any:
    value: Any = 1
    for _ in range(100_000):
        value = [value]
    return value


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
        assert error.message == "Tool odd returned an invalid result"
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
            await host.call("endless", timeout=1)
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
