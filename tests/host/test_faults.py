"""Whose fault an error is decides who hears of it: the model, or the author of the program."""

import inspect
from typing import Any

import pytest

from tests.host.faults import FaultyServer, reload_without_tools
from tests.host.shop import BareRenderer, hosting
from transom import Host
from transom import errors as every
from transom.errors import Mismatch, ProtocolError, TransomError, UsageError

GIVEN: dict[str, tuple[Any, ...]] = {
    "ProtocolError": (-32602, "why"),
    "MessageRefused": (-32600, "why"),
    "ViewClosed": ("shop-1", "why"),
    "ValidationError": ([Mismatch("", "why")],),
}


def made(kind: type[TransomError]) -> TransomError:
    return kind(*GIVEN.get(kind.__name__, ("why",)))


KINDS = [
    kind
    for kind in vars(every).values()
    if inspect.isclass(kind) and issubclass(kind, TransomError)
]
USAGE = [kind for kind in KINDS if issubclass(kind, UsageError)]
OTHERS = [kind for kind in KINDS if not issubclass(kind, UsageError)]


def test_a_usage_error_is_a_mistake_in_the_callers_program_and_nothing_else():
    assert {kind.__name__ for kind in USAGE} == {
        *("UsageError", "AlreadyConnected", "OutOfOrder", "SchemaError", "RegistrationError"),
    }


@pytest.mark.parametrize("kind", OTHERS)
async def test_what_went_wrong_elsewhere_is_a_result_that_the_model_reads(
    kind: type[TransomError],
):
    async with Host() as host:
        await host.add_server("shop", FaultyServer(made(kind)))
        result = await host.answer("stock")
        assert result.is_error
        assert "why" in result.text


@pytest.mark.parametrize("kind", USAGE)
async def test_a_mistake_in_the_program_is_raised_to_its_author(kind: type[TransomError]):
    async with Host() as host:
        await host.add_server("shop", FaultyServer(made(kind)))
        with pytest.raises(kind, match="why"):
            await host.answer("stock")


async def test_a_view_that_was_loaded_again_without_tools_has_no_such_tool():
    renderer = BareRenderer()
    async with hosting(renderer=renderer) as host:
        await host.answer("show_orders")
        assert (await host.answer("orders-1__echo", {"text": "x"})).text == "called echo"
        await reload_without_tools(renderer.views["orders-1"])
        result = await host.answer("orders-1__echo", {"text": "x"})
        assert result.is_error
        assert result.text == "View orders-1 has no tool echo"


async def test_a_host_that_is_not_open_is_a_mistake_in_the_program():
    host = Host()
    with pytest.raises(UsageError, match="use `async with Host"):
        await host.answer("stock")


async def test_a_host_that_was_closed_meanwhile_is_a_result_as_everything_that_happens():
    async with Host() as host:
        await host.add_server("shop", FaultyServer(ProtocolError(-32000, "no stock")))
    result = await host.answer("stock")
    assert (result.is_error, result.text) == (True, "The host is closed")


async def test_a_tool_whose_name_has_half_a_character_is_not_found_in_words_that_can_be_sent():
    async with hosting() as host:
        for name in ("\ud83d", "orders-1__\ud83d", "\ud83d__read"):
            result = await host.answer(name)
            assert result.is_error
            assert b"?" in result.to_wire()


async def test_the_text_of_a_protocol_error_is_read_without_its_code():
    async with Host() as host:
        await host.add_server("shop", FaultyServer(ProtocolError(-32000, "no stock")))
        assert (await host.answer("stock")).text == "no stock"
