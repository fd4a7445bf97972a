"""A client of MCP that is nothing but JSON on a process's pipes, for comparing what it hears."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PYTHON = str(ROOT / ".venv" / "bin" / "python")
GATEWAY = [str(ROOT / ".venv" / "bin" / "transom"), "gateway", "--no-open"]
PACKAGES = ROOT / "tests" / "servers" / "node_modules" / "@modelcontextprotocol"

Answers = dict[str, Any]
"""By method: what the client answers its server with, or a function of the params."""


class RawClient:
    """Asks, tells, and keeps everything that it hears.

    Numbers are kept as they were written: 1 and 1.0 are not the same here.
    """

    def __init__(self, process: asyncio.subprocess.Process, answers: Answers) -> None:
        self.process = process
        self.notes: list[dict[str, Any]] = []
        self.asked: list[dict[str, Any]] = []
        self.stray: list[Any] = []
        self._answers = answers
        self._waiting: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._news = asyncio.Event()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while line := await self.process.stdout.readline():
            message = json.loads(line, parse_float=_Number, parse_int=_Number)
            self._hear(message)
            self._news.set()

    def _hear(self, message: Any) -> None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            self.stray.append(message)
        elif "method" not in message:
            waiting = self._waiting.pop(repr(message.get("id")), None)
            if waiting is None:
                self.stray.append(message)
            else:
                waiting.set_result(message)
        elif "id" in message:
            self.asked.append(message)
            answer = self._answers.get(message["method"])
            if callable(answer):
                answer = answer(message.get("params"))
            if answer is not None:
                id = message["id"]
                self.say({"id": json.loads(id) if isinstance(id, _Number) else id, **answer})
        else:
            self.notes.append(message)

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def say(self, message: dict[str, Any]) -> None:
        self.write(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def tell(self, method: str, params: Any = None) -> None:
        self.say({"method": method, **({} if params is None else {"params": params})})

    def begin(self, id: Any, method: str, params: Any = None) -> asyncio.Future[dict[str, Any]]:
        waiting = asyncio.get_running_loop().create_future()
        self._waiting[repr(_Number(str(id)) if isinstance(id, int) else id)] = waiting
        self.say({"id": id, "method": method, **({} if params is None else {"params": params})})
        return waiting

    async def ask(self, id: Any, method: str, params: Any = None) -> dict[str, Any]:
        """The whole response, with its result or its error."""
        return await self.begin(id, method, params)

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait until it is so; looked at whenever something was heard."""
        while not condition():
            self._news.clear()
            await self._news.wait()

    def noted(self, method: str) -> list[Any]:
        """The params of such notifications so far."""
        return [note.get("params") for note in self.notes if note["method"] == method]

    async def aclose(self, *, leaves: bool = True) -> int:
        """Close its input, and end one that would not leave by itself; its exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        if not leaves:
            self.process.terminate()
        code = await self.process.wait()
        await self._reading
        return code


class _Number(str):
    """A number as it was written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"#{self}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Number) and str.__eq__(self, other)

    __hash__ = str.__hash__


@asynccontextmanager
async def raw_client(
    command: list[str], answers: Answers | None = None
) -> AsyncIterator[RawClient]:
    """A client of what this command starts; it ends with its block."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=64 * 1024 * 1024,
        cwd=ROOT,
    )
    client = RawClient(process, answers or {})
    try:
        yield client
    finally:
        with suppress(ProcessLookupError):
            await client.aclose(leaves=command[: len(GATEWAY)] == GATEWAY)


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # ended, and waits for its parent to take note
