"""Drive the official MCP Apps SDK, which node/bridge.mjs and node/view.mjs run."""

import asyncio
import json
import shutil
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from transom.errors import ChannelClosed

SCRIPTS = Path(__file__).parent / "node"
LONGEST_LINE = 64 * 2**20


class NodeError(Exception):
    """What an order came to when it failed in Node: the SDK's own code, message and data."""

    def __init__(self, code: int | str | None, message: str, data: Any) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class NodePeer:
    """One running script. The orders and events it knows are listed at its top.

    `lines(*peer.wire)` is a channel to the App or the bridge inside.
    """

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        control: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.process = process
        self.events: list[dict[str, Any]] = []
        self._reports, self._orders = control
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._news = asyncio.Condition()
        self._over = False
        self._reading = asyncio.create_task(self._read())

    @property
    def wire(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Our end of its stdin and stdout, unless `start` gave those to somebody else."""
        assert self.process.stdout is not None
        assert self.process.stdin is not None
        return self.process.stdout, self.process.stdin

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
                    raise EOFError(f"the script ended without an event {name} {fields}")
                await self._news.wait()

    def untaken(self, name: str) -> list[dict[str, Any]]:
        """The events of that name that have come and that nobody took."""
        return [event for event in self.events if event["event"] == name]

    async def aclose(self) -> None:
        """End the script and wait for it."""
        self._orders.close()
        if self.process.stdin is not None:
            self.process.stdin.close()
        if self.process.stdout is not None:
            # A channel that is still open sees the end itself; one that closed has taken it along.
            with suppress(RuntimeError, ChannelClosed):
                await self.process.stdout.read()
        await self._reading
        await self.process.wait()

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
            future.cancel("the script ended")


async def start(
    script: str,
    *options: str,
    stdin: int = asyncio.subprocess.PIPE,
    stdout: int = asyncio.subprocess.PIPE,
) -> NodePeer:
    """Start `bridge.mjs` or `view.mjs` and wait until it listens; end it with `aclose()`."""
    node = shutil.which("node")
    assert node is not None, "these tests need Node 20 or newer on the PATH"
    ours, theirs = socket.socketpair()
    with theirs:
        process = await asyncio.create_subprocess_exec(
            node,
            str(SCRIPTS / script),
            "--control",
            str(theirs.fileno()),
            *options,
            stdin=stdin,
            stdout=stdout,
            pass_fds=(theirs.fileno(),),
            limit=LONGEST_LINE,
        )
    control = await asyncio.open_unix_connection(sock=ours, limit=LONGEST_LINE)
    peer = NodePeer(process, control)
    try:
        await peer.event("ready")
    except BaseException:
        await peer.aclose()
        raise
    return peer


StartNode = Callable[..., Awaitable[NodePeer]]
