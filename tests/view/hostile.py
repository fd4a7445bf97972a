"""What the tests of clumsy and hostile authors and hosts share."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.view.fake_host import FakeHost, hosted
from transom.channel import memory_pair
from transom.errors import (
    ProtocolError,
)
from transom.view.app import App

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


def cyclic_dict() -> dict[str, Any]:
    cycle: dict[str, Any] = {}
    cycle["self"] = cycle
    return cycle


def numbers() -> Iterator[int]:
    yield 1


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


async def reconnected(app: App, host: FakeHost) -> None:
    """Connect the App again, and the host with it."""
    view, end = memory_pair()
    other = FakeHost(end)
    other.session.start()
    host.session = other.session
    await app.connect(view)
