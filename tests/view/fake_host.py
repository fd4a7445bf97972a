"""The simplest host there is: a Session that answers what a test tells it to."""

import asyncio
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from transom.channel import memory_pair
from transom.errors import ProtocolError
from transom.protocol import wire
from transom.session import Session
from transom.view.app import App

INITIALIZED: dict[str, Any] = {
    "protocolVersion": "2026-01-26",
    "hostInfo": {"name": "fake-host", "version": "1.0"},
    "hostCapabilities": {},
    "hostContext": {"theme": "light", "availableDisplayModes": ["inline", "fullscreen"]},
}


class FakeHost:
    """Keeps what a View says in `requests` and `notifications`; answers what `answers` says."""

    def __init__(self, channel: Any, answers: dict[str, Any] | None = None) -> None:
        self.answers: dict[str, Any] = {"ui/initialize": INITIALIZED, "ping": {}, **(answers or {})}
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.notifications: list[tuple[str, dict[str, Any]]] = []
        self.problems: list[BaseException] = []
        self.ids: list[int | str] = []
        self._news = asyncio.Condition()
        self._told: list[asyncio.Task[None]] = []
        self.session = Session(
            channel,
            on_request=self._answer,
            on_notification=self._note,
            on_error=self.problems.append,
        )

    def _answer(self, request: wire.Request) -> Any:
        params = msgspec.json.decode(request.params) if request.params else {}
        self.requests.append((request.method, params))
        self.ids.append(request.id)
        answer = self.answers.get(request.method)
        if isinstance(answer, Callable):
            answer = answer(params)
        if answer is None:
            raise ProtocolError(-32601, "Method not found")
        if isinstance(answer, Exception):
            raise answer
        if asyncio.iscoroutine(answer):
            return self._later(answer)
        return msgspec.json.encode(answer)

    async def _later(self, answer: Any) -> bytes:
        return msgspec.json.encode(await answer)

    async def _note(self, notification: wire.Notification) -> None:
        params = msgspec.json.decode(notification.params) if notification.params else {}
        async with self._news:
            self.notifications.append((notification.method, params))
            self._news.notify_all()

    async def heard(self, method: str, count: int = 1) -> list[dict[str, Any]]:
        """Wait until it was told `method` that many times; the params of each."""
        async with self._news:
            await self._news.wait_for(lambda: len(self.told(method)) >= count)
        return self.told(method)

    def told(self, method: str) -> list[dict[str, Any]]:
        """The params of every notification of that method, so far."""
        return [params for name, params in self.notifications if name == method]

    async def settled(self) -> None:
        """Wait until everything the View has sent so far has arrived here."""
        await self.ask("ping")
        while self.session._notifications.task is not None:
            await self.session._notifications.task

    async def ask(self, method: str, params: dict[str, Any] | None = None, **options: Any) -> Any:
        """Ask the View something."""
        encoded = None if params is None else msgspec.json.encode(params)
        return msgspec.json.decode(await self.session.request(method, encoded, **options))

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Tell the View something."""
        await self.session.notify(method, None if params is None else msgspec.json.encode(params))

    async def list_tools(self, **params: Any) -> list[dict[str, Any]]:
        return (await self.ask("tools/list", params or None))["tools"]

    async def names(self) -> list[str]:
        return [tool["name"] for tool in await self.list_tools()]

    async def call(self, name: str, arguments: Any = None, **options: Any) -> dict[str, Any]:
        params = {"name": name} if arguments is None else {"name": name, "arguments": arguments}
        return await self.ask("tools/call", params, **options)

    async def list_changes(self) -> int:
        """How many times it was told, up to now, that the tools have changed."""
        await asyncio.sleep(0)  # the end of this turn of the event loop
        await self.settled()
        return len(self.told("notifications/tools/list_changed"))


@asynccontextmanager
async def hosted(app: App, *, connect: bool = True, **answers: Any) -> Any:
    """A host with the App connected to it."""
    view, end = memory_pair()
    host = FakeHost(end, {key.replace("__", "/"): value for key, value in answers.items()})
    host.channel = view
    async with host.session:
        try:
            if connect:
                await app.connect(view)
            yield host
        finally:
            await app.close()
