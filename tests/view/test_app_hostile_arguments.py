"""Arguments from hostile hosts, up to the limits of the wire and beyond."""

from typing import Any

import msgspec
import pytest

from tests.view.fake_host import FakeHost
from tests.view.hostile import (
    surviving,
    text,
)
from transom.errors import (
    ProtocolError,
)
from transom.view.app import App, CallContext

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


@pytest.mark.load
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


async def test_more_than_the_wire_takes_is_refused_without_harm() -> None:
    app = App("a", "1")
    got: list[Any] = []
    taking_anything(app, got)
    async with surviving(app) as (host, errors):
        with pytest.raises(ProtocolError, match="over the limit"):
            await host.call("take", {"text": "x" * 17_000_000})
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
        with pytest.raises(ProtocolError, match="nested deeper than 100"):
            await raw_call(host, deeper)
        assert len(got) == 1
        assert any("nested deeper" in str(error) for error in errors)


async def test_a_million_brackets_are_refused_quickly_and_without_harm() -> None:
    app = App("a", "1")
    got: list[Any] = []
    taking_anything(app, got)
    async with surviving(app) as (host, errors):
        with pytest.raises(ProtocolError, match="nested deeper than 100"):
            await raw_call(host, '{"a":' + "[" * 10**6 + "]" * 10**6 + "}")
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
