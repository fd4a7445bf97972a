"""The simplest View there is: a Session that answers what a test tells it to."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from transom.channel import Channel, memory_pair
from transom.errors import ProtocolError
from transom.host.views.bridge import Bridge
from transom.protocol import wire
from transom.session import Session

HOST = {"name": "test-host", "version": "9"}
ECHO = {"name": "echo", "inputSchema": {"type": "object"}}


def tool(name: str, **members: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **members}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


async def begun(work: Any) -> asyncio.Task[Any]:
    """A task of `work` that has had its first turn."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    return task


async def until(condition: Callable[[], object]) -> None:
    """Let everyone else go on until it is so, where nothing tells."""
    while not condition():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0)


class BareView:
    """Keeps what the host says; answers what `answers` says, by method.

    An answer is a result, an exception, or a function of the params that returns or awaits one.
    """

    def __init__(self, channel: Channel, answers: dict[str, Any] | None = None) -> None:
        self.channel = channel
        self.answers: dict[str, Any] = {
            "ping": {},
            "ui/resource-teardown": {},
            "tools/list": {"tools": [ECHO]},
            "tools/call": lambda params: text(f"called {params['name']}"),
            **(answers or {}),
        }
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.notices: list[tuple[str, dict[str, Any]]] = []
        self.problems: list[BaseException] = []
        self._news = asyncio.Event()
        self.session = Session(
            channel,
            on_request=self._answer,
            on_notification=self._note,
            on_error=self.problems.append,
        )

    @property
    def heard(self) -> list[str]:
        """The methods of what the host told, without their prefixes."""
        return [
            method.removeprefix("ui/").removeprefix("notifications/") for method, _ in self.notices
        ]

    async def initialize(
        self, capabilities: dict[str, Any] | None = None, **changes: Any
    ) -> dict[str, Any]:
        """Ask `ui/initialize`; its result."""
        params = {
            "appInfo": {"name": "bare", "version": "1"},
            "appCapabilities": {"tools": {"listChanged": True}}
            if capabilities is None
            else capabilities,
            "protocolVersion": "2026-01-26",
            **changes,
        }
        return await self.ask("ui/initialize", params)

    async def be_ready(self, capabilities: dict[str, Any] | None = None) -> None:
        await self.initialize(capabilities)
        await self.tell("ui/notifications/initialized")

    async def ask(self, method: str, params: Any = None, **options: Any) -> Any:
        raw = await self.session.request(method, msgspec.json.encode(params or {}), **options)
        return msgspec.json.decode(raw)

    async def tell(self, method: str, params: Any = None) -> None:
        await self.session.notify(method, None if params is None else msgspec.json.encode(params))

    async def told(self, method: str, times: int = 1) -> dict[str, Any]:
        """Wait until the host has told `method` so many times; the last params."""
        return await self._wait(self.notices, method, times)

    async def asked(self, method: str, times: int = 1) -> dict[str, Any]:
        """Wait until the host has asked `method` so many times; the last params."""
        return await self._wait(self.requests, method, times)

    async def _wait(
        self, record: list[tuple[str, dict[str, Any]]], method: str, times: int
    ) -> dict[str, Any]:
        while True:
            found = [params for name, params in record if name.endswith(method)]
            if len(found) >= times:
                return found[times - 1]
            self._news.clear()
            await self._news.wait()

    def _note(self, notice: wire.Notification) -> None:
        params = {} if notice.params is None else msgspec.json.decode(notice.params)
        self.notices.append((notice.method, params))
        self._news.set()

    def _answer(self, request: wire.Request) -> Any:
        params = {} if request.params is None else msgspec.json.decode(request.params)
        self.requests.append((request.method, params))
        self._news.set()
        answer = self.answers.get(request.method, ProtocolError(-32601, "Method not found"))
        if isinstance(answer, Callable):
            return self._later(answer, params)
        return self._written(answer)

    async def _later(self, answer: Any, params: Any) -> bytes:
        result = answer(params)
        return self._written(await result if inspect.isawaitable(result) else result)

    def _written(self, answer: Any) -> bytes:
        if isinstance(answer, Exception):
            raise answer
        return msgspec.json.encode(answer)


class Errors(list[str]):
    """What a Bridge told `on_error`, as text, and a way to wait for it."""

    def __init__(self) -> None:
        self._arrived = asyncio.Event()

    def take(self, error: BaseException) -> None:
        self.append(f"{type(error).__name__}: {error}")
        self._arrived.set()

    async def one_with(self, words: str) -> str:
        while not (found := [entry for entry in self if words in entry]):
            self._arrived.clear()
            await self._arrived.wait()
        return found[0]


@asynccontextmanager
async def joined(
    *, answers: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[Bridge, BareView, Errors]]:
    """A running Bridge and a View that has not said anything yet."""
    ours, theirs = memory_pair()
    bridge, view, errors = (
        Bridge(ours, **{"host_info": HOST, **options}),
        BareView(theirs, answers),
        Errors(),
    )
    bridge.on_error = errors.take
    async with view.session, bridge:
        yield bridge, view, errors


@asynccontextmanager
async def ready(
    *, capabilities: dict[str, Any] | None = None, **options: Any
) -> AsyncIterator[tuple[Bridge, BareView, Errors]]:
    """A running Bridge and a View that is initialised."""
    async with joined(**options) as (bridge, view, errors):
        await view.be_ready(capabilities)
        await bridge.initialized()
        yield bridge, view, errors
