"""A gateway in this process, between a client and servers that do just what a test tells them."""

import asyncio
import inspect
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from transom.channel import Channel, memory_pair
from transom.connections.connection import Connect
from transom.errors import ChannelClosed, NotConnected
from transom.gateway.client_host import ViewOptions
from transom.gateway.proxy import Proxy

VERSION = "2025-11-25"
HELLO = {
    "protocolVersion": VERSION,
    "capabilities": {"sampling": {}, "elicitation": {}, "roots": {"listChanged": True}},
    "clientInfo": {"name": "scripted", "version": "1"},
}


class End:
    """One end of a conversation. Keeps everything it hears, and answers requests by method.

    An answer is a result, `{"error": {...}}`, or a function of the params, maybe async, that makes
    one. A method without an answer is not answered until `reply` is called.
    """

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.answers = answers or {}
        self.by_message: dict[str, Callable[[dict[str, Any]], Any]] = {}
        """Called with each request of a method, in place of an answer."""
        self.heard: list[dict[str, Any]] = []
        self.raw: list[bytes] = []
        self.channel: Channel | None = None
        self._numbers = iter(range(1, 10_000))
        self._waiting: dict[Any, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    async def serve(self, channel: Channel) -> None:
        while True:
            try:
                data = await channel.receive()
            except ChannelClosed:
                return
            self.raw.append(data)
            message = json.loads(data)
            self.heard.append(message)
            if "method" not in message:
                waiting = self._waiting.pop(message["id"], None)
                if waiting is not None:
                    waiting.set_result(message)
            elif "id" in message and message["method"] in self.by_message:
                await self.by_message[message["method"]](message)
            elif "id" in message and message["method"] in self.answers:
                task = asyncio.create_task(self._answer(message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            self._news.set()

    async def _answer(self, message: dict[str, Any]) -> None:
        answer = self.answers[message["method"]]
        if callable(answer):
            answer = answer(message.get("params"))
        if inspect.isawaitable(answer):
            answer = await answer
        await self.reply(message["id"], answer)

    # --- saying ------------------------------------------------------------------------------

    async def say(self, message: dict[str, Any]) -> None:
        assert self.channel is not None
        await self.channel.send(json.dumps({"jsonrpc": "2.0", **message}).encode())

    async def reply(self, id: Any, answer: dict[str, Any]) -> None:
        error = "error" in answer
        await self.say({"id": id, **(answer if error else {"result": answer})})

    async def tell(self, method: str, params: dict[str, Any] | None = None) -> None:
        await self.say({"method": method, **({} if params is None else {"params": params})})

    async def begin(
        self, method: str, params: dict[str, Any] | None = None, *, id: Any = None
    ) -> tuple[Any, asyncio.Future[dict[str, Any]]]:
        id = next(self._numbers) if id is None else id
        waiting = self._waiting[id] = asyncio.get_running_loop().create_future()
        await self.say({"id": id, "method": method, **({"params": params} if params else {})})
        return id, waiting

    async def ask(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The whole response, with its result or its error."""
        return await (await self.begin(method, params))[1]

    async def result(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.ask(method, params)
        assert "result" in answer, answer
        return answer["result"]

    async def error(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = await self.ask(method, params)
        assert "error" in answer, answer
        return answer["error"]

    # --- what was heard ----------------------------------------------------------------------

    def got(self, method: str) -> list[dict[str, Any]]:
        """Every such request and notification so far."""
        return [message for message in self.heard if message.get("method") == method]

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until it holds; looked at whenever something was heard."""
        while not condition():
            self._news.clear()
            await self._news.wait()

    async def hears(self, method: str, times: int = 1) -> dict[str, Any]:
        """Wait until that was heard so many times; the last of them."""
        await self.until(lambda: len(self.got(method)) >= times)
        return self.got(method)[times - 1]


class Fake(End):
    """A server that can be started as often as it takes, and crashes when it is told to.

    Args:
        name: what it is called.
        tools: names of its tools, or their definitions; each answers with what it was called with.
        answers: more answers, by method.
        version: of the protocol.
        instructions: for the model.
        capabilities: beyond tools.
    """

    def __init__(
        self,
        name: str,
        tools: Sequence[str | dict[str, Any]] = (),
        answers: dict[str, Any] | None = None,
        *,
        version: str = VERSION,
        instructions: str | None = None,
        capabilities: dict[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.tools = list(tools)
        self.starts = 0
        self.broken = False
        self._serving: set[asyncio.Task[None]] = set()
        hello: dict[str, Any] = {
            "protocolVersion": version,
            "capabilities": {"tools": {}, **(capabilities or {})},
            "serverInfo": {"name": name, "version": "1"},
        }
        if instructions is not None:
            hello["instructions"] = instructions
        self.hello = hello
        super().__init__(
            {
                "initialize": lambda _: self.hello,
                "tools/list": lambda _: {"tools": [_tool(each) for each in self.tools]},
                "tools/call": self.call,
                **(answers or {}),
            }
        )

    def call(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"content": [text(f"{self.name}: {params['name']} {params.get('arguments')}")]}

    async def connect(self) -> Channel:
        if self.broken:
            raise NotConnected(f"{self.name} is broken")
        self.starts += 1
        ours, theirs = memory_pair()
        self.channel = theirs
        serving = asyncio.create_task(self.serve(theirs))
        self._serving.add(serving)
        serving.add_done_callback(self._serving.discard)
        return ours

    async def crash(self) -> None:
        assert self.channel is not None
        await self.channel.aclose()


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def _tool(given: str | dict[str, Any]) -> dict[str, Any]:
    return {
        "inputSchema": {"type": "object"},
        **({"name": given} if isinstance(given, str) else given),
    }


@asynccontextmanager
async def gateway(
    *servers: Fake | tuple[str, Connect],
    views: ViewOptions | None = None,
    answers: dict[str, Any] | None = None,
    greet: bool = True,
) -> AsyncIterator[End]:
    """The client of a gateway with these servers, which has said hello unless told not to."""
    connects = [(each.name, each.connect) if isinstance(each, Fake) else each for each in servers]
    ours, theirs = memory_pair()
    proxy = Proxy(theirs, connects, views or ViewOptions(None))
    running = asyncio.create_task(proxy.run())
    client = End(answers)
    client.channel = ours
    serving = asyncio.create_task(client.serve(ours))
    try:
        if greet:
            await client.result("initialize", HELLO)
            await client.tell("notifications/initialized")
        yield client
    finally:
        await ours.aclose()
        await running
        await serving
