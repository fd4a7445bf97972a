"""Drive the official MCP Apps SDK: Views and hosts in one Node process, see node/peers.mjs."""

import asyncio
import json
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

LONGEST_LINE = 64 * 2**20
VERSIONS = {"2": "2.0.4", "1": "1.7.5"}

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_numbers = count(1)


class NodeError(Exception):
    """What an order came to when it failed in Node: the SDK's own code, message and data."""

    def __init__(self, code: int | str | None, message: str, data: Any) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class NodePeer:
    """One View or host. The orders and events it knows are listed in its file in node/.

    `lines(*peer.wire)` is a channel to the App or the bridge inside.
    """

    def __init__(self, path: str, number: int, control: Streams) -> None:
        self.number = number
        self.events: list[dict[str, Any]] = []
        self._path = path
        self._reports, self._orders = control
        self._wires: list[Streams] = []
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._news = asyncio.Condition()
        self._over = False
        self._reading = asyncio.create_task(self._read())

    @property
    def wire(self) -> Streams:
        """Our end of its newest wire."""
        return self._wires[-1]

    async def connect(self) -> Streams:
        """A new wire, which takes over from the last."""
        self._wires.append(await _connect(self._path, peer=self.number))
        await self.event("wired")
        return self.wire

    def order(self, name: str, /, **args: Any) -> tuple[int, asyncio.Future[Any]]:
        """Give an order and return its id (for `cancel`) and the future of its value."""
        number = len(self._waiting) + 1
        future = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        line = json.dumps({"id": number, "do": name, "args": args})
        self._orders.write(line.encode() + b"\n")
        return number, future

    async def do(self, name: str, /, **args: Any) -> Any:
        """Give an order and wait for its value.

        Raises:
            NodeError: the order failed.
        """
        _, future = self.order(name, **args)
        return await future

    async def event(self, name: str, /, **fields: Any) -> dict[str, Any]:
        """Take the first event of that name with those fields, waiting until there is one."""
        async with self._news:
            while True:
                for position, event in enumerate(self.events):
                    if event["event"] == name and fields.items() <= event.items():
                        return self.events.pop(position)
                if self._over:
                    raise EOFError(f"the peer ended without an event {name} {fields}")
                await self._news.wait()

    def untaken(self, name: str) -> list[dict[str, Any]]:
        """The events of that name that have come and that nobody took."""
        return [event for event in self.events if event["event"] == name]

    async def aclose(self) -> None:
        """End the peer and wait for it."""
        self._orders.close()
        for _, writer in self._wires:
            writer.close()
        await self._reading

    async def _read(self) -> None:
        async for line in self._reports:
            report = json.loads(line)
            if "event" in report:
                async with self._news:
                    self.events.append(report)
                    self._news.notify_all()
            elif not (future := self._waiting[report["id"]]).done():
                if "error" in report:
                    future.set_exception(NodeError(**report["error"]))
                else:
                    future.set_result(report["ok"])
        async with self._news:
            self._over = True
            self._news.notify_all()
        for future in self._waiting.values():
            future.cancel("the peer ended")


async def _connect(path: str, **hello: Any) -> Streams:
    reader, writer = await asyncio.open_unix_connection(path, limit=LONGEST_LINE)
    writer.write(json.dumps(hello).encode() + b"\n")
    return reader, writer


@contextmanager
def node_process() -> Iterator[str]:
    """The process of node/peers.mjs, and the path at which it listens."""
    node = shutil.which("node")
    assert node is not None, "these tests need Node 20 or newer on the PATH"
    script = str(Path(__file__).parent / "node" / "peers.mjs")
    with tempfile.TemporaryDirectory(prefix="transom-node-") as folder:
        path = f"{folder}/peers"
        with subprocess.Popen(
            [node, script, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield path


async def start(path: str, kind: str, *, sdk: str = "2", wired: bool = True) -> NodePeer:
    """A new `view` or `bridge` in the process that listens at `path`; end it with `aclose()`."""
    number = next(_numbers)
    control = await _connect(path, peer=number, kind=kind, sdk=sdk)
    peer = NodePeer(path, number, control)
    try:
        await peer.event("ready", sdk=VERSIONS[sdk])
        if wired:
            await peer.connect()
    except BaseException:
        await peer.aclose()
        raise
    return peer


StartNode = Callable[..., Awaitable[NodePeer]]
